"""The baselines of constraint queries: the paper's domain solver in plain Python, and compiled
loops over all events of the window: by brute force, with the windows of each pair of variables that
the closed graph implies, and with these behind the query index; the last two are ours.

All stop at the first solution an event completes, as the paper's solver does, and give (query,
number of the completing event).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.constraint_queries.graph import TimeBound, closed_times
from engine.constraint_queries.ranges import Ranges, passing_events

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_FAR = 2**40
"""Times that nothing limits."""


class Columns(NamedTuple):
    """Measurements as arrays; `values` (columns, n) are those that filters ask for."""

    t: Ints
    x: Floats
    y: Floats
    values: Floats

    def slice(self, begin: int, end: int) -> Columns:
        return Columns(self.t[begin:end], self.x[begin:end], self.y[begin:end], np.ascontiguousarray(self.values[:, begin:end]))


class Plan(NamedTuple):
    """A query as the baselines take it: ranges (column, low, high) of the variables, `latest[i][j]`
    the greatest V_j.t - V_i.t, as the graph implies and as it is `given`, squared reach."""

    ranges: list[tuple[str, float, float]]
    latest: list[list[int]]
    given: list[list[int]]
    reach: float

    @property
    def window(self) -> int:
        """The longest time that any two events of a solution are apart."""
        return max(max(row) for row in self.latest)


def plan_of(document: Mapping[str, Any]) -> Plan:
    names = list(document["variables"])
    bounds, reach = [], np.inf
    for number, constraint in enumerate(document["constraints"]):
        between = [names.index(name) for name in constraint["between"]]
        if "distance" in constraint:
            reach = constraint["distance"]["max"] ** 2
        low, high = constraint.get("dt", (None, None))
        for at, i in enumerate(between):
            for j in between[at + 1 :]:
                bounds += [] if high is None else [TimeBound(i, j, high, number)]
                bounds += [] if low is None else [TimeBound(j, i, -low, number)]
    latest = [[_FAR if one is None else one for one in row] for row in closed_times(len(names), bounds)]
    given = [[0 if i == j else _FAR for j in range(len(names))] for i in range(len(names))]
    for bound in bounds:
        given[bound.start][bound.end] = min(given[bound.start][bound.end], bound.upper)
    ranges = [(where[0][0], where[0][2], where[1][2]) for where in (variable["where"] for variable in document["variables"].values())]
    return Plan(ranges, latest, given, reach)


# -- plain Python ----------------------------------------------------------------------------------

Event = tuple[int, float, float, int]


def in_python(rows: Sequence[Mapping[str, Any]], plans: Sequence[Plan]) -> list[tuple[int, int]]:
    """[CCQ] 4.2: a domain of events for each variable, dropped when nothing that may come needs
    them; forward checking, smallest domain first."""
    domains: list[list[deque[Event]]] = [[deque() for _ in plan.ranges] for plan in plans]
    keep = [[max((late for j, late in enumerate(row) if j != i), default=0) for i, row in enumerate(plan.latest)] for plan in plans]
    found = []
    for row in rows:
        event = (row["t"], row["x"], row["y"], row["seq"])
        for q, plan in enumerate(plans):
            roles = [i for i, (column, low, high) in enumerate(plan.ranges) if low <= row[column] <= high]
            if not roles:
                continue
            own = domains[q]
            for i, domain in enumerate(own):
                while domain and domain[0][0] + keep[q][i] < event[0]:
                    domain.popleft()
            if any(_completes(plan, own, event, i) for i in roles):
                found.append((q, event[3]))
            for i in roles:
                if keep[q][i] >= 0:
                    own[i].append(event)
    return sorted(found)


def _completes(plan: Plan, domains: Sequence[deque[Event]], event: Event, i: int) -> bool:
    left = {}
    for j, domain in enumerate(domains):
        if j != i:
            left[j] = [other for other in domain if _fits(plan, i, event, j, other)]
            if not left[j]:
                return False
    return _solved(plan, left)


def _solved(plan: Plan, left: Mapping[int, list[Event]]) -> bool:
    if not left:
        return True
    j = min(left, key=lambda one: len(left[one]))
    for event in left[j]:
        rest = {k: [other for other in events if _fits(plan, j, event, k, other)] for k, events in left.items() if k != j}
        if all(rest.values()) and _solved(plan, rest):
            return True
    return False


def _fits(plan: Plan, i: int, event: Event, j: int, other: Event) -> bool:
    apart = other[0] - event[0]
    if apart > plan.latest[i][j] or -apart > plan.latest[j][i] or event[3] == other[3]:
        return False
    across, along = other[1] - event[1], other[2] - event[2]
    return across * across + along * along <= plan.reach


# -- compiled --------------------------------------------------------------------------------------


def by_brute_force(columns: Columns, names: Sequence[str], plans: Sequence[Plan]) -> list[tuple[int, int]]:
    """For each event all tuples of earlier events of the query's window, each filter and each given
    constraint checked as soon as its events are bound.

    `names` are those of `columns.values`. What the constraints imply is our idea, except for
    the length of the window.
    """
    found = []
    for q, plan in enumerate(plans):
        back = [[plan.window] * len(row) for row in plan.given]
        found += [(q, row) for row in _inline(columns, plan, plan.given, back, _asked(columns, names, plan))]
    return found


def by_windows(columns: Columns, names: Sequence[str], plans: Sequence[Plan]) -> list[tuple[int, int]]:
    """The same loops over the closed graph: how far each variable is looked for is what all
    constraints imply for it and the new event's."""
    return [(q, row) for q, plan in enumerate(plans) for row in _inline(columns, plan, plan.latest, _back(plan), _asked(columns, names, plan))]


def by_loops(columns: Columns, ranges: Ranges, plans: Sequence[Plan]) -> list[tuple[int, int]]:
    """The same again, but the filters of the variables are evaluated before, by the same code as
    ours."""
    n = len(columns.t)
    rows, queries, bits = passing_events(*ranges[2:], columns.values, all_located(ranges, n), n)
    taken = np.zeros((len(plans), n), np.uint8)
    taken[queries, rows] = bits
    return [(q, row) for q, plan in enumerate(plans) for row in _behind(columns, plan, plan.latest, _back(plan), taken[q])]


def _back(plan: Plan) -> list[list[int]]:
    """How long before the event of V_i, which completes, V_j's event may lie: by i, j."""
    return [list(row) for row in zip(*plan.latest, strict=True)]


def _asked(columns: Columns, names: Sequence[str], plan: Plan) -> tuple[Floats, Ints, Floats, Floats]:
    """The filters as `_passes` takes them."""
    low, high = (np.array(limits, np.float64) for limits in ([low for _, low, _ in plan.ranges], [high for _, _, high in plan.ranges]))
    return columns.values, np.array([names.index(name) for name, _, _ in plan.ranges], np.int64), low, high


def all_located(ranges: Ranges, n: int) -> npt.NDArray[np.bool_]:
    """The conditions on events other than ranges of numbers: here only that they have a
    position."""
    assert {kind for kind, _ in ranges.ready} <= {"located"}
    return np.ones((len(ranges.ready), n), np.bool_)


@njit(inline="always")
def _passes(filters: Any, row: int, j: int) -> bool:
    """Whether V_j accepts the event: its value is in V_j's range."""
    values, column, low, high = filters
    return bool(low[j] <= values[column[j], row] <= high[j])


@njit(inline="always")
def _passed(bits: npt.NDArray[np.uint8], row: int, j: int) -> bool:
    """Whether V_j accepts the event, as evaluated before."""
    return bool((bits[row] >> j) & 1)


def _loops(takes: Callable[[Any, int, int], bool]) -> Callable[..., list[int]]:
    """Loops over all tuples of earlier events, compiled around `takes`; they give the rows
    that complete a solution."""

    @njit(nogil=True)
    def completing(t: Ints, x: Floats, y: Floats, latest: Ints, back: Ints, reach: float, filters: Any) -> Any:
        m = len(latest)
        found = np.empty(len(t), np.int64)
        count = 0
        order, chosen, cursor = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
        for row in range(len(t)):
            done = False
            for role in range(m):
                if done or not takes(filters, row, role):
                    continue
                order[0], chosen[0] = role, row
                n = 1
                for j in range(m):
                    if j != role:
                        order[n] = j
                        n += 1
                level = 1
                cursor[1] = row - 1
                while level > 0:
                    j, c = order[level], cursor[level]
                    placed, oldest = False, t[row] - back[role, j]
                    while c >= 0 and t[c] >= oldest:
                        fits = takes(filters, c, j)
                        before = 0
                        while fits and before < level:
                            other, i = chosen[before], order[before]
                            across, along = x[c] - x[other], y[c] - y[other]
                            apart = t[c] - t[other]
                            fits = other != c and apart <= latest[i, j] and -apart <= latest[j, i] and across * across + along * along <= reach
                            before += 1
                        if fits:
                            placed = True
                            break
                        c -= 1
                    if not placed:
                        level -= 1
                        if level > 0:
                            cursor[level] -= 1
                        continue
                    chosen[level], cursor[level] = c, c
                    if level == m - 1:
                        done = True
                        break
                    level += 1
                    cursor[level] = row - 1
            if done:
                found[count] = row
                count += 1
        return found[:count]

    def found(columns: Columns, plan: Plan, latest: list[list[int]], back: list[list[int]], filters: Any) -> list[int]:
        rows: list[int] = completing(
            columns.t, columns.x, columns.y, np.array(latest, np.int64), np.array(back, np.int64), plan.reach, filters
        ).tolist()
        return rows

    return found


_inline, _behind = _loops(_passes), _loops(_passed)
