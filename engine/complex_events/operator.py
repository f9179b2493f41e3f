"""Composite events: a shared history of primitive events, searched when a trigger comes.

There are two programs: that of the queries over single entities, which is evaluated by partitions
of the entities, and that of the queries over all entities.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.complex_events import history as store
from engine.complex_events.cells import Cells
from engine.complex_events.classes import Class
from engine.complex_events.detection import DONE, HEAP_FULL, POOL_FULL, TOO_MUCH_WORK, advance
from engine.complex_events.history import SHIFT, History, StoredEvents
from engine.complex_events.plan import CompositeIndex, Program, compile_index, recompile_index
from engine.complex_events.query_search import (
    ACCESSED,
    CONDITIONS,
    COUNTERS,
    DETECTED,
    ENTRIES,
    EVENTS,
    GIVEN_UP,
    GIVEN_UP_AT,
    LISTED,
    MOST_WAITING,
    NEXT,
    SEARCHED,
    WORK,
    Detections,
    InstanceEvents,
    SearchBuffers,
    found,
    reset,
    scratch,
)
from engine.complex_events.search import FAR, MOST_OPERATIONS, NONE, Ints
from engine.complex_events.timers import QUERY_SHIFT, Timers, timers
from engine.model.batch import Batch, EntityDictionary
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.operator import Operator, Output, QueryStopped, RegisteredQuery, Stage

_ROWS, _ITEMS, _TIMERS = 4_096, 32_768, 1_024
_LAYOUT = 5
"""Version of the arrays in a snapshot."""


@dataclass
class CompositeState:
    """State of one program.

    `since`, `since_seq`: the program's query i reads the events after this (t, seq). `reached`: (t,
    seq) of the last event processed; all later events and timers are at or after `watermark`.
    `last`: that of the stored events, see `query_search.Scratch`.
    """

    history: History
    timers: Timers
    since: Ints
    since_seq: Ints
    last: Ints
    reached: tuple[int, int] = (NONE, -1)
    watermark: int = NONE
    counters: Ints = field(default_factory=lambda: np.zeros(COUNTERS, np.int64))
    work: SearchBuffers | None = None
    """Created on demand: working memory of the kernels, over the arrays above."""


def _initial(program: Program) -> CompositeState:
    n = len(program.keys)
    none = np.zeros(0, np.int64)
    return CompositeState(
        _build_history(program, store.no_events(), 0, 0),
        timers(none, none, _TIMERS),
        np.full(n, NONE, np.int64),
        np.full(n, -1, np.int64),
        recent(program, store.no_events()),
    )


def _build_history(program: Program, events: StoredEvents, more_slots: int, more_events: int) -> History:
    """A program's history: with slots by class, or by class and entity."""
    return store.build_history(events, 0 if program.per_entity else len(program.tables.horizon), more_slots, more_events)


def recent(program: Program, events: StoredEvents) -> Ints:
    """The last time of each class (and one that is always now), from the stored events."""
    last = np.full(len(program.tables.horizon) + 1, NONE, np.int64)
    last[-1] = FAR
    np.maximum.at(last, events.key >> SHIFT, events.t)
    return last


# -- a step ----------------------------------------------------------------------------------------


def _detect(program: Program, state: CompositeState, events: InstanceEvents, watermark: int, dictionary: EntityDictionary, feed: Feed) -> pa.Table:
    """Changes after these events and the timers below `watermark`."""
    tables = program.tables
    most_items = int(np.diff(tables.leaf_ends).max(initial=1))
    asked = np.append(0, np.cumsum(np.diff(tables.trigger_ends)[events.instances]))
    most = int((asked[events.ends[1:]] - asked[events.ends[:-1]]).max(initial=1))
    out = found(max(_ROWS, most), max(_ITEMS, most * most_items, MOST_WAITING * most_items))
    if state.work is None:
        state.work = scratch(tables, state.since, state.since_seq, state.last)
    work = state.work
    reset(work)
    asserted: list[pa.Table] = []
    while True:
        reason = advance(tables, state.history, state.timers, events, work, out, watermark, most_items, state.counters)
        if out.size[0]:
            asserted.append(_changes(program, out, dictionary))
            out.size[:] = 0
        if reason == DONE:
            return concat(asserted)
        if reason == POOL_FULL:
            at = int(work.cursor[NEXT])
            state.history = _rebuilt_history(program, state.history, int(events.t[at]), len(events.t) - at)
        elif reason == TOO_MUCH_WORK:
            query, at = int(work.cursor[GIVEN_UP]), int(work.cursor[GIVEN_UP_AT])
            raise QueryStopped(
                program.keys[query],
                Message("one search at t = {time} visits more than {most:,} nodes; shorten `within`", time=feed.moment(at), most=MOST_OPERATIONS),
            )
        elif reason == HEAP_FULL:
            n = int(state.timers.size[0])
            state.timers = timers(state.timers.due[:n], state.timers.key[:n], max(_TIMERS, most))


def _rebuilt_history(program: Program, old: History, now: int, events: int) -> History:
    """The history with only the events still needed, and room for some more."""
    more = min(events, 10_000) * (1 + len(program.tables.horizon) // 100)
    return _build_history(program, store.stored(old, program.tables.horizon, now), more, min(more, 100_000))


def _changes(program: Program, out: Detections, dictionary: EntityDictionary) -> pa.Table:
    """Detections as changes: evidence in (t, arrival), and by leaf if one
    event is at several leaves."""
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


def _expand(ends: Ints, items: Ints, positions: Ints) -> tuple[Ints, Ints]:
    """For each position its items: the index of the position, and the item."""
    starts, lengths = ends[positions], ends[positions + 1] - ends[positions]
    owner = np.repeat(np.arange(len(positions)), lengths)
    offsets = np.cumsum(lengths) - lengths
    return owner, items[np.repeat(starts - offsets, lengths) + np.arange(len(owner))]


def events_of(index: CompositeIndex, cells: Cells, batch: Batch) -> tuple[InstanceEvents, ...]:
    """The rows as events of each of CompositeIndex.programs."""
    ends, classes = cells.classes_of_rows(batch)
    row = np.repeat(np.arange(len(batch)), np.diff(ends))
    found = [_expand(*instances, classes) for instances in index.instances]
    return tuple(_events(batch, row[owner], instances) for owner, instances in found)


def _events(batch: Batch, owner: Ints, instances: Ints) -> InstanceEvents:
    """Rows that have instances (owner: their row, ascending) as events."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    rows = owner[starts]
    return InstanceEvents(
        batch.t[rows], batch.seq[rows], batch.entity[rows], batch.x[rows], batch.y[rows], np.append(starts, len(owner)).astype(np.int64), instances
    )  # fmt: skip


# -- the stage -------------------------------------------------------------------------------------


@dataclass
class CompositeStates:
    """The state of each of CompositeIndex.programs."""

    programs: tuple[CompositeState, ...]
    cells: Cells | None = None
    """Created on demand: a cache, not state of the stream."""


class DetectionStage(Stage[CompositeIndex, CompositeStates]):
    """Finds each event's classes, and the occurrences that it completes in both programs."""

    def initial(self, index: CompositeIndex) -> CompositeStates:
        return CompositeStates(tuple(map(_initial, index.programs)))

    def step(self, index: CompositeIndex, state: CompositeStates, batch: Batch, watermark: int) -> Output[CompositeStates]:
        if state.cells is None:
            state.cells = Cells(index.classes)
        asserted = []
        for program, events, own in zip(index.programs, events_of(index, state.cells, batch), state.programs, strict=True):
            if program.keys:
                asserted.append(_detect(program, own, events, watermark, batch.entities, index.feed))
            own.watermark = watermark
            if len(batch):
                own.reached = max(own.reached, (int(batch.t[-1]), int(batch.seq[-1])))
        return Output(state, concat(asserted))

    def migrate(self, index: CompositeIndex, parts: Sequence[tuple[CompositeIndex, CompositeStates]]) -> CompositeStates:
        return CompositeStates(
            tuple(
                _migrate(program, index.classes, [(old.programs[k], old.classes, part.programs[k]) for old, part in parts])
                for k, program in enumerate(index.programs)
            )
        )

    def dump(self, index: CompositeIndex, state: CompositeStates) -> bytes:
        columns = {"layout": np.array([_LAYOUT])}
        for k, (program, own) in enumerate(zip(index.programs, state.programs, strict=True)):
            columns |= {f"{k} {name}": column for name, column in _columns(program, own).items()}
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, **columns)
            return file.getvalue()

    def load(self, index: CompositeIndex, data: bytes) -> CompositeStates:
        with np.load(io.BytesIO(data), allow_pickle=False) as columns:
            if "layout" not in columns or columns["layout"][0] != _LAYOUT:
                raise ValueError("the state of composite patterns was written by another version of the program")
            named = [{name[2:]: columns[name] for name in columns.files if name.startswith(f"{k} ")} for k in range(len(index.programs))]
        return CompositeStates(tuple(map(_load, index.programs, named)))

    def check(self, index: CompositeIndex, state: CompositeStates) -> None:
        for program, own in zip(index.programs, state.programs, strict=True):
            _check(program, len(index.classes), own)

    def counters(self, index: CompositeIndex, state: CompositeStates) -> Mapping[str, int]:
        found = Counter[str]()
        for program, own in zip(index.programs, state.programs, strict=True):
            found.update(_counters(program, own))
        return found


def _migrate(program: Program, classes: Sequence[Class], parts: Sequence[tuple[Program, Sequence[Class], CompositeState]]) -> CompositeState:
    state = _initial(program)
    state.reached = max((part.reached for _, _, part in parts), default=state.reached)
    state.watermark = max((part.watermark for _, _, part in parts), default=NONE)
    state.since[:], state.since_seq[:] = state.reached
    numbers = {one: number for number, one in enumerate(classes) if program.tables.horizon[number] >= 0}
    queries = {key: number for number, key in enumerate(program.keys)}
    pieces, due, keys = [store.no_events()], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for old, old_classes, part in parts:
        state.counters += part.counters
        moved = np.array([numbers.get(one, -1) for one in old_classes], np.int64)
        pieces.append(_renumber(store.stored(part.history, old.tables.horizon, state.watermark), moved))
        # A query's own state comes from the first part that has it.
        taken = np.array([queries.pop(key, -1) for key in old.keys], np.int64)
        own = np.flatnonzero(taken >= 0)
        state.since[taken[own]], state.since_seq[taken[own]] = part.since[own], part.since_seq[own]
        n = int(part.timers.size[0])
        query = taken[part.timers.key[:n] >> QUERY_SHIFT] if n else np.zeros(0, np.int64)
        kept = np.flatnonzero(query >= 0)
        due.append(part.timers.due[kept])
        keys.append(query[kept] << QUERY_SHIFT | part.timers.key[kept] & ((1 << QUERY_SHIFT) - 1))
    events = store.merge(pieces)
    state.history, state.last = _build_history(program, events, 0, 0), recent(program, events)
    state.timers = timers(np.concatenate(due), np.concatenate(keys), _TIMERS)
    return state


def _columns(program: Program, state: CompositeState) -> dict[str, npt.NDArray[Any]]:
    n = int(state.timers.size[0])
    return {
        **store.arrays(store.stored(state.history, program.tables.horizon, state.watermark)),
        "due": state.timers.due[:n],
        "who": state.timers.key[:n],
        "since": state.since,
        "since_seq": state.since_seq,
        "reached": np.array([*state.reached, state.watermark], np.int64),
        "counters": state.counters,
    }


def _load(program: Program, columns: Mapping[str, npt.NDArray[Any]]) -> CompositeState:
    t, seq, watermark = columns["reached"].tolist()
    kept = store.from_arrays(columns)
    return CompositeState(
        _build_history(program, kept, 0, 0), timers(columns["due"], columns["who"], _TIMERS), columns["since"], columns["since_seq"],
        recent(program, kept), (t, seq), watermark, columns["counters"],
    )  # fmt: skip


def _check(program: Program, classes: int, state: CompositeState) -> None:
    assert len(state.since) == len(state.since_seq) == len(program.keys)
    store.check(state.history)
    n = int(state.timers.size[0])
    due = state.timers.due[:n]
    assert (due[(np.arange(1, n) - 1) // 2] <= due[1:]).all()
    assert ((state.timers.key[:n] >> QUERY_SHIFT) < len(program.keys)).all()
    assert ((state.history.keys[: state.history.used[0]] >> SHIFT) < classes).all()


def _counters(program: Program, state: CompositeState) -> dict[str, int]:
    kept = store.stored(state.history, program.tables.horizon, state.watermark)
    return {
        "accessed_queries": int(state.counters[ACCESSED]),
        "listed_queries": int(state.counters[LISTED]),
        "searched_queries": int(state.counters[SEARCHED]),
        "operations": int(state.counters[WORK] + state.counters[ENTRIES]),
        "minimum_condition_checks": int(state.counters[CONDITIONS]),
        "detections": int(state.counters[DETECTED]),
        "primitive_events": int(state.counters[EVENTS]),
        "timers_kept": int(state.timers.size[0]),
        "events_kept": len(kept.t),
    }


def _renumber(events: StoredEvents, moved: Ints) -> StoredEvents:
    """Events with the classes `moved[old]`; those of removed classes (-1) are dropped."""
    kind = moved[events.key >> SHIFT] if len(moved) else np.zeros(0, np.int64)
    kept = np.flatnonzero(kind >= 0)
    key = kind[kept] << SHIFT | events.key[kept] & ((1 << SHIFT) - 1)
    return StoredEvents(key, events.t[kept], events.seq[kept], events.entity[kept], events.x[kept], events.y[kept])


class CompositeOperator(Operator[CompositeIndex]):
    """Family `composite` ([RFID])."""

    families: ClassVar[tuple[str, ...]] = ("composite",)
    keyed = DetectionStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
        return compile_index(queries, feed)

    def recompile(self, old: CompositeIndex, queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
        return recompile_index(old, queries)

    def is_broadcast(self, query: RegisteredQuery) -> bool:
        return not query.specification.per_entity

    def horizon(self, query: RegisteredQuery) -> int | None:
        """The age from which on an event neither is in, nor rules out, a later
        occurrence; no timer waits longer."""
        span: int = query.specification.retention
        return span
