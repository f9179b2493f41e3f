"""Continuous motion patterns: all motion queries of a feed, evaluated by
planes or by index points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.arrays import pack_arrays, unpack_arrays
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Feed
from engine.motion_patterns.batch_cache import BatchCache
from engine.motion_patterns.evaluation import CANDIDATE, RETRACTED, MatchEvents
from engine.motion_patterns.intervals import OpenMatches, joined, none_of, state_changes, taken
from engine.motion_patterns.plan import MotionIndex, compile_index
from engine.motion_patterns.plane_sweep import PlaneSweep
from engine.motion_patterns.point_series import PointSeries
from engine.motion_patterns.ranking import RankingStage, emitted_rows, renumbered, unsent
from engine.motion_patterns.structure import Arrays, Structure, WorkCounters
from engine.operator import Operator, Output, RegisteredQuery, Stage

Ints = npt.NDArray[np.int64]

STATE_VERSION = 6
"""Version of the form that `dump` writes; a state of another version is refused
and made again from the log."""


@dataclass
class MotionState:
    """State of one partition. `points` (null if no query keeps any) and `planes` (one for each
    group) hold the samples and the matches. `done`: every evaluation time up to it is
    evaluated (null: none is). `open` are the matches that hold. Matches of ranked queries are
    in the relational stage, and `sent` holds this partition's candidates as last sent to it.
    `rank[e]` orders entities by id."""

    points: PointSeries | None
    planes: list[PlaneSweep]
    open: OpenMatches
    sent: MatchEvents
    done: int | None = None
    rank: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    work: WorkCounters = field(default_factory=WorkCounters)

    @property
    def structures(self) -> list[Structure]:
        return [self.points, *self.planes] if self.points else list(self.planes)

    def held(self) -> tuple[Ints, Ints]:
        """(query, entity) of all pairs that match now (ranked: are candidates), sorted."""
        none = np.empty(0, np.int64)
        query, entity = (np.concatenate(columns) for columns in zip((none, none), *(one.held() for one in self.structures), strict=True))
        order = np.lexsort((entity, query))
        return query[order], entity[order]


class MotionStage(Stage[MotionIndex, MotionState]):
    """The keyed stage: its input is an entity's samples, its output the matches, or
    the scores for the ranking."""

    def initial(self, index: MotionIndex) -> MotionState:
        none = none_of(index.widest)
        return MotionState(
            PointSeries(index) if index.clocks else None, [PlaneSweep(index, group) for group in index.groups], OpenMatches(none), none
        )

    def step(self, index: MotionIndex, state: MotionState, batch: Batch, watermark: int) -> Output[MotionState]:
        if len(batch):
            state.work.samples += len(batch)
            cache = BatchCache(batch)
            for structure in state.structures:
                structure.take(cache)
        events = _evaluated(index, state, watermark - 1, batch.entities)
        ranked = (events.what == CANDIDATE) | (events.what == RETRACTED)
        state.open, asserted = state_changes(state.open, taken(events, ~ranked), batch.entities)
        state.sent, fresh = unsent(state.sent, taken(events, ranked))
        return Output(state, asserted, emitted_rows(fresh, np.array([query.route for query in index.queries], np.int64), batch.entities))

    def migrate(self, index: MotionIndex, parts: Sequence[tuple[MotionIndex, MotionState]]) -> MotionState:
        done = max((part.done for _, part in parts if part.done is not None), default=None)
        state = MotionState(
            points=PointSeries.merged(index, [part.points for _, part in parts if part.points]) if index.clocks else None,
            planes=[
                PlaneSweep.merged(index, group, [sweep for _, part in parts for sweep in part.planes if sweep.group.key == group.key], done)
                for group in index.groups
            ],
            open=OpenMatches(renumbered([(old, part.open.began) for old, part in parts], index)),
            sent=renumbered([(old, part.sent) for old, part in parts], index),
            done=done,
        )
        held = renumbered([(old, _pairs(part, index.widest)) for old, part in parts], index)
        for structure in state.structures:
            structure.hold(held.query, held.entity)
            if done is not None:
                structure.force(done)
        for _, part in parts:
            state.work.add(part.work)
        return state

    def dump(self, index: MotionIndex, state: MotionState) -> bytes:
        arrays: Arrays = {
            "version": np.array([STATE_VERSION]),
            "done": np.array([] if state.done is None else [state.done], np.int64),
            "work": np.array(list(vars(state.work).values()), np.int64),
        }
        for number, structure in enumerate(state.structures):
            arrays |= {f"{number} {name}": column for name, column in structure.dump().items()}
        for name, events in (("open", state.open.began), ("sent", state.sent)):
            arrays |= {f"{name} {column}": values for column, values in events._asdict().items()}
        return pack_arrays(arrays)

    def load(self, index: MotionIndex, data: bytes) -> MotionState:
        """Raises ValueError for a state of another version."""
        arrays = unpack_arrays(data)
        version = arrays.get("version", np.array([1])).tolist()
        if version != [STATE_VERSION]:
            raise ValueError(f"the state of motion patterns has version {version[0]}, this program reads {STATE_VERSION}")
        points = 1 if index.clocks else 0
        numbers = range(points + len(index.groups))
        parts_of_group = [{name.partition(" ")[2]: column for name, column in arrays.items() if name.startswith(f"{n} ")} for n in numbers]
        done = int(arrays["done"][0]) if len(arrays["done"]) else None
        return MotionState(
            points=PointSeries.load(index, parts_of_group[0]) if points else None,
            planes=[PlaneSweep.load(index, group, part, done) for group, part in zip(index.groups, parts_of_group[points:], strict=True)],
            open=OpenMatches(MatchEvents._make(arrays[f"open {name}"] for name in MatchEvents._fields)),
            sent=MatchEvents._make(arrays[f"sent {name}"] for name in MatchEvents._fields),
            done=done,
            work=WorkCounters(*arrays["work"].tolist()),
        )

    def check(self, index: MotionIndex, state: MotionState) -> None:
        for structure in state.structures:
            structure.check(state.done)
        state.open.check()
        OpenMatches(state.sent).check()
        query, entity = state.held()
        ranked = np.isin(query, index.rankings)
        key = query << 32 | entity
        assert (key[~ranked] == state.open.keys).all()
        assert (key[ranked] == OpenMatches(state.sent).keys).all()

    def counters(self, index: MotionIndex, state: MotionState) -> Mapping[str, int]:
        kept = sum(structure.kept() for structure in state.structures)
        totals = {} if state.points is None else state.points.totals.counters()
        return {**vars(state.work), "index_points_kept": kept, "open_matches": len(state.open.began.query), **totals, "events_kept": kept}


class MotionOperator(Operator[MotionIndex]):
    """Family `motion` ([CMP]). The whole log is read for a new query: a match
    may have begun at any time."""

    families: ClassVar[tuple[str, ...]] = ("motion",)
    keyed = MotionStage()
    relational = RankingStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> MotionIndex:
        return compile_index(queries, feed)


def _evaluated(index: MotionIndex, state: MotionState, last: int, dictionary: EntityDictionary) -> MatchEvents:
    """All evaluation times up to `last`; events of each (query, entity) in order of time."""
    events = []
    rank = _rank(index, state, dictionary)
    for structure in state.structures:
        events.append(structure.advance(last, len(dictionary), rank))
        state.work.add(structure.work)
        structure.work = WorkCounters()
    state.done = last if state.done is None else max(state.done, last)
    return events[0] if len(events) == 1 else joined([none_of(index.widest), *events])


def _rank(index: MotionIndex, state: MotionState, dictionary: EntityDictionary) -> Ints:
    """The order of the entities by id, if a query needs it."""
    entities = len(dictionary)
    if index.names_matter and len(state.rank) < entities:
        order = pc.sort_indices(pa.array(dictionary.names[:entities], pa.string())).to_numpy()
        state.rank = np.empty(entities, np.int64)
        state.rank[order] = np.arange(entities)
    return state.rank


def _pairs(state: MotionState, width: int) -> MatchEvents:
    """The pairs (query, entity) that match, as events without content."""
    query, entity = state.held()
    nothing, no_witness = np.zeros(len(query), np.int64), np.full((len(query), width), -1, np.int64)
    nowhere = no_witness.astype(np.float64)
    return MatchEvents(query, entity, nothing, nothing, nothing.astype(np.float64), no_witness, no_witness, nowhere, nowhere)
