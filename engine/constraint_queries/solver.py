"""Each query's events in (t, arrival): what becomes of its variables' domains, and which solutions an event completes.

References: [CCQ] Algorithm 1 and 2, 4.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.constraint_queries.candidates import fitting, from_cells, masked, near_any, passed, within
from engine.constraint_queries.compiled import bare
from engine.constraint_queries.expiration import DOMAINS, NEVER, TIGHT, awaited
from engine.constraint_queries.pairs import (
    AFTER,
    APART,
    EARLIEST,
    IDLE,
    KEPT,
    LATEST,
    NEAR,
    ORDER,
    REACH,
    RENEWED,
    RENEWING,
    SPAN,
    Events,
    Graphs,
    Ints,
    consistent,
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
    Pool,
    Taken,
)
from engine.constraint_queries.rings import BITS, EVENT, LEAST_LONG, UNTIL, Rings, T, chain
from engine.constraint_queries.search import solve, solve_masks
from engine.index.bits import lowest_bit

DONE, FULL_OUTPUT, NO_ROOM, TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS = range(5)
_FEW = 63
"""Candidates that are the bits of one number."""


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
    # Names for what the loops read: taking an array out of a tuple, or a tuple into a function, costs more than most of what is done with it.
    variables, pairs, times, limits, roles, side = graphs.variables, graphs.pairs, graphs.times, graphs.limits, graphs.roles, graphs.side
    form, only_firsts, geodesic = graphs.form, graphs.only_first, graphs.geodesic
    exact, compared, comparisons, arranged, arrangements = graphs.exact, graphs.compared, graphs.comparisons, graphs.arranged, graphs.arrangements
    event_t, event_x, event_y, event_place, ints, floats = events.t, events.x, events.y, events.place, events.ints, events.floats
    ring, ring_place, heads, tails = rings.whole, rings.place, rings.heads, rings.tails
    previous, buckets, corners = rings.previous, rings.buckets, rings.corners
    pooled, pool_place, seats, windows, masks = pool.whole, pool.place, pool.seats, pool.windows, pool.masks
    found_query, found_event = found.query, found.event
    rows, row_bits, starts = taken.event, taken.bits, taken.starts
    count, filled, reason, figure = 0, 0, DONE, 0
    q = 0
    while at < len(rows) and reason == DONE:
        while starts[q + 1] <= at:
            q += 1
        v0, p0 = variables[q], pairs[q]
        m = variables[q + 1] - v0
        tight, shared, only_first = form[q] == TIGHT, form[q] != DOMAINS, only_firsts[q]
        stored = 0
        before_now = NEVER
        for i in range(m):
            stored += tails[v0 + i] - heads[v0 + i]
            seats[ASKED, i] = NEVER
            for j in range(m):
                windows[0, i, j] = windows[1, i, j] = heads[v0 + j]
        while at < starts[q + 1]:
            e, bits = rows[at], row_bits[at]
            now, x, y, z = event_t[e], event_place[0, e], event_place[1, e], event_place[2, e]
            for v in range(v0, v0 + m if now != before_now else v0):
                while heads[v] < tails[v] and ring[T, heads[v]] < now - roles[v, SPAN]:
                    heads[v] += 1
            before_now = now
            keep, entries, before, filled_before, looked_at, searched = np.int64(0), 0, count, filled, 0, 0
            for i in range(m):
                if not (bits >> i) & 1:
                    continue
                if roles[v0 + i, IDLE] == 1:
                    keep |= np.int64(1) << i
                    entries += 1
                    seats[LAST, i] = now + roles[v0 + i, KEPT]
                    continue
                p = p0 + i * m
                # Bit by bit for V_j: whether its domain holds nothing that goes with the event; whether that was looked at; where candidates are.
                empty, collected, masked_ones = np.int64(0), np.int64(0), np.int64(0)
                useful, moved = True, seats[ASKED, i] != now
                seats[ASKED, i] = now
                for j in range(m):
                    if j == i:
                        continue
                    # What is stored comes before the new event: where V_j must come after it, nothing fits.
                    if times[p + j, ORDER] > 0:
                        windows[0, i, j] = windows[1, i, j] = tails[v0 + j]
                    else:
                        # At the same time again only events of that time are new.
                        if moved or times[p + j, EARLIEST] > 0:
                            windows[0, i, j] = passed(ring, max(windows[0, i, j], heads[v0 + j]), tails[v0 + j], now + times[p + j, EARLIEST])
                        if times[p + j, LATEST] >= 0:
                            windows[1, i, j] = tails[v0 + j]
                        elif moved:
                            windows[1, i, j] = passed(ring, max(windows[0, i, j], windows[1, i, j]), tails[v0 + j], now + times[p + j, LATEST] + 1)
                    if windows[0, i, j] >= windows[1, i, j]:
                        empty |= np.int64(1) << j
                        useful = useful and times[p + j, AFTER] >= 0
                if not useful:
                    continue
                span = roles[v0 + i, SPAN]
                renewed, renewing = tight and roles[v0 + i, RENEWED] == 1, tight and span != NEVER and roles[v0 + i, RENEWING] == 1
                top, few, looked = 0, True, empty | (np.int64(1) << i)
                # First those whose emptiness makes the event useless, then the others, as long as anything depends on them.
                for turn in range(2):
                    for j in range(m):
                        if (looked >> j) & 1 or (turn == 0) != (times[p + j, AFTER] < 0):
                            continue
                        mortal = tight and roles[v0 + j, RENEWED] == 1
                        if not (useful and (turn == 0 or empty == 0 or renewed or (renewing and mortal))):
                            continue
                        looked |= np.int64(1) << j
                        a, b, reach = windows[0, i, j], windows[1, i, j], limits[p + j, REACH]
                        cells = b - a >= LEAST_LONG and corners[v0 + j] < corners[v0 + j + 1] and reach < np.inf
                        some, sure = True, False
                        if b - a <= _FEW:
                            mask, open_ones = masked(ring, ring_place, a, b, x, y, z, reach, limits[p + j, NEAR], limits[p + j, APART], mortal, now)
                            while open_ones != 0:
                                k = lowest_bit(open_ones)
                                open_ones &= open_ones - 1
                                if not consistent(
                                    exact, reach, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats,
                                    p + j, i < j, e, ring[EVENT, a + k],
                                ):  # fmt: skip
                                    mask ^= np.int64(1) << k
                            masks[0, j], some, sure = mask, mask != 0, True
                            masked_ones |= np.int64(1) << j
                        elif not cells:
                            some, sure = near_any(ring, ring_place, a, b, x, y, z, reach, limits[p + j, NEAR], limits[p + j, APART], mortal, now)
                        few = few and b - a <= _FEW
                        if some and not sure:
                            # Long domains with cells, and pairs that numbers alone do not decide.
                            if cells:
                                end = from_cells(
                                    ring_place, previous, buckets, corners[v0 + j], corners[v0 + j + 1], a, b, x, y, z, reach, side[v0 + j],
                                    pooled, top,
                                )  # fmt: skip
                            else:
                                end = within(ring_place, a, b, x, y, z, reach, pooled, top)
                            end = fitting(
                                limits, exact, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, ring, ring_place,
                                p + j, i < j, e, pooled, pool_place, top, end, mortal, now,
                            )  # fmt: skip
                            some = top < end
                            collected |= np.int64(1) << j
                            seats[BEGIN, j], seats[END, j], top = top, end, end
                        if not some:
                            empty |= np.int64(1) << j
                            useful = useful and times[p + j, AFTER] >= 0
                if not useful:
                    continue
                if span != NEVER:
                    keep |= np.int64(1) << i
                    entries += 1
                    seats[LAST, i] = now + (awaited(times[p : p + m, AFTER], m, empty, i, span) if renewed else span)
                search = empty == 0 and not (only_first and count > before)
                for j in range(m):
                    if j == i or ((empty | collected) >> j) & 1:
                        continue
                    mortal = tight and roles[v0 + j, RENEWED] == 1
                    if (search and not few) or (renewing and mortal and not (masked_ones >> j) & 1):
                        end = within(ring_place, windows[0, i, j], windows[1, i, j], x, y, z, limits[p + j, REACH], pooled, top)
                        end = fitting(
                            limits, exact, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, ring, ring_place,
                            p + j, i < j, e, pooled, pool_place, top, end, mortal, now,
                        )  # fmt: skip
                        collected |= np.int64(1) << j
                        seats[BEGIN, j], seats[END, j], top = top, end, end
                looked_at += top
                if renewing:
                    # The stored events that may take part with the new one stay as long as it, but never longer than their own role allows.
                    for j in range(m):
                        if j == i or (empty >> j) & 1 or roles[v0 + j, RENEWED] == 0:
                            continue
                        if (masked_ones >> j) & 1:
                            rest = masks[0, j]
                            while rest != 0:
                                r = windows[0, i, j] + lowest_bit(rest)
                                rest &= rest - 1
                                ring[UNTIL, r] = max(ring[UNTIL, r], min(seats[LAST, i], ring[T, r] + roles[v0 + j, SPAN]))
                        else:
                            for k in range(seats[BEGIN, j], seats[END, j]):
                                r = pooled[RING, k]
                                ring[UNTIL, r] = max(ring[UNTIL, r], min(seats[LAST, i], ring[T, r] + roles[v0 + j, SPAN]))
                if search:
                    searched += 1
                    if few and m > 1:
                        count, filled = solve_masks(
                            times, limits, exact, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                            ring, ring_place, windows, masks, seats, arrangements, arranged[q], arranged[q + 1], q, p0, m, e, bits, i, only_first,
                            found_query, found_event, count, filled, before + most_solutions,
                        )  # fmt: skip
                    else:
                        count, filled = solve(
                            times, limits, exact, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                            pooled, pool_place, seats, arrangements, arranged[q], arranged[q + 1], q, p0, m, e, bits, i, only_first,
                            found_query, found_event, count, filled, before + most_solutions,
                        )  # fmt: skip
                    if count < 0:
                        break
            if count < 0:
                count, filled, reason = before, filled_before, NO_ROOM
                break
            for i in range(m):
                if (keep >> i) & 1:
                    v = v0 + i
                    k = tails[v]
                    ring[EVENT, k], ring[T, k], ring[UNTIL, k], ring[BITS, k] = e, now, seats[LAST, i], bits
                    ring_place[0, k], ring_place[1, k], ring_place[2, k] = x, y, z
                    tails[v] = k + 1
                    if corners[v] < corners[v + 1]:
                        chain(ring_place, previous, buckets, corners[v], corners[v + 1] - corners[v], k, side[v])
            at += 1
            work[CANDIDATES] += looked_at
            work[SEARCHES] += searched
            work[SOLUTIONS] += count - before
            if keep != 0:
                # `stored` is at least what is stored; it is counted when that might be too much.
                stored += 1 if shared else entries
                if stored > most_events:
                    stored = _kept(ring, heads, tails, v0, v0 + m, now, shared, seats)
                    if stored > most_events:
                        reason, figure = TOO_MANY_EVENTS, stored
                        break
            if count - before > most_solutions:
                reason, figure = TOO_MANY_SOLUTIONS, count - before
                break
            if count >= room:
                reason = FULL_OUTPUT
                break
    return at, count, filled, reason, q, figure


@bare
def _kept(ring: Ints, heads: Ints, tails: Ints, first: int, last: int, now: int, shared: bool, seats: Ints) -> Any:
    """How many events the variables from `first` up to `last` keep at `now`; `shared`: together, else one for each that keeps it."""
    m = last - first
    count = 0
    for i in range(m):
        seats[CURSOR, i] = heads[first + i]
    while True:
        event = np.int64(-1)
        for i in range(m):
            while seats[CURSOR, i] < tails[first + i] and ring[UNTIL, seats[CURSOR, i]] < now:
                seats[CURSOR, i] += 1
            if seats[CURSOR, i] < tails[first + i] and (event < 0 or ring[EVENT, seats[CURSOR, i]] < event):
                event = ring[EVENT, seats[CURSOR, i]]
        if event < 0:
            return count
        count += 1 if shared else 0
        for i in range(m):
            if seats[CURSOR, i] < tails[first + i] and ring[EVENT, seats[CURSOR, i]] == event:
                seats[CURSOR, i] += 1
                count += 0 if shared else 1
