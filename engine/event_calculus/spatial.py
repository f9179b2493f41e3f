"""Spatial input fluents from positions: candidate pairs are found by (time slot, cell)
buckets instead of by all pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.event_calculus.compiled import jit
from engine.event_calculus.conditions import distance_m
from engine.event_calculus.intervals import INF, Bools, Ints, amalgamate
from engine.event_calculus.keys import number_rows, take_rows
from engine.event_calculus.tables import FluentTable, concat_tables, group_intervals, stack

if TYPE_CHECKING:
    from pyproj import Geod

Floats = npt.NDArray[np.float64]


class Area(Protocol):
    """A closed region: a point on its border is inside."""

    def contains(self, x: Floats, y: Floats) -> Bools: ...


class Positions(NamedTuple):
    """Samples in order of time: entity codes, times, coordinates (degrees or plane units)."""

    entity: Ints
    t: Ints
    x: Floats
    y: Floats

    def take(self, picked: Ints) -> Positions:
        return Positions(self.entity[picked], self.t[picked], self.x[picked], self.y[picked])


class Sides(NamedTuple):
    """Which pairs of samples are tested: `of`: the group of each sample; `meet[g, h]`: whether
    samples of groups g and h form pairs (symmetric)."""

    of: Ints
    meet: Bools

    def take(self, picked: Ints) -> Sides:
        return Sides(self.of[picked], self.meet)


def all_pairs(samples: Positions) -> Sides:
    """Every pair."""
    return Sides(np.zeros(len(samples.t), np.int64), np.ones((1, 1), np.bool_))


@dataclass(frozen=True)
class NearPairs:
    """Pairs of samples of different entities within reach: `of` is the position of the entities in
    `pairs` (2, pairs), which has the lesser code first; [s, e) is when a meeting counts; and
    `distance`. `examined` counts distance tests.
    """

    pairs: Ints
    of: Ints
    s: Ints
    e: Ints
    distance: Floats
    examined: int


@jit
def _contacts(samples: Positions, slot: Ints, sides: Sides, reach_x: float, reach_y: float, left: Ints, right: Ints) -> tuple[int, int]:
    """Pairs of samples of one slot, of different entities and of groups that meet, with |dx| <=
    reach_x and |dy| <= reach_y. Samples sorted by slot.

    They are written to `left` and `right` as far as there is room. Returns the
    number of pairs, and of tests.
    """
    (entity, _, x, y), (group, meet) = samples, sides
    cell_x, cell_y = reach_x * 1.000001, reach_y * 1.000001
    n = len(slot)
    k = examined = i = 0
    while i < n:
        j = i + 1
        while j < n and slot[j] == slot[i]:
            j += 1
        m = j - i
        column = np.floor(x[i:j] / cell_x).astype(np.int64)
        row = np.floor(y[i:j] / cell_y).astype(np.int64)
        column -= column.min()
        row -= row.min()
        height = row.max() + 3
        # One grid for each group, so far from the next that neighbourhoods do not overlap.
        cells = (column.max() + 2) * height
        key = group[i:j] * cells + column * height + row
        order = np.argsort(key)
        ordered = key[order]
        for p in range(m):
            own = group[i + order[p]]
            for other in range(len(meet)):
                if not meet[own, other]:
                    continue
                at = ordered[p] + (other - own) * cells
                # The rest of the own cell, then the following half of the
                # neighbourhood: each pair of cells once.
                for part in range(2):
                    if part == 1:
                        q = np.searchsorted(ordered, at + height - 1)
                    elif other == own:
                        q = p + 1
                    else:
                        # Two groups in the own cell: the lesser one tests the greater.
                        q = np.searchsorted(ordered, at + (1 if other < own else 0))
                    last = at + (1 if part == 0 else height + 1)
                    while q < m and ordered[q] <= last:
                        examined += 1
                        a, b = i + order[p], i + order[q]
                        if entity[a] != entity[b] and abs(x[a] - x[b]) <= reach_x and abs(y[a] - y[b]) <= reach_y:
                            if k < len(left):
                                left[k], right[k] = a, b
                            k += 1
                        q += 1
        i = j
    return k, examined


def _pairs(samples: Positions, slot: Ints, sides: Sides, reach_x: float, reach_y: float) -> tuple[Ints, Ints, int]:
    n = max(64, 2 * len(slot))
    while True:
        left, right = np.empty(n, np.int64), np.empty(n, np.int64)
        found, examined = _contacts(samples, slot, sides, reach_x, reach_y, left, right)
        if found <= n:
            return left[:found], right[:found], examined
        n = found


def contacts(samples: Positions, tick: int, query_time: int, limits: Sequence[float], geographic: bool, sides: Sides | None = None) -> NearPairs:
    """Pairs of samples at one time, of the `sides` that meet, at most the greatest of the
    `limits` apart (closed): in metres on a geographic feed, else in the feed's unit.
    Distances are exact enough to be compared with any of the limits. Each counts for one
    `tick`, at `query_time` for ever.
    """
    sides = all_pairs(samples) if sides is None else sides
    left, right, distance, examined = _near(samples, samples.t, sides, limits, geographic)
    kept = distance <= max(limits)
    left, right = left[kept], right[kept]
    t = samples.t[left]
    return NearPairs(*_pairs_of(samples, left, right), t, np.where(t == query_time, INF, t + tick), distance[kept], examined)


def _pairs_of(samples: Positions, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The distinct pairs of entities, and for each pair of samples the position of its entities."""
    one, other = samples.entity[left], samples.entity[right]
    both = np.stack((np.minimum(one, other), np.maximum(one, other)))
    number, first = number_rows(both)
    return take_rows(both, first), number


def _near(samples: Positions, slot: Ints, sides: Sides, limits: Sequence[float], geographic: bool) -> tuple[Ints, Ints, Floats, int]:
    """Samples of one slot, of different entities, that may be within reach, with their
    distances; sorted by slot."""
    x, y, reach = samples.x, samples.y, max(limits)
    if not geographic:
        left, right, examined = _pairs(samples, slot, sides, reach, reach)
        # hypot is exact if coordinates and distance are whole numbers (3-4-5), so the
        # border is included exactly.
        return left, right, _plane(x, y, left, right), examined
    left, right, examined = _around(samples, slot, sides, *_reach(y, reach))
    return left, right, _geodesic_near(x[left], y[left], x[right], y[right], limits), examined


def _around(samples: Positions, slot: Ints, sides: Sides, reach_x: float, reach_y: float) -> tuple[Ints, Ints, int]:
    """`_pairs` in degrees: samples a little west of the antimeridian are also entered east of it,
    as those they may be near."""
    n, over = len(slot), np.flatnonzero(samples.x > 180.0 - reach_x)
    if reach_x >= 180.0 or not len(over):
        return _pairs(samples, slot, sides, reach_x, reach_y)
    slots = np.concatenate((slot, slot[over]))
    order = np.argsort(slots, kind="stable")
    which = np.concatenate((np.arange(n), over))[order]
    again = order >= n
    entered = samples.take(which)
    entered = entered._replace(x=np.where(again, entered.x - 360.0, entered.x))
    left, right, examined = _pairs(entered, slots[order], sides.take(which), reach_x, reach_y)
    kept = ~(again[left] & again[right])
    return which[left[kept]], which[right[kept]], examined


def meetings(samples: Positions, slot: int, query_time: int, limits: Sequence[float], geographic: bool, sides: Sides | None = None) -> NearPairs:
    """All pairs of samples less than `slot` apart in time and at most the greatest of the `limits`
    in space, of the `sides` that meet. Each counts from the later sample until the earlier one is a
    slot old; an interval that ends after `query_time` is open.
    """
    # Samples less than a slot apart are in one slot or in two neighbouring ones: each is entered in
    # its own slot and, as an earlier one, in the next.
    n = len(samples.t)
    own = samples.t // slot
    order = np.argsort(np.concatenate((own, own + 1)), kind="stable")
    which, earlier = order % max(n, 1), order >= n
    sides = (all_pairs(samples) if sides is None else sides).take(which)
    samples = samples.take(which)
    t = samples.t
    left, right, distance, examined = _near(samples, np.concatenate((own, own + 1))[order], sides, limits, geographic)
    kept = (distance <= max(limits)) & ~(earlier[left] & earlier[right]) & (np.abs(t[left] - t[right]) < slot)
    left, right = left[kept], right[kept]
    ends = np.minimum(t[left], t[right]) + slot
    ends = np.where(ends > query_time, INF, ends)
    return NearPairs(*_pairs_of(samples, left, right), np.maximum(t[left], t[right]), ends, distance[kept], examined)


def near_pairs(found: NearPairs, threshold: float, value: int) -> FluentTable:
    """Both orders of every pair, with the intervals in which it has met within `threshold`."""
    near = found.distance <= threshold
    lists = amalgamate(found.of[near], found.s[near], found.e[near], found.pairs.shape[1])
    keys = stack([*found.pairs, value], found.pairs.shape[1])
    table = FluentTable(keys, lists).take_lists(np.flatnonzero(lists.counts))
    return concat_tables([table, FluentTable(table.keys[[1, 0, 2]], table.lists)])


@jit
def _plane(x: Floats, y: Floats, left: Ints, right: Ints) -> Floats:
    out = np.empty(len(left), np.float64)
    for i in range(len(left)):
        out[i] = math.hypot(x[left[i]] - x[right[i]], y[left[i]] - y[right[i]])
    return out


def _reach(latitude: Floats, reach: float) -> tuple[float, float]:
    """Degrees of longitude and latitude that certainly cover `reach` metres; all longitudes
    where that may be over a pole."""
    widest = float(np.abs(latitude).max()) + reach / 110_000 if len(latitude) else 0.0
    return reach / (111_000 * np.cos(np.radians(widest))) if widest < 89.9 else 360.0, reach / 110_000


@cache
def _geod() -> Geod:
    # Imported only for programs with distances on the sphere: the import takes a fifth of
    # the start of a short run.
    from pyproj import Geod

    return Geod(ellps="WGS84")


def _geodesic_near(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats, limits: Sequence[float]) -> Floats:
    """Distances in metres: by the sphere if that decides (its error is below 0.6 %), by the
    ellipsoid near one of the limits."""
    metres = np.asarray(distance_m(lon1, lat1, lon2, lat2), np.float64)
    near_limit = np.logical_or.reduce([np.abs(metres - limit) <= 0.01 * limit for limit in limits])
    if near_limit.any():
        metres[near_limit] = _geod().inv(lon1[near_limit], lat1[near_limit], lon2[near_limit], lat2[near_limit])[2]
    return metres


def stays(samples: Positions, areas: Sequence[tuple[int | None, Area]], longest: int, query_time: int, value: int) -> FluentTable:
    """Intervals in which entities are inside areas: from a sample inside to the entity's next
    sample, at most `longest`.

    `areas` pairs the code of the area argument (null: the fluent has none) with the region.
    """
    order = np.lexsort((samples.t, samples.entity))
    entity, t, x, y = samples.take(order)
    following = np.full(len(t), INF)
    same = entity[1:] == entity[:-1]
    following[:-1][same] = t[1:][same]
    ends = np.minimum(following, t + longest)
    ends = np.where(ends > query_time, INF, ends)
    columns: list[tuple[Ints, ...]] = []
    for code, area in areas:
        inside = np.flatnonzero(area.contains(x, y) & (ends > t))
        tag = () if code is None else (np.full(len(inside), code),)
        columns.append((entity[inside], *tag, np.full(len(inside), value), t[inside], ends[inside]))
    *keys, s, e = (np.concatenate(column) for column in zip(*columns, strict=True))
    return group_intervals(stack(keys, len(s)), s, e)
