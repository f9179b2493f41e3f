"""Seats: entities renumbered by the cell they are in, so that neighbours in space are neighbours in a group's planes.

An entity's **seat** is its bit in planes and its place in what is kept beside them. A bucket's hits are those of entities in the same few regions:
where entities are numbered by appearance they lie all over memory, where they are numbered by cell in few cache lines. Rows that come in the order of
these numbers run through memory either way, foreseen by the processor; so seats are taken only where rows come in no such order, and left where they
do.

Cells are numbered along Hilbert's curve: D. Hilbert, "Ueber die stetige Abbildung einer Linie auf ein Flächenstück", 1891.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns.sample_store import Store

Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Extent = tuple[float, float, float, float]

_LEVELS = 7
"""The side of the grid is 2 ** _LEVELS cells."""
_NOWHERE = 0xFFFF
_IN_A_LINE = 16
"""So many entities have what planes keep of each, four bytes, in one cache line."""
_CACHED_LINES = 4096
"""A bucket that touches no more lines finds most of them in the second cache."""
_SPREAD = 3
"""Times the least number of lines: from there on it pays to sit by cell, which leads to less than twice the least number."""
_IN_ORDER = 0.75
"""Part of the rows that do not go back in the order of numbers; of rows in no order it is a half."""


class Seats(NamedTuple):
    """`of[entity]` is an entity's seat, `entity[seat]` who sits there. Whoever is beyond them sits at his own number."""

    of: Int32s
    entity: Int32s


BY_NUMBER = Seats(np.empty(0, np.int32), np.empty(0, np.int32))
"""Everyone at his own number: that of his first appearance."""


def by_cell(seats: Seats, entities: int, who: Int32s, x: Floats, y: Floats, store: Store, extent: Extent) -> Seats:
    """Seats for the numbers below `entities`, by the cell each was seen in last: at the places (x, y), NaN for none, of a batch's rows, else of the
    samples stored so far, which are by `seats`. Whoever was seen nowhere comes after the others, in the order of `seats`.

    `extent`: west, south, east, north of the grid; who is beyond is taken to its nearest cell.
    """
    cells = np.full(entities, _NOWHERE, np.uint16)
    _see(cells, looked_up(seats.of, who), x, y, 0, len(who), -1, *extent)
    left, tail = store.bounds
    _see(cells, store.entity, store.x, store.y, left, tail, len(store.t) - 1, *extent)
    order = np.argsort(cells, kind="stable")
    entity = looked_up(seats.entity, order.astype(np.int32))
    of = np.empty_like(entity)
    of[entity] = np.arange(entities, dtype=np.int32)
    return Seats(of, entity)


def in_order(numbers: Int32s) -> bool:
    """Whether rows of these entities come in about the order of their numbers."""
    return int(np.count_nonzero(numbers[1:] >= numbers[:-1])) >= _IN_ORDER * (len(numbers) - 1)


def scattered(seats: Int32s) -> bool:
    """Whether a bucket with hits on these seats touches many more lines of memory than it would if they were next to each other."""
    lines = len(np.unique(seats // _IN_A_LINE))
    return lines > _CACHED_LINES and lines * _IN_A_LINE > _SPREAD * len(np.unique(seats))


@njit(cache=True, nogil=True)
def looked_up(table, numbers):  # type: ignore[no-untyped-def]
    """`table[n]` for each of the numbers; those beyond the table stay as they are."""
    found = np.empty_like(numbers)
    for k in range(len(numbers)):
        n = np.uint32(numbers[k])
        found[k] = table[n] if n < len(table) else numbers[k]
    return found


@njit(cache=True, nogil=True)
def change(store, first, old, new):  # type: ignore[no-untyped-def]
    """Stored samples from number `first` on have the seats `new` instead of `old`."""
    mask, entity = len(store.t) - 1, store.entity
    for number in range(first, store.bounds[1]):
        seat = np.uint32(entity[number & mask])
        e = np.uint32(old.entity[seat]) if seat < len(old.entity) else seat
        entity[number & mask] = new.of[e] if e < len(new.of) else e


@njit(cache=True, nogil=True)
def _see(cells, seat, x, y, low, high, mask, west, south, east, north):  # type: ignore[no-untyped-def]
    """`cells[seat]` of those that have none yet: where they are in the latest of the rows `low` to `high`, which lie in places `number & mask`."""
    side = np.float64(1 << _LEVELS)
    across, up = side / max(east - west, 1e-300), side / max(north - south, 1e-300)
    for number in range(high - 1, low - 1, -1):
        i = number & mask
        if cells[seat[i]] == _NOWHERE and x[i] == x[i] and y[i] == y[i]:
            column, level = min(max((x[i] - west) * across, 0.0), side - 1.0), min(max((y[i] - south) * up, 0.0), side - 1.0)
            cells[seat[i]] = along_the_curve(np.int64(column), np.int64(level))


@njit(cache=True, nogil=True)
def along_the_curve(column, level):  # type: ignore[no-untyped-def]
    """The number of a cell along Hilbert's curve: cells that follow each other touch.

    >>> [along_the_curve(column, level) for column, level in [(0, 0), (1, 0), (1, 1), (0, 1)]]
    [0, 3, 2, 1]
    """
    found, half = 0, 1 << (_LEVELS - 1)
    while half > 0:
        right, upper = column & half != 0, level & half != 0
        found = 4 * found + ((3 if right else 0) ^ (1 if upper else 0))
        # Each quarter is walked through as the whole is, turned so that it begins where the one before ends.
        if not upper:
            if right:
                column, level = ~column, ~level
            column, level = level, column
        half >>= 1
    return found
