"""Finds pairs of places at one T within the distance, by cells as wide as the
distance instead of by all pairs.

Two points within the distance are in the same cell or in neighbouring ones. On the globe cells are
cubes in earth-centred coordinates, because the chord of two points is at most their distance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.encounter.places import FIRST_ROLE, OUTSIDE, SECOND_ROLE, WAITING
from engine.index.geodesic import chord_limits, distances, earth_centred

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_PAIRS = 20_000_000
"""The greatest number of candidates of one query in one step."""
_MARGIN = 1.0 + 2.0**-20
_FARTHEST_CELL = 2.0**30
"""Cells are slightly wider than the distance, and their number is bounded, so that rounding moves
no point beyond a neighbour."""


class Meetings(NamedTuple):
    """Pairs that meet: rows of places, that of the first role first, and their distance."""

    one: Ints
    other: Ints
    distance: Floats


def cells(px: Floats, py: Floats, side: float, geographic: bool) -> tuple[Floats, npt.NDArray[np.int32]]:
    """(points (n, 3), their cells (n, 3))."""
    points = np.zeros((len(px), 3))
    if geographic:
        points[:, 0], points[:, 1], points[:, 2] = earth_centred(px, py)
    else:
        points[:, 0], points[:, 1] = px, py
    width = side * _MARGIN if side > 0 else 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.clip(np.nan_to_num(np.floor(points / width)), -_FARTHEST_CELL, _FARTHEST_CELL)
    return points, numbers.astype(np.int32)


def meetings(
    at: Ints, entity: Any, bits: Any, px: Floats, py: Floats, new: int, distance: float, symmetric: bool, geographic: bool
) -> Meetings | None:
    """Meetings of places from row `new` on with all places; null if there are more
    than MOST_PAIRS candidates."""
    points, cell = cells(px, py, distance, geographic)
    far = chord_limits(distance)[1] if geographic else distance * distance * (1.0 + 1e-9)
    one, other = candidates(at, entity, bits, points, cell, new, far, symmetric, 3 if geographic else 2)
    if one is None:
        return None
    metres = distances(px[one], py[one], px[other], py[other]) if geographic else np.hypot(px[other] - px[one], py[other] - py[one])
    meet = metres <= distance
    return Meetings(one[meet], other[meet], metres[meet])


@njit(cache=True, nogil=True)
def _bucket(at: int, a: int, b: int, c: int, mask: int) -> int:
    mixed = (at * 0x9E3779B97F4A7C1 + a * 0x1F123BB5 + b * 0x5851F42D4C957F2 + c * 0x14057B7EF767814) & 0x7FFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 29)) & mask


@njit(cache=True, nogil=True)
def candidates(at: Ints, entity: Any, bits: Any, points: Floats, cell: Any, new: int, far: float, symmetric: bool, dimensions: int) -> Any:
    """Pairs of rows of one T in neighbouring cells whose squared chord is at most `far`, of
    different entities and fitting roles."""
    n, size = len(at), 64
    while size < 2 * n:
        size *= 2
    head = np.full(size, -1, np.int64)
    after = np.full(n, -1, np.int64)
    one, other, found = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    around = _around(dimensions)
    for i in range(n):
        if bits[i] & (OUTSIDE | WAITING):
            continue
        for k in range(len(around) if i >= new else 0):
            a, b, c = cell[i, 0] + around[k, 0], cell[i, 1] + around[k, 1], cell[i, 2] + around[k, 2]
            j = head[_bucket(at[i], a, b, c, size - 1)]
            while j >= 0:
                is_there = at[j] == at[i] and cell[j, 0] == a and cell[j, 1] == b and cell[j, 2] == c
                if is_there and entity[j] != entity[i] and _squared_chord(points, i, j) <= far:
                    if found + 2 > len(one):
                        if found > MOST_PAIRS:
                            return None, None
                        one, other = np.append(one, one), np.append(other, other)
                    forwards, backwards = _orders(bits[i], bits[j], symmetric, entity[i] < entity[j])
                    if forwards:
                        one[found], other[found] = i, j
                        found += 1
                    if backwards:
                        one[found], other[found] = j, i
                        found += 1
                j = after[j]
        bucket = _bucket(at[i], cell[i, 0], cell[i, 1], cell[i, 2], size - 1)
        after[i], head[bucket] = head[bucket], i
    return one[:found], other[:found]


@njit(cache=True, nogil=True)
def _around(dimensions: int) -> Any:
    """A cell and its neighbours, as differences."""
    found = np.zeros((3**dimensions, 3), np.int64)
    for k in range(len(found)):
        found[k, 0], found[k, 1] = k % 3 - 1, k // 3 % 3 - 1
        if dimensions == 3:
            found[k, 2] = k // 9 - 1
    return found


@njit(cache=True, nogil=True)
def _squared_chord(points: Floats, i: int, j: int) -> float:
    u, v, w = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1], points[i, 2] - points[j, 2]
    return float(u * u + v * v + w * w)


@njit(cache=True, nogil=True)
def _orders(bits: int, others: int, symmetric: bool, is_less: bool) -> tuple[bool, bool]:
    """Whether two places are a pair in this order, and in the other. A pair without order
    has the lesser entity first."""
    if symmetric:
        both = bits & others & FIRST_ROLE != 0
        return both and is_less, both and not is_less
    return bits & FIRST_ROLE != 0 and others & SECOND_ROLE != 0, others & FIRST_ROLE != 0 and bits & SECOND_ROLE != 0
