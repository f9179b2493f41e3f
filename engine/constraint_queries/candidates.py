"""Finds the events of a domain that are consistent with the new event: by time, by squared chord,
by cell, and by the exact constraints.

References: [CCQ] 3.3, 4.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.constraint_queries.pairs import ConstraintEvents, Floats, Graphs, Ints, PairBounds, is_consistent
from engine.constraint_queries.pool import RING, NewEvent, Pool
from engine.constraint_queries.rings import BITS, EVENT, UNTIL, DomainRings, T, bucket, cell
from engine.index.compiled import kernel

_STEPS, _STRETCH = 8, 256


@kernel(inline=True)
def first_at_or_after(ring: Ints, low: int, high: int, time: int) -> Any:
    """The first index from `low` up to `high` with a time of at least
    `time`; mostly a few steps away."""
    for _ in range(_STEPS):
        if low >= high or ring[T, low] >= time:
            return low
        low += 1
    while low < high:
        middle = (low + high) >> 1
        if ring[T, middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inline=True)
def mask_within_reach(rings: DomainRings, low: int, high: int, bounds: PairBounds, new: NewEvent, skip_expired: bool) -> Any:
    """The events of a short range that are within reach, as bits; and those of them that
    need the exact constraints."""
    mask, sure = np.int64(0), np.int64(0)
    place, first = rings.place, np.uint64(low)
    for k in range(np.uint64(high - low)):
        across, along, up = place[0, first + k] - new.x, place[1, first + k] - new.y, place[2, first + k] - new.z
        chord = across * across + along * along + up * up
        mask |= np.int64(chord <= bounds.reach) << np.int64(k)
        sure |= np.int64((chord <= bounds.near) & (chord > bounds.apart)) << np.int64(k)
    if skip_expired:
        for k in range(high - low):
            mask &= ~(np.int64(rings.ints[UNTIL, low + k] < new.t) << k)
    return mask, mask & ~sure


@kernel(inline=True)
def near_any(rings: DomainRings, low: int, high: int, bounds: PairBounds, new: NewEvent, skip_expired: bool) -> Any:
    """Whether some event of the range is within reach, and whether one is certainly a candidate.

    Both are counted block by block, newest first, without a branch, so that the loop is vectorized.
    """
    ring, place, x, y, z, reach, near, apart = rings.ints, rings.place, new.x, new.y, new.z, bounds.reach, bounds.near, bounds.apart
    some = np.int64(0)
    while high > low:
        begin = max(low, high - _STRETCH)
        sure = np.int64(0)
        if skip_expired:
            for k in range(np.uint64(begin), np.uint64(high)):
                across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
                chord = across * across + along * along + up * up
                there = ring[UNTIL, k] >= new.t
                some += np.int64((chord <= reach) & there)
                sure += np.int64((chord <= near) & (chord > apart) & there)
        else:
            for k in range(np.uint64(begin), np.uint64(high)):
                across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
                chord = across * across + along * along + up * up
                some += np.int64(chord <= reach)
                sure += np.int64((chord <= near) & (chord > apart))
        if sure > 0:
            return True, True
        high = begin
    return some > 0, False


@kernel(inline=True)
def within_reach(place: Floats, low: int, high: int, bounds: PairBounds, new: NewEvent, pooled: Ints, top: int) -> Any:
    """Writes the ring indexes of the events of a range that are within reach to the pool from
    `top` on. Returns the new top."""
    for k in range(low, high):
        across, along, up = place[0, k] - new.x, place[1, k] - new.y, place[2, k] - new.z
        # Each index is written, and kept only if it is within reach: this needs no branch.
        pooled[RING, top] = k
        top += 1 if across * across + along * along + up * up <= bounds.reach else 0
    return top


@kernel()
def from_cells(rings: DomainRings, v: int, low: int, high: int, side: float, bounds: PairBounds, new: NewEvent, pooled: Ints, top: int) -> Any:
    """Like `within_reach`, for variable v, by its cells; in order of the ring."""
    place, first, last = rings.place, rings.corners[v], rings.corners[v + 1]
    x, y, z, reach = new.x, new.y, new.z, bounds.reach
    radius = math.sqrt(reach) * (1.0 + 1e-9)
    begin = top
    cx = cell(x - radius, side)
    while cx <= cell(x + radius, side):
        cy = cell(y - radius, side)
        while cy <= cell(y + radius, side):
            cz = cell(z - radius, side)
            while cz <= cell(z + radius, side):
                k = rings.buckets[first + bucket(cx, cy, cz, last - first)]
                while k >= low:
                    across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
                    reached = k < high and across * across + along * along + up * up <= reach
                    # Other cells may share the bucket.
                    if reached and cell(place[0, k], side) == cx and cell(place[1, k], side) == cy and cell(place[2, k], side) == cz:
                        pooled[RING, top] = k
                        top += 1
                    k = rings.previous[k]
                cz += 1.0
            cy += 1.0
        cx += 1.0
    _sort(pooled, begin, top)
    return top


@kernel()
def _sort(pooled: Ints, begin: int, end: int) -> None:
    """Sorts ring indexes (Shell sort: in place, without recursion)."""
    gap = (end - begin) // 2
    while gap > 0:
        for n in range(begin + gap, end):
            k, to = pooled[RING, n], n
            while to >= begin + gap and pooled[RING, to - gap] > k:
                pooled[RING, to] = pooled[RING, to - gap]
                to -= gap
            pooled[RING, to] = k
        gap = gap * 5 // 11 if gap != 2 else 1


@kernel(inline=True)
def consistent_events(
    graphs: Graphs,
    events: ConstraintEvents,
    rings: DomainRings,
    pool: Pool,
    bounds: PairBounds,
    new: NewEvent,
    begin: int,
    end: int,
    skip_expired: bool,
) -> Any:
    """Keeps, of the ring indexes in the pool from `begin` to `end`, the events consistent with the
    new one; adds their columns. Returns the new end."""
    ring, place, pooled = rings.ints, rings.place, pool.ints
    to = begin
    for n in range(begin, end):
        k = pooled[RING, n]
        if skip_expired and ring[UNTIL, k] < new.t:
            continue
        across, along, up = place[0, k] - new.x, place[1, k] - new.y, place[2, k] - new.z
        chord = across * across + along * along + up * up
        sure = chord <= bounds.near and chord > bounds.apart
        if not sure and not is_consistent(graphs, events, bounds.pair, bounds.named_first, new.event, ring[EVENT, k]):
            continue
        pooled[RING, to], pooled[EVENT, to], pooled[T, to], pooled[BITS, to] = k, ring[EVENT, k], ring[T, k], ring[BITS, k]
        pool.place[0, to], pool.place[1, to], pool.place[2, to] = place[0, k], place[1, k], place[2, k]
        to += 1
    return to
