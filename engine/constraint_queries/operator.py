"""Continuous constraint queries: a filter over all events, then for each query its own domains and search.

The keyed stage keeps nothing. Its rows go to the relational partition of their query, which sees them in (t, arrival) and answers at the event that
completes a solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from engine.constraint_queries.expiration import DOMAINS
from engine.constraint_queries.pairs import Ints, Rows
from engine.constraint_queries.plan import ConstraintIndex, QueryPlan, compile_index
from engine.constraint_queries.solver import TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS, Work, advance
from engine.constraint_queries.store import Store, pack, unpack
from engine.constraint_queries.unary import QUERY, UNARY, carried, double, emitted_rows, whole
from engine.index.geodesic import earth_centred
from engine.model.batch import Batch, EntityDictionary
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Crs, Feed
from engine.operator import Operator, Output, QueryStopped, RegisteredQuery, Stage

MOST_EVENTS = 1_000_000
"""Events that one query may keep at a time."""
MOST_SOLUTIONS = 1_000_000
"""Solutions that one event may complete in one query."""
_CHUNK, _ROOM = 8_192, 100_000


@dataclass
class FilterState:
    """Work done: events seen and rows sent on."""

    events: int = 0
    rows: int = 0


class FilterStage(Stage[ConstraintIndex, FilterState]):
    """The keyed stage: filters of single variables; what none of them takes goes nowhere."""

    def initial(self, index: ConstraintIndex) -> FilterState:
        return FilterState()

    def step(self, index: ConstraintIndex, state: FilterState, batch: Batch, watermark: int) -> Output[FilterState]:
        if len(batch) == 0:
            return Output(state)
        emitted = emitted_rows(index, batch)
        state.events += len(batch)
        state.rows += 0 if emitted is None else emitted.num_rows
        return Output(state, emitted=emitted)

    def migrate(self, index: ConstraintIndex, parts: Sequence[tuple[ConstraintIndex, FilterState]]) -> FilterState:
        return FilterState(sum(part.events for _, part in parts), sum(part.rows for _, part in parts))

    def dump(self, index: ConstraintIndex, state: FilterState) -> bytes:
        return np.array([state.events, state.rows], np.int64).tobytes()

    def load(self, index: ConstraintIndex, data: bytes) -> FilterState:
        return FilterState(*np.frombuffer(data, np.int64).tolist())

    def counters(self, index: ConstraintIndex, state: FilterState) -> Mapping[str, int]:
        return {"events_filtered": state.events, "rows_searched": state.rows, "events_kept": 0}


@dataclass
class SearchState:
    """A store for each query, in the index's order; those of other partitions' queries stay empty."""

    stores: list[Store] = field(default_factory=list)


class SearchStage(Stage[ConstraintIndex, SearchState]):
    """The relational stage: domains, forward checking and expiration, query by query."""

    def initial(self, index: ConstraintIndex) -> SearchState:
        return SearchState([_store(plan) for plan in index.plans])

    def step(self, index: ConstraintIndex, state: SearchState, batch: Batch, watermark: int) -> Output[SearchState]:
        stated: list[pa.RecordBatch] = []
        if len(batch):
            query = batch.rows.column(QUERY).to_numpy(zero_copy_only=False)
            order = np.argsort(query, kind="stable")
            ends = np.searchsorted(query[order], np.arange(len(index.plans) + 1))
            for number in np.unique(query).tolist():
                rows = order[ends[number] : ends[number + 1]]
                for at in range(0, len(rows), _CHUNK):
                    share = batch.take(rows[at : at + _CHUNK])
                    stated += _taken(index, number, state.stores[number], share)
        for store in state.stores:
            store.settle(watermark, 0)
        return Output(state, concat(stated))

    def migrate(self, index: ConstraintIndex, parts: Sequence[tuple[ConstraintIndex, SearchState]]) -> SearchState:
        known = {plan.query.key: store for old, part in reversed(parts) for plan, store in zip(old.plans, part.stores, strict=True)}
        return SearchState([known.get(plan.query.key) or _store(plan) for plan in index.plans])

    def dump(self, index: ConstraintIndex, state: SearchState) -> bytes:
        return pack({str(number): store for number, store in enumerate(state.stores)})

    def load(self, index: ConstraintIndex, data: bytes) -> SearchState:
        state = self.initial(index)
        unpack(data, {str(number): store for number, store in enumerate(state.stores)})
        return state

    def check(self, index: ConstraintIndex, state: SearchState) -> None:
        assert len(state.stores) == len(index.plans)
        for store in state.stores:
            store.check()

    def counters(self, index: ConstraintIndex, state: SearchState) -> Mapping[str, int]:
        stores = state.stores
        return {
            "events_kept": sum(store.kept for store in stores),
            "peak_events": sum(store.peak for store in stores),
            "candidates": sum(int(store.candidates[0]) for store in stores),
            "searches": sum(int(store.searches[0]) for store in stores),
            "solutions": sum(int(store.solutions[0]) for store in stores),
        }


class ConstraintOperator(Operator[ConstraintIndex]):
    """Family `constraint` ([CCQ])."""

    families: ClassVar[tuple[str, ...]] = ("constraint",)
    keyed = FilterStage()
    relational = SearchStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> ConstraintIndex:
        return compile_index(queries, feed)


def _store(plan: QueryPlan) -> Store:
    texts, wholes = len(plan.texts), len(plan.wholes)
    return Store(len(plan.filters), texts, texts + wholes, len(plan.doubles))


def _taken(index: ConstraintIndex, number: int, store: Store, batch: Batch) -> Iterator[pa.RecordBatch]:
    """Changes of one query after the rows of `batch`."""
    plan = index.plans[number]
    roles = len(plan.filters) if plan.form == DOMAINS else 1
    store.settle(int(batch.t[0]), len(batch) * roles)
    new = _events(plan, store, batch, index.feed.crs)
    work = Work(store.candidates, store.searches, store.solutions)
    at = 0
    while at < len(batch):
        at, found, reason = advance(
            plan.graph, plan.form, plan.only_first, store.rows, store.book, new, at, MOST_EVENTS, MOST_SOLUTIONS, _ROOM, work
        )  # fmt: skip
        if reason == TOO_MANY_EVENTS:
            raise QueryStopped(plan.query.key, f"it would keep {store.kept:,} events at t = {new.t[at - 1]}; at most {MOST_EVENTS:,} are kept")
        if reason == TOO_MANY_SOLUTIONS:
            raise QueryStopped(plan.query.key, f"one event at t = {new.t[at - 1]} completes more than {MOST_SOLUTIONS:,} solutions")
        if len(found):
            yield _changes(number, plan, store.rows, new, found, batch.entities)


def _events(plan: QueryPlan, store: Store, batch: Batch, crs: Crs) -> Rows:
    """Emitted rows of one query as events, their texts as the store's ranks."""
    n = len(batch)
    unary = whole(batch.rows.column(UNARY))
    place = np.zeros((n, 3))
    if crs is Crs.GEOGRAPHIC:
        place[:, 0], place[:, 1], place[:, 2] = earth_centred(batch.x, batch.y)
    else:
        place[:, 0], place[:, 1] = batch.x, batch.y
    texts = [carried(batch, name).to_pylist() for name in plan.texts]
    columns = [*(store.ranks(texts) if texts else ()), *(whole(carried(batch, name)) for name in plan.wholes)]
    ints = np.column_stack(columns) if columns else np.zeros((n, 0), np.int64)
    doubles = [double(carried(batch, name)) for name in plan.doubles]
    floats = np.column_stack(doubles) if doubles else np.zeros((n, 0))
    copies = np.array(batch.t), np.array(batch.seq), np.array(batch.entity), np.array(batch.x), np.array(batch.y)
    return Rows(*copies, unary.copy(), unary.copy(), place, np.ascontiguousarray(ints), np.ascontiguousarray(floats))


def _changes(number: int, plan: QueryPlan, kept: Rows, new: Rows, found: Ints, dictionary: EntityDictionary) -> pa.RecordBatch:
    """Solutions as answers: entities and evidence in the order of the variables."""
    n, m = found.shape
    flat = found.reshape(-1)
    fresh = flat < 0
    old_at, new_at = np.where(fresh, 0, flat), np.where(fresh, ~flat, 0)

    def gathered(name: str) -> Ints:
        both: Ints = np.where(fresh, getattr(new, name)[new_at], getattr(kept, name)[old_at])
        return both

    t, entity = gathered("t"), gathered("entity")
    names = pa.array([variable.name for variable in plan.specification.variables]).take(pa.array(np.tile(np.arange(m), n)))
    offsets = np.arange(n + 1) * m
    evidence = Evidence(offsets, entity, t, gathered("x").astype(np.float64), gathered("y").astype(np.float64), gathered("seq"), names)
    times = t.reshape(n, m)
    return changes(
        dictionary,
        query=np.full(n, number, np.int32),
        kind=pa.array(["match"] * n, pa.string()),
        entities=entity,
        entity_offsets=offsets,
        start=times.min(axis=1),
        end=times.max(axis=1),
        evidence=evidence,
    )
