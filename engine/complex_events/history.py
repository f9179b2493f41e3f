"""The events that patterns may still need: one slot for each (class, entity), in one pool.

Time and arrival of events, which searches read, are stored separately from the columns for answers.
A slot's events are contiguous, in (t, seq), so that a search is a bisection. Slots are found by an
open-addressing hash table. A full slot first drops the events that no query needs any more, then
moves to twice the room at the pool's end; a full pool is rebuilt from the events still needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.complex_events.search import BASE, BEGIN, END, LIMIT, SEQ, Int, Ints, T
from engine.index.compiled import kernel

Floats = npt.NDArray[np.float64]
ENTITY, X, Y = range(3)
PLACE = 3
"""Columns of `History.entity_xy`: the event's entity and, as the bits of floats, its position."""
SHIFT = 32
"""A slot's key is class << SHIFT | entity."""
USED_SLOTS, USED_POOL, DIRECT = range(3)
_LEAST_ROOM, _SLACK = 64, 4
_MIX = np.uint64(0x9E3779B97F4A7C15)


class History(NamedTuple):
    """`table` holds slots (-1 free), at most half full; `keys[s]` and `slots[s]` belong to slot s;
    `pool`, `entity_xy` to events.

    `used`: slots, room of the pool, and whether the slots are those of classes 0, 1, ... (events
    are not kept by entity): then the table is not used.
    """

    table: npt.NDArray[np.int32]
    keys: Ints
    slots: Ints
    pool: Ints
    entity_xy: Ints
    used: Ints


class StoredEvents(NamedTuple):
    """Events as columns: each with its slot's key, sorted by (key, t, seq)."""

    key: Ints
    t: Ints
    seq: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats


def no_events() -> StoredEvents:
    whole = np.zeros(0, np.int64)
    return StoredEvents(whole, whole, whole, np.zeros(0, np.int32), np.zeros(0), np.zeros(0))


def build_history(events: StoredEvents, kinds: int, more_slots: int, more_events: int) -> History:
    """A history of `events` with room for at least so many new slots and events; one slot for each
    of `kinds` classes, or (0) slots as needed."""
    if kinds:
        keys, more_slots = np.arange(kinds, dtype=np.int64) << SHIFT, 0
        starts, ends = (np.searchsorted(events.key, keys, side) for side in ("left", "right"))
        lengths = ends - starts
    else:
        keys, starts = np.unique(events.key, return_index=True)
        lengths = np.diff(np.append(starts, len(events.key)))
    capacity = lengths + lengths // 2 + _SLACK
    slots = max(_LEAST_ROOM, len(keys) + len(keys) // 2 + more_slots)
    size = int(capacity.sum()) + max(_LEAST_ROOM, len(events.key) + (2 * _SLACK + 2) * more_events)
    history = History(
        np.full(1 << int(2 * slots - 1).bit_length(), -1, np.int32), np.zeros(slots, np.int64), np.zeros((slots, 4), np.int64),
        np.zeros((size, 2), np.int64), np.zeros((size, PLACE), np.int64),
        np.array([len(keys), int(capacity.sum()), kinds > 0], np.int64),
    )  # fmt: skip
    bases = np.cumsum(capacity) - capacity
    history.keys[: len(keys)] = keys
    history.slots[: len(keys)] = np.column_stack([bases, bases, bases + lengths, bases + capacity])
    at = np.repeat(bases - starts, lengths) + np.arange(len(events.key))
    history.pool[at] = np.column_stack([events.t, events.seq])
    history.entity_xy[at] = np.column_stack([events.entity, events.x.view(np.int64), events.y.view(np.int64)])
    _fill_table(history)
    return history


def stored(history: History, horizon: Ints, now: int) -> StoredEvents:
    """The events that are at most `horizon[class]` older than `now`."""
    n = int(history.used[USED_SLOTS])
    slots = history.slots[:n]
    lengths = slots[:, END] - slots[:, BEGIN]
    at = np.repeat(slots[:, BEGIN] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    key = np.repeat(history.keys[:n], lengths)
    keep = history.pool[at, T] >= now - horizon[key >> SHIFT]
    at, key = at[keep], key[keep]
    order = np.argsort(key, kind="stable")
    at, key = at[order], key[order]
    return StoredEvents(key, history.pool[at, T], history.pool[at, SEQ], *columns_of(history.entity_xy[at]))


@kernel(inline=True)
def bits_of(number: Any) -> Int:
    """A float as a whole number with the same bits."""
    return np.float64(number).view(np.int64)


def columns_of(entity_xy: Ints) -> tuple[npt.NDArray[np.int32], Floats, Floats]:
    """Entities, x and y."""
    x, y = np.ascontiguousarray(entity_xy[:, X]), np.ascontiguousarray(entity_xy[:, Y])
    return entity_xy[:, ENTITY].astype(np.int32), x.view(np.float64), y.view(np.float64)


def merge(parts: list[StoredEvents]) -> StoredEvents:
    """The events of all parts, without duplicates."""
    columns = StoredEvents(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.lexsort((columns.seq, columns.t, columns.key))
    key, seq = columns.key[order], columns.seq[order]
    fresh = np.append(True, (key[1:] != key[:-1]) | (seq[1:] != seq[:-1])) if len(order) else np.zeros(0, np.bool_)
    return StoredEvents(*(column[order[fresh]] for column in columns))


def arrays(events: StoredEvents) -> dict[str, npt.NDArray[Any]]:
    """Events as plain arrays, for snapshots."""
    return {f"event_{name}": column for name, column in events._asdict().items()}


def from_arrays(columns: Mapping[str, npt.NDArray[Any]]) -> StoredEvents:
    return StoredEvents(*(columns[f"event_{name}"] for name in StoredEvents._fields))


def check(history: History) -> None:
    """Asserts the invariants of the search."""
    n = int(history.used[USED_SLOTS])
    assert len(np.unique(history.keys[:n])) == n
    areas = history.slots[:n]
    assert (np.diff(areas, axis=1)[:, [0]] >= 0).all()
    ends = np.sort(areas[:, LIMIT])
    assert (np.sort(areas[:, BASE])[1:] >= ends[:-1]).all() and (n == 0 or ends[-1] <= history.used[USED_POOL])
    for slot in range(n):
        assert find(history, history.keys[slot]) == slot
        own = history.pool[areas[slot, BEGIN] : areas[slot, END]].tolist()
        assert areas[slot, BASE] <= areas[slot, BEGIN] <= areas[slot, END] <= areas[slot, LIMIT]
        assert own == sorted(own)


@kernel()
def _place(table: npt.NDArray[np.int32], key: Int) -> Int:
    return np.int64((np.uint64(key) * _MIX) >> np.uint64(32)) & (len(table) - 1)


@kernel()
def find(history: History, key: Int) -> Int:
    """The slot of `key`, or -1."""
    if history.used[DIRECT]:
        return key >> SHIFT
    at = _place(history.table, key)
    while True:
        slot = np.int64(history.table[at])
        if slot < 0 or history.keys[slot] == key:
            return slot
        at = (at + 1) & (len(history.table) - 1)


@kernel()
def _insert_slot(history: History, slot: Int) -> None:
    at = _place(history.table, history.keys[slot])
    while history.table[at] >= 0:
        at = (at + 1) & (len(history.table) - 1)
    history.table[at] = slot


@kernel()
def _fill_table(history: History) -> None:
    for slot in range(history.used[USED_SLOTS]):
        _insert_slot(history, slot)


@kernel()
def slot_with_room(history: History, key: Int, needed_from: Int) -> Int:
    """The slot of `key`, created if there is none, with room for one more event; -1
    if slots or pool are full.

    Events with t < `needed_from` may be dropped. May be called again for the same event.
    """
    slots, used = history.slots, history.used
    slot = find(history, key)
    if slot < 0:
        slot = used[USED_SLOTS]
        if slot == len(history.keys) or used[USED_POOL] + _SLACK > len(history.pool):
            return -1
        history.keys[slot] = key
        slots[slot, :] = used[USED_POOL]
        slots[slot, LIMIT] += _SLACK
        used[USED_POOL] += _SLACK
        used[USED_SLOTS] += 1
        _insert_slot(history, slot)
    elif slots[slot, END] == slots[slot, LIMIT]:
        begin, end = slots[slot, BEGIN], slots[slot, END]
        while begin < end and history.pool[begin, T] < needed_from:
            begin += 1
        slots[slot, BEGIN] = begin
        base, capacity = slots[slot, BASE], slots[slot, LIMIT] - slots[slot, BASE]
        if 2 * (end - begin) > capacity:
            base, capacity = used[USED_POOL], 2 * capacity
            if base + capacity > len(history.pool):
                return -1
            used[USED_POOL] += capacity
        for at in range(end - begin):
            history.pool[base + at, T], history.pool[base + at, SEQ] = history.pool[begin + at, T], history.pool[begin + at, SEQ]
            for column in range(PLACE):
                history.entity_xy[base + at, column] = history.entity_xy[begin + at, column]
        slots[slot, BASE], slots[slot, BEGIN], slots[slot, END], slots[slot, LIMIT] = base, base, base + end - begin, base + capacity
    return slot


@kernel(inline=True)
def append(history: History, slot: Int, t: Int, seq: Int, entity: Int, x: Any, y: Any) -> None:
    """Appends an event, later than all others, to a slot with room."""
    end = history.slots[slot, END]
    history.pool[end, T], history.pool[end, SEQ] = t, seq
    history.entity_xy[end, ENTITY], history.entity_xy[end, X], history.entity_xy[end, Y] = entity, bits_of(x), bits_of(y)
    history.slots[slot, END] = end + 1
