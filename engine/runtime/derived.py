"""Answers as events: queries that derive are evaluated after those they derive from, each on the feed's rows and its own events.

Every query gets rows up to, and not including, the watermark: an event of an answer stands after all rows of its time, of which more may come while
the watermark is there. So all queries of the graph are evaluated in one pass, in its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.derive import ENTITIES, REVISING, VALUE, Source, with_answers
from engine.model.batch import CLOCK, ENTITY, EVENT, SEQ, TIME, Batch
from engine.model.changes import ANSWERS, answers
from engine.model.events import row_schema, stamped_schema
from engine.model.feed import ColumnType, Feed
from engine.operator import Delivery, RegisteredQuery
from engine.runtime.evaluator import Outcome, conformed, reached
from engine.runtime.gate import Gate, merged, single_batch
from engine.runtime.local import Runtime
from engine.runtime.partitions import KeyedPartition, RelationalPartition, plan_of

DERIVED_SEQ = 2**61
"""Events of answers have positions from here on: after all rows of their time."""
_NULL_LAST = 2**62
Key = tuple[Any, ...]


class DerivedQuery:
    """One query with its events. `families`: of the queries it derives from, by their names."""

    def __init__(self, feed: Feed, query: RegisteredQuery, sources: Sequence[Source], families: Mapping[str, str]) -> None:
        self.feed, self.query, self.sources, self.families = with_answers(feed), query, sources, families
        self.plan = plan_of([query], self.feed, 1)
        ((self.name, self.running),) = self.plan.items()
        self.keyed, self.relational = KeyedPartition(self.feed, self.plan), RelationalPartition(self.plan)
        self.schema = row_schema(self.feed).append(pa.field(SEQ, pa.int64()))
        self.per_entity = bool(getattr(query.specification, "per_entity", False))
        self.waiting: list[tuple[Key, dict[str, Any]]] = []
        self.open: set[Key] = set()
        self.count = 0
        self.arrived, self.clock = 0, -_NULL_LAST

    def hear(self, changes: pa.Table) -> None:
        """Takes what other queries state."""
        for source in self.sources:
            mine = changes.filter(pc.and_(pc.equal(changes.column("query"), source.query), pc.equal(changes.column("kind"), source.kind)))
            for row in mine.select([name for name in mine.column_names if name != "evidence"]).to_pylist():
                if self._happens(source, row):
                    self._wait(source, row)

    def _happens(self, source: Source, row: Mapping[str, Any]) -> bool:
        """Whether an answer that is stated makes an event."""
        if source.at == "end":
            return row["weight"] > 0 and row["end"] is not None
        if self.families[source.query] not in REVISING:
            return bool(row["weight"] > 0)
        if row["weight"] < 0:
            return False
        key = (source.event, tuple(row["entities"]), row["start"])
        fresh = key not in self.open
        # It begins once; an answer that has ended is not stated again.
        if row["end"] is None:
            self.open.add(key)
        else:
            self.open.discard(key)
        return fresh

    def _wait(self, source: Source, row: Mapping[str, Any]) -> None:
        entities = row["entities"]
        if self.per_entity and not entities:
            return
        revised = source.at == "start" and self.families[source.query] in ("occupancy", "encounter")
        event = dict(zip((ENTITY, *ENTITIES), entities, strict=False)) | {EVENT: source.event, TIME: row[source.at]}
        if self.feed.columns[VALUE] in (ColumnType.FLOAT, ColumnType.INT) and not revised:
            event[VALUE] = row["score"]
        end = _NULL_LAST if row["end"] is None else row["end"]
        key = (row[source.at], source.query, [one or "" for one in entities], row["kind"], row["start"], end, source.event)
        self.waiting.append((key, event))

    def step(self, rows: pa.RecordBatch, watermark: int) -> pa.Table:
        """Changes after `rows`, those of the feed before `watermark`, and the events that have been heard of."""
        self.waiting.sort(key=lambda item: item[0])
        ready = [event for key, event in self.waiting if key[0] < watermark]
        self.waiting = self.waiting[len(ready) :]
        events = [event | {SEQ: DERIVED_SEQ + self.count + i} for i, event in enumerate(ready)]
        self.count += len(events)
        batch = merged([self._widened(rows), pa.RecordBatch.from_pylist(events, schema=self.schema)])
        return self._evaluated(batch, watermark)

    def _widened(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        names = rows.schema.names
        columns = [rows.column(field.name) if field.name in names else pa.nulls(rows.num_rows, field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _evaluated(self, rows: pa.RecordBatch, watermark: int) -> pa.Table:
        name, running = self.name, self.running
        if running.operator.delivery is Delivery.ARRIVAL:
            rows = self._in_arrival(rows)
        output = running.operator.keyed.step(running.index, self.keyed.states[name], Batch(rows, self.keyed.dictionary), watermark)
        self.keyed.states[name] = output.state
        stated = [output.changes]
        if running.operator.relational is not None:
            emitted = [output.emitted] if output.emitted is not None and output.emitted.num_rows else []
            stated += self.relational.take({name: emitted}, watermark).values()
        return pa.concat_tables([ANSWERS.empty_table(), *(answers(one, *running.keys) for one in stated if one.num_rows)])

    def _in_arrival(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """As if all had arrived in the order of time."""
        t = rows.column(TIME).to_numpy(zero_copy_only=False)
        before = np.maximum.accumulate(np.concatenate([[self.clock], t]))
        clock = pa.array(before[:-1], pa.int64(), mask=before[:-1] == -_NULL_LAST)
        first = self.arrived
        self.arrived, self.clock = first + len(t), int(before[-1])
        place = rows.schema.get_field_index(SEQ)
        rows = rows.set_column(place, SEQ, pa.array(np.arange(first, first + len(t)), pa.int64()))
        return rows.append_column(CLOCK, clock)

    def counters(self) -> dict[str, Mapping[str, int]]:
        found = dict(self.keyed.counters())
        for name, counted in self.relational.counters().items():
            found[name] = Counter(found.get(name, {})) + Counter(counted)
        return found


class DerivingRuntime:
    """A runtime for a graph of queries: `base` evaluates those that derive nothing, `derived` follow in the order of the graph."""

    def __init__(self, feed: Feed, base: Runtime, derived: Sequence[DerivedQuery]) -> None:
        self.feed, self.base, self.derived = feed, base, derived
        self._gate = Gate(feed)
        self._reached: int | None = None
        self._ready: list[pa.RecordBatch] = []
        self._watermark: int | None = None

    def process(self, stamped: pa.Table) -> Outcome:
        outcome = self.base.process(stamped)
        rows = conformed(stamped, self.feed)
        if rows.num_rows:
            self._reached = reached(rows, self._reached)
        if self._reached is not None:
            self._take(rows, self._reached - self.feed.lateness)
        return outcome if outcome.watermark is None else self._followed(outcome, outcome.watermark)

    def finish(self, until: int | None = None) -> Outcome:
        outcome = self.base.finish(until)
        if self.last_t is None or outcome.watermark is None:
            return outcome
        none = pa.Table.from_batches([], stamped_schema(self.feed))
        behind = max(self.last_t, self._watermark if self._watermark is not None else self.last_t)
        self._take(none, max(behind, self._reached if self._reached is not None else behind))
        return self._followed(outcome, max(outcome.watermark + 1, behind))

    def _take(self, rows: pa.Table, watermark: int) -> None:
        ready = self._gate.take(rows, watermark).ready
        if ready.num_rows:
            self._ready.append(ready)

    def _followed(self, outcome: Outcome, watermark: int) -> Outcome:
        """What the queries that derive state after `outcome` of the others."""
        self._watermark = watermark
        rows = self._before(watermark)
        stated = outcome.changes
        for one in self.derived:
            one.hear(stated)
            stated = pa.concat_tables([stated, one.step(rows, watermark)])
        return Outcome(stated, outcome.late, outcome.processed, outcome.duplicates, outcome.watermark)

    def _before(self, watermark: int) -> pa.RecordBatch:
        """Rows that wait and lie before the watermark."""
        empty = pa.RecordBatch.from_arrays(
            [pa.array([], field.type) for field in row_schema(self.feed)] + [pa.array([], pa.int64())], names=[*row_schema(self.feed).names, SEQ]
        )
        waiting = single_batch(pa.Table.from_batches([*self._ready] or [empty]))
        count = int(np.searchsorted(waiting.column(TIME).to_numpy(zero_copy_only=False), watermark, side="left"))
        self._ready = [waiting.slice(count)] if count < waiting.num_rows else []
        return waiting.slice(0, count)

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, Counter[str]] = {name: Counter(work) for name, work in self.base.counters().items()}
        for one in self.derived:
            for name, work in one.counters().items():
                found.setdefault(name, Counter()).update(work)
        return found

    @property
    def rows_kept(self) -> int:
        return int(self.base.rows_kept + self._gate.rows_kept + sum(rows.num_rows for rows in self._ready))

    @property
    def last_t(self) -> int | None:
        return self.base.last_t

    def close(self) -> None:
        if hasattr(self.base, "close"):
            self.base.close()
