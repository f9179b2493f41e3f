"""Which queries go by planes, and what they share: a **group** is all queries with equal conditions, `every` and bucket width.

A query goes by planes when all its predicates have windows and these are few buckets long; the bucket is the greatest span of which `every` and all
the query's windows are whole multiples. All others (predicates in order, windows of very many buckets) keep index points. The choice depends on the
query alone, so it never changes when others come and go.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.model.conditions import Conditions
from engine.model.region import CircleRegion, Region
from engine.motion_patterns.box_slabs import MOST_BOXES, BoxSlabs
from engine.motion_patterns.distance_columns import Measures
from engine.motion_patterns.region_grid import RegionGrid, all_boxes
from engine.motion_patterns.specification import MotionSpecification, Place
from engine.motion_patterns.windows import Sweep
from engine.operator import RegisteredQuery

if TYPE_CHECKING:
    from engine.motion_patterns.plan import Plan, SeriesKey

Ints = npt.NDArray[np.int64]

MOST_BUCKETS = 128
"""Of a window: so many planes are combined at each evaluation, and kept."""

TrackKey = tuple[str, Region | Place | None]
GroupKey = tuple[Conditions, int, int]


@dataclass(frozen=True)
class PlaneGroup:
    """`queries`: positions in the index. `tracks`: (test, target) of each. Region r of `grid` makes hits on the tracks `inside[r]`, a sample that
    it does not hold on `outside[r]`, every sample on `every_sample`. `measured`: targets whose distances are kept with the samples, because no
    kernel measures them. `keeps_all`: every sample is stored, not only those that hit. `slabs`: given when only samples in some of few boxes are."""

    where: Conditions
    every: int
    width: int
    queries: Ints
    tracks: tuple[TrackKey, ...]
    sweep: Sweep
    measures: Measures
    measured: tuple[Region | Place, ...]
    grid: RegionGrid | None
    slabs: BoxSlabs | None
    inside: tuple[tuple[int, ...], ...]
    outside: tuple[tuple[int, ...], ...]
    every_sample: tuple[int, ...]
    keeps_all: bool

    @property
    def key(self) -> GroupKey:
        return (self.where, self.every, self.width)

    @property
    def region_tracks(self) -> tuple[Ints, Ints]:
        """(first, tracks): what region r holds hits `tracks[first[r]:first[r + 1]]`."""
        return _first(self.inside), _flat(self.inside)

    @property
    def region_misses(self) -> Ints:
        """Rows (region, track): what a region does not hold hits the track."""
        return _pairs(self.outside)

    @property
    def sample_tracks(self) -> Ints:
        return _ints(self.every_sample)

    @property
    def slots(self) -> int:
        """Buckets that some window sees."""
        return int(self.sweep.start.max(initial=0)) // self.width

    @property
    def column_slots(self) -> int:
        return int((self.measures.start - self.measures.end).max(initial=0)) // self.width


def bucket_width(specification: MotionSpecification) -> int | None:
    """Width of the query's buckets in the unit of t, or null when it keeps index points.

    >>> from engine.motion_patterns.specification import Predicate
    >>> steps = tuple(Predicate("distance", Place(0.0, 0.0, False), window) for window in ((30, 20), (12, 0)))
    >>> bucket_width(MotionSpecification("", Conditions(()), steps, None, every=4))
    2
    """
    windows = [predicate.window for predicate in specification.predicates]
    if any(window is None for window in windows):
        return None
    spans = [span for window in windows if window is not None for span in window]
    width = math.gcd(specification.every, *spans)
    return width if max(spans) <= MOST_BUCKETS * width else None


def plane_groups(queries: Sequence[RegisteredQuery], series: Sequence[SeriesKey], plan: Plan) -> tuple[PlaneGroup, ...]:
    """The groups of all queries that go by planes. `series`, `plan`: those of all `queries`."""
    members: dict[GroupKey, list[int]] = {}
    for q, query in enumerate(queries):
        specification: MotionSpecification = query.specification
        width = bucket_width(specification)
        if width is not None:
            members.setdefault((specification.where, specification.every, width), []).append(q)
    return tuple(_Group(series, plan, key, numbers).compiled() for key, numbers in members.items())


class _Group:
    """Numbers a group's tracks, series and measures in order of first appearance."""

    def __init__(self, series: Sequence[SeriesKey], plan: Plan, key: GroupKey, queries: Sequence[int]) -> None:
        self.keys, self.plan, self.key, self.queries = series, plan, key, queries
        self.tracks: dict[TrackKey, int] = {}
        self.series: dict[int, int] = {}
        self.measures: dict[int, int] = {}
        self.measured: dict[Region | Place, int] = {}
        self.needs = [[self._series(p) for p in _row(plan.needs_first, plan.needs, q)] for q in queries]
        self.bars = [[self._series(p) for p in _row(plan.bars_first, plan.bars, q)] for q in queries]
        self.sums = [[self.measures.setdefault(p, len(self.measures)) for p in _row(plan.sums_first, plan.sums, q)] for q in queries]

    def _series(self, p: int) -> int:
        self.tracks.setdefault((self.keys[p].test, self.keys[p].target), len(self.tracks))
        return self.series.setdefault(p, len(self.series))

    def compiled(self) -> PlaneGroup:
        where, every, width = self.key
        inside, outside = self._by_region("inside"), self._by_region("outside")
        regions = list(dict.fromkeys([*inside, *outside]))
        every_sample = tuple(p for (test, _), p in self.tracks.items() if test == "any")
        keeps_all = bool(every_sample or outside or self.measures)
        return PlaneGroup(
            where=where,
            every=every,
            width=width,
            queries=np.array(self.queries, np.int64),
            tracks=tuple(self.tracks),
            measures=self._measures(),
            measured=tuple(self.measured),
            sweep=self._sweep(),
            grid=RegionGrid.of(regions) if regions else None,
            slabs=self._slabs(inside) if not keeps_all else None,
            inside=tuple(tuple(inside.get(region, ())) for region in regions),
            outside=tuple(tuple(outside.get(region, ())) for region in regions),
            every_sample=every_sample,
            keeps_all=keeps_all,
        )

    def _slabs(self, regions: Collection[Region]) -> BoxSlabs | None:
        """When these are few boxes."""
        if not regions or len(regions) > MOST_BOXES or not all_boxes(list(regions)):
            return None
        return BoxSlabs.of(np.array([region.bounds for region in regions], np.float64))

    def _by_region(self, wanted: str) -> dict[Region, list[int]]:
        found: dict[Region, list[int]] = {}
        for (test, target), p in self.tracks.items():
            if test == wanted and isinstance(target, Region):
                found.setdefault(target, []).append(p)
        return found

    def _measures(self) -> Measures:
        keys = [self.keys[p] for p in self.measures]
        columns, places = [], []
        for key in keys:
            target = key.target
            if isinstance(target, Place | CircleRegion) and not target.geodesic:
                columns.append(-1)
                places.append((target.x, target.y, target.radius if isinstance(target, CircleRegion) else 0.0))
            else:
                assert target is not None
                columns.append(self.measured.setdefault(target, len(self.measured)))
                places.append((0.0, 0.0, 0.0))
        x, y, radius = np.array(places, np.float64).reshape(-1, 3).T.copy()
        start, end = _ints([key.start for key in keys]), _ints([key.end for key in keys])
        return Measures(start, end, _ints([-1 if key.test == "greatest" else 1 for key in keys]), x, y, radius, _ints(columns))

    def _sweep(self) -> Sweep:
        plan, keys = self.plan, [self.keys[p] for p in self.series]
        track = _ints([self.tracks[(key.test, key.target)] for key in keys])
        start = _ints([key.start for key in keys])
        witnesses = [_row(plan.witness_first, plan.witness, q) for q in self.queries]
        measures = self._measures()
        q = list(self.queries)
        return Sweep(
            clock=_ints(self.key[1:]),
            track=track,
            start=start,
            end=_ints([key.end for key in keys]),
            needs_first=_first(self.needs),
            needs=_flat(self.needs),
            bars_first=_first(self.bars),
            bars=_flat(self.bars),
            sums_first=_first(self.sums),
            sums=_flat(self.sums),
            decides=plan.decides[q],
            bound=plan.bound[q],
            ranks=plan.ranks[q],
            k=plan.k[q],
            witness_first=_first(witnesses),
            witness=_ints([self.measures[p] if p in self.measures else self.series[p] for row in witnesses for p in row]),
            witness_measured=np.array([p in self.measures for row in witnesses for p in row], np.bool_),
            since=_ints([max(self.keys[p].start for p in row) for row in witnesses]),
            radii=np.array([measures.radius[row].sum() for row in self.sums], np.float64),
        )


def _pairs(tracks: Sequence[Sequence[int]]) -> Ints:
    return np.array([(r, p) for r, row in enumerate(tracks) for p in row], np.int64).reshape(-1, 2)


def _row(first: Ints, entries: Ints, i: int) -> list[int]:
    return [int(entry) for entry in entries[first[i] : first[i + 1]]]


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _first(rows: Sequence[Sequence[int]]) -> Ints:
    return np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)


def _flat(rows: Sequence[Sequence[int]]) -> Ints:
    return _ints([value for row in rows for value in row])
