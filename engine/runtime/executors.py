"""The evaluator spread over Spark's workers: the same partitions as in one process, one task each, their states in files.

    rows --repartitionById(home of the entity)--> keyed task --repartitionById(home of the route)--> relational task --> changes

A task loads the state of its partition from the folder of the last position, and writes the one after its rows into the next folder, under a
temporary name and renamed. A task that is tried again does the same over: nothing it wrote before is read. The folder has to be
reachable by all executors.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.failpoints import failpoint
from engine.model.batch import CLOCK, SEQ, TIME
from engine.model.changes import ANSWERS, answers
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import OperatorFailed, QueryStopped, RegisteredQuery
from engine.runtime.container import table_bytes, table_from
from engine.runtime.evaluator import Evaluator, Outcome, route_partitions
from engine.runtime.partitions import KeyedPartition, Plan, RelationalPartition, plan_of
from engine.runtime.processor import FeedProcessor
from engine.runtime.steps import bounded

MESSAGES = pa.schema([("home", pa.int32()), ("kind", pa.string()), ("name", pa.string()), ("payload", pa.binary())])
"""What tasks send: tables as Arrow streams. `kind`: changes and emitted of the operator `name`, late, counts (JSON)."""
SPARK_MESSAGES = "home int, kind string, name string, payload binary"
FOLDERS_KEPT = 3

Message = tuple[int, str, str, bytes]


class ExecutorsEvaluator:
    """Like `Evaluator`, with the states in `folder`. Rows that are in the driver anyway (`process`) are evaluated in the driver.

    `position` and `last_t` are as in Evaluator.
    """

    def __init__(self, spark: SparkSession, feed: Feed, folder: Path, queries: Sequence[RegisteredQuery], partitions: int) -> None:
        self.spark, self.feed, self.folder, self.partitions = spark, feed, folder, partitions
        self.position = -1
        self.last_t: int | None = None
        self._reached: int | None = None
        self.state = ""
        self._kept: list[str] = []
        self._queries: list[RegisteredQuery] = []
        self._broadcast: Broadcast[Any] | None = None
        self._set_queries(queries)

    @classmethod
    def start(cls, spark: SparkSession, feed: Feed, folder: Path, queries: Sequence[RegisteredQuery], partitions: int) -> ExecutorsEvaluator:
        """Before any row."""
        evaluator = cls(spark, feed, folder, queries, partitions)
        evaluator._store(Evaluator.start(feed, queries, partitions))
        return evaluator

    @classmethod
    def load(cls, spark: SparkSession, feed: Feed, folder: Path, queries: Sequence[RegisteredQuery], data: bytes) -> ExecutorsEvaluator:
        """What was dumped. Raises ValueError when the states it names are not whole, or of other queries."""
        facts = json.loads(data)
        if facts["queries"] != [list(query.key) for query in queries]:
            raise ValueError("the state is that of other queries")
        evaluator = cls(spark, feed, folder, queries, facts["partitions"])
        evaluator.position, evaluator.last_t, evaluator._reached = facts["position"], facts["last_t"], facts["reached"]
        evaluator.state = facts["state"]
        evaluator._kept = [evaluator.state]
        for name in evaluator._files():
            if not (folder / evaluator.state / name).exists():
                raise ValueError(f"the state of {name} is missing")
        evaluator._sweep()
        return evaluator

    def dump(self) -> bytes:
        """Where the states are, and what they belong to: the states themselves are on disk already."""
        self._kept = [*self._kept, self.state][-FOLDERS_KEPT:]
        self._sweep()
        facts = {"state": self.state, "position": self.position, "last_t": self.last_t, "reached": self._reached, "partitions": self.partitions}
        return json.dumps(facts | {"queries": [list(query.key) for query in self._queries]}).encode()

    def skip_to(self, position: int) -> None:
        self.position = position

    @property
    def watermark(self) -> int | None:
        return None if self._reached is None else self._reached - self.feed.lateness

    # -- rows ---------------------------------------------------------------------------------------------------------------------

    def process(self, stamped: pa.Table) -> Outcome:
        """Rows that are in the driver: a replay, or what Spark has not delivered yet."""
        local = self.local()
        outcome = local.process(stamped)
        self._store(local)
        return outcome

    def process_frame(self, frame: DataFrame, last_seq: int, newest: int) -> Outcome:
        """The rows of `frame`, which follow those before without a gap up to `last_seq`; `newest` is the greatest `t` and clock among them.

        Raises QueryStopped, OperatorFailed; the evaluator is of no more use then.
        """
        self._reached = newest if self._reached is None else max(self._reached, newest)
        following = uuid.uuid4().hex
        (self.folder / following).mkdir(parents=True)
        outcome = self._outcome(self._tasks(frame, following).toArrow())
        self.state, self.position = following, last_seq
        return outcome

    def _tasks(self, frame: DataFrame, following: str) -> DataFrame:
        count, watermark = self.partitions, self.watermark
        assert watermark is not None
        work = _Work(self.feed, str(self.folder / self.state), str(self.folder / following), count, watermark, self._broadcast)
        home = F.expr(f"cast(crc32(cast(entity as binary)) % {count} as int)")
        columns = stamped_schema(self.feed).names
        messages = frame.select(*columns).repartitionById(count, home).mapInArrow(work.keyed, SPARK_MESSAGES)
        if not any(run.operator.relational is not None for run in self._plan.values()):
            return messages
        return messages.repartitionById(count, F.col("home")).mapInArrow(work.relational, SPARK_MESSAGES)

    def _outcome(self, messages: pa.Table) -> Outcome:
        plan = self._plan
        changes, late = [ANSWERS.empty_table()], [pa.Table.from_batches([], stamped_schema(self.feed))]
        counts = {"processed": 0, "duplicates": 0}
        for kind, name, payload in zip(*(messages.column(i).to_pylist() for i in (1, 2, 3)), strict=True):
            _raise_fault(kind, name, payload)
            if kind == "changes":
                batch = table_from(payload).combine_chunks().to_batches()[0]
                changes.append(answers(batch, *plan[name].keys))
            elif kind == "late":
                late.append(table_from(payload))
            elif kind == "counts":
                facts = json.loads(payload)
                counts = {key: counts[key] + facts[key] for key in counts}
                if facts["last_t"] is not None:
                    self.last_t = facts["last_t"] if self.last_t is None else max(self.last_t, facts["last_t"])
        return Outcome(pa.concat_tables(changes), pa.concat_tables(late), counts["processed"], counts["duplicates"], self.watermark)

    # -- queries ------------------------------------------------------------------------------------------------------------------

    def beside(self, queries: Sequence[RegisteredQuery]) -> _Beside:
        """An evaluator that reads history for `queries`, to be joined by `register`.

        It evaluates the running ones too: entity codes are given out by the executors, so states of one evaluator cannot be read with
        those of another, and the newcomer's states replace the old ones. They are equal, being made of the same rows.
        """
        return _Beside(self.feed, [*self._queries, *queries], {query.key for query in queries}, self.partitions)

    def register(self, queries: Sequence[RegisteredQuery], caught_up: _Beside | None = None) -> None:
        """As Evaluator.register."""
        local = self.local() if caught_up is None else caught_up.inner
        if local.position != self.position:
            raise ValueError(f"the evaluator to be joined stands at row {local.position}, not {self.position}")
        local.register(queries)
        self._set_queries(queries)
        self._store(local)

    def _set_queries(self, queries: Sequence[RegisteredQuery]) -> None:
        self._queries = list(queries)
        self._plan = plan_of(self._queries, self.feed, self.partitions)
        if self._broadcast is not None:
            self._broadcast.unpersist()
        self._broadcast = self.spark.sparkContext.broadcast((uuid.uuid4().hex, self.feed, self._queries, self.partitions))

    # -- states -------------------------------------------------------------------------------------------------------------------

    def _files(self) -> list[str]:
        return [f"{stage}-{p}" for stage in ("keyed", "relational") for p in range(self.partitions)]

    def local(self) -> Evaluator:
        """The whole of it in this process."""
        folder = self.folder / self.state
        keyed = [KeyedPartition.load(self.feed, self._plan, (folder / f"keyed-{p}").read_bytes()) for p in range(self.partitions)]
        relational = [RelationalPartition.load(self._plan, (folder / f"relational-{p}").read_bytes()) for p in range(self.partitions)]
        local = Evaluator(self.feed, keyed, relational)
        local.position, local.last_t, local._reached = self.position, self.last_t, self._reached
        return local

    def _store(self, local: Evaluator) -> None:
        following = uuid.uuid4().hex
        (self.folder / following).mkdir(parents=True)
        for p, (keyed, relational) in enumerate(zip(local._keyed, local._relational, strict=True)):
            _write(self.folder / following / f"keyed-{p}", keyed.dump())
            _write(self.folder / following / f"relational-{p}", relational.dump())
        self.state = following
        self.position, self.last_t, self._reached = local.position, local.last_t, local._reached

    def _sweep(self) -> None:
        """Removes the states that neither a kept dump nor the next batch needs."""
        for path in self.folder.iterdir():
            if path.name not in {*self._kept, self.state}:
                shutil.rmtree(path, ignore_errors=True)


class _Beside:
    """A local evaluator of all queries that states only what the new ones find."""

    def __init__(self, feed: Feed, queries: Sequence[RegisteredQuery], fresh: set[tuple[str, int]], partitions: int) -> None:
        self.inner = Evaluator.start(feed, queries, partitions)
        self._fresh = pa.array([f"{query} {version}" for query, version in fresh])

    @property
    def position(self) -> int:
        return self.inner.position

    def skip_to(self, position: int) -> None:
        self.inner.skip_to(position)

    def process(self, stamped: pa.Table) -> Outcome:
        outcome = self.inner.process(stamped)
        keys = pc.binary_join_element_wise(outcome.changes.column("query"), pc.cast(outcome.changes.column("version"), pa.string()), " ")
        fresh = outcome.changes.filter(pc.is_in(keys, self._fresh))
        return Outcome(fresh, outcome.late, outcome.processed, outcome.duplicates, outcome.watermark)


class ExecutorsProcessor(FeedProcessor):
    """A FeedProcessor whose batches are evaluated by Spark's workers."""

    def __init__(self, spark: SparkSession, *arguments: Any, **options: Any) -> None:
        self.spark = spark
        super().__init__(*arguments, **options)

    @property
    def _folder(self) -> Path:
        folder = self.snapshots.folder.parent / "executors"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _begin(self, queries: Sequence[RegisteredQuery]) -> Any:
        return ExecutorsEvaluator.start(self.spark, self.feed, self._folder, queries, self.partitions)

    def _load(self, queries: Sequence[RegisteredQuery], data: bytes) -> Any:
        return ExecutorsEvaluator.load(self.spark, self.feed, self._folder, queries, data)

    def _evaluate(self, delivered: Any) -> list[Outcome]:
        position = self.evaluator.position
        frame: DataFrame = delivered
        new = frame.where(F.col(SEQ) > position)
        summary = new.agg(F.min(SEQ), F.max(SEQ), F.count(SEQ), F.max(TIME), F.max(CLOCK)).toArrow()
        first, last, count, newest, clock = summary.to_pylist()[0].values()
        if count == 0:
            return []
        if first != position + 1 or last - first + 1 != count:
            # Rows that Spark has not listed yet, or twice: the driver puts them in order.
            return super()._evaluate(delivered)
        evaluator: Any = self.evaluator
        return [bounded(evaluator.process_frame(new, last, max(value for value in (newest, clock) if value is not None)), count)]


class _Work:
    """What the tasks of one batch do. Travels to the workers."""

    def __init__(self, feed: Feed, before: str, after: str, partitions: int, watermark: int, queries: Any) -> None:
        self.feed, self.before, self.after, self.partitions, self.watermark, self.queries = feed, before, after, partitions, watermark, queries

    def keyed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        p = _partition()
        rows = _gathered(batches, stamped_schema(self.feed)).sort_by(SEQ)
        try:
            part = KeyedPartition.load(self.feed, self._plan(), Path(self.before, f"keyed-{p}").read_bytes())
            output = part.take(rows, self.watermark)
        except (QueryStopped, OperatorFailed) as fault:
            yield _message_batch([_fault(p, fault)])
            return
        failpoint("executor.before_state")
        _write(Path(self.after, f"keyed-{p}"), part.dump())
        if not any(run.operator.relational is not None for run in part.plan.values()):
            shutil.copyfile(Path(self.before, f"relational-{p}"), Path(self.after, f"relational-{p}"))
        admitted = output.admitted
        newest = pc.max(admitted.accepted.column(TIME)).as_py() if admitted.accepted.num_rows else None
        counts = {"processed": admitted.accepted.num_rows, "duplicates": admitted.duplicates, "last_t": newest}
        messages: list[Message] = [(p, "counts", "", json.dumps(counts).encode())]
        if admitted.late.num_rows:
            messages.append((p, "late", "", table_bytes(admitted.late)))
        messages += [(p, "changes", name, _bytes(changes)) for name, changes in output.changes.items() if changes.num_rows]
        for name, emitted in output.emitted.items():
            homes = route_partitions(emitted, self.partitions)
            messages += [(h, "emitted", name, _bytes(emitted.filter(pa.array(homes == h)))) for h in range(self.partitions) if (homes == h).any()]
        yield _message_batch(messages)

    def relational(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        p = _partition()
        rows = _gathered(batches, MESSAGES)
        passed: list[Message] = []
        emitted: dict[str, list[pa.RecordBatch]] = {}
        for home, kind, name, payload in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if kind == "emitted":
                emitted.setdefault(name, []).extend(table_from(payload).combine_chunks().to_batches())
            else:
                passed.append((home, kind, name, payload))
        try:
            part = RelationalPartition.load(self._plan(), Path(self.before, f"relational-{p}").read_bytes())
            found = part.take(emitted, self.watermark)
        except (QueryStopped, OperatorFailed) as fault:
            yield _message_batch([*passed, _fault(p, fault)])
            return
        _write(Path(self.after, f"relational-{p}"), part.dump())
        passed += [(p, "changes", name, _bytes(changes)) for name, changes in found.items() if changes.num_rows]
        yield _message_batch(passed)

    def _plan(self) -> Plan:
        return _plan_of(self.queries)


def _fault(partition: int, fault: QueryStopped | OperatorFailed) -> Message:
    """What broke off a task, for the driver: an exception would reach it as a text of Spark's, after three more tries."""
    if isinstance(fault, QueryStopped):
        return (partition, "stopped", "", json.dumps([*fault.key, fault.reason]).encode())
    return (partition, "failed", fault.name, fault.reason.encode())


def _raise_fault(kind: str, name: str, payload: bytes) -> None:
    """The fault of a message made by `_fault`; nothing for other kinds."""
    if kind == "stopped":
        query, version, reason = json.loads(payload)
        raise QueryStopped((query, version), reason)
    if kind == "failed":
        raise OperatorFailed(name, payload.decode())


_PLANS: dict[str, Plan] = {}


def _plan_of(queries: Any) -> Plan:
    """Compiled once in each worker: workers are used again for the batches to come."""
    key, feed, registered, partitions = queries.value
    if key not in _PLANS:
        _PLANS.clear()
        _PLANS[key] = plan_of(registered, feed, partitions)
    return _PLANS[key]


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _gathered(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """All rows of a task. Spark knows more than `schema` says (a filtered column holds no null), and says it in the schema."""
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches], schema)


def _bytes(batch: pa.RecordBatch) -> bytes:
    return table_bytes(pa.Table.from_batches([batch]))


def _message_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    columns = list(zip(*messages, strict=True)) or [()] * len(MESSAGES)
    return pa.RecordBatch.from_arrays([pa.array(column, kind) for column, kind in zip(columns, MESSAGES.types, strict=True)], schema=MESSAGES)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
