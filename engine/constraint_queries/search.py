"""Solutions among the candidates of one event: forward checking, the smallest domain first.

If each domain has few candidates they are the bits of an integer (`solve_masks`), else lists in the
pool (`solve`). Both search in the same order, so they find the same solutions.

References: [CCQ] 3.3 CSP Solver; Haralick and Elliott, *Increasing tree search efficiency*, 1980.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.constraint_queries.pairs import (
    AT_MOST,
    EARLIEST,
    EQUAL,
    LATEST,
    LESS,
    MORE,
    UNEQUAL,
    ConstraintEvents,
    Floats,
    Graphs,
    Ints,
    PairBounds,
    is_consistent,
    pair_bounds,
)
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
    NewEvent,
    Pool,
    QueryNumbers,
    SolutionBuffers,
    new_event,
)
from engine.constraint_queries.rings import BITS, EVENT, DomainRings, T
from engine.index.bits import highest_bit, lowest_bit
from engine.index.compiled import kernel

JOIN_FIRST, JOIN_PLUS, JOIN_MINUS, JOIN_TIMES = range(4)
"""How a factor of a sum is joined to those before it."""

# -- candidates as lists ---------------------------------------------------------------------------


@kernel(inline=True)
def solve(
    graphs: Graphs,
    events: ConstraintEvents,
    pool: Pool,
    found: SolutionBuffers,
    query: QueryNumbers,
    i: int,
    new: NewEvent,
    count: int,
    filled: int,
    most: int,
) -> Any:
    """Adds the solutions in which V_i is the new event: all of them (at most `most` + 1 in all), or
    the first one in the order of search.

    For `all` the variable with the smallest domain is next. For one witness the variables are taken
    in their order and later events first, so that the witness does not depend on which events are
    stored. Returns the new numbers of solutions and of events in them, -1 if there is no room.
    """
    m, only_first, domains = query.m, query.only_first, pool.domains
    _reset_choices(pool, i, m)
    level = 1
    if m > 1:
        domains[NEXT, 1], domains[CURSOR, 1] = _next_variable(domains, i, m, only_first), 0
    while level > 0:
        if m > 1:
            _undo_choice(pool, i, m, level)
            if not _choose(pool, level, only_first):
                level -= 1
                continue
        if m == 1 or level == m - 1:
            before = count
            count, filled = _record_solution(graphs, events, pool.ints, domains, found, query, i, new, count, filled)
            if count < 0 or m == 1 or (count > before and (only_first or count > most)):
                break
        elif _forward_check(graphs, events, pool, query, i, level):
            level += 1
            domains[NEXT, level], domains[CURSOR, level] = _next_variable(domains, i, m, only_first), 0
    return count, filled


@kernel(inline=True)
def _reset_choices(pool: Pool, i: int, m: int) -> None:
    """Clears all choices and marks."""
    for j in range(m):
        pool.domains[CHOSEN, j] = -1
        if j != i:
            pool.domains[LEFT, j] = pool.domains[END, j] - pool.domains[BEGIN, j]
            for k in range(pool.domains[BEGIN, j], pool.domains[END, j]):
                pool.ints[MARK, k] = 0


@kernel(inline=True)
def _next_variable(domains: Ints, i: int, m: int, in_order: bool) -> Any:
    best = -1
    for j in range(m):
        if j != i and domains[CHOSEN, j] < 0 and (best < 0 or (not in_order and domains[LEFT, j] < domains[LEFT, best])):
            best = j
    return best


@kernel(inline=True)
def _undo_choice(pool: Pool, i: int, m: int, level: int) -> None:
    """Undoes the choice at `level`, and restores the candidates that it ruled out."""
    chosen = pool.domains[NEXT, level]
    if pool.domains[CHOSEN, chosen] < 0:
        return
    if level < m - 1:
        for j in range(m):
            if j == i or pool.domains[CHOSEN, j] >= 0:
                continue
            for k in range(pool.domains[BEGIN, j], pool.domains[END, j]):
                if pool.ints[MARK, k] == level:
                    pool.ints[MARK, k] = 0
                    pool.domains[LEFT, j] += 1
    pool.domains[CHOSEN, chosen] = -1


@kernel(inline=True)
def _choose(pool: Pool, level: int, only_first: bool) -> Any:
    """Chooses the next candidate of the level's variable that is not ruled
    out; false if there is none."""
    domains = pool.domains
    j = domains[NEXT, level]
    begin, end, k = domains[BEGIN, j], domains[END, j], domains[CURSOR, level]
    while k < end - begin and pool.ints[MARK, end - 1 - k if only_first else begin + k] != 0:
        k += 1
    domains[CURSOR, level] = k + 1
    if k == end - begin:
        return False
    domains[CHOSEN, j] = end - 1 - k if only_first else begin + k
    return True


@kernel(inline=True)
def _forward_check(graphs: Graphs, events: ConstraintEvents, pool: Pool, query: QueryNumbers, i: int, level: int) -> Any:
    """Rules out the candidates that are not consistent with the event chosen at `level`; false
    if a domain becomes empty."""
    m, domains, pooled, place = query.m, pool.domains, pool.ints, pool.place
    one = domains[NEXT, level]
    own = new_event(pooled, place, domains[CHOSEN, one])
    for j in range(m):
        if j == i or domains[CHOSEN, j] >= 0:
            continue
        bounds = pair_bounds(graphs, query.pairs + one * m + j, one < j)
        for k in range(domains[BEGIN, j], domains[END, j]):
            if pooled[MARK, k] == 0 and not _fits(graphs, events, pooled, place, bounds, own, k):
                pooled[MARK, k] = level
                domains[LEFT, j] -= 1
        if domains[LEFT, j] == 0:
            return False
    return True


# -- candidates as bits ----------------------------------------------------------------------------


@kernel(inline=True)
def solve_masks(
    graphs: Graphs,
    events: ConstraintEvents,
    rings: DomainRings,
    pool: Pool,
    found: SolutionBuffers,
    query: QueryNumbers,
    i: int,
    new: NewEvent,
    count: int,
    filled: int,
    most: int,
) -> Any:
    """Like `solve`, for at least two variables whose candidates are bits of `pool.masks`."""
    m, only_first, domains, masks = query.m, query.only_first, pool.domains, pool.masks
    for j in range(m):
        domains[CHOSEN, j] = -1
    level = 1
    domains[NEXT, 1] = _next_masked(masks, domains, 0, i, m, only_first)
    domains[CURSOR, 1] = masks[0, domains[NEXT, 1]]
    while level > 0:
        j, mask = domains[NEXT, level], domains[CURSOR, level]
        if mask == 0:
            domains[CHOSEN, j] = -1
            level -= 1
            continue
        k = highest_bit(mask) if only_first else lowest_bit(mask)
        domains[CURSOR, level] = mask ^ (np.int64(1) << k)
        domains[CHOSEN, j] = pool.windows[0, i, j] + k
        if level == m - 1:
            before = count
            count, filled = _record_solution(graphs, events, rings.ints, domains, found, query, i, new, count, filled)
            if count < 0 or (count > before and (only_first or count > most)):
                break
        elif _forward_check_masks(graphs, events, rings, pool, query, i, level):
            level += 1
            domains[NEXT, level] = _next_masked(masks, domains, level - 1, i, m, only_first)
            domains[CURSOR, level] = masks[level - 1, domains[NEXT, level]]
    return count, filled


@kernel(inline=True)
def _next_masked(masks: Ints, domains: Ints, level: int, i: int, m: int, in_order: bool) -> Any:
    best, least = -1, 0
    for j in range(m):
        if j == i or domains[CHOSEN, j] >= 0:
            continue
        size, rest = 0, np.int64(0) if in_order else masks[level, j]
        while rest != 0:
            rest &= rest - 1
            size += 1
        if best < 0 or (not in_order and size < least):
            best, least = j, size
    return best


@kernel(inline=True)
def _forward_check_masks(graphs: Graphs, events: ConstraintEvents, rings: DomainRings, pool: Pool, query: QueryNumbers, i: int, level: int) -> Any:
    """Writes the candidates consistent with the event chosen at `level` to the masks of that level;
    false if a domain becomes empty."""
    m, only_first, domains, masks = query.m, query.only_first, pool.domains, pool.masks
    one = domains[NEXT, level]
    own = new_event(rings.ints, rings.place, domains[CHOSEN, one])
    # If one event is enough for the last variable, the search stops at the first: it begins at the
    # end from which events are chosen.
    enough = only_first and level == m - 2 and graphs.arranged[query.number] == graphs.arranged[query.number + 1]
    enough = enough and graphs.summed[query.number] == graphs.summed[query.number + 1]
    for j in range(m):
        if j == i or domains[CHOSEN, j] >= 0:
            continue
        bounds = pair_bounds(graphs, query.pairs + one * m + j, one < j)
        first, rest, left = pool.windows[0, i, j], masks[level - 1, j], np.int64(0)
        while rest != 0:
            bit = highest_bit(rest) if only_first else lowest_bit(rest)
            rest ^= np.int64(1) << bit
            if _fits(graphs, events, rings.ints, rings.place, bounds, own, first + bit):
                left |= np.int64(1) << bit
                if enough:
                    break
        masks[level, j] = left
        if left == 0:
            return False
    return True


# -- both ------------------------------------------------------------------------------------------


@kernel(inline=True)
def _fits(graphs: Graphs, events: ConstraintEvents, columns: Ints, place: Floats, bounds: PairBounds, own: NewEvent, k: int) -> Any:
    """Whether the event `own` and the one at `k` of `columns` (of the pool or the rings) are
    consistent as the two variables of `bounds`."""
    across, along, up = place[0, k] - own.x, place[1, k] - own.y, place[2, k] - own.z
    chord = across * across + along * along + up * up
    other, later = columns[EVENT, k], columns[T, k] - own.t
    fits = chord <= bounds.reach and later >= bounds.earliest and later <= bounds.latest and other != own.event
    # Events are numbered in (t, arrival).
    fits = fits and (bounds.order == 0 or (bounds.order > 0) == (other > own.event))
    if fits and not (chord <= bounds.near and chord > bounds.apart):
        fits = is_consistent(graphs, events, bounds.pair, bounds.named_first, own.event, other)
    return fits


@kernel(inline=True)
def _record_solution(
    graphs: Graphs, events: ConstraintEvents, columns: Ints, domains: Ints, found: SolutionBuffers, query: QueryNumbers, i: int, new: NewEvent,
    count: int, filled: int,
) -> Any:  # fmt: skip
    """Records the chosen events, indexes in `columns` (of the pool or the rings), unless another
    arrangement of them comes first.

    Returns the new numbers of solutions and of events in them, -1 if there is no room.
    """
    m = query.m
    for one in range(m):
        domains[OWN, one], domains[TAKES, one] = new.event, new.bits
        if one != i:
            domains[OWN, one], domains[TAKES, one] = columns[EVENT, domains[CHOSEN, one]], columns[BITS, domains[CHOSEN, one]]
    if graphs.summed[query.number] != graphs.summed[query.number + 1] and not _sums_hold(graphs, events, domains, query, -1):
        return count, filled
    if graphs.arranged[query.number] != graphs.arranged[query.number + 1] and not _is_least(graphs, events, domains, query):
        return count, filled
    if len(found.query) == count or len(found.event) < filled + m:
        return -1, -1
    found.query[count] = query.number
    for one in range(m):
        found.event[filled + one] = domains[OWN, one]
    return count + 1, filled + m


@kernel()
def _sums_hold(graphs: Graphs, events: ConstraintEvents, domains: Ints, query: QueryNumbers, at: int) -> Any:
    """Whether the events satisfy all comparisons of sums, in the
    arrangement `at` (-1: as they are)."""
    for c in range(graphs.summed[query.number], graphs.summed[query.number + 1]):
        left = _sum(graphs, events, domains, at, graphs.sides[2 * c], graphs.sides[2 * c + 1])
        right = _sum(graphs, events, domains, at, graphs.sides[2 * c + 1], graphs.sides[2 * c + 2])
        op = graphs.sum_ops[c]
        # Doubles are compared directly, because NaN is unequal to everything.
        if op == EQUAL:
            found = left == right
        elif op == UNEQUAL:
            found = left != right
        elif op == LESS:
            found = left < right
        elif op == AT_MOST:
            found = left <= right
        elif op == MORE:
            found = left > right
        else:
            found = left >= right
        if not found:
            return False
    return True


@kernel()
def _sum(graphs: Graphs, events: ConstraintEvents, domains: Ints, at: int, first: int, end: int) -> Any:
    """The value of a sum: products first, all from left to right."""
    total, product, joined = 0.0, 0.0, JOIN_FIRST
    for f in range(first, end):
        op, variable, slot = graphs.factors[f, 0], graphs.factors[f, 1], graphs.factors[f, 2]
        value = graphs.constants[f]
        if variable >= 0:
            event = domains[OWN, variable if at < 0 else graphs.arrangements[at + variable]]
            value = float(events.ints[slot, event]) if slot >= 0 else events.floats[~slot, event]
        if op == JOIN_TIMES:
            product = product * value
            continue
        if f > first:
            total = product if joined == JOIN_FIRST else total + product if joined == JOIN_PLUS else total - product
        product, joined = value, op
    return product if joined == JOIN_FIRST else total + product if joined == JOIN_PLUS else total - product


@kernel()
def _is_least(graphs: Graphs, events: ConstraintEvents, domains: Ints, query: QueryNumbers) -> Any:
    """Whether no other arrangement of the symmetric variables' events is a solution that comes
    earlier in (t, arrival), variable by variable."""
    m = query.m
    for at in range(graphs.arranged[query.number], graphs.arranged[query.number + 1], m):
        if _comes_first(graphs.arrangements, domains, at, m) and _is_solution(graphs, events, domains, query, at):
            return False
    return True


@kernel(inline=True)
def _comes_first(arrangements: Ints, domains: Ints, at: int, m: int) -> Any:
    """Whether the first variable whose event differs in the arrangement `at`
    has an earlier event there."""
    for j in range(m):
        if arrangements[at + j] != j:
            return domains[OWN, arrangements[at + j]] < domains[OWN, j]
    return False


@kernel(inline=True)
def _is_solution(graphs: Graphs, events: ConstraintEvents, domains: Ints, query: QueryNumbers, at: int) -> Any:
    """Whether the events satisfy all constraints in the arrangement `at` too."""
    m = query.m
    for one in range(m):
        if not (domains[TAKES, graphs.arrangements[at + one]] >> one) & 1:
            return False
    for one in range(m):
        for other in range(one + 1, m):
            a, b = domains[OWN, graphs.arrangements[at + one]], domains[OWN, graphs.arrangements[at + other]]
            pair, apart = query.pairs + one * m + other, events.t[b] - events.t[a]
            if not graphs.times[pair, EARLIEST] <= apart <= graphs.times[pair, LATEST] or not is_consistent(graphs, events, pair, True, a, b):
                return False
    return graphs.summed[query.number] == graphs.summed[query.number + 1] or _sums_hold(graphs, events, domains, query, at)
