"""`backtest --runtime spark`: a file through Spark's workers, partition by partition, as a job
on a cluster evaluates it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from engine.model.batch import SEQ
from engine.model.changes import ANSWERS
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator, Outcome, reached
from engine.runtime.executors import ExecutorsEvaluator, PlanCache
from engine.runtime.processor import BATCH_ROWS
from engine.runtime.snapshots import StateFiles
from engine.runtime.spark import local_cluster, session
from engine.sources.buckets import write_rows
from engine.sources.eventlog import EventLog
from engine.sources.segments import Segment
from engine.sources.store import files_of

EXECUTORS = 8
"""More partitions than this share executors."""
SNAPSHOT_BATCHES = 8
"""After so many batches the states are written, and the rows before them go."""


class SparkEvaluator:
    """An `engine.runtime.local.Runtime` whose rows are evaluated by Spark's workers. `close`
    ends the session it started."""

    def __init__(self, spark: SparkSession, feed: Feed, folder: Path, spread: ExecutorsEvaluator, *, batch_rows: int, own: bool) -> None:
        self.spark, self.feed, self.folder, self.spread, self.batch_rows, self.own_session = spark, feed, folder, spread, batch_rows, own
        self._held: list[pa.Table] = []
        self._local: Evaluator | None = None
        self._batches = 0

    @classmethod
    def start(
        cls,
        feed: Feed,
        queries: Sequence[RegisteredQuery],
        partitions: int = 1,
        *,
        batch_rows: int | None = None,
        spark: SparkSession | None = None,
    ) -> SparkEvaluator:
        """Starts a cluster on this machine, with an executor for each partition, unless a session
        is given. Batches are as large as a job's."""
        folder, partitions = Path(tempfile.mkdtemp(prefix="vedette-backtest-")), max(partitions, 1)
        try:
            return cls._started(feed, queries, partitions, folder, batch_rows, spark)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @classmethod
    def _started(
        cls, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int, folder: Path, batch_rows: int | None, spark: SparkSession | None
    ) -> SparkEvaluator:
        own, executors = spark is None, min(partitions, EXECUTORS)
        if spark is None:
            master, extra = local_cluster(executors, folder / "work")
            spark = session("vedette-backtest", cores=1, master=master, extra=extra)
        log = EventLog(folder / "log", "rows")
        log.live.mkdir(parents=True)
        spread = ExecutorsEvaluator.start(PlanCache(spark), feed, log, StateFiles(files_of(folder / "state")), queries, partitions)
        return cls(spark, feed, folder, spread, batch_rows=batch_rows or BATCH_ROWS * executors, own=own)

    def process(self, stamped: pa.Table) -> Outcome:
        """Takes the rows; what they led to may be returned by a later call."""
        self._held.append(stamped)
        if sum(table.num_rows for table in self._held) < self.batch_rows:
            return self._nothing()
        return self._evaluate()

    def finish(self, until: int | None = None) -> Outcome:
        """The rest of the rows, and the end of the input as in Evaluator.finish."""
        rest = self._evaluate()
        self._local = self.spread.local()
        last = self._local.finish(until)
        return Outcome(pa.concat_tables([rest.changes, last.changes]), rest.late, rest.processed, rest.duplicates, last.watermark)

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        return self._whole().counters()

    @property
    def rows_kept(self) -> int:
        return self._whole().rows_kept

    @property
    def last_t(self) -> int | None:
        return self.spread.last_t

    def close(self) -> None:
        if self.own_session:
            # A signal may have ended a call to Java, and with it the connection.
            with suppress(Py4JError):
                self.spark.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _whole(self) -> Evaluator:
        return self._local if self._local is not None else self.spread.local()

    def _evaluate(self) -> Outcome:
        held, self._held = [table for table in self._held if table.num_rows], []
        if not held:
            return self._nothing()
        log, rows = self.spread.log, pa.concat_tables(held, promote_options="permissive")
        name = Segment.name(rows.column(SEQ)[0].as_py(), rows.num_rows, reached(rows, None))
        write_rows(log.live / name, rows)
        span = log.ahead(self.spread.position, rows.num_rows)
        assert span is not None
        outcome = self.spread.take(span)
        self._batches += 1
        if self._batches % SNAPSHOT_BATCHES == 0:
            self.spread.dump()
            for path in log.live.iterdir():
                path.unlink()
        return outcome

    def _nothing(self) -> Outcome:
        return Outcome(ANSWERS.empty_table(), pa.Table.from_batches([], stamped_schema(self.feed)), 0, 0, self.spread.watermark)
