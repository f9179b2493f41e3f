"""The index over all constraint queries of a feed: filters that are asked once for all of them, and each query's closed graph as arrays."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.constraint_queries.expiration import FORMS
from engine.constraint_queries.graph import DistanceBound, closed_distances
from engine.constraint_queries.pairs import OPS, Floats, Graph, Ints
from engine.constraint_queries.specification import Comparison, ConstraintSpecification, interchangeable
from engine.index.geodesic import chord_limits
from engine.model.conditions import Condition
from engine.model.feed import ColumnType, Crs, Feed
from engine.model.region import Region
from engine.operator import RegisteredQuery

# Implied distances are sums of limits; measured ones may break the triangle inequality by their rounding.
_SLACK, _SLACK_METRES = 1e-9, 1e-6
ARROW_TYPES = {ColumnType.STRING: pa.string(), ColumnType.INT: pa.int64(), ColumnType.FLOAT: pa.float64(), ColumnType.BOOL: pa.bool_()}


@dataclass(frozen=True)
class Filter:
    """What an event must satisfy to be taken by a variable: positions in the index's lists. `columns` must have a value; `located`: x, y too."""

    conditions: tuple[int, ...]
    comparisons: tuple[int, ...]
    regions: tuple[int, ...]
    columns: tuple[str, ...]
    located: bool


@dataclass(frozen=True)
class QueryPlan:
    """One query. Columns that are compared: `texts` and `wholes` (int, bool) together are the slots of `ints`, `doubles` those of `floats`."""

    query: RegisteredQuery
    graph: Graph
    form: int
    only_first: bool
    filters: tuple[Filter, ...]
    texts: tuple[str, ...]
    wholes: tuple[str, ...]
    doubles: tuple[str, ...]
    route: int

    @property
    def specification(self) -> ConstraintSpecification:
        found: ConstraintSpecification = self.query.specification
        return found


@dataclass(frozen=True)
class ConstraintIndex:
    """All queries; `conditions`, `comparisons` and `regions` are different ones, `columns` what emitted rows carry for comparisons."""

    feed: Feed
    plans: tuple[QueryPlan, ...]
    conditions: tuple[Condition, ...]
    comparisons: tuple[Comparison, ...]
    regions: tuple[Region, ...]
    columns: tuple[str, ...]


class _Distinct(dict[object, int]):
    """Things and their numbers in order of first appearance."""

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
            filters.append(
                Filter(
                    tuple(conditions.number(_key(one, feed)) for one in where),
                    tuple(comparisons.number(one) for one in variable.comparisons),
                    tuple(regions.number(one) for one in variable.regions),
                    tuple(sorted(compared)),
                    any(pair.least or pair.greatest for pair in own),
                )
            )
        used = sorted({column for one in filters for column in one.columns})
        for column in used:
            columns.number(column)
        plans.append(_plan(query, feed, tuple(filters), used))
    return ConstraintIndex(
        feed, tuple(plans), tuple(one[0] for one in conditions), tuple(comparisons), tuple(regions), tuple(columns)  # type: ignore[index, arg-type]
    )  # fmt: skip


def _key(condition: Condition, feed: Feed) -> tuple[Condition, str]:
    """Constants of different types may be equal in Python (1 and True); the type is part of what tells conditions apart."""
    return condition, f"{type(condition.constant).__name__} {feed.types[condition.column]}"


def _plan(query: RegisteredQuery, feed: Feed, filters: tuple[Filter, ...], used: Sequence[str]) -> QueryPlan:
    specification: ConstraintSpecification = query.specification
    texts = tuple(column for column in used if feed.types[column] is ColumnType.STRING)
    doubles = tuple(column for column in used if feed.types[column] is ColumnType.FLOAT)
    wholes = tuple(column for column in used if column not in texts and column not in doubles)
    slots = {column: slot for slot, column in enumerate((*texts, *wholes))} | {column: ~slot for slot, column in enumerate(doubles)}
    graph = _graph(specification, feed.crs is Crs.GEOGRAPHIC, slots)
    route = zlib.crc32(f"{query.id} {query.version}".encode())
    form, only_first = FORMS[specification.expiration], specification.report == "first"
    return QueryPlan(query, graph, form, only_first, filters, texts, wholes, doubles, route)


def _graph(specification: ConstraintSpecification, geodesic: bool, slots: dict[str, int]) -> Graph:
    m = len(specification.variables)
    shape = (m, m)
    latest = np.array([[0 if one is None else one for one in row] for row in specification.latest()], np.int64).reshape(shape)
    order, blocked, arrangements = _symmetry(specification)
    near, far, greatest = np.full(shape, -1.0), np.full(shape, np.inf), np.full(shape, np.inf)
    least_near, least_far, least = np.full(shape, -1.0), np.full(shape, np.inf), np.full(shape, -1.0)
    open_ends, least_open = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for pair in specification.pairs:
        for i, j in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.greatest is not None:
                near[i, j], far[i, j] = _chords(pair.greatest.value, geodesic)
                greatest[i, j], open_ends[i, j] = pair.greatest.value, pair.greatest.open
            if pair.least is not None:
                least_near[i, j], least_far[i, j] = _chords(pair.least.value, geodesic)
                least[i, j], least_open[i, j] = pair.least.value, pair.least.open
    first, op, left, right = _comparisons(specification, slots)
    return Graph(
        latest, order, _reach(specification, geodesic), near, far, greatest, open_ends, least_near, least_far, least, least_open,
        first, op, left, right, arrangements, blocked, geodesic,
    )  # fmt: skip


def _chords(limit: float, geodesic: bool) -> tuple[float, float]:
    """Squared chords at most the first are within `limit`, beyond the second are not."""
    if geodesic:
        near, far = chord_limits(limit)
        return float(near), float(far)
    # Squares of numbers far from 1 lose digits or overflow: there hypot decides.
    near = (limit * (1.0 - _SLACK)) ** 2 if 1e-100 < limit < 1e150 else -1.0
    return near, (limit * (1.0 + _SLACK)) ** 2 if 1e-100 < limit < 1e150 else np.inf


def _reach(specification: ConstraintSpecification, geodesic: bool) -> Floats:
    """The squared chord beyond which two variables cannot meet, by the shortest path of greatest distances."""
    m = len(specification.variables)
    given = [DistanceBound(one.first, one.second, one.greatest.value, one.greatest.open, 0) for one in specification.pairs if one.greatest]
    reach = np.full((m, m), np.inf)
    for i, row in enumerate(closed_distances(m, given)):
        for j, limit in enumerate(row):
            if limit is not None:
                reach[i, j] = _chords(float(limit[0]) * (1.0 + _SLACK) + (_SLACK_METRES if geodesic else 0.0), geodesic)[1]
    return reach


def _comparisons(specification: ConstraintSpecification, slots: dict[str, int]) -> tuple[Ints, Ints, Ints, Ints]:
    """Comparisons of all ordered pairs of variables, in CSR form."""
    m = len(specification.variables)
    given: dict[tuple[int, int], list[Comparison]] = {}
    for pair in specification.pairs:
        given[pair.first, pair.second] = list(pair.comparisons)
        given[pair.second, pair.first] = [one.flipped for one in pair.comparisons]
    lists = [given.get((i, j), []) for i in range(m) for j in range(m)]
    first = np.cumsum([0, *(len(one) for one in lists)], dtype=np.int64)
    flat = [one for some in lists for one in some]
    op, left, right = [OPS[one.op] for one in flat], [slots[one.left] for one in flat], [slots[one.right] for one in flat]
    return first, np.array(op, np.int64), np.array(left, np.int64), np.array(right, np.int64)


def _symmetry(specification: ConstraintSpecification) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], Ints]:
    """How sets are told from orders: interchangeable variables take their events in order; for others all arrangements are compared."""
    m = len(specification.variables)
    order, blocked, arrangements = np.zeros((m, m), np.int8), np.zeros(m, np.bool_), np.empty((0, m), np.int64)
    if interchangeable(specification):
        for group in specification.symmetric:
            blocked[list(group[:-1])] = True
            for a, one in enumerate(group):
                for other in group[a + 1 :]:
                    order[one, other], order[other, one] = 1, -1
    elif specification.symmetric:
        found = []
        for arranged in product(*(permutations(group) for group in specification.symmetric)):
            arrangement = list(range(m))
            for group, members in zip(specification.symmetric, arranged, strict=True):
                for place, member in zip(group, members, strict=True):
                    arrangement[place] = member
            found.append(arrangement)
        arrangements = np.array(found[1:], np.int64).reshape(-1, m)  # The first one changes nothing.
    return order, blocked, arrangements
