"""Forward checking over the domains of each query's variables, query by query and event by event in (t, arrival).

References: [CCQ] Algorithm 1 and 2, 3.3 CSP Solver, 4.2; Haralick and Elliott, *Increasing tree search efficiency*, 1980.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.constraint_queries.compiled import bare, inlined
from engine.constraint_queries.expiration import DOMAINS, NEVER, TIGHT, awaited
from engine.constraint_queries.pairs import (
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
    Floats,
    Graphs,
    Ints,
    consistent,
)  # fmt: skip
from engine.constraint_queries.rings import BITS, EVENT, LEAST_LONG, UNTIL, Rings, T, bucket, cell, chain

DONE, FULL_OUTPUT, NO_ROOM, TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS = range(5)
_STEPS, _STRETCH, _FEW = 8, 256, 63


class Taken(NamedTuple):
    """What the queries' filters let through, query by query in (t, arrival): rows `starts[q]` to `starts[q + 1]` are numbers of events and, bit by
    bit, the variables of q that may take them."""

    event: Ints
    bits: Ints
    starts: Ints


RING, MARK = 2, 4
BEGIN, END, LEFT, CHOSEN, NEXT, CURSOR, LAST, OWN, TAKES = range(9)
EMPTY, LOOKED, COLLECTED, MASKED = range(4)


class Pool(NamedTuple):
    """Where the search writes.

    Candidates of the other variables while an event completes a tuple: `whole` (5, n) with EVENT, T and BITS as in the rings, RING, the place
    there, and MARK, the level at which forward checking ruled it out, 0 while it has not; `place` (3, n). While it searches, `seats` (9, m) hold
    for each variable BEGIN and END of its candidates, how many are LEFT and which is CHOSEN (-1: none), for each level the variable that is NEXT
    and its CURSOR, the LAST time at which the new event is useful, and of a solution its OWN events and what TAKES them.
    `windows` (2, m, m): for V_i and V_j what of V_j's domain V_i's event reaches. Where that is little, candidates are the bits of `masks` (m, m):
    row l holds what is left of each domain at level l. `known` (4, m): EMPTY domains, those that were LOOKED at, those that are COLLECTED or MASKED.
    """

    whole: Ints
    place: Floats
    seats: Ints
    windows: Ints
    masks: Ints
    known: npt.NDArray[np.bool_]


class Found(NamedTuple):
    """Room for solutions: `query` of each, and its events, one solution behind the other."""

    query: Ints
    event: Ints


CANDIDATES, SEARCHES, SOLUTIONS = range(3)


def found_of(room: int, variables: int) -> Found:
    return Found(np.empty(room, np.int64), np.empty(room * max(variables, 1), np.int64))


def pool_of(room: int, variables: int) -> Pool:
    m = max(variables, 2)
    numbers = np.empty((5, room), np.int64), np.empty((3, room)), np.empty((9, m), np.int64)
    return Pool(*numbers, np.empty((2, m, m), np.int64), np.empty((m, m), np.int64), np.empty((4, m), np.bool_))


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
    pooled, pool_place, seats, windows, masks, known = pool.whole, pool.place, pool.seats, pool.windows, pool.masks, pool.known
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
        for i in range(m):
            stored += tails[v0 + i] - heads[v0 + i]
            for j in range(m):
                windows[0, i, j] = windows[1, i, j] = heads[v0 + j]
        while at < starts[q + 1]:
            e, bits = rows[at], row_bits[at]
            now, x, y, z = event_t[e], event_place[0, e], event_place[1, e], event_place[2, e]
            for v in range(v0, v0 + m):
                while heads[v] < tails[v] and ring[T, heads[v]] < now - roles[v, SPAN]:
                    heads[v] += 1
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
                useful, complete = True, True
                for j in range(m):
                    if j == i:
                        continue
                    # What is stored comes before the new event: where V_j must come after it, nothing fits.
                    if times[p + j, ORDER] > 0:
                        windows[0, i, j] = windows[1, i, j] = tails[v0 + j]
                    else:
                        windows[0, i, j] = _passed(ring, max(windows[0, i, j], heads[v0 + j]), tails[v0 + j], now + times[p + j, EARLIEST])
                        if times[p + j, LATEST] >= 0:
                            windows[1, i, j] = tails[v0 + j]
                        else:
                            windows[1, i, j] = _passed(ring, max(windows[0, i, j], windows[1, i, j]), tails[v0 + j], now + times[p + j, LATEST] + 1)
                    known[EMPTY, j] = windows[0, i, j] >= windows[1, i, j]
                    known[LOOKED, j], known[COLLECTED, j], known[MASKED, j] = known[EMPTY, j], False, False
                    if known[EMPTY, j]:
                        complete = False
                        useful = useful and times[p + j, LATEST] >= 0
                if not useful:
                    continue
                span = roles[v0 + i, SPAN]
                renewed, renewing = tight and roles[v0 + i, RENEWED] == 1, tight and span != NEVER and roles[v0 + i, RENEWING] == 1
                top, few = 0, True
                # First those whose emptiness makes the event useless, then the others, as long as anything depends on them.
                for turn in range(2):
                    for j in range(m):
                        if j == i or known[LOOKED, j] or (turn == 0) != (times[p + j, LATEST] < 0):
                            continue
                        mortal = tight and roles[v0 + j, RENEWED] == 1
                        if not (useful and (turn == 0 or complete or renewed or (renewing and mortal))):
                            continue
                        known[LOOKED, j] = True
                        a, b, reach = windows[0, i, j], windows[1, i, j], limits[p + j, REACH]
                        cells = b - a >= LEAST_LONG and corners[v0 + j] < corners[v0 + j + 1] and reach < np.inf
                        some, sure = True, False
                        if b - a <= _FEW:
                            mask, open_ones = _mask(ring, ring_place, a, b, x, y, z, reach, limits[p + j, NEAR], limits[p + j, APART], mortal, now)
                            for k in range(b - a if open_ones != 0 else 0):
                                if (open_ones >> k) & 1 and not consistent(
                                    exact, reach, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats,
                                    p + j, i < j, e, ring[EVENT, a + k],
                                ):  # fmt: skip
                                    mask ^= np.int64(1) << k
                            masks[0, j], known[MASKED, j], some, sure = mask, True, mask != 0, True
                        elif not cells:
                            some, sure = _near(ring, ring_place, a, b, x, y, z, reach, limits[p + j, NEAR], limits[p + j, APART], mortal, now)
                        few = few and known[MASKED, j]
                        if some and not sure:
                            # Long domains with cells, and pairs that numbers alone do not decide.
                            if cells:
                                end = _from_cells(
                                    ring_place, previous, buckets, corners[v0 + j], corners[v0 + j + 1], a, b, x, y, z, reach, side[v0 + j],
                                    pooled, top,
                                )  # fmt: skip
                            else:
                                end = _within(ring_place, a, b, x, y, z, reach, pooled, top)
                            end = _fitting(
                                limits, exact, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, ring, ring_place,
                                p + j, i < j, e, pooled, pool_place, top, end, mortal, now,
                            )  # fmt: skip
                            some, known[COLLECTED, j] = top < end, True
                            seats[BEGIN, j], seats[END, j], top = top, end, end
                        if not some:
                            known[EMPTY, j] = True
                            complete = False
                            useful = useful and times[p + j, LATEST] >= 0
                if not useful:
                    continue
                if span != NEVER:
                    keep |= np.int64(1) << i
                    entries += 1
                    seats[LAST, i] = now + (awaited(times, p, m, known, i, span) if renewed else span)
                search = complete and not (only_first and count > before)
                for j in range(m):
                    if j == i or known[EMPTY, j] or known[COLLECTED, j]:
                        continue
                    mortal = tight and roles[v0 + j, RENEWED] == 1
                    if (search and not few) or (renewing and mortal and not known[MASKED, j]):
                        end = _within(ring_place, windows[0, i, j], windows[1, i, j], x, y, z, limits[p + j, REACH], pooled, top)
                        end = _fitting(
                            limits, exact, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, ring, ring_place,
                            p + j, i < j, e, pooled, pool_place, top, end, mortal, now,
                        )  # fmt: skip
                        known[COLLECTED, j] = True
                        seats[BEGIN, j], seats[END, j], top = top, end, end
                looked_at += top
                if renewing:
                    # The stored events that may take part with the new one stay as long as it, but never longer than their own role allows.
                    for j in range(m):
                        if j == i or known[EMPTY, j] or roles[v0 + j, RENEWED] == 0:
                            continue
                        if known[MASKED, j]:
                            for r in range(windows[0, i, j], windows[1, i, j]):
                                if (masks[0, j] >> (r - windows[0, i, j])) & 1:
                                    ring[UNTIL, r] = max(ring[UNTIL, r], min(seats[LAST, i], ring[T, r] + roles[v0 + j, SPAN]))
                        else:
                            for k in range(seats[BEGIN, j], seats[END, j]):
                                r = pooled[RING, k]
                                ring[UNTIL, r] = max(ring[UNTIL, r], min(seats[LAST, i], ring[T, r] + roles[v0 + j, SPAN]))
                if search:
                    searched += 1
                    if few and m > 1:
                        count, filled = _solve_masks(
                            times, limits, exact, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                            ring, ring_place, windows, masks, seats, arrangements, arranged[q], arranged[q + 1], q, p0, m, e, bits, i, only_first,
                            found_query, found_event, count, filled, before + most_solutions,
                        )  # fmt: skip
                    else:
                        count, filled = _solve(
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


@inlined
def _passed(ring: Ints, low: int, high: int, time: int) -> Any:
    """The first place from `low` up to `high` with a time of at least `time`; mostly a few steps away."""
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


@inlined
def _mask(
    ring: Ints, place: Floats, low: int, high: int, x: float, y: float, z: float, reach: float, near: float, apart: float, mortal: bool, now: int
) -> Any:  # fmt: skip
    """Bit by bit which events of a short stretch are within reach, and which of them numbers alone do not decide."""
    mask, sure = np.int64(0), np.int64(0)
    for k in range(np.uint64(high - low)):
        n = np.uint64(low) + k
        across, along, up = place[0, n] - x, place[1, n] - y, place[2, n] - z
        chord = across * across + along * along + up * up
        mask |= np.int64(chord <= reach) << np.int64(k)
        sure |= np.int64((chord <= near) & (chord > apart)) << np.int64(k)
    if mortal:
        for k in range(high - low):
            mask &= ~(np.int64(ring[UNTIL, low + k] < now) << k)
    return mask, mask & ~sure


@inlined
def _near(
    ring: Ints, place: Floats, low: int, high: int, x: float, y: float, z: float, reach: float, near: float, apart: float, mortal: bool, now: int
) -> Any:  # fmt: skip
    """Whether some event of the stretch is within reach, and whether one surely is a candidate.

    Both are counted over a stretch at a time, newest first, without a branch: that runs on eight numbers at once.
    """
    some = np.int64(0)
    while high > low:
        begin = max(low, high - _STRETCH)
        sure = np.int64(0)
        if mortal:
            for k in range(np.uint64(begin), np.uint64(high)):
                across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
                chord = across * across + along * along + up * up
                there = ring[UNTIL, k] >= now
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


@inlined
def _within(place: Floats, low: int, high: int, x: float, y: float, z: float, reach: float, pooled: Ints, top: int) -> Any:
    """Places of the events of a stretch that are within reach, put into the pool from `top` on. Gives its new top."""
    for k in range(low, high):
        across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
        # Written always, counted when it is one: no branch to guess.
        pooled[RING, top] = k
        top += 1 if across * across + along * along + up * up <= reach else 0
    return top


@bare
def _from_cells(
    place: Floats, previous: Ints, buckets: Ints, first: int, last: int, low: int, high: int, x: float, y: float, z: float, reach: float, side: float,
    pooled: Ints, top: int,
) -> Any:  # fmt: skip
    """The same in order, looked up in the cells, whose buckets are `first` to `last`."""
    radius = math.sqrt(reach) * (1.0 + 1e-9)
    begin = top
    cx = cell(x - radius, side)
    while cx <= cell(x + radius, side):
        cy = cell(y - radius, side)
        while cy <= cell(y + radius, side):
            cz = cell(z - radius, side)
            while cz <= cell(z + radius, side):
                k = buckets[first + bucket(cx, cy, cz, last - first)]
                while k >= low:
                    across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
                    within = k < high and across * across + along * along + up * up <= reach
                    # Other cells may share the bucket.
                    if within and cell(place[0, k], side) == cx and cell(place[1, k], side) == cy and cell(place[2, k], side) == cz:
                        pooled[RING, top] = k
                        top += 1
                    k = previous[k]
                cz += 1.0
            cy += 1.0
        cx += 1.0
    _sort(pooled, begin, top)
    return top


@bare
def _sort(pooled: Ints, begin: int, end: int) -> None:
    """Sorts places in the ring (Shell's way: in place, without recursion)."""
    gap = (end - begin) // 2
    while gap > 0:
        for n in range(begin + gap, end):
            k, to = pooled[RING, n], n
            while to >= begin + gap and pooled[RING, to - gap] > k:
                pooled[RING, to] = pooled[RING, to - gap]
                to -= gap
            pooled[RING, to] = k
        gap = gap * 5 // 11 if gap != 2 else 1


@inlined
def _fitting(
    limits: Floats, exact: Floats, compared: Ints, comparisons: Ints, geodesic: bool, event_x: Floats, event_y: Floats, event_place: Floats,
    ints: Ints, floats: Floats, ring: Ints, place: Floats, pair: int, named_first: bool, e: int, pooled: Ints, pool_place: Floats, begin: int, end:
    int, mortal: bool, now: int,
) -> Any:  # fmt: skip
    """Of the events in the pool, places in the ring from `begin` to `end`, only those that are consistent with e, with their columns. Gives the
    new end."""
    near, apart, reach = limits[pair, NEAR], limits[pair, APART], limits[pair, REACH]
    x, y, z = event_place[0, e], event_place[1, e], event_place[2, e]
    to = begin
    for n in range(begin, end):
        k = pooled[RING, n]
        if mortal and ring[UNTIL, k] < now:
            continue
        across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
        chord = across * across + along * along + up * up
        if not (chord <= near and chord > apart) and not consistent(
            exact, reach, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, pair, named_first, e, ring[EVENT, k]
        ):  # fmt: skip
            continue
        pooled[RING, to], pooled[EVENT, to], pooled[T, to], pooled[BITS, to] = k, ring[EVENT, k], ring[T, k], ring[BITS, k]
        pool_place[0, to], pool_place[1, to], pool_place[2, to] = place[0, k], place[1, k], place[2, k]
        to += 1
    return to


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


@inlined
def _solve(
    times: Ints, limits: Floats, exact: Floats, compared: Ints, comparisons: Ints, geodesic: bool,
    event_t: Ints, event_x: Floats, event_y: Floats, event_place: Floats, ints: Ints, floats: Floats,
    pooled: Ints, pool_place: Floats, seats: Ints, arrangements: Ints, first_arranged: int, last_arranged: int,
    q: int, p0: int, m: int, e: int, bits: int, i: int, only_first: bool, found_query: Any, found_event: Any, count: int, filled: int, most: int,
) -> Any:  # fmt: skip
    """Adds the solutions in which V_i is event e: all of them (at most `most` + 1 in all), or the first one in the order of search.

    For `all` the smallest domain is next; for one witness variables come in their order and later events first, so that the witness does not
    depend on what happens to be stored. Gives the new numbers of solutions and of events in them, -1 when there is no room.
    """
    for j in range(m):
        seats[CHOSEN, j] = -1
        if j != i:
            seats[LEFT, j] = seats[END, j] - seats[BEGIN, j]
            for k in range(seats[BEGIN, j], seats[END, j]):
                pooled[MARK, k] = 0
    level = 1
    if m > 1:
        seats[NEXT, 1], seats[CURSOR, 1] = _next_variable(seats, i, m, only_first), 0
    while level > 0:
        whole = m == 1
        if not whole:
            j = seats[NEXT, level]
            begin, end = seats[BEGIN, j], seats[END, j]
            if seats[CHOSEN, j] >= 0:
                if level < m - 1:
                    _restore(pooled, seats, i, m, level)
                seats[CHOSEN, j] = -1
            k = seats[CURSOR, level]
            while k < end - begin and pooled[MARK, end - 1 - k if only_first else begin + k] != 0:
                k += 1
            seats[CURSOR, level] = k + 1
            if k == end - begin:
                level -= 1
                continue
            seats[CHOSEN, j] = end - 1 - k if only_first else begin + k
            whole = level == m - 1
        if whole:
            for one in range(m):
                seats[OWN, one], seats[TAKES, one] = e, bits
                if one != i:
                    seats[OWN, one], seats[TAKES, one] = pooled[EVENT, seats[CHOSEN, one]], pooled[BITS, seats[CHOSEN, one]]
            if first_arranged == last_arranged or _is_least(
                times, exact, limits, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                seats, arrangements, first_arranged, last_arranged, p0, m,
            ):  # fmt: skip
                if len(found_query) == count or len(found_event) < filled + m:
                    return -1, -1
                found_query[count] = q
                for one in range(m):
                    found_event[filled + one] = seats[OWN, one]
                count += 1
                filled += m
                if only_first or count > most or m == 1:
                    break
        elif _ruled_out(
            times, limits, exact, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats,
            pooled, pool_place, seats, p0, i, j, m, level,
        ):  # fmt: skip
            level += 1
            seats[NEXT, level], seats[CURSOR, level] = _next_variable(seats, i, m, only_first), 0
    return count, filled


@inlined
def _solve_masks(
    times: Ints, limits: Floats, exact: Floats, compared: Ints, comparisons: Ints, geodesic: bool,
    event_t: Ints, event_x: Floats, event_y: Floats, event_place: Floats, ints: Ints, floats: Floats,
    ring: Ints, place: Floats, windows: Ints, masks: Ints, seats: Ints, arrangements: Ints, first_arranged: int, last_arranged: int,
    q: int, p0: int, m: int, e: int, bits: int, i: int, only_first: bool, found_query: Any, found_event: Any, count: int, filled: int, most: int,
) -> Any:  # fmt: skip
    """The same as `_solve` for at least two variables whose candidates are bits of `masks`: in the same order, so with the same solutions."""
    for j in range(m):
        seats[CHOSEN, j] = -1
    level = 1
    seats[NEXT, 1], seats[CURSOR, 1] = _next_masked(windows, masks, seats, 0, i, m, only_first), 0
    while level > 0:
        j = seats[NEXT, level]
        low, length, mask = windows[0, i, j], windows[1, i, j] - windows[0, i, j], masks[level - 1, j]
        k = seats[CURSOR, level]
        while k < length and not (mask >> (length - 1 - k if only_first else k)) & 1:
            k += 1
        seats[CURSOR, level] = k + 1
        if k == length:
            seats[CHOSEN, j] = -1
            level -= 1
            continue
        chosen = low + (length - 1 - k if only_first else k)
        seats[CHOSEN, j] = chosen
        if level == m - 1:
            for one in range(m):
                seats[OWN, one], seats[TAKES, one] = e, bits
                if one != i:
                    seats[OWN, one], seats[TAKES, one] = ring[EVENT, seats[CHOSEN, one]], ring[BITS, seats[CHOSEN, one]]
            if first_arranged == last_arranged or _is_least(
                times, exact, limits, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                seats, arrangements, first_arranged, last_arranged, p0, m,
            ):  # fmt: skip
                if len(found_query) == count or len(found_event) < filled + m:
                    return -1, -1
                found_query[count] = q
                for one in range(m):
                    found_event[filled + one] = seats[OWN, one]
                count += 1
                filled += m
                if only_first or count > most:
                    break
            continue
        event, t, x, y, z = ring[EVENT, chosen], ring[T, chosen], place[0, chosen], place[1, chosen], place[2, chosen]
        possible = True
        for other in range(m):
            if other == i or seats[CHOSEN, other] >= 0:
                continue
            pair = p0 + j * m + other
            first, last, order = t + times[pair, EARLIEST], t + times[pair, LATEST], times[pair, ORDER]
            reach, near, apart = limits[pair, REACH], limits[pair, NEAR], limits[pair, APART]
            rest, base, left = masks[level - 1, other], windows[0, i, other], np.int64(0)
            for bit in range(windows[1, i, other] - base):
                # From the end that is taken first: where one is enough, the rest need not be looked at.
                at = windows[1, i, other] - base - 1 - bit if only_first else bit
                if not (rest >> at) & 1:
                    continue
                n = base + at
                across, along, up = place[0, n] - x, place[1, n] - y, place[2, n] - z
                chord = across * across + along * along + up * up
                fits = chord <= reach and ring[T, n] >= first and ring[T, n] <= last and ring[EVENT, n] != event
                fits = fits and (order == 0 or (order > 0) == (ring[EVENT, n] > event))
                if fits and not (chord <= near and chord > apart):
                    fits = consistent(
                        exact, reach, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats,
                        pair, j < other, event, ring[EVENT, n],
                    )  # fmt: skip
                if fits:
                    left |= np.int64(1) << at
                    if only_first and level == m - 2 and first_arranged == last_arranged:
                        break
            masks[level, other] = left
            if left == 0:
                possible = False
                break
        if possible:
            level += 1
            seats[NEXT, level], seats[CURSOR, level] = _next_masked(windows, masks, seats, level - 1, i, m, only_first), 0
    return count, filled


@inlined
def _next_masked(windows: Ints, masks: Ints, seats: Ints, level: int, i: int, m: int, in_order: bool) -> Any:
    best, least = -1, 0
    for j in range(m):
        if j == i or seats[CHOSEN, j] >= 0:
            continue
        size = 0
        if not in_order:
            for k in range(windows[1, i, j] - windows[0, i, j]):
                size += (masks[level, j] >> k) & 1
        if best < 0 or (not in_order and size < least):
            best, least = j, size
    return best


@inlined
def _next_variable(seats: Ints, i: int, m: int, in_order: bool) -> Any:
    best = -1
    for j in range(m):
        if j != i and seats[CHOSEN, j] < 0 and (best < 0 or (not in_order and seats[LEFT, j] < seats[LEFT, best])):
            best = j
    return best


@inlined
def _ruled_out(
    times: Ints, limits: Floats, exact: Floats, compared: Ints, comparisons: Ints, geodesic: bool,
    event_x: Floats, event_y: Floats, event_place: Floats, ints: Ints, floats: Floats,
    pooled: Ints, place: Floats, seats: Ints, p0: int, i: int, one: int, m: int, level: int,
) -> Any:  # fmt: skip
    """Rules out what does not go with the event chosen for V_one; false when a domain becomes empty."""
    own = seats[CHOSEN, one]
    event, t, x, y, z = pooled[EVENT, own], pooled[T, own], place[0, own], place[1, own], place[2, own]
    for j in range(m):
        if j == i or seats[CHOSEN, j] >= 0:
            continue
        pair = p0 + one * m + j
        first, last, order = t + times[pair, EARLIEST], t + times[pair, LATEST], times[pair, ORDER]
        reach, near, apart = limits[pair, REACH], limits[pair, NEAR], limits[pair, APART]
        for k in range(seats[BEGIN, j], seats[END, j]):
            if pooled[MARK, k] != 0:
                continue
            across, along, up = place[0, k] - x, place[1, k] - y, place[2, k] - z
            chord = across * across + along * along + up * up
            other = pooled[EVENT, k]
            fits = chord <= reach and pooled[T, k] >= first and pooled[T, k] <= last and other != event
            # Events are numbered in (t, arrival).
            fits = fits and (order == 0 or (order > 0) == (other > event))
            if fits and not (chord <= near and chord > apart):
                fits = consistent(
                    exact, reach, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, pair, one < j, event, other
                )  # fmt: skip
            if not fits:
                pooled[MARK, k] = level
                seats[LEFT, j] -= 1
        if seats[LEFT, j] == 0:
            return False
    return True


@inlined
def _restore(pooled: Ints, seats: Ints, i: int, m: int, level: int) -> None:
    """Takes back what was ruled out at `level`."""
    for j in range(m):
        if j == i or seats[CHOSEN, j] >= 0:
            continue
        for k in range(seats[BEGIN, j], seats[END, j]):
            if pooled[MARK, k] == level:
                pooled[MARK, k] = 0
                seats[LEFT, j] += 1


@bare
def _is_least(
    times: Ints, exact: Floats, limits: Floats, compared: Ints, comparisons: Ints, geodesic: bool,
    event_t: Ints, event_x: Floats, event_y: Floats, event_place: Floats, ints: Ints, floats: Floats,
    seats: Ints, arrangements: Ints, first: int, last: int, p0: int, m: int,
) -> Any:  # fmt: skip
    """Whether no other arrangement of the symmetric variables' events is a solution that comes first in (t, arrival), variable by variable."""
    for at in range(first, last, m):
        earlier = False
        for j in range(m):
            if arrangements[at + j] != j:
                earlier = seats[OWN, arrangements[at + j]] < seats[OWN, j]
                break
        if not earlier:
            continue
        satisfied = True
        for one in range(m):
            satisfied = satisfied and (seats[TAKES, arrangements[at + one]] >> one) & 1 == 1
        for one in range(m):
            for other in range(one + 1, m):
                if satisfied:
                    a, b, pair = seats[OWN, arrangements[at + one]], seats[OWN, arrangements[at + other]], p0 + one * m + other
                    apart = event_t[b] - event_t[a]
                    satisfied = times[pair, EARLIEST] <= apart <= times[pair, LATEST] and consistent(
                        exact, limits[pair, REACH], compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats, pair, True, a, b
                    )  # fmt: skip
        if satisfied:
            return False
    return True
