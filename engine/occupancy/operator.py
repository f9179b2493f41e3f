"""How many entities are in a region: the keyed stage tracks who is inside, the relational stage
counts for each query. Both keep each query's state separately, by its position in the index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.arrays import pack_arrays, unpack_arrays
from engine.model.batch import SEQ, TIME, Batch, EntityDictionary, X, Y
from engine.model.changes import Evidence, changes
from engine.model.feed import Feed
from engine.occupancy.kernels import FOR_EVER, NOT_YET, Ints, LastTuples, compared, counted
from engine.occupancy.specification import AT_LEAST, OccupancySpecification
from engine.operator import ROUTE, Operator, Output, RegisteredQuery, Stage, states_by_query

MOST_EVIDENCE = 20
"""Tuples that are shown for the beginning of an interval."""
_OCCUPIED = pa.scalar("occupied")
Facts = list[tuple[int, "CountInterval", int | None, int]]
"""(query, interval, end, weight)."""


@dataclass(frozen=True)
class OccupancyIndex:
    """The queries and their routes."""

    queries: tuple[RegisteredQuery, ...]
    routes: Ints

    @property
    def specifications(self) -> Iterator[OccupancySpecification]:
        return (query.specification for query in self.queries)


@dataclass
class InsideEntities:
    """State of one query: the last tuples of a partition's entities. `begun`: the relational stage
    knows that rows have arrived."""

    last: LastTuples
    begun: bool = False

    @classmethod
    def empty(cls) -> InsideEntities:
        return cls(_last(0))

    def reserve(self, entities: int) -> None:
        """Makes room for this many entities."""
        if entities > len(self.last.t):
            wider = _last(max(entities, 2 * len(self.last.t)))
            for new, old in zip(wider, self.last, strict=True):
                new[: len(old)] = old
            self.last = wider


def _last(room: int) -> LastTuples:
    return LastTuples(np.zeros(room, np.int64), np.full(room, -1, np.int64), np.zeros(room), np.zeros(room), np.zeros(room, np.bool_))


@dataclass
class InsideState:
    """By query, who is inside; and the tuples that were taken."""

    queries: list[InsideEntities]
    tuples: int = 0


class InsideStage(Stage[OccupancyIndex, InsideState]):
    """The keyed stage: an entity's tuples in; changes of the count out."""

    def initial(self, index: OccupancyIndex) -> InsideState:
        return InsideState([InsideEntities.empty() for _ in index.queries])

    def step(self, index: OccupancyIndex, state: InsideState, batch: Batch, watermark: int) -> Output[InsideState]:
        tests: dict[Any, npt.NDArray[np.bool_]] = {}
        emitted = []
        for q, specification in enumerate(index.specifications):
            counted_state = state.queries[q]
            rows = _tuples(specification, batch)
            inside = _test(specification, batch, tests)[rows]
            counted_state.reserve(int(batch.entity.max(initial=-1)) + 1)
            stale = FOR_EVER if specification.stale is None else specification.stale
            counts = counted(
                batch.entity[rows], batch.t[rows], batch.seq[rows], batch.x[rows], batch.y[rows], inside, counted_state.last, stale, watermark
            )
            if len(batch) and not counted_state.begun:
                counted_state.begun = True
                emitted.append(_rows(q, index.routes[q], batch.entities, _first(batch)))
            if len(counts[0]):
                emitted.append(_rows(q, index.routes[q], batch.entities, counts))
            state.tuples += len(rows)
        return Output(state, emitted=pa.concat_batches(emitted) if emitted else None)

    def migrate(self, index: OccupancyIndex, parts: Sequence[tuple[OccupancyIndex, InsideState]]) -> InsideState:
        known = states_by_query((old.queries, state.queries) for old, state in parts)
        queries = [known.get(query.key) or InsideEntities.empty() for query in index.queries]
        return InsideState(queries, sum(state.tuples for _, state in parts))

    def dump(self, index: OccupancyIndex, state: InsideState) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {"tuples": np.array([state.tuples]), "begun": np.array([one.begun for one in state.queries], np.bool_)}
        for q, counted_state in enumerate(state.queries):
            arrays |= {f"{q} {name}": column for name, column in counted_state.last._asdict().items()}
        return pack_arrays(arrays)

    def load(self, index: OccupancyIndex, data: bytes) -> InsideState:
        arrays = unpack_arrays(data)
        lasts = [LastTuples(*(arrays[f"{q} {name}"] for name in LastTuples._fields)) for q in range(len(index.queries))]
        return InsideState([InsideEntities(last, bool(begun)) for last, begun in zip(lasts, arrays["begun"], strict=True)], int(arrays["tuples"][0]))

    def check(self, index: OccupancyIndex, state: InsideState) -> None:
        assert len(state.queries) == len(index.queries)
        assert all((one.last.seq[one.last.inside] >= 0).all() for one in state.queries)

    def counters(self, index: OccupancyIndex, state: InsideState) -> Mapping[str, int]:
        kept = sum(int((one.last.seq >= 0).sum()) for one in state.queries)
        return {"tuples_tested": state.tuples, "events_kept": kept, "entities_inside": sum(int(one.last.inside.sum()) for one in state.queries)}


def _tuples(specification: OccupancySpecification, batch: Batch) -> Ints:
    """The rows that are tuples of the query."""
    needed = [batch.numbers(column) for column, _, _ in specification.ranges] if specification.ranges else [batch.x, batch.y]
    mask = specification.where.mask(batch)
    for values in needed:
        mask &= ~np.isnan(values)
    return np.flatnonzero(mask)


def _test(specification: OccupancySpecification, batch: Batch, tests: dict[Any, npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
    """Which rows are inside; `tests` caches results of other queries on the batch."""
    watched = specification.region or specification.ranges
    if watched not in tests:
        if specification.region is not None:
            tests[watched] = _contained(specification, batch)
        else:
            tests[watched] = np.ones(len(batch), np.bool_)
            for column, low, high in specification.ranges:
                tests[watched] &= _in_range(batch, column, low, high)
    return tests[watched]


def _contained(specification: OccupancySpecification, batch: Batch) -> npt.NDArray[np.bool_]:
    assert specification.region is not None
    west, south, east, north = specification.region.bounds
    near = np.flatnonzero((batch.x >= west) & (batch.x <= east) & (batch.y >= south) & (batch.y <= north))
    inside = np.zeros(len(batch), np.bool_)
    inside[near] = specification.region.contains(batch.x[near], batch.y[near])
    return inside


def _in_range(batch: Batch, column: str, low: float | None, high: float | None) -> npt.NDArray[np.bool_]:
    from engine.model.conditions import Condition

    bounds = ([] if low is None else [Condition(column, ">=", low)]) + ([] if high is None else [Condition(column, "<", high)])
    inside = np.ones(len(batch), np.bool_)
    for bound in bounds:
        inside &= bound.mask(batch)
    return inside


def _first(batch: Batch) -> tuple[Any, ...]:
    """A change by nothing at the first row: from there on there are instants."""
    nowhere = np.full(1, np.nan)
    return np.full(1, -1, np.int32), batch.t[:1], np.zeros(1, np.int8), batch.t[:1], np.full(1, -1, np.int64), nowhere, nowhere


def _rows(query: int, route: int, dictionary: EntityDictionary, found: tuple[Any, ...]) -> pa.RecordBatch:
    """Changes of a query's count as rows for the relational stage."""
    entity, t, change, own, seq, x, y = found
    columns = {
        TIME: pa.array(t, pa.int64()),
        SEQ: pa.array(seq, pa.int64()),
        ROUTE: pa.array(np.full(len(t), route), pa.int64()),
        "query": pa.array(np.full(len(t), query), pa.int32()),
        "entity": dictionary.decode(entity),
        X: pa.array(x),
        Y: pa.array(y),
        "change": pa.array(change, pa.int8()),
        "own": pa.array(own, pa.int64()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


@dataclass
class CountInterval:
    """One that holds or held: its start, the extreme count in it, and the tuples that began
    it: (entity, t, seq, x, y)."""

    start: int
    extreme: int
    began: list[tuple[int, int, int, float, float]]


@dataclass
class CountState:
    """Of one query, the count at the last decided instant.

    `waiting` (of _TYPES; `own`, `seq`, `x`, `y` are those of the tuple) are changes at
    instants that more rows may still change. `open` holds now (null: none); `sent`: the
    part of it that was asserted.
    """

    count: int = 0
    open: CountInterval | None = None
    sent: CountInterval | None = None
    waiting: Columns = field(default_factory=lambda: _columns([]))


Columns = dict[str, npt.NDArray[Any]]
_TYPES = {"t": np.int64, "change": np.int8, "entity": np.int32, "own": np.int64, "seq": np.int64, "x": np.float64, "y": np.float64}


def _columns(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([np.empty(0, kind), *(part[name] for part in parts)]).astype(kind) for name, kind in _TYPES.items()}


def _taken(columns: Columns, rows: Any) -> Columns:
    return {name: column[rows] for name, column in columns.items()}


class CountStage(Stage[OccupancyIndex, list[CountState]]):
    """The relational stage: changes of the count in, intervals out."""

    def initial(self, index: OccupancyIndex) -> list[CountState]:
        return [CountState() for _ in index.queries]

    def step(self, index: OccupancyIndex, state: list[CountState], batch: Batch, watermark: int) -> Output[list[CountState]]:
        given = _given(batch, len(index.queries))
        facts: Facts = []
        for q, specification in enumerate(index.specifications):
            if len(given[q]["t"]) or len(state[q].waiting["t"]) or state[q].open is not None:
                facts += _advanced(q, specification, state[q], given[q], watermark - 1)
        return Output(state, _changes(facts, batch.entities)) if facts else Output(state)

    def migrate(self, index: OccupancyIndex, parts: Sequence[tuple[OccupancyIndex, list[CountState]]]) -> list[CountState]:
        known = states_by_query((old.queries, state) for old, state in parts)
        return [known.get(query.key) or CountState() for query in index.queries]

    def dump(self, index: OccupancyIndex, state: list[CountState]) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {"count": np.array([one.count for one in state], np.int64)}
        for q, one in enumerate(state):
            arrays |= {f"{q} waiting {name}": column for name, column in one.waiting.items()}
            for name, interval in (("open", one.open), ("sent", one.sent)):
                if interval is not None:
                    arrays[f"{q} {name}"] = np.array([interval.start, interval.extreme])
                    arrays[f"{q} {name} codes"] = np.array([item[:3] for item in interval.began], np.int64).reshape(-1, 3)
                    arrays[f"{q} {name} places"] = np.array([item[3:] for item in interval.began], np.float64).reshape(-1, 2)
        return pack_arrays(arrays)

    def load(self, index: OccupancyIndex, data: bytes) -> list[CountState]:
        arrays = unpack_arrays(data)
        state = []
        for q, count in enumerate(arrays["count"].tolist()):
            waiting = {name: arrays[f"{q} waiting {name}"] for name in _TYPES}
            state.append(CountState(count, _interval(arrays, f"{q} open"), _interval(arrays, f"{q} sent"), waiting))
        return state

    def check(self, index: OccupancyIndex, state: list[CountState]) -> None:
        assert len(state) == len(index.queries)
        assert all(one.count >= 0 for one in state)
        assert all(one.open is not None and one.open.start == one.sent.start for one in state if one.sent is not None)

    def counters(self, index: OccupancyIndex, state: list[CountState]) -> Mapping[str, int]:
        return {"intervals_open": sum(one.open is not None for one in state)}


def _interval(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> CountInterval | None:
    if name not in arrays:
        return None
    start, extreme = arrays[name].tolist()
    began = [(*codes, *places) for codes, places in zip(arrays[f"{name} codes"].tolist(), arrays[f"{name} places"].tolist(), strict=True)]
    return CountInterval(start, extreme, began)


def _given(batch: Batch, queries: int) -> list[Columns]:
    """The rows of each query."""
    if not len(batch):
        return [_columns([])] * queries
    columns = {
        "t": batch.t,
        "change": batch.rows.column("change").to_numpy(zero_copy_only=False),
        "entity": batch.entity,
        "own": batch.rows.column("own").to_numpy(zero_copy_only=False),
        "seq": batch.seq,
        "x": batch.x,
        "y": batch.y,
    }
    query = batch.rows.column("query").to_numpy(zero_copy_only=False)
    order = np.argsort(query, kind="stable")
    starts = np.searchsorted(query[order], np.arange(queries + 1))
    return [_taken(columns, order[low:high]) for low, high in pairwise(starts.tolist())]


def _advanced(q: int, specification: OccupancySpecification, state: CountState, columns: Columns, now: int) -> Facts:
    """The query's changes when all instants up to `now` are decided."""
    rows = _columns([state.waiting, columns])
    decided = rows["t"] <= now
    state.waiting, rows = _taken(rows, ~decided), _taken(rows, decided)
    order = np.argsort(rows["t"], kind="stable")
    rows = _taken(rows, order)
    at_least = specification.op == AT_LEAST
    before = state.open
    started, extreme = (NOT_YET, 0) if before is None else (before.start, before.extreme)
    starts, ends, extremes, state.count, start, extreme = compared(
        rows["t"], rows["change"], now, at_least, specification.n, state.count, started, extreme
    )
    facts: Facts = []

    def interval(start: int, extreme: int) -> CountInterval:
        began = before.began if before is not None and before.start == start else _began(rows, start, at_least)
        return CountInterval(start, extreme, began)

    sent = state.sent
    for a, b, c in zip(starts.tolist(), ends.tolist(), extremes.tolist(), strict=True):
        if sent is not None:
            facts.append((q, sent, None, -1))
            sent = None
        if b - a >= specification.lasting:
            facts.append((q, interval(a, c), b, 1))
    state.open = None if start == NOT_YET else interval(start, extreme)
    if state.open is not None and now - start >= specification.lasting and (sent is None or sent.extreme != extreme):
        facts += [] if sent is None else [(q, sent, None, -1)]
        facts.append((q, state.open, None, 1))
        sent = state.open
    state.sent = sent
    return facts


def _began(rows: Columns, start: int, at_least: bool) -> list[tuple[int, int, int, float, float]]:
    """The tuples that made the comparison true at `start`: entities that
    entered (left), each once."""
    low, high = np.searchsorted(rows["t"], [start, start + 1])
    net: dict[int, int] = {}
    latest: dict[int, tuple[int, int, int, float, float]] = {}
    for i in range(low, high):
        entity, change = int(rows["entity"][i]), int(rows["change"][i])
        if change:
            net[entity] = net.get(entity, 0) + change
            latest[entity] = (entity, int(rows["own"][i]), int(rows["seq"][i]), float(rows["x"][i]), float(rows["y"][i]))
    step = 1 if at_least else -1
    return sorted((latest[entity] for entity, change in net.items() if change == step), key=lambda item: item[2])[:MOST_EVIDENCE]


def _changes(facts: Facts, dictionary: EntityDictionary) -> pa.Table:
    items = [item for _, interval, _, _ in facts for item in interval.began]
    entity, t, seq, x, y = zip(*items, strict=True) if items else ((), (), (), (), ())
    offsets = np.cumsum([0, *(len(interval.began) for _, interval, _, _ in facts)])
    evidence = Evidence(
        offsets, np.array(entity, np.int32), np.array(t, np.int64), np.array(x, np.float64), np.array(y, np.float64), np.array(seq, np.int64)
    )
    return changes(
        dictionary,
        query=np.array([q for q, _, _, _ in facts], np.int32),
        kind=pa.array([_OCCUPIED.as_py()] * len(facts), pa.string()),
        entities=np.empty(0, np.int32),
        entity_offsets=np.zeros(len(facts) + 1, np.int64),
        start=np.array([interval.start for _, interval, _, _ in facts], np.int64),
        end=pa.array([end for _, _, end, _ in facts], pa.int64()),
        score=np.array([interval.extreme for _, interval, _, _ in facts], np.float64),
        evidence=evidence,
        weight=np.array([weight for _, _, _, weight in facts], np.int8),
    )


class OccupancyOperator(Operator[OccupancyIndex]):
    """Family `occupancy`."""

    families: ClassVar[tuple[str, ...]] = ("occupancy",)
    keyed = InsideStage()
    relational = CountStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> OccupancyIndex:
        routes = np.array([query.route for query in queries], np.int64)
        return OccupancyIndex(tuple(queries), routes)
