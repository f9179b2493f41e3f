"""The queries that keep index points: a ring of points for each series; only the pairs that a
point affects are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.motion_patterns.batch_cache import BatchCache
from engine.motion_patterns.evaluation import NEVER, UNSOLVED, EvaluationClock, EvaluationRequest, MatchEvents, Status, advance
from engine.motion_patterns.index_points import COLUMNS, append, live, no_points, rebuilt, with_entities, with_room
from engine.motion_patterns.intervals import joined, none_of
from engine.motion_patterns.plan import MotionIndex
from engine.motion_patterns.samples import hits
from engine.motion_patterns.series import SeriesKey
from engine.motion_patterns.structure import Arrays, Structure
from engine.motion_patterns.totals import Switches, Totals

Ints = npt.NDArray[np.int64]


class PointSeries(Structure):
    """Series of index points, and the status of their queries (see `index_points`,
    `evaluation`). `forced[c]`: the first evaluation of clock c after that time
    evaluates everything (NEVER: not)."""

    def __init__(self, index: MotionIndex) -> None:
        super().__init__()
        self.index = index
        self.points = no_points(len(index.series), index.measures)
        self.status = _no_status(index, 0)
        self.forced = np.full(len(index.clocks), NEVER, np.int64)
        self.totals = Totals(index.totals)

    def take(self, cache: BatchCache) -> None:
        batch = cache.batch
        self._make_room(cache.entities)
        hit = hits(self.index, self.index.point_classes, batch)
        self.points = with_room(self.points, np.bincount(hit.series, minlength=len(self.index.series)))
        append(self.points, hit.series, hit.row, hit.value, batch.t, batch.seq, batch.x, batch.y, batch.entity)
        self.totals.take(batch, self.points.head.shape[1])
        self.work.index_points += len(hit.series)

    def _make_room(self, entities: int) -> None:
        room = self.points.head.shape[1]
        self.points = with_entities(self.points, entities)
        if self.points.head.shape[1] > room:
            grown = _no_status(self.index, self.points.head.shape[1])
            for before, after in zip(self.status, grown, strict=True):
                after[:, :room] = before
            self.status = grown

    def advance(self, last: int, entities: int, rank: Ints) -> MatchEvents:
        index = self.index
        events_of_clocks = [none_of(index.widest)]
        entities = min(entities, self.points.head.shape[1])
        on = self.totals.on(entities)
        switches = self.totals.advance(last)
        for clock, every in enumerate(index.clocks):
            forced = int(self.forced[clock])
            events, entered, left, evaluations = advance(
                index.plan,
                self.points,
                self.status,
                EvaluationClock(every, index.clock_series[clock], index.clock_queries[clock]),
                EvaluationRequest(last, forced, entities, rank, index.widest),
                _by_time([switches[number] for number in index.clock_totals[clock]]),
                on,
            )
            if forced != NEVER and (forced // every + 1) * every <= last:
                self.forced[clock] = NEVER
            events_of_clocks.append(events)
            self.work.positive_updates += entered
            self.work.negative_updates += left
            self.work.evaluations += evaluations
        return joined(events_of_clocks)

    def force(self, after: int) -> None:
        self.forced[:] = after

    def held(self) -> tuple[Ints, Ints]:
        query, entity = np.nonzero(self.status.holds)
        return query.astype(np.int64), entity.astype(np.int64)

    def hold(self, query: Ints, entity: Ints) -> None:
        here = np.isin(query, np.concatenate([np.empty(0, np.int64), *self.index.clock_queries]))
        self.status.holds[query[here], entity[here]] = True

    def dump(self) -> Arrays:
        counts, columns = live(self.points)
        scored = np.nonzero(~np.isnan(self.status.score))
        return {
            "counts": counts,
            "entered": self.points.entered - self.points.left,
            "entities": np.array([self.points.head.shape[1]]),
            "forced": self.forced,
            "held": np.vstack(self.held()),
            "scored": np.vstack(scored),
            "scores": self.status.score[scored],
            **{f"point_{name}": column for name, column in columns.items()},
            **self.totals.dump(),
        }

    @classmethod
    def load(cls, index: MotionIndex, arrays: Arrays) -> PointSeries:
        """The inverse of `dump`, for an equal index."""
        state, entities = cls(index), int(arrays["entities"][0])
        columns = {name: arrays[f"point_{name}"] for name in COLUMNS}
        state.points = rebuilt(arrays["counts"], arrays["entered"], columns, index.plan.measure, index.plan.sign, entities)
        state.status = _no_status(index, entities)
        state.status.holds[tuple(arrays["held"])] = True
        state.status.score[tuple(arrays["scored"])] = arrays["scores"]
        state.forced = arrays["forced"]
        state.totals = Totals.load(index.totals, arrays)
        return state

    @classmethod
    def merged(cls, index: MotionIndex, parts: Sequence[PointSeries]) -> PointSeries:
        """The points of the index's series, each series from the first part that has
        it. No query matches yet."""
        state, entities = cls(index), max((part.points.head.shape[1] for part in parts), default=0)
        source: dict[SeriesKey, tuple[int, int]] = {}
        live_points = [live(part.points) for part in parts]
        for number, part in enumerate(parts):
            for p in np.concatenate([np.empty(0, np.int64), *part.index.clock_series]).tolist():
                source.setdefault(part.index.series[p], (number, p))
        counts, entered = np.zeros(len(index.series), np.int64), np.zeros(len(index.series), np.int64)
        pieces: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in COLUMNS}
        firsts = [np.cumsum(part_counts) - part_counts for part_counts, _ in live_points]
        for p, key in enumerate(index.series):
            if key not in source:
                continue
            number, old = source[key]
            points = parts[number].points
            part_counts, columns = live_points[number]
            counts[p], entered[p] = part_counts[old], points.entered[old] - points.left[old]
            for name in COLUMNS:
                pieces[name].append(columns[name][firsts[number][old] : firsts[number][old] + counts[p]])
        empty = live(no_points(0, 0))[1]
        joined_columns = {name: np.concatenate([empty[name], *pieces[name]]) for name in COLUMNS}
        state.points = rebuilt(counts, entered, joined_columns, index.plan.measure, index.plan.sign, entities)
        state.status = _no_status(index, entities)
        state.totals = Totals.merged(index.totals, [part.totals for part in parts])
        return state

    def kept(self) -> int:
        return int((self.points.tail - self.points.left).sum()) + self.totals.kept()

    def check(self, done: int | None) -> None:
        self.totals.check()
        points = self.points
        assert len(points.tail) == len(self.index.series)
        assert (points.left <= points.entered).all() and (points.entered <= points.tail).all()
        assert (points.tail - points.left <= points.mask + 1).all()
        for p, key in enumerate(self.index.series):
            if done is not None and points.left[p] < points.tail[p]:
                oldest = points.t[points.first[p] + (points.left[p] & points.mask[p])]
                # Memory is bounded by the longest window: a point is removed at the first
                # evaluation after it has left.
                assert oldest + max(key.start, key.end) > done - key.every


def _by_time(switches: Sequence[Switches]) -> Switches:
    """All switches in order of time."""
    none = np.empty(0, np.int64)
    joined = Switches._make(np.concatenate(columns) for columns in zip(Switches(none, none, none, none.astype(np.bool_)), *switches, strict=True))
    order = np.argsort(joined.k, kind="stable")
    return Switches._make(column[order] for column in joined)


def _no_status(index: MotionIndex, entities: int) -> Status:
    queries = len(index.queries)
    return Status(
        holds=np.zeros((queries, entities), np.bool_),
        chain_until=np.full((queries if len(index.plan.chain) else 0, entities), UNSOLVED, np.int64),
        score=np.full((len(index.rankings), entities), np.nan),
    )
