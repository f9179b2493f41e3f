"""Evaluation by planes and columns: at each multiple of `every` at which some window changed, whole planes are combined, and only entities whose
answer changed, or whose score may be among the best, are looked at one by one.

References: [CMP] 5.2 (candidates, positive and negative updates), 5.3 (lower bounds first, actual scores of the best from raw trajectories).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns import bit_planes, sample_store
from engine.motion_patterns.distance_columns import ABSOLUTE_SLACK, FAR, RELATIVE_SLACK, add_distances, slide
from engine.motion_patterns.evaluation import CANDIDATE, END, NEVER, START, WITHDRAWN, best, grown, multiple, no_events
from engine.motion_patterns.theta import LOCAL_AT_LEAST, LOCAL_AT_MOST, RANK_GREATEST, RANK_LAST_K, RANKED

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Sweep(NamedTuple):
    """What a group's queries ask, as arrays; `x_first[i]` to `x_first[i + 1]` are the entries of i.

    `clock`: [every, bucket width]. Series s is `track[s]` seen through the window `start[s]`, `end[s]`; `reach[p]`: the longest start on track p.
    Queries by their number in the group: `needs` and `bars` (series with and without a bit), `sums` (measures), `decides` ... `k` as in Plan, for
    each predicate the `witness`: a series, or if `witness_measured` a measure; `since`: its longest start; `radii`: sum of its measures' radii.
    """

    clock: Ints
    track: Ints
    start: Ints
    end: Ints
    reach: Ints
    needs_first: Ints
    needs: Ints
    bars_first: Ints
    bars: Ints
    sums_first: Ints
    sums: Ints
    decides: Ints
    bound: Floats
    ranks: Ints
    k: Ints
    witness_first: Ints
    witness: Ints
    witness_measured: npt.NDArray[np.bool_]
    since: Ints
    radii: Floats


@njit(cache=True, nogil=True)
def _next(sweep, measures, store, hits, planes, columns):  # type: ignore[no-untyped-def]
    """Number of the next evaluation at which a sample enters or leaves a window."""
    due = NEVER
    every, mask = sweep.clock[0], len(store.t) - 1
    for s in range(len(sweep.track)):
        p = sweep.track[s]
        if planes.entered[s] < hits.tail[p]:
            due = min(due, multiple(bit_planes.time_of(store, hits, p, planes.entered[s]) + sweep.end[s], every))
        if planes.left[s] < planes.entered[s]:
            due = min(due, multiple(bit_planes.time_of(store, hits, p, planes.left[s]) + sweep.start[s], every))
    for m in range(len(measures.start)):
        if columns.entered[m] < store.bounds[1]:
            due = min(due, multiple(store.t[columns.entered[m] & mask] + measures.end[m], every))
        if columns.left[m] < columns.entered[m]:
            due = min(due, multiple(store.t[columns.left[m] & mask] + measures.start[m], every))
    return due


@njit(cache=True, nogil=True)
def move(sweep, measures, store, hits, planes, columns, at, entities, all_of_them, moved, measure_moved, work):  # type: ignore[no-untyped-def]
    """All windows move to `at`; `moved[s]`, `measure_moved[m]`: whether what they hold changed. `work` counts what [entered, left]."""
    width, words = sweep.clock[1], (entities + 63) >> 6
    for p in range(len(sweep.reach)):
        bit_planes.fill(store, hits, planes, p, width, sweep.reach[p], at, words)
    for s in range(len(sweep.track)):
        p = sweep.track[s]
        entered = bit_planes.first_after(store, hits, p, planes.entered[s], hits.planed[p], at - sweep.end[s])
        left = bit_planes.first_after(store, hits, p, planes.left[s], entered, at - sweep.start[s])
        work[0] += entered - planes.entered[s]
        work[1] += left - planes.left[s]
        moved[s] = all_of_them or entered > planes.entered[s] or left > planes.left[s]
        planes.entered[s] = entered
        planes.left[s] = left
        if moved[s]:
            bit_planes.gather(hits, planes, s, p, (at - sweep.start[s]) // width + 1, (at - sweep.end[s]) // width, words)
    for m in range(len(measures.start)):
        before, left = columns.entered[m], columns.left[m]
        entered = sample_store.first_after(store, before, store.bounds[1], at - measures.end[m])
        columns.left[m] = sample_store.first_after(store, left, entered, at - measures.start[m])
        work[0] += entered - before
        work[1] += columns.left[m] - left
        measure_moved[m] = all_of_them or entered > before or columns.left[m] > left
        if measure_moved[m]:
            slide(store, measures, columns, m, width, at, entities)


@njit(cache=True, nogil=True)
def forget(sweep, store, hits, planes, columns):  # type: ignore[no-untyped-def]
    """Frees what no window will see again."""
    needed = store.bounds[1]
    for p in range(len(hits.left)):
        hits.left[p] = hits.tail[p]
    for s in range(len(sweep.track)):
        p = sweep.track[s]
        hits.left[p] = min(hits.left[p], planes.left[s])
    for p in range(len(hits.left)):
        if hits.left[p] < hits.tail[p]:
            needed = min(needed, hits.sample[hits.first[p] + (hits.left[p] & hits.mask[p])])
    for m in range(len(columns.left)):
        needed = min(needed, columns.left[m])
    store.bounds[0] = max(store.bounds[0], needed)


@njit(cache=True, nogil=True)
def _distance(store, measures, m, number):  # type: ignore[no-untyped-def]
    """The exact distance of a sample."""
    i = number & (len(store.t) - 1)
    if measures.column[m] >= 0:
        return store.measured[measures.column[m], i]
    return max(math.hypot(store.x[i] - measures.x[m], store.y[i] - measures.y[m]) - measures.radius[m], 0.0)


@njit(cache=True, nogil=True)
def _score(sweep, measures, store, q, e, at, trail, pick):  # type: ignore[no-untyped-def]
    """The exact score of e (NaN: q has none), the latest samples at the extrema into `pick`: (score, trail, samples read)."""
    if sweep.sums_first[q] == sweep.sums_first[q + 1]:
        return np.nan, trail, 0
    mask = len(store.t) - 1
    trail, n = sample_store.trail_of(store, e, at - sweep.since[q], trail)
    score = 0.0
    first = sweep.witness_first[q]
    for j in range(sweep.witness_first[q + 1] - first):
        if not sweep.witness_measured[first + j]:
            continue
        m = sweep.witness[first + j]
        extremum = np.nan
        pick[j] = -1
        for i in range(n):
            t = store.t[trail[i] & mask]
            if t > at - measures.end[m]:
                continue
            if t <= at - measures.start[m]:
                break
            distance = _distance(store, measures, m, trail[i])
            if pick[j] < 0 or measures.sign[m] * distance < measures.sign[m] * extremum:
                extremum = distance
                pick[j] = trail[i]
        score += extremum
    return score, trail, n


@njit(cache=True, nogil=True)
def _prove(events, i, j, store, sample):  # type: ignore[no-untyped-def]
    """Witness j of event i."""
    place = sample & (len(store.t) - 1)
    events.t[i, j] = store.t[place]
    events.seq[i, j] = store.seq[place]
    events.x[i, j] = store.x[place]
    events.y[i, j] = store.y[place]


@njit(cache=True, nogil=True)
def _witnesses(sweep, measures, store, hits, planes, q, at, events, low, high, trail, pick):  # type: ignore[no-untyped-def]
    """Scores and the latest witness of each predicate of q into those of the events `low` to `high` that begin something: (trail, samples read)."""
    width, first, reads = sweep.clock[1], sweep.witness_first[q], 0
    who = np.where(events.what[low:high] > 0, events.entity[low:high], -1)
    events.score[low:high] = np.nan
    samples = np.empty(high - low, np.int64)
    for j in range(sweep.witness_first[q + 1] - first):
        if sweep.witness_measured[first + j]:
            continue
        s = sweep.witness[first + j]
        bit_planes.latest(hits, planes, sweep.track[s], (at - sweep.start[s]) // width + 1, (at - sweep.end[s]) // width, who, samples)
        for i in range(len(who)):
            if who[i] >= 0:
                _prove(events, low + i, j, store, samples[i])
                reads += 1
    if sweep.sums_first[q] < sweep.sums_first[q + 1]:
        for i in range(len(who)):
            if who[i] < 0:
                continue
            events.score[low + i], trail, n = _score(sweep, measures, store, q, who[i], at, trail, pick)
            reads += n
            for j in range(sweep.witness_first[q + 1] - first):
                if sweep.witness_measured[first + j]:
                    _prove(events, low + i, j, store, pick[j])
    return trail, reads


@njit(cache=True, nogil=True)
def _binary(sweep, words, q, count, found):  # type: ignore[no-untyped-def]
    """All words of the entities that satisfy q's binary predicates, into `found`."""
    found[:count] = _ALL
    for i in range(sweep.needs_first[q], sweep.needs_first[q + 1]):
        need = words[sweep.needs[i]]
        for w in range(count):
            found[w] &= need[w]
    for i in range(sweep.bars_first[q], sweep.bars_first[q + 1]):
        bar = words[sweep.bars[i]]
        for w in range(count):
            found[w] &= ~bar[w]


@njit(cache=True, nogil=True)
def _bit(words, e):  # type: ignore[no-untyped-def]
    return (words[e >> 6] >> np.uint64(e & 63)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def _low(approximate, radii):  # type: ignore[no-untyped-def]
    """A score is not less than this."""
    return min(approximate, FAR) - RELATIVE_SLACK * (min(approximate, FAR) + radii) - ABSOLUTE_SLACK


@njit(cache=True, nogil=True)
def _high(approximate, radii):  # type: ignore[no-untyped-def]
    """A score is not more than this."""
    return np.inf if approximate >= FAR else approximate + RELATIVE_SLACK * (approximate + radii) + ABSOLUTE_SLACK


@njit(cache=True, nogil=True)
def _approximate(sweep, measures, columns, q, binary, entities, total):  # type: ignore[no-untyped-def]
    """What the columns say of q's scores, into `total`; infinite for those that do not satisfy its binary predicates or have no score."""
    total[:entities] = 0.0
    for i in range(sweep.sums_first[q], sweep.sums_first[q + 1]):
        add_distances(measures, columns, sweep.sums[i], entities, total)
    if sweep.needs_first[q] < sweep.needs_first[q + 1]:
        for e in range(entities):
            if not _bit(binary, e):
                total[e] = np.inf


@njit(cache=True, nogil=True)
def _within(sweep, measures, store, q, entities, at, total, found, trail, pick):  # type: ignore[no-untyped-def]
    """Bits of the entities whose score satisfies the comparison, into `found`: (trail, samples read). Only doubtful scores are computed."""
    at_most, bound, radii = sweep.decides[q] == LOCAL_AT_MOST, sweep.bound[q], sweep.radii[q]
    found[:] = 0
    reads = 0
    for e in range(entities):
        if total[e] == np.inf:
            continue
        low, high = _low(total[e], radii), _high(total[e], radii)
        if (at_most and low > bound) or (not at_most and high < bound):
            continue
        if not ((at_most and high <= bound) or (not at_most and low >= bound)):
            score, trail, n = _score(sweep, measures, store, q, e, at, trail, pick)
            reads += n
            if not (score <= bound if at_most else score >= bound):
                continue
        found[e >> 6] |= np.uint64(1) << np.uint64(e & 63)
    return trail, reads


@njit(cache=True, nogil=True)
def _contenders(sweep, measures, store, q, entities, at, total, trail, pick):  # type: ignore[no-untyped-def]
    """The entities that may be among those Θ takes, with their exact scores: (entities, scores, trail, samples read).

    Those with the best k bounds are computed first; only who may be as good as the worst of them can be taken.
    """
    descending = sweep.ranks[q] == RANK_GREATEST or sweep.ranks[q] == RANK_LAST_K
    sign = -1.0 if descending else 1.0
    radii = sweep.radii[q]
    wanted = sweep.k[q] if sweep.k[q] > 0 else 1
    worst = _worst_of_best(total, entities, wanted, sign)
    limit = np.inf
    reads = 0
    if worst < np.inf:
        limit = -np.inf
        left = wanted
        for e in range(entities):
            if left > 0 and total[e] < np.inf and sign * total[e] <= worst:
                score, trail, n = _score(sweep, measures, store, q, e, at, trail, pick)
                reads += n
                left -= 1
                limit = max(limit, sign * score)
    who, scores = np.empty(64, np.int64), np.empty(64)
    count = 0
    for e in range(entities):
        if total[e] == np.inf:
            continue
        least = -_high(total[e], radii) if descending else _low(total[e], radii)
        if least > limit:
            continue
        score, trail, n = _score(sweep, measures, store, q, e, at, trail, pick)
        reads += n
        if count == len(who):
            who, scores = np.append(who, np.empty_like(who)), np.append(scores, np.empty_like(scores))
        who[count] = e
        scores[count] = score
        count += 1
    return who[:count], scores[:count], trail, reads


@njit(cache=True, nogil=True)
def _choose(sweep, q, who, scores, rank, found):  # type: ignore[no-untyped-def]
    """Bits of those of the contenders that Θ takes, into `found`."""
    chosen = np.zeros(len(who), np.bool_)
    best(scores, sweep.ranks[q], sweep.k[q], rank[who] if sweep.k[q] > 0 else who, chosen)
    found[:] = 0
    for i in range(len(who)):
        if chosen[i]:
            found[who[i] >> 6] |= np.uint64(1) << np.uint64(who[i] & 63)


@njit(cache=True, nogil=True)
def _worst_of_best(total, entities, wanted, sign):  # type: ignore[no-untyped-def]
    """The `wanted`-th least of `sign * total` (infinite ones do not count); infinite when there are no more than that."""
    heap = np.empty(min(wanted, entities))
    n = 0
    more = False
    for e in range(entities):
        value = sign * total[e]
        if total[e] == np.inf:
            continue
        if n < len(heap):
            i = n
            n += 1
            while i > 0 and heap[(i - 1) // 2] < value:
                heap[i] = heap[(i - 1) // 2]
                i = (i - 1) // 2
            heap[i] = value
            continue
        more = True
        if value >= heap[0]:
            continue
        i = 0
        while 2 * i + 1 < n:
            child = 2 * i + 1
            if child + 1 < n and heap[child + 1] > heap[child]:
                child += 1
            if heap[child] <= value:
                break
            heap[i] = heap[child]
            i = child
        heap[i] = value
    return heap[0] if more else np.inf


@njit(cache=True, nogil=True)
def _number_of(bit):  # type: ignore[no-untyped-def]
    """Of a word with one bit: which it is."""
    number = 0
    shift = 32
    while shift:
        if bit >> np.uint64(shift):
            bit >>= np.uint64(shift)
            number += shift
        shift >>= 1
    return number


@njit(cache=True, nogil=True)
def _changed(ranked, words, matching, held):  # type: ignore[no-untyped-def]
    """The entities whose bits in `held` and `matching` differ (ranked: are set in either), e when it is in `matching`, else ~e; `held` is brought to
    `matching`."""
    count = 0
    for w in range(words):
        changed = matching[w] | held[w] if ranked else matching[w] ^ held[w]
        while changed:
            changed &= changed - np.uint64(1)
            count += 1
    who = np.empty(count, np.int64)
    n = 0
    for w in range(words):
        changed = matching[w] | held[w] if ranked else matching[w] ^ held[w]
        while changed:
            rest = changed & (changed - np.uint64(1))
            bit = changed ^ rest
            e = w * 64 + _number_of(bit)
            who[n] = e if matching[w] & bit else ~e
            changed = rest
            n += 1
        held[w] = matching[w]
    return who


@njit(cache=True, nogil=True)
def _tell(query, begins, ends, at, who, events, n):  # type: ignore[no-untyped-def]
    """Events from n on for `who`, as `_changed` gives it; there must be room."""
    for i in range(len(who)):
        there = who[i] >= 0
        events.query[n + i] = query
        events.entity[n + i] = who[i] if there else ~who[i]
        events.at[n + i] = at
        events.what[n + i] = begins if there else ends


@njit(cache=True, nogil=True)
def _touched(sweep, q, moved, measure_moved):  # type: ignore[no-untyped-def]
    """Whether a window of q moved."""
    for i in range(sweep.needs_first[q], sweep.needs_first[q + 1]):
        if moved[sweep.needs[i]]:
            return True
    if moved[sweep.bars[sweep.bars_first[q] : sweep.bars_first[q + 1]]].any():
        return True
    return measure_moved[sweep.sums[sweep.sums_first[q] : sweep.sums_first[q + 1]]].any()


@njit(cache=True, nogil=True)
def advance(sweep, measures, store, hits, planes, columns, holds, query_of, last, forced, entities, rank, width):  # type: ignore[no-untyped-def]
    """Evaluate a group at all multiples of `every` up to `last`: (events, how many, [entered, left, evaluations, samples read]).

    `holds[q, word]`: who matches (ranked: is among the best). `query_of[q]`: what a query is called in events. `forced`: a time; at the first
    multiple after it everything is evaluated (NEVER: not). Ranked queries tell all their best at each evaluation. `width`: witnesses of an event.
    """
    every, words = sweep.clock[0], (entities + 63) >> 6
    events, n = no_events(64, width), 0
    work = np.zeros(4, np.int64)
    moved, measure_moved = np.zeros(len(sweep.track), np.bool_), np.zeros(len(measures.start), np.bool_)
    trail, pick = np.empty(64, np.int64), np.empty(width, np.int64)
    binary, found = np.empty(words, np.uint64), np.empty(words, np.uint64)
    total = np.empty(entities)
    forced_k = NEVER if forced == NEVER else forced // every + 1
    while True:
        k = min(forced_k, _next(sweep, measures, store, hits, planes, columns))
        if k == NEVER or k * every > last:
            break
        at = k * every
        everything = k == forced_k
        if everything:
            forced_k = NEVER
        work[2] += 1
        move(sweep, measures, store, hits, planes, columns, at, entities, everything, moved, measure_moved, work)
        for q in range(len(query_of)):
            if not (everything or _touched(sweep, q, moved, measure_moved)):
                continue
            decides = sweep.decides[q]
            _binary(sweep, planes.words, q, words, binary)
            matching = binary
            scored = sweep.sums_first[q] < sweep.sums_first[q + 1]
            if scored:
                _approximate(sweep, measures, columns, q, binary, entities, total)
            if decides in (LOCAL_AT_MOST, LOCAL_AT_LEAST):
                trail, reads = _within(sweep, measures, store, q, entities, at, total, found, trail, pick)
                work[3] += reads
                matching = found
            elif decides == RANKED:
                who, scores, trail, reads = _contenders(sweep, measures, store, q, entities, at, total, trail, pick)
                work[3] += reads
                _choose(sweep, q, who, scores, rank, found)
                matching = found
            ranked = decides == RANKED
            who = _changed(ranked, words, matching, holds[q])
            if len(who):
                if n + len(who) > len(events.query):
                    events = grown(events, n, 2 * (n + len(who)))
                _tell(query_of[q], CANDIDATE if ranked else START, WITHDRAWN if ranked else END, at, who, events, n)
                trail, reads = _witnesses(sweep, measures, store, hits, planes, q, at, events, n, n + len(who), trail, pick)
                work[3] += reads
                n += len(who)
    forget(sweep, store, hits, planes, columns)
    return events, n, work
