"""Spark around the evaluator: the session, and the streaming query whose micro-batches
drive all feeds of a job.

Exactly-once does not rest on Spark: which rows come next is a fact of the log and of the
head row in the database.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from engine.runtime import spark_classes

logger = logging.getLogger(__name__)

MICRO_BATCH_S = 300.0
"""The length of a micro-batch, as in Spark's real-time mode: between two of them Spark
takes 100 ms when warm and a second in a JVM's first minute (offsets, planning, the
commit), and all rows would wait."""
JVM_OPTIONS = [
    "-XX:+UseSerialGC", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=25", "-XX:ReservedCodeCacheSize=96m", "-XX:MaxDirectMemorySize=512m",
    "-Xss1m",
]  # fmt: skip
DRIVER_OPTIONS = [*JVM_OPTIONS, "-XX:CICompilerCount=2"]
EXECUTOR_OPTIONS = [*JVM_OPTIONS, "-XX:TieredStopAtLevel=1"]
"""An executor's JVM does little but pass on what Python sends. With both compilers two of them took
6.3 s of processor time a million rows in the first three million rows and 0.44 s in the next; with
the first compiler alone 1.3 s and 0.29 s."""
PROJECT = Path(__file__).resolve().parents[2]
SOCKET_PATH_BYTES = 103
"""The longest path of a Unix socket: 107 bytes on Linux, 103 on macOS."""
SOCKET_NAME_BYTES = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def settings(cores: int, *, memory: str = "1g") -> dict[str, str]:
    """Spark's configuration for one machine, measured where a reason is given."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Clients of the driver's ports need a secret on this machine too; on one
        # machine Spark makes it up.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.driver.memory": memory,
        # The heap is small and batches are short; the default would take a heap's share of
        # every core for collecting. What the heap does not need between batches goes back; code
        # and threads are bounded too.
        "spark.driver.extraJavaOptions": " ".join([*DRIVER_OPTIONS, *spark_classes.reading()]),
        "spark.executor.extraJavaOptions": " ".join([*EXECUTOR_OPTIONS, *spark_classes.reading()]),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.python.unix.domain.socket.enabled": "true",
        # A batch of 1,000 rows in 79 ms instead of 136 ms.
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        # Without a second file of check sums for each of the checkpoint's small ones: a damaged
        # checkpoint is replaced, never trusted.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        "spark.sql.streaming.metricsEnabled": "false",
        # A Python worker without a sign of life for this long hangs: it is
        # killed, and its task retried.
        "spark.sql.execution.pyspark.udf.idleTimeoutSeconds": "240",
        "spark.sql.execution.pyspark.udf.killOnIdleTimeout": "true",
        "spark.cleaner.periodicGC.interval": "15min",
        # An executor has one core, so one Python worker: a state that was made there is found
        # there. A task waits for its executor while that has others of the same batch to do;
        # elsewhere it would have to begin at the last snapshot.
        "spark.executor.cores": "1",
        "spark.locality.wait": "10s",
    }


def reached_at(host: str, secret: str) -> dict[str, str]:
    """Settings of a driver that workers on other machines reach as `host`, if they know the secret.
    Raises ValueError without one."""
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
    """This machine alone, four tries a task: with a single one a killed Python
    worker ended the whole query."""
    return f"local[{cores},4]"


def local_cluster(executors: int, folder: Path, *, memory_mb: int = 512) -> tuple[str, dict[str, str]]:
    """The master and its settings of a cluster on this machine: so many executors, each a process
    with one core and so one Python worker, which keeps the states of its partitions. `folder` is
    for their other files."""
    os.environ.update(SPARK_WORKER_DIR=str(folder))
    extra = {
        **sockets_in(folder),
        "spark.authenticate.secret": secrets.token_hex(16),
        "spark.executor.memory": f"{memory_mb}m",
    }
    return f"local-cluster[{executors},1,{memory_mb + 512}]", extra


def sockets_in(folder: Path) -> dict[str, str]:
    """Settings of a session on this machine whose sockets between JVMs and Python are below
    `folder`, or in the folder for temporary files if their paths would be too long there.

    Spark's default is the folder for temporary files itself, where the sockets of killed processes
    stay. Here the next session clears them.
    """
    place = folder.absolute() / "sockets"
    if len(os.fsencode(place)) + SOCKET_NAME_BYTES > SOCKET_PATH_BYTES:
        place = Path(tempfile.gettempdir()) / f"vedette-sockets-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, mode=0o700)
    return {"spark.python.unix.domain.socket.dir": str(place)}


def session(name: str, *, cores: int, master: str | None = None, memory: str = "1g", extra: Mapping[str, str] | None = None) -> SparkSession:
    """The process's session: on this machine, or on the cluster `master`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "spark.driver.host" not in (extra or {}):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers import this package too, from any folder that the program was started in.
    paths = [str(PROJECT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    builder: Any = SparkSession.builder.appName(name).master(master or local_master(cores))
    for key, value in {**settings(cores, memory=memory), "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"], **(extra or {})}.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


def jvm_ended(spark: SparkSession) -> bool:
    """Whether the session's JVM has ended: this process can then never use Spark again."""
    gateway: Any = spark.sparkContext._gateway
    return gateway is None or gateway.proc.poll() is not None


class LogStream:
    """The one streaming query of a job. In each of its micro-batches `take` evaluates what the logs
    have, and what comes meanwhile.

    Spark does not choose the rows (decision 21): `take` finds what each log has beyond the stored
    rows. So Spark's checkpoint may be empty at each start, and its source does nothing but count.
    `take` gets the length of the micro-batch; what it raises ends the query.
    """

    def __init__(self, spark: SparkSession, folder: Path, take: Callable[[float], None]) -> None:
        """`folder` is for Spark's checkpoint and nothing else."""
        self.spark, self.folder, self.take = spark, folder, take
        self.error: BaseException | None = None
        self.query: StreamingQuery | None = None

    def start(self) -> None:
        """Begins with an empty checkpoint and a micro-batch at once."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.error = None
        source = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()
        self.query = (
            source.writeStream.queryName("feeds").foreachBatch(self._batch).option("checkpointLocation", str(self.folder / uuid.uuid4().hex)).start()
        )

    def _batch(self, frame: DataFrame, batch: int) -> None:
        try:
            self.take(MICRO_BATCH_S)
        except BaseException as error:
            # Kept: Spark gives its callers only a text.
            self.error = error
            raise

    @property
    def alive(self) -> bool:
        return self.query is not None and self.query.isActive

    def failure(self) -> str:
        """Why the query ended, in one line."""
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        reason = self.query.exception() if self.query is not None else None
        return str(reason).splitlines()[0] if reason is not None else "the streaming query ended"

    def stop(self) -> None:
        """Ends the query. The caller makes sure that `take` returns."""
        if self.query is not None and self.query.isActive:
            try:
                self.query.stop()
            except PySparkException:
                logger.warning("the streaming query did not stop in time")
        self.query = None
        shutil.rmtree(self.folder, ignore_errors=True)
