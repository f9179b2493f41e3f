"""The continuous phase: evaluation time advances, index points enter and leave, and only the
entities and queries they affect are evaluated.

Evaluation skips to the next multiple of `every` at which some point enters or leaves. No answer can
change in between, however long that is.

References: [CMP] 5.2 (the series' heads are read instead of a counter of covered
predicates), 5.3 (Θ), 5.4 (order).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.compiled import kernel
from engine.motion_patterns.index_points import before, enter, leave, slot, whole
from engine.motion_patterns.theta import LOCAL_AT_LEAST, LOCAL_AT_MOST, RANK_FIRST_K, RANK_GREATEST, RANK_LEAST, RANKED

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEVER = np.iinfo(np.int64).max
UNSOLVED = np.iinfo(np.int64).min
"""Less than all evaluation numbers, also those of negative times."""
START, END, CANDIDATE, RETRACTED = 1, -1, 2, -2
"""What changes for (query, entity) at T: a match begins, ends; for ranked queries: becomes one of
the partition's best with this score, ceases to be."""


class Status(NamedTuple):
    """The results so far. `holds[q, e]`: e matches (ranked: was last reported as a candidate);
    `chain_until[q, e]`: evaluation number up to which (exclusive) the chain is known to be
    satisfied; `score[r, e]`: the score for ranked query r, NaN if e does not qualify."""

    holds: npt.NDArray[np.bool_]
    chain_until: Ints
    score: Floats


class EvaluationClock(NamedTuple):
    """The `series` and `queries` that are evaluated at the multiples of `every`."""

    every: int
    series: Ints
    queries: Ints


class EvaluationRequest(NamedTuple):
    """What one call evaluates: all times up to `last`. At the first multiple after the time
    `forced` everything is evaluated (NEVER: not).

    `entities`: codes in use; `rank` orders them by id (used by top k only);
    `width`: witnesses of an event.
    """

    last: int
    forced: int
    entities: int
    rank: Ints
    width: int


class MatchEvents(NamedTuple):
    """Changes in order: `what` is START ... RETRACTED; witnesses of predicate j
    in column j (seq -1: none)."""

    query: Ints
    entity: Ints
    at: Ints
    what: Ints
    score: Floats
    t: Ints
    seq: Ints
    x: Floats
    y: Floats


@njit(cache=True, nogil=True)
def no_events(size, width):  # type: ignore[no-untyped-def]
    """Room for `size` events of up to `width` witnesses."""
    return MatchEvents(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size),
        np.full((size, width), -1, np.int64), np.full((size, width), -1, np.int64), np.full((size, width), np.nan), np.full((size, width), np.nan),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def grown(source, n, size):  # type: ignore[no-untyped-def]
    """The first n events in arrays of `size`."""
    target = no_events(size, source.t.shape[1])
    target.query[:n] = source.query[:n]
    target.entity[:n] = source.entity[:n]
    target.at[:n] = source.at[:n]
    target.what[:n] = source.what[:n]
    target.score[:n] = source.score[:n]
    target.t[:n] = source.t[:n]
    target.seq[:n] = source.seq[:n]
    target.x[:n] = source.x[:n]
    target.y[:n] = source.y[:n]
    return target


@njit(cache=True, nogil=True)
def first_of(events, n):  # type: ignore[no-untyped-def]
    """The first n events, over the same memory."""
    return MatchEvents(
        events.query[:n], events.entity[:n], events.at[:n], events.what[:n], events.score[:n],
        events.t[:n], events.seq[:n], events.x[:n], events.y[:n],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def multiple(t, every):  # type: ignore[no-untyped-def]
    """Number of the first multiple of `every` at or after t."""
    return -((-t) // every)


@njit(cache=True, nogil=True)
def _due(plan, points, p):  # type: ignore[no-untyped-def]
    """Number of the next evaluation at which a point of series p enters or leaves."""
    due = NEVER
    every = plan.every[p]
    if points.entered[p] < points.tail[p]:
        due = multiple(points.t[slot(points, p, points.entered[p])] + plan.end[p], every)
    if points.left[p] < points.entered[p]:
        due = min(due, multiple(points.t[slot(points, p, points.left[p])] + plan.start[p], every))
    return due


@njit(cache=True, nogil=True)
def _solve(plan, points, q, e, pick):  # type: ignore[no-untyped-def]
    """Writes the latest index points of chain q at increasing times to `pick` (by node). Returns
    the number of the evaluation at which the first of them leaves its window, or UNSOLVED.

    From the last node backwards, each takes its latest point before those of its followers. If this
    fails, there is no chain.
    """
    until = NEVER
    first = plan.chain_first[q]
    for n in range(plan.chain_first[q + 1] - 1, first - 1, -1):
        p = plan.chain[n]
        bound = NEVER
        for side in range(2):
            follower = plan.chain_after[n, side]
            if follower >= 0:
                bound = min(bound, points.t[slot(points, plan.chain[follower], pick[follower - first])])
        number = whole(points, p, points.head[p, e])
        while number >= 0 and points.t[slot(points, p, number)] >= bound:
            number = before(points, p, number)
        if number < 0:
            return UNSOLVED
        pick[n - first] = number
        until = min(until, multiple(points.t[slot(points, p, number)] + plan.start[p], plan.every[p]))
    return until


@njit(cache=True, nogil=True)
def _note(events, n, plan, points, q, e, at, what, score, pick):  # type: ignore[no-untyped-def]
    """Write event n, with witnesses if something begins."""
    events.query[n] = q
    events.entity[n] = e
    events.at[n] = at
    events.what[n] = what
    events.score[n] = score
    if what < 0:
        return
    if plan.chain_first[q] < plan.chain_first[q + 1]:
        # Solved again: the cached solution may be an older one, and the witness must not
        # depend on when it was found.
        _solve(plan, points, q, e, pick)
    first = plan.witness_first[q]
    for j in range(plan.witness_first[q + 1] - first):
        p = plan.witness[first + j]
        node = plan.witness_node[first + j]
        measure = plan.measure[p]
        if node >= 0:
            number = pick[node]
        elif measure >= 0:
            number = whole(points, p, points.front[measure, e])
        else:
            number = whole(points, p, points.head[p, e])
        if number < 0:
            # A total may reach its bound without a sample in its window.
            continue
        i = slot(points, p, number)
        events.t[n, j] = points.t[i]
        events.seq[n, j] = points.seq[i]
        events.x[n, j] = points.x[i]
        events.y[n, j] = points.y[i]


@njit(cache=True, nogil=True)
def _worse(score, rank, other_score, other_rank):  # type: ignore[no-untyped-def]
    return score > other_score or (score == other_score and rank > other_rank)


@njit(cache=True, nogil=True)
def _sift(heap, heap_score, n, rank):  # type: ignore[no-untyped-def]
    """Restore the heap (worst on top) after its top was replaced."""
    i = 0
    while True:
        worst = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < n and _worse(heap_score[child], rank[heap[child]], heap_score[worst], rank[heap[worst]]):
                worst = child
        if worst == i:
            return
        heap[i], heap[worst] = heap[worst], heap[i]
        heap_score[i], heap_score[worst] = heap_score[worst], heap_score[i]
        i = worst


@njit(cache=True, nogil=True)
def best(score, ranks, k, rank, chosen):  # type: ignore[no-untyped-def]
    """Marks in `chosen` the entities that Θ selects (`ranks`: RANK_...); entities with score NaN
    are not candidates; `rank` orders entities by id."""
    chosen[:] = False
    if ranks in (RANK_LEAST, RANK_GREATEST):
        sign = 1.0 if ranks == RANK_LEAST else -1.0
        least = np.inf
        for e in range(len(score)):
            if sign * score[e] < least:
                least = sign * score[e]
        for e in range(len(score)):
            chosen[e] = sign * score[e] == least
        return
    sign = 1.0 if ranks == RANK_FIRST_K else -1.0
    room = min(k, len(score))
    heap = np.empty(room, np.int64)
    heap_score = np.empty(room)
    n = 0
    for e in range(len(score)):
        if np.isnan(score[e]):
            continue
        s = sign * score[e]
        if n < room:
            # Sift up from the bottom.
            i = n
            n += 1
            while i > 0 and _worse(s, rank[e], heap_score[(i - 1) // 2], rank[heap[(i - 1) // 2]]):
                heap[i], heap_score[i] = heap[(i - 1) // 2], heap_score[(i - 1) // 2]
                i = (i - 1) // 2
            heap[i], heap_score[i] = e, s
        elif _worse(heap_score[0], rank[heap[0]], s, rank[e]):
            heap[0], heap_score[0] = e, s
            _sift(heap, heap_score, n, rank)
    for i in range(n):
        chosen[heap[i]] = True


@njit(cache=True, nogil=True)
def _move(plan, points, series, due, k, touched_series, touched_entity, work):  # type: ignore[no-untyped-def]
    """Lets the points of the `series` that are due enter and leave at evaluation k. Returns (arrays
    of affected pairs (series, entity), their number); the arrays may be replaced by longer ones.
    Updates `due[s]`; `work` counts points [entered, left].
    """
    touched = 0
    for s in range(len(series)):
        if due[s] > k:
            continue
        p = series[s]
        at, entered, left = k * plan.every[p], points.entered[p], points.left[p]
        measure, eager = plan.measure[p], plan.eager[p]
        while True:
            touched = enter(points, p, at, NEVER, plan.end[p], measure, plan.sign[p], eager, touched_series, touched_entity, touched)
            touched = leave(points, p, at, plan.start[p], measure, eager, touched_series, touched_entity, touched)
            if touched < len(touched_series):
                break
            touched_series = np.append(touched_series, np.empty(touched, np.int64))
            touched_entity = np.append(touched_entity, np.empty(touched, np.int64))
        work[0] += points.entered[p] - entered
        work[1] += points.left[p] - left
        due[s] = _due(plan, points, p)
    return touched_series, touched_entity, touched


@njit(cache=True, nogil=True)
def _rank(plan, points, status, q, at, request, marked, events, n, pick):  # type: ignore[no-untyped-def]
    """Asserts the best of ranked query q, after its `marked` entities were evaluated, as events
    from n on. Returns (events, n)."""
    entities = request.entities
    scores, holds, chosen = status.score[plan.ranking[q]], status.holds[q], np.empty(entities, np.bool_)
    best(scores[:entities], plan.ranks[q], plan.k[q], request.rank, chosen)
    for e in range(entities):
        if chosen[e] == holds[e] and not (chosen[e] and marked[e]):
            continue
        holds[e] = chosen[e]
        if n == len(events.query):
            events = grown(events, n, 2 * n)
        _note(events, n, plan, points, q, e, at, CANDIDATE if chosen[e] else RETRACTED, scores[e], pick)
        n += 1
    marked[:] = False
    return events, n


@kernel(inline=True)
def _covers(plan: Any, points: Any, on: Any, q: Any, e: Any) -> Any:
    """Whether entity e satisfies all binary predicates of query q, their order
    apart; `on`: see `advance`."""
    covers = True
    for i in range(plan.required_first[q], plan.required_first[q + 1]):
        covers = covers and points.head[plan.required[i], e] >= 0
    for i in range(plan.excluded_first[q], plan.excluded_first[q + 1]):
        covers = covers and points.head[plan.excluded[i], e] < 0
    for i in range(plan.sums_first[q], plan.sums_first[q + 1]):
        covers = covers and points.head[plan.sums[i], e] >= 0
    for i in range(plan.totals_first[q], plan.totals_first[q + 1]):
        covers = covers and on[plan.totals[i], e] == plan.reached[i]
    return covers


@kernel(inline=True)
def _in_order(plan: Any, points: Any, status: Any, q: Any, e: Any, k: Any, pick: Any) -> Any:
    """Whether query q has no chain, or entity e satisfies it at evaluation k."""
    if plan.chain_first[q] == plan.chain_first[q + 1]:
        return True
    if status.chain_until[q, e] <= k:
        status.chain_until[q, e] = _solve(plan, points, q, e, pick)
    return status.chain_until[q, e] != UNSOLVED


@kernel(inline=True)
def _score(plan: Any, points: Any, q: Any, e: Any) -> Any:
    """The sum over the numerical predicates of query q; NaN if it has none."""
    first, end = plan.sums_first[q], plan.sums_first[q + 1]
    score = 0.0 if first < end else np.nan
    for i in range(first, end):
        score += points.extremum[plan.measure[plan.sums[i]], e]
    return score


@kernel(inline=True)
def _is_new(plan: Any, points: Any, status: Any, on: Any, ranked: Any, q: Any, e: Any, k: Any, pick: Any) -> Any:
    """Evaluates query q for entity e. Returns whether its match begins or ends, and the score; that
    of a ranked query is stored, and marked in `ranked`: (queries, their entities)."""
    covered = _covers(plan, points, on, q, e) and _in_order(plan, points, status, q, e, k, pick)
    score = _score(plan, points, q, e) if covered else np.nan
    decides = plan.decides[q]
    if decides == RANKED:
        r = plan.ranking[q]
        status.score[r, e] = score
        ranked[0][r] = ranked[1][r, e] = True
        return False, score
    if decides == LOCAL_AT_MOST:
        covered = covered and score <= plan.bound[q]
    elif decides == LOCAL_AT_LEAST:
        covered = covered and score >= plan.bound[q]
    is_new = covered != status.holds[q, e]
    status.holds[q, e] = covered
    return is_new, score


@kernel(inline=True)
def _next_evaluation(forced_k: Any, due: Any, switches: Any, switched: Any) -> Any:
    """NEVER if there is none."""
    k = forced_k
    for s in range(len(due)):
        k = min(k, due[s])
    return min(k, switches.k[switched]) if switched < len(switches.k) else k


@njit(cache=True, nogil=True)
def advance(plan, points, status, clock, request, switches, on):  # type: ignore[no-untyped-def]
    """Evaluates one clock as requested. Returns (events, points entered, points left, evaluations).

    `switches`: those of the clock's totals, by time; `on[total, e]`: the state before them.
    """
    every, series, queries = clock.every, clock.series, clock.queries
    last, forced, entities, width = request.last, request.forced, request.entities, request.width
    events = no_events(64, width)
    n = 0
    evaluations, work = 0, np.zeros(2, np.int64)
    due = np.empty(len(series), np.int64)
    for s in range(len(series)):
        due[s] = _due(plan, points, series[s])
    touched_series = np.empty(256, np.int64)
    touched_entity = np.empty(256, np.int64)
    pick = np.empty(width, np.int64)
    rankings = status.score.shape[0]
    moved, marked = np.zeros(rankings, np.bool_), np.zeros((rankings, entities), np.bool_)
    forced_k = NEVER if forced == NEVER else forced // every + 1
    switched = 0
    while True:
        k = _next_evaluation(forced_k, due, switches, switched)
        if k == NEVER or k * every > last:
            break
        at = k * every
        evaluations += 1
        touched_series, touched_entity, touched = _move(plan, points, series, due, k, touched_series, touched_entity, work)
        while switched < len(switches.k) and switches.k[switched] == k:
            if touched == len(touched_series):
                touched_series, touched_entity = np.append(touched_series, touched_series), np.append(touched_entity, touched_entity)
            total, e = switches.total[switched], switches.entity[switched]
            on[total, e] = switches.on[switched]
            # The sign distinguishes a total from a series.
            touched_series[touched], touched_entity[touched] = ~total, e
            touched += 1
            switched += 1
        # If most pairs are affected, several times each, each is evaluated once and in order.
        everything = k == forced_k or touched > len(queries) * entities
        if k == forced_k:
            forced_k = NEVER
        for step in range(len(queries) * entities if everything else touched):
            if everything:
                users, first, stop = queries, step // entities, step // entities + 1
                e = step % entities
            else:
                p, e = touched_series[step], touched_entity[step]
                if p < 0:
                    users, first, stop = plan.total_users, plan.total_users_first[~p], plan.total_users_first[~p + 1]
                else:
                    users, first, stop = plan.users, plan.users_first[p], plan.users_first[p + 1]
            for u in range(first, stop):
                q = users[u]
                is_new, score = _is_new(plan, points, status, on, (moved, marked), q, e, k, pick)
                if is_new:
                    if n == len(events.query):
                        events = grown(events, n, 2 * n)
                    _note(events, n, plan, points, q, e, at, START if status.holds[q, e] else END, score, pick)
                    n += 1
        for q in queries:
            r = plan.ranking[q]
            if r >= 0 and moved[r]:
                events, n = _rank(plan, points, status, q, at, request, marked[r], events, n, pick)
                moved[r] = False
    return first_of(events, n), work[0], work[1], evaluations
