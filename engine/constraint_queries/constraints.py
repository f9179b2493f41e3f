"""A checked constraint query: the filters of each variable, and at most one `VariablePair`
for every pair of variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from engine.constraint_queries.graph import closed_times, time_bounds
from engine.constraint_queries.sums import SumComparison
from engine.model.conditions import FLIPPED, Conditions
from engine.model.region import Region


@dataclass(frozen=True, order=True)
class Comparison:
    """`left op right`, where both are columns: of one variable, or of a Pair's
    first and second variable."""

    left: str
    op: str
    right: str

    @property
    def flipped(self) -> Comparison:
        """The same comparison with its sides exchanged."""
        return Comparison(self.right, FLIPPED[self.op], self.left)


@dataclass(frozen=True)
class Variable:
    """A variable takes events that satisfy `where` and `comparisons` (of the event's own columns)
    and are in all `regions`."""

    name: str
    where: Conditions = field(default_factory=Conditions)
    comparisons: tuple[Comparison, ...] = ()
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class DistanceLimit:
    """A bound on a distance; if `open`, the value itself is excluded."""

    value: float
    open: bool = False


@dataclass(frozen=True)
class VariablePair:
    """The constraints between two variables, `first` < `second` by position.

    `earliest <= second.t - first.t <= latest` (closed; null: unbounded); the distance is
    within `least` and `greatest`.
    """

    first: int
    second: int
    earliest: int | None = None
    latest: int | None = None
    least: DistanceLimit | None = None
    greatest: DistanceLimit | None = None
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class ConstraintSpecification:
    """A satisfiable constraint query with bounded memory. `pairs` are sorted; `symmetric` are
    groups of positions of variables, each sorted. `sums` are checked on whole solutions."""

    name: str
    where: Conditions
    variables: tuple[Variable, ...]
    pairs: tuple[VariablePair, ...]
    symmetric: tuple[tuple[int, ...], ...] = ()
    report: str = "all"
    expiration: str = "tight"
    sums: tuple[SumComparison, ...] = ()

    def latest(self) -> list[list[int | None]]:
        """The closure of the time bounds: `latest[i][j]` is the greatest possible V_j.t - V_i.t."""
        return closed_times(
            len(self.variables), [bound for pair in self.pairs for bound in time_bounds(pair.first, pair.second, pair.earliest, pair.latest, 0)]
        )


def interchangeable(specification: ConstraintSpecification) -> bool:
    """Whether exchanging two variables of one group never changes the query's meaning."""
    if specification.sums:
        return False
    latest = specification.latest()
    views = {(pair.first, pair.second): (pair.least, pair.greatest, frozenset(pair.comparisons)) for pair in specification.pairs}
    views |= {(j, i): (low, high, frozenset(one.flipped for one in compared)) for (i, j), (low, high, compared) in views.items()}
    filters = [(frozenset(one.where.items), frozenset(one.comparisons), frozenset(one.regions)) for one in specification.variables]
    everything = range(len(filters))
    for group in specification.symmetric:
        for one, other in pairwise(group):
            swap = [other if i == one else one if i == other else i for i in everything]
            if filters[one] != filters[other]:
                return False
            for i in everything:
                for j in everything:
                    if latest[i][j] != latest[swap[i]][swap[j]] or views.get((i, j)) != views.get((swap[i], swap[j])):
                        return False
    return True
