"""Continuous constraint queries: a filter over all events, then for each query
its own domains and search.

A query needs the rows of all entities, and answers at the event that completes a
solution. Rows are taken in chunks, query by query, in (t, arrival) each: so a query's
domains stay in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.constraint_queries.estimates import expected_events, minimal_kept_times
from engine.constraint_queries.pairs import ConstraintEvents, Ints
from engine.constraint_queries.plan import ARROW_TYPES, ConstraintIndex, compile_index
from engine.constraint_queries.pool import FilteredEvents
from engine.constraint_queries.ranges import count_rows, group_positions
from engine.constraint_queries.solver import NO_ROOM, TOO_MANY_EVENTS, TOO_MANY_SOLUTIONS, advance
from engine.constraint_queries.store import EventStore, merge_stores
from engine.constraint_queries.unary import as_int64, double, passing_rows
from engine.index.geodesic import earth_centred
from engine.model.batch import Batch, EntityDictionary
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Crs, Feed
from engine.model.messages import Message
from engine.operator import Operator, Output, QueryStopped, RegisteredQuery, Stage

MOST_EVENTS = 1_000_000
"""The greatest number of events that one query may keep at a time."""
MOST_SOLUTIONS = 100_000
"""The greatest number of solutions that one event may complete in one query."""
MOST_FOUND = 250_000
"""The greatest number of solutions of one query in one chunk: each becomes an answer of half a
kilobyte, and all are in memory at once."""
_CHUNK, _ROOM = 65_536, 100_000


class SearchStage(Stage[ConstraintIndex, EventStore]):
    """The filters of single variables, then domains, forward checking and
    expiration of each query."""

    def initial(self, index: ConstraintIndex) -> EventStore:
        return EventStore(index.graphs, index.slots)

    def step(self, index: ConstraintIndex, state: EventStore, batch: Batch, watermark: int) -> Output[EventStore]:
        chunks = (Batch(batch.rows.slice(begin, _CHUNK), batch.entities) for begin in range(0, len(batch), _CHUNK))
        asserted = [changes for chunk in chunks for changes in _process_batch(index, state, chunk)]
        state.settle(watermark)
        return Output(state, concat(asserted))

    def migrate(self, index: ConstraintIndex, parts: Sequence[tuple[ConstraintIndex, EventStore]]) -> EventStore:
        place_of = {plan.query.key: (p, q) for p, (old, _) in reversed(list(enumerate(parts))) for q, plan in enumerate(old.plans)}
        sources = []
        for p, (old, store) in enumerate(parts):
            own = [(place_of[plan.query.key][1], q) for q, plan in enumerate(index.plans) if place_of.get(plan.query.key, (-1, 0))[0] == p]
            variables = _variables(old, [one for one, _ in own])
            sources.append((store, variables, _variables(index, [q for _, q in own])))
        return merge_stores(index.graphs, index.slots, sources)

    def dump(self, index: ConstraintIndex, state: EventStore) -> bytes:
        return state.dump()

    def load(self, index: ConstraintIndex, data: bytes) -> EventStore:
        state = self.initial(index)
        state.load(data)
        return state

    def check(self, index: ConstraintIndex, state: EventStore) -> None:
        assert state.variables == sum(len(plan.filters) for plan in index.plans)
        state.check()

    def counters(self, index: ConstraintIndex, state: EventStore) -> Mapping[str, int]:
        candidates, searches, solutions = state.work.tolist()
        events, rows = state.filtered.tolist()
        kept = {"events_filtered": events, "rows_searched": rows, "events_kept": state.kept, "peak_events": state.peak}
        return kept | {"candidates": candidates, "searches": searches, "solutions": solutions}


class ConstraintOperator(Operator[ConstraintIndex]):
    """Family `constraint` ([CCQ])."""

    families: ClassVar[tuple[str, ...]] = ("constraint",)
    keyed = SearchStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> ConstraintIndex:
        return compile_index(queries, feed)

    def is_broadcast(self, query: RegisteredQuery) -> bool:
        return True

    def refusal(self, query: RegisteredQuery, feed: Feed, recent: Callable[[], pa.Table]) -> Message | None:
        index = compile_index([query], feed)
        if not minimal_kept_times(index).any():
            return None
        rows = recent().combine_chunks().to_batches()
        expected = expected_events(index, Batch(rows[0], EntityDictionary())) if rows else None
        if expected is None or expected <= MOST_EVENTS:
            return None
        return Message(
            "at the rate of the feed's last {rows:,} rows this query would keep about {expected:,} events at a time; at most {most:,} are kept: "
            "shorten the times between its variables (dt), or let their filters take fewer events",
            rows=rows[0].num_rows,
            expected=round(expected),
            most=MOST_EVENTS,
        )


def _variables(index: ConstraintIndex, queries: Sequence[int]) -> Ints:
    """The variables of some queries, in their order."""
    first = index.graphs.variables
    return np.concatenate([np.empty(0, np.int64), *(np.arange(first[q], first[q + 1]) for q in queries)])


def _process_batch(index: ConstraintIndex, store: EventStore, batch: Batch) -> Iterator[pa.Table]:
    """Changes of all queries after the rows of `batch`, query by query."""
    rows, queries, bits = passing_rows(index, batch)
    store.filtered += np.array([len(batch), len(rows)])
    if not len(rows):
        return
    used = np.zeros(len(batch), np.bool_)
    used[rows] = True
    new = _events(index, store, batch, np.flatnonzero(used))
    for found, members in search_batch(index, store, new, (np.cumsum(used) - 1)[rows], queries, bits):
        yield _changes(index, store, found, members, batch.entities)


def search_batch(
    index: ConstraintIndex, store: EventStore, new: ConstraintEvents, row: Ints, queries: npt.NDArray[np.int32], bits: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Processes new events, which come after all earlier ones: event `row[k]` of `new` may be taken
    by the variables `bits[k]` of query `queries[k]`.

    `row` ascends for each query. Yields the solutions, query by query, as (query of each solution,
    its events' numbers in the store, concatenated).
    """
    order, starts = group_positions(queries, len(index.plans))
    own_bits = bits[order]
    store.reserve(int(new.t[0]), len(new.t), count_rows(own_bits, starts, index.graphs.variables))
    taken = FilteredEvents(row[order] + store.append(new), own_bits, starts)
    heads, tails = store.rings.heads.copy(), store.rings.tails.copy()
    total = np.zeros(len(index.plans), np.int64)
    at = 0
    while at < len(order):
        at, count, filled, reason, query, figure = advance(
            index.graphs, store.events, store.rings, taken, store.pool, store.found, at, MOST_EVENTS, MOST_SOLUTIONS, _ROOM, store.work
        )  # fmt: skip
        time = index.feed.moment(int(store.events.t[taken.event[at - 1]]))
        if reason == TOO_MANY_EVENTS:
            raise QueryStopped(
                index.plans[query].query.key,
                Message("it would keep {figure:,} events at t = {time}; at most {most:,} are kept", figure=figure, time=time, most=MOST_EVENTS),
            )
        if reason == TOO_MANY_SOLUTIONS:
            raise QueryStopped(
                index.plans[query].query.key,
                Message("one event at t = {time} completes more than {most:,} solutions", time=time, most=MOST_SOLUTIONS),
            )
        if count:
            total += np.bincount(store.found.query[:count], minlength=len(total))
            most = int(total.argmax())
            if total[most] > MOST_FOUND:
                raise QueryStopped(
                    index.plans[most].query.key,
                    Message("{rows:,} rows up to t = {time} complete more than {most:,} solutions", rows=len(new.t), time=time, most=MOST_FOUND),
                )
            yield store.found.query[:count], store.found.event[:filled]
        if reason == NO_ROOM:
            store.grow_found()
    store.now = max(store.now, int(new.t[-1]))
    store.update_peak(heads, tails)


def _events(index: ConstraintIndex, store: EventStore, batch: Batch, picked: Ints) -> ConstraintEvents:
    """The picked rows as events, with texts as the store's ranks."""
    n, at = len(picked), pa.array(picked)
    x, y = batch.x[picked], batch.y[picked]
    place = np.zeros((3, n))
    if index.feed.crs is Crs.GEOGRAPHIC:
        place[0], place[1], place[2] = earth_centred(x, y)
    else:
        place[0], place[1] = x, y
    # Events without a position are taken only by variables without distances; a number
    # keeps their chords comparable.
    place = np.nan_to_num(place, copy=False, nan=0.0)

    def compared(name: str) -> pa.Array:
        return batch.column(name).cast(ARROW_TYPES[index.feed.types[name]]).take(at)

    texts = store.ranks([compared(name) for name in index.slots.texts]) if index.slots.texts else []
    columns = [*texts, *(as_int64(compared(name)) for name in index.slots.wholes)]
    doubles = [double(compared(name)) for name in index.slots.doubles]
    ints = np.stack(columns) if columns else np.zeros((0, n), np.int64)
    floats = np.stack(doubles) if doubles else np.zeros((0, n))
    return ConstraintEvents(batch.t[picked], batch.seq[picked], batch.entity[picked], x, y, place, ints, floats)


def _changes(index: ConstraintIndex, store: EventStore, queries: Ints, members: Ints, dictionary: EntityDictionary) -> pa.Table:
    """Solutions as changes: entities and evidence in the order of the variables."""
    first = index.graphs.variables
    sizes = np.diff(first)[queries]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    variable = np.repeat(first[queries] - offsets[:-1], sizes) + np.arange(len(members))
    events = store.events
    t, entity = events.t[members], events.entity[members]
    evidence = Evidence(offsets, entity, t, events.x[members], events.y[members], events.seq[members], index.names.take(pa.array(variable)))
    return changes(
        dictionary,
        query=queries.astype(np.int32),
        kind=pa.array(["match"], pa.string()).take(pa.array(np.zeros(len(queries), np.int64))),
        entities=entity,
        entity_offsets=offsets,
        start=np.minimum.reduceat(t, offsets[:-1]),
        end=np.maximum.reduceat(t, offsets[:-1]),
        evidence=evidence,
    )
