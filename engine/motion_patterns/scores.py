"""Scores of a group's numerical queries: first bounds for all entities from the columns,
then exact scores from stored samples for those entities that the bounds do not decide
([CMP] 5.3: LBT and AST)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine.motion_patterns import sample_store
from engine.motion_patterns.distance_columns import ABSOLUTE_SLACK, FAR, RELATIVE_SLACK, add_distances
from engine.motion_patterns.evaluation import best
from engine.motion_patterns.theta import LOCAL_AT_MOST, RANK_GREATEST, RANK_LAST_K


@njit(cache=True, nogil=True)
def _distance(store, measures, m, number):  # type: ignore[no-untyped-def]
    """The exact distance of a sample."""
    i = number & (len(store.t) - 1)
    if measures.column[m] >= 0:
        return store.measured[measures.column[m], i]
    return max(math.hypot(store.x[i] - measures.x[m], store.y[i] - measures.y[m]) - measures.radius[m], 0.0)


@njit(cache=True, nogil=True)
def exact_score(sweep, measures, store, q, e, at, trail, pick):  # type: ignore[no-untyped-def]
    """Computes the exact score of e, and writes the latest samples at the extrema to `pick`.
    Returns (score (NaN: q has none), trail, samples read)."""
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
def _low(approximate, radii):  # type: ignore[no-untyped-def]
    """Lower bound of a score."""
    return min(approximate, FAR) - RELATIVE_SLACK * (min(approximate, FAR) + radii) - ABSOLUTE_SLACK


@njit(cache=True, nogil=True)
def _high(approximate, radii):  # type: ignore[no-untyped-def]
    """Upper bound of a score."""
    return np.inf if approximate >= FAR else approximate + RELATIVE_SLACK * (approximate + radii) + ABSOLUTE_SLACK


@njit(cache=True, nogil=True)
def approximate(sweep, measures, columns, q, binary, entities, total):  # type: ignore[no-untyped-def]
    """Writes the approximate scores for q from the columns to `total`; infinite for entities that
    do not satisfy its binary predicates or have none."""
    total[:entities] = 0.0
    for i in range(sweep.sums_first[q], sweep.sums_first[q + 1]):
        add_distances(measures, columns, sweep.sums[i], entities, total)
    if sweep.required_first[q] < sweep.required_first[q + 1]:
        for e in range(entities):
            if not _bit(binary, e):
                total[e] = np.inf


@njit(cache=True, nogil=True)
def within(sweep, measures, store, q, entities, at, total, matching, trail, pick):  # type: ignore[no-untyped-def]
    """Writes the bits of the entities with a score that satisfies the comparison to `matching`.
    Returns (trail, samples read). Only scores that the bounds do not decide are computed."""
    at_most, bound, radii = sweep.decides[q] == LOCAL_AT_MOST, sweep.bound[q], sweep.radii[q]
    matching[:] = 0
    reads = 0
    for e in range(entities):
        if total[e] == np.inf:
            continue
        low, high = _low(total[e], radii), _high(total[e], radii)
        if (at_most and low > bound) or (not at_most and high < bound):
            continue
        if not ((at_most and high <= bound) or (not at_most and low >= bound)):
            score, trail, n = exact_score(sweep, measures, store, q, e, at, trail, pick)
            reads += n
            if not (score <= bound if at_most else score >= bound):
                continue
        matching[e >> 6] |= np.uint64(1) << np.uint64(e & 63)
    return trail, reads


@njit(cache=True, nogil=True)
def rank_candidates(sweep, measures, store, q, entities, at, total, trail, pick):  # type: ignore[no-untyped-def]
    """The entities that Θ may select, with their exact scores: (entities,
    scores, trail, samples read).

    Scores of the entities with the best k bounds are computed first. Only entities that may be as
    good as the worst of these can be selected.
    """
    descending = sweep.ranks[q] == RANK_GREATEST or sweep.ranks[q] == RANK_LAST_K
    sign = -1.0 if descending else 1.0
    radii = sweep.radii[q]
    k = sweep.k[q] if sweep.k[q] > 0 else 1
    worst = _worst_of_best(total, entities, k, sign)
    limit = np.inf
    reads = 0
    if worst < np.inf:
        limit = -np.inf
        left = k
        for e in range(entities):
            if left > 0 and total[e] < np.inf and sign * total[e] <= worst:
                score, trail, n = exact_score(sweep, measures, store, q, e, at, trail, pick)
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
        score, trail, n = exact_score(sweep, measures, store, q, e, at, trail, pick)
        reads += n
        if count == len(who):
            who, scores = np.append(who, np.empty_like(who)), np.append(scores, np.empty_like(scores))
        who[count] = e
        scores[count] = score
        count += 1
    return who[:count], scores[:count], trail, reads


@njit(cache=True, nogil=True)
def choose(sweep, q, who, scores, rank, matching):  # type: ignore[no-untyped-def]
    """Writes the bits of the candidates that Θ selects to `matching`."""
    chosen = np.zeros(len(who), np.bool_)
    best(scores, sweep.ranks[q], sweep.k[q], rank[who] if sweep.k[q] > 0 else who, chosen)
    matching[:] = 0
    for i in range(len(who)):
        if chosen[i]:
            matching[who[i] >> 6] |= np.uint64(1) << np.uint64(who[i] & 63)


@njit(cache=True, nogil=True)
def _worst_of_best(total, entities, k, sign):  # type: ignore[no-untyped-def]
    """The `k`-th least of `sign * total` (infinite values do not count); infinite if
    there are no more than that."""
    heap = np.empty(min(k, entities))
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
def _bit(words, e):  # type: ignore[no-untyped-def]
    return (words[e >> 6] >> np.uint64(e & 63)) & np.uint64(1) != 0
