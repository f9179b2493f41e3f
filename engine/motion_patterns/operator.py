"""Continuous motion patterns: all motion queries of a feed over shared series of index points."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Feed
from engine.motion_patterns.arrays import pack_arrays, unpack_arrays
from engine.motion_patterns.evaluation import CANDIDATE, NEVER, UNSOLVED, WITHDRAWN, Events, Standing, advance
from engine.motion_patterns.index_points import COLUMNS, Points, append, live, no_points, rebuilt, with_entities, with_room
from engine.motion_patterns.intervals import OpenMatches, joined, none_of, state_changes, taken
from engine.motion_patterns.plan import MotionIndex, SeriesKey, compile_index
from engine.motion_patterns.ranking import RankingStage, emitted_rows, renumbered
from engine.motion_patterns.samples import hits
from engine.operator import Operator, Output, RegisteredQuery, Stage

Ints = npt.NDArray[np.int64]


@dataclass
class Work:
    """What was done so far, in the paper's words: index points kept, positive and negative updates, re-evaluations."""

    samples: int = 0
    index_points: int = 0
    positive_updates: int = 0
    negative_updates: int = 0
    evaluations: int = 0


@dataclass
class MotionState:
    """State of one partition. `done`: every evaluation time up to it is evaluated (null: none is). `forced[c]`: the first evaluation of clock c after
    that time looks at everything, because queries have come (NEVER: not). `open` are the matches that hold; those of ranked queries the relational
    stage keeps. `rank[e]` orders entities by id."""

    points: Points
    standing: Standing
    open: OpenMatches
    forced: Ints
    done: int | None = None
    rank: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    work: Work = field(default_factory=Work)


class MotionStage(Stage[MotionIndex, MotionState]):
    """The keyed stage: an entity's samples in; its matches, or its scores for the ranking, out."""

    def initial(self, index: MotionIndex) -> MotionState:
        return MotionState(
            points=no_points(len(index.series), index.measures),
            standing=_nothing_stands(index, 0),
            open=OpenMatches(none_of(index.widest)),
            forced=np.full(len(index.clocks), NEVER, np.int64),
        )

    def step(self, index: MotionIndex, state: MotionState, batch: Batch, watermark: int) -> Output[MotionState]:
        if len(batch):
            _take(index, state, batch)
        events = _evaluated(index, state, watermark - 1, batch.entities)
        ranked = np.isin(events.what, (CANDIDATE, WITHDRAWN))
        state.open, stated = state_changes(state.open, taken(events, ~ranked), batch.entities)
        return Output(state, stated, emitted_rows(taken(events, ranked), _routes(index), batch.entities))

    def migrate(self, index: MotionIndex, parts: Sequence[tuple[MotionIndex, MotionState]]) -> MotionState:
        state = self.initial(index)
        dones = [part.done for _, part in parts if part.done is not None]
        state.done = max(dones, default=None)
        if state.done is not None:
            state.forced[:] = state.done
        entities = max((part.points.head.shape[1] for _, part in parts), default=0)
        state.points = _points_of(index, parts, entities)
        state.standing = _nothing_stands(index, entities)
        state.open = OpenMatches(renumbered([(old, part.open.began) for old, part in parts], index))
        held = renumbered([(old, _held(part.standing, index.widest)) for old, part in parts], index)
        state.standing.holds[held.query, held.entity] = True
        for name in vars(state.work):
            setattr(state.work, name, sum(getattr(part.work, name) for _, part in parts))
        return state

    def dump(self, index: MotionIndex, state: MotionState) -> bytes:
        counts, columns = live(state.points)
        held = _held(state.standing, 0)
        scored = np.nonzero(~np.isnan(state.standing.score))
        arrays: dict[str, npt.NDArray[Any]] = {
            "counts": counts,
            "entered": state.points.entered - state.points.left,
            "entities": np.array([state.points.head.shape[1]]),
            "done": np.array([] if state.done is None else [state.done], np.int64),
            "forced": state.forced,
            "held": np.vstack([held.query, held.entity]),
            "scored": np.vstack(scored),
            "scores": state.standing.score[scored],
            "work": np.array(list(vars(state.work).values()), np.int64),
        }
        arrays |= {f"point_{name}": column for name, column in columns.items()}
        arrays |= {f"open_{name}": column for name, column in state.open.began._asdict().items()}
        return pack_arrays(arrays)

    def load(self, index: MotionIndex, data: bytes) -> MotionState:
        arrays = unpack_arrays(data)
        entities = int(arrays["entities"][0])
        columns = {name: arrays[f"point_{name}"] for name in COLUMNS}
        state = self.initial(index)
        state.points = rebuilt(arrays["counts"], arrays["entered"], columns, index.plan.measure, index.plan.sign, entities)
        state.standing = _nothing_stands(index, entities)
        state.standing.holds[tuple(arrays["held"])] = True
        state.standing.score[tuple(arrays["scored"])] = arrays["scores"]
        state.open = OpenMatches(Events._make(arrays[f"open_{name}"] for name in Events._fields))
        state.done = int(arrays["done"][0]) if len(arrays["done"]) else None
        state.forced = arrays["forced"]
        state.work = Work(*arrays["work"].tolist())
        return state

    def check(self, index: MotionIndex, state: MotionState) -> None:
        points = state.points
        assert len(points.tail) == len(index.series)
        assert (points.left <= points.entered).all() and (points.entered <= points.tail).all()
        assert (points.tail - points.left <= points.mask + 1).all()
        state.open.check()
        local = np.setdiff1d(np.arange(len(index.queries)), index.rankings)
        held = _held(state.standing, 0)
        of_local = np.isin(held.query, local)
        assert (np.sort(held.query[of_local] << 32 | held.entity[of_local]) == state.open.keys).all()
        for p, key in enumerate(index.series):
            if state.done is not None and points.left[p] < points.tail[p]:
                oldest = points.t[points.first[p] + (points.left[p] & points.mask[p])]
                # Memory is bounded by the longest window: a point goes at the first evaluation after it left.
                assert oldest + max(key.start, key.end) > state.done - key.every

    def counters(self, index: MotionIndex, state: MotionState) -> Mapping[str, int]:
        kept = int((state.points.tail - state.points.left).sum())
        return {**vars(state.work), "index_points_kept": kept, "open_matches": len(state.open.began.query), "events_kept": kept}


class MotionOperator(Operator[MotionIndex]):
    """Family `motion` ([CMP]). The whole log is read for a new query: a match may have begun at any time."""

    families: ClassVar[tuple[str, ...]] = ("motion",)
    keyed = MotionStage()
    relational = RankingStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> MotionIndex:
        return compile_index(queries, feed)


def _nothing_stands(index: MotionIndex, entities: int) -> Standing:
    queries = len(index.queries)
    return Standing(
        holds=np.zeros((queries, entities), np.bool_),
        chain_until=np.full((queries if len(index.plan.chain) else 0, entities), UNSOLVED, np.int64),
        score=np.full((len(index.rankings), entities), np.nan),
    )


def _take(index: MotionIndex, state: MotionState, batch: Batch) -> None:
    """Keep the batch's index points."""
    entity = batch.entity
    room = state.points.head.shape[1]
    points = with_entities(state.points, len(batch.entities))
    if points.head.shape[1] > room:
        grown = _nothing_stands(index, points.head.shape[1])
        for before, after in zip(state.standing, grown, strict=True):
            after[:, :room] = before
        state.standing = grown
    found = hits(index, batch)
    state.points = with_room(points, np.bincount(found.series, minlength=len(index.series)))
    append(state.points, found.series, found.row, found.value, batch.t, batch.seq, batch.x, batch.y, entity)
    state.work.samples += len(batch)
    state.work.index_points += len(found.series)


def _evaluated(index: MotionIndex, state: MotionState, last: int, dictionary: EntityDictionary) -> Events:
    """All evaluation times up to `last`; events clock by clock, in order of time within each."""
    found = [none_of(index.widest)]
    entities = min(len(dictionary), state.points.head.shape[1])
    rank = _rank(index, state, dictionary, entities)
    for clock, every in enumerate(index.clocks):
        series, queries = index.clock_series[clock], index.clock_queries[clock]
        forced = int(state.forced[clock])
        events, n, entered, left, evaluations = advance(
            index.plan, state.points, state.standing, series, queries, every, last, forced, entities, rank, index.widest
        )
        if forced != NEVER and (forced // every + 1) * every <= last:
            state.forced[clock] = NEVER
        found.append(Events._make(column[:n] for column in events))
        state.work.positive_updates += entered
        state.work.negative_updates += left
        state.work.evaluations += evaluations
    state.done = last if state.done is None else max(state.done, last)
    return joined(found)


def _rank(index: MotionIndex, state: MotionState, dictionary: EntityDictionary, entities: int) -> Ints:
    """Order of the entities by id, as far as a query asks for it."""
    if index.names_matter and len(state.rank) < entities:
        order = pc.sort_indices(pa.array(dictionary.names[:entities], pa.string())).to_numpy()
        state.rank = np.empty(entities, np.int64)
        state.rank[order] = np.arange(entities)
    return state.rank


def _routes(index: MotionIndex) -> Ints:
    """A query's route depends on the query alone, so that it stays in its partition when others come and go."""
    return np.array([zlib.crc32(f"{query.id} {query.version}".encode()) for query in index.queries], np.int64)


def _held(standing: Standing, width: int) -> Events:
    """The pairs (query, entity) that hold, as events without content."""
    query, entity = (part.astype(np.int64) for part in np.nonzero(standing.holds))
    nothing, no_witness = np.zeros(len(query), np.int64), np.full((len(query), width), -1, np.int64)
    nowhere = no_witness.astype(np.float64)
    return Events(query, entity, nothing, nothing, nothing.astype(np.float64), no_witness, no_witness, nowhere, nowhere)


def _points_of(index: MotionIndex, parts: Sequence[tuple[MotionIndex, MotionState]], entities: int) -> Points:
    """The points of the index's series, each from the first part that keeps it."""
    source: dict[SeriesKey, tuple[int, int]] = {}
    lives = [live(part.points) for _, part in parts]
    for number, (old, _) in enumerate(parts):
        for p, key in enumerate(old.series):
            source.setdefault(key, (number, p))
    counts, entered = np.zeros(len(index.series), np.int64), np.zeros(len(index.series), np.int64)
    pieces: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in COLUMNS}
    firsts = [np.cumsum(part_counts) - part_counts for part_counts, _ in lives]
    for p, key in enumerate(index.series):
        if key not in source:
            continue
        number, old_p = source[key]
        part_counts, columns = lives[number]
        counts[p] = part_counts[old_p]
        entered[p] = parts[number][1].points.entered[old_p] - parts[number][1].points.left[old_p]
        first = firsts[number][old_p]
        for name in COLUMNS:
            pieces[name].append(columns[name][first : first + counts[p]])
    empty = live(no_points(0, 0))[1]
    columns = {name: np.concatenate([empty[name], *pieces[name]]) for name in COLUMNS}
    return rebuilt(counts, entered, columns, index.plan.measure, index.plan.sign, entities)
