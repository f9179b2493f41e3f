"""The domains of all variables as columns: each variable's events are contiguous, in (t, arrival),
with the fields that the search reads.

Long domains also have cells: each is a linked list from its newest to its oldest event, so expired
events need not be removed from it.

Reference: [CCQ] 4.2, Explicit Maintenance of Variable Domains; a grid instead of the R-tree of 3.3.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from engine.constraint_queries.expiration import NEVER
from engine.constraint_queries.pairs import Floats, Ints
from engine.index.compiled import kernel

LEAST_LONG = 2_048
"""Domains with fewer events are scanned: a thousand squared chords take as long as a search in the
cells around a point (0.3 us)."""
LEAST_CELLS = 64
_FARTHEST = float(2**40)


EVENT, T, UNTIL, BITS = range(4)


class DomainRings(NamedTuple):
    """Variable v (of all queries) has the events `heads[v]` to `tails[v]`, and room from
    `begins[v]` to `ends[v]`.

    `ints[EVENT]`: number of the event; `ints[T]` and `place` (3, n): its time and place;
    `UNTIL`: last time at which it is useful as v; `BITS`: all variables of the query whose
    filters it satisfies. `buckets[corners[v] : corners[v + 1]]`: the newest event of each
    cell, by the cell's hash; `previous`: the one before it in its cell; -1: none. A variable
    without cells has no buckets.
    """

    ints: Ints
    place: Floats
    begins: Ints
    heads: Ints
    tails: Ints
    ends: Ints
    previous: Ints
    buckets: Ints
    corners: Ints


def empty_rings(capacities: Ints, corners: Ints) -> DomainRings:
    """Rings with room for `capacities[v]` events of each variable, and
    buckets between `corners`."""
    total = int(capacities.sum())
    ends = np.cumsum(capacities)
    begins = ends - capacities
    previous, buckets = np.empty(total if corners[-1] else 0, np.int64), np.full(int(corners[-1]), -1, np.int64)
    return DomainRings(np.empty((4, total), np.int64), np.empty((3, total)), begins, begins.copy(), begins.copy(), ends, previous, buckets, corners)


@kernel(inline=True)
def cell(place: float, side: float) -> Any:
    """The cell of a coordinate; monotonic."""
    return min(max(math.floor(place / side), -_FARTHEST), _FARTHEST)


@kernel(inline=True)
def bucket(x: float, y: float, z: float, size: int) -> Any:
    """The bucket of a cell among `size` buckets (a power of two)."""
    mixed = np.int64(x) * 73_856_093 ^ np.int64(y) * 19_349_663 ^ np.int64(z) * 83_492_791
    return (mixed ^ (mixed >> 17)) & (size - 1)


@kernel(inline=True)
def link_cells(place: Floats, previous: Ints, buckets: Ints, first: int, size: int, k: int, side: float) -> None:
    """Adds event k, its variable's newest, to its cell, one of `size` buckets from `first` on."""
    at = first + bucket(cell(place[0, k], side), cell(place[1, k], side), cell(place[2, k], side), size)
    previous[k] = buckets[at]
    buckets[at] = k


@njit(cache=True, nogil=True)
def cells_used(place: Floats, head: int, tail: int, side: float) -> Any:
    """How many of a small number of buckets the events would use: about the number
    of cells if there are few."""
    used = np.zeros(4 * LEAST_CELLS, np.bool_)
    for k in range(head, tail):
        used[bucket(cell(place[0, k], side), cell(place[1, k], side), cell(place[2, k], side), len(used))] = True
    return used.sum()


@njit(cache=True, nogil=True)
def alive(ints: Ints, heads: Ints, tails: Ints, now: int, used: Any) -> Any:
    """The number of events of each variable that are useful at `now` or
    later; marks them in `used`."""
    counts = np.zeros(len(heads), np.int64)
    for v in range(len(counts)):
        for k in range(heads[v], tails[v]):
            if ints[UNTIL, k] >= now:
                counts[v] += 1
                used[ints[EVENT, k]] = True
    return counts


@njit(cache=True, nogil=True)
def move_events(old: DomainRings, now: int, numbers: Ints, new: DomainRings, side: Floats) -> None:
    """Copies the events that are useful at `now` or later to `new`;
    `numbers` are their new numbers."""
    before, ints, old_place, place, corners = old.ints, new.ints, old.place, new.place, new.corners
    for v in range(len(old.heads)):
        to = new.begins[v]
        for k in range(old.heads[v], old.tails[v]):
            if before[UNTIL, k] >= now:
                ints[EVENT, to] = numbers[before[EVENT, k]]
                ints[T, to], ints[UNTIL, to], ints[BITS, to] = before[T, k], before[UNTIL, k], before[BITS, k]
                place[0, to], place[1, to], place[2, to] = old_place[0, k], old_place[1, k], old_place[2, k]
                to += 1
        new.tails[v] = to
        if corners[v] < corners[v + 1]:
            for k in range(new.begins[v], to):
                link_cells(place, new.previous, new.buckets, corners[v], corners[v + 1] - corners[v], k, side[v])


def corners_of(rings: DomainRings, capacities: Ints, counts: Ints, side: Floats) -> Ints:
    """Buckets for the variables whose domains are long and spread over many cells."""
    sizes = np.zeros(len(capacities), np.int64)
    for v in np.flatnonzero((counts >= LEAST_LONG) & (side > 0)).tolist():
        if cells_used(rings.place, rings.heads[v], rings.tails[v], side[v]) >= LEAST_CELLS:
            sizes[v] = 1 << int(capacities[v]).bit_length()
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@njit(cache=True, nogil=True)
def latest_ends(ints: Ints, since: Ints, tails: Ints, single: Any, until: Ints, begun: Ints, ends: Ints) -> Any:
    """The intervals of being stored, for counting: `until[e]` becomes the last time of event e over
    the variables that share it, `begun[e]` the number of intervals that begin with it. Variables
    that keep their own (not `single`) write their ends to `ends`. Returns the number of `ends`."""
    count = 0
    for v in range(len(since)):
        for k in range(since[v], tails[v]):
            e = ints[EVENT, k]
            if single[v]:
                until[e] = max(until[e], ints[UNTIL, k])
            else:
                ends[count] = ints[UNTIL, k]
                begun[e] += 1
                count += 1
    for e in range(len(until)):
        if until[e] != NEVER:
            ends[count] = until[e]
            begun[e] += 1
            count += 1
    return count
