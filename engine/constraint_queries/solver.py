"""Processes each query's events in (t, arrival): updates its variables' domains, and finds the solutions that an event completes.

The arrays travel together, as Graphs, Events, Rings and Pool: everything but `advance` is put into its place, where that costs nothing.

References: [CCQ] Algorithm 1 and 2, 4.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.constraint_queries.candidates import fitting, from_cells, masked, near_any, passed, within
from engine.constraint_queries.compiled import bare, inlined
from engine.constraint_queries.expiration import NEVER, awaited
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
    Events,
    Graphs,
    Ints,
    Question,
    go_together,
    question,
)  # fmt: skip
from engine.constraint_queries.pool import (
    ASKED,
    BEGIN,
    CANDIDATES,
    CURSOR,
    END,
    LAST,
    RING,
    SEARCHES,
    SOLUTIONS,
    Found,
    Newcomer,
    Numbers,
    Pool,
    Taken,
    numbers,
)
from engine.constraint_queries.rings import BITS, EVENT, LEAST_LONG, UNTIL, Rings, T, chain
from engine.constraint_queries.search import solve, solve_masks
from engine.index.bits import lowest_bit

DONE, FULL_OUTPUT, NO_ROOM, TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS = range(5)
_FEW = 63
"""Candidates that are the bits of one number."""


class Look(NamedTuple):
    """What was seen of the other variables' domains for an event as V_i; bit j stands for V_j.

    `empty`: nothing stored goes with the event; `masked`: the candidates are the bits of row 0 of the pool's masks; `listed`: they are in the pool,
    which is filled up to `top`. `few`: all windows that were looked at are short. `useful`: the event may still be V_i's.
    """

    empty: Any
    masked: Any
    listed: Any
    top: Any
    few: bool
    useful: bool


@bare
def advance(
    graphs: Graphs, events: Events, rings: Rings, taken: Taken, pool: Pool, found: Found, at: int,
    most_events: int, most_solutions: int, room: int, work: Ints,
) -> Any:  # fmt: skip
    """Takes the rows of `taken` from number `at` on until all are taken or `room` solutions are found.

    `rings` have room for all of them, `pool` for all events of any query. Gives (next row, solutions, events in them, reason to stop, query and
    number of events or solutions then). When `found` has no room for the solutions of the next row, nothing is done with it. A solution comes with
    its latest event. `work` counts candidates, searches and solutions.
    """
    count, filled, reason, figure, q = 0, 0, DONE, 0, 0
    while at < len(taken.event) and reason == DONE:
        while taken.starts[q + 1] <= at:
            q += 1
        query = numbers(graphs, q)
        before_now: Any = NEVER
        stored = _begin(rings, pool, query)
        while at < taken.starts[q + 1] and reason == DONE:
            e = taken.event[at]
            new = Newcomer(e, taken.bits[at], events.t[e], events.place[0, e], events.place[1, e], events.place[2, e])
            if new.t != before_now:
                _drop(graphs, rings, query, new.t)
                before_now = new.t
            before, filled_before = count, filled
            keep, candidates, searches, count, filled = _taken_as_each(graphs, events, rings, pool, found, query, new, count, filled, most_solutions)
            if count < 0:
                count, filled, reason = before, filled_before, NO_ROOM
                break
            at += 1
            work[CANDIDATES] += candidates
            work[SEARCHES] += searches
            work[SOLUTIONS] += count - before
            entries = _enter(graphs, rings, pool, query, new, keep)
            # `stored` is at least what is stored; it is counted when that might be too much.
            stored += entries if not query.shared else min(entries, 1)
            if entries > 0 and stored > most_events:
                stored = _kept(
                    rings.whole, rings.heads, rings.tails, query.first, query.first + query.m, new.t, query.shared, pool.domains
                )  # fmt: skip
            if entries > 0 and stored > most_events:
                reason, figure = TOO_MANY_EVENTS, stored
            elif count - before > most_solutions:
                reason, figure = TOO_MANY_SOLUTIONS, count - before
            elif count >= room:
                reason = FULL_OUTPUT
    return at, count, filled, reason, q, figure


@inlined
def _begin(rings: Rings, pool: Pool, query: Numbers) -> Any:
    """Makes the query's windows begin with its domains. Gives how many events these hold, over ones included."""
    v0, m = query.first, query.m
    stored = 0
    for i in range(m):
        stored += rings.tails[v0 + i] - rings.heads[v0 + i]
        pool.domains[ASKED, i] = NEVER
        for j in range(m):
            pool.windows[0, i, j] = pool.windows[1, i, j] = rings.heads[v0 + j]
    return stored


@inlined
def _drop(graphs: Graphs, rings: Rings, query: Numbers, now: int) -> None:
    """Takes what is over by its variable's span from the domains' fronts."""
    for v in range(query.first, query.first + query.m):
        while rings.heads[v] < rings.tails[v] and rings.whole[T, rings.heads[v]] < now - graphs.roles[v, SPAN]:
            rings.heads[v] += 1


@inlined
def _enter(graphs: Graphs, rings: Rings, pool: Pool, query: Numbers, new: Newcomer, keep: int) -> Any:
    """Puts the event into the domains of the variables `keep` (bits). Gives how many they are."""
    v0, entries = query.first, 0
    for v in range(v0, query.first + query.m):
        if (keep >> (v - v0)) & 1:
            k = rings.tails[v]
            rings.whole[EVENT, k], rings.whole[T, k], rings.whole[BITS, k] = new.event, new.t, new.bits
            rings.whole[UNTIL, k] = pool.domains[LAST, v - v0]
            rings.place[0, k], rings.place[1, k], rings.place[2, k] = new.x, new.y, new.z
            rings.tails[v] = k + 1
            entries += 1
            first, last = rings.corners[v], rings.corners[v + 1]
            if first < last:
                chain(rings.place, rings.previous, rings.buckets, first, last - first, k, graphs.side[v])
    return entries


# -- an event as one of the variables -------------------------------------------------------------------------------------------------


@inlined
def _taken_as_each(
    graphs: Graphs, events: Events, rings: Rings, pool: Pool, found: Found, query: Numbers, new: Newcomer, count: int, filled: int,
    most_solutions: int,
) -> Any:  # fmt: skip
    """Adds the solutions that the event completes as any variable, renews what they wait for, and gives (the variables that keep it as bits, with
    their last times in `domains`, candidates looked at, searches, solutions, events in them): solutions are -1 when there is no room."""
    v0, m, domains = query.first, query.m, pool.domains
    keep, candidates, searches, before = np.int64(0), 0, 0, count
    for i in range(m):
        if not (new.bits >> i) & 1:
            continue
        if graphs.roles[v0 + i, IDLE] == 1:
            keep |= np.int64(1) << i
            domains[LAST, i] = new.t + graphs.roles[v0 + i, KEPT]
            continue
        look = _look(graphs, events, rings, pool, query, i, new, _moved(graphs, rings, pool, query, i, new.t))
        if not look.useful:
            continue
        if graphs.roles[v0 + i, SPAN] != NEVER:
            keep |= np.int64(1) << i
            domains[LAST, i] = new.t + _useful_for(graphs, query, i, look.empty)
        search = look.empty == 0 and not (query.only_first and count > before)
        look = _list_rest(graphs, events, rings, pool, query, i, new, look, search and not look.few)
        candidates += look.top
        if _is_renewing(graphs, query, i):
            _renew(graphs, rings, pool, query, i, look)
        if search:
            searches += 1
            if look.few and m > 1:
                count, filled = solve_masks(graphs, events, rings, pool, found, query, i, new, count, filled, before + most_solutions)
            else:
                count, filled = solve(graphs, events, pool, found, query, i, new, count, filled, before + most_solutions)
            if count < 0:
                break
    return keep, candidates, searches, count, filled


@inlined
def _is_renewed(graphs: Graphs, query: Numbers, i: int) -> Any:
    """Whether what V_i keeps may be over before its span, and be renewed."""
    return query.tight and graphs.roles[query.first + i, RENEWED] == 1


@inlined
def _is_renewing(graphs: Graphs, query: Numbers, i: int) -> Any:
    """Whether an event of V_i may renew others'."""
    v = query.first + i
    return query.tight and graphs.roles[v, RENEWING] == 1 and graphs.roles[v, SPAN] != NEVER


@inlined
def _useful_for(graphs: Graphs, query: Numbers, i: int, empty: int) -> Any:
    """How long V_i keeps an event with which nothing stored of the variables `empty` goes."""
    m, p, span = query.m, query.pairs + i * query.m, graphs.roles[query.first + i, SPAN]
    return awaited(graphs.times[p : p + m, AFTER], m, empty, i, span) if _is_renewed(graphs, query, i) else span


@inlined
def _moved(graphs: Graphs, rings: Rings, pool: Pool, query: Numbers, i: int, now: int) -> Any:
    """Moves V_i's windows on to `now`: what of the other domains its event may go with by time. Gives the first look at them."""
    v0, m, p, times = query.first, query.m, query.pairs + i * query.m, graphs.times
    ring, heads, tails, windows = rings.whole, rings.heads, rings.tails, pool.windows
    # At the same time again only events of that time are new.
    later, empty, useful = pool.domains[ASKED, i] != now, np.int64(0), True
    pool.domains[ASKED, i] = now
    for j in range(m):
        if j == i:
            continue
        end = tails[v0 + j]
        if times[p + j, ORDER] > 0:
            # What is stored comes before the new event: where V_j must come after it, nothing fits.
            windows[0, i, j] = windows[1, i, j] = end
        else:
            if later or times[p + j, EARLIEST] > 0:
                windows[0, i, j] = passed(ring, max(windows[0, i, j], heads[v0 + j]), end, now + times[p + j, EARLIEST])
            if times[p + j, LATEST] >= 0:
                windows[1, i, j] = end
            elif later:
                windows[1, i, j] = passed(ring, max(windows[0, i, j], windows[1, i, j]), end, now + times[p + j, LATEST] + 1)
        if windows[0, i, j] >= windows[1, i, j]:
            empty |= np.int64(1) << j
            useful = useful and times[p + j, AFTER] >= 0
    return Look(empty, np.int64(0), np.int64(0), np.int64(0), True, useful)


@inlined
def _look(graphs: Graphs, events: Events, rings: Rings, pool: Pool, query: Numbers, i: int, new: Newcomer, look: Look) -> Any:
    """Looks at the other domains: first at those whose emptiness makes the event useless, then at the others, as long as anything depends on them."""
    m, p = query.m, query.pairs + i * query.m
    renewed, renewing = _is_renewed(graphs, query, i), _is_renewing(graphs, query, i)
    rest = ~(look.empty | (np.int64(1) << i))
    for turn in range(2):
        for j in range(m):
            if not (rest >> j) & 1 or (turn == 0) != (graphs.times[p + j, AFTER] < 0):
                continue
            mortal = _is_renewed(graphs, query, j)
            if look.useful and (turn == 0 or look.empty == 0 or renewed or (renewing and mortal)):
                look = _look_at(graphs, events, rings, pool, query, i, j, new, look, mortal)
    return look


@inlined
def _look_at(
    graphs: Graphs, events: Events, rings: Rings, pool: Pool, query: Numbers, i: int, j: int, new: Newcomer, look: Look, mortal: bool
) -> Any:
    """Looks whether anything in V_i's window of V_j's domain goes with the event; of `mortal` events those that are not over."""
    v, asked, one = query.first + j, question(graphs, query.pairs + i * query.m + j, i < j), np.int64(1) << j
    a, b = pool.windows[0, i, j], pool.windows[1, i, j]
    bits, listed, top, some, sure = look.masked, look.listed, look.top, True, False
    if b - a <= _FEW:
        mask = _mask(graphs, events, rings, asked, new, a, b, mortal)
        pool.masks[0, j], some, sure = mask, mask != 0, True
        bits |= one
    else:
        cells = b - a >= LEAST_LONG and rings.corners[v] < rings.corners[v + 1] and asked.reach < np.inf
        if not cells:
            some, sure = near_any(rings, a, b, asked, new, mortal)
        if some and not sure:
            # Long domains with cells, and pairs that numbers alone do not decide.
            top = _list(graphs, events, rings, pool, query, i, j, new, look.top, mortal, cells)
            some = look.top < top
            listed |= one
    empty, useful = look.empty, look.useful
    if not some:
        empty |= one
        useful = useful and graphs.times[asked.pair, AFTER] >= 0
    return Look(empty, bits, listed, top, look.few and b - a <= _FEW, useful)


@inlined
def _mask(graphs: Graphs, events: Events, rings: Rings, asked: Question, new: Newcomer, a: int, b: int, mortal: bool) -> Any:
    """Which events of a short window go with the new one, as bits."""
    mask, unsure = masked(rings, a, b, asked, new, mortal)
    while unsure != 0:
        k = lowest_bit(unsure)
        unsure &= unsure - 1
        if not go_together(graphs, events, asked.pair, asked.named_first, new.event, rings.whole[EVENT, a + k]):
            mask ^= np.int64(1) << k
    return mask


@inlined
def _list(
    graphs: Graphs, events: Events, rings: Rings, pool: Pool, query: Numbers, i: int, j: int, new: Newcomer, top: int, mortal: bool, cells: bool
) -> Any:
    """Puts what of V_i's window of V_j's domain goes with the event into the pool from `top` on, and takes its domains. Gives the pool's new top."""
    v, asked = query.first + j, question(graphs, query.pairs + i * query.m + j, i < j)
    a, b = pool.windows[0, i, j], pool.windows[1, i, j]
    pooled, side = pool.whole, graphs.side[v]
    end = from_cells(rings, v, a, b, side, asked, new, pooled, top) if cells else within(rings.place, a, b, asked, new, pooled, top)
    end = fitting(graphs, events, rings, pool, asked, new, top, end, mortal)
    pool.domains[BEGIN, j], pool.domains[END, j] = top, end
    return end


@inlined
def _list_rest(graphs: Graphs, events: Events, rings: Rings, pool: Pool, query: Numbers, i: int, new: Newcomer, look: Look, everything: bool) -> Any:
    """Lists the candidates that are not listed yet: `everything` for a search in lists, else those of long windows that are to be renewed."""
    m, renewing = query.m, _is_renewing(graphs, query, i)
    listed, top = look.listed, look.top
    for j in range(m):
        if j == i or ((look.empty | listed) >> j) & 1:
            continue
        mortal = _is_renewed(graphs, query, j)
        if everything or (renewing and mortal and not (look.masked >> j) & 1):
            top = _list(graphs, events, rings, pool, query, i, j, new, top, mortal, False)
            listed |= np.int64(1) << j
    return Look(look.empty, look.masked, listed, top, look.few, look.useful)


@inlined
def _renew(graphs: Graphs, rings: Rings, pool: Pool, query: Numbers, i: int, look: Look) -> None:
    """The stored events that may take part with the new one stay as long as it, but never longer than their own role allows."""
    v0, m, last = query.first, query.m, pool.domains[LAST, i]
    for j in range(m):
        if j == i or (look.empty >> j) & 1 or graphs.roles[v0 + j, RENEWED] == 0:
            continue
        span = graphs.roles[v0 + j, SPAN]
        if (look.masked >> j) & 1:
            rest = pool.masks[0, j]
            while rest != 0:
                _stay(rings.whole, pool.windows[0, i, j] + lowest_bit(rest), last, span)
                rest &= rest - 1
        else:
            for k in range(pool.domains[BEGIN, j], pool.domains[END, j]):
                _stay(rings.whole, pool.whole[RING, k], last, span)


@inlined
def _stay(ring: Ints, k: int, last: int, span: int) -> None:
    ring[UNTIL, k] = max(ring[UNTIL, k], min(last, ring[T, k] + span))


@bare
def _kept(ring: Ints, heads: Ints, tails: Ints, first: int, last: int, now: int, shared: bool, domains: Ints) -> Any:
    """How many events the variables from `first` up to `last` keep at `now`; `shared`: together, else one for each that keeps it."""
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
