"""Composite events: one shared history of primitive events, searched where a trigger comes.

The keyed stage finds each event's classes and evaluates the queries that look at single entities; events that queries over all entities ask for go
on, once for each group of queries, to the relational stage, which evaluates those.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.complex_events import history as store
from engine.complex_events.cells import Cells
from engine.complex_events.detection import DONE, HEAP_FULL, POOL_FULL, TOO_MUCH_WORK, advance, note_all
from engine.complex_events.history import SHIFT, History, Stored
from engine.complex_events.plan import CompositeIndex, Program, compile_index, recompile_index
from engine.complex_events.search import FAR, MOST_OPERATIONS, NONE, Ints
from engine.complex_events.searching import (
    ACCESSED,
    CONDITIONS,
    COUNTERS,
    DETECTED,
    ENTRIES,
    EVALUATED,
    EVENTS,
    GIVEN_UP,
    GIVEN_UP_AT,
    LISTED,
    MOST_WAITING,
    NEXT,
    SEARCHED,
    STEPS,
    WORK,
    Events,
    Found,
    Scratch,
    begin,
    found,
    scratch,
)
from engine.complex_events.timers import WHO_SHIFT, Timers, timers
from engine.model.batch import ENTITY, SEQ, TIME, Batch, EntityDictionary, X, Y
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.operator import ROUTE, Operator, Output, QueryStopped, RegisteredQuery, Stage

INSTANCE = "instance"
_ROWS, _ITEMS, _TIMERS = 4_096, 32_768, 1_024
_LAYOUT = 3
"""Of the arrays in a snapshot: 3 keeps events once a class, and has counters of lists."""


@dataclass
class CompositeState:
    """State of one partition of a program.

    `since`, `since_seq`: the program's query i knows the events after this (t, seq). `reached`: (t, seq) of the last event given; all events and
    timers still to come are at or after `watermark`. `last`, `bits`: of the kept events, see `detection.Scratch`.
    """

    history: History
    timers: Timers
    since: Ints
    since_seq: Ints
    last: Ints
    bits: Ints
    reached: tuple[int, int] = (NONE, -1)
    watermark: int = NONE
    counters: Ints = field(default_factory=lambda: np.zeros(COUNTERS, np.int64))
    cells: Cells | None = None
    """Of the keyed stage, made when first needed: it holds nothing of the stream's."""
    work: Scratch | None = None
    """Made when first needed: room for the kernels, over the arrays above."""


def _initial(program: Program) -> CompositeState:
    n = len(program.keys)
    none = np.zeros(0, np.int64)
    return CompositeState(
        _kept(program, store.nothing(), 0, 0),
        timers(none, none, _TIMERS),
        np.full(n, NONE, np.int64),
        np.full(n, -1, np.int64),
        *recent(program, store.nothing()),
    )


def _kept(program: Program, events: Stored, more_slots: int, more_events: int) -> History:
    """A program's history: of the class alone, or of each entity."""
    return store.filled(events, 0 if program.per_entity else len(program.tables.horizon), more_slots, more_events)


def recent(program: Program, events: Stored) -> tuple[Ints, Ints]:
    """The last time of each class (and one that is always now) and the occurrence bitmaps, from the events that are kept."""
    tables = program.tables
    last = np.full(len(tables.horizon) + 1, NONE, np.int64)
    last[-1] = FAR
    bits = np.zeros((len(tables.bit_rows), 2), np.int64)
    bits[:, 1] = NONE
    note_all(tables, events.key, events.t, np.argsort(events.t, kind="stable"), last, bits)
    return last, bits


# -- a step -----------------------------------------------------------------------------------------------------------------------


def _detected(program: Program, state: CompositeState, events: Events, watermark: int, dictionary: EntityDictionary) -> pa.RecordBatch:
    """Changes after these events and the timers below `watermark`."""
    tables = program.tables
    most_items = int(np.diff(tables.leaf_ends).max(initial=1))
    asked = np.append(0, np.cumsum(np.diff(tables.trigger_ends)[events.instances]))
    most = int((asked[events.ends[1:]] - asked[events.ends[:-1]]).max(initial=1))
    out = found(max(_ROWS, most), max(_ITEMS, most * most_items, MOST_WAITING * most_items))
    if state.work is None:
        state.work = scratch(tables, state.since, state.since_seq, state.last, state.bits)
    work = state.work
    begin(work)
    asserted: list[pa.RecordBatch] = []
    while True:
        reason = advance(tables, state.history, state.timers, events, work, out, watermark, most_items, state.counters)
        if out.size[0]:
            asserted.append(_changes(program, out, dictionary))
            out.size[:] = 0
        if reason == DONE:
            return concat(asserted)
        if reason == POOL_FULL:
            at = int(work.cursor[NEXT])
            state.history = _renewed(program, state.history, int(events.t[at]), len(events.t) - at)
        elif reason == TOO_MUCH_WORK:
            query, at = int(work.cursor[GIVEN_UP]), int(work.cursor[GIVEN_UP_AT])
            raise QueryStopped(
                program.keys[query],
                Message("one search at t = {at} visits more than {most:,} nodes; shorten `within`", at=at, most=MOST_OPERATIONS),
            )
        elif reason == HEAP_FULL:
            n = int(state.timers.size[0])
            state.timers = timers(state.timers.due[:n], state.timers.who[:n], max(_TIMERS, most))


def _renewed(program: Program, old: History, now: int, events: int) -> History:
    """What is still needed, with room for some more events."""
    more = min(events, 10_000) * (1 + len(program.tables.horizon) // 100)
    return _kept(program, store.stored(old, program.tables.horizon, now), more, min(more, 100_000))


def _changes(program: Program, out: Found, dictionary: EntityDictionary) -> pa.RecordBatch:
    """Detections as answers: evidence in (t, arrival), events of one leaf after the other where they are the same."""
    n, items = int(out.size[0]), int(out.size[1])
    rows, events = out.rows[:n], out.events[:items]
    ends = np.append(0, rows[:, 4])
    owner = np.repeat(np.arange(n), np.diff(ends))
    order = np.lexsort((events[:, 2], events[:, 1], owner))
    names = program.name_of.take(pa.array(events[order, 0]))
    entity, x, y = store.columns_of(events[order, 3:])
    evidence = Evidence(ends, entity, events[order, 1], x, y, events[order, 2], names)
    return changes(
        dictionary,
        query=program.position_of[rows[:, 0]],
        kind=pa.array(["detection"]).take(pa.array(np.zeros(n, np.int64))),
        entities=rows[:, 1] if program.per_entity else np.zeros(0, np.int64),
        entity_offsets=None if program.per_entity else np.zeros(n + 1, np.int64),
        start=rows[:, 2],
        end=rows[:, 3].copy(),
        evidence=evidence,
    )


def _reached(state: CompositeState, batch: Batch, watermark: int) -> None:
    state.watermark = watermark
    if len(batch):
        state.reached = max(state.reached, (int(batch.t[-1]), int(batch.seq[-1])))


def _expanded(ends: Ints, items: Ints, positions: Ints) -> tuple[Ints, Ints]:
    """For each position its items: the index of the position, and the item."""
    starts, lengths = ends[positions], ends[positions + 1] - ends[positions]
    owner = np.repeat(np.arange(len(positions)), lengths)
    offsets = np.cumsum(lengths) - lengths
    return owner, items[np.repeat(starts - offsets, lengths) + np.arange(len(owner))]


def _events(batch: Batch, owner: Ints, instances: Ints) -> Events:
    """Rows that have instances (owner: their row, ascending) as events."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    rows = owner[starts]
    return Events(
        batch.t[rows], batch.seq[rows], batch.entity[rows], batch.x[rows], batch.y[rows], np.append(starts, len(owner)).astype(np.int64), instances
    )  # fmt: skip


# -- stages -----------------------------------------------------------------------------------------------------------------------


class _Searching(Stage[CompositeIndex, CompositeState]):
    """What both stages share: a program, its history and timers."""

    @abstractmethod
    def program(self, index: CompositeIndex) -> Program:
        """What this stage looks for."""

    def initial(self, index: CompositeIndex) -> CompositeState:
        return _initial(self.program(index))

    def migrate(self, index: CompositeIndex, parts: Sequence[tuple[CompositeIndex, CompositeState]]) -> CompositeState:
        program = self.program(index)
        state = _initial(program)
        state.reached = max((part.reached for _, part in parts), default=state.reached)
        state.watermark = max((part.watermark for _, part in parts), default=NONE)
        state.since[:], state.since_seq[:] = state.reached
        numbers = {one: number for number, one in enumerate(index.classes) if program.tables.horizon[number] >= 0}
        queries = {key: number for number, key in enumerate(program.keys)}
        pieces, due, who = [store.nothing()], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for old_index, part in parts:
            old = self.program(old_index)
            state.counters += part.counters
            moved = np.array([numbers.get(one, -1) for one in old_index.classes], np.int64)
            pieces.append(_renumbered(store.stored(part.history, old.tables.horizon, state.watermark), moved))
            # A query's own state comes from the first part that knows it.
            taken = np.array([queries.pop(key, -1) for key in old.keys], np.int64)
            own = np.flatnonzero(taken >= 0)
            state.since[taken[own]], state.since_seq[taken[own]] = part.since[own], part.since_seq[own]
            n = int(part.timers.size[0])
            query = taken[part.timers.who[:n] >> WHO_SHIFT] if n else np.zeros(0, np.int64)
            kept = np.flatnonzero(query >= 0)
            due.append(part.timers.due[kept])
            who.append(query[kept] << WHO_SHIFT | part.timers.who[kept] & ((1 << WHO_SHIFT) - 1))
        events = store.merged(pieces)
        state.history, state.last, state.bits = _kept(program, events, 0, 0), *recent(program, events)
        state.timers = timers(np.concatenate(due), np.concatenate(who), _TIMERS)
        return state

    def dump(self, index: CompositeIndex, state: CompositeState) -> bytes:
        n = int(state.timers.size[0])
        columns: dict[str, npt.NDArray[Any]] = {
            **store.arrays(store.stored(state.history, self.program(index).tables.horizon, state.watermark)),
            "due": state.timers.due[:n],
            "who": state.timers.who[:n],
            "since": state.since,
            "since_seq": state.since_seq,
            "reached": np.array([*state.reached, state.watermark], np.int64),
            "counters": state.counters,
            "layout": np.array([_LAYOUT]),
        }
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, **columns)
            return file.getvalue()

    def load(self, index: CompositeIndex, data: bytes) -> CompositeState:
        with np.load(io.BytesIO(data), allow_pickle=False) as columns:
            if "layout" not in columns or columns["layout"][0] != _LAYOUT:
                raise ValueError("the state of composite patterns was written by another version of the program")
            t, seq, watermark = columns["reached"].tolist()
            kept = store.from_arrays(columns)
            return CompositeState(
                _kept(self.program(index), kept, 0, 0), timers(columns["due"], columns["who"], _TIMERS), columns["since"], columns["since_seq"],
                *recent(self.program(index), kept), (t, seq), watermark, columns["counters"],
            )  # fmt: skip

    def check(self, index: CompositeIndex, state: CompositeState) -> None:
        program = self.program(index)
        assert len(state.since) == len(state.since_seq) == len(program.keys)
        store.check(state.history)
        n = int(state.timers.size[0])
        due = state.timers.due[:n]
        assert (due[(np.arange(1, n) - 1) // 2] <= due[1:]).all()
        assert ((state.timers.who[:n] >> WHO_SHIFT) < len(program.keys)).all()
        assert ((state.history.keys[: state.history.used[0]] >> SHIFT) < len(index.classes)).all()

    def counters(self, index: CompositeIndex, state: CompositeState) -> Mapping[str, int]:
        kept = store.stored(state.history, self.program(index).tables.horizon, state.watermark)
        return {
            "accessed_queries": int(state.counters[ACCESSED]),
            "listed_queries": int(state.counters[LISTED]),
            "searched_queries": int(state.counters[SEARCHED]),
            "evaluated_triggers": int(state.counters[EVALUATED]),
            "word_operations": int(state.counters[STEPS]),
            "operations": int(state.counters[WORK] + state.counters[ENTRIES]),
            "minimum_condition_checks": int(state.counters[CONDITIONS]),
            "detections": int(state.counters[DETECTED]),
            "primitive_events": int(state.counters[EVENTS]),
            "timers_kept": int(state.timers.size[0]),
            "events_kept": len(kept.t),
        }


def _renumbered(events: Stored, moved: Ints) -> Stored:
    """Events under the classes `moved[old]`; those of classes that are gone (-1) are dropped."""
    kind = moved[events.key >> SHIFT] if len(moved) else np.zeros(0, np.int64)
    kept = np.flatnonzero(kind >= 0)
    key = kind[kept] << SHIFT | events.key[kept] & ((1 << SHIFT) - 1)
    return Stored(key, events.t[kept], events.seq[kept], events.entity[kept], events.x[kept], events.y[kept])


class EntityStage(_Searching):
    """The keyed stage: classes of events, queries that look at single entities."""

    def program(self, index: CompositeIndex) -> Program:
        return index.keyed

    def step(self, index: CompositeIndex, state: CompositeState, batch: Batch, watermark: int) -> Output[CompositeState]:
        if state.cells is None:
            state.cells = Cells(index.classes)
        ends, classes = state.cells.of(batch)
        row = np.repeat(np.arange(len(batch)), np.diff(ends))
        owner, instances = _expanded(index.keyed_ends, index.keyed_instances, classes)
        asserted = concat([])
        if index.keyed.keys:
            asserted = _detected(index.keyed, state, _events(batch, row[owner], instances), watermark, batch.entities)
        _reached(state, batch, watermark)
        return Output(state, asserted, _emitted(index, batch, row, classes))


def _emitted(index: CompositeIndex, batch: Batch, row: Ints, classes: Ints) -> pa.RecordBatch | None:
    """Events for the relational stage: once for each of its instances."""
    owner, instances = _expanded(index.relational_ends, index.relational_instances, classes)
    if not len(instances):
        return None
    at = pa.array(row[owner])
    columns = {
        TIME: batch.rows.column(TIME).take(at),
        SEQ: batch.rows.column(SEQ).take(at),
        ROUTE: pa.array(index.relational.group_of[instances]),
        INSTANCE: pa.array(instances),
        ENTITY: batch.rows.column(ENTITY).take(at),
        X: batch.column(X).cast(pa.float64()).take(at),
        Y: batch.column(Y).cast(pa.float64()).take(at),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def events_of_rows(batch: Batch) -> Events:
    """The events of rows that the keyed stage emitted: an event's rows, one for each of its instances, stand together; the first stands for it."""
    instances = np.array(batch.rows.column(INSTANCE)) if len(batch) else np.zeros(0, np.int64)
    fresh = np.append(True, batch.seq[1:] != batch.seq[:-1]) if len(batch) else np.zeros(0, np.bool_)
    owner = np.flatnonzero(fresh)[np.cumsum(fresh) - 1] if len(batch) else np.zeros(0, np.int64)
    return _events(batch, owner, instances)


class SharedStage(_Searching):
    """The relational stage: queries over all entities."""

    def program(self, index: CompositeIndex) -> Program:
        return index.relational

    def step(self, index: CompositeIndex, state: CompositeState, batch: Batch, watermark: int) -> Output[CompositeState]:
        if not index.relational.keys:
            return Output(state)
        asserted = _detected(index.relational, state, events_of_rows(batch), watermark, batch.entities)
        _reached(state, batch, watermark)
        return Output(state, asserted)


class CompositeOperator(Operator[CompositeIndex]):
    """Family `composite` ([RFID])."""

    families: ClassVar[tuple[str, ...]] = ("composite",)
    keyed = EntityStage()
    relational = SharedStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
        return compile_index(queries, feed)

    def recompile(self, old: CompositeIndex, queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
        return recompile_index(old, queries)

    def horizon(self, query: RegisteredQuery) -> int | None:
        """No occurrence that is completed later holds or excludes anything older, and no timer waits longer."""
        span: int = query.specification.kept
        return span
