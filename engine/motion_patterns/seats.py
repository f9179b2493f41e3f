"""Seats: the numbers that entities go by in a group's planes.

An entity's **seat** is its bit in planes and its place in what is kept beside them. Seats are taken in turn, at the first sample that hits: so planes
are as wide as there were entities in some region, not as there are entities. When most who sit have not hit for long, those who have are
**renumbered**: by number, where rows come in the order of numbers and so run through memory, foreseen by the processor; else by the cell they are in,
because a bucket's hits are those of neighbours in space.

Cells are numbered along Hilbert's curve: D. Hilbert, "Ueber die stetige Abbildung einer Linie auf ein Flächenstück", 1891.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns.sample_store import Store

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Cells = npt.NDArray[np.uint16]
Extent = tuple[float, float, float, float]

NOWHERE = 0xFFFF
_LEVELS = 7
"""The side of the grid is 2 ** _LEVELS cells."""
_COARSE = 6
"""Cells are compared with so many of their lowest bits left out: in one of these larger cells neighbours move about for a while."""
_CACHED = 65_536
"""What planes keep of so many entities stays in the second cache, wherever they sit."""
_IN_ORDER = 0.75
"""Part of those that do not go back in the order of numbers; where there is no order it is a half."""


class Seats(NamedTuple):
    """`of[entity]`: the entity's seat, -1 if it has none. `entity[seat]`: who sits there, of the `taken[0]` first seats; all others are free."""

    of: Int32s
    entity: Int32s
    taken: Ints


def no_seats() -> Seats:
    """Nobody sits."""
    return Seats(np.empty(0, np.int32), np.empty(0, np.int32), np.zeros(1, np.int64))


def with_entities(seats: Seats, entities: int) -> Seats:
    """The same seats with room for entities numbered below `entities`; doubled when there is too little."""
    if entities <= len(seats.of):
        return seats
    more = max(entities, 2 * len(seats.of)) - len(seats.of)
    return seats._replace(of=np.append(seats.of, np.full(more, -1, np.int32)), entity=np.append(seats.entity, np.zeros(more, np.int32)))


@njit(cache=True, nogil=True)
def sit(seats, entity, first, stop, mask):  # type: ignore[no-untyped-def]
    """The entities in the places `number & mask` for the numbers `first` to `stop` give way to their seats; who has none takes the next."""
    of, who, taken = seats.of, seats.entity, seats.taken[0]
    for number in range(first, stop):
        e = np.uint32(entity[number & mask])
        seat = of[e]
        if seat < 0:
            seat = np.int32(taken)
            of[e] = seat
            who[seat] = e
            taken += 1
        entity[number & mask] = seat
    seats.taken[0] = taken


def cells(seats: Seats, store: Store, extent: Extent) -> Cells:
    """The cell that each who sits was in at his latest stored sample, NOWHERE for those without one.

    `extent`: west, south, east, north of the grid; who is beyond is taken to its nearest cell.
    """
    found = np.full(int(seats.taken[0]), NOWHERE, np.uint16)
    left, tail = store.bounds
    _see(found, store.entity, store.x, store.y, left, tail, len(store.t) - 1, *extent)
    return found


def renumbered(seats: Seats, keys: npt.NDArray[np.integer[Any]], there: npt.NDArray[np.bool_]) -> tuple[Seats, Int32s]:
    """Seats of those alone who are `there`, in the order of their `keys`, and the new seat of each old one, -1 for the others."""
    who = np.flatnonzero(there)
    order = who[np.argsort(keys[who], kind="stable")]
    moved = np.full(len(there), -1, np.int32)
    moved[order] = np.arange(len(order), dtype=np.int32)
    of, entity = np.full_like(seats.of, -1), np.zeros_like(seats.entity)
    entity[: len(order)] = seats.entity[order]
    of[entity[: len(order)]] = np.arange(len(order), dtype=np.int32)
    return Seats(of, entity, np.array([len(order)])), moved


def in_order(numbers: npt.NDArray[np.integer[Any]]) -> bool:
    """Whether these come in about the order of their numbers."""
    return int(np.count_nonzero(numbers[1:] >= numbers[:-1])) >= _IN_ORDER * (len(numbers) - 1)


def scattered(cells: Cells) -> bool:
    """Whether those who sit side by side, in these cells, are so many that it matters that they are not neighbours in space."""
    return len(cells) > _CACHED and not in_order(cells >> _COARSE)


@njit(cache=True, nogil=True)
def change(store, moved):  # type: ignore[no-untyped-def]
    """Stored samples get the seats `moved[seat]`."""
    left, tail = store.bounds
    mask, entity = len(store.t) - 1, store.entity
    for number in range(left, tail):
        entity[number & mask] = moved[np.uint32(entity[number & mask])]


@njit(cache=True, nogil=True)
def _see(found, seat, x, y, low, high, mask, west, south, east, north):  # type: ignore[no-untyped-def]
    """`found[seat]` of those that have none yet: where they are in the latest of the samples `low` to `high`, which lie in places `number & mask`."""
    side = np.float64(1 << _LEVELS)
    across, up = side / max(east - west, 1e-300), side / max(north - south, 1e-300)
    for number in range(high - 1, low - 1, -1):
        i = number & mask
        if found[seat[i]] == NOWHERE:
            column, level = min(max((x[i] - west) * across, 0.0), side - 1.0), min(max((y[i] - south) * up, 0.0), side - 1.0)
            found[seat[i]] = along_the_curve(np.int64(column), np.int64(level))


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
