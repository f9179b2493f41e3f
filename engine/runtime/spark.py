"""Spark around the evaluator: the session, and one streaming query for each feed over the segments of its log.

The driver evaluates (measured: 83 to 89 % of what Spark can deliver, 79 ms a small batch); `engine/runtime/executors.py` does it in Spark's workers
instead. Exactly-once does not rest on Spark's checkpoint: it says only which files come next, and may be thrown away (`generation`).
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from engine.model.batch import CLOCK, ENTITY, EVENT, SEQ, TIME, TIME_END, X, Y
from engine.model.feed import ColumnType, Feed
from engine.runtime.processor import CheckpointLost, FeedProcessor, Paused

logger = logging.getLogger(__name__)

MAX_BYTES = 8_000_000
"""Segments of one batch at most, by size: some 400,000 rows, or 1,700 segments of a few rows. Bounds the memory that a backlog needs, and
the time until the first of its answers is seen."""
ROLL_BATCHES = 5_000
"""After so many batches a streaming query starts anew with an empty checkpoint: Spark's list of files seen grows for ever, and is
rewritten every few batches."""
JVM_OPTIONS = [
    "-XX:+UseSerialGC", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=25", "-XX:ReservedCodeCacheSize=96m", "-XX:MaxDirectMemorySize=512m",
    "-XX:CICompilerCount=2", "-Xss1m",
]  # fmt: skip
PROJECT = Path(__file__).resolve().parents[2]
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
SPARK_TYPES: Mapping[ColumnType, T.DataType] = {
    ColumnType.STRING: T.StringType(),
    ColumnType.INT: T.LongType(),
    ColumnType.FLOAT: T.DoubleType(),
    ColumnType.BOOL: T.BooleanType(),
}

SEGMENTS = "path string, modificationTime timestamp, length bigint, content binary"
"""The columns of Spark's source of whole files."""


def settings(cores: int, *, memory: str = "1g") -> dict[str, str]:
    """Spark's configuration for one machine, measured where a reason is given."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Whoever reaches the driver's ports from this machine needs a secret too; on one machine Spark makes it up.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.driver.memory": memory,
        # The heap is small and batches are short; the default would take a heap's share of every core for collecting.
        # What the heap does not need between batches goes back; code and threads are bounded too.
        "spark.driver.extraJavaOptions": " ".join(JVM_OPTIONS),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.python.unix.domain.socket.enabled": "true",
        # A batch of 1,000 rows in 79 ms instead of 136 ms.
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        # Without a second file of check sums beside each of the checkpoint's small ones: a damaged checkpoint is replaced, never trusted.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        # A segment may be compacted between Spark's listing and its reading: what is missing is read from the log.
        "spark.sql.files.ignoreMissingFiles": "true",
        # An idle stream lists its folder this often; the default of 10 ms keeps a core busy with nothing.
        "spark.sql.streaming.pollingDelay": "50ms",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "20",
        # The list of seen files is listed in each batch. What is kept ten minutes, the default, made that a seventh of the JVM's work.
        "spark.sql.streaming.fileSource.log.cleanupDelay": "10s",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        "spark.sql.streaming.metricsEnabled": "false",
        # A Python worker that says nothing for so long hangs: it is ended, and its task tried again.
        "spark.sql.execution.pyspark.udf.idleTimeoutSeconds": "240",
        "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true",
        "spark.cleaner.periodicGC.interval": "15min",
    }


def reached_at(host: str, secret: str) -> dict[str, str]:
    """Settings of a driver that workers on other machines reach as `host`, if they know the secret. Raises ValueError without one."""
    if not secret:
        raise ValueError("a driver that other machines reach needs a secret (VEDETTE_SPARK_SECRET)")
    return {
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
    }


def local_master(cores: int) -> str:
    """This machine alone, four tries a task: with a single one a killed Python worker ended the whole query."""
    return f"local[{cores},4]"


def session(name: str, *, cores: int, master: str | None = None, memory: str = "1g", extra: Mapping[str, str] | None = None) -> SparkSession:
    """The process's session: on this machine, or on the cluster `master`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "spark.driver.host" not in (extra or {}):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers import this package too, from whatever folder the program was started in.
    paths = [str(PROJECT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    builder: Any = SparkSession.builder.appName(name).master(master or local_master(cores))
    for key, value in {**settings(cores, memory=memory), "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"], **(extra or {})}.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def jvm_ended(spark: SparkSession) -> bool:
    """Whether the session's JVM is gone: this process can then never use Spark again."""
    gateway: Any = spark.sparkContext._gateway
    return gateway is None or gateway.proc.poll() is not None


def spark_schema(feed: Feed) -> T.StructType:
    """The columns of the feed's log; segments that lack one give nulls."""
    core = [
        (EVENT, T.StringType()),
        (ENTITY, T.StringType()),
        (TIME, T.LongType()),
        (TIME_END, T.LongType()),
        (X, T.DoubleType()),
        (Y, T.DoubleType()),
    ]
    stamps = [(SEQ, T.LongType()), (CLOCK, T.LongType())]
    attributes = [(name, SPARK_TYPES[kind]) for name, kind in feed.columns.items()]
    return T.StructType([T.StructField(name, kind) for name, kind in [*core, *attributes, *stamps]])


class FeedStream:
    """The streaming query of one feed: hands its batches to the processor. `start` and `stop` may be called again."""

    def __init__(self, spark: SparkSession, processor: FeedProcessor, folder: Path, *, max_bytes: int = MAX_BYTES, trigger_ms: int = 0) -> None:
        """`folder` holds a checkpoint of Spark's for each generation; a batch has segments of at most `max_bytes`, and begins
        `trigger_ms` after the one before at the earliest."""
        self.spark, self.processor, self.folder, self.max_bytes, self.trigger_ms = spark, processor, folder, max_bytes, trigger_ms
        self.generation = processor.head.checkpoint
        self.error: BaseException | None = None
        self.query: StreamingQuery | None = None
        self._first_batch = 0

    def start(self, *, new_generation: bool = False) -> None:
        """Goes on where the checkpoint is, or with an empty one: then all live files are read again, stored rows left out."""
        if new_generation or self.generation == 0 or self.lost_checkpoint():
            self.generation = max(self.generation, self.processor.head.checkpoint) + 1
            # A start that died before its first batch was stored, or a removed feed of this name, may have left one.
            shutil.rmtree(self.folder / f"spark-{self.generation}", ignore_errors=True)
        self._first_batch, self.error = self.processor.batches, None
        for path in self.folder.glob("spark-*"):
            if path.name != f"spark-{self.generation}":
                shutil.rmtree(path, ignore_errors=True)
        self.processor.log.live.mkdir(parents=True, exist_ok=True)
        kind, schema = ("binaryFile", SEGMENTS) if self.processor.takes_segments else ("parquet", spark_schema(self.processor.feed))
        stream = (
            self.spark.readStream.format(kind)
            .schema(schema)
            .option("maxBytesPerTrigger", self.max_bytes)
            .option("maxFileAge", "1000d")
            .option("pathGlobFilter", "*.parquet")
            .load(str(self.processor.log.live))
        )
        self.query = (
            stream.writeStream.queryName(self.processor.feed.name)
            .foreachBatch(partial(self._take, self.generation))
            .trigger(processingTime=f"{self.trigger_ms} milliseconds")
            .option("checkpointLocation", str(self.folder / f"spark-{self.generation}"))
            .start()
        )

    def _take(self, generation: int, frame: DataFrame, batch: int) -> None:
        try:
            self.processor.process(generation, batch, frame)
        except Paused:
            raise
        except BaseException as error:
            # Kept: Spark tells its callers only a text.
            self.error = error
            raise

    @property
    def alive(self) -> bool:
        return self.query is not None and self.query.isActive

    def lost_checkpoint(self) -> bool:
        """Whether the checkpoint does not know the newest batch that is stored: it was removed, or is a copy from before. Spark would number its
        batches anew, and new rows would be taken for old ones until the numbers had come as far."""
        head = self.processor.head
        known = self.folder / f"spark-{self.generation}" / "offsets" / str(head.last_batch)
        return head.checkpoint == self.generation > 0 and head.last_batch >= 0 and not known.exists()

    def broken_checkpoint(self) -> bool:
        """Whether the query ended by itself before any batch of ours failed: its checkpoint cannot be read, the log can."""
        if isinstance(self.error, CheckpointLost):
            return True
        return not self.alive and self.error is None and (self.processor.batches == self._first_batch or self.lost_checkpoint())

    def failure(self) -> str:
        """Why the query ended, in one line."""
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        reason = self.query.exception() if self.query is not None else None
        return str(reason).splitlines()[0] if reason is not None else "the streaming query ended"

    def roll_if_due(self) -> None:
        """Begins a new generation when Spark's list of seen files has become long."""
        if self.alive and self.processor.batches - self._first_batch >= ROLL_BATCHES:
            with self.processor.pause():
                self.stop()
            self.start(new_generation=True)

    def stop(self) -> None:
        """Ends the query; a batch in the middle is done again at the next start."""
        if self.query is not None and self.query.isActive:
            try:
                self.query.stop()
            except PySparkException:
                logger.warning("the streaming query of %s did not stop in time", self.processor.feed.name)
        self.query = None
