"""Spark tasks that prefer executors by name, for which PySpark has no call.

`SparkContext.makeRDD` of the JVM takes preferred locations, as Spark's own Kafka source gives them;
`executor_<host>_<id>` names one executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from pyspark import RDD
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.sql import SparkSession

from engine.runtime.placement import Executor

Answer = TypeVar("Answer")
_PICKLE: Any = CPickleSerializer()
_BATCHED: Any = BatchedSerializer(_PICKLE)  # type: ignore[no-untyped-call]


class Tasks:
    """Runs tasks at the executors of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        jvm: Any = self._context._jvm
        # Looked up once: every dot is a question to the JVM.
        self._list, self._pair, self._seq = jvm.java.util.ArrayList, jvm.scala.Tuple2, jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._from = jvm.org.apache.spark.api.java.JavaRDD.fromRDD
        self._bytes = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").apply(jvm.java.lang.Class.forName("[B"))
        self._scala: Any = self._context._jsc.sc()

    def executors(self) -> list[Executor]:
        """As places that tasks may prefer, sorted; none in one JVM, whose workers cannot be
        named."""
        hosts = {address.rpartition(":")[0] for address in self._scala.getExecutorMemoryStatus().keys().mkString(" ").split()}
        scheduler = self._scala.taskScheduler()
        alive = {host: scheduler.getExecutorsAliveOnHost(host) for host in hosts}
        return sorted(f"executor_{host}_{one}" for host, some in alive.items() if some.isDefined() for one in some.get().mkString(" ").split())

    def run(self, act: Callable[[Iterable[Any]], Iterable[Answer]], given: Sequence[tuple[Executor | None, Any]]) -> list[Answer]:
        """The results of `act` for each of `given`, one task each, at its executor if there is
        one. Raises Spark's errors."""
        rows = self._list()
        for place, one in given:
            wanted = self._list()
            if place is not None:
                wanted.add(place)
            rows.add(self._pair(_PICKLE.dumps([one]), self._seq(wanted)))
        made: Any = self._from(self._scala.makeRDD(self._seq(rows), self._bytes), self._bytes)
        rdd: RDD[Any] = RDD(made, self._context, _BATCHED)
        return rdd.mapPartitions(act).collect()
