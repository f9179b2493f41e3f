"""Solutions among the candidates of one event: forward checking, the smallest domain first.

References: [CCQ] 3.3 CSP Solver; Haralick and Elliott, *Increasing tree search efficiency*, 1980.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.constraint_queries.compiled import bare, inlined
from engine.constraint_queries.pairs import (
    APART,
    EARLIEST,
    LATEST,
    NEAR,
    ORDER,
    REACH,
    Floats,
    Ints,
    consistent,
)  # fmt: skip
from engine.constraint_queries.pool import (
    BEGIN,
    CHOSEN,
    CURSOR,
    END,
    LEFT,
    MARK,
    NEXT,
    OWN,
    TAKES,
)
from engine.constraint_queries.rings import BITS, EVENT, T
from engine.index.bits import highest_bit, lowest_bit


@inlined
def solve(
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
            before = count
            count, filled = _stated(
                times, limits, exact, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                pooled, seats, arrangements, first_arranged, last_arranged, q, p0, m, e, bits, i, found_query, found_event, count, filled,
            )  # fmt: skip
            if count < 0 or (count > before and (only_first or count > most or m == 1)):
                break
        elif _ruled_out(
            times, limits, exact, compared, comparisons, geodesic, event_x, event_y, event_place, ints, floats,
            pooled, pool_place, seats, p0, i, j, m, level,
        ):  # fmt: skip
            level += 1
            seats[NEXT, level], seats[CURSOR, level] = _next_variable(seats, i, m, only_first), 0
    return count, filled


@inlined
def solve_masks(
    times: Ints, limits: Floats, exact: Floats, compared: Ints, comparisons: Ints, geodesic: bool,
    event_t: Ints, event_x: Floats, event_y: Floats, event_place: Floats, ints: Ints, floats: Floats,
    ring: Ints, place: Floats, windows: Ints, masks: Ints, seats: Ints, arrangements: Ints, first_arranged: int, last_arranged: int,
    q: int, p0: int, m: int, e: int, bits: int, i: int, only_first: bool, found_query: Any, found_event: Any, count: int, filled: int, most: int,
) -> Any:  # fmt: skip
    """The same as `solve` for at least two variables whose candidates are bits of `masks`: in the same order, so with the same solutions."""
    for j in range(m):
        seats[CHOSEN, j] = -1
    level = 1
    seats[NEXT, 1] = _next_masked(masks, seats, 0, i, m, only_first)
    seats[CURSOR, 1] = masks[0, seats[NEXT, 1]]
    while level > 0:
        j, mask = seats[NEXT, level], seats[CURSOR, level]
        if mask == 0:
            seats[CHOSEN, j] = -1
            level -= 1
            continue
        k = highest_bit(mask) if only_first else lowest_bit(mask)
        seats[CURSOR, level] = mask ^ (np.int64(1) << k)
        chosen = windows[0, i, j] + k
        seats[CHOSEN, j] = chosen
        if level == m - 1:
            before = count
            count, filled = _stated(
                times, limits, exact, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
                ring, seats, arrangements, first_arranged, last_arranged, q, p0, m, e, bits, i, found_query, found_event, count, filled,
            )  # fmt: skip
            if count < 0 or (count > before and (only_first or count > most)):
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
            rest, left = masks[level - 1, other], np.int64(0)
            while rest != 0:
                # From the end that is taken first: where one is enough, the rest need not be looked at.
                bit = highest_bit(rest) if only_first else lowest_bit(rest)
                rest ^= np.int64(1) << bit
                n = windows[0, i, other] + bit
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
                    left |= np.int64(1) << bit
                    if only_first and level == m - 2 and first_arranged == last_arranged:
                        break
            masks[level, other] = left
            if left == 0:
                possible = False
                break
        if possible:
            level += 1
            seats[NEXT, level] = _next_masked(masks, seats, level - 1, i, m, only_first)
            seats[CURSOR, level] = masks[level - 1, seats[NEXT, level]]
    return count, filled


@inlined
def _stated(
    times: Ints, limits: Floats, exact: Floats, compared: Ints, comparisons: Ints, geodesic: bool,
    event_t: Ints, event_x: Floats, event_y: Floats, event_place: Floats, ints: Ints, floats: Floats,
    columns: Ints, seats: Ints, arrangements: Ints, first_arranged: int, last_arranged: int,
    q: int, p0: int, m: int, e: int, bits: int, i: int, found_query: Any, found_event: Any, count: int, filled: int,
) -> Any:  # fmt: skip
    """Writes down the chosen events, places in `columns` (the pool's or the rings'), unless another arrangement of them comes first.

    Gives the new numbers of solutions and of events in them, -1 when there is no room.
    """
    for one in range(m):
        seats[OWN, one], seats[TAKES, one] = e, bits
        if one != i:
            seats[OWN, one], seats[TAKES, one] = columns[EVENT, seats[CHOSEN, one]], columns[BITS, seats[CHOSEN, one]]
    if first_arranged != last_arranged and not _is_least(
        times, exact, limits, compared, comparisons, geodesic, event_t, event_x, event_y, event_place, ints, floats,
        seats, arrangements, first_arranged, last_arranged, p0, m,
    ):  # fmt: skip
        return count, filled
    if len(found_query) == count or len(found_event) < filled + m:
        return -1, -1
    found_query[count] = q
    for one in range(m):
        found_event[filled + one] = seats[OWN, one]
    return count + 1, filled + m


@inlined
def _next_masked(masks: Ints, seats: Ints, level: int, i: int, m: int, in_order: bool) -> Any:
    best, least = -1, 0
    for j in range(m):
        if j == i or seats[CHOSEN, j] >= 0:
            continue
        size, rest = 0, np.int64(0) if in_order else masks[level, j]
        while rest != 0:
            rest &= rest - 1
            size += 1
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
