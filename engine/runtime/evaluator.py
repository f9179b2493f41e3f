"""The whole of a feed in one process: gate, partitions, and the operators of all queries.

Rows enter stamped and in order of `seq`; the watermark is that of the feed, the same for all partitions, so neither the partitions nor the sizes of
batches can be seen in the answers.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.families import family_of
from engine.model.batch import ENTITY, SEQ, TIME, Batch, EntityDictionary
from engine.model.changes import ANSWERS, answers
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import ROUTE, Delivery, Operator, RegisteredQuery, Stage
from engine.runtime.blobs import pack, pack_rows, unpack, unpack_rows
from engine.runtime.gate import Gate, Reorderer, empty_batch, int64s, merged

STATE_VERSION = 1


@dataclass(frozen=True)
class Outcome:
    """What became of some rows: changes in the ANSWERS schema, late rows as they came (stamped), counts, the watermark after them.

    `processed` counts accepted events; heartbeats are counted nowhere. `watermark` is null before any row.
    """

    changes: pa.Table
    late: pa.Table
    processed: int
    duplicates: int
    watermark: int | None


@dataclass
class _Running:
    """One operator with the queries that it evaluates, and its states: one for each partition."""

    operator: Operator[Any]
    queries: list[RegisteredQuery]
    index: Any
    keyed: list[Any]
    relational: list[Any]

    @classmethod
    def begin(cls, operator: Operator[Any], queries: list[RegisteredQuery], feed: Feed, partitions: int) -> _Running:
        index = operator.compile(queries, feed)
        keyed = [operator.keyed.initial(index) for _ in range(partitions)]
        stage = operator.relational
        return cls(operator, queries, index, keyed, [stage.initial(index) for _ in range(partitions)] if stage else [])

    def answers(self, changes: pa.RecordBatch) -> pa.Table:
        return answers(changes, [query.id for query in self.queries], [query.version for query in self.queries])

    @property
    def states(self) -> Iterator[tuple[Stage[Any, Any], Any]]:
        for state in self.keyed:
            yield self.operator.keyed, state
        if self.operator.relational is not None:
            for state in self.relational:
                yield self.operator.relational, state


@dataclass
class _Partitions:
    """How entities and routes are spread. Shared by evaluators whose states may be joined: codes of entities agree."""

    count: int
    keyed: list[EntityDictionary] = field(default_factory=list)
    relational: list[EntityDictionary] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keyed = self.keyed or [EntityDictionary() for _ in range(self.count)]
        self.relational = self.relational or [EntityDictionary() for _ in range(self.count)]

    def by_entity(self, rows: pa.RecordBatch) -> list[Batch]:
        """The rows of each keyed partition, in their order."""
        if self.count == 1:
            return [Batch(rows, self.keyed[0])]
        encoded = rows.column(ENTITY).dictionary_encode()
        # The entity's own bytes decide, so that every process and every restart spreads alike.
        homes = np.array([zlib.crc32(name.encode()) % self.count for name in encoded.dictionary.to_pylist()], np.int64)
        home = homes[encoded.indices.to_numpy(zero_copy_only=False)] if rows.num_rows else np.empty(0, np.int64)
        return [Batch(_where(rows, home == p), self.keyed[p]) for p in range(self.count)]

    def by_route(self, rows: pa.RecordBatch) -> list[Batch]:
        """The rows of each relational partition, in their order."""
        if self.count == 1:
            return [Batch(rows, self.relational[0])]
        mixed = int64s(rows, ROUTE).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        home = (mixed >> np.uint64(32)) % np.uint64(self.count)
        return [Batch(_where(rows, home == np.uint64(p)), self.relational[p]) for p in range(self.count)]


class Evaluator:
    """All queries of one feed. Begin with `start` or `load`; `process` takes the log's rows in order of `seq`.

    `position` is the seq of the last row taken (-1: none yet).
    """

    def __init__(self, feed: Feed, partitions: _Partitions) -> None:
        self.feed = feed
        self.position = -1
        self._partitions = partitions
        self._gate = Gate(feed)
        self._reorderer = Reorderer(feed)
        self._running: list[_Running] = []
        self._last_t: int | None = None
        self._stepped: int | None = None

    @classmethod
    def start(cls, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int = 1) -> Evaluator:
        """An evaluator before any row. `queries` are checked; several queries of one id need different versions."""
        return cls(feed, _Partitions(partitions))._with(queries)

    def beside(self, queries: Sequence[RegisteredQuery]) -> Evaluator:
        """An evaluator before any row that reads history for `queries`, to be joined to this one by `register`; may run in another thread."""
        return Evaluator(self.feed, self._partitions)._with(queries)

    def _with(self, queries: Sequence[RegisteredQuery]) -> Evaluator:
        self._running = [_Running.begin(operator, mine, self.feed, self._partitions.count) for operator, mine in _by_operator(queries)]
        return self

    def skip_to(self, position: int) -> None:
        """The rows up to `position` exist no more: the next one to come follows it."""
        self.position = position

    @property
    def watermark(self) -> int | None:
        """The greatest `t` so far minus the lateness; null before any row."""
        return self._gate.watermark

    @property
    def last_t(self) -> int | None:
        """The greatest `t` of an accepted event; null before any."""
        return self._last_t

    @property
    def queries(self) -> list[RegisteredQuery]:
        return [query for running in self._running for query in running.queries]

    # -- rows ---------------------------------------------------------------------------------------------------------------------

    def process(self, stamped: pa.Table) -> Outcome:
        """Takes stamped rows that follow those before, in order of seq; missing columns are null."""
        passed = self._gate.take(_conformed(stamped, self.feed))
        if stamped.num_rows:
            self.position = stamped.column(SEQ)[-1].as_py()
        accepted = passed.accepted.select([name for name in passed.accepted.schema.names if name != "clock"])
        if accepted.num_rows:
            newest = int(int64s(accepted, TIME).max())
            self._last_t = newest if self._last_t is None else max(self._last_t, newest)
        self._reorderer.add(accepted)
        watermark = self._gate.watermark
        changes = [] if watermark is None else self._step(accepted, watermark)
        return Outcome(_concat(changes), passed.late, accepted.num_rows, passed.duplicates, watermark)

    def finish(self, until: int | None = None) -> Outcome:
        """The end of the input: all rows count, and timers fire up to the last accepted `t`, or to `until` if that is later.

        The evaluator takes no rows after this.
        """
        none = pa.Table.from_batches([], stamped_schema(self.feed))
        if self._last_t is None:
            return Outcome(ANSWERS.empty_table(), none, 0, 0, self.watermark)
        end = self._last_t if until is None else max(self._last_t, until)
        changes = self._step(empty_batch(self.feed), self._last_t)
        changes += self._step(empty_batch(self.feed), end + 1)
        return Outcome(_concat(changes), none, 0, 0, end)

    def _step(self, accepted: pa.RecordBatch, watermark: int) -> list[pa.Table]:
        ordered = self._reorderer.release(watermark)
        batches = {Delivery.ORDERED: self._partitions.by_entity(ordered), Delivery.ARRIVAL: self._partitions.by_entity(accepted)}
        moved = self._stepped is None or watermark > self._stepped
        self._stepped = watermark if self._stepped is None else max(watermark, self._stepped)
        stated: list[pa.Table] = []
        for running in self._running:
            stated += self._step_one(running, batches[running.operator.delivery], self._stepped, moved)
        return stated

    def _step_one(self, running: _Running, batches: list[Batch], watermark: int, moved: bool) -> list[pa.Table]:
        stated, emitted = [], []
        for p, batch in enumerate(batches):
            if moved or len(batch):
                output = running.operator.keyed.step(running.index, running.keyed[p], batch, watermark)
                running.keyed[p] = output.state
                stated.append(running.answers(output.changes))
                if output.emitted is not None and output.emitted.num_rows:
                    emitted.append(output.emitted)
        stage = running.operator.relational
        if stage is not None and (moved or emitted):
            for p, batch in enumerate(self._meeting(emitted)):
                output = stage.step(running.index, running.relational[p], batch, watermark)
                running.relational[p] = output.state
                stated.append(running.answers(output.changes))
        return stated

    def _meeting(self, emitted: list[pa.RecordBatch]) -> list[Batch]:
        if not emitted:
            return [Batch(empty_batch(self.feed), dictionary) for dictionary in self._partitions.relational]
        return self._partitions.by_route(merged(emitted))

    # -- queries that come and go -------------------------------------------------------------------------------------------------

    def register(self, queries: Sequence[RegisteredQuery], caught_up: Evaluator | None = None) -> None:
        """From the next row on `queries` run, and no others.

        Queries that run already go on. New ones take their state from `caught_up`, an evaluator made by `beside` that has taken the same rows;
        without it they begin here. Gives up `caught_up`. Raises ValueError when it stands elsewhere.
        """
        if caught_up is not None and (caught_up._partitions is not self._partitions or caught_up.position != self.position):
            raise ValueError(f"the evaluator to be joined must be made by beside() and stand at row {self.position}, not {caught_up.position}")
        mine = {id(running.operator): running for running in self._running}
        theirs = {id(running.operator): running for running in caught_up._running} if caught_up is not None else {}
        joined = []
        for operator, wanted in _by_operator(queries):
            parts = [known[id(operator)] for known in (mine, theirs) if id(operator) in known]
            joined.append(self._joined(operator, wanted, parts))
        self._running = joined

    def _joined(self, operator: Operator[Any], queries: list[RegisteredQuery], parts: list[_Running]) -> _Running:
        if not parts:
            return _Running.begin(operator, queries, self.feed, self._partitions.count)
        index = operator.compile(queries, self.feed)
        every = range(self._partitions.count)
        keyed = [operator.keyed.migrate(index, [(part.index, part.keyed[p]) for part in parts]) for p in every]
        stage = operator.relational
        relational = [stage.migrate(index, [(part.index, part.relational[p]) for part in parts]) for p in every] if stage else []
        return _Running(operator, queries, index, keyed, relational)

    # -- states -------------------------------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Everything that `load` needs to go on at `position`."""
        head = {
            "version": STATE_VERSION,
            "position": self.position,
            "partitions": self._partitions.count,
            "last_t": self._last_t,
            "stepped": self._stepped,
            "queries": [[query.id, query.version] for query in self.queries],
        }
        parts = {"head": json.dumps(head).encode(), "gate": self._gate.dump(), "waiting": self._reorderer.dump()}
        for p in range(self._partitions.count):
            parts[f"keyed {p}"] = _pack_names(self._partitions.keyed[p])
            parts[f"relational {p}"] = _pack_names(self._partitions.relational[p])
        for i, running in enumerate(self._running):
            for j, (stage, state) in enumerate(running.states):
                parts[f"state {i} {j}"] = stage.dump(running.index, state)
        return pack(parts)

    @classmethod
    def load(cls, feed: Feed, queries: Sequence[RegisteredQuery], data: bytes) -> Evaluator:
        """The evaluator that was dumped, under the same queries. Raises ValueError when they are others or the state is unusable."""
        parts = unpack(data)
        head = json.loads(parts["head"])
        if head["version"] != STATE_VERSION:
            raise ValueError(f"the state has version {head['version']}, this program reads {STATE_VERSION}")
        every = range(head["partitions"])
        dictionaries = ([_unpack_names(parts[f"{stage} {p}"]) for p in every] for stage in ("keyed", "relational"))
        evaluator = cls(feed, _Partitions(head["partitions"], *dictionaries))._with(queries)
        if [[query.id, query.version] for query in evaluator.queries] != head["queries"]:
            raise ValueError("the state is that of other queries")
        evaluator.position, evaluator._last_t, evaluator._stepped = head["position"], head["last_t"], head["stepped"]
        evaluator._gate, evaluator._reorderer = Gate.load(feed, parts["gate"]), Reorderer.load(feed, parts["waiting"])
        for i, running in enumerate(evaluator._running):
            states = [stage.load(running.index, parts[f"state {i} {j}"]) for j, (stage, _) in enumerate(running.states)]
            running.keyed, running.relational = states[: len(every)], states[len(every) :]
        return evaluator

    # -- watching -----------------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, dict[str, int]]:
        """For each operator, by its package's name, its work so far, summed over the partitions."""
        found: dict[str, dict[str, int]] = {}
        for running in self._running:
            total: Counter[str] = Counter()
            for stage, state in running.states:
                total.update(stage.counters(running.index, state))
            found[family_of(running.queries[0].specification).name] = dict(total)
        return found

    @property
    def rows_kept(self) -> int:
        """Rows and fingerprints that the runtime itself holds."""
        return len(self._reorderer) + self._gate.remembered

    def check(self) -> None:
        """Asserts the invariants of all states; for tests."""
        for running in self._running:
            for stage, state in running.states:
                stage.check(running.index, state)


def _by_operator(queries: Sequence[RegisteredQuery]) -> list[tuple[Operator[Any], list[RegisteredQuery]]]:
    """Operators in order of their first query, each with its queries in order."""
    found: dict[int, tuple[Operator[Any], list[RegisteredQuery]]] = {}
    for query in queries:
        operator = family_of(query.specification).operator()
        found.setdefault(id(operator), (operator, []))[1].append(query)
    return list(found.values())


def _conformed(rows: pa.Table, feed: Feed) -> pa.Table:
    """The feed's columns and stamps in their order; a column that is not there is null."""
    wanted = stamped_schema(feed)
    if rows.schema.equals(wanted):
        return rows
    names = set(rows.column_names)
    columns = [rows.column(f.name).cast(f.type) if f.name in names else pa.nulls(rows.num_rows, f.type) for f in wanted]
    return pa.Table.from_arrays(columns, schema=wanted)


def _where(rows: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    return rows.take(pa.array(np.flatnonzero(mask)))


def _concat(tables: list[pa.Table]) -> pa.Table:
    full = [table for table in tables if table.num_rows]
    return pa.concat_tables(full) if full else ANSWERS.empty_table()


def _pack_names(dictionary: EntityDictionary) -> bytes:
    return pack_rows(pa.RecordBatch.from_arrays([pa.array(dictionary.names, pa.string())], names=["name"]))


def _unpack_names(data: bytes) -> EntityDictionary:
    return EntityDictionary(unpack_rows(data).column(0).to_pylist())


def counters_of(family: str, counters: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    """The counters of the operator that evaluates `family`."""
    from engine.families import FAMILIES

    return counters.get(FAMILIES[family].name, {})
