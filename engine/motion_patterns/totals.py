"""Accumulated time: for how long an entity's held position was inside (or outside) a
region within a sliding window.

A position is held from a sample until the next one, at most for `gap`. The total at T is the sum
of the overlaps of the window (T - from, T - to] with the intervals in which the position counts.
So it is linear in T between the times at which an end of the window meets an end of an interval.
Whether it reaches a bound changes at most once between two such times, and only these *switches*
are sent to the evaluation.

`at_most` D is "not at least D + 1": times are whole numbers, and so are totals.

References: [CMP] introduction ("more than 20 minutes in the last half
hour"); the quantifier is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.model.batch import Batch
from engine.model.conditions import Conditions
from engine.model.region import Region

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FOR_EVER = 2**62
_NONE = -(2**62)


@dataclass(frozen=True)
class TotalKey:
    """The identity of a total: whether the time inside `target` (`outside`: outside it) within the
    window reaches `bound`, at multiples of `every`."""

    where: Conditions
    target: Region
    outside: bool
    gap: int
    start: int
    end: int
    bound: int
    every: int


class Switches(NamedTuple):
    """At evaluation number `k` the `total` of `entity` begins (`on`) or ceases to
    reach its bound; sorted by k."""

    k: Ints
    total: Ints
    entity: Ints
    on: Bools


class _Held(NamedTuple):
    """By entity code: the time of its last sample, whether that sample counts, and since when
    counting positions have been held without a break."""

    t: Ints
    counts: Bools
    since: Ints
    known: Bools


class _Test(NamedTuple):
    """A total of `bound` or more in the window from `start` to `stop` before each multiple of
    `every`; a position lasts up to `gap`."""

    gap: int
    start: int
    stop: int
    bound: int
    every: int


@dataclass
class _Intervals:
    """The ended intervals [begin, end) of one total, by entity and time,
    and the positions held now.

    `on`: the bound is reached at the last evaluation.
    """

    entity: Ints
    begin: Ints
    end: Ints
    held: _Held
    on: Bools

    @classmethod
    def none(cls) -> _Intervals:
        empty = np.empty(0, np.int64)
        return cls(empty, empty, empty, _nothing_held(0), np.empty(0, np.bool_))

    def reserve(self, entities: int) -> None:
        room = len(self.held.t)
        if entities > room:
            wider = _nothing_held(entities)
            for name in _Held._fields:
                getattr(wider, name)[:room] = getattr(self.held, name)
            self.held = wider
            self.on = np.concatenate([self.on, np.zeros(entities - room, np.bool_)])


def _nothing_held(room: int) -> _Held:
    return _Held(np.zeros(room, np.int64), np.zeros(room, np.bool_), np.zeros(room, np.int64), np.zeros(room, np.bool_))


class Totals:
    """The totals of a partition. `done`: switches are sent up to this time (None: none). Work so
    far: `ended` intervals, `switches` sent."""

    def __init__(self, keys: Sequence[TotalKey]) -> None:
        self.keys = tuple(keys)
        self.intervals = [_Intervals.none() for _ in keys]
        self.done: int | None = None
        self.ended, self.switches = 0, 0

    def take(self, batch: Batch, entities: int) -> None:
        """Adds the batch's samples, and makes room for `entities`."""
        located = ~(np.isnan(batch.x) | np.isnan(batch.y))
        for key, intervals in zip(self.keys, self.intervals, strict=True):
            intervals.reserve(entities)
            rows = np.flatnonzero(located & key.where.mask(batch))
            counts = key.target.contains(batch.x[rows], batch.y[rows]) != key.outside
            entity, begin, end = _ended(batch.entity[rows], batch.t[rows], counts, key.gap, intervals.held)
            self.ended += len(entity)
            intervals.entity, intervals.begin, intervals.end = (
                np.concatenate(pair) for pair in ((intervals.entity, entity), (intervals.begin, begin), (intervals.end, end))
            )

    def advance(self, last: int) -> list[Switches]:
        """The switches up to `last`, for each total."""
        switches = []
        for number, (key, intervals) in enumerate(zip(self.keys, self.intervals, strict=True)):
            order = np.argsort(intervals.entity, kind="stable")
            first = np.searchsorted(intervals.entity[order], np.arange(len(intervals.on) + 1))
            done = _NONE if self.done is None else self.done
            k, entity, on = _switched(
                first,
                intervals.begin[order],
                intervals.end[order],
                intervals.held,
                intervals.on,
                _Test(key.gap, key.start, key.end, key.bound, key.every),
                done,
                last,
            )
            self.switches += len(k)
            by_time = np.argsort(k, kind="stable")
            switches.append(Switches(k[by_time], np.full(len(k), number), entity[by_time], on[by_time]))
            kept = order[intervals.end[order] > last - key.start]
            intervals.entity, intervals.begin, intervals.end = intervals.entity[kept], intervals.begin[kept], intervals.end[kept]
        self.done = last if self.done is None else max(self.done, last)
        return switches

    def on(self, entities: int) -> Bools:
        """Whether each total (row) reaches its bound for each entity (column)."""
        reached = np.zeros((len(self.keys), entities), np.bool_)
        for row, intervals in zip(reached, self.intervals, strict=True):
            row[: min(len(intervals.on), entities)] = intervals.on[:entities]
        return reached

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {
            "totals_done": np.array([] if self.done is None else [self.done], np.int64),
            "totals_work": np.array([self.ended, self.switches]),
        }
        for n, intervals in enumerate(self.intervals):
            arrays |= {f"total{n}_{name}": column for name, column in intervals.held._asdict().items()}
            arrays |= {f"total{n}_{name}": getattr(intervals, name) for name in ("entity", "begin", "end", "on")}
        return arrays

    @classmethod
    def load(cls, keys: Sequence[TotalKey], arrays: dict[str, npt.NDArray[Any]]) -> Totals:
        totals = cls(keys)
        totals.done = int(arrays["totals_done"][0]) if len(arrays["totals_done"]) else None
        # States of an older version have no work counters.
        totals.ended, totals.switches = arrays.get("totals_work", np.zeros(2, np.int64)).tolist()
        for n in range(len(keys)):
            columns = {name: arrays[f"total{n}_{name}"] for name in ("entity", "begin", "end", "on")}
            held = _Held._make(arrays[f"total{n}_{name}"] for name in _Held._fields)
            totals.intervals[n] = _Intervals(columns["entity"], columns["begin"], columns["end"], held, columns["on"])
        return totals

    @classmethod
    def merged(cls, keys: Sequence[TotalKey], parts: Sequence[Totals]) -> Totals:
        """Each total from the first part that has it."""
        totals = cls(keys)
        known = {key: intervals for part in reversed(parts) for key, intervals in zip(part.keys, part.intervals, strict=True)}
        totals.intervals = [known.get(key) or _Intervals.none() for key in totals.keys]
        totals.done = max((part.done for part in parts if part.done is not None), default=None)
        totals.ended, totals.switches = sum(part.ended for part in parts), sum(part.switches for part in parts)
        return totals

    def counters(self) -> dict[str, int]:
        """The work counters; empty if no query has a total."""
        if not self.keys:
            return {}
        return {"total_stretches": self.ended, "total_stretches_kept": self.kept(), "total_switches": self.switches}

    def kept(self) -> int:
        return sum(len(intervals.entity) + int(intervals.held.known.sum()) for intervals in self.intervals)

    def check(self) -> None:
        for intervals in self.intervals:
            assert (intervals.begin < intervals.end).all()
            assert (intervals.held.since <= intervals.held.t)[intervals.held.counts].all()


@njit(cache=True, nogil=True)
def _ended(entity: Any, t: Ints, counts: Bools, gap: int, held: _Held) -> Any:
    """The intervals that end with the samples, which are in (t, seq): (entity, begin, end)."""
    who, begin, end = np.empty(len(t), np.int64), np.empty(len(t), np.int64), np.empty(len(t), np.int64)
    n = 0
    for r in range(len(t)):
        e = entity[r]
        goes_on = held.known[e] and held.counts[e] and counts[r] and t[r] - held.t[e] <= gap
        if held.known[e] and held.counts[e] and not goes_on:
            until = min(t[r], held.t[e] + gap)
            if until > held.since[e]:
                who[n], begin[n], end[n] = e, held.since[e], until
                n += 1
        if not goes_on:
            held.since[e] = t[r]
        held.t[e], held.counts[e], held.known[e] = t[r], counts[r], True
    return who[:n], begin[:n], end[:n]


@njit(cache=True, nogil=True)
def _overlap(begin: int, end: int, low: int, high: int) -> int:
    return max(0, min(end, high) - max(begin, low))


@njit(cache=True, nogil=True)
def _edge(begin: Ints, end: Ints, i: int, n: int, at: int) -> Any:
    """From the i-th of n intervals on: (the first that ends after `at`, 1 if it contains `at`, the
    next time at which that changes)."""
    while i < n and end[i] <= at:
        i += 1
    if i == n:
        return i, 0, FOR_EVER
    return (i, 1, end[i]) if begin[i] <= at else (i, 0, begin[i])


@njit(cache=True, nogil=True)
def _switched(first: Ints, begins: Ints, ends: Ints, held: _Held, on: Bools, test: _Test, done: int, last: int) -> Any:
    """(k, entity, on) of the switches at the multiples of `every` in (done, last]. Updates `on`."""
    gap, start, stop, bound, every = test
    room, n_switches = 64, 0
    ks, who, what = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.bool_)
    for e in range(len(on)):
        n = first[e + 1] - first[e]
        count = n + (1 if held.known[e] and held.counts[e] else 0)
        if count == 0 and not on[e]:
            continue
        begin, end = np.empty(count, np.int64), np.empty(count, np.int64)
        begin[:n], end[:n] = begins[first[e] : first[e + 1]], ends[first[e] : first[e + 1]]
        if count > n:
            begin[n], end[n] = held.since[e], min(held.t[e] + gap, FOR_EVER)
        at = done
        if done == _NONE:
            at = begin[0] - 1
        total = 0
        for i in range(count):
            total += _overlap(begin[i], end[i], at - start, at - stop)
        i = j = 0
        while at < last:
            i, rises, next_i = _edge(begin, end, i, count, at - stop)
            j, falls, next_j = _edge(begin, end, j, count, at - start)
            until = min(last, min(next_i + stop, next_j + start))
            slope = rises - falls
            low, high = -(-(at + 1) // every), until // every
            if low <= high:
                now = total + slope * (low * every - at) >= bound
                if now != on[e]:
                    n_switches += 1
                    on[e] = now
                    if n_switches > room:
                        room *= 2
                        ks, who, what = np.append(ks, ks), np.append(who, who), np.append(what, what)
                    ks[n_switches - 1], who[n_switches - 1], what[n_switches - 1] = low, e, now
                if (total + slope * (high * every - at) >= bound) != now:
                    # It switches once in between: at the first T at which a rising total reaches
                    # the bound, or a falling one is below it.
                    when = at + bound - total if slope > 0 else at + total - bound + 1
                    n_switches += 1
                    on[e] = not now
                    if n_switches > room:
                        room *= 2
                        ks, who, what = np.append(ks, ks), np.append(who, who), np.append(what, what)
                    ks[n_switches - 1], who[n_switches - 1], what[n_switches - 1] = -(-when // every), e, not now
            total += slope * (until - at)
            at = until
    return ks[:n_switches], who[:n_switches], what[:n_switches]
