"""Region transitions: which in and out events pair up in time, and which stay unpaired until their time is over.

Every in or out event of a (group, entity) waits for its opposite; a **group** is a region or range with one time bound, shared by all
queries that ask for it. What waits is found by an open-addressing table and, as time passes, by one first-in-first-out ring for each
distinct bound: events arrive in time order, so each ring is ordered by due time and nothing is ever sorted or searched.

Memory decides the cost, so a waiting event is one packed record, the records of a ring lie one behind the other in chunks, and deletion is
lazy: an event that is met or due only loses its mark. The table is not updated; an entry counts only if the record that it names has its key and
is still marked. Dead entries go when the table is built again, from the rings.

References: [BMQ] 6.4 (Tran-Seq, Fig. 8). Departures: one table and one ring for both directions; a stay is decided by the watermark, not
by the next event of another stream; "within" includes its end (specification 5.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.prefetch import prefetch

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
"""A waiting event: group << 32 | entity, its time and evidence. The two lowest bits of seq are its mark (1 while it waits, 0 once it is met or
due) and its direction (2 in, 0 out)."""
_MARK, _INWARD, _BITS = 1, 2, 2

_LIVE, _FREE, _USED, _ENTRIES = range(4)
"""Indices of `Waiting.meta`: waiting events, first free chunk (-1 for none), chunks ever used, used slots of the table."""
_SHIFT = 5
_CHUNK = 1 << _SHIFT
"""Records a chunk: 20 cache lines that are read in order."""
_AHEAD = 32
"""Events whose place in the table is fetched before it is needed."""
_FAR = 8
"""Records that are fetched before they are read, and those whose place in the table is when it is filled."""
_TAG = -1 << 32


class Events(NamedTuple):
    """In and out events in time order, one entry each: group, entity code, 1 in or 0 out, time, number in the log, place."""

    group: npt.NDArray[np.generic]
    entity: npt.NDArray[np.generic]
    inward: npt.NDArray[np.generic]
    t: npt.NDArray[np.generic]
    seq: npt.NDArray[np.generic]
    x: npt.NDArray[np.generic]
    y: npt.NDArray[np.generic]


class Groups(NamedTuple):
    """By group its time bound, its ring and the mask of types that some query of it asks for; by ring the time bound."""

    within: npt.NDArray[np.generic]
    ring: npt.NDArray[np.generic]
    wanted: npt.NDArray[np.generic]
    ring_within: npt.NDArray[np.generic]


class Rings(NamedTuple):
    """The arrays of `Waiting`, where they are described."""

    records: Records
    chunk_next: Ints
    table: Int64s
    head: Ints
    tail: Ints
    meta: Int64s


@dataclass
class Waiting:
    """Events that wait for their opposite, for all groups.

    `records` are chunks of `_CHUNK`; a ring's records lie in its chunks in the order of time, from `ring_head` up to `ring_tail` (slots; the tail
    is the next one to be written, -1 for a ring without a chunk). `chunk_next[c]`: the chunk behind c in its ring or in the free list.
    `table`: open addressing by linear probing, at most half full; an entry is the upper half of its key's hash and 1 + the slot, 0 for none.
    Invariants: a key has at most one marked record, and it is the one that the first entry of its probe path with a record of this key names;
    each ring is ascending in t. `facts` are the columns that `decide` writes: key, type, first, second; used again by the next call.
    """

    records: Records
    chunk_next: Ints
    table: Int64s
    ring_head: Ints
    ring_tail: Ints
    meta: Int64s
    facts: Facts

    @classmethod
    def empty(cls, rings: int, capacity: int = 16) -> Waiting:
        """No event waits; space for `capacity` of them."""
        chunks = 1 + (capacity >> _SHIFT)
        return cls(
            records=np.empty(chunks * _CHUNK, RECORD),
            chunk_next=np.full(chunks, -1, np.int32),
            table=np.zeros(_places(capacity), np.int64),
            ring_head=np.full(rings, -1, np.int32),
            ring_tail=np.full(rings, -1, np.int32),
            meta=np.array([0, -1, 0, 0], np.int64),
            facts=_facts(capacity),
        )

    @property
    def rings(self) -> Rings:
        return Rings(self.records, self.chunk_next, self.table, self.ring_head, self.ring_tail, self.meta)

    @property
    def live(self) -> int:
        return int(self.meta[_LIVE])

    def reserve(self, more: int) -> None:
        """Space for `more` further events."""
        # Each ring may need one chunk that is hardly filled.
        short = int(self.meta[_USED]) + (more >> _SHIFT) + len(self.ring_head) + 1 - len(self.chunk_next)
        if short > 0:
            # Only the used part is copied, and pages that are never touched cost nothing.
            extra = max(short, 7 * len(self.chunk_next))
            used = int(self.meta[_USED]) * _CHUNK
            records = np.empty(len(self.records) + extra * _CHUNK, RECORD)
            records[:used] = self.records[:used]
            self.records = records
            self.chunk_next = np.concatenate([self.chunk_next, np.full(extra, -1, np.int32)])
        if self.live + more > len(self.facts[0]):
            self.facts = _facts(2 * (self.live + more))
        if 2 * (int(self.meta[_ENTRIES]) + more) > len(self.table):
            places = _places(self.live + more)
            if places > len(self.table):
                # Memory that the system gives is zero, and is not written before it is used.
                self.table = np.zeros(places, np.int64)
            else:
                self.table.fill(0)
            self.meta[_ENTRIES] = _fill_table(self.records, self.chunk_next, self.ring_head, self.ring_tail, self.table)

    def pending(self) -> npt.NDArray[np.int64]:
        """Slots of the waiting events, by (t, seq)."""
        slots = np.concatenate([np.empty(0, np.int64), *(self._marked(ring) for ring in range(len(self.ring_head)))])
        return slots[np.lexsort((self.records["seq"][slots], self.records["t"][slots]))]

    def events(self, slots: npt.NDArray[np.integer[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Columns of the records of these slots, whether they wait or not: key, t, seq, x, y, inward."""
        records = self.records[slots]
        columns = {name: np.ascontiguousarray(records[name]) for name in RECORD.names or ()}
        inward = ((columns["seq"] & _INWARD) != 0).astype(np.int8)
        return columns | {"seq": columns["seq"] >> _BITS, "inward": inward}

    def _marked(self, ring: int) -> npt.NDArray[np.int64]:
        """Slots of a ring's waiting events, in its order."""
        slots: npt.NDArray[np.int64] = _slots_of(self.chunk_next, int(self.ring_head[ring]), int(self.ring_tail[ring]))
        waits: npt.NDArray[np.int64] = slots[(self.records["seq"][slots] & _MARK) != 0]
        return waits

    def check(self, ring_of_group: Ints) -> None:
        """Assert the invariants."""
        slots = self.pending()
        keys = self.records["key"][slots]
        assert len(slots) == self.live == len(np.unique(keys))
        for ring in range(len(self.ring_head)):
            own = self._marked(ring)
            assert (np.diff(self.records["t"][own]) >= 0).all()
            assert (ring_of_group[self.records["key"][own] >> 32] == ring).all()
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            assert _find(self.table, self.records, key) == slot
        assert 2 * np.count_nonzero(self.table) == 2 * int(self.meta[_ENTRIES]) <= len(self.table)


def _facts(capacity: int) -> Facts:
    return np.empty(capacity, np.int64), np.empty(capacity, np.int8), np.empty(capacity, np.int32), np.empty(capacity, np.int32)


def _places(events: int) -> int:
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


@njit(cache=True, nogil=True)
def _find(table, records, key):  # type: ignore[no-untyped-def]
    """The slot of the waiting event of `key`, -1 for none, by the same look-up as in `decide`."""
    mask = len(table) - 1
    h = _hash(key)
    p = h & mask
    while table[p] != 0:
        slot = (table[p] & 0xFFFFFFFF) - 1
        if (table[p] ^ h) & _TAG == 0 and records[slot].key == key:
            return slot if records[slot].seq & _MARK else -1
        p = (p + 1) & mask
    return -1


@njit(cache=True, nogil=True)
def _fill_table(records, chunk_next, ring_head, ring_tail, table):  # type: ignore[no-untyped-def]
    """Fill an empty table with the marked records of all rings; their number."""
    mask = len(table) - 1
    n = 0
    for ring in range(len(ring_head)):
        s = np.int64(ring_head[ring])
        while s != ring_tail[ring]:
            ahead = s + _FAR
            if ahead >> _SHIFT == s >> _SHIFT:
                prefetch(table, _hash(records[ahead].key) & mask)
            elif ahead & (_CHUNK - 1) == 0 and chunk_next[s >> _SHIFT] >= 0:
                prefetch(records, np.int64(chunk_next[s >> _SHIFT]) << _SHIFT)
            if records[s].seq & _MARK:
                h = _hash(records[s].key)
                p = h & mask
                while table[p] != 0:
                    p = (p + 1) & mask
                table[p] = (h & _TAG) | (s + 1)
                n += 1
            s += 1
            if s & (_CHUNK - 1) == 0:
                s = np.int64(chunk_next[(s - 1) >> _SHIFT]) << _SHIFT
    return n


@njit(cache=True, nogil=True)
def _slots_of(chunk_next, head, tail):  # type: ignore[no-untyped-def]
    """Slots of a ring, in its order."""
    slots = np.empty(_CHUNK, np.int64)
    n = 0
    while head != tail:
        if n == len(slots):
            slots = np.concatenate((slots, np.empty_like(slots)))
        slots[n] = head
        n += 1
        head += 1
        if head & (_CHUNK - 1) == 0:
            head = np.int64(chunk_next[(head - 1) >> _SHIFT]) << _SHIFT
    return slots[:n]


@njit(cache=True, nogil=True)
def _chunk(chunk_next, meta):  # type: ignore[no-untyped-def]
    """A free chunk, taken."""
    chunk = meta[_FREE]
    if chunk >= 0:
        meta[_FREE] = chunk_next[chunk]
    else:
        chunk = meta[_USED]
        meta[_USED] += 1
    return chunk


@njit(cache=True, nogil=True)
def decide(events, watermark, groups, rings, facts):  # type: ignore[no-untyped-def]
    """Processes in and out `events`, then everything due before `watermark`; returns the decided facts.

    Returns (key, type, first, second): `first` is the slot of the event that the fact begins with, its record to be read before the next call;
    `second` the row of the event that ends it, -1 for a stay. All are views of `facts`.
    """
    event_group, event_entity, event_inward, event_t, event_seq, event_x, event_y = events
    within, ring_of_group, wanted, ring_within = groups
    records, chunk_next, table, ring_head, ring_tail, meta = rings
    # All in one body: to call a function that takes arrays costs 45 ns in counted references (measured), more than all that is done here.
    m = len(event_group)
    out_key, out_type, out_first, out_second = facts
    n = 0
    live = meta[_LIVE]
    entries = meta[_ENTRIES]
    mask = len(table) - 1
    for i in range(m):
        if i + _AHEAD < m:
            prefetch(table, _hash((np.int64(event_group[i + _AHEAD]) << 32) | np.int64(event_entity[i + _AHEAD])) & mask)
        group = event_group[i]
        now_in = event_inward[i]
        key = (np.int64(group) << 32) | np.int64(event_entity[i])
        h = _hash(key)
        place = h & mask
        entry = table[place]
        while entry != 0:
            if (entry ^ h) & _TAG == 0 and records[(entry & 0xFFFFFFFF) - 1].key == key:
                break
            place = (place + 1) & mask
            entry = table[place]
        s = (entry & 0xFFFFFFFF) - 1
        if entry != 0 and records[s].seq & _MARK:
            kind = (0 if event_t[i] - records[s].t <= within[group] else 2) + (0 if records[s].seq & _INWARD else 1)
            if wanted[group] >> kind & 1:
                out_key[n] = key
                out_type[n] = kind
                out_first[n] = s
                out_second[n] = i if kind < 2 else -1
                n += 1
            records[s].seq ^= _MARK
            live -= 1
        if not wanted[group] & (5 if now_in else 10):
            continue
        ring = ring_of_group[group]
        s = np.int64(ring_tail[ring])
        if s < 0:
            s = np.int64(_chunk(chunk_next, meta)) << _SHIFT
            ring_head[ring] = s
        behind = s + 1
        if behind & (_CHUNK - 1) == 0:
            chunk = np.int64(_chunk(chunk_next, meta))
            chunk_next[s >> _SHIFT] = chunk
            behind = chunk << _SHIFT
            prefetch(records, behind)
        prefetch(records, behind + 1)
        ring_tail[ring] = behind
        records[s].key = key
        records[s].t = event_t[i]
        records[s].seq = _packed_seq(event_seq[i], now_in)
        records[s].x = event_x[i]
        records[s].y = event_y[i]
        entries += entry == 0
        table[place] = (h & _TAG) | (s + 1)
        live += 1
    for ring in range(len(ring_head)):
        s = np.int64(ring_head[ring])
        last = np.int64(ring_tail[ring])
        while s != last:
            ahead = s + _FAR
            if ahead >> _SHIFT != s >> _SHIFT:
                ahead = (np.int64(chunk_next[s >> _SHIFT]) << _SHIFT) | (ahead & (_CHUNK - 1))
            prefetch(records, ahead)
            seq = records[s].seq
            if seq & _MARK:
                if records[s].t + ring_within[ring] >= watermark:
                    break
                key = records[s].key
                kind = 2 if seq & _INWARD else 3
                out_key[n] = key
                out_type[n] = kind
                out_first[n] = s
                out_second[n] = -1
                n += wanted[key >> 32] >> kind & 1
                records[s].seq = seq ^ _MARK
                live -= 1
            s += 1
            if s & (_CHUNK - 1) == 0:
                chunk = (s - 1) >> _SHIFT
                s = np.int64(chunk_next[chunk]) << _SHIFT
                chunk_next[chunk] = meta[_FREE]
                meta[_FREE] = chunk
        ring_head[ring] = s
    meta[_LIVE] = live
    meta[_ENTRIES] = entries
    return out_key[:n], out_type[:n], out_first[:n], out_second[:n]


@njit(cache=True, nogil=True)
def refill(events, ring_of_group, rings):  # type: ignore[no-untyped-def]
    """Put waiting events, columns (key, inward, t, seq, x, y) by (t, seq), into the rings of an empty `Waiting` that has room for them."""
    keys, inwards, ts, seqs, xs, ys = events
    records, chunk_next, table, ring_head, ring_tail, meta = rings
    for i in range(len(keys)):
        ring = ring_of_group[keys[i] >> 32]
        s = np.int64(ring_tail[ring])
        if s < 0:
            s = np.int64(_chunk(chunk_next, meta)) << _SHIFT
            ring_head[ring] = s
        ring_tail[ring] = s + 1
        if (s + 1) & (_CHUNK - 1) == 0:
            chunk_next[s >> _SHIFT] = _chunk(chunk_next, meta)
            ring_tail[ring] = chunk_next[s >> _SHIFT] << _SHIFT
        records[s].key = keys[i]
        records[s].t = ts[i]
        records[s].seq = _packed_seq(seqs[i], inwards[i])
        records[s].x = xs[i]
        records[s].y = ys[i]
    meta[_LIVE] = len(keys)
    meta[_ENTRIES] = _fill_table(records, chunk_next, ring_head, ring_tail, table)
