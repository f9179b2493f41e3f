"""Processes each query's events in (t, arrival): updates its variables' domains, and finds the
solutions that an event completes.

Functions take their arrays as the tuples Graphs, Events, Rings and Pool. All functions but
`advance` are inlined, so that passing them is free.

References: [CCQ] Algorithm 1 and 2, 4.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.constraint_queries.candidates import consistent_events, first_at_or_after, from_cells, mask_within_reach, near_any, within_reach
from engine.constraint_queries.expiration import NEVER, minimal_useful_span
from engine.constraint_queries.pairs import (
    AFTER,
    EARLIEST,
    IDLE,
    KEPT,
    LATEST,
    ORDER,
    RENEWED,
    RENEWING,
    SPAN,
    ConstraintEvents,
    Graphs,
    Ints,
    PairBounds,
    is_consistent,
    pair_bounds,
)  # fmt: skip
from engine.constraint_queries.pool import (
    BEGIN,
    CANDIDATES,
    CURSOR,
    END,
    LAST,
    RING,
    SEARCHES,
    SOLUTIONS,
    WINDOW_TIME,
    FilteredEvents,
    NewEvent,
    Pool,
    QueryNumbers,
    SolutionBuffers,
    query_numbers,
)
from engine.constraint_queries.rings import BITS, EVENT, LEAST_LONG, UNTIL, DomainRings, T, link_cells
from engine.constraint_queries.search import solve, solve_masks
from engine.index.bits import lowest_bit
from engine.index.compiled import kernel

DONE, FULL_OUTPUT, NO_ROOM, TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS = range(5)
_FEW = 63
"""The greatest number of candidates that fit into the bits of one integer."""


class Lookup(NamedTuple):
    """The candidates found in the other variables' domains for an event as
    V_i; bit j represents V_j.

    `empty`: no stored event is consistent with the new one; `masks`: the candidates are the bits of
    row 0 of the pool's masks; `listed`: they are in the pool, which is filled up to `top`. `few`:
    all windows searched so far are short. `useful`: the event may still be one of V_i's.
    """

    empty: Any
    masks: Any
    listed: Any
    top: Any
    few: bool
    useful: bool


@kernel()
def advance(
    graphs: Graphs, events: ConstraintEvents, rings: DomainRings, taken: FilteredEvents, pool: Pool, found: SolutionBuffers, at: int,
    most_events: int, most_solutions: int, capacity: int, work: Ints,
) -> Any:  # fmt: skip
    """Processes the rows of `taken` from row `at` on, until all are processed or
    `capacity` solutions are found.

    `rings` have room for all of the rows, `pool` for all events of any query. Returns (next row,
    solutions, events in them, reason to stop, query, and its number of events or solutions). If
    `found` has no room for the solutions of the next row, the row is left unprocessed. A solution
    is found when its latest event is processed. `work` counts candidates, searches and solutions.
    """
    count, filled, reason, figure, q = 0, 0, DONE, 0, 0
    while at < len(taken.event) and reason == DONE:
        while taken.starts[q + 1] <= at:
            q += 1
        query = query_numbers(graphs, q)
        before_now: Any = NEVER
        stored = _reset_windows(rings, pool, query)
        while at < taken.starts[q + 1] and reason == DONE:
            e = taken.event[at]
            new = NewEvent(e, taken.bits[at], events.t[e], events.place[0, e], events.place[1, e], events.place[2, e])
            if new.t != before_now:
                _drop_expired(graphs, rings, query, new.t)
                before_now = new.t
            before, filled_before = count, filled
            keep, candidates, searches, count, filled = _assign_to_variables(
                graphs, events, rings, pool, found, query, new, count, filled, most_solutions
            )
            if count < 0:
                count, filled, reason = before, filled_before, NO_ROOM
                break
            at += 1
            work[CANDIDATES] += candidates
            work[SEARCHES] += searches
            work[SOLUTIONS] += count - before
            entries = _insert(graphs, rings, pool, query, new, keep)
            # `stored` is an upper bound; the events are counted exactly
            # only if it exceeds the limit.
            stored += entries if not query.shared else min(entries, 1)
            if entries > 0 and stored > most_events:
                stored = _count_kept(
                    rings.ints, rings.heads, rings.tails, query.first, query.first + query.m, new.t, query.shared, pool.domains
                )  # fmt: skip
            if entries > 0 and stored > most_events:
                reason, figure = TOO_MANY_EVENTS, stored
            elif count - before > most_solutions:
                reason, figure = TOO_MANY_SOLUTIONS, count - before
            elif count >= capacity:
                reason = FULL_OUTPUT
    return at, count, filled, reason, q, figure


@kernel(inline=True)
def _reset_windows(rings: DomainRings, pool: Pool, query: QueryNumbers) -> Any:
    """Resets the query's windows to the heads of its domains. Returns how many events these
    hold, expired ones included."""
    v0, m = query.first, query.m
    stored = 0
    for i in range(m):
        stored += rings.tails[v0 + i] - rings.heads[v0 + i]
        pool.domains[WINDOW_TIME, i] = NEVER
        for j in range(m):
            pool.windows[0, i, j] = pool.windows[1, i, j] = rings.heads[v0 + j]
    return stored


@kernel(inline=True)
def _drop_expired(graphs: Graphs, rings: DomainRings, query: QueryNumbers, now: int) -> None:
    """Removes the events older than their variable's span from the heads of the domains."""
    for v in range(query.first, query.first + query.m):
        while rings.heads[v] < rings.tails[v] and rings.ints[T, rings.heads[v]] < now - graphs.roles[v, SPAN]:
            rings.heads[v] += 1


@kernel(inline=True)
def _insert(graphs: Graphs, rings: DomainRings, pool: Pool, query: QueryNumbers, new: NewEvent, keep: int) -> Any:
    """Adds the event to the domains of the variables `keep` (bits). Returns the
    number of these variables."""
    v0, entries = query.first, 0
    for v in range(v0, query.first + query.m):
        if (keep >> (v - v0)) & 1:
            k = rings.tails[v]
            rings.ints[EVENT, k], rings.ints[T, k], rings.ints[BITS, k] = new.event, new.t, new.bits
            rings.ints[UNTIL, k] = pool.domains[LAST, v - v0]
            rings.place[0, k], rings.place[1, k], rings.place[2, k] = new.x, new.y, new.z
            rings.tails[v] = k + 1
            entries += 1
            first, last = rings.corners[v], rings.corners[v + 1]
            if first < last:
                link_cells(rings.place, rings.previous, rings.buckets, first, last - first, k, graphs.side[v])
    return entries


# -- an event as one of the variables --------------------------------------------------------------


@kernel(inline=True)
def _assign_to_variables(
    graphs: Graphs, events: ConstraintEvents, rings: DomainRings, pool: Pool, found: SolutionBuffers, query: QueryNumbers, new: NewEvent,
    count: int, filled: int, most_solutions: int,
) -> Any:  # fmt: skip
    """Adds the solutions that the event completes as any variable, and renews the
    expiration of stored events.

    Returns (variables that keep the event as bits, candidates, searches, solutions, events in
    them). `domains` holds the times until which the variables keep it. The number of solutions is
    -1 if there is no room for them.
    """
    v0, m, domains = query.first, query.m, pool.domains
    keep, candidates, searches, before = np.int64(0), 0, 0, count
    for i in range(m):
        if not (new.bits >> i) & 1:
            continue
        if graphs.roles[v0 + i, IDLE] == 1:
            keep |= np.int64(1) << i
            domains[LAST, i] = new.t + graphs.roles[v0 + i, KEPT]
            continue
        lookup = _look_up_domains(graphs, events, rings, pool, query, i, new, _advance_windows(graphs, rings, pool, query, i, new.t))
        if not lookup.useful:
            continue
        if graphs.roles[v0 + i, SPAN] != NEVER:
            keep |= np.int64(1) << i
            domains[LAST, i] = new.t + _useful_span(graphs, query, i, lookup.empty)
        search = lookup.empty == 0 and not (query.only_first and count > before)
        lookup = _list_remaining(graphs, events, rings, pool, query, i, new, lookup, search and not lookup.few)
        candidates += lookup.top
        if _is_renewing(graphs, query, i):
            _renew(graphs, rings, pool, query, i, lookup)
        if search:
            searches += 1
            if lookup.few and m > 1:
                count, filled = solve_masks(graphs, events, rings, pool, found, query, i, new, count, filled, before + most_solutions)
            else:
                count, filled = solve(graphs, events, pool, found, query, i, new, count, filled, before + most_solutions)
            if count < 0:
                break
    return keep, candidates, searches, count, filled


@kernel(inline=True)
def _is_renewed(graphs: Graphs, query: QueryNumbers, i: int) -> Any:
    """Whether events of V_i may expire before its span has passed, and be renewed."""
    return query.tight and graphs.roles[query.first + i, RENEWED] == 1


@kernel(inline=True)
def _is_renewing(graphs: Graphs, query: QueryNumbers, i: int) -> Any:
    """Whether an event of V_i may renew events of other variables."""
    v = query.first + i
    return query.tight and graphs.roles[v, RENEWING] == 1 and graphs.roles[v, SPAN] != NEVER


@kernel(inline=True)
def _useful_span(graphs: Graphs, query: QueryNumbers, i: int, empty: int) -> Any:
    """How long V_i keeps an event with which no stored event of the variables
    `empty` (bits) is consistent."""
    m, p, span = query.m, query.pairs + i * query.m, graphs.roles[query.first + i, SPAN]
    return minimal_useful_span(graphs.times[p : p + m, AFTER], m, empty, i, span) if _is_renewed(graphs, query, i) else span


@kernel(inline=True)
def _advance_windows(graphs: Graphs, rings: DomainRings, pool: Pool, query: QueryNumbers, i: int, now: int) -> Any:
    """Moves V_i's windows to `now`: the parts of the other domains with which its event is
    consistent by time. Returns the initial lookup."""
    v0, m, p, times = query.first, query.m, query.pairs + i * query.m, graphs.times
    ring, heads, tails, windows = rings.ints, rings.heads, rings.tails, pool.windows
    # If the windows are at this time already, only events of this time are new.
    later, empty, useful = pool.domains[WINDOW_TIME, i] != now, np.int64(0), True
    pool.domains[WINDOW_TIME, i] = now
    for j in range(m):
        if j == i:
            continue
        end = tails[v0 + j]
        if times[p + j, ORDER] > 0:
            # All stored events come before the new one. If V_j's event must come
            # after it, none is consistent.
            windows[0, i, j] = windows[1, i, j] = end
        else:
            if later or times[p + j, EARLIEST] > 0:
                windows[0, i, j] = first_at_or_after(ring, max(windows[0, i, j], heads[v0 + j]), end, now + times[p + j, EARLIEST])
            if times[p + j, LATEST] >= 0:
                windows[1, i, j] = end
            elif later:
                windows[1, i, j] = first_at_or_after(ring, max(windows[0, i, j], windows[1, i, j]), end, now + times[p + j, LATEST] + 1)
        if windows[0, i, j] >= windows[1, i, j]:
            empty |= np.int64(1) << j
            useful = useful and times[p + j, AFTER] >= 0
    return Lookup(empty, np.int64(0), np.int64(0), np.int64(0), True, useful)


@kernel(inline=True)
def _look_up_domains(
    graphs: Graphs, events: ConstraintEvents, rings: DomainRings, pool: Pool, query: QueryNumbers, i: int, new: NewEvent, lookup: Lookup
) -> Any:
    """Searches the other domains: first those without which the event is useless, then the others
    while the result depends on them."""
    m, p = query.m, query.pairs + i * query.m
    renewed, renewing = _is_renewed(graphs, query, i), _is_renewing(graphs, query, i)
    rest = ~(lookup.empty | (np.int64(1) << i))
    for turn in range(2):
        for j in range(m):
            if not (rest >> j) & 1 or (turn == 0) != (graphs.times[p + j, AFTER] < 0):
                continue
            skip_expired = _is_renewed(graphs, query, j)
            if lookup.useful and (turn == 0 or lookup.empty == 0 or renewed or (renewing and skip_expired)):
                lookup = _look_up_domain(graphs, events, rings, pool, query, i, j, new, lookup, skip_expired)
    return lookup


@kernel(inline=True)
def _look_up_domain(
    graphs: Graphs,
    events: ConstraintEvents,
    rings: DomainRings,
    pool: Pool,
    query: QueryNumbers,
    i: int,
    j: int,
    new: NewEvent,
    lookup: Lookup,
    skip_expired: bool,
) -> Any:
    """Searches V_i's window of V_j's domain for events that are consistent with the new one;
    `skip_expired`: expired ones do not count."""
    v, bounds, one = query.first + j, pair_bounds(graphs, query.pairs + i * query.m + j, i < j), np.int64(1) << j
    a, b = pool.windows[0, i, j], pool.windows[1, i, j]
    bits, listed, top, some, sure = lookup.masks, lookup.listed, lookup.top, True, False
    if b - a <= _FEW:
        mask = _mask(graphs, events, rings, bounds, new, a, b, skip_expired)
        pool.masks[0, j], some, sure = mask, mask != 0, True
        bits |= one
    else:
        cells = b - a >= LEAST_LONG and rings.corners[v] < rings.corners[v + 1] and bounds.reach < np.inf
        if not cells:
            some, sure = near_any(rings, a, b, bounds, new, skip_expired)
        if some and not sure:
            # Long domains with cells, and pairs that squared chords alone do not decide.
            top = _list(graphs, events, rings, pool, query, i, j, new, lookup.top, skip_expired, cells)
            some = lookup.top < top
            listed |= one
    empty, useful = lookup.empty, lookup.useful
    if not some:
        empty |= one
        useful = useful and graphs.times[bounds.pair, AFTER] >= 0
    return Lookup(empty, bits, listed, top, lookup.few and b - a <= _FEW, useful)


@kernel(inline=True)
def _mask(graphs: Graphs, events: ConstraintEvents, rings: DomainRings, bounds: PairBounds, new: NewEvent, a: int, b: int, skip_expired: bool) -> Any:
    """The events of a short window that are consistent with the new one, as bits."""
    mask, unsure = mask_within_reach(rings, a, b, bounds, new, skip_expired)
    while unsure != 0:
        k = lowest_bit(unsure)
        unsure &= unsure - 1
        if not is_consistent(graphs, events, bounds.pair, bounds.named_first, new.event, rings.ints[EVENT, a + k]):
            mask ^= np.int64(1) << k
    return mask


@kernel(inline=True)
def _list(
    graphs: Graphs,
    events: ConstraintEvents,
    rings: DomainRings,
    pool: Pool,
    query: QueryNumbers,
    i: int,
    j: int,
    new: NewEvent,
    top: int,
    skip_expired: bool,
    cells: bool,
) -> Any:
    """Writes the events in V_i's window of V_j's domain that are consistent with the new one to the
    pool from `top` on. Returns the new top."""
    v, bounds = query.first + j, pair_bounds(graphs, query.pairs + i * query.m + j, i < j)
    a, b = pool.windows[0, i, j], pool.windows[1, i, j]
    pooled, side = pool.ints, graphs.side[v]
    end = from_cells(rings, v, a, b, side, bounds, new, pooled, top) if cells else within_reach(rings.place, a, b, bounds, new, pooled, top)
    end = consistent_events(graphs, events, rings, pool, bounds, new, top, end, skip_expired)
    pool.domains[BEGIN, j], pool.domains[END, j] = top, end
    return end


@kernel(inline=True)
def _list_remaining(
    graphs: Graphs,
    events: ConstraintEvents,
    rings: DomainRings,
    pool: Pool,
    query: QueryNumbers,
    i: int,
    new: NewEvent,
    lookup: Lookup,
    everything: bool,
) -> Any:
    """Lists the candidates that are not listed yet: `everything` for a search in lists, else those
    of long windows whose events are renewed."""
    m, renewing = query.m, _is_renewing(graphs, query, i)
    listed, top = lookup.listed, lookup.top
    for j in range(m):
        if j == i or ((lookup.empty | listed) >> j) & 1:
            continue
        skip_expired = _is_renewed(graphs, query, j)
        if everything or (renewing and skip_expired and not (lookup.masks >> j) & 1):
            top = _list(graphs, events, rings, pool, query, i, j, new, top, skip_expired, False)
            listed |= np.int64(1) << j
    return Lookup(lookup.empty, lookup.masks, listed, top, lookup.few, lookup.useful)


@kernel(inline=True)
def _renew(graphs: Graphs, rings: DomainRings, pool: Pool, query: QueryNumbers, i: int, lookup: Lookup) -> None:
    """Keeps the stored events that are consistent with the new one as long as that is kept, but no
    longer than their own variable's span."""
    v0, m, last = query.first, query.m, pool.domains[LAST, i]
    for j in range(m):
        if j == i or (lookup.empty >> j) & 1 or graphs.roles[v0 + j, RENEWED] == 0:
            continue
        span = graphs.roles[v0 + j, SPAN]
        if (lookup.masks >> j) & 1:
            rest = pool.masks[0, j]
            while rest != 0:
                _extend(rings.ints, pool.windows[0, i, j] + lowest_bit(rest), last, span)
                rest &= rest - 1
        else:
            for k in range(pool.domains[BEGIN, j], pool.domains[END, j]):
                _extend(rings.ints, pool.ints[RING, k], last, span)


@kernel(inline=True)
def _extend(ring: Ints, k: int, last: int, span: int) -> None:
    ring[UNTIL, k] = max(ring[UNTIL, k], min(last, ring[T, k] + span))


@kernel()
def _count_kept(ring: Ints, heads: Ints, tails: Ints, first: int, last: int, now: int, shared: bool, domains: Ints) -> Any:
    """How many events the variables from `first` up to `last` keep at `now`; an event counts once
    if `shared`, else once for each variable."""
    m = last - first
    count = 0
    for i in range(m):
        domains[CURSOR, i] = heads[first + i]
    while True:
        event = np.int64(-1)
        for i in range(m):
            while domains[CURSOR, i] < tails[first + i] and ring[UNTIL, domains[CURSOR, i]] < now:
                domains[CURSOR, i] += 1
            if domains[CURSOR, i] < tails[first + i] and (event < 0 or ring[EVENT, domains[CURSOR, i]] < event):
                event = ring[EVENT, domains[CURSOR, i]]
        if event < 0:
            return count
        count += 1 if shared else 0
        for i in range(m):
            if domains[CURSOR, i] < tails[first + i] and ring[EVENT, domains[CURSOR, i]] == event:
                domains[CURSOR, i] += 1
                count += 0 if shared else 1
