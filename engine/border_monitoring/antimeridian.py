"""Passes of moves over the antimeridian.

A move between two longitudes more than 180 degrees apart goes the short way, over the antimeridian:
straight in latitude and unwrapped longitude. Such moves are rare, so each is compared with all
regions that want passes, in rational numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.passes import Moves, edge_contacts, geodesic_contacts, round_time
from engine.border_monitoring.shapes import Circle, Polygon, Shape
from engine.index.exact import in_polygon
from engine.index.geodesic import circle_bounds, distances

Pass = tuple[int, int, int, int]
"""(move, region, in time, out time)."""


def crosses_antimeridian(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which moves from p to q, arrays (m, 2) of degrees, go over the antimeridian."""
    over: npt.NDArray[np.bool_] = np.abs(q[:, 0] - p[:, 0]) > 180.0
    return over


def passes_over(moves: Moves, shapes: Sequence[Shape], wanted: npt.NDArray[np.bool_]) -> list[Pass]:
    """Passes of moves that all go over the antimeridian through the regions that want them."""
    found = []
    for region in np.flatnonzero(wanted).tolist():
        shape = shapes[region]
        south, north = _latitudes(shape)
        reach = (np.minimum(moves.p[:, 1], moves.q[:, 1]) <= north) & (np.maximum(moves.p[:, 1], moves.q[:, 1]) >= south)
        for i in np.flatnonzero(reach).tolist():
            span = _circle_span(moves, i, shape) if isinstance(shape, Circle) else _polygon_span(moves, i, shape)
            if span is not None:
                found.append((i, region, round_time(moves, i, span[0]), round_time(moves, i, span[1])))
    return sorted(found)


def _latitudes(shape: Shape) -> tuple[float, float]:
    if isinstance(shape, Circle):
        return circle_bounds(shape.x, shape.y, shape.radius)[1::2]
    assert isinstance(shape, Polygon)
    return float(shape.edges[:, 1].min()), float(shape.edges[:, 1].max())


def _polygon_span(moves: Moves, i: int, shape: Shape) -> tuple[Fraction, Fraction] | None:
    """First and last fraction of the move in the polygon; null when a sample is inside or
    the move does not touch it."""
    assert isinstance(shape, Polygon)
    p, q = moves.p[i], moves.q[i]
    if in_polygon(shape.edges, 0, len(shape.edges), p[0], p[1]) or in_polygon(shape.edges, 0, len(shape.edges), q[0], q[1]):
        return None
    px, py, qx, qy = (Fraction(float(v)) for v in (*p, *q))
    turn = 360 if qx < px else -360
    if qx + turn == px and qy == py:
        # From the meridian 180 to itself under its other name.
        return None
    contacts = [s for ax, ay in ((px, qx + turn), (px - turn, qx)) for edge in shape.edges.tolist() for s in edge_contacts(edge, ax, py, ay, qy)]
    return (min(contacts), max(contacts)) if contacts else None


def _circle_span(moves: Moves, i: int, circle: Circle) -> tuple[float, float] | None:
    p, q = moves.p[i], moves.q[i].copy()
    ends = distances(np.full(2, circle.x), np.full(2, circle.y), np.array([p[0], q[0]]), np.array([p[1], q[1]]))
    if (ends <= circle.radius).any():
        return None
    q[0] += 360.0 if q[0] < p[0] else -360.0
    if (p == q).all():
        return None
    return geodesic_contacts(p, q, circle)
