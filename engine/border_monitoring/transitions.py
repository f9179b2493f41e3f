"""Region transitions: which in and out events pair up in time, and which stay alone until their time is over.

Every in or out event of a (group, entity) waits for its opposite; a **group** is a region or range with one time bound, shared by all
queries that ask for it. What waits is found by an open-addressing table and, as time passes, by one first-in-first-out ring for each
distinct bound: events arrive in time order, so each ring is ordered by due time and nothing is ever sorted or searched. A met event only
loses its mark; its place in the ring is freed when its time comes.

References: [BMQ] 6.4 (Tran-Seq, Fig. 8). Departures: one table and one ring for both directions; a stay is decided by the watermark, not
by the next event of another stream; "within" includes its end (CONTRACT 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from numba import njit

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Transition(IntEnum):
    """Types of region transition events, in the order of their bits in masks."""

    PASSED = 0
    RETURNED = 1
    STAYED_IN = 2
    STAYED_OUT = 3


NAMES = tuple(kind.name.lower() for kind in Transition)

_FREE, _LIVE, _USED = 0, 1, 2  # entries of `Waiting.meta`: head of the free list, waiting events, slots ever used
_SHIFT = 32


@dataclass
class Waiting:
    """Events that wait for their opposite, for all groups.

    Slot s holds `key[s]` (group << 32 | entity), `inward[s]` (1 in, 0 out, -1 met already), time and evidence, and `next[s]`, the slot behind
    it in its ring or in the free list. `table_key`, `table_slot`: open addressing by linear probing, -1 empty, at most half full.
    Invariants: a key has at most one unmet slot and the table names it; each ring is ascending in t.
    """

    key: Int64s
    inward: npt.NDArray[np.int8]
    t: Int64s
    seq: Int64s
    x: Floats
    y: Floats
    next: npt.NDArray[np.int32]
    table_key: Int64s
    table_slot: npt.NDArray[np.int32]
    ring_head: npt.NDArray[np.int32]
    ring_tail: npt.NDArray[np.int32]
    meta: Int64s

    @classmethod
    def empty(cls, rings: int, room: int = 16) -> Waiting:
        """No event waits; space for `room` of them."""
        slots = max(16, room)
        places = 1 << int(2 * slots - 1).bit_length()
        return cls(
            key=np.zeros(slots, np.int64),
            inward=np.full(slots, -1, np.int8),
            t=np.zeros(slots, np.int64),
            seq=np.zeros(slots, np.int64),
            x=np.zeros(slots),
            y=np.zeros(slots),
            next=np.full(slots, -1, np.int32),
            table_key=np.full(places, -1, np.int64),
            table_slot=np.full(places, -1, np.int32),
            ring_head=np.full(rings, -1, np.int32),
            ring_tail=np.full(rings, -1, np.int32),
            meta=np.array([-1, 0, 0], np.int64),
        )

    @property
    def live(self) -> int:
        return int(self.meta[_LIVE])

    def reserve(self, more: int) -> None:
        """Space for `more` further events."""
        short = int(self.meta[_USED]) + more - len(self.key)
        if short > 0:
            extra = max(short, len(self.key))
            for name in ("key", "t", "seq", "x", "y", "inward", "next"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.full(extra, -1, array.dtype)]))
        if 2 * (self.live + more) > len(self.table_key):
            self._rehash(1 << int(4 * (self.live + more) - 1).bit_length())

    def _rehash(self, places: int) -> None:
        keys, slots = self.table_key[self.table_key >= 0], self.table_slot[self.table_key >= 0]
        self.table_key = np.full(places, -1, np.int64)
        self.table_slot = np.full(places, -1, np.int32)
        _store(self.table_key, self.table_slot, keys, slots)

    def unmet(self) -> npt.NDArray[np.int32]:
        """Slots of the waiting events, by (t, seq)."""
        slots = self.table_slot[self.table_key >= 0]
        return slots[np.lexsort((self.seq[slots], self.t[slots]))]

    def check(self, ring_of_group: npt.NDArray[np.int32]) -> None:
        """Assert the invariants."""
        slots = self.unmet()
        assert len(slots) == self.live == len(np.unique(self.key[slots]))
        assert (self.inward[slots] >= 0).all()
        reached = 0
        for ring in range(len(self.ring_head)):
            slot, before = int(self.ring_head[ring]), None
            while slot >= 0:
                assert before is None or before <= self.t[slot]
                before = self.t[slot]
                if self.inward[slot] >= 0:
                    reached += 1
                    assert ring_of_group[self.key[slot] >> _SHIFT] == ring
                slot = int(self.next[slot])
        assert reached == self.live


@njit(cache=True, nogil=True, inline="always")
def _place(table_key, key):  # type: ignore[no-untyped-def]
    """Where `key` is in the table, or the free place where it belongs."""
    mask = len(table_key) - 1
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    p = np.int64(h >> np.uint64(20)) & mask
    while table_key[p] != -1 and table_key[p] != key:
        p = (p + 1) & mask
    return p


@njit(cache=True, nogil=True)
def _store(table_key, table_slot, keys, slots):  # type: ignore[no-untyped-def]
    for i in range(len(keys)):
        p = _place(table_key, keys[i])
        table_key[p] = keys[i]
        table_slot[p] = slots[i]


@njit(cache=True, nogil=True)
def _remove(table_key, table_slot, p):  # type: ignore[no-untyped-def]
    """Empty place p and close the gap, so that no probe stops early."""
    mask = len(table_key) - 1
    gap = p
    q = (p + 1) & mask
    while table_key[q] != -1:
        home = np.int64((np.uint64(table_key[q]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
        if ((q - home) & mask) >= ((q - gap) & mask):
            table_key[gap] = table_key[q]
            table_slot[gap] = table_slot[q]
            gap = q
        q = (q + 1) & mask
    table_key[gap] = -1


@njit(cache=True, nogil=True)
def _append(slot, ring, next_slot, ring_head, ring_tail):  # type: ignore[no-untyped-def]
    next_slot[slot] = -1
    if ring_head[ring] < 0:
        ring_head[ring] = slot
    else:
        next_slot[ring_tail[ring]] = slot
    ring_tail[ring] = slot


@njit(cache=True, nogil=True)
def decide(  # type: ignore[no-untyped-def]
    event_group, event_entity, event_inward, event_t, event_seq, event_x, event_y,
    watermark, within, ring_of_group, ring_within, wanted,
    key, inward, t, seq, x, y, next_slot, table_key, table_slot, ring_head, ring_tail, meta,
):  # fmt: skip
    """Take in and out events in time order, then everything due before `watermark`; the facts decided.

    Returns (group, type, entity, start, end, evidence): `evidence` (n, 2, 4) holds t, seq as integers' bits and x, y of the first and the
    second event as float64 views; a second seq of -1 means none. `wanted[g]` is the mask of types some query of the group asks for.
    """
    room = len(event_group) + meta[1]
    out_group = np.empty(room, np.int32)
    out_type = np.empty(room, np.int8)
    out_entity = np.empty(room, np.int32)
    out_times = np.empty((room, 4), np.int64)
    out_seqs = np.empty((room, 2), np.int64)
    out_places = np.empty((room, 4), np.float64)
    n = 0
    for i in range(len(event_group)):
        group = event_group[i]
        entity = event_entity[i]
        now_in = event_inward[i]
        k = (np.int64(group) << 32) | np.int64(entity)
        p = _place(table_key, k)
        if table_key[p] != -1:
            s = table_slot[p]
            was_in = inward[s]
            kind = (0 if was_in else 1) if event_t[i] - t[s] <= within[group] else (2 if was_in else 3)
            if wanted[group] >> kind & 1:
                out_group[n] = group
                out_type[n] = kind
                out_entity[n] = entity
                out_times[n, 0] = t[s]
                out_times[n, 1] = event_t[i] if kind < 2 else t[s] + within[group]
                out_times[n, 2] = t[s]
                out_times[n, 3] = event_t[i]
                out_seqs[n, 0] = seq[s]
                out_seqs[n, 1] = event_seq[i] if kind < 2 else -1
                out_places[n, 0] = x[s]
                out_places[n, 1] = y[s]
                out_places[n, 2] = event_x[i]
                out_places[n, 3] = event_y[i]
                n += 1
            inward[s] = -1
            meta[1] -= 1
        waits = wanted[group] & (5 if now_in else 10)
        if not waits:
            if table_key[p] != -1:
                _remove(table_key, table_slot, p)
            continue
        if meta[0] >= 0:
            s = np.int32(meta[0])
            meta[0] = next_slot[s]
        else:
            s = np.int32(meta[2])
            meta[2] += 1
        key[s] = k
        inward[s] = now_in
        t[s] = event_t[i]
        seq[s] = event_seq[i]
        x[s] = event_x[i]
        y[s] = event_y[i]
        _append(s, ring_of_group[group], next_slot, ring_head, ring_tail)
        table_key[p] = k
        table_slot[p] = s
        meta[1] += 1
    for ring in range(len(ring_head)):
        s = ring_head[ring]
        while s >= 0 and (inward[s] < 0 or t[s] + ring_within[ring] < watermark):
            behind = next_slot[s]
            if inward[s] >= 0:
                group = np.int32(key[s] >> 32)
                kind = 2 if inward[s] else 3
                if wanted[group] >> kind & 1:
                    out_group[n] = group
                    out_type[n] = kind
                    out_entity[n] = np.int32(key[s] & 0xFFFFFFFF)
                    out_times[n, 0] = t[s]
                    out_times[n, 1] = t[s] + ring_within[ring]
                    out_times[n, 2] = t[s]
                    out_times[n, 3] = t[s]
                    out_seqs[n, 0] = seq[s]
                    out_seqs[n, 1] = -1
                    out_places[n, 0] = x[s]
                    out_places[n, 1] = y[s]
                    out_places[n, 2] = np.nan
                    out_places[n, 3] = np.nan
                    n += 1
                _remove(table_key, table_slot, _place(table_key, key[s]))
                inward[s] = -1
                meta[1] -= 1
            next_slot[s] = np.int32(meta[0])
            meta[0] = s
            s = behind
        ring_head[ring] = s
        if s < 0:
            ring_tail[ring] = -1
    return out_group[:n], out_type[:n], out_entity[:n], out_times[:n], out_seqs[:n], out_places[:n]


@njit(cache=True, nogil=True)
def refill(  # type: ignore[no-untyped-def]
    keys, inwards, ts, seqs, xs, ys, ring_of_group, key, inward, t, seq, x, y, next_slot, table_key, table_slot, ring_head, ring_tail, meta
):
    """Put waiting events, given by (t, seq), into an empty `Waiting` that has room for them."""
    for i in range(len(keys)):
        key[i] = keys[i]
        inward[i] = inwards[i]
        t[i] = ts[i]
        seq[i] = seqs[i]
        x[i] = xs[i]
        y[i] = ys[i]
        _append(np.int32(i), ring_of_group[keys[i] >> 32], next_slot, ring_head, ring_tail)
        p = _place(table_key, keys[i])
        table_key[p] = keys[i]
        table_slot[p] = np.int32(i)
    meta[0] = -1
    meta[1] = len(keys)
    meta[2] = len(keys)
