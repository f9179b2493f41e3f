"""When straight lines from outside first touch a region: in floating point, and in rational numbers
where that is not precise enough.

Polygons and plane circles are exact for the doubles given; contacts with geodesic circles are
found to 1e-9 of the line.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import shapely
from numba import njit

from engine.border_monitoring.moves import contact
from engine.border_monitoring.passes import Moves, edge_contacts, geodesic_contacts, round_root, round_time, round_times
from engine.border_monitoring.shapes import Circle
from engine.index.geodesic import distances
from engine.model.region import CircleRegion, PolygonRegion, Region

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NONE, SURE, OPEN = 0, 1, 2
"""The result in floating point for a line: no contact, a contact at a fraction known well enough,
or to be decided exactly."""

_BLOCK = 64
_SAMPLES, _HALVINGS, _LONG = 17, 36, 2.0
_NEAR = 1e-9


def first_contacts(region: Region, lines: Moves, geographic: bool) -> tuple[Bools, Int64s]:
    """Which lines, all from outside, touch the region, and the times of their first contacts, to
    the nearest integer, half to even."""
    touched, at = np.zeros(len(lines.t0), np.bool_), lines.t1.copy()
    over = np.abs(lines.q[:, 0]) > 180.0 if geographic else np.zeros(len(touched), np.bool_)
    near = np.flatnonzero(~over & _near(region, lines))
    if len(near):
        touched[near], at[near] = _contacts(region, lines.take(near))
    for i in np.flatnonzero(over).tolist():
        # Lines over the antimeridian are rare: on both of its sides, in rational numbers.
        fractions = [found for turn in (0, -360 if lines.q[i, 0] > 0 else 360) if (found := _exact_fraction(region, lines, i, turn)) is not None]
        if fractions:
            touched[i], at[i] = True, round_time(lines, i, min(fractions))
    return touched, at


def _near(region: Region, lines: Moves) -> Bools:
    """Whose box meets the region's."""
    west, south, east, north = region.bounds
    if isinstance(region, CircleRegion):
        # The box of a circle is rounded.
        pad = 1e-12 * max(abs(west), abs(south), abs(east), abs(north))
        west, south, east, north = west - pad, south - pad, east + pad, north + pad
    low, high = np.minimum(lines.p, lines.q), np.maximum(lines.p, lines.q)
    near: Bools = (low[:, 0] <= east) & (high[:, 0] >= west) & (low[:, 1] <= north) & (high[:, 1] >= south)
    return near


def _contacts(region: Region, lines: Moves) -> tuple[Bools, Int64s]:
    if isinstance(region, CircleRegion) and region.geodesic:
        fraction = _geodesic_fractions(region, lines)
        touched = ~np.isnan(fraction)
        at = lines.t1.copy()
        at[touched] = lines.t0[touched] + np.rint(fraction[touched] * (lines.t1 - lines.t0)[touched]).astype(np.int64)
        return touched, at
    certainty, fraction, error = _polygon_fractions(region, lines) if isinstance(region, PolygonRegion) else _circle_fractions(region, lines)
    at, open_ = round_times(lines, fraction, error)
    touched = certainty == SURE
    for i in np.flatnonzero((certainty == OPEN) | (touched & open_)).tolist():
        time = _exact_time(region, lines, i)
        touched[i] = time is not None
        at[i] = time if time is not None else at[i]
    return touched, at


# -- polygons --------------------------------------------------------------------------------------


def edges_of(region: PolygonRegion) -> Floats:
    """The edges (n, 4) of all rings."""
    places, ring = shapely.get_coordinates(shapely.get_rings(shapely.get_parts(region.geometry)), return_index=True)
    edges = np.hstack([places[:-1], places[1:]])
    kept: Floats = edges[(ring[:-1] == ring[1:]) & (edges[:, :2] != edges[:, 2:]).any(axis=1)]
    return kept


def _polygon_fractions(region: Region, lines: Moves) -> tuple[npt.NDArray[np.int8], Floats, Floats]:
    assert isinstance(region, PolygonRegion)
    edges = edges_of(region)
    starts = np.arange(0, len(edges), _BLOCK)
    low, high = np.minimum(edges[:, :2], edges[:, 2:]), np.maximum(edges[:, :2], edges[:, 2:])
    boxes = np.hstack([np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)])
    fraction, error = _least_contacts(edges, boxes, lines.p, lines.q)
    return (~np.isnan(fraction)).astype(np.int8), np.nan_to_num(fraction), error


@njit(cache=True, nogil=True)
def _least_contacts(edges, boxes, p, q):  # type: ignore[no-untyped-def]
    """(fraction, error): each line's least contact with an edge, NaN for none. `boxes` are
    those of blocks of edges."""
    fraction, error = np.full(len(p), np.nan), np.zeros(len(p))
    for i in range(len(p)):
        px, py, qx, qy = p[i, 0], p[i, 1], q[i, 0], q[i, 1]
        if px == qx and py == qy:
            continue
        west, east, south, north = min(px, qx), max(px, qx), min(py, qy), max(py, qy)
        for b in range(len(boxes)):
            if boxes[b, 0] > east or boxes[b, 2] < west or boxes[b, 1] > north or boxes[b, 3] < south:
                continue
            for k in range(b * _BLOCK, min((b + 1) * _BLOCK, len(edges))):
                ax, ay, bx, by = edges[k, 0], edges[k, 1], edges[k, 2], edges[k, 3]
                if max(ax, bx) < west or min(ax, bx) > east or max(ay, by) < south or min(ay, by) > north:
                    continue
                met, _, _, first, _, wrong = contact(ax, ay, bx, by, px, py, qx, qy)
                if met:
                    error[i] = max(error[i], wrong)
                    if not first >= fraction[i]:
                        fraction[i] = first
    return fraction, error


# -- circles ---------------------------------------------------------------------------------------


def _circle_fractions(region: Region, lines: Moves) -> tuple[npt.NDArray[np.int8], Floats, Floats]:
    """The first root of |p + s (q - p) - c| = r, where it is surely there and surely not too
    near to an end of the line."""
    assert isinstance(region, CircleRegion)
    d, u = lines.q - lines.p, np.array([region.x, region.y]) - lines.p
    along, square = (d * u).sum(axis=1), (d * d).sum(axis=1)
    left, right = d[:, 0] * u[:, 1], d[:, 1] * u[:, 0]
    size = region.radius**2 * square
    rest = size - (left - right) ** 2
    doubt = 1e-13 * (size + (np.abs(left) + np.abs(right)) ** 2)
    root = np.sqrt(np.maximum(rest, doubt))
    with np.errstate(invalid="ignore", divide="ignore"):
        fraction = (along - root) / square
        error = (1e-13 * np.abs(d * u).sum(axis=1) + doubt / root) / square
    certainty = np.full(len(d), OPEN, np.int8)
    certainty[(rest > doubt) & (fraction > _NEAR) & (fraction < 1 - _NEAR)] = SURE
    certainty[(square == 0) | (rest < -doubt) | (fraction > 1 + _NEAR) | ((rest > doubt) & (fraction < -_NEAR))] = NONE
    return certainty, np.nan_to_num(fraction), np.nan_to_num(error)


def _geodesic_fractions(circle: CircleRegion, lines: Moves) -> Floats:
    """NaN for none. Lines that may graze the circle between two samples, and long
    ones, are searched one by one."""
    fraction = np.full(len(lines.t0), np.nan)
    d = lines.q - lines.p
    s = np.linspace(0.0, 1.0, _SAMPLES)

    def beyond(rows: npt.NDArray[np.intp], at: Floats) -> Floats:
        place = lines.p[rows] + at[:, None] * d[rows]
        return distances(np.full(len(at), circle.x), np.full(len(at), circle.y), place[:, 0], place[:, 1]) - circle.radius

    every = np.arange(len(fraction))
    samples = beyond(np.repeat(every, _SAMPLES), np.tile(s, len(every))).reshape(-1, _SAMPLES)
    inside = samples <= 0
    long = np.abs(d).max(axis=1) > _LONG
    crossing = np.flatnonzero(inside.any(axis=1) & ~long)
    first = np.maximum(inside[crossing].argmax(axis=1), 1)
    fraction[crossing] = _halved(lambda at: beyond(crossing, at), s[first - 1], s[first])
    # No point of the line is nearer than its samples by more than the way between two: a
    # degree is at most 111.7 km.
    grazing = ~inside.any(axis=1) & (samples.min(axis=1) <= 111_700.0 * np.hypot(d[:, 0], d[:, 1]) / (_SAMPLES - 1))
    for i in np.flatnonzero(grazing | long).tolist():
        span = geodesic_contacts(lines.p[i], lines.q[i], _geodesic(circle))
        fraction[i] = np.nan if span is None else span[0]
    return fraction


def _geodesic(circle: CircleRegion) -> Circle:
    return Circle(circle.x, circle.y, circle.radius, True)


def _halved(beyond: Callable[[Floats], Floats], outside: Floats, inside: Floats) -> Floats:
    """Where each line enters, between a fraction outside and one inside; returns the latter."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (outside + inside)
        within = beyond(middle) <= 0.0
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return inside


# -- exactly ---------------------------------------------------------------------------------------


def _exact_time(region: Region, lines: Moves, i: int) -> int | None:
    if isinstance(region, PolygonRegion):
        fraction = _exact_fraction(region, lines, i, 0)
        return None if fraction is None else round_time(lines, i, fraction)
    assert isinstance(region, CircleRegion)
    (px, py), (qx, qy), (cx, cy) = (map(Fraction, map(float, place)) for place in (lines.p[i], lines.q[i], (region.x, region.y)))
    dx, dy, ux, uy, square_radius = qx - px, qy - py, cx - px, cy - py, Fraction(region.radius) ** 2
    if ux * ux + uy * uy <= square_radius:
        # The sample's distance was greater than the radius by its rounding alone.
        return int(lines.t0[i])
    square, along, across = dx * dx + dy * dy, dx * ux + dy * uy, dx * uy - dy * ux
    rest = square_radius * square - across * across
    ends_inside = (qx - cx) ** 2 + (qy - cy) ** 2 <= square_radius
    if rest < 0 or along <= 0 or (along > square and not ends_inside):
        return None
    return round_root(lines, i, -1, square, along, rest)


def _exact_fraction(region: Region, lines: Moves, i: int, turn: int) -> Fraction | float | None:
    """The least contact of line i, moved by `turn` degrees of longitude."""
    (px, py), (qx, qy) = (map(Fraction, map(float, place)) for place in (lines.p[i], lines.q[i]))
    if isinstance(region, PolygonRegion):
        rows = edges_of(region).tolist()
        contacts = [s for edge in rows for s in edge_contacts(edge, px + turn, py, qx + turn, qy)]
        return min(contacts, default=None)
    assert isinstance(region, CircleRegion)
    # Longitudes beyond 180 degrees are as good as any for geodesics.
    span = None if turn else geodesic_contacts(lines.p[i], lines.q[i], _geodesic(region))
    return None if span is None else span[0]
