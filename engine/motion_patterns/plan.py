"""The shared index of all motion queries of a feed: equal parts are kept and evaluated once.

Every spatial predicate is reduced to **index points** ([CMP] 4): the samples that satisfy it, each
from the time when it enters the predicate's relative window (t + to) until it leaves it (t + from).
A **series** holds the index points of all entities for one (conditions, test, window, every):

- *exists*: the series of the samples that satisfy has a point in its window;
- *forall*: the series of all samples has one, the series of those that do not satisfy has none;
- a distance: a series of all samples with their distance as value; the extremum is kept;
- predicates in order: a **chain** of series; one index point of each, at increasing times. A
  *forall* neighbour of a predicate without a window only narrows that predicate's own
  window: after it means t > T - to, before it t <= T - from (a sample after a window's last
  one is after the window).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.index.geodesic_borders import GeodesicBorder
from engine.model.conditions import Conditions
from engine.model.feed import Crs, Feed
from engine.model.region import PolygonRegion, Region
from engine.motion_patterns.plane_groups import PlaneGroup, bucket_width, plane_groups
from engine.motion_patterns.region_grid import RegionGrid
from engine.motion_patterns.series import Ints, MotionPlan, SeriesKey
from engine.motion_patterns.specification import MotionSpecification, Predicate, TargetPoint
from engine.motion_patterns.theta import (
    LOCAL_AT_LEAST,
    LOCAL_AT_MOST,
    LOCAL_NONE,
    RANK_FIRST_K,
    RANK_GREATEST,
    RANK_LAST_K,
    RANK_LEAST,
    RANKED,
)
from engine.motion_patterns.totals import FOR_EVER, TotalKey
from engine.operator import RegisteredQuery


@dataclass(frozen=True)
class SampleClass:
    """The series with equal conditions, by the test of a sample: none (`every_sample`), its
    distance from a target, or whether region r of `grid` contains it (`tested[r]`: series of those
    inside, series of those outside)."""

    where: Conditions
    every_sample: tuple[int, ...]
    measured: tuple[tuple[tuple[int, ...], Region | TargetPoint], ...]
    grid: RegionGrid | None
    tested: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class MotionIndex:
    """Immutable index over `queries`; see the module's text. `groups`: the queries with
    planes. For the others, `point_classes` and, by distinct `every` in `clocks`,
    `clock_queries`, `clock_series` and `clock_totals`. `borders`: those of polygons with
    distances, on a geographic feed."""

    queries: tuple[RegisteredQuery, ...]
    feed: Feed
    series: tuple[SeriesKey, ...]
    classes: tuple[SampleClass, ...]
    plan: MotionPlan
    groups: tuple[PlaneGroup, ...]
    point_classes: tuple[SampleClass, ...]
    clocks: tuple[int, ...]
    clock_series: tuple[Ints, ...]
    clock_queries: tuple[Ints, ...]
    clock_totals: tuple[tuple[int, ...], ...]
    totals: tuple[TotalKey, ...]
    measures: int
    rankings: tuple[int, ...]
    names_matter: bool
    borders: Mapping[Region, GeodesicBorder]

    def border(self, target: Region | TargetPoint) -> GeodesicBorder | None:
        """The border of a polygon with a distance predicate on a geographic feed."""
        return self.borders.get(target) if isinstance(target, PolygonRegion) else None

    @cached_property
    def widest(self) -> int:
        """The greatest number of predicates of a query."""
        return int(np.diff(self.plan.witness_first).max(initial=0))


@dataclass(frozen=True)
class _Node:
    """A member of the order: a predicate without a window, or a windowed *exists* next to one."""

    predicate: int
    series: int
    free: bool
    followers: tuple[int, ...]


@dataclass
class _Query:
    required: list[int]
    excluded: list[int]
    sums: list[int]
    totals: list[tuple[int, bool]]
    shown: list[int]
    nodes: list[_Node]
    witness: list[int]


class _Compiler:
    """Numbers series in order of first appearance."""

    def __init__(self) -> None:
        self.numbers: dict[SeriesKey, int] = {}
        self.totals: dict[TotalKey, int] = {}

    def series(self, specification: MotionSpecification, test: str, target: Region | TargetPoint | None, start: int, end: int) -> int:
        key = SeriesKey(specification.where, test, target, start, end, specification.every)
        return self.numbers.setdefault(key, len(self.numbers))

    def query(self, specification: MotionSpecification) -> _Query:
        predicates = specification.predicates
        compiled = _Query([], [], [], [], [], [], [-1] * len(predicates))
        for i, predicate in enumerate(predicates):
            if predicate.window is not None:
                self._windowed(specification, predicate, i, compiled)
        self._order(specification, compiled)
        return compiled

    def _windowed(self, specification: MotionSpecification, predicate: Predicate, i: int, compiled: _Query) -> None:
        assert predicate.window is not None
        start, end = predicate.window
        if predicate.numerical:
            series = self.series(specification, "greatest" if predicate.forall else "least", predicate.target, start, end)
            compiled.sums.append(series)
        elif predicate.total is not None:
            series = self._total(specification, predicate, compiled)
        elif predicate.forall:
            series = self.series(specification, "any", None, start, end)
            compiled.required.append(series)
            opposite = "outside" if predicate.relation == "inside" else "inside"
            compiled.excluded.append(self.series(specification, opposite, predicate.target, start, end))
        else:
            series = self.series(specification, predicate.relation, predicate.target, start, end)
            compiled.required.append(series)
        compiled.witness[i] = series

    def _total(self, specification: MotionSpecification, predicate: Predicate, compiled: _Query) -> int:
        """The series that shows the latest sample of a total: one that counted, or
        any that `at_most` needs."""
        total, target = predicate.total, predicate.target
        assert predicate.window is not None and total is not None and isinstance(target, Region)
        start, end = predicate.window
        gap, bound = FOR_EVER if total.gap is None else total.gap, total.span + 1 if total.at_most else total.span
        key = TotalKey(specification.where, target, predicate.relation == "outside", gap, start, end, bound, specification.every)
        compiled.totals.append((self.totals.setdefault(key, len(self.totals)), not total.at_most))
        test, shown = ("any", None) if total.at_most else (predicate.relation, target)
        series = self.series(specification, test, shown, start, end)
        (compiled.required if total.at_most else compiled.shown).append(series)
        return series

    def _order(self, specification: MotionSpecification, compiled: _Query) -> None:
        predicates = specification.predicates
        binary = [i for i, predicate in enumerate(predicates) if predicate.in_order]
        in_order: list[int] = []
        for place, i in enumerate(binary):
            before = binary[place - 1] if place > 0 else None
            after = binary[place + 1] if place + 1 < len(binary) else None
            if predicates[i].window is None:
                compiled.witness[i] = self._free(specification, i, before, after)
                compiled.required.append(compiled.witness[i])
                in_order.append(i)
            elif not predicates[i].forall and any(j is not None and predicates[j].window is None for j in (before, after)):
                in_order.append(i)
        free = [i for i in in_order if predicates[i].window is None]
        for i in in_order:
            is_free = predicates[i].window is None
            place = binary.index(i)
            after = binary[place + 1] if place + 1 < len(binary) else None
            followers = {in_order.index(after)} if after in in_order and (is_free or predicates[after].window is None) else set()
            if is_free and free[-1] != i:
                followers.add(in_order.index(free[free.index(i) + 1]))
            compiled.nodes.append(_Node(i, compiled.witness[i], is_free, tuple(sorted(followers))))

    def _free(self, specification: MotionSpecification, i: int, before: int | None, after: int | None) -> int:
        """The series of a predicate without a window: the horizon,
        narrowed by *forall* neighbours."""
        assert specification.horizon is not None
        predicate = specification.predicates[i]
        start, end = specification.horizon, 0
        left = specification.predicates[before] if before is not None else None
        right = specification.predicates[after] if after is not None else None
        if left is not None and left.forall and left.window is not None:
            start = min(start, left.window[1])
        if right is not None and right.forall and right.window is not None:
            end = right.window[0]
        return self.series(specification, predicate.relation, predicate.target, start, end)


def compile_index(queries: Sequence[RegisteredQuery], feed: Feed) -> MotionIndex:
    """The index over checked motion queries; position i of answers is `queries[i]`."""
    compiler = _Compiler()
    specifications: list[MotionSpecification] = [query.specification for query in queries]
    compiled = [compiler.query(specification) for specification in specifications]
    series = tuple(compiler.numbers)
    rankings = tuple(q for q, one in enumerate(specifications) if one.theta is not None and one.theta.ranks)
    measures = [p for p, key in enumerate(series) if key.test in ("least", "greatest")]
    by_points = [q for q, one in enumerate(specifications) if bucket_width(one) is None]
    plan = _plan(series, specifications, compiled, measures, rankings, by_points, len(compiler.totals))
    used = {p for q in by_points for p in (*compiled[q].required, *compiled[q].excluded, *compiled[q].sums, *compiled[q].shown)}
    clocks = tuple(sorted({specifications[q].every for q in by_points}))
    return MotionIndex(
        queries=tuple(queries),
        feed=feed,
        series=series,
        classes=_classes(series, range(len(series))),
        plan=plan,
        groups=plane_groups(queries, series, plan),
        point_classes=_classes(series, sorted(used)),
        clocks=clocks,
        clock_series=tuple(_ints([p for p in sorted(used) if series[p].every == every]) for every in clocks),
        clock_queries=tuple(_ints([q for q in by_points if specifications[q].every == every]) for every in clocks),
        clock_totals=tuple(tuple(number for key, number in compiler.totals.items() if key.every == every) for every in clocks),
        totals=tuple(compiler.totals),
        measures=len(measures),
        rankings=rankings,
        names_matter=any(one.theta is not None and one.theta.op == "top" for one in specifications),
        borders=_borders(series) if feed.crs is Crs.GEOGRAPHIC else {},
    )


def _classes(series: Sequence[SeriesKey], members: Sequence[int]) -> tuple[SampleClass, ...]:
    """The `members` of the series by their conditions."""
    return tuple(_class(series, members, where) for where in dict.fromkeys(series[p].where for p in members))


def _class(series: Sequence[SeriesKey], members: Sequence[int], where: Conditions) -> SampleClass:
    members_of_class = [(p, series[p]) for p in members if series[p].where == where]
    measured: dict[Region | TargetPoint, list[int]] = {}
    inside: dict[Region, list[int]] = {}
    outside: dict[Region, list[int]] = {}
    for p, key in members_of_class:
        if key.test in ("least", "greatest") and key.target is not None:
            measured.setdefault(key.target, []).append(p)
        elif isinstance(key.target, Region):
            (inside if key.test == "inside" else outside).setdefault(key.target, []).append(p)
    regions = list(dict.fromkeys([*inside, *outside]))
    return SampleClass(
        where=where,
        every_sample=tuple(p for p, key in members_of_class if key.test == "any"),
        measured=tuple((tuple(numbers), target) for target, numbers in measured.items()),
        grid=RegionGrid.of(regions) if regions else None,
        tested=tuple((tuple(inside.get(region, ())), tuple(outside.get(region, ()))) for region in regions),
    )


def _borders(series: Sequence[SeriesKey]) -> Mapping[Region, GeodesicBorder]:
    measured = {key.target for key in series if key.test in ("least", "greatest")}
    return {target: GeodesicBorder.of(target.geometry) for target in measured if isinstance(target, PolygonRegion)}


def _plan(
    series: Sequence[SeriesKey],
    specifications: Sequence[MotionSpecification],
    compiled: Sequence[_Query],
    measures: Sequence[int],
    rankings: Sequence[int],
    by_points: Sequence[int],
    totals: int,
) -> MotionPlan:
    measure = np.full(len(series), -1, np.int64)
    measure[list(measures)] = np.arange(len(measures))
    users: list[list[int]] = [[] for _ in series]
    total_users: list[list[int]] = [[q for q, query in enumerate(compiled) if number in dict(query.totals)] for number in range(totals)]
    eager = np.zeros(len(series), np.bool_)
    for q in by_points:
        query = compiled[q]
        # Candidates of a ranked query are compared elsewhere, maybe later: each change of
        # what they would show counts.
        used = sorted({*query.required, *query.excluded, *query.sums, *(query.shown if q in rankings else ())})
        for p in used:
            users[p].append(q)
        if q in rankings:
            eager[used] = True
        eager[[node.series for node in query.nodes]] = True
    chain_first = np.cumsum([0, *(len(query.nodes) for query in compiled)])
    after = [
        [chain_first[q] + follower for follower in node.followers] + [-1] * (2 - len(node.followers))
        for q, query in enumerate(compiled)
        for node in query.nodes
    ]
    node_of = [{node.predicate: n for n, node in enumerate(query.nodes)} for query in compiled]
    thetas = [one.theta for one in specifications]
    return MotionPlan(
        start=_ints([key.start for key in series]),
        end=_ints([key.end for key in series]),
        every=_ints([key.every for key in series]),
        measure=measure,
        sign=_ints([-1 if key.test == "greatest" else 1 for key in series]),
        eager=eager,
        users_first=_first(users),
        users=_flat(users),
        required_first=_first([query.required for query in compiled]),
        required=_flat([query.required for query in compiled]),
        excluded_first=_first([query.excluded for query in compiled]),
        excluded=_flat([query.excluded for query in compiled]),
        sums_first=_first([query.sums for query in compiled]),
        sums=_flat([query.sums for query in compiled]),
        totals_first=_first([query.totals for query in compiled]),
        totals=_ints([number for query in compiled for number, _ in query.totals]),
        reached=np.array([reached for query in compiled for _, reached in query.totals], np.bool_),
        total_users_first=_first(total_users),
        total_users=_flat(total_users),
        decides=_ints([LOCAL_NONE if theta is None else {"<=": LOCAL_AT_MOST, ">=": LOCAL_AT_LEAST}.get(theta.op, RANKED) for theta in thetas]),
        bound=np.array([0.0 if theta is None else theta.value for theta in thetas], np.float64),
        ranking=_ints([rankings.index(q) if q in rankings else -1 for q in range(len(compiled))]),
        ranks=_ints([rank_of(one) for one in specifications]),
        k=_ints([0 if theta is None else theta.k for theta in thetas]),
        chain_first=chain_first.astype(np.int64),
        chain=_flat([[node.series for node in query.nodes] for query in compiled]),
        chain_after=np.array(after, np.int64).reshape(-1, 2),
        witness_first=_first([query.witness for query in compiled]),
        witness=_flat([query.witness for query in compiled]),
        witness_node=_flat([[nodes.get(i, -1) for i in range(len(query.witness))] for nodes, query in zip(node_of, compiled, strict=True)]),
    )


def rank_of(specification: MotionSpecification) -> int:
    """The RANK_... constant of a ranked query's theta; -1 for others."""
    theta = specification.theta
    if theta is None or not theta.ranks:
        return -1
    if theta.op == "top":
        return RANK_LAST_K if theta.descending else RANK_FIRST_K
    return RANK_LEAST if theta.op == "min" else RANK_GREATEST


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _first(rows: Sequence[Sequence[object]]) -> Ints:
    return np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)


def _flat(rows: Sequence[Sequence[int]]) -> Ints:
    return _ints([value for row in rows for value in row])
