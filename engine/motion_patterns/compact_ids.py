"""Compact ids: the numbers of entities in a group's planes.

An entity's **compact id** is the index of its bit in planes and of its entry in the other arrays.
Entities get ids in sequence, at their first sample that hits. So the width of planes is the number
of entities that were in some region, not the number of all entities. When most entities with an id
have no stored sample, the others are **renumbered** in the order of their entity numbers: rows that
arrive in this order access memory sequentially, which the processor prefetches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns.sample_store import SampleStore

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


class CompactIds(NamedTuple):
    """`of[entity]`: the entity's compact id, -1 if it has none. `entity[id]`: the entity of each of
    the first `taken[0]` ids; all others are free."""

    of: Int32s
    entity: Int32s
    taken: Ints


def no_ids() -> CompactIds:
    """No entity has an id."""
    return CompactIds(np.empty(0, np.int32), np.empty(0, np.int32), np.zeros(1, np.int64))


def with_entities(compact_ids: CompactIds, entities: int) -> CompactIds:
    """The same compact ids with room for entities numbered below `entities`;
    the room grows by doubling."""
    if entities <= len(compact_ids.of):
        return compact_ids
    more = max(entities, 2 * len(compact_ids.of)) - len(compact_ids.of)
    return compact_ids._replace(
        of=np.append(compact_ids.of, np.full(more, -1, np.int32)), entity=np.append(compact_ids.entity, np.zeros(more, np.int32))
    )


@njit(cache=True, nogil=True)
def assign(compact_ids, entity, first, stop, mask):  # type: ignore[no-untyped-def]
    """Replaces the entities at the indexes `number & mask`, for the numbers `first` to `stop`, by
    their compact ids. An entity without one gets the next."""
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


def with_samples(compact_ids: CompactIds, store: SampleStore) -> npt.NDArray[np.bool_]:
    """For each compact id, whether its entity has a stored sample."""
    sampled = np.zeros(int(compact_ids.taken[0]), np.bool_)
    sampled[store.entity[np.arange(*store.bounds) & (len(store.t) - 1)]] = True
    return sampled


def renumbered(compact_ids: CompactIds, in_use: npt.NDArray[np.bool_]) -> tuple[CompactIds, Int32s]:
    """(Ids for only the entities marked in `in_use`, in the order of their numbers; the new id of
    each old one, -1 for the others)."""
    who = np.flatnonzero(in_use)
    order = who[np.argsort(compact_ids.entity[who])]
    moved = np.full(len(in_use), -1, np.int32)
    moved[order] = np.arange(len(order), dtype=np.int32)
    of, entity = np.full_like(compact_ids.of, -1), np.zeros_like(compact_ids.entity)
    entity[: len(order)] = compact_ids.entity[order]
    of[entity[: len(order)]] = np.arange(len(order), dtype=np.int32)
    return CompactIds(of, entity, np.array([len(order)])), moved


@njit(cache=True, nogil=True)
def change(store, moved):  # type: ignore[no-untyped-def]
    """Changes the compact ids of stored samples to `moved[compact_id]`."""
    left, tail = store.bounds
    mask, entity = len(store.t) - 1, store.entity
    for number in range(left, tail):
        entity[number & mask] = moved[np.uint32(entity[number & mask])]
