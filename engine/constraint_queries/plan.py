"""The index over all constraint queries of a feed: their filters, which are evaluated together, and
the closed graphs as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.constraint_queries.constraints import Comparison, ConstraintSpecification, interchangeable
from engine.constraint_queries.expiration import FORMS, TIGHT, latest_arrivals, renewable_variables, spans, store_only_spans
from engine.constraint_queries.graph import DistanceBound, closed_distances
from engine.constraint_queries.pairs import (
    GREATEST,
    LEAST,
    LEAST_FAR,
    LEAST_NEAR,
    LEAST_OPEN,
    OPEN,
    OPS,
    SURELY_FAR,
    SURELY_NEAR,
    Floats,
    Graphs,
    Ints,
)  # fmt: skip
from engine.constraint_queries.ranges import Filter, Ranges, ranges_of
from engine.constraint_queries.store import Slots
from engine.constraint_queries.sums import FIRST, MINUS, PLUS, TIMES
from engine.index.geodesic import chord_limits
from engine.model.conditions import Condition
from engine.model.feed import ColumnType, Crs, Feed
from engine.model.region import Region
from engine.operator import RegisteredQuery

# Implied distances are sums of limits; measured distances may violate the triangle
# inequality by their rounding.
_SLACK, _SLACK_METRES = 1e-9, 1e-6
_JOINS = (FIRST, PLUS, MINUS, TIMES)
"""By the numbers of search.JOIN_."""
ARROW_TYPES = {ColumnType.STRING: pa.string(), ColumnType.INT: pa.int64(), ColumnType.FLOAT: pa.float64(), ColumnType.BOOL: pa.bool_()}


@dataclass(frozen=True)
class QueryPlan:
    """One query, and its filters by variable."""

    query: RegisteredQuery
    filters: tuple[Filter, ...]

    @property
    def specification(self) -> ConstraintSpecification:
        found: ConstraintSpecification = self.query.specification
        return found


@dataclass(frozen=True)
class ConstraintIndex:
    """All queries. `conditions`, `comparisons` and `regions` hold each distinct one once;
    `ranges` evaluates them. `slots`: where events hold the compared columns. `names`: of all
    variables, in the order of `graphs`."""

    feed: Feed
    plans: tuple[QueryPlan, ...]
    conditions: tuple[Condition, ...]
    comparisons: tuple[Comparison, ...]
    regions: tuple[Region, ...]
    slots: Slots
    graphs: Graphs
    ranges: Ranges
    names: pa.Array


class _Distinct(dict[object, int]):
    """Distinct values, numbered in order of first appearance."""

    def number(self, thing: object) -> int:
        return self.setdefault(thing, len(self))


def compile_index(queries: Sequence[RegisteredQuery], feed: Feed) -> ConstraintIndex:
    conditions, comparisons, regions, columns = _Distinct(), _Distinct(), _Distinct(), _Distinct()
    plans = []
    for query in queries:
        specification: ConstraintSpecification = query.specification
        filters = []
        for i, variable in enumerate(specification.variables):
            where = (*specification.where.items, *variable.where.items)
            own = [pair for pair in specification.pairs if i in (pair.first, pair.second)]
            compared = {one.left if pair.first == i else one.right for pair in own for one in pair.comparisons}
            compared |= {column for one in specification.sums for who, column in one.columns if who == i}
            filters.append(
                Filter(
                    tuple(conditions.number(_key(one, feed)) for one in where),
                    tuple(comparisons.number(one) for one in variable.comparisons),
                    tuple(regions.number(one) for one in variable.regions),
                    tuple(sorted(compared)),
                    any(pair.least or pair.greatest for pair in own),
                )
            )
        for column in sorted({column for one in filters for column in one.columns}):
            columns.number(column)
        plans.append(QueryPlan(query, tuple(filters)))
    used: tuple[str, ...] = tuple(columns)  # type: ignore[arg-type]
    slots = _slots(used, feed)
    asked: tuple[Condition, ...] = tuple(one[0] for one in conditions)  # type: ignore[index]
    ranges = ranges_of([plan.filters for plan in plans], asked, feed)
    names = pa.array([variable.name for plan in plans for variable in plan.specification.variables], pa.string())
    others: tuple[Any, Any] = tuple(comparisons), tuple(regions)
    return ConstraintIndex(feed, tuple(plans), asked, *others, slots, _graphs(plans, feed, slots), ranges, names)


def _key(condition: Condition, feed: Feed) -> tuple[Condition, str]:
    """The key of a condition. It contains the constant's type, because constants of different types
    may be equal in Python (1 and True)."""
    return condition, f"{type(condition.constant).__name__} {feed.types[condition.column]}"


def _slots(columns: Sequence[str], feed: Feed) -> Slots:
    texts = tuple(column for column in columns if feed.types[column] is ColumnType.STRING)
    doubles = tuple(column for column in columns if feed.types[column] is ColumnType.FLOAT)
    return Slots(texts, tuple(column for column in columns if column not in texts and column not in doubles), doubles)


def _graphs(plans: Sequence[QueryPlan], feed: Feed, slots: Slots) -> Graphs:
    """The graphs of all queries, concatenated."""
    numbers, geodesic = slots.numbers, feed.crs is Crs.GEOGRAPHIC
    parts = [_graph(plan.specification, geodesic, numbers) for plan in plans]
    sizes = np.array([len(plan.filters) for plan in plans], np.int64)

    def joined(name: str, columns: int = 0) -> npt.NDArray[Any]:
        rows = [part[name] for part in parts]
        kind = rows[0].dtype if rows else np.int64
        return np.concatenate([np.empty((0, columns) if columns else 0, kind), *rows])

    return Graphs(
        variables=_offsets(sizes), pairs=_offsets(sizes * sizes), times=joined("times", 4), limits=joined("limits", 3), exact=joined("exact", 8),
        compared=_offsets(joined("compared")), comparisons=joined("comparisons", 3), roles=joined("roles", 5), side=joined("side"),
        form=np.array([FORMS[plan.specification.expiration] for plan in plans], np.int64),
        only_first=np.array([plan.specification.report == "first" for plan in plans], np.bool_),
        arrangements=joined("arrangements"), arranged=_offsets([len(part["arrangements"]) for part in parts]),
        summed=_offsets([len(part["sum_ops"]) for part in parts]), sum_ops=joined("sum_ops"), sides=_offsets(joined("sides")),
        factors=joined("factors", 3), constants=joined("constants").astype(np.float64), geodesic=geodesic,
    )  # fmt: skip


def _offsets(lengths: Sequence[int] | Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _graph(specification: ConstraintSpecification, geodesic: bool, slots: dict[str, int]) -> dict[str, npt.NDArray[Any]]:
    """The fields of `Graphs` for one query; `compared` as lengths."""
    m = len(specification.variables)
    shape = (m, m)
    latest = np.array([[0 if one is None else one for one in row] for row in specification.latest()], np.int64).reshape(shape)
    order, arrangements = _symmetry(specification)
    exact = np.empty((m, m, 8))
    exact[:] = (-1.0, np.inf, np.inf, 0.0, -1.0, np.inf, -1.0, 0.0)
    for pair in specification.pairs:
        for at in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.greatest is not None:
                exact[at][[SURELY_NEAR, SURELY_FAR]] = _chords(pair.greatest.value, geodesic)
                exact[at][[GREATEST, OPEN]] = pair.greatest.value, pair.greatest.open
            if pair.least is not None:
                exact[at][[LEAST_NEAR, LEAST_FAR]] = _chords(pair.least.value, geodesic)
                exact[at][[LEAST, LEAST_OPEN]] = pair.least.value, pair.least.open
    reach = _reach(specification, geodesic)
    compared, comparisons = _comparisons(specification, slots)
    near = np.where(exact[..., GREATEST] < np.inf, exact[..., SURELY_NEAR], np.inf)
    near = np.where(compared.reshape(shape) == 0, np.minimum(near, reach), -1.0)
    apart = np.where(exact[..., LEAST] >= 0.0, exact[..., LEAST_FAR], -1.0)
    after = latest_arrivals(latest, order)
    may_renew, tight = renewable_variables(after), FORMS[specification.expiration] == TIGHT
    renews = [bool(np.delete(may_renew, i).any()) for i in range(m)]
    return {
        "times": np.stack([latest, -latest.T, order, after], axis=-1).reshape(-1, 4).astype(np.int64),
        "limits": np.stack([reach, near, apart], axis=-1).reshape(-1, 3),
        "exact": exact.reshape(-1, 8),
        "compared": compared,
        "comparisons": comparisons,
        "roles": np.column_stack([spans(after), np.array(may_renew, np.int64), np.array(renews, np.int64), store_only_spans(after, tight)]),
        "side": _sides(reach),
        "arrangements": arrangements.reshape(-1),
        **_sums(specification, slots),
    }


def _sides(reach: Floats) -> Floats:
    """The side of each variable's cells: the greatest distance at which another variable searches
    its events; -1 if no distance is limited."""
    between = np.where(np.isfinite(reach) & (reach > 0.0), reach, -1.0)
    np.fill_diagonal(between, -1.0)
    most = between.max(axis=0, initial=-1.0)
    return np.where(most > 0.0, np.sqrt(np.maximum(most, 0.0)), -1.0)


def _chords(limit: float, geodesic: bool) -> tuple[float, float]:
    """Two squared chords: at most the first is certainly within `limit`, above
    the second certainly not."""
    if geodesic:
        near, far = chord_limits(limit)
        return float(near), float(far)
    # Squares of numbers far from 1 lose digits or overflow; hypot decides these.
    near = (limit * (1.0 - _SLACK)) ** 2 if 1e-100 < limit < 1e150 else -1.0
    return near, (limit * (1.0 + _SLACK)) ** 2 if 1e-100 < limit < 1e150 else np.inf


def _reach(specification: ConstraintSpecification, geodesic: bool) -> Floats:
    """The squared chord beyond which two variables' events are too far apart, by the shortest
    path of greatest distances."""
    m = len(specification.variables)
    given = [DistanceBound(one.first, one.second, one.greatest.value, one.greatest.open, 0) for one in specification.pairs if one.greatest]
    reach = np.full((m, m), np.inf)
    for i, row in enumerate(closed_distances(m, given)):
        for j, limit in enumerate(row):
            if limit is not None:
                reach[i, j] = _chords(float(limit[0]) * (1.0 + _SLACK) + (_SLACK_METRES if geodesic else 0.0), geodesic)[1]
    return reach


def _comparisons(specification: ConstraintSpecification, slots: dict[str, int]) -> tuple[Ints, Ints]:
    """How many comparisons each ordered pair of variables has, and all of them."""
    m = len(specification.variables)
    given: dict[tuple[int, int], list[Comparison]] = {}
    for pair in specification.pairs:
        given[pair.first, pair.second] = list(pair.comparisons)
        given[pair.second, pair.first] = [one.flipped for one in pair.comparisons]
    lists = [given.get((i, j), []) for i in range(m) for j in range(m)]
    counts = np.array([len(one) for one in lists], np.int64)
    flat = [one for some in lists for one in some]
    rows = [(OPS[one.op], slots[one.left], slots[one.right]) for one in flat]
    return counts, np.array(rows, np.int64).reshape(-1, 3)


def _sums(specification: ConstraintSpecification, slots: dict[str, int]) -> dict[str, npt.NDArray[Any]]:
    """Comparisons of sums; `sides` as lengths."""
    sides = [side for one in specification.sums for side in (one.left, one.right)]
    flat = [factor for side in sides for factor in side]
    rows = [(_JOINS.index(one.op), one.variable, slots[one.column] if one.variable >= 0 else 0) for one in flat]
    return {
        "sum_ops": np.array([OPS[one.op] for one in specification.sums], np.int64),
        "sides": np.array([len(side) for side in sides], np.int64),
        "factors": np.array(rows, np.int64).reshape(-1, 3),
        "constants": np.array([one.constant for one in flat], np.float64),
    }


def _symmetry(specification: ConstraintSpecification) -> tuple[npt.NDArray[np.int8], Ints]:
    """How a set of events becomes one answer: interchangeable variables take events in order; for
    other groups all arrangements are compared."""
    m = len(specification.variables)
    order, arrangements = np.zeros((m, m), np.int8), np.empty((0, m), np.int64)
    if interchangeable(specification):
        for group in specification.symmetric:
            for a, one in enumerate(group):
                for other in group[a + 1 :]:
                    order[one, other], order[other, one] = 1, -1
    elif specification.symmetric:
        found = []
        for arranged in product(*(permutations(group) for group in specification.symmetric)):
            arrangement = list(range(m))
            for group, members in zip(specification.symmetric, arranged, strict=True):
                for variable, member in zip(group, members, strict=True):
                    arrangement[variable] = member
            found.append(arrangement)
        # The first one changes nothing.
        arrangements = np.array(found[1:], np.int64).reshape(-1, m)
    return order, arrangements
