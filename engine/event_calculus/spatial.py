"""Spatial input fluents from positions: candidate pairs come from (time slot, cell) buckets, never from all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.event_calculus.compiled import jit
from engine.event_calculus.conditions import distance_m
from engine.event_calculus.intervals import INF, Bools, Intervals, Ints, amalgamate, counting_order, runs
from engine.event_calculus.tables import FluentTable, distinct_rows

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


@dataclass
class Contacts:
    """Pairs that were near in a slot: `a` < `b` are entity codes, `slot` the slot's first time; `examined` counts distance tests."""

    a: Ints
    b: Ints
    slot: Ints
    distance: Floats
    examined: int


FEW = 16
"""Samples of one slot that are compared directly: sorting them into cells costs more (measured at 10 entities)."""


@jit
def _contacts(entity: Ints, slot: Ints, x: Floats, y: Floats, cell_x: float, cell_y: float, reach_x: float, reach_y: float) -> Any:
    """Pairs of samples of one slot, of different entities, with |dx| <= reach_x and |dy| <= reach_y. Samples sorted by slot."""
    n = len(slot)
    capacity = max(64, n)
    left, right = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    k = 0
    examined = 0
    i = 0
    while i < n:
        j = i + 1
        while j < n and slot[j] == slot[i]:
            j += 1
        m = j - i
        if m <= FEW:
            for p in range(i, j):
                for q in range(p + 1, j):
                    examined += 1
                    if entity[p] != entity[q] and abs(x[p] - x[q]) <= reach_x and abs(y[p] - y[q]) <= reach_y:
                        if k == len(left):
                            left, right = _doubled(left), _doubled(right)
                        left[k], right[k] = p, q
                        k += 1
        else:
            column = np.floor(x[i:j] / cell_x).astype(np.int64)
            row = np.floor(y[i:j] / cell_y).astype(np.int64)
            column -= column.min()
            row -= row.min()
            height = row.max() + 3
            key = column * height + row
            order = np.argsort(key)
            ordered = key[order]
            for p in range(m):
                # The rest of the own cell, then the half of the neighbourhood that lies ahead: each pair of cells once.
                here = ordered[p]
                q = p + 1
                while q < m and ordered[q] <= here + 1:
                    examined += 1
                    k, left, right = _near(entity, x, y, i + order[p], i + order[q], reach_x, reach_y, k, left, right)
                    q += 1
                low = np.searchsorted(ordered, here + height - 1)
                while low < m and ordered[low] <= here + height + 1:
                    examined += 1
                    k, left, right = _near(entity, x, y, i + order[p], i + order[low], reach_x, reach_y, k, left, right)
                    low += 1
        i = j
    return left[:k], right[:k], examined


@jit
def _near(entity: Ints, x: Floats, y: Floats, p: int, q: int, reach_x: float, reach_y: float, k: int, left: Ints, right: Ints) -> Any:
    if entity[p] != entity[q] and abs(x[p] - x[q]) <= reach_x and abs(y[p] - y[q]) <= reach_y:
        if k == len(left):
            left, right = _doubled(left), _doubled(right)
        left[k], right[k] = p, q
        k += 1
    return k, left, right


@jit
def _doubled(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


def contacts(samples: Positions, slot: Ints, reach: float, geographic: bool) -> Contacts:
    """Pairs at most `reach` apart within a slot (metres on a geographic feed, else the feed's unit), border included."""
    order = np.argsort(slot, kind="stable") if np.any(slot[1:] < slot[:-1]) else None
    entity, x, y = samples.entity, samples.x, samples.y
    if order is not None:
        entity, slot, x, y = entity[order], slot[order], x[order], y[order]
    reach_x, reach_y = _reach(y, reach) if geographic else (reach, reach)
    left, right, examined = _contacts(entity, slot, x, y, reach_x * 1.000001, reach_y * 1.000001, reach_x, reach_y)
    # hypot is exact where coordinates are whole numbers and the distance is one (3-4-5), so a border is hit.
    measure = partial(_geodesic_near, threshold=reach) if geographic else _plane
    distance = measure(x[left], y[left], x[right], y[right])
    kept = distance <= reach
    left, right = left[kept], right[kept]
    a, b = np.minimum(entity[left], entity[right]), np.maximum(entity[left], entity[right])
    return Contacts(a, b, slot[left], distance[kept], int(examined))


def _plane(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> Floats:
    return np.hypot(x1 - x2, y1 - y2)


def _reach(latitude: Floats, reach: float) -> tuple[float, float]:
    """Degrees of longitude and latitude that surely cover `reach` metres."""
    widest = min(89.9, float(np.abs(latitude).max()) + reach / 110_000) if len(latitude) else 0.0
    return reach / (111_000 * np.cos(np.radians(widest))), reach / 110_000


@cache
def _geod() -> Geod:
    # Imported when a program asks for distances on the sphere: it takes a fifth of the start of a short run.
    from pyproj import Geod

    return Geod(ellps="WGS84")


def _geodesic_near(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats, threshold: float) -> Floats:
    """Distances in metres: by the sphere where it decides (its error is below 0.6 %), by the ellipsoid near the threshold."""
    metres = np.asarray(distance_m(lon1, lat1, lon2, lat2), np.float64)
    doubtful = np.abs(metres - threshold) <= 0.01 * threshold
    if doubtful.any():
        metres[doubtful] = _geod().inv(lon1[doubtful], lat1[doubtful], lon2[doubtful], lat2[doubtful])[2]
    return metres


def near_pairs(found: Contacts, threshold: float, tick: int, query_time: int, value: int) -> FluentTable:
    """Both orders of every pair that is within `threshold`, with its intervals: runs of slots `tick` apart."""
    near = found.distance <= threshold
    a, b, slot = found.a[near], found.b[near], found.slot[near]
    pair, first, n = distinct_rows([a, b], len(a))
    order, ptr = counting_order(pair, n)
    # Slots ascend inside each pair: contacts come slot by slot.
    lists = runs(ptr, slot[order], tick, query_time)
    a, b = a[first], b[first]
    both = Intervals(
        np.concatenate((lists.ptr, lists.ptr[1:] + len(lists.s))), np.concatenate((lists.s, lists.s)), np.concatenate((lists.e, lists.e))
    )
    return FluentTable((np.concatenate((a, b)), np.concatenate((b, a)), np.full(2 * n, value)), both)


def last_in_slot(samples: Positions, slot: int) -> tuple[Positions, Ints]:
    """The last sample of each entity in each slot of `slot` ticks, in order of slots, with the slot's first time."""
    start = samples.t - samples.t % slot
    cell, _, n = distinct_rows([start, samples.entity], len(start))
    last = np.zeros(n, np.int64)
    last[cell] = np.arange(len(cell))
    return samples.take(last), start[last]


def stays(samples: Positions, areas: Sequence[tuple[int | None, Area]], longest: int, query_time: int, value: int) -> FluentTable:
    """Intervals in which entities are inside areas: from a sample inside to the entity's next one, at most `longest`.

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
    joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
    *keys, s, e = joined
    owner, first, n = distinct_rows(keys, len(s))
    return FluentTable(tuple(key[first] for key in keys), amalgamate(owner, s, e, n))


__all__ = ["Area", "Contacts", "Positions", "contacts", "last_in_slot", "near_pairs", "stays"]
