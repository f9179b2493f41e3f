"""Predicates in order ([CMP] 5.4) of a group with planes: an entity that satisfies each of them is
a candidate; only candidates are evaluated exactly.

A **chain** is samples at increasing times, one for each member of the order (`plan`), each a hit
within its member's window. A chain needs a hit in each of these windows, and the planes show which
entities have these: the candidates. A candidate's chain is solved again only if the result may have
changed: a chain that was found holds until its first sample leaves its window, and a missing chain
may appear only when a hit enters a window.

A hit that is later than all hits of the members that must follow it completes no chain. So a
missing chain needs a new hit of a member without followers, or of a member whose window a hit
enters later than it enters the window of a follower: such members **open** a chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.bits import lowest_bit
from engine.motion_patterns.evaluation import NEVER, UNSOLVED, multiple

Words = npt.NDArray[np.uint64]


class Chains(NamedTuple):
    """`known[q, word]`: the candidates of the last evaluation of query q. For these, `until[q, e]`
    is the number of the evaluation up to which (exclusive) the chain holds, or UNSOLVED. This is a
    cache, not state: chains of other entities are solved again."""

    known: Words
    until: npt.NDArray[np.int64]


def no_chains(queries: int, words: int) -> Chains:
    """An empty cache, also used when entities exceed the room. The operating system allocates no
    memory for entities that are never candidates."""
    return Chains(np.zeros((queries, words), np.uint64), np.zeros((queries, words * 64), np.int64))


@njit(cache=True, nogil=True)
def _last_hit(store, planes, slot, p, e, before, reads):  # type: ignore[no-untyped-def]
    """The latest sample of entity e before time `before` that hits sequence p in the bucket of
    `slot`, or -1; and `reads`, increased."""
    mask, bit, first = len(store.t) - 1, np.uint64(1) << np.uint64(p), planes.first[slot]
    number = first + planes.latest[slot, e]
    if number >= planes.stop[slot] or store.entity[number & mask] != e:
        return np.int64(-1), reads
    while number >= first:
        slot = number & mask
        reads += 1
        if store.word[slot] & bit and store.t[slot] < before:
            return number, reads
        back = store.back[slot]
        number = number - back if back > 0 else -1
    return np.int64(-1), reads


@njit(cache=True, nogil=True)
def solve(sweep, store, planes, q, e, pick, bucket):  # type: ignore[no-untyped-def]
    """Writes the latest samples of entity e at increasing times for chain q to `pick` (by member),
    their buckets to `bucket`. Returns (the number of the evaluation at which the first of them
    leaves its window, or UNSOLVED, samples read).

    From the last member backwards, each takes its latest sample before those of its followers. If
    this fails, there is no chain.
    """
    slots, mask, bits, counts, dense = len(planes.bucket), len(store.t) - 1, planes.bits, planes.counts, planes.dense
    until, reads, first = NEVER, 0, sweep.chain_first[q]
    word, shift = e >> 6, np.uint64(e & 63)
    for n in range(sweep.chain_first[q + 1] - 1, first - 1, -1):
        s = sweep.chain[n]
        p, j, before, number = sweep.sequence[s], planes.entered[s] - 1, NEVER, np.int64(-1)
        for side in range(2):
            follower = sweep.chain_after[n, side]
            if follower >= 0:
                j = min(j, bucket[follower - first])
                before = min(before, store.t[pick[follower - first] & mask])
        slot = j % slots
        while j >= planes.left[s]:
            if counts[slot, p] > 0 and (not dense[slot, p] or (bits[p, slot, word] >> shift) & np.uint64(1) != 0):
                number, reads = _last_hit(store, planes, slot, p, e, before, reads)
                if number >= 0:
                    break
            j -= 1
            slot = slot - 1 if slot > 0 else slots - 1
        if number < 0:
            return UNSOLVED, reads
        pick[n - first], bucket[n - first] = number, j
        until = min(until, multiple(store.t[number & mask] + sweep.start[s], sweep.clock[0]))
    return until, reads


@njit(cache=True, nogil=True)
def _may_begin(sweep, store, planes, entered, q, e):  # type: ignore[no-untyped-def]
    """Whether a new hit of e may complete chain q: one of a member that opens it, in the
    buckets from `entered[s]` on."""
    slots, unused = len(planes.bucket), 0
    for n in range(sweep.chain_first[q], sweep.chain_first[q + 1]):
        if not sweep.chain_opens[n]:
            continue
        s = sweep.chain[n]
        p = sweep.sequence[s]
        for j in range(max(entered[s], planes.left[s]), planes.entered[s]):
            slot = j % slots
            if planes.counts[slot, p] == 0:
                continue
            if planes.dense[slot, p]:
                if (planes.bits[p, slot, e >> 6] >> np.uint64(e & 63)) & np.uint64(1) != 0:
                    return True
            elif _last_hit(store, planes, slot, p, e, NEVER, unused)[0] >= 0:
                return True
    return False


@njit(cache=True, nogil=True)
def keep_solved(sweep, store, planes, chains, entered, q, at, words, candidates, pick, bucket):  # type: ignore[no-untyped-def]
    """Removes the candidates of query q from `candidates[:words]` whose chain does not hold at
    `at`. Returns the samples read.

    `entered[s]`: the first bucket that has entered the window since the query's last evaluation.
    """
    k, reads, known, until = at // sweep.clock[0], 0, chains.known[q], chains.until[q]
    for w in range(words):
        remaining, held = candidates[w], known[w]
        known[w] = remaining
        left = remaining
        while left:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            e = w * 64 + np.int64(lowest_bit(bit))
            if held & bit:
                if until[e] > k:
                    continue
                if until[e] == UNSOLVED and not _may_begin(sweep, store, planes, entered, q, e):
                    candidates[w] ^= bit
                    continue
            until[e], n = solve(sweep, store, planes, q, e, pick, bucket)
            reads += n
            if until[e] == UNSOLVED:
                candidates[w] ^= bit
    return reads
