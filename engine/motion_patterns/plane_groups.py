"""The queries with planes, in groups: a **group** is queries with equal conditions,
`every` and bucket width, and at most 64 sequences together, so that the bits of one word
show which of them a sample hits.

A query has planes if its windows are few buckets long; the bucket is the greatest span of which
`every` and all the query's windows are whole multiples. A predicate without a window has the
horizon as its window: planes show which entities satisfy each predicate of an order, `chains` which
do so in order. All other queries (windows of very many buckets) keep index points. The choice
depends on the query alone, so adding or removing others never changes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.model.conditions import Conditions
from engine.model.region import CircleRegion, Region
from engine.motion_patterns.box_slabs import BoxSlabs
from engine.motion_patterns.distance_columns import DistanceMeasures
from engine.motion_patterns.region_grid import RegionGrid, all_boxes
from engine.motion_patterns.series import MotionPlan, SeriesKey
from engine.motion_patterns.specification import MotionSpecification, TargetPoint
from engine.motion_patterns.windows import Sweep
from engine.operator import RegisteredQuery

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

MOST_SEQUENCES = 64
"""The greatest number of sequences of a group."""
_MOST_SLABBED = 16
"""The greatest number of groups of boxes with equal conditions that each test all rows;
more of them share a grid."""
MOST_BUCKETS = 128
"""The greatest number of buckets of a window: this many planes are kept, and
combined at each evaluation."""

SequenceKey = tuple[str, Region | TargetPoint | None]
GroupKey = tuple[Conditions, int, int]


@dataclass(frozen=True)
class SampleBits:
    """The bits of a sample's word: `always` those; if the sample is in region `regions[i]` of the
    conditions' grid, with `holds[i]` and without `misses[i]`."""

    always: np.uint64
    regions: Ints
    holds: Words
    misses: Words


@dataclass(frozen=True)
class PlaneGroup:
    """`queries`: positions in the index. `sequences`: (test, target) of each bit of the words.
    `measured`: targets whose distances are stored with the samples, because no kernel computes
    them. `keeps_all`: every sample is stored, not only those that hit. `slabs`: if only samples in
    a few boxes are stored, box r for sequence r; else null, and `bits` and `grid` decide; groups
    with equal conditions share the grid."""

    where: Conditions
    every: int
    width: int
    queries: Ints
    sequences: tuple[SequenceKey, ...]
    sweep: Sweep
    measures: DistanceMeasures
    measured: tuple[Region | TargetPoint, ...]
    slabs: BoxSlabs | None
    grid: RegionGrid | None
    bits: SampleBits
    keeps_all: bool

    @property
    def key(self) -> GroupKey:
        return (self.where, self.every, self.width)

    @property
    def slots(self) -> int:
        """Number of buckets that a present or later window contains. A window that *forall*
        neighbours make empty ends before it begins."""
        return int(max(self.sweep.start.max(initial=0), self.sweep.end.max(initial=0))) // self.width

    @property
    def reach(self) -> int:
        """How long a sample is needed, in the unit of t."""
        return max(self.slots * self.width, int(self.measures.start.max(initial=0)))

    @property
    def linked(self) -> bool:
        """Whether the samples of an entity are linked over several
        buckets; exact scores need this."""
        return len(self.measures.start) > 0

    @property
    def column_slots(self) -> int:
        return int((self.measures.start - self.measures.end).max(initial=0)) // self.width


def bucket_width(specification: MotionSpecification) -> int | None:
    """Width of the query's buckets in the unit of t, or null if it keeps index points.

    >>> from engine.motion_patterns.specification import Predicate
    >>> target, windows = TargetPoint(0.0, 0.0, False), ((30, 20), (12, 0))
    >>> steps = tuple(Predicate("distance", target, window) for window in windows)
    >>> bucket_width(MotionSpecification("", Conditions(()), steps, None, every=4))
    2
    """
    if any(predicate.total is not None for predicate in specification.predicates):
        return None
    windows = [predicate.window or (specification.horizon or 0, 0) for predicate in specification.predicates]
    # A query of only foralls has one more sequence than predicates.
    if len(windows) >= MOST_SEQUENCES:
        return None
    spans = [span for window in windows for span in window]
    width = math.gcd(specification.every, *spans)
    return width if max(spans) <= MOST_BUCKETS * width else None


def plane_groups(queries: Sequence[RegisteredQuery], series: Sequence[SeriesKey], plan: MotionPlan) -> tuple[PlaneGroup, ...]:
    """The groups of all queries with planes. `series`, `plan`: those of all `queries`."""
    members: dict[tuple[GroupKey, bool], list[int]] = {}
    for q, query in enumerate(queries):
        specification: MotionSpecification = query.specification
        width = bucket_width(specification)
        if width is not None:
            members.setdefault(((specification.where, specification.every, width), _asks_all(specification)), []).append(q)
    groups = [_Group(series, plan, key, part, asks_all) for (key, asks_all), numbers in members.items() for part in _parts(series, plan, numbers)]
    slabbed = {where for where in {group.where for group in groups} if sum(group.boxes and group.where == where for group in groups) <= _MOST_SLABBED}
    gridded: dict[Conditions, dict[Region, None]] = {}
    for group in groups:
        if not (group.boxes and group.where in slabbed):
            gridded.setdefault(group.where, {}).update(dict.fromkeys(group.regions))
    grids = {where: RegionGrid.of(list(regions)) for where, regions in gridded.items() if regions}
    return tuple(group.compiled(None if group.boxes and group.where in slabbed else grids.get(group.where)) for group in groups)


def _asks_all(specification: MotionSpecification) -> bool:
    """Whether the query needs samples that are in none of its regions."""
    return any(predicate.numerical or predicate.forall or predicate.relation == "outside" for predicate in specification.predicates)


def _parts(series: Sequence[SeriesKey], plan: MotionPlan, queries: Sequence[int]) -> list[list[int]]:
    """The queries in parts of at most MOST_SEQUENCES sequences; queries with common sequences
    are in one part if possible."""
    parts: list[list[int]] = []
    sequences: list[set[SequenceKey]] = []
    seen: dict[SequenceKey, int] = {}
    for q in queries:
        used = {_sequence(series[p]) for p in (*_row(plan.required_first, plan.required, q), *_row(plan.excluded_first, plan.excluded, q))}
        known = sorted({seen[sequence] for sequence in used if sequence in seen} | ({len(parts) - 1} if parts else set()))
        fits = [n for n in known if len(sequences[n] | used) <= MOST_SEQUENCES]
        if not fits:
            fits = [len(parts)]
            parts.append([])
            sequences.append(set())
        best = max(fits, key=lambda n: len(sequences[n] & used))
        parts[best].append(q)
        sequences[best] |= used
        seen |= dict.fromkeys(used, best)
    return parts


def _sequence(key: SeriesKey) -> SequenceKey:
    return key.test, key.target


class _Group:
    """Numbers a group's sequences, series and measures in order of first appearance."""

    def __init__(self, series: Sequence[SeriesKey], plan: MotionPlan, key: GroupKey, queries: Sequence[int], keeps_all: bool) -> None:
        self.keys, self.plan, self.key, self.queries, self.keeps_all = series, plan, key, queries, keeps_all
        self.sequences: dict[SequenceKey, int] = {}
        self.series: dict[int, int] = {}
        self.measures: dict[int, int] = {}
        self.measured: dict[Region | TargetPoint, int] = {}
        self.required = [[self._series(p) for p in _row(plan.required_first, plan.required, q)] for q in queries]
        self.excluded = [[self._series(p) for p in _row(plan.excluded_first, plan.excluded, q)] for q in queries]
        self.sums = [[self.measures.setdefault(p, len(self.measures)) for p in _row(plan.sums_first, plan.sums, q)] for q in queries]
        self.regions = list(dict.fromkeys(target for _, target in self.sequences if isinstance(target, Region)))
        self.boxes = not keeps_all and all_boxes(self.regions)

    @property
    def where(self) -> Conditions:
        return self.key[0]

    def _series(self, p: int) -> int:
        self.sequences.setdefault(_sequence(self.keys[p]), len(self.sequences))
        return self.series.setdefault(p, len(self.series))

    def compiled(self, grid: RegionGrid | None) -> PlaneGroup:
        """The group with the grid of its regions; `grid` is null if the group
        tests its boxes by slabs."""
        where, every, width = self.key
        return PlaneGroup(
            where=where,
            every=every,
            width=width,
            queries=np.array(self.queries, np.int64),
            sequences=tuple(self.sequences),
            measures=self._measures(),
            measured=tuple(self.measured),
            sweep=self._sweep(),
            slabs=BoxSlabs.of(np.array([region.bounds for region in self.regions], np.float64)) if self.boxes and grid is None else None,
            grid=grid,
            bits=self._bits(grid),
            keeps_all=self.keeps_all,
        )

    def _bits(self, grid: RegionGrid | None) -> SampleBits:
        number = {region: r for r, region in enumerate(grid.regions)} if grid else {}
        holds, misses = dict.fromkeys(self.regions, 0), dict.fromkeys(self.regions, 0)
        always = 0
        for (test, target), p in self.sequences.items():
            if test == "inside" and isinstance(target, Region):
                holds[target] |= 1 << p
            else:
                always |= 1 << p
            if test == "outside" and isinstance(target, Region):
                misses[target] |= 1 << p
        in_group = [region for region in self.regions if region in number]
        return SampleBits(
            np.uint64(always),
            _ints([number[region] for region in in_group]),
            _words([holds[r] for r in in_group]),
            _words([misses[r] for r in in_group]),
        )

    def _measures(self) -> DistanceMeasures:
        keys = [self.keys[p] for p in self.measures]
        columns, places = [], []
        for key in keys:
            target = key.target
            if isinstance(target, TargetPoint | CircleRegion) and not target.geodesic:
                columns.append(-1)
                places.append((target.x, target.y, target.radius if isinstance(target, CircleRegion) else 0.0))
            else:
                assert target is not None
                columns.append(self.measured.setdefault(target, len(self.measured)))
                places.append((0.0, 0.0, 0.0))
        x, y, radius = np.array(places, np.float64).reshape(-1, 3).T.copy()
        start, end = _ints([key.start for key in keys]), _ints([key.end for key in keys])
        return DistanceMeasures(start, end, _ints([-1 if key.test == "greatest" else 1 for key in keys]), x, y, radius, _ints(columns))

    def _sweep(self) -> Sweep:
        plan, keys = self.plan, [self.keys[p] for p in self.series]
        sequence = _ints([self.sequences[_sequence(key)] for key in keys])
        start = _ints([key.start for key in keys])
        witnesses = [_row(plan.witness_first, plan.witness, q) for q in self.queries]
        measures = self._measures()
        q = list(self.queries)
        return Sweep(
            clock=_ints(self.key[1:]),
            sequence=sequence,
            start=start,
            end=_ints([key.end for key in keys]),
            required_first=_first(self.required),
            required=_flat(self.required),
            excluded_first=_first(self.excluded),
            excluded=_flat(self.excluded),
            sums_first=_first(self.sums),
            sums=_flat(self.sums),
            decides=plan.decides[q],
            bound=plan.bound[q],
            ranks=plan.ranks[q],
            k=plan.k[q],
            witness_first=_first(witnesses),
            witness=_ints([self.measures[p] if p in self.measures else self.series[p] for row in witnesses for p in row]),
            witness_measured=np.array([p in self.measures for row in witnesses for p in row], np.bool_),
            witness_node=_ints([node for q in self.queries for node in _row(plan.witness_first, plan.witness_node, q)]),
            **self._chains(),
            since=_ints([max(self.keys[p].start for p in row) for row in witnesses]),
            radii=np.array([measures.radius[row].sum() for row in self.sums], np.float64),
        )

    def _chains(self) -> dict[str, npt.NDArray[Any]]:
        """The fields of Sweep about members of chains."""
        plan, keys = self.plan, self.keys
        members = [range(int(plan.chain_first[q]), int(plan.chain_first[q + 1])) for q in self.queries]
        series = [int(plan.chain[n]) for row in members for n in row]
        number = {n: i for i, n in enumerate(n for row in members for n in row)}
        after = [[number.get(int(follower), -1) for follower in plan.chain_after[n]] for n in number]
        opens = [max(row) < 0 or any(keys[p].end > keys[series[i]].end for i in row if i >= 0) for p, row in zip(series, after, strict=True)]
        return {
            "chain_first": _first(members),
            "chain": _ints([self.series[p] for p in series]),
            "chain_after": np.array(after, np.int64).reshape(-1, 2),
            "chain_opens": np.array(opens, np.bool_),
        }


def _row(first: Ints, entries: Ints, i: int) -> list[int]:
    return [int(entry) for entry in entries[first[i] : first[i + 1]]]


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _words(values: Sequence[int]) -> Words:
    return np.array(values, np.uint64)


def _first(rows: Sequence[Sequence[int]]) -> Ints:
    return np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)


def _flat(rows: Sequence[Sequence[int]]) -> Ints:
    return _ints([value for row in rows for value in row])
