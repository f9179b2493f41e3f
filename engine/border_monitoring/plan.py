"""The shared index of all border and transition queries of a feed: equal parts are stored and
evaluated once (see `registry`)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from shapely.geometry.base import BaseGeometry

from engine.border_monitoring.region_distance import Nearness
from engine.border_monitoring.registry import ClassKey, MonitorKey, Registry
from engine.border_monitoring.shapes import Circle, Polygon, Shape, edges_of, shapes_of
from engine.border_monitoring.structures import Members, Structure, update
from engine.border_monitoring.watched_pairs import Watch, Watches
from engine.context import Range
from engine.model.conditions import Conditions
from engine.model.feed import Crs, Feed
from engine.model.region import CircleRegion, PolygonRegion, Region
from engine.operator import RegisteredQuery

Ints = npt.NDArray[np.int32]
"""CSR pointers and positions."""
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_MANY_GONE = 1024
"""With more unused numbers of monitors or queries than this, and than used ones,
the index is compiled again."""


@dataclass(frozen=True)
class TupleClass:
    """Queries that see the same tuples, and the structures over their monitors, largest first.

    `columns` are the needed columns; for a class of regions x, y. `watches`: the monitors with
    options; their raw crossings only show where to look.
    """

    key: ClassKey
    parts: tuple[Structure, ...]
    watches: Watches | None = None

    @property
    def where(self) -> Conditions:
        return self.key[0]

    @property
    def has_regions(self) -> bool:
        return self.key[1]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.key[2]


@dataclass(frozen=True)
class Csr:
    """Row r owns the entries `first[r]` to `first[r + 1]`."""

    first: npt.NDArray[np.int64]
    entries: Ints

    def spread(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(positions in `rows`, positions in `entries`) of all entries of
        the given rows, in order."""
        counts = self.first[rows + 1] - self.first[rows]
        owners = np.repeat(np.arange(len(rows)), counts)
        starts = np.repeat(self.first[rows] - (np.cumsum(counts) - counts), counts)
        return owners, starts + np.arange(len(owners))


@dataclass(frozen=True)
class BorderIndex:
    """Immutable index over `queries`; see `registry`.

    `slots[i]`: the registry's number of `queries[i]`. Classes are in the order in which the queries
    need them first. `crossing_queries`: monitor -> border queries; `monitor_groups`: monitor ->
    groups; `group_queries`: group -> transition queries, whose type masks are `group_masks`
    (parallel to its entries). Removed groups have no queries and need nothing. `before`: the index
    that this one was made from.
    """

    queries: tuple[RegisteredQuery, ...]
    feed: Feed
    registry: Registry
    slots: npt.NDArray[np.int64]
    classes: tuple[TupleClass, ...]
    crossing_queries: Csr
    monitor_groups: Csr
    group_queries: Csr
    group_masks: npt.NDArray[np.int8]
    group_wanted: npt.NDArray[np.int8]
    group_dwell: npt.NDArray[np.int64]
    group_ring: Ints
    ring_within: npt.NDArray[np.int64]
    before: Callable[[], BorderIndex | None] = lambda: None

    @property
    def group_within(self) -> npt.NDArray[np.int64]:
        return self.registry.group_within

    @property
    def nbytes(self) -> int:
        """Bytes of the index structures (not of the specifications)."""
        return sum(part.nbytes for tuples in self.classes for part in tuples.parts)

    def group_order(self) -> npt.NDArray[np.int64]:
        """The groups in the order in which the queries name them first: their numbers
        in an index compiled again."""
        return _by_first(self.registry.group[self.slots])

    def monitor_order(self) -> npt.NDArray[np.int64]:
        """As `group_order`, of the monitors."""
        return _by_first(self.registry.monitor[self.slots])


def _by_first(numbers: Ints) -> npt.NDArray[np.int64]:
    """Distinct numbers, without -1, in the order of their first appearance."""
    distinct, first = np.unique(numbers, return_index=True)
    ordered: npt.NDArray[np.int64] = distinct[np.argsort(first)].astype(np.int64)
    return ordered[ordered >= 0]


def compile_index(queries: Sequence[RegisteredQuery], feed: Feed) -> BorderIndex:
    """The index over checked border and transition queries; position i of answers is
    `queries[i]`."""
    return _compile(Registry(), (), queries, np.full(len(queries), -1), feed)


def recompile_index(old: BorderIndex, queries: Sequence[RegisteredQuery]) -> BorderIndex:
    """The same for a list that differs from that of `old` by some queries: costs a pass over the
    list, and work for the new ones."""
    slots = _slots(old.registry, queries)
    left = np.zeros(len(old.registry.monitor), np.bool_)
    left[old.slots] = True
    left[slots[slots >= 0]] = False
    gone = [old.queries[i].key for i in np.flatnonzero(left[old.slots]).tolist()]
    index = _compile(old.registry.remove(gone), old.classes, queries, slots, old.feed)
    registry = index.registry
    for alive, all_ in ((len(registry.slots), len(registry.monitor)), (len(registry.monitors), len(registry.keys))):
        if all_ - alive > max(_MANY_GONE, alive):
            return compile_index(queries, old.feed)
    return replace(index, before=weakref.ref(old))


def _slots(registry: Registry, queries: Sequence[RegisteredQuery]) -> npt.NDArray[np.int64]:
    """The registry's number of each query, -1 for those that it does not know."""
    # The one pass over all queries that a registration costs: 100,000 lookups take 30 ms, so
    # it stays out of bytecode.
    keys = zip(map(attrgetter("id"), queries), map(attrgetter("version"), queries), strict=True)
    return np.fromiter(map(registry.slots.get, keys, repeat(-1)), np.int64, len(queries))


def _compile(
    registry: Registry, classes: Sequence[TupleClass], queries: Sequence[RegisteredQuery], slots: npt.NDArray[np.int64], feed: Feed
) -> BorderIndex:
    """`slots` are -1 for the queries that the registry does not know yet."""
    fresh = np.flatnonzero(slots < 0)
    slots = slots.copy()
    slots[fresh] = len(registry.monitor) + np.arange(len(fresh))
    registry = registry.add([queries[i] for i in fresh.tolist()])
    monitor, group, mask = registry.monitor[slots], registry.group[slots], registry.mask[slots]
    border, transition = np.flatnonzero(group < 0), np.flatnonzero(group >= 0)
    group_queries, order = _csr(group[transition], transition, len(registry.group_within))
    wanted = np.zeros(len(registry.group_within), np.int8)
    np.bitwise_or.at(wanted, group[transition], mask[transition])
    alive = np.flatnonzero(wanted)
    ring_within, ring = np.unique(registry.group_within[alive], return_inverse=True)
    group_ring = np.zeros(len(wanted), np.int32)
    group_ring[alive] = ring.reshape(-1)
    return BorderIndex(
        queries=tuple(queries),
        feed=feed,
        registry=registry,
        slots=slots,
        classes=_classes(registry, classes, monitor, feed.crs is Crs.GEOGRAPHIC),
        crossing_queries=_csr(monitor[border], border, len(registry.keys))[0],
        monitor_groups=_csr(registry.group_monitor[alive], alive, len(registry.keys))[0],
        group_queries=group_queries,
        group_masks=mask[transition][order],
        group_wanted=wanted,
        group_dwell=registry.dwell[registry.group_monitor],
        group_ring=group_ring,
        ring_within=ring_within,
    )


def _csr(rows: npt.NDArray[Any], entries: npt.NDArray[Any], count: int) -> tuple[Csr, npt.NDArray[np.intp]]:
    """CSR of (row, entry) pairs over `count` rows, and the order in which the pairs are; the
    entries of a row keep theirs."""
    order = np.argsort(rows, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)
    return Csr(first, entries[order].astype(np.int32)), order


def _classes(registry: Registry, old: Sequence[TupleClass], monitor: Ints, geographic: bool) -> tuple[TupleClass, ...]:
    """The tuple classes of the monitors of the queries, in order of first appearance; structures of
    `old` are kept or merged.

    Ranges over x and y are half-open and regions closed, so they form separate classes although
    they have the same tuples.
    """
    alive = np.zeros(len(registry.keys), np.bool_)
    alive[monitor] = True
    indexed = np.zeros(len(registry.keys), np.bool_)
    for tuples in old:
        for part in tuples.parts:
            indexed[part.members.monitors] = True
    fresh = np.flatnonzero(alive & ~indexed)
    before = {tuples.key: tuples for tuples in old}
    keys = list(registry.classes)
    classes = []
    for number in _by_first(registry.class_of[monitor]).tolist():
        key = keys[number]
        given = before.get(key, TupleClass(key, ()))
        own = fresh[registry.class_of[fresh] == number]
        members = _members([registry.keys[m] for m in own.tolist()], own) if len(own) else None
        parts = update(given.parts, members, alive)
        classes.append(TupleClass(key, parts, _watches(registry, given.watches, own.tolist(), alive, geographic)))
    return tuple(classes)


def _members(keys: Sequence[MonitorKey], numbers: npt.NDArray[Any]) -> Members:
    monitors = numbers.astype(np.int32)
    wanted = np.array([key[4] for key in keys], np.bool_)
    regions = [key[1] for key in keys if key[1] is not None]
    if not regions:
        low, high = _ends([key[2] for key in keys])
        return Members(monitors, (), wanted, low, high)
    none = np.empty((0, 2))
    return Members(monitors, tuple(_shapes(regions, wanted.tolist())), wanted, none, none)


def _watches(registry: Registry, old: Watches | None, fresh: Sequence[int], alive: Bools, geographic: bool) -> Watches | None:
    """The class's monitors with options, ascending; null if there are none."""
    own = [monitor for monitor in fresh if registry.keys[monitor][3]]
    if old is not None and not own and alive[old.monitors].all():
        return old
    kept = {} if old is None else {monitor: watch for monitor, watch in zip(old.monitors.tolist(), old.each, strict=True) if alive[monitor]}
    kept |= {monitor: _watch(registry.keys[monitor], geographic) for monitor in own}
    return Watches.of(list(kept), list(kept.values())) if kept else None


def _watch(monitor: MonitorKey, geographic: bool) -> Watch:
    _, region, ranges, options, _ = monitor
    low, high = _ends([ranges])
    return Watch(options, None if region is None else Nearness(region, geographic), low[0], high[0])


def _ends(ranges: Sequence[tuple[Range, ...]]) -> tuple[Floats, Floats]:
    """(low, high) of boxes, (n, d); unbounded ends are infinite."""
    low = np.array([[-np.inf if low is None else low for _, low, _ in row] for row in ranges], np.float64)
    high = np.array([[np.inf if high is None else high for _, _, high in row] for row in ranges], np.float64)
    return low, high


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
