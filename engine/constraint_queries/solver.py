"""Forward checking over the domains of a query's variables, event by event in (t, arrival).

References: [CCQ] Algorithm 1 and 2, 3.3 CSP Solver; Haralick and Elliott, *Increasing tree search efficiency*, 1980.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.constraint_queries.expiration import DOMAINS, NEVER, TIGHT, awaited, expire, longest, push
from engine.constraint_queries.pairs import NO, YES, Graph, Ints, Rows, before, consistent, limits_of, verdict

DONE, FULL_OUTPUT, TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS = range(4)


class Book(NamedTuple):
    """What is known of the stored events besides themselves.

    `expires`: last time at which each is useful; `gone`: it is over. `members[i, heads[i] : tails[i]]` are the events kept for V_i in (t, arrival).
    `times`, `events`: the heap of expirations. `size` holds: events stored in all, those not gone, heap entries, the greatest number not gone.
    """

    expires: Ints
    gone: npt.NDArray[np.bool_]
    members: Ints
    heads: Ints
    tails: Ints
    times: Ints
    events: Ints
    size: Ints


class Work(NamedTuple):
    """Work counted in the paper's words, as arrays of one element."""

    candidates: Ints
    searches: Ints
    solutions: Ints


STORED, KEPT, ENTRIES, PEAK = range(4)


@njit(cache=True, nogil=True)
def advance(
    graph: Graph,
    form: int,
    only_first: bool,
    kept: Rows,
    book: Book,
    new: Rows,
    at: int,
    most_events: int,
    most_solutions: int,
    room: int,
    work: Work,
) -> Any:
    """Takes the events of `new` from number `at` on, in (t, arrival), until all are taken or `room` solutions are found.

    `kept` has room for all of them in every role. Gives (number of the next event, solutions (n, m), reason to stop): a solution holds for each
    variable the stored event's number or, for the completing one, ~number in `new`.
    """
    m = len(graph.latest)
    found = np.empty((64, m), np.int64)
    count = 0
    pool = np.empty(64, np.int64)
    marks = np.zeros(64, np.int16)
    starts, sizes, chosen = np.zeros(m + 1, np.int64), np.zeros(m, np.int64), np.zeros(m, np.int64)
    reason = DONE
    while at < len(new.t):
        now = new.t[at]
        entries, went = expire(book.expires, book.gone, book.times, book.events, book.size[ENTRIES], now)
        book.size[ENTRIES] = entries
        book.size[KEPT] -= went
        roles, until = np.int64(0), NEVER
        began = count
        for i in range(m):
            if not (new.unary[at] >> i) & 1:
                continue
            useful, complete, pool, marks = _domains(graph, form, kept, book, new, at, i, pool, marks, starts, sizes)
            work.candidates[0] += starts[m]
            if not useful:
                continue
            span = longest(graph, i)
            if span != NEVER:
                ends = now + (awaited(graph, i, sizes) if form == TIGHT else span)
                if form == TIGHT:
                    _renew(graph, kept, book, pool, starts, ends)
                if form == DOMAINS:
                    _store(kept, book, new, at, np.int64(1) << i, ends)
                else:
                    roles |= np.int64(1) << i
                    until = max(until, ends)
            if complete and not graph.blocked[i] and not (only_first and count > began):
                work.searches[0] += 1
                found, count = _solve(graph, only_first, kept, new, at, i, pool, marks, starts, sizes, chosen, found, count, began + most_solutions)
        if roles:
            _store(kept, book, new, at, roles, until)
        work.solutions[0] += count - began
        at += 1
        if book.size[KEPT] > most_events:
            reason = TOO_MANY_EVENTS
            break
        if count - began > most_solutions:
            reason = TOO_MANY_SOLUTIONS
            break
        if count >= room:
            reason = FULL_OUTPUT
            break
    return at, found[:count], reason


@njit(cache=True, nogil=True)
def _domains(graph: Graph, form: int, kept: Rows, book: Book, new: Rows, at: int, i: int, pool: Any, marks: Any, starts: Ints, sizes: Ints) -> Any:
    """The domains of the other variables while V_i is event `at`: `pool[starts[j] : starts[j + 1]]` in (t, arrival).

    Gives whether the event is useful, whether no domain is empty, and the arrays that hold them. Not useful: a domain is empty into which nothing can
    come any more.
    """
    m = len(graph.latest)
    filled = 0
    x, y, z = new.place[at, 0], new.place[at, 1], new.place[at, 2]
    # Names for what the loop reads: taking an array out of a tuple each time costs more than reading it.
    times, arrivals, places, gone = kept.t, kept.seq, kept.place, book.gone
    useful, complete = True, True
    starts[0] = 0
    for j in range(m):
        # Where nothing is renewed, an incomplete tuple needs only the domains that decide whether the event is useful.
        # What is stored comes before the new event: where V_j must come after it, nothing fits.
        if j != i and useful and graph.order[i, j] <= 0 and (complete or form == TIGHT or graph.latest[i, j] < 0):
            first = _first_since(kept, book, j, new.t[at] - graph.latest[j, i])
            while filled + book.tails[j] - first > len(pool):
                pool, marks = _doubled(pool), np.zeros(2 * len(marks), np.int16)
            limits = limits_of(graph, i, j)
            last, members = new.t[at] + graph.latest[i, j], book.members[j]
            for member in range(first, book.tails[j]):
                event = members[member]
                if times[event] > last:
                    break
                across, along, up = x - places[event, 0], y - places[event, 1], z - places[event, 2]
                sure = verdict(limits, times[event] - new.t[at], arrivals[event] - new.seq[at], across * across + along * along + up * up)
                if sure == NO or gone[event]:
                    continue
                if sure == YES or consistent(graph, new, at, i, kept, event, j):
                    pool[filled] = event
                    filled += 1
        starts[j + 1] = filled
        sizes[j] = starts[j + 1] - starts[j]
        if j != i and sizes[j] == 0:
            complete = False
            useful = useful and graph.latest[i, j] >= 0
    return useful, complete and useful, pool, marks


@njit(cache=True, nogil=True)
def _first_since(kept: Rows, book: Book, j: int, time: int) -> Any:
    """Where the members of V_j with t >= `time` begin. What is gone at the front is dropped on the way."""
    while book.heads[j] < book.tails[j] and book.gone[book.members[j, book.heads[j]]]:
        book.heads[j] += 1
    low, high = book.heads[j], book.tails[j]
    while low < high:
        middle = (low + high) >> 1
        if kept.t[book.members[j, middle]] < time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _doubled(pool: Any) -> Any:
    larger = np.empty(2 * len(pool), np.int64)
    larger[: len(pool)] = pool
    return larger


@njit(cache=True, nogil=True)
def _renew(graph: Graph, kept: Rows, book: Book, pool: Any, starts: Ints, ends: int) -> None:
    """The stored events that may take part with the new one stay as long as it, but never longer than their own role allows."""
    for j in range(len(starts) - 1):
        if starts[j] == starts[j + 1]:
            continue
        own = longest(graph, j)
        for k in range(starts[j], starts[j + 1]):
            event = pool[k]
            book.expires[event] = max(book.expires[event], min(ends, kept.t[event] + own))


@njit(cache=True, nogil=True)
def _store(kept: Rows, book: Book, new: Rows, at: int, roles: Any, ends: Any) -> None:
    to = book.size[STORED]
    kept.t[to], kept.seq[to], kept.entity[to] = new.t[at], new.seq[at], new.entity[at]
    kept.x[to], kept.y[to], kept.unary[to], kept.roles[to] = new.x[at], new.y[at], new.unary[at], roles
    kept.place[to], kept.ints[to], kept.floats[to] = new.place[at], new.ints[at], new.floats[at]
    book.expires[to], book.gone[to] = ends, False
    for j in range(len(book.tails)):
        if (roles >> j) & 1:
            book.members[j, book.tails[j]] = to
            book.tails[j] += 1
    push(book.times, book.events, book.size[ENTRIES], ends, to)
    book.size[STORED] += 1
    book.size[ENTRIES] += 1
    book.size[KEPT] += 1
    book.size[PEAK] = max(book.size[PEAK], book.size[KEPT])


@njit(cache=True, nogil=True)
def _solve(
    graph: Graph, only_first: bool, kept: Rows, new: Rows, at: int, i: int,
    pool: Any, marks: Any, starts: Ints, sizes: Ints, chosen: Ints, found: Any, count: int, most: int,
) -> Any:  # fmt: skip
    """Adds the solutions in which V_i is event `at`: all of them (at most `most` + 1 in `found`), or the first one in the order of search.

    `marks[k]` is the level at which pool[k] was ruled out, 0 while it is not. For `all` the smallest domain is next; for one witness variables come
    in their order and later events first, so that the witness does not depend on what happens to be stored.
    """
    m = len(graph.latest)
    marks[: starts[m]] = 0
    variable, cursor = np.empty(m, np.int64), np.empty(m, np.int64)
    chosen[:] = -1
    taken = np.zeros(m, np.bool_)
    taken[i] = True
    chosen[i] = ~at
    if m == 1:
        return _added(found, count, chosen), count + 1
    level = 1
    variable[1] = _next_variable(taken, sizes, only_first)
    cursor[1] = 0
    while level > 0:
        j = variable[level]
        if chosen[j] >= 0:
            _restore(marks, starts, sizes, taken, level)
            chosen[j] = -1
        taken[j] = True
        length = starts[j + 1] - starts[j]
        k = cursor[level]
        while k < length and marks[_place(starts, j, k, only_first)] != 0:
            k += 1
        cursor[level] = k + 1
        if k == length:
            taken[j] = False
            level -= 1
            continue
        chosen[j] = pool[_place(starts, j, k, only_first)]
        if level == m - 1:
            if len(graph.arrangements) == 0 or _is_least(graph, kept, new, chosen):
                found = _added(found, count, chosen)
                count += 1
                if only_first or count > most:
                    break
            continue
        if _ruled_out(graph, kept, pool, marks, starts, sizes, taken, chosen[j], j, level):
            level += 1
            variable[level] = _next_variable(taken, sizes, only_first)
            cursor[level] = 0
            chosen[variable[level]] = -1
    return found, count


@njit(cache=True, nogil=True)
def _place(starts: Ints, j: int, k: int, backwards: bool) -> Any:
    return starts[j + 1] - 1 - k if backwards else starts[j] + k


@njit(cache=True, nogil=True)
def _next_variable(taken: Any, sizes: Ints, in_order: bool) -> Any:
    best = -1
    for j in range(len(taken)):
        if not taken[j] and (best < 0 or (not in_order and sizes[j] < sizes[best])):
            best = j
    return best


@njit(cache=True, nogil=True)
def _ruled_out(
    graph: Graph, kept: Rows, pool: Any, marks: Any, starts: Ints, sizes: Ints, taken: Any, event: int, i: int, level: int
) -> Any:  # fmt: skip
    """Rules out what does not go with V_i = `event`; false when a domain becomes empty."""
    times, arrivals, places = kept.t, kept.seq, kept.place
    t, seq, x, y, z = times[event], arrivals[event], places[event, 0], places[event, 1], places[event, 2]
    for j in range(len(taken)):
        if taken[j]:
            continue
        limits = limits_of(graph, i, j)
        for k in range(starts[j], starts[j + 1]):
            if marks[k] != 0:
                continue
            other = pool[k]
            across, along, up = x - places[other, 0], y - places[other, 1], z - places[other, 2]
            sure = verdict(limits, times[other] - t, arrivals[other] - seq, across * across + along * along + up * up)
            if sure == NO or (sure != YES and not consistent(graph, kept, event, i, kept, other, j)):
                marks[k] = level
                sizes[j] -= 1
        if sizes[j] == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _restore(marks: Any, starts: Ints, sizes: Ints, taken: Any, level: int) -> None:
    """Takes back what was ruled out at `level`."""
    for j in range(len(taken)):
        if taken[j]:
            continue
        for k in range(starts[j], starts[j + 1]):
            if marks[k] == level:
                marks[k] = 0
                sizes[j] += 1


@njit(cache=True, nogil=True)
def _added(found: Any, count: int, chosen: Ints) -> Any:
    if count == len(found):
        larger = np.empty((2 * count, found.shape[1]), np.int64)
        larger[:count] = found
        found = larger
    found[count] = chosen
    return found


@njit(cache=True, nogil=True)
def _is_least(graph: Graph, kept: Rows, new: Rows, chosen: Ints) -> Any:
    """Whether no other arrangement of the symmetric variables' events is a solution that comes first in (t, arrival), variable by variable."""
    m = len(chosen)
    for a in range(len(graph.arrangements)):
        arrangement = graph.arrangements[a]
        earlier = False
        for j in range(m):
            one, other = chosen[arrangement[j]], chosen[j]
            if one != other:
                earlier = _comes_first(kept, new, one, other)
                break
        if earlier and _satisfied(graph, kept, new, chosen, arrangement):
            return False
    return True


@njit(cache=True, nogil=True)
def _comes_first(kept: Rows, new: Rows, one: int, other: int) -> Any:
    # The completing event is the latest of all.
    if one < 0 or other < 0:
        return other < 0
    return before(kept, one, kept, other)


@njit(cache=True, nogil=True)
def _satisfied(graph: Graph, kept: Rows, new: Rows, chosen: Ints, arrangement: Any) -> Any:
    m = len(chosen)
    for i in range(m):
        event = chosen[arrangement[i]]
        unary = new.unary[~event] if event < 0 else kept.unary[event]
        if not (unary >> i) & 1:
            return False
    for i in range(m):
        for j in range(i + 1, m):
            one, other = chosen[arrangement[i]], chosen[arrangement[j]]
            if one < 0:
                fits = consistent(graph, new, ~one, i, kept, other, j)
            elif other < 0:
                fits = consistent(graph, kept, one, i, new, ~other, j)
            else:
                fits = consistent(graph, kept, one, i, kept, other, j)
            if not fits:
                return False
    return True
