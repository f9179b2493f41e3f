"""Constraint graphs: the closure of the given constraints over all pairs of variables, and the
proof if they cannot be satisfied.

Times are a simple temporal network: `V_j.t - V_i.t <= b` is an edge from i to j, shortest paths
give all implied bounds and a negative cycle proves that no events satisfy them. Greatest distances
obey the triangle inequality, so shortest paths give those too; a least distance above the implied
greatest one also proves that no events satisfy them.

References: [CCQ] section 2 and 3 (complete constraint graphs; Floyd and Warshall); Dechter, Meiri,
Pearl, *Temporal constraint networks*, 1991.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from engine.model.messages import Message, all_of

LONGEST = 2**62
"""Greater than the difference of any two times."""


@dataclass(frozen=True)
class TimeBound:
    """`V_end.t - V_start.t <= upper`, asserted by constraint number `source` (from 0)."""

    start: int
    end: int
    upper: int
    source: int


def time_bounds(start: int, end: int, low: int | None, high: int | None, source: int) -> list[TimeBound]:
    """The bounds `low <= end.t - start.t <= high` (null: unbounded) that a constraint states."""
    found = [] if high is None else [TimeBound(start, end, high, source)]
    return found if low is None else [*found, TimeBound(end, start, -low, source)]


@dataclass(frozen=True)
class DistanceBound:
    """The distance of two variables' events is at most (or at least) `value`;
    if `open`, not equal to it."""

    first: int
    second: int
    value: float
    open: bool
    source: int


@dataclass(frozen=True)
class Contradiction:
    """The proof that no events satisfy the constraints numbered `sources`: a cycle of the graph, in
    words and as its edges (pairs of variables)."""

    sources: tuple[int, ...]
    reason: Message
    cycle: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ConstraintGraph:
    """All bounds on times and distances of pairs of variables; `sources`
    number their constraints."""

    names: tuple[str, ...]
    times: tuple[TimeBound, ...]
    greatest: tuple[DistanceBound, ...]
    least: tuple[DistanceBound, ...]

    def contradiction(self) -> Contradiction | None:
        """The proof that no events can satisfy the graph; null if they may."""
        return contradiction(self.names, self.times, self.greatest, self.least)


Latest = list[list[int | None]]
"""`latest[i][j]`: the least b with `V_j.t - V_i.t <= b`; null: not bounded."""
Reach = list[list[tuple[Fraction, bool] | None]]
"""`reach[i][j]`: the greatest distance of V_i and V_j and whether it is itself
excluded; null: not bounded."""


def closed_times(variables: int, bounds: Iterable[TimeBound]) -> Latest:
    """All implied bounds on time differences; the network must have no negative cycle.

    >>> closed_times(3, [TimeBound(0, 1, 5, 0), TimeBound(1, 2, 5, 1), TimeBound(2, 1, -1, 1)])[0]
    [0, 5, 10]
    """
    latest: Latest = [[0 if i == j else None for j in range(variables)] for i in range(variables)]
    for bound in bounds:
        known = latest[bound.start][bound.end]
        latest[bound.start][bound.end] = bound.upper if known is None else min(known, bound.upper)
    for k in range(variables):
        for i in range(variables):
            for j in range(variables):
                to, on, known = latest[i][k], latest[k][j], latest[i][j]
                if to is not None and on is not None and (known is None or to + on < known):
                    latest[i][j] = to + on
    # Times differ by less than LONGEST, so a bound above it excludes nothing, and one below its
    # negative excludes all events.
    return [[None if one is None else max(-LONGEST, min(LONGEST, one)) for one in row] for row in latest]


def negative_cycle(variables: int, bounds: Sequence[TimeBound]) -> list[TimeBound] | None:
    """The bounds of a cycle with a negative sum, in order; null if there is none."""
    least = [0] * variables
    by: list[TimeBound | None] = [None] * variables
    changed = -1
    for _ in range(variables):
        changed = -1
        for bound in bounds:
            if least[bound.start] + bound.upper < least[bound.end]:
                least[bound.end] = least[bound.start] + bound.upper
                by[bound.end] = bound
                changed = bound.end
    if changed < 0:
        return None
    for _ in range(variables):  # After so many steps back along the path, the node is on the cycle.
        changed = _predecessor(by, changed).start
    cycle = [_predecessor(by, changed)]
    while cycle[-1].start != changed:
        cycle.append(_predecessor(by, cycle[-1].start))
    return cycle[::-1]


def _predecessor(by: Sequence[TimeBound | None], variable: int) -> TimeBound:
    bound = by[variable]
    assert bound is not None
    return bound


def closed_distances(variables: int, greatest: Iterable[DistanceBound]) -> Reach:
    """All implied greatest distances.

    >>> bounds = [DistanceBound(0, 1, 1, True, 0), DistanceBound(1, 2, 1, False, 1)]
    >>> closed_distances(3, bounds)[0][2]
    (Fraction(2, 1), True)
    """
    return _shortest(variables, greatest)[0]


def _shortest(variables: int, greatest: Iterable[DistanceBound]) -> tuple[Reach, dict[tuple[int, int], tuple[DistanceBound, ...]]]:
    """The implied greatest distances, and the bounds whose sum each is."""
    reach: Reach = [[None] * variables for _ in range(variables)]
    paths: dict[tuple[int, int], tuple[DistanceBound, ...]] = {}
    for bound in greatest:
        found = (Fraction(bound.value), bound.open)
        if _tighter(found, reach[bound.first][bound.second]):
            for i, j in ((bound.first, bound.second), (bound.second, bound.first)):
                reach[i][j], paths[i, j] = found, (bound,)
    for k in range(variables):
        for i in range(variables):
            for j in range(variables):
                to, on = reach[i][k], reach[k][j]
                if i != j and to is not None and on is not None:
                    found = (to[0] + on[0], to[1] or on[1])
                    if _tighter(found, reach[i][j]):
                        reach[i][j], paths[i, j] = found, paths[i, k] + paths[k, j]
    return reach, paths


def _tighter(one: tuple[Fraction, bool], other: tuple[Fraction, bool] | None) -> bool:
    return other is None or one[0] < other[0] or (one[0] == other[0] and one[1] and not other[1])


def contradiction(
    names: Sequence[str], times: Sequence[TimeBound], greatest: Sequence[DistanceBound], least: Sequence[DistanceBound]
) -> Contradiction | None:
    """The cycle that proves that the constraints cannot be satisfied; null if times and
    distances allow solutions."""
    cycle = negative_cycle(len(names), times)
    if cycle is not None:
        steps = [
            Message("{later}.t - {earlier}.t <= {most} {by}", later=names[one.end], earlier=names[one.start], most=str(one.upper), by=_by(one.source))
            for one in cycle
        ]
        total = sum(one.upper for one in cycle)
        reason = Message("{steps} add up to 0 <= {total}, which is false", steps=all_of(steps), total=str(total))
        return Contradiction(tuple(one.source for one in cycle), reason, tuple((one.start, one.end) for one in cycle))
    reach, paths = _shortest(len(names), greatest)
    for bound in least:
        limit = reach[bound.first][bound.second]
        if limit is not None and (limit[0] < Fraction(bound.value) or (limit[0] == Fraction(bound.value) and (limit[1] or bound.open))):
            path = paths[bound.first, bound.second]
            parts = [Message("{value} {by}", value=f"{one.value:g}", by=_by(one.source)) for one in path]
            sums = reduce(lambda first, last: Message("{first} + {last}", first=first, last=last), parts)
            value, by = f"{bound.value:g}", _by(bound.source)
            needed = Message("more than {value} {by}", value=value, by=by) if bound.open else Message("at least {value} {by}", value=value, by=by)
            most = Message("less than {sums}", sums=sums) if limit[1] else Message("at most {sums}", sums=sums)
            reason = Message(
                "{one} and {other} must be {needed} apart, and are {most} apart",
                one=names[bound.first],
                other=names[bound.second],
                needed=needed,
                most=most,
            )
            every = (*path, bound)
            return Contradiction(tuple(one.source for one in every), reason, tuple((one.first, one.second) for one in every))
    return None


def _by(source: int) -> Message:
    return Message("(constraint {number})", number=source + 1)
