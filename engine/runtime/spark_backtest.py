"""`backtest --runtime spark`: a file through the executors placement, partition by partition, as a job on a cluster evaluates it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from engine.model.batch import SEQ
from engine.model.changes import ANSWERS
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator, Outcome, reached
from engine.runtime.executors import ExecutorsEvaluator
from engine.runtime.spark import session
from engine.sources.segments import Segment

BATCH_ROWS = 500_000
"""Rows of one Spark job: its fixed cost of a fifth of a second is then small beside its work."""


class SparkEvaluator:
    """An `engine.runtime.local.Runtime` whose rows are evaluated by Spark's workers. `close` ends the session it started."""

    def __init__(self, spark: SparkSession, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int, *, own_session: bool) -> None:
        self.spark, self.feed, self.own_session = spark, feed, own_session
        self.folder = Path(tempfile.mkdtemp(prefix="vedette-backtest-"))
        self.spread = ExecutorsEvaluator.start(spark, feed, self.folder / "state", queries, partitions)
        self._held: list[pa.Table] = []
        self._local: Evaluator | None = None

    @classmethod
    def start(cls, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int = 1, *, spark: SparkSession | None = None) -> SparkEvaluator:
        """Over a session of its own unless one is given."""
        cores = min(os.cpu_count() or 1, 8)
        return cls(spark or session("vedette-backtest", cores=cores), feed, queries, max(partitions, 1), own_session=spark is None)

    def process(self, stamped: pa.Table) -> Outcome:
        """Takes the rows; what they led to may be told by a later call."""
        self._held.append(stamped)
        if sum(table.num_rows for table in self._held) < BATCH_ROWS:
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
            self.spark.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _whole(self) -> Evaluator:
        return self._local if self._local is not None else self.spread.local()

    def _evaluate(self) -> Outcome:
        held, self._held = [table for table in self._held if table.num_rows], []
        if not held:
            return self._nothing()
        rows = pa.concat_tables(held, promote_options="permissive")
        folder = self.folder / f"rows-{self.spread.position + 1}"
        folder.mkdir()
        share = -(-rows.num_rows // self.spread.partitions)
        for begin in range(0, rows.num_rows, share):
            piece = rows.slice(begin, share)
            name = Segment.name(piece.column(SEQ)[0].as_py(), piece.num_rows, reached(rows.slice(0, begin + share), None))
            pq.write_table(piece, folder / name, compression="none")
        outcome = self.spread.process_segments(self.spark.read.format("binaryFile").load(str(folder)))
        shutil.rmtree(folder)
        return outcome

    def _nothing(self) -> Outcome:
        return Outcome(ANSWERS.empty_table(), pa.Table.from_batches([], stamped_schema(self.feed)), 0, 0, self.spread.watermark)
