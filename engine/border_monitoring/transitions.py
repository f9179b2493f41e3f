"""Region transitions: which in and out events pair up in time, and which stay unpaired
until their time is over.

Every in or out event of a (group, entity) waits for its opposite; a **group** is a region
or range with one time bound, shared by all queries that ask for it. What waits is found by
an open-addressing table and, as time passes, by one first-in-first-out ring for each
distinct bound: events arrive in time order, so each ring is ordered by due time and nothing
is ever sorted or searched.

Deletion is lazy: an event that is met or due only loses its mark, and its record goes when it is
the first of its ring. The table is not updated; an entry counts only if the record that it names
has its key and is still marked. Dead entries go when the table is built again.

References: [BMQ] 6.4 (Tran-Seq, Fig. 8). Departures: one table and one ring for both directions;
a stay is decided by the watermark, not by the next event of another stream; "within" includes
its end (specification 5.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.compiled import kernel

Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Records = npt.NDArray[np.void]
Facts = tuple[Int64s, npt.NDArray[np.int8], Ints, Ints]


class Transition(IntEnum):
    """Types of region transition events, in the order of their bits in masks."""

    PASSED = 0
    RETURNED = 1
    STAYED_IN = 2
    STAYED_OUT = 3


NAMES = tuple(kind.name.lower() for kind in Transition)

RECORD = np.dtype([("key", "i8"), ("t", "i8"), ("seq", "i8"), ("x", "f8"), ("y", "f8")])
"""A waiting event: group << 32 | entity, its time and evidence. The two lowest bits of seq are its
mark (1 while it waits, 0 once it is met or due) and its direction (2 in, 0 out)."""
_MARK, _INWARD, _BITS = 1, 2, 2

_LIVE, _FREE, _USED, _ENTRIES = range(4)
"""Indices of `Waiting.meta`: waiting events, first free slot (-1 for none), slots ever used,
used places of the table."""
_TAG = -1 << 32


class BorderEvents(NamedTuple):
    """In and out events in time order, one entry each: group, entity code, 1 in or 0 out, time,
    number in the log, place."""

    group: npt.NDArray[np.generic]
    entity: npt.NDArray[np.generic]
    inward: npt.NDArray[np.generic]
    t: npt.NDArray[np.generic]
    seq: npt.NDArray[np.generic]
    x: npt.NDArray[np.generic]
    y: npt.NDArray[np.generic]


class Groups(NamedTuple):
    """By group its time bound, its ring and the mask of types that some query of it asks
    for; by ring the time bound."""

    within: npt.NDArray[np.generic]
    ring: npt.NDArray[np.generic]
    wanted: npt.NDArray[np.generic]
    ring_within: npt.NDArray[np.generic]


class EventRings(NamedTuple):
    """The arrays of `WaitingEvents`, where they are described."""

    records: Records
    following: Ints
    table: Int64s
    head: Ints
    tail: Ints
    meta: Int64s


@dataclass
class WaitingEvents:
    """Events that wait for their opposite, for all groups.

    A slot has a record in `records`, and in `following` the next slot of its ring, or of the free
    slots. A ring's records, in the order of time, are those from `ring_head` (-1: none) to
    `ring_tail`. `table`: open addressing by linear probing, at most half full; an entry is the
    upper half of its key's hash and 1 + the slot, 0 for none. Invariants: a key has at most one
    marked record, and it is the one that the first entry of its probe path with a record of this
    key names; each ring is ascending in t. `facts` are the columns that `decide` writes: key, type,
    first, second; used again by the next call.
    """

    records: Records
    following: Ints
    table: Int64s
    ring_head: Ints
    ring_tail: Ints
    meta: Int64s
    facts: Facts

    @classmethod
    def empty(cls, rings: int, capacity: int = 16) -> WaitingEvents:
        """No event waits; space for `capacity` of them."""
        return cls(
            records=np.empty(capacity, RECORD),
            following=np.empty(capacity, np.int32),
            table=np.zeros(_bucket_count(capacity), np.int64),
            ring_head=np.full(rings, -1, np.int32),
            ring_tail=np.full(rings, -1, np.int32),
            meta=np.array([0, -1, 0, 0], np.int64),
            facts=_facts(capacity),
        )

    @property
    def rings(self) -> EventRings:
        return EventRings(self.records, self.following, self.table, self.ring_head, self.ring_tail, self.meta)

    @property
    def live(self) -> int:
        return int(self.meta[_LIVE])

    def reserve(self, more: int) -> None:
        """Space for `more` further events."""
        used = int(self.meta[_USED])
        if used + more > len(self.records):
            # Only the used part is copied, and pages that are never touched cost nothing.
            size = max(used + more, 8 * len(self.records))
            for name in ("records", "following"):
                column = getattr(self, name)
                grown = np.empty(size, column.dtype)
                grown[:used] = column[:used]
                setattr(self, name, grown)
        if self.live + more > len(self.facts[0]):
            self.facts = _facts(2 * (self.live + more))
        if 2 * (int(self.meta[_ENTRIES]) + more) > len(self.table):
            buckets = _bucket_count(self.live + more)
            if buckets > len(self.table):
                # Memory that the system gives is zero, and is not written before it is used.
                self.table = np.zeros(buckets, np.int64)
            else:
                self.table.fill(0)
            _fill_table(self.rings)

    def decide(self, events: BorderEvents, watermark: int, groups: Groups) -> Facts:
        """Processes in and out `events`, for which there is space, then everything due before
        `watermark`; returns the decided facts.

        They are (key, type, first, second): `first` is the slot of the event that the fact begins
        with, its record to be read before the next call; `second` the row of the event that ends
        it, -1 for a stay. All are views of `facts`.
        """
        n = _decide(events, watermark, groups, self.rings, self.facts)
        key, kind, first, second = self.facts
        return key[:n], kind[:n], first[:n], second[:n]

    def refill(self, ring_of_group: Ints, columns: tuple[npt.NDArray[Any], ...]) -> None:
        """Waiting events, columns (key, inward, t, seq, x, y) by (t, seq), into rings that are
        empty and have space for them."""
        _refill(columns, ring_of_group, self.rings)

    def pending(self) -> npt.NDArray[np.int64]:
        """Slots of the waiting events, by (t, seq)."""
        used = self.records[: self.meta[_USED]]
        slots = np.flatnonzero(used["seq"] & _MARK)
        return slots[np.lexsort((used["seq"][slots], used["t"][slots]))]

    def events(self, slots: npt.NDArray[np.integer[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Columns of the records of these slots, whether they wait or not:
        key, t, seq, x, y, inward."""
        records = self.records[slots]
        columns = {name: np.ascontiguousarray(records[name]) for name in RECORD.names or ()}
        inward = ((columns["seq"] & _INWARD) != 0).astype(np.int8)
        return columns | {"seq": columns["seq"] >> _BITS, "inward": inward}

    def check(self, ring_of_group: Ints) -> None:
        """Assert the invariants."""
        slots = self.pending()
        keys = self.records["key"][slots]
        assert len(slots) == self.live == len(np.unique(keys))
        in_rings = []
        for ring in range(len(self.ring_head)):
            own = self._slots_of(ring)
            assert (np.diff(self.records["t"][own]) >= 0).all()
            assert (ring_of_group[self.records["key"][own] >> 32] == ring).all()
            in_rings += own
        assert len(set(in_rings)) == len(in_rings)
        assert set(slots.tolist()) <= set(in_rings)
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            assert _find(self.rings, key) == slot
        assert 2 * np.count_nonzero(self.table) == 2 * int(self.meta[_ENTRIES]) <= len(self.table)

    def _slots_of(self, ring: int) -> list[int]:
        """A ring's slots in its order."""
        slots = [int(self.ring_head[ring])]
        while slots[-1] >= 0:
            slots.append(-1 if slots[-1] == self.ring_tail[ring] else int(self.following[slots[-1]]))
        return slots[:-1]


def _facts(capacity: int) -> Facts:
    return np.empty(capacity, np.int64), np.empty(capacity, np.int8), np.empty(capacity, np.int32), np.empty(capacity, np.int32)


def _bucket_count(events: int) -> int:
    """Size of a table that takes at least four times as many events before it is built again."""
    return max(64, 1 << int(8 * events - 1).bit_length())


@njit(cache=True, nogil=True, inline="always")
def _hash(key):  # type: ignore[no-untyped-def]
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h ^ (h >> np.uint64(29)))


@njit(cache=True, nogil=True, inline="always")
def _packed_seq(seq, inward):  # type: ignore[no-untyped-def]
    """The seq and direction of a waiting event as packed in `RECORD`."""
    return (np.int64(seq) << _BITS) | (_INWARD if inward else 0) | _MARK


@kernel(inline=True)
def _bucket(rings: Any, key: Any) -> Any:
    """The place in the table of the entry of `key`, or the free one where it belongs."""
    mask, h = len(rings.table) - 1, _hash(key)
    bucket = h & mask
    entry = rings.table[bucket]
    while entry != 0 and ((entry ^ h) & _TAG != 0 or rings.records[(entry & 0xFFFFFFFF) - 1].key != key):
        bucket = (bucket + 1) & mask
        entry = rings.table[bucket]
    return bucket


@kernel()
def _find(rings: Any, key: Any) -> Any:
    """The slot of the waiting event of `key`, -1 for none."""
    slot = (rings.table[_bucket(rings, key)] & 0xFFFFFFFF) - 1
    return slot if slot >= 0 and rings.records[slot].seq & _MARK else -1


@kernel(inline=True)
def _enter(rings: Any, bucket: Any, slot: Any) -> Any:
    """Writes the entry of a slot's record to its place in the table."""
    rings.meta[_ENTRIES] += rings.table[bucket] == 0
    rings.table[bucket] = (_hash(rings.records[slot].key) & _TAG) | (slot + 1)


@kernel()
def _fill_table(rings: Any) -> Any:
    """Fills an empty table with the marked records."""
    rings.meta[_ENTRIES] = 0
    for slot in range(rings.meta[_USED]):
        if rings.records[slot].seq & _MARK:
            _enter(rings, _bucket(rings, rings.records[slot].key), slot)


@kernel(inline=True)
def _append(rings: Any, ring: Any, key: Any, t: Any, packed_seq: Any, x: Any, y: Any) -> Any:
    """Puts a waiting event behind the others of its ring; its slot."""
    slot = rings.meta[_FREE]
    if slot >= 0:
        rings.meta[_FREE] = rings.following[slot]
    else:
        slot = rings.meta[_USED]
        rings.meta[_USED] += 1
    if rings.head[ring] < 0:
        rings.head[ring] = slot
    else:
        rings.following[rings.tail[ring]] = slot
    rings.tail[ring] = slot
    record = rings.records[slot]
    record.key, record.t, record.seq, record.x, record.y = key, t, packed_seq, x, y
    rings.meta[_LIVE] += 1
    return slot


@kernel(inline=True)
def _write(facts: Any, n: Any, key: Any, kind: Any, first: Any, second: Any) -> Any:
    out_key, out_kind, out_first, out_second = facts
    out_key[n], out_kind[n], out_first[n], out_second[n] = key, kind, first, second


@kernel()
def _decide(events: Any, watermark: Any, groups: Any, rings: Any, facts: Any) -> Any:
    """`Waiting.decide`; the number of facts."""
    n = 0
    for i in range(len(events.group)):
        n = _take(events, i, groups, rings, facts, n)
    for ring in range(len(rings.head)):
        n = _expire(ring, watermark, groups, rings, facts, n)
    return n


@kernel(inline=True)
def _take(events: Any, i: Any, groups: Any, rings: Any, facts: Any, n: Any) -> Any:
    """Event i: the fact that it ends, if its opposite waits, is written as number n; then it waits
    itself, if some query asks. Returns how many facts there are."""
    group, is_in = events.group[i], events.inward[i] != 0
    key = (np.int64(group) << 32) | np.int64(events.entity[i])
    bucket = _bucket(rings, key)
    slot = (rings.table[bucket] & 0xFFFFFFFF) - 1
    if slot >= 0 and rings.records[slot].seq & _MARK:
        was = rings.records[slot]
        kind = (0 if events.t[i] - was.t <= groups.within[group] else 2) + (0 if was.seq & _INWARD else 1)
        if groups.wanted[group] >> kind & 1:
            _write(facts, n, key, kind, slot, i if kind < 2 else -1)
            n += 1
        was.seq ^= _MARK
        rings.meta[_LIVE] -= 1
    if groups.wanted[group] & (5 if is_in else 10):
        packed = _packed_seq(events.seq[i], is_in)
        _enter(rings, bucket, _append(rings, groups.ring[group], key, events.t[i], packed, events.x[i], events.y[i]))
    return n


@kernel(inline=True)
def _expire(ring: Any, watermark: Any, groups: Any, rings: Any, facts: Any, n: Any) -> Any:
    """Takes from the beginning of a ring the events that were met and those due before the
    watermark; the number of facts."""
    slot = np.int64(rings.head[ring])
    while slot >= 0:
        record = rings.records[slot]
        if record.seq & _MARK:
            if record.t + groups.ring_within[ring] >= watermark:
                break
            kind = 2 if record.seq & _INWARD else 3
            if groups.wanted[record.key >> 32] >> kind & 1:
                _write(facts, n, record.key, kind, slot, -1)
                n += 1
            record.seq ^= _MARK
            rings.meta[_LIVE] -= 1
        behind = np.int64(rings.following[slot]) if slot != rings.tail[ring] else np.int64(-1)
        rings.following[slot] = rings.meta[_FREE]
        rings.meta[_FREE] = slot
        slot = behind
    rings.head[ring] = slot
    return n


@kernel()
def _refill(columns: Any, ring_of_group: Any, rings: Any) -> Any:
    """`Waiting.refill`."""
    keys, inwards, ts, seqs, xs, ys = columns
    for i in range(len(keys)):
        _append(rings, ring_of_group[keys[i] >> 32], keys[i], ts[i], _packed_seq(seqs[i], inwards[i]), xs[i], ys[i])
    _fill_table(rings)
