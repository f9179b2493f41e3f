"""In and out events of monitors with options: when an entity counts as inside
depends on what it was before.

A **pair** is such a monitor and an entity that is in the monitor's region or counts as inside. The
index finds the entities that come into a region (by raw crossings and first tuples); from then on
each tuple of a pair is evaluated separately, until the entity is outside in both senses. So the
cost follows the tuples of pairs, not the tuples of the feed.

    enters(d) = d in region, the condition holds at d, accuracy(d) <= the region's size
    stays(d)  = d at most max(hysteresis, accuracy(d)) from the region, and the condition holds at d
    inside(k) = stays(d(k)) if inside(k-1) else enters(d(k)); outside before the first tuple

With a dwell D the in at t1 becomes one at t1 + D, unless an out has t2 <= t1 + D; then neither
counts. A timer: it is asserted once the watermark is beyond t1 + D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.border_monitoring.options import Options
from engine.border_monitoring.region_distance import Nearness
from engine.model.batch import Batch
from engine.model.conditions import Conditions

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Watch:
    """One monitor with options: a region with its buffers, or the box
    `[low, high)` of its ranges."""

    options: Options
    nearness: Nearness | None
    low: Floats
    high: Floats

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Closed bounds of what it watches, one entry per dimension."""
        if self.nearness is None:
            return self.low, self.high
        west, south, east, north = self.nearness.region.bounds
        return np.array([west, south]), np.array([east, north])

    def holds(self, values: Floats) -> Bools:
        """Which tuples, rows of values (m, d), are in the region or box."""
        if self.nearness is not None:
            return self.nearness.region.contains(values[:, 0], values[:, 1])
        d = len(self.low)
        return np.asarray(((self.low <= values[:, :d]) & (values[:, :d] < self.high)).all(axis=1), np.bool_)


@dataclass(frozen=True)
class Watches:
    """The monitors with options of one tuple class: `monitors` are their numbers in the index,
    ascending; `index_of` gives their indexes here."""

    monitors: Ints
    each: tuple[Watch, ...]
    low: Floats
    high: Floats
    dwell: Int64s
    enter_first: Bools

    @classmethod
    def of(cls, monitors: Sequence[int], each: Sequence[Watch]) -> Watches:
        boxes = [watch.box for watch in each]
        return cls(
            np.array(monitors, np.int32),
            tuple(each),
            np.array([low for low, _ in boxes]),
            np.array([high for _, high in boxes]),
            np.array([watch.options.dwell for watch in each], np.int64),
            np.array([watch.options.enter_first for watch in each], np.bool_),
        )

    def index_of(self, monitors: Ints) -> npt.NDArray[np.int64]:
        """The indexes of monitor numbers, -1 for those without options."""
        at = np.minimum(np.searchsorted(self.monitors, monitors), len(self.monitors) - 1)
        return np.where(self.monitors[at] == monitors, at, -1)


def _no_ints() -> Int64s:
    return np.empty(0, np.int64)


@dataclass
class WatchedPairs:
    """The pairs of one tuple class, by key (watch index << 32 | entity), ascending.

    `inside`: counts as inside (before any dwell); `pending`: its in waits for the dwell. The
    tuples d(k-1) and d(k) of the last in are kept for evidence while it is pending: `t`, `seq`,
    `x`, `y` (n, 2), seq -1 where there is no tuple before. `begun[w]`: watch w knows the tuples
    after this position of the log.
    """

    begun: Int64s
    key: Int64s = field(default_factory=_no_ints)
    inside: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    pending: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    t: Int64s = field(default_factory=lambda: np.empty((0, 2), np.int64))
    seq: Int64s = field(default_factory=lambda: np.empty((0, 2), np.int64))
    x: Floats = field(default_factory=lambda: np.empty((0, 2)))
    y: Floats = field(default_factory=lambda: np.empty((0, 2)))

    def take(self, chosen: npt.NDArray[np.generic] | slice) -> WatchedPairs:
        return WatchedPairs(self.begun, *(column[chosen] for name, column in vars(self).items() if name != "begun"))

    def check(self) -> None:
        assert (np.diff(self.key) > 0).all()
        assert (self.inside | ~self.pending).all()
        assert (self.key >> 32 < len(self.begun)).all()


@dataclass(frozen=True)
class WatchedEvents:
    """In and out events in the order of time: monitor, entity code, 1 in or 0 out, time;
    d(k-1) and d(k) as in `WatchedPairs`."""

    monitor: Ints
    entity: Ints
    inward: npt.NDArray[np.int8]
    at: Int64s
    t: Int64s
    seq: Int64s
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.at)


def merge_by_time(parts: Sequence[WatchedEvents]) -> WatchedEvents:
    """All events in the order of time."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    order = np.argsort(columns["at"], kind="stable")
    return WatchedEvents(**{name: column[order] for name, column in columns.items()})


@dataclass(frozen=True)
class WatchedTuples:
    """The tuples of a class in one batch, m of them in the order of time: their rows in it (null:
    all), values (m, w), and their predecessors.

    x and y are the columns `xy` of the values.
    """

    batch: Batch
    rows: Int64s | None
    entity: Ints
    t: Int64s
    seq: Int64s
    values: Floats
    before: Floats
    before_t: Int64s
    before_seq: Int64s
    xy: tuple[int, int]

    def at(self, mask: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """A column of the batch as one of the tuples."""
        return mask if self.rows is None else mask[self.rows]


def advance_pairs(
    watches: Watches, pairs: WatchedPairs, tuples: WatchedTuples | None, row: Ints, monitor: Ints, watermark: int
) -> tuple[WatchedPairs, WatchedEvents]:
    """The pairs after these tuples and everything due before `watermark`, and the events; (row,
    monitor) are the raw crossings in the index."""
    if tuples is None or len(tuples.t) == 0:
        return _only_timers(watches, pairs, watermark)
    keys = np.unique(np.concatenate([pairs.key, _crossed_pairs(watches, tuples, row, monitor), _first_inside(watches, pairs, tuples)]))
    now = _extend(pairs, keys)
    pair, tuple_ = _pair_tuples(keys, tuples.entity)
    watch_index = (keys >> 32)[pair]
    raw, enters, stays = _evaluate(watches, tuples, watch_index, tuple_)
    known = tuples.before_seq[tuple_] > pairs.begun[watch_index]
    keep = _known_pairs(pairs, keys)
    evaluated = _Evaluated(pair, tuple_, raw, enters, stays, known)
    state = _State(watches.dwell[keys >> 32], watches.enter_first[keys >> 32], now.inside, now.pending, keep)
    found, inward, at, shown = _advance(evaluated, _steps(tuples), watermark, state, _Steps(now.t, now.seq, now.x, now.y))
    events = WatchedEvents(watches.monitors[keys[found] >> 32], (keys[found] & 0xFFFFFFFF).astype(np.int32), inward, at, *shown)
    return now.take(np.flatnonzero(keep)), merge_by_time([events])


def _only_timers(watches: Watches, pairs: WatchedPairs, watermark: int) -> tuple[WatchedPairs, WatchedEvents]:
    due = np.flatnonzero(pairs.pending & (pairs.t[:, 1] + watches.dwell[pairs.key >> 32] < watermark))
    watch_index = pairs.key[due] >> 32
    events = WatchedEvents(
        watches.monitors[watch_index],
        (pairs.key[due] & 0xFFFFFFFF).astype(np.int32),
        np.ones(len(due), np.int8),
        pairs.t[due, 1] + watches.dwell[watch_index],
        pairs.t[due],
        pairs.seq[due],
        pairs.x[due],
        pairs.y[due],
    )
    pairs.pending[due] = False
    return pairs, merge_by_time([events])


def _crossed_pairs(watches: Watches, tuples: WatchedTuples, row: Ints, monitor: Ints) -> Int64s:
    """Keys of pairs with a raw crossing."""
    watch_index = watches.index_of(monitor)
    own = np.flatnonzero(watch_index >= 0)
    keys: Int64s = watch_index[own] << 32 | tuples.entity[row[own]]
    return keys


def _first_inside(watches: Watches, pairs: WatchedPairs, tuples: WatchedTuples) -> Int64s:
    """Keys of pairs whose first tuple is in the region, which no crossing shows."""
    latest = int(pairs.begun.max())
    first = np.flatnonzero(tuples.before_seq <= latest)
    if not len(first):
        return np.empty(0, np.int64)
    number, watch_index = _tuples_in_boxes(tuples.values[first], tuples.before_seq[first], watches.low, watches.high, pairs.begun)
    keys: Int64s = watch_index << 32 | tuples.entity[first[number]]
    return keys


@njit(cache=True, nogil=True)
def _tuples_in_boxes(values, before_seq, low, high, begun):  # type: ignore[no-untyped-def]
    """(tuple, watch) of tuples in the bounds of a watch that has seen no tuple of their entity."""
    numbers = [np.int64(0) for _ in range(0)]
    watch_indexes = [np.int64(0) for _ in range(0)]
    d = low.shape[1]
    for i in range(len(values)):
        for w in range(len(low)):
            j = 0
            while j < d and low[w, j] <= values[i, j] and values[i, j] <= high[w, j]:
                j += 1
            if j == d and before_seq[i] <= begun[w]:
                numbers.append(np.int64(i))
                watch_indexes.append(np.int64(w))
    return np.array(numbers, np.int64), np.array(watch_indexes, np.int64)


def _extend(pairs: WatchedPairs, keys: Int64s) -> WatchedPairs:
    """The pairs of `keys`, which hold those of `pairs`; new ones are outside."""
    at = np.searchsorted(keys, pairs.key)
    n = len(keys)
    now = WatchedPairs(
        pairs.begun, keys, np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros((n, 2), np.int64), np.full((n, 2), -1), np.zeros((n, 2)),
        np.zeros((n, 2)),
    )  # fmt: skip
    for name in ("inside", "pending", "t", "seq", "x", "y"):
        getattr(now, name)[at] = getattr(pairs, name)
    return now


def _known_pairs(pairs: WatchedPairs, keys: Int64s) -> Bools:
    """Which of `keys` are kept without a tuple in this batch: those that were pairs before."""
    return np.isin(keys, pairs.key, assume_unique=True)


def _pair_tuples(keys: Int64s, entity: Ints) -> tuple[Int64s, Int64s]:
    """(pair, tuple) of all tuples of the pairs' entities, by pair and then in the order of time."""
    order = np.argsort(entity, kind="stable")
    own = (keys & 0xFFFFFFFF).astype(entity.dtype)
    first = np.searchsorted(entity[order], own, side="left")
    counts = np.searchsorted(entity[order], own, side="right") - first
    pair = np.repeat(np.arange(len(keys)), counts)
    starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
    return pair, order[starts + np.arange(len(pair))]


def _evaluate(watches: Watches, tuples: WatchedTuples, watch_index: Int64s, tuple_: Int64s) -> tuple[Bools, Bools, Bools]:
    """(in the region, enters, stays) of each (watch, tuple); `watch_index` ascends."""
    raw, enters, stays = (np.zeros(len(watch_index), np.bool_) for _ in range(3))
    conditions: dict[Conditions, Bools] = {}
    accuracies: dict[str, Floats] = {}
    edges = np.flatnonzero(np.diff(watch_index, prepend=-1, append=-1)).tolist()
    for begin, end in pairwise(edges):
        watch, some = watches.each[watch_index[begin]], tuple_[begin:end]
        values = tuples.values[some]
        inside = watch.holds(values)
        options = watch.options
        holds = np.ones(len(some), np.bool_)
        if options.holds:
            if options.holds not in conditions:
                conditions[options.holds] = options.holds.mask(tuples.batch)
            holds = tuples.at(conditions[options.holds])[some]  # type: ignore[assignment]
        enter, near = inside, inside
        if watch.nearness is not None and (options.hysteresis or options.accuracy):
            slack = np.full(len(some), options.hysteresis)
            if options.accuracy:
                if options.accuracy not in accuracies:
                    accuracies[options.accuracy] = np.maximum(np.nan_to_num(tuples.batch.numbers(options.accuracy), nan=0.0), 0.0)
                accuracy = tuples.at(accuracies[options.accuracy])[some].astype(np.float64)
                enter = inside & (accuracy <= watch.nearness.size)
                slack = np.maximum(slack, accuracy)
            near = watch.nearness.near(values[:, 0], values[:, 1], inside, slack)
        raw[begin:end], enters[begin:end], stays[begin:end] = inside, enter & holds, near & holds
    return raw, enters, stays


class _Steps(NamedTuple):
    """Pairs of tuples d(k-1), d(k), arrays (n, 2): time, number in the log, position."""

    t: Int64s
    seq: Int64s
    x: Floats
    y: Floats


class _Evaluated(NamedTuple):
    """One entry for each tuple of a pair, by pair and then in time: both, the result of
    `_evaluate`, and whether a previous tuple counts."""

    pair: Int64s
    tuple_: Int64s
    raw: Bools
    enters: Bools
    stays: Bools
    known: Bools


class _State(NamedTuple):
    """One entry for each pair: what its watch needs, its counted state,
    and whether it continues."""

    dwell: Int64s
    enter_first: Bools
    inside: Bools
    pending: Bools
    keep: Bools


def _steps(tuples: WatchedTuples) -> _Steps:
    x, y = tuples.xy
    return _Steps(
        np.column_stack([tuples.before_t, tuples.t]),
        np.column_stack([tuples.before_seq, tuples.seq]),
        np.column_stack([tuples.before[:, x], tuples.values[:, x]]),
        np.column_stack([tuples.before[:, y], tuples.values[:, y]]),
    )


@njit(cache=True, nogil=True)
def _advance(evaluated, steps, watermark, state, held):  # type: ignore[no-untyped-def]
    """Takes each pair through its tuples, then fires due events: (pair, inward, at, steps).

    `held`: the step of each pair's last in, kept while that is pending. The pairs' `state` and
    `held` are those after it.
    """
    pair, tuple_, raw, enters, stays, known = evaluated
    dwell, enter_first, inside, pending, keep = state
    capacity = 2 * len(pair) + len(inside)
    out = (np.empty(capacity, np.int64), np.empty(capacity, np.int8), np.empty(capacity, np.int64))
    shown = _Steps(np.empty((capacity, 2), np.int64), np.empty((capacity, 2), np.int64), np.empty((capacity, 2)), np.empty((capacity, 2)))
    n = 0
    k = 0
    for p in range(len(inside)):
        last_raw = False
        seen = False
        while k < len(pair) and pair[k] == p:
            i = tuple_[k]
            t = steps.t[i, 1]
            if pending[p] and t > held.t[p, 1] + dwell[p]:
                n = _add(n, p, 1, held.t[p, 1] + dwell[p], held, out, shown)
                pending[p] = False
            now = stays[k] if inside[p] and known[k] else enters[k]
            happens = now != inside[p] if known[k] else now and enter_first[p]
            inside[p] = now
            last_raw = raw[k]
            seen = True
            if happens and not now and pending[p]:
                pending[p] = False
            elif happens:
                # Nothing waits now, so the columns of the pair are free for an out too.
                _copy(steps, i, held, p)
                if not known[k]:
                    held.seq[p, 0] = -1
                if now and dwell[p] > 0:
                    pending[p] = True
                else:
                    n = _add(n, p, 1 if now else 0, t, held, out, shown)
            k += 1
        if pending[p] and held.t[p, 1] + dwell[p] < watermark:
            n = _add(n, p, 1, held.t[p, 1] + dwell[p], held, out, shown)
            pending[p] = False
        if seen:
            keep[p] = inside[p] or last_raw
    return out[0][:n], out[1][:n], out[2][:n], (shown.t[:n], shown.seq[:n], shown.x[:n], shown.y[:n])


@njit(cache=True, nogil=True, inline="always")
def _add(n, p, inward, at, held, out, shown):  # type: ignore[no-untyped-def]
    """Writes an event of pair p with the step that is held for it; the new count."""
    out[0][n] = p
    out[1][n] = inward
    out[2][n] = at
    _copy(held, p, shown, n)
    return n + 1


@njit(cache=True, nogil=True, inline="always")
def _copy(source, i, target, j):  # type: ignore[no-untyped-def]
    for side in range(2):
        target.t[j, side] = source.t[i, side]
        target.seq[j, side] = source.seq[i, side]
        target.x[j, side] = source.x[i, side]
        target.y[j, side] = source.y[i, side]
