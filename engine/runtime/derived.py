"""Answers as events: queries that derive are evaluated after those they derive from, each on the
feed's rows and its own events.

    rows --> queries that derive nothing --changes--> the first that derives --changes--> ...
      |                                                      ^                             ^
      +-- gate: sorted rows before the watermark ------------+-----------------------------+

Every query that derives gets rows up to, and not including, the watermark: an event of an answer
comes after all rows of its time, of which more may come while the watermark is there. An answer has
been asserted once the watermark has passed the time at which it is known, so all queries of the
graph are evaluated in one pass, in its order, within one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.derive import Source, with_answers
from engine.model.batch import CLOCK, EVENT, SEQ, TIME, Batch, EntityDictionary
from engine.model.changes import ANSWERS, DERIVED_SEQ, answers
from engine.model.clock import watermark_at
from engine.model.events import HEARTBEAT, row_schema, stamped_schema
from engine.model.feed import Feed
from engine.operator import Delivery, RegisteredQuery
from engine.runtime.answer_events import AnswerEvents
from engine.runtime.broadcast import BothStages
from engine.runtime.container import pack, table_bytes, table_from, unpack
from engine.runtime.evaluator import Evaluator, Outcome, conformed, reached
from engine.runtime.gate import Gate, empty_batch, int64s, merged, single_batch, widened
from engine.runtime.partitions import plan_of
from engine.sources.eventlog import Span

_MAGIC = b"vedette-graph-3\n"
Ints = npt.NDArray[np.int64]


Node = TypeVar("Node", bound=Hashable)


def in_order(edges: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """All nodes, each after those that it has edges to.

    >>> in_order({"c": ["b"], "b": ["a"], "a": []})
    ['a', 'b', 'c']
    """
    ordered: dict[Node, None] = {}
    begun: set[Node] = set()

    def visit(node: Node) -> None:
        if node in begun:
            return
        begun.add(node)
        for other in edges.get(node, ()):
            visit(other)
        ordered[node] = None

    for node in edges:
        visit(node)
    return list(ordered)


def in_graph_order(queries: Iterable[RegisteredQuery]) -> list[RegisteredQuery]:
    """Those that derive, each after those it derives from; the graph has no cycles."""
    by_id = {query.id: query for query in queries}
    order = in_order({query.id: [source.query for source in query.sources] for query in by_id.values()})
    return [by_id[one] for one in order if one in by_id and by_id[one].sources]


def with_upstream(queries: Iterable[RegisteredQuery], known: Iterable[RegisteredQuery]) -> list[RegisteredQuery]:
    """`queries` and all of `known` that they derive from, directly or not."""
    by_id = {query.id: query for query in known}
    found: dict[str, RegisteredQuery] = {}

    def visit(query: RegisteredQuery) -> None:
        found[query.id] = query
        for source in query.sources:
            if source.query not in found and source.query in by_id:
                visit(by_id[source.query])

    for query in queries:
        visit(query)
    return list(found.values())


def without_upstream(queries: Iterable[RegisteredQuery]) -> list[tuple[RegisteredQuery, Source]]:
    """The queries that derive, directly or not, from a query that is not among them,
    each with the missing source."""
    left = {query.id: query for query in queries}
    found: list[tuple[RegisteredQuery, Source]] = []
    while orphans := [(query, source) for query in left.values() for source in query.sources if source.query not in left]:
        for query, source in orphans:
            if left.pop(query.id, None) is not None:
                found.append((query, source))
    return found


class _Rows:
    """The feed's accepted rows, released in order once the watermark has passed them."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.gate = Gate(feed)
        self.reached: int | None = None
        self._ready: list[pa.RecordBatch] = []

    def take(self, stamped: pa.Table) -> None:
        """Takes stamped rows that follow those before."""
        rows = conformed(stamped, self.feed)
        if rows.num_rows:
            self.reached = reached(rows, self.reached)
        if self.reached is not None:
            self._release(rows, watermark_at(self.reached, self.feed.lateness))

    def release_up_to(self, watermark: int) -> None:
        """The end of the input: no row is to come."""
        self._release(pa.Table.from_batches([], stamped_schema(self.feed)), watermark)

    def _release(self, rows: pa.Table, watermark: int) -> None:
        ready = self.gate.take(rows, watermark).ready
        if ready.num_rows:
            self._ready.append(ready)

    def before(self, watermark: int) -> pa.RecordBatch:
        """Those that wait and lie before the watermark."""
        waiting = single_batch(pa.Table.from_batches(self._ready or [empty_batch(self.feed)]))
        count = int(np.searchsorted(int64s(waiting, TIME), watermark, side="left"))
        self._ready = [waiting.slice(count)] if count < waiting.num_rows else []
        return waiting.slice(0, count)

    def __len__(self) -> int:
        return self.gate.rows_kept + sum(len(rows) for rows in self._ready)

    def dump(self) -> bytes:
        ready = pa.Table.from_batches(self._ready or [empty_batch(self.feed)])
        return pack({"reached": self.reached}, {"gate": self.gate.dump(), "ready": table_bytes(ready)})

    @classmethod
    def load(cls, feed: Feed, data: bytes) -> _Rows:
        rows, (facts, parts) = cls(feed), unpack(data)
        rows.gate, rows.reached = Gate.load(feed, parts["gate"]), facts["reached"]
        ready = widened(single_batch(table_from(parts["ready"])), feed)
        rows._ready = [ready] if ready.num_rows else []
        return rows


class DerivedQuery:
    """One query with its events. `upstream`: the queries it derives from, among others, by id."""

    def __init__(self, feed: Feed, query: RegisteredQuery, upstream: Mapping[str, RegisteredQuery]) -> None:
        self.feed, self.query = with_answers(feed), query
        specifications = {source.query: upstream[source.query].specification for source in query.sources}
        per_entity = bool(getattr(query.specification, "per_entity", False))
        self.events = AnswerEvents(self.feed, query.sources, specifications, per_entity=per_entity)
        self.plan = plan_of([query], self.feed, 1)
        ((self.name, self.running),) = self.plan.items()
        self.stages, self.dictionary = BothStages(self.plan), EntityDictionary()
        self.schema = row_schema(self.feed).append(pa.field(SEQ, pa.int64()))
        self.count = 0
        self.arrived = 0

    def take_answers(self, changes: pa.Table) -> None:
        """Takes the answers of other queries."""
        self.events.take_answers(changes)

    # -- rows --------------------------------------------------------------------------------------

    def step(self, rows: pa.RecordBatch, watermark: int, *, last: bool = False) -> pa.Table:
        """Changes after `rows`, those of the feed before `watermark`, and the events that are known
        by then; `last`: the input has ended."""
        # At the end of the input everything asserted is known.
        events, known = self.events.take(watermark, all_known=last)
        added = self._numbered(events)
        if self.running.operator.delivery is Delivery.ORDERED:
            batch = merged([self._widened(rows), added])
        else:
            batch = self._in_arrival(self._widened(rows), added, np.minimum(known, watermark - 1), watermark)
        asserted = [self._evaluated(batch, watermark)]
        if last:
            asserted.append(self._evaluated(batch.slice(0, 0), watermark, ended=True))
        return pa.concat_tables(asserted)

    def with_all(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """All `rows` of the feed together with all derived events, sorted and renumbered."""
        batch = merged([self._widened(rows), self._numbered(self.events.take_all())])
        return batch.set_column(batch.schema.get_field_index(SEQ), SEQ, pa.array(np.arange(len(batch)), pa.int64()))

    def _numbered(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Events as rows, after all those of the feed."""
        first, self.count = self.count, self.count + len(events)
        return self._widened(events.append_column(SEQ, pa.array(np.arange(DERIVED_SEQ + first, DERIVED_SEQ + self.count), pa.int64())))

    def _widened(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """In the columns of `schema`; a whole number of the feed may be in a column of answers."""
        names = rows.schema.names
        columns = [
            pc.cast(rows.column(field.name), field.type, safe=False) if field.name in names else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _in_arrival(self, rows: pa.RecordBatch, events: pa.RecordBatch, known: Ints, watermark: int) -> pa.RecordBatch:
        """As if each row had arrived at its time, and each event when it was known,
        independent of batches and disorder.

        A last row shows that the clock has reached the watermark: windows before it are decided,
        though no row may follow for long.
        """
        if self.arrived or len(rows):
            events = pa.concat_batches([events, pa.RecordBatch.from_pylist([{EVENT: HEARTBEAT, TIME: watermark - 1}], schema=self.schema)])
            known = np.append(known, watermark - 1)
        came = np.concatenate([int64s(rows, TIME), known])
        order = np.argsort(came, kind="stable")
        batch = pa.concat_batches([rows, events]).take(pa.array(order))
        first, self.arrived = self.arrived, self.arrived + len(order)
        place = batch.schema.get_field_index(SEQ)
        batch = batch.set_column(place, SEQ, pa.array(np.arange(first, self.arrived), pa.int64()))
        return batch.append_column(CLOCK, pa.array(came[order], pa.int64()))

    def _evaluated(self, rows: pa.RecordBatch, watermark: int, *, ended: bool = False) -> pa.Table:
        asserted = self.stages.take({self.running.operator.delivery: Batch(rows, self.dictionary, ended)}, self.dictionary, watermark)
        return pa.concat_tables([ANSWERS.empty_table(), *(answers(one, *self.running.keys) for _, one in asserted if one.num_rows)])

    # -- states ------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        facts = {"count": self.count, "arrived": self.arrived, "names": self.dictionary.names}
        return pack(facts, {"events": self.events.dump(), "stages": self.stages.dump()})

    def restore(self, data: bytes) -> None:
        """Continues from a dumped state."""
        facts, parts = unpack(data)
        self.events.restore(parts["events"])
        self.count, self.arrived = facts["count"], facts["arrived"]
        self.stages, self.dictionary = BothStages.load(self.plan, parts["stages"]), EntityDictionary(facts["names"])

    def counters(self) -> dict[str, Mapping[str, int]]:
        found = Counter({"events_derived": self.count, "events_derived_waiting": len(self.events)})
        for counters in self.stages.counters():
            found.update(counters.get(self.name, {}))
        return {self.name: found}

    def check(self) -> None:
        self.stages.check()


def rows_with_events(feed: Feed, query: RegisteredQuery, above: Sequence[RegisteredQuery], rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows in order of time, none late and none twice, with the events that `query` takes from the
    answers of `above` to them.

    For evaluating a period of history as a whole; the columns are those of `with_answers(feed)`.
    """
    one = DerivedQuery(feed, query, {upper.id: upper for upper in above})
    if len(rows):
        t = int64s(rows, TIME)
        clock = pa.array(np.concatenate([[t[0]], t[:-1]]), pa.int64())
        columns = {name: rows.column(name) for name in rows.schema.names} | {SEQ: pa.array(np.arange(len(t)), pa.int64()), CLOCK: clock}
        evaluator = GraphEvaluator.local(feed, above)
        for changes in (evaluator.process(pa.table(columns)).changes, evaluator.finish().changes):
            one.take_answers(changes)
    return one.with_all(rows)


class GraphEvaluator:
    """An evaluator whose queries may derive from one another: `base` evaluates those that derive
    nothing, wherever its partitions are.

    Without a query that derives it does nothing itself. It has the members of `Evaluator`.
    """

    def __init__(self, feed: Feed, base: Any, queries: Sequence[RegisteredQuery], only: Collection[tuple[str, int]] | None = None) -> None:
        self.feed, self.base, self.queries = feed, base, list(queries)
        self._only = only
        by_id = {query.id: query for query in queries}
        self.derived = [DerivedQuery(feed, query, by_id) for query in in_graph_order(queries)]
        self._rows = _Rows(feed) if self.derived else None
        self._watermark: int | None = None

    @classmethod
    def start(cls, feed: Feed, queries: Sequence[RegisteredQuery], begin: Callable[[Sequence[RegisteredQuery]], Any]) -> GraphEvaluator:
        """Before any row; `begin` makes the evaluator of the queries that derive nothing."""
        return cls(feed, begin(_plain(queries)), queries)

    @classmethod
    def local(cls, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int = 1) -> GraphEvaluator:
        """All of it in this process."""
        return cls.start(feed, queries, lambda plain: Evaluator.start(feed, plain, partitions))

    def side_evaluator(self, queries: Sequence[RegisteredQuery]) -> GraphEvaluator:
        """As Evaluator.beside. It evaluates again what `queries` derive from, and states
        what they themselves find."""
        together = with_upstream(queries, self.queries)
        return GraphEvaluator(self.feed, self.base.side_evaluator(_plain(together)), together, {query.key for query in queries})

    def skip_to(self, position: int) -> None:
        self.base.skip_to(position)

    @property
    def position(self) -> int:
        return int(self.base.position)

    @property
    def watermark(self) -> int | None:
        watermark: int | None = self.base.watermark
        return watermark

    @property
    def last_t(self) -> int | None:
        last: int | None = self.base.last_t
        return last

    # -- rows --------------------------------------------------------------------------------------

    def process(self, stamped: pa.Table) -> Outcome:
        """As Evaluator.process."""
        return self._with_derived(self.base.process(stamped), [stamped])

    def take(self, span: Span, rows: Iterable[pa.Table]) -> Outcome:
        """As ExecutorsEvaluator.take; `rows` are the same in this process, where the queries
        that derive are evaluated."""
        return self._with_derived(self.base.take(span), rows)

    def finish(self, until: int | None = None) -> Outcome:
        """As Evaluator.finish."""
        outcome: Outcome = self.base.finish(until)
        if self._rows is None or self.last_t is None or outcome.watermark is None:
            return outcome
        behind = max(self.last_t, self._watermark if self._watermark is not None else self.last_t)
        self._rows.release_up_to(max(behind, self._rows.reached if self._rows.reached is not None else behind))
        return self._followed(outcome, max(outcome.watermark + 1, behind), last=True)

    def _with_derived(self, outcome: Outcome, stamped: Iterable[pa.Table]) -> Outcome:
        if self._rows is not None:
            for rows in stamped:
                self._rows.take(rows)
            # A base that evaluates later than it takes rows reports how far it is.
            if outcome.watermark is not None:
                outcome = self._followed(outcome, outcome.watermark)
        return self._of_fresh(outcome)

    def _followed(self, outcome: Outcome, watermark: int, *, last: bool = False) -> Outcome:
        """The answers of derived queries after `outcome` of the others."""
        assert self._rows is not None
        self._watermark = watermark
        rows = self._rows.before(watermark)
        asserted = outcome.changes
        for one in self.derived:
            one.take_answers(asserted)
            asserted = pa.concat_tables([asserted, one.step(rows, watermark, last=last)])
        return replace(outcome, changes=asserted)

    def _of_fresh(self, outcome: Outcome) -> Outcome:
        if self._only is None or {query.key for query in self.queries} == self._only:
            return outcome
        keys = pc.binary_join_element_wise(outcome.changes.column("query"), pc.cast(outcome.changes.column("version"), pa.string()), " ")
        fresh = outcome.changes.filter(pc.is_in(keys, pa.array([f"{query} {version}" for query, version in self._only])))
        return replace(outcome, changes=fresh)

    # -- added and removed queries -----------------------------------------------------------------

    def register(self, queries: Sequence[RegisteredQuery], caught_up: GraphEvaluator | None = None) -> None:
        """As Evaluator.register. A query that derives and is not in `caught_up` begins here: it has
        not seen the feed's past."""
        self.base.register(_plain(queries), None if caught_up is None else caught_up.base)
        by_id = {query.id: query for query in queries}
        known = {one.query.key: one for one in [*([] if caught_up is None else caught_up.derived), *self.derived]}
        self.derived = [known.get(query.key) or DerivedQuery(self.feed, query, by_id) for query in in_graph_order(queries)]
        if not self.derived:
            self._rows = self._watermark = None
        elif self._rows is None:
            joining = None if caught_up is None else caught_up._rows
            self._rows = joining if joining is not None else _Rows(self.feed)
            self._watermark = None if caught_up is None else caught_up._watermark
        self.queries = list(queries)

    # -- states ------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Everything that `load` needs; without a query that derives, what the base alone gives."""
        base: bytes = self.base.dump()
        if self._rows is None:
            return base
        parts = {f"query {one.query.id} {one.query.version}": one.dump() for one in self.derived}
        return _MAGIC + pack({"watermark": self._watermark}, {"base": base, "rows": self._rows.dump(), **parts})

    @classmethod
    def load(
        cls, feed: Feed, queries: Sequence[RegisteredQuery], data: bytes, load: Callable[[Sequence[RegisteredQuery], bytes], Any]
    ) -> GraphEvaluator:
        """The evaluator that was dumped, under the same queries. Raises
        ValueError when they are others."""
        if not data.startswith(_MAGIC):
            evaluator = cls(feed, load(_plain(queries), data), queries)
            if evaluator.derived:
                raise ValueError("the state is that of other queries")
            return evaluator
        facts, parts = unpack(data[len(_MAGIC) :])
        evaluator = cls(feed, load(_plain(queries), parts["base"]), queries)
        names = {f"query {one.query.id} {one.query.version}": one for one in evaluator.derived}
        if names.keys() != parts.keys() - {"base", "rows"}:
            raise ValueError("the state is that of other queries")
        for name, one in names.items():
            one.restore(parts[name])
        evaluator._rows, evaluator._watermark = _Rows.load(feed, parts["rows"]), facts["watermark"]
        return evaluator

    # -- watching ----------------------------------------------------------------------------------

    def counters(self) -> dict[str, dict[str, int]]:
        found: dict[str, Counter[str]] = {name: Counter(work) for name, work in self.base.counters().items()}
        for one in self.derived:
            for name, work in one.counters().items():
                found.setdefault(name, Counter()).update(work)
        return {name: dict(work) for name, work in found.items()}

    @property
    def rows_kept(self) -> int:
        return int(self.base.rows_kept) + (len(self._rows) if self._rows is not None else 0)

    def check(self) -> None:
        """Asserts the invariants of all states; for tests."""
        self.base.check()
        for one in self.derived:
            one.check()

    def close(self) -> None:
        if hasattr(self.base, "close"):
            self.base.close()


def _plain(queries: Sequence[RegisteredQuery]) -> list[RegisteredQuery]:
    """Those that derive nothing."""
    return [query for query in queries if not query.sources]
