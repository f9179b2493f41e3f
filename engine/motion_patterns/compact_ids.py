"""Compact ids: the numbers that entities go by in a group's planes.

An entity's **compact id** is its bit in planes and its place in what is kept beside them. Ids are taken in turn, at the first
sample that hits: so planes are as wide as there were entities in some region, not as there are entities. When most entities with an id
have not hit for long, those that have are
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


class CompactIds(NamedTuple):
    """`of[entity]`: the entity's compact id, -1 if it has none. `entity[id]`: the entity of each of the `taken[0]` first ids; all others are free."""

    of: Int32s
    entity: Int32s
    taken: Ints


def no_ids() -> CompactIds:
    """No entity has an id."""
    return CompactIds(np.empty(0, np.int32), np.empty(0, np.int32), np.zeros(1, np.int64))


def with_entities(compact_ids: CompactIds, entities: int) -> CompactIds:
    """The same compact ids with room for entities numbered below `entities`; doubled when there is too little."""
    if entities <= len(compact_ids.of):
        return compact_ids
    more = max(entities, 2 * len(compact_ids.of)) - len(compact_ids.of)
    return compact_ids._replace(
        of=np.append(compact_ids.of, np.full(more, -1, np.int32)), entity=np.append(compact_ids.entity, np.zeros(more, np.int32))
    )


@njit(cache=True, nogil=True)
def assign(compact_ids, entity, first, stop, mask):  # type: ignore[no-untyped-def]
    """The entities in the places `number & mask` for the numbers `first` to `stop` are replaced by their compact ids; one that has none
    takes the next."""
    of, who, taken = compact_ids.of, compact_ids.entity, compact_ids.taken[0]
    for number in range(first, stop):
        e = np.uint32(entity[number & mask])
        compact_id = of[e]
        if compact_id < 0:
            compact_id = np.int32(taken)
            of[e] = compact_id
            who[compact_id] = e
            taken += 1
        entity[number & mask] = compact_id
    compact_ids.taken[0] = taken


def cells(compact_ids: CompactIds, store: Store, extent: Extent) -> Cells:
    """The cell of the latest stored sample of each entity with an id, NOWHERE for those without one.

    `extent`: west, south, east, north of the grid; an entity beyond it counts for the nearest cell.
    """
    found = np.full(int(compact_ids.taken[0]), NOWHERE, np.uint16)
    left, tail = store.bounds
    _see(found, store.entity, store.x, store.y, left, tail, len(store.t) - 1, *extent)
    return found


def renumbered(compact_ids: CompactIds, keys: npt.NDArray[np.integer[Any]], there: npt.NDArray[np.bool_]) -> tuple[CompactIds, Int32s]:
    """Ids of the entities that are `there` alone, in the order of their `keys`, and the new id of each old one, -1 for the others."""
    who = np.flatnonzero(there)
    order = who[np.argsort(keys[who], kind="stable")]
    moved = np.full(len(there), -1, np.int32)
    moved[order] = np.arange(len(order), dtype=np.int32)
    of, entity = np.full_like(compact_ids.of, -1), np.zeros_like(compact_ids.entity)
    entity[: len(order)] = compact_ids.entity[order]
    of[entity[: len(order)]] = np.arange(len(order), dtype=np.int32)
    return CompactIds(of, entity, np.array([len(order)])), moved


def in_order(numbers: npt.NDArray[np.integer[Any]]) -> bool:
    """Whether these come in about the order of their numbers."""
    return int(np.count_nonzero(numbers[1:] >= numbers[:-1])) >= _IN_ORDER * (len(numbers) - 1)


def scattered(cells: Cells) -> bool:
    """Whether entities with neighbouring ids, in these cells, are so many that it matters that they are not neighbours in space."""
    return len(cells) > _CACHED and not in_order(cells >> _COARSE)


@njit(cache=True, nogil=True)
def change(store, moved):  # type: ignore[no-untyped-def]
    """Stored samples get the compact ids `moved[compact_id]`."""
    left, tail = store.bounds
    mask, entity = len(store.t) - 1, store.entity
    for number in range(left, tail):
        entity[number & mask] = moved[np.uint32(entity[number & mask])]


@njit(cache=True, nogil=True)
def _see(found, compact_id, x, y, low, high, mask, west, south, east, north):  # type: ignore[no-untyped-def]
    """`found[compact_id]` of those that have none yet: where they are in the latest of the samples `low` to `high`, which lie in places
    `number & mask`."""
    side = np.float64(1 << _LEVELS)
    across, up = side / max(east - west, 1e-300), side / max(north - south, 1e-300)
    for number in range(high - 1, low - 1, -1):
        i = number & mask
        if found[compact_id[i]] == NOWHERE:
            column, level = min(max((x[i] - west) * across, 0.0), side - 1.0), min(max((y[i] - south) * up, 0.0), side - 1.0)
            found[compact_id[i]] = along_the_curve(np.int64(column), np.int64(level))


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
