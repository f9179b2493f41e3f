"""The evaluator spread over Spark's workers: the same partitions as in one process, one task each, their states in files.

    segments --> divided by entity --repartitionById--> keyed task --repartitionById--> relational task --> changes

The driver knows from the segments' names which rows they hold and how far the clock has come; what the tasks do is in `executors_tasks.py`. The
folder of the states has to be reachable by all executors.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.model.changes import ANSWERS, answers
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime import steps
from engine.runtime.container import table_from
from engine.runtime.continuity import continued
from engine.runtime.evaluator import Evaluator, Outcome
from engine.runtime.executors_tasks import SPARK_MESSAGES, Work, has_relational, raise_fault, rows_of, write
from engine.runtime.partitions import KeyedPartition, RelationalPartition, plan_of
from engine.runtime.processor import FeedProcessor
from engine.sources.segments import Gap, Segment, without_overlaps

FOLDERS_KEPT = 3


class ForTheDriver(RuntimeError):
    """Rows that the tasks cannot take as they were delivered, and why. Nothing has changed: the driver may take them step by step."""


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

    def process_segments(self, delivered: DataFrame, *, most_answers: int | None = None) -> Outcome:
        """The rows of whole segments of the log (`path`, `content`) that follow those before.

        Raises ForTheDriver when rows are missing among them, or when they have more than `most_answers`. Raises QueryStopped, OperatorFailed.
        """
        segments = self._following(delivered)
        if not segments:
            return Outcome(ANSWERS.empty_table(), pa.Table.from_batches([], stamped_schema(self.feed)), 0, 0, self.watermark)
        last, newest = segments[-1].next_seq - 1, segments[-1].max_t
        reached = newest if self._reached is None else max(self._reached, newest)
        following = uuid.uuid4().hex
        (self.folder / following).mkdir(parents=True)
        messages = self._tasks(delivered, following, reached - self.feed.lateness).toArrow()
        outcome, last_t = self._outcome(messages, reached - self.feed.lateness, last - self.position)
        if most_answers is not None and outcome.changes.num_rows > most_answers:
            raise ForTheDriver(f"rows {self.position + 1} to {last} have {outcome.changes.num_rows:,} answers")
        self.state, self.position, self.last_t, self._reached = following, last, last_t, reached
        return outcome

    def _following(self, delivered: DataFrame) -> list[Segment]:
        """The segments that have rows beyond `position`, in order. Raises ForTheDriver when those are not all rows that follow."""
        named = [Segment.parse(Path(path)) for path in delivered.select("path").toArrow().column("path").to_pylist()]
        try:
            segments = without_overlaps(segment for segment in named if segment.next_seq > self.position + 1)
        except Gap as gap:
            raise ForTheDriver(str(gap)) from None
        if segments and segments[0].first_seq > self.position + 1:
            raise ForTheDriver(f"rows {self.position + 1} to {segments[0].first_seq - 1} are missing")
        return segments

    def _tasks(self, segments: DataFrame, following: str, watermark: int) -> DataFrame:
        count = self.partitions
        before, after = str(self.folder / self.state), str(self.folder / following)
        work = Work(self.feed, before, after, count, self.position, watermark, self._broadcast)
        given = segments.select("path", "content")
        if count == 1:
            return given.coalesce(1).mapInArrow(work.whole, SPARK_MESSAGES)
        messages = given.mapInArrow(work.divided, SPARK_MESSAGES).repartitionById(count, F.col("home")).mapInArrow(work.keyed, SPARK_MESSAGES)
        if not has_relational(self._plan):
            return messages
        return messages.repartitionById(count, F.col("home")).mapInArrow(work.relational, SPARK_MESSAGES)

    def _outcome(self, messages: pa.Table, watermark: int, rows: int) -> tuple[Outcome, int | None]:
        """What the tasks say of so many rows, and `last_t` after them.

        Raises ForTheDriver when they saw another number, QueryStopped, OperatorFailed.
        """
        plan, last_t = self._plan, self.last_t
        changes, late = [ANSWERS.empty_table()], [pa.Table.from_batches([], stamped_schema(self.feed))]
        counts = {"rows": 0, "processed": 0, "duplicates": 0}
        for kind, name, payload in zip(*(messages.column(i).to_pylist() for i in (1, 2, 3)), strict=True):
            raise_fault(kind, name, payload)
            if kind == "changes":
                batch = table_from(payload).combine_chunks().to_batches()[0]
                changes.append(answers(batch, *plan[name].keys))
            elif kind == "late":
                late.append(table_from(payload))
            elif kind == "counts":
                facts = json.loads(payload)
                counts = {key: counts[key] + facts[key] for key in counts}
                last_t = max((t for t in (last_t, facts["last_t"]) if t is not None), default=None)
        if counts["rows"] != rows:
            raise ForTheDriver(f"{counts['rows']} rows of {rows} came")
        return Outcome(pa.concat_tables(changes), pa.concat_tables(late), counts["processed"], counts["duplicates"], watermark), last_t

    # -- queries ------------------------------------------------------------------------------------------------------------------

    def beside(self, queries: Sequence[RegisteredQuery]) -> _Beside:
        """An evaluator that reads history for `queries`, to be joined by `register`.

        It evaluates the running ones too: entity codes are given out by the executors, so states of one evaluator cannot be read with
        those of another, and the newcomer's states replace the old ones. They are equal, being made of the same rows.
        """
        fresh = {query.key for query in queries}
        return _Beside(self.feed, [*(query for query in self._queries if query.key not in fresh), *queries], fresh, self.partitions)

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
            write(self.folder / following / f"keyed-{p}", keyed.dump())
            write(self.folder / following / f"relational-{p}", relational.dump())
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

    takes_segments = True

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

    def process(self, checkpoint: int, batch: int, delivered: Any) -> None:
        """As FeedProcessor.process, of a frame of segments (`path`, `content`)."""
        super().process(checkpoint, batch, DeliveredSegments(delivered, self.feed))

    def _evaluate(self, delivered: Any) -> list[Outcome]:
        evaluator: Any = self.evaluator
        try:
            # A batch is longer than a step of the driver's. Which query finds too much in one step is the driver's to say, or it would depend on the
            # placement (decision 15).
            following = continued(self.log, evaluator.position, delivered.toArrow()) if evaluator.derived else ()
            return [evaluator.process_segments(delivered.segments, following, most_answers=steps.MOST_ANSWERS)]
        except ForTheDriver:
            return super()._evaluate(delivered)


class DeliveredSegments:
    """The rows of a frame of segments, for the driver."""

    def __init__(self, segments: DataFrame, feed: Feed) -> None:
        self.segments, self.feed = segments, feed

    def toArrow(self) -> pa.Table:
        """All of them in this process."""
        contents = self.segments.select("content").toArrow().column("content")
        none = pa.Table.from_batches([], stamped_schema(self.feed))
        return pa.concat_tables([none, *(rows_of(content.as_buffer(), self.feed, -1) for content in contents)])
