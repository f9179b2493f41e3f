"""Working memory of the search: input rows, candidates and choices under way, solutions found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.constraint_queries.compiled import inlined
from engine.constraint_queries.expiration import DOMAINS, TIGHT
from engine.constraint_queries.pairs import Floats, Graphs, Ints
from engine.constraint_queries.rings import BITS, EVENT, T


class Taken(NamedTuple):
    """What the queries' filters let through, query by query in (t, arrival): rows `starts[q]` to `starts[q + 1]` are numbers of events and, bit by
    bit, the variables of q that may take them."""

    event: Ints
    bits: Ints
    starts: Ints


class Numbers(NamedTuple):
    """Query `number` has m variables from number `first` of all on, and m * m pairs from number `pairs` on. `tight`: of that form; `shared`: its
    variables share what they keep."""

    number: int
    first: int
    m: int
    pairs: int
    tight: bool
    shared: bool
    only_first: bool


@inlined
def numbers(graphs: Graphs, q: int) -> Any:
    """Those of query q, which are asked for all the time."""
    first, form = graphs.variables[q], graphs.form[q]
    return Numbers(q, first, graphs.variables[q + 1] - first, graphs.pairs[q], form == TIGHT, form != DOMAINS, graphs.only_first[q])


class Newcomer(NamedTuple):
    """One event as numbers: its number, the variables that may take it (bits), its time and place."""

    event: int
    bits: int
    t: int
    x: float
    y: float
    z: float


@inlined
def newcomer(columns: Ints, place: Floats, k: int) -> Any:
    """The event at `k` of `columns`, the pool's or the rings'."""
    return Newcomer(columns[EVENT, k], columns[BITS, k], columns[T, k], place[0, k], place[1, k], place[2, k])


RING, MARK = 2, 4
BEGIN, END, LEFT, CHOSEN, NEXT, CURSOR, LAST, OWN, TAKES, ASKED = range(10)


class Pool(NamedTuple):
    """Where the search writes.

    Candidates of the other variables while an event completes a tuple: `whole` (5, n) with EVENT, T and BITS as in the rings, RING, the place
    there, and MARK, the level at which forward checking ruled it out, 0 while it has not; `place` (3, n). While it searches, `domains` (10, m) hold
    for each variable BEGIN and END of its candidates, how many are LEFT and which is CHOSEN (-1: none), for each level the variable that is NEXT
    and its CURSOR, the LAST time at which the new event is useful, and of a solution its OWN events and what TAKES them.
    `windows` (2, m, m): for V_i and V_j what of V_j's domain V_i's event reaches. Where that is little, candidates are the bits of `masks` (m, m):
    row l holds what is left of each domain at level l.
    """

    whole: Ints
    place: Floats
    domains: Ints
    windows: Ints
    masks: Ints


class Found(NamedTuple):
    """Room for solutions: `query` of each, and its events, one solution behind the other."""

    query: Ints
    event: Ints


CANDIDATES, SEARCHES, SOLUTIONS = range(3)


def found_of(room: int, variables: int) -> Found:
    return Found(np.empty(room, np.int64), np.empty(room * max(variables, 1), np.int64))


def pool_of(room: int, variables: int) -> Pool:
    m = max(variables, 2)
    numbers = np.empty((5, room), np.int64), np.empty((3, room)), np.empty((10, m), np.int64)
    return Pool(*numbers, np.empty((2, m, m), np.int64), np.empty((m, m), np.int64))
