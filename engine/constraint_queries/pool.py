"""Working memory of the search: input rows, candidates, current choices, and solutions found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.constraint_queries.expiration import DOMAINS, TIGHT
from engine.constraint_queries.pairs import Floats, Graphs, Ints
from engine.constraint_queries.rings import BITS, EVENT, T
from engine.index.compiled import kernel


class FilteredEvents(NamedTuple):
    """The events that pass the queries' filters, query by query in (t, arrival): rows
    `starts[q]` to `starts[q + 1]` are the numbers of events and, as bits, the
    variables of q that may take them."""

    event: Ints
    bits: Ints
    starts: Ints


class QueryNumbers(NamedTuple):
    """Query `number`: its m variables begin at number `first` of all variables, its m
    * m pairs at number `pairs`. `tight`: it has that form; `shared`: an event counts
    once for all its variables."""

    number: int
    first: int
    m: int
    pairs: int
    tight: bool
    shared: bool
    only_first: bool


@kernel(inline=True)
def query_numbers(graphs: Graphs, q: int) -> Any:
    """The numbers of query q."""
    first, form = graphs.variables[q], graphs.form[q]
    return QueryNumbers(q, first, graphs.variables[q + 1] - first, graphs.pairs[q], form == TIGHT, form != DOMAINS, graphs.only_first[q])


class NewEvent(NamedTuple):
    """The event being processed: its number, the variables that may take it
    (bits), its time and place."""

    event: int
    bits: int
    t: int
    x: float
    y: float
    z: float


@kernel(inline=True)
def new_event(columns: Ints, place: Floats, k: int) -> Any:
    """The event at `k` of `columns` (of the pool or the rings)."""
    return NewEvent(columns[EVENT, k], columns[BITS, k], columns[T, k], place[0, k], place[1, k], place[2, k])


RING, MARK = 2, 4
BEGIN, END, LEFT, CHOSEN, NEXT, CURSOR, LAST, OWN, TAKES, WINDOW_TIME = range(10)


class Pool(NamedTuple):
    """The arrays that the search writes.

    The candidates of the other variables: `ints` (5, n) with EVENT, T and BITS as in the rings,
    RING, their index there, and MARK, the level at which forward checking ruled them out (0: it has
    not); `place` (3, n). `domains` (10, m): for each variable BEGIN and END of its candidates, how
    many are LEFT and which is CHOSEN (-1: none), for each level the variable that is NEXT and its
    CURSOR, the LAST time at which the new event is useful, for a solution each variable's OWN event
    and the variables that may take that (TAKES, bits), and WINDOW_TIME, the time of its windows.
    `windows` (2, m, m): for V_i and V_j the range of V_j's domain that is consistent with V_i's
    event by time. If the ranges are short, candidates are the bits of `masks` (m, m): row l holds
    the remaining candidates of each domain at level l.
    """

    ints: Ints
    place: Floats
    domains: Ints
    windows: Ints
    masks: Ints


class SolutionBuffers(NamedTuple):
    """Room for solutions: `query` of each, and its events, one solution behind the other."""

    query: Ints
    event: Ints


CANDIDATES, SEARCHES, SOLUTIONS = range(3)


def allocate_found(capacity: int, variables: int) -> SolutionBuffers:
    return SolutionBuffers(np.empty(capacity, np.int64), np.empty(capacity * max(variables, 1), np.int64))


def allocate_pool(capacity: int, variables: int) -> Pool:
    m = max(variables, 2)
    numbers = np.empty((5, capacity), np.int64), np.empty((3, capacity)), np.empty((10, m), np.int64)
    return Pool(*numbers, np.empty((2, m, m), np.int64), np.empty((m, m), np.int64))
