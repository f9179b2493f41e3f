"""The shared index of all border and transition queries of a feed: what is equal in them is stored and evaluated once.

- Queries with equal `where` and equal needed columns see the same tuples of every entity: a **tuple class**.
- Queries of one class with the same region or ranges share its crossings: a **monitor**.
- Transition queries of one monitor with the same time bound share what waits: a **group**; groups of one bound share a ring.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from shapely.geometry.base import BaseGeometry

from engine.border_monitoring.borders import Borders, build_borders
from engine.border_monitoring.bounds import Bounds, build_bounds
from engine.border_monitoring.nearness import Nearness
from engine.border_monitoring.options import Options
from engine.border_monitoring.shapes import Circle, Polygon, Rectangle, Shape, edges_of, shapes_of
from engine.border_monitoring.specification import Range, TransitionSpecification
from engine.border_monitoring.transitions import NAMES
from engine.border_monitoring.watching import Watch, Watches
from engine.model.batch import X, Y
from engine.model.conditions import Conditions
from engine.model.feed import Crs, Feed
from engine.model.region import CircleRegion, PolygonRegion, Region
from engine.operator import RegisteredQuery

Ints = npt.NDArray[np.int32]
"""CSR pointers and positions."""

# A rectangle wider than this part of all regions' extent goes to the sorted bounds: measured, beyond it a border crosses so many cells
# that walking bounds is cheaper than walking cells (research notes, 2-D table: equal near one tenth).
_WIDE = 0.12


MonitorKey = tuple[Conditions, Region | None, tuple[Range, ...], Options]
GroupKey = tuple[MonitorKey, int]


@dataclass(frozen=True)
class TupleClass:
    """Queries that see the same tuples, and the index over their monitors.

    `columns` are the needed columns; for a class of regions x, y. Structures name monitors by `borders_monitors` and `bounds_monitors`.
    `watches`: the monitors with options; their raw crossings only tell where to look.
    """

    where: Conditions
    columns: tuple[str, ...]
    of_regions: bool
    borders: Borders | None
    borders_monitors: Ints
    shapes: tuple[Shape, ...]
    bounds: Bounds | None
    bounds_monitors: Ints
    watches: Watches | None = None

    @property
    def key(self) -> Hashable:
        return (self.where, self.of_regions, self.columns)


@dataclass(frozen=True)
class Csr:
    """Row r owns the entries `first[r]` to `first[r + 1]`."""

    first: npt.NDArray[np.int64]
    entries: Ints

    def spread(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(positions in `rows`, positions in `entries`) of all entries of the given rows, in order."""
        counts = self.first[rows + 1] - self.first[rows]
        owners = np.repeat(np.arange(len(rows)), counts)
        starts = np.repeat(self.first[rows] - (np.cumsum(counts) - counts), counts)
        return owners, starts + np.arange(len(owners))


@dataclass(frozen=True)
class BorderIndex:
    """Immutable index over `queries`; see the module's text.

    `crossing_queries`: monitor -> border queries; `passing_queries`: monitor -> border queries with `segments`; `monitor_groups`:
    monitor -> groups; `group_queries`: group -> transition queries, whose type masks are `group_masks` (parallel to its entries).
    """

    queries: tuple[RegisteredQuery, ...]
    feed: Feed
    classes: tuple[TupleClass, ...]
    crossing_queries: Csr
    passing_queries: Csr
    monitor_groups: Csr
    group_queries: Csr
    group_masks: npt.NDArray[np.int8]
    group_within: npt.NDArray[np.int64]
    group_wanted: npt.NDArray[np.int8]
    group_ring: Ints
    ring_within: npt.NDArray[np.int64]
    group_keys: tuple[GroupKey, ...]
    group_dwell: npt.NDArray[np.int64]
    monitor_keys: tuple[MonitorKey, ...]

    def watch_keys(self, tuples: TupleClass) -> list[MonitorKey]:
        """Keys of the class's monitors with options, in the order of its watches."""
        return [] if tuples.watches is None else [self.monitor_keys[monitor] for monitor in tuples.watches.monitors.tolist()]

    @property
    def nbytes(self) -> int:
        """Bytes of the index structures (not of the specifications)."""
        return sum((c.borders.nbytes if c.borders else 0) + (c.bounds.nbytes if c.bounds else 0) for c in self.classes)


K = TypeVar("K", bound=Hashable)


class _Numbers(Generic[K]):
    """Dense numbers for keys in order of first appearance."""

    def __init__(self) -> None:
        self.of: dict[K, int] = {}

    def __call__(self, key: K) -> int:
        return self.of.setdefault(key, len(self.of))


def compile_index(queries: Sequence[RegisteredQuery], feed: Feed) -> BorderIndex:
    """The index over checked border and transition queries; position i of answers is `queries[i]`."""
    monitors: _Numbers[MonitorKey] = _Numbers()
    groups: _Numbers[GroupKey] = _Numbers()
    crossing: list[tuple[int, int]] = []
    passing: list[tuple[int, int]] = []
    grouped: list[tuple[int, int, int]] = []
    for position, query in enumerate(queries):
        specification = query.specification
        key = (specification.where, specification.region, specification.ranges, specification.options)
        monitor = monitors(key)
        if isinstance(specification, TransitionSpecification):
            group = groups((key, specification.within))
            grouped.append((group, position, _mask(specification.types)))
        else:
            crossing.append((monitor, position))
            if specification.segments:
                passing.append((monitor, position))
    group_keys = tuple(groups.of)
    within = np.array([bound for _, bound in group_keys], np.int64)
    ring_within, group_ring = np.unique(within, return_inverse=True)
    wanted = np.zeros(len(groups.of), np.int8)
    group_queries = _csr([row[:2] for row in grouped], len(groups.of))
    masks = np.array([row[2] for row in sorted(grouped, key=lambda row: row[0])], np.int8)
    np.bitwise_or.at(wanted, np.repeat(np.arange(len(groups.of)), np.diff(group_queries.first)), masks)
    wants_passes = {monitor for monitor, _ in passing}
    return BorderIndex(
        queries=tuple(queries),
        feed=feed,
        classes=_classes(list(monitors.of), wants_passes, feed.crs is Crs.GEOGRAPHIC),
        crossing_queries=_csr(crossing, len(monitors.of)),
        passing_queries=_csr(passing, len(monitors.of)),
        monitor_groups=_csr([(monitors.of[key], group) for group, (key, _) in enumerate(group_keys)], len(monitors.of)),
        group_queries=group_queries,
        group_masks=masks,
        group_within=within,
        group_wanted=wanted,
        group_ring=group_ring.reshape(-1).astype(np.int32),
        ring_within=ring_within,
        group_keys=group_keys,
        group_dwell=np.array([key[3].dwell for key, _ in group_keys], np.int64),
        monitor_keys=tuple(monitors.of),
    )


def _mask(types: Sequence[str]) -> int:
    return sum(1 << NAMES.index(name) for name in types)


def _csr(pairs: Sequence[tuple[int, int]], rows: int) -> Csr:
    """CSR of (row, entry) pairs; the entries of a row keep their order."""
    keys = np.array([row for row, _ in pairs], np.int64)
    entries = np.array([entry for _, entry in pairs], np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=rows))]).astype(np.int64)
    return Csr(first, entries[np.argsort(keys, kind="stable")])


def _classes(monitors: Sequence[MonitorKey], wants_passes: set[int], geographic: bool) -> tuple[TupleClass, ...]:
    """Tuple classes of the monitors, in order of first appearance.

    Ranges over x and y are half-open and regions closed, so they form classes of their own although they see the same tuples.
    """
    members: dict[tuple[Conditions, bool, tuple[str, ...]], list[int]] = {}
    for number, (where, region, ranges, _) in enumerate(monitors):
        members.setdefault((where, region is not None, tuple(column for column, _, _ in ranges)), []).append(number)
    classes = []
    for (where, of_regions, columns), numbers in members.items():
        if of_regions:
            regions = [region for _, region, _, _ in (monitors[m] for m in numbers) if region is not None]
            built = _region_class(where, numbers, regions, wants_passes)
        else:
            built = _range_class(where, columns, numbers, [monitors[m][2] for m in numbers])
        classes.append(replace(built, watches=_watches(monitors, numbers, geographic)))
    return tuple(classes)


def _watches(monitors: Sequence[MonitorKey], numbers: Sequence[int], geographic: bool) -> Watches | None:
    """The monitors with options among `numbers`, which ascend; null when there are none."""
    own = [number for number in numbers if monitors[number][3]]
    return Watches.of(own, [_watch(monitors[number], geographic) for number in own]) if own else None


def _watch(monitor: MonitorKey, geographic: bool) -> Watch:
    _, region, ranges, options = monitor
    low, high = _ends([ranges])
    return Watch(options, None if region is None else Nearness(region, geographic), low[0], high[0])


def _ends(ranges: Sequence[tuple[Range, ...]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(low, high) of boxes, (n, d); unbounded ends are infinite."""
    low = np.array([[-np.inf if low is None else low for _, low, _ in row] for row in ranges], np.float64)
    high = np.array([[np.inf if high is None else high for _, _, high in row] for row in ranges], np.float64)
    return low, high


def _range_class(where: Conditions, columns: tuple[str, ...], numbers: Sequence[int], ranges: Sequence[tuple[Range, ...]]) -> TupleClass:
    low, high = _ends(ranges)
    return TupleClass(where, columns, False, None, np.empty(0, np.int32), (), build_bounds(low, high), np.array(numbers, np.int32))


def _region_class(where: Conditions, numbers: Sequence[int], regions: Sequence[Region], wants_passes: set[int]) -> TupleClass:
    shapes = _shapes(regions, [number in wants_passes for number in numbers])
    wide = _wide(shapes)
    cells = [i for i in range(len(shapes)) if not wide[i]]
    boxes = [shape for shape, is_wide in zip(shapes, wide, strict=True) if is_wide and isinstance(shape, Rectangle)]
    borders = build_borders([shapes[i] for i in cells], [numbers[i] in wants_passes for i in cells]) if cells else None
    bounds = None
    if boxes:
        low = np.array([[box.west, box.south] for box in boxes])
        high = np.array([[box.east, box.north] for box in boxes])
        bounds = build_bounds(low, np.nextafter(high, np.inf))
    every = np.array(numbers, np.int32)
    return TupleClass(where, (X, Y), True, borders, every[cells], tuple(shapes[i] for i in cells), bounds, every[wide])


def _shapes(regions: Sequence[Region], passes: Sequence[bool]) -> list[Shape]:
    """Forms of the regions; one whose passes are wanted is never simplified to a rectangle."""
    shapes: dict[int, Shape] = {}
    drawn: dict[bool, list[int]] = {True: [], False: []}
    for i, (region, wanted) in enumerate(zip(regions, passes, strict=True)):
        if isinstance(region, CircleRegion):
            shapes[i] = Circle(region.x, region.y, region.radius, region.geodesic)
        else:
            drawn[wanted].append(i)
    if drawn[True]:
        shapes |= zip(drawn[True], map(Polygon, edges_of(_geometries(regions, drawn[True]))), strict=True)
    if drawn[False]:
        shapes |= zip(drawn[False], shapes_of(_geometries(regions, drawn[False])), strict=True)
    return [shapes[i] for i in range(len(regions))]


def _geometries(regions: Sequence[Region], positions: Sequence[int]) -> list[BaseGeometry]:
    polygons = [regions[i] for i in positions]
    return [region.geometry for region in polygons if isinstance(region, PolygonRegion)]


def _wide(shapes: Sequence[Shape]) -> npt.NDArray[np.bool_]:
    """Which shapes the sorted bounds take: rectangles that are wide against the extent of all rectangles."""
    boxes = np.array([(s.west, s.south, s.east, s.north) if isinstance(s, Rectangle) else (np.nan,) * 4 for s in shapes])
    if np.isnan(boxes[:, 0]).all():
        return np.zeros(len(shapes), np.bool_)
    extent = (np.nanmax(boxes[:, 2]) - np.nanmin(boxes[:, 0])) + (np.nanmax(boxes[:, 3]) - np.nanmin(boxes[:, 1]))
    sides = (boxes[:, 2] - boxes[:, 0]) + (boxes[:, 3] - boxes[:, 1])
    wide: npt.NDArray[np.bool_] = sides > _WIDE * extent
    # A handful of rectangles is as cheap in the cells that exist anyway.
    return wide if wide.sum() >= 16 else np.zeros(len(shapes), np.bool_)
