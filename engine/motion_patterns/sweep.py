"""Evaluation by planes and columns: at each multiple of `every` at which some window changed,
whole planes are combined. Only entities whose answer changed, or whose score may be among the
best, are evaluated one by one.

References: [CMP] 5.2 (candidates, positive and negative updates), 5.3 (lower bounds first, actual
scores of the best from raw trajectories).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.index.bits import how_many, lowest_bit
from engine.motion_patterns import bit_planes
from engine.motion_patterns.chains import keep_solved, solve
from engine.motion_patterns.evaluation import CANDIDATE, END, NEVER, RETRACTED, START, first_of, grown, no_events
from engine.motion_patterns.scores import approximate, choose, exact_score, rank_candidates, within
from engine.motion_patterns.theta import LOCAL_AT_LEAST, LOCAL_AT_MOST, RANKED
from engine.motion_patterns.windows import WindowMoves, forget, move, next_evaluation

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True)
def _prove(t, seq, x, y, store, samples, reads):  # type: ignore[no-untyped-def]
    """Writes one predicate's witnesses, the stored `samples` (negative: unchanged), to columns of
    events. Returns `reads`, increased."""
    mask, from_t, from_seq, from_x, from_y = len(store.t) - 1, store.t, store.seq, store.x, store.y
    for i in range(len(samples)):
        if samples[i] < 0:
            continue
        slot = samples[i] & mask
        t[i] = from_t[slot]
        seq[i] = from_seq[slot]
        x[i] = from_x[slot]
        y[i] = from_y[slot]
        reads += 1
    return reads


@njit(cache=True, nogil=True)
def _prove_one(events, k, j, store, number):  # type: ignore[no-untyped-def]
    """Writes sample `number` as the witness of predicate j to event k; unchanged if negative."""
    if number < 0:
        return
    slot = number & (len(store.t) - 1)
    events.t[k, j] = store.t[slot]
    events.seq[k, j] = store.seq[slot]
    events.x[k, j] = store.x[slot]
    events.y[k, j] = store.y[slot]


@njit(cache=True, nogil=True)
def _witnesses(state, q, at, events, low, high, trail, pick):  # type: ignore[no-untyped-def]
    """Writes scores and the latest witness of each predicate of q to the START and CANDIDATE events
    from `low` to `high`. Returns (trail, samples read)."""
    sweep, store, planes = state.sweep, state.store, state.planes
    first, reads = sweep.witness_first[q], 0
    who = np.where(events.what[low:high] > 0, events.entity[low:high], -1)
    events.score[low:high] = np.nan
    samples = np.empty(high - low, np.int64)
    for j in range(sweep.witness_first[q + 1] - first):
        s = sweep.witness[first + j]
        if not (sweep.witness_measured[first + j] or sweep.witness_node[first + j] >= 0):
            bit_planes.expect_latest(planes, s, sweep.sequence[s], who)
    for j in range(sweep.witness_first[q + 1] - first):
        if sweep.witness_measured[first + j] or sweep.witness_node[first + j] >= 0:
            continue
        s = sweep.witness[first + j]
        bit_planes.latest(store, planes, s, sweep.sequence[s], who, samples)
        reads = _prove(events.t[low:high, j], events.seq[low:high, j], events.x[low:high, j], events.y[low:high, j], store, samples, reads)
    if sweep.chain_first[q] < sweep.chain_first[q + 1]:
        for i in range(len(who)):
            if who[i] < 0:
                continue
            # Solved again: the cached chain may be an older one, and the witness must not
            # depend on when it was found.
            _, n = solve(sweep, store, planes, q, who[i], pick, np.empty_like(pick))
            reads += n
            for j in range(sweep.witness_first[q + 1] - first):
                node = sweep.witness_node[first + j]
                if node >= 0:
                    _prove_one(events, low + i, j, store, pick[node])
    if sweep.sums_first[q] < sweep.sums_first[q + 1]:
        for i in range(len(who)):
            if who[i] < 0:
                continue
            k = low + i
            events.score[k], trail, n = exact_score(sweep, state.measures, store, q, who[i], at, trail, pick)
            reads += n
            for j in range(sweep.witness_first[q + 1] - first):
                if sweep.witness_measured[first + j]:
                    _prove_one(events, k, j, store, pick[j])
    return trail, reads


@njit(cache=True, nogil=True)
def _binary(sweep, words, q, count, matching):  # type: ignore[no-untyped-def]
    """Writes the bits of the entities that satisfy q's binary predicates to `matching`."""
    matching[:count] = _ALL
    for i in range(sweep.required_first[q], sweep.required_first[q + 1]):
        required = words[sweep.required[i]]
        for w in range(count):
            matching[w] &= required[w]
    for i in range(sweep.excluded_first[q], sweep.excluded_first[q + 1]):
        excluded = words[sweep.excluded[i]]
        for w in range(count):
            matching[w] &= ~excluded[w]


@njit(cache=True, nogil=True)
def _changed(ranked, words, matching, held):  # type: ignore[no-untyped-def]
    """The entities whose bits in `held` and `matching` differ (ranked: are set in either): e if its
    bit in `matching` is set, else ~e. Sets `held` to `matching`."""
    count = np.int64(0)
    for w in range(words):
        count += np.int64(how_many(matching[w] | held[w] if ranked else matching[w] ^ held[w]))
    who = np.empty(count, np.int64)
    n = 0
    for w in range(words):
        changed = matching[w] | held[w] if ranked else matching[w] ^ held[w]
        while changed:
            rest = changed & (changed - np.uint64(1))
            bit = changed ^ rest
            e = w * 64 + np.int64(lowest_bit(bit))
            who[n] = e if matching[w] & bit else ~e
            changed = rest
            n += 1
        held[w] = matching[w]
    return who


@njit(cache=True, nogil=True)
def _append_events(query, begins, ends, at, who, events, n):  # type: ignore[no-untyped-def]
    """Writes events from n on for `who`, a result of `_changed`; there must be room."""
    for i in range(len(who)):
        begins_now = who[i] >= 0
        events.query[n + i] = query
        events.entity[n + i] = who[i] if begins_now else ~who[i]
        events.at[n + i] = at
        events.what[n + i] = begins if begins_now else ends


@njit(cache=True, nogil=True)
def _touched(sweep, q, moves):  # type: ignore[no-untyped-def]
    """Whether a window of q moved."""
    for i in range(sweep.required_first[q], sweep.required_first[q + 1]):
        if moves.series[sweep.required[i]]:
            return True
    if moves.series[sweep.excluded[sweep.excluded_first[q] : sweep.excluded_first[q + 1]]].any():
        return True
    return moves.measures[sweep.sums[sweep.sums_first[q] : sweep.sums_first[q + 1]]].any()


@njit(cache=True, nogil=True)
def advance(state, chains, holds, query_of, request):  # type: ignore[no-untyped-def]
    """Evaluates a group as requested, at the multiples of its `every`. Returns (events, [entered,
    left, evaluations, samples read]).

    `holds[q, word]`: the entities that match (ranked: are among the best). `query_of[q]`: number of
    the query in events. Ranked queries assert all their best at each evaluation.
    """
    sweep, measures, store, planes, columns = state.sweep, state.measures, state.store, state.planes, state.columns
    last, forced, entities, width = request.last, request.forced, request.entities, request.width
    every, words = sweep.clock[0], (entities + 63) >> 6
    events, n = no_events(64, width), 0
    work = np.zeros(4, np.int64)
    series = len(sweep.sequence)
    moves = WindowMoves(np.zeros(series, np.bool_), np.zeros(len(measures.start), np.bool_), np.zeros(series, np.int64))
    trail, pick, bucket = np.empty(64, np.int64), np.empty(width, np.int64), np.empty(width, np.int64)
    binary, found = np.empty(words, np.uint64), np.empty(words, np.uint64)
    total = np.empty(entities)
    forced_k = NEVER if forced == NEVER else forced // every + 1
    while True:
        k = min(forced_k, next_evaluation(state))
        if k == NEVER or k * every > last:
            break
        at = k * every
        everything = k == forced_k
        if everything:
            forced_k = NEVER
        work[2] += 1
        move(state, at, entities, everything, moves, work)
        for q in range(len(query_of)):
            if not (everything or _touched(sweep, q, moves)):
                continue
            decides = sweep.decides[q]
            _binary(sweep, planes.words, q, words, binary)
            if sweep.chain_first[q] < sweep.chain_first[q + 1]:
                work[3] += keep_solved(sweep, store, planes, chains, moves.entered, q, at, words, binary, pick, bucket)
            matching = binary
            scored = sweep.sums_first[q] < sweep.sums_first[q + 1]
            if scored:
                approximate(sweep, measures, columns, q, binary, entities, total)
            if decides in (LOCAL_AT_MOST, LOCAL_AT_LEAST):
                trail, reads = within(sweep, measures, store, q, entities, at, total, found, trail, pick)
                work[3] += reads
                matching = found
            elif decides == RANKED:
                who, scores, trail, reads = rank_candidates(sweep, measures, store, q, entities, at, total, trail, pick)
                work[3] += reads
                choose(sweep, q, who, scores, request.rank, found)
                matching = found
            ranked = decides == RANKED
            who = _changed(ranked, words, matching, holds[q])
            if len(who):
                if n + len(who) > len(events.query):
                    events = grown(events, n, 2 * (n + len(who)))
                _append_events(query_of[q], CANDIDATE if ranked else START, RETRACTED if ranked else END, at, who, events, n)
                trail, reads = _witnesses(state, q, at, events, n, n + len(who), trail, pick)
                work[3] += reads
                n += len(who)
    forget(state)
    return first_of(events, n), work
