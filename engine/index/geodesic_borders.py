"""Least geodesic distance from a point to the border of a polygon whose edges are straight
in longitude and latitude.

There is no closed form. Edges are cut into pieces of at most half a degree; for each point the
pieces are narrowed by chords through the Earth (bounds first, then a search for the nearest
place on each piece that remains), and the geodesic distance is measured at the nearest places
of the three best pieces. Tolerance: the result is never less than the true distance, and at
most 1 mm + 1e-7 of it more up to 5,000 km. Beyond, chords do not order places as geodesics do:
2.6e-6 of it more has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from numba import njit

from engine.index.geodesic import distances, earth_centred

Floats = npt.NDArray[np.float64]

_PIECE_DEGREES = 0.5
_BEST = 3
_STEPS = 44
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class GeodesicBorder:
    """`pieces` (m, 4): longitude and latitude of both ends; `middles` (m, 3): earth-centred
    middles; `reach` (m,): no place of a piece is farther from its middle, in metres of chord."""

    pieces: Floats
    middles: Floats
    reach: Floats

    @classmethod
    def of(cls, geometry: shapely.Geometry) -> GeodesicBorder:
        """The border of a valid Polygon or MultiPolygon, without edges along the antimeridian and
        over the poles, where it is only cut."""
        rings = shapely.get_rings(shapely.get_parts(geometry))
        edges = np.concatenate([np.hstack([c[:-1], c[1:]]) for c in (shapely.get_coordinates(ring) for ring in rings)])
        edges = edges[_is_border(edges)]
        spans = np.maximum(np.abs(edges[:, 2] - edges[:, 0]), np.abs(edges[:, 3] - edges[:, 1]))
        counts = np.maximum(np.ceil(spans / _PIECE_DEGREES), 1).astype(np.int64)
        owner = np.repeat(np.arange(len(edges)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        steps = (edges[:, 2:] - edges[:, :2])[owner] / counts[owner, None]
        begin = edges[owner, :2] + steps * number[:, None]
        pieces = np.hstack([begin, begin + steps])
        middles, reach = _middles(pieces)
        return cls(pieces, middles, reach)

    def distances(self, x: Floats, y: Floats) -> Floats:
        """Metres from each position (degrees) to the border."""
        if len(x) == 0:
            return np.empty(0)
        near_x, near_y = _nearest(self.pieces, self.middles, self.reach, x, y)
        each = [distances(x, y, near_x[:, i], near_y[:, i]) for i in range(_BEST)]
        return np.asarray(np.min(each, axis=0), np.float64)


def _is_border(edges: Floats) -> npt.NDArray[np.bool_]:
    """Whether an edge really bounds the region: not one along the antimeridian with a twin on the
    other side, nor one at a pole."""
    at_pole = (np.abs(edges[:, 1]) == 90) & (edges[:, 1] == edges[:, 3])
    along = (np.abs(edges[:, 0]) == 180) & (edges[:, 0] == edges[:, 2])
    keep = ~at_pole
    if along.any():
        here = np.flatnonzero(along)
        low, high = np.minimum(edges[here, 1], edges[here, 3]), np.maximum(edges[here, 1], edges[here, 3])
        side = edges[here, 0]
        for i, edge in enumerate(here):
            keep[edge] &= not bool(np.any((side == -side[i]) & (low == low[i]) & (high == high[i])))
    result: npt.NDArray[np.bool_] = keep
    return result


@njit(cache=True, nogil=True)
def _middles(pieces):  # type: ignore[no-untyped-def]
    m = len(pieces)
    middles = np.empty((m, 3))
    reach = np.empty(m)
    for i in range(m):
        a, b, c, d = pieces[i]
        middles[i, 0], middles[i, 1], middles[i, 2] = earth_centred((a + c) / 2, (b + d) / 2)
        # Speed along a straight line in degrees is at most that of a degree of latitude or
        # longitude at the equator, with room to spare.
        reach[i] = 0.5 * np.hypot(c - a, d - b) * 111_800.0
    return middles, reach


@njit(cache=True, nogil=True)
def _chord(piece, s, px, py, pz):  # type: ignore[no-untyped-def]
    """Squared chord from the earth-centred point to the place at part s of the piece."""
    x, y, z = earth_centred(piece[0] + s * (piece[2] - piece[0]), piece[1] + s * (piece[3] - piece[1]))
    return (x - px) ** 2 + (y - py) ** 2 + (z - pz) ** 2


@njit(cache=True, nogil=True)
def _nearest_on(piece, px, py, pz):  # type: ignore[no-untyped-def]
    """(s, squared chord) of the nearest place on one piece by golden section: on half a degree
    the chord has one minimum."""
    low, high = 0.0, 1.0
    s1, s2 = high - _GOLDEN, low + _GOLDEN
    f1, f2 = _chord(piece, s1, px, py, pz), _chord(piece, s2, px, py, pz)
    for _ in range(_STEPS):
        if f1 < f2:
            high, s2, f2 = s2, s1, f1
            s1 = high - _GOLDEN * (high - low)
            f1 = _chord(piece, s1, px, py, pz)
        else:
            low, s1, f1 = s1, s2, f2
            s2 = low + _GOLDEN * (high - low)
            f2 = _chord(piece, s2, px, py, pz)
    best, least = (low + high) / 2, _chord(piece, (low + high) / 2, px, py, pz)
    for end in (0.0, 1.0):
        there = _chord(piece, end, px, py, pz)
        if there <= least:
            best, least = end, there
    return best, least


@njit(cache=True, nogil=True)
def _nearest(pieces, middles, reach, x, y):  # type: ignore[no-untyped-def]
    """Longitudes and latitudes (n, 3) of the nearest places on the three best pieces (the best
    repeated where there are fewer)."""
    n, m = len(x), len(pieces)
    near_x, near_y = np.empty((n, _BEST)), np.empty((n, _BEST))
    least = np.empty(_BEST)
    away = np.empty(m)
    for i in range(n):
        px, py, pz = earth_centred(x[i], y[i])
        first = 0
        for j in range(m):
            dx, dy, dz = middles[j, 0] - px, middles[j, 1] - py, middles[j, 2] - pz
            away[j] = np.sqrt(dx * dx + dy * dy + dz * dz)
            if away[j] < away[first]:
                first = j
        least[:] = np.inf
        limit = away[first] + reach[first]
        for turn in range(m):
            # The piece with the nearest middle is tried first: its distance
            # excludes most of the others.
            j = first if turn == 0 else (turn - 1 if turn - 1 < first else turn)
            if away[j] - reach[j] > limit * 1.0001:
                continue
            s, square = _nearest_on(pieces[j], px, py, pz)
            if square >= least[_BEST - 1]:
                continue
            place = _BEST - 1
            while place > 0 and least[place - 1] > square:
                least[place] = least[place - 1]
                near_x[i, place], near_y[i, place] = near_x[i, place - 1], near_y[i, place - 1]
                place -= 1
            least[place] = square
            near_x[i, place] = pieces[j, 0] + s * (pieces[j, 2] - pieces[j, 0])
            near_y[i, place] = pieces[j, 1] + s * (pieces[j, 3] - pieces[j, 1])
            limit = min(limit, np.sqrt(least[0]))
        for place in range(1, _BEST):
            if least[place] == np.inf:
                near_x[i, place], near_y[i, place] = near_x[i, 0], near_y[i, 0]
    return near_x, near_y
