"""The share of a job's possible rate that remains with operators: `python -m bench.spark_overhead
[--world garages] [--placement driver]`.

The same stream over the same files in turns: with an operator that does nothing, and with
the queries of a world. Prints rows/s of both (the first batch of each run left out) and
the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from bench.border_worlds import FEED, WORLDS, World, write_log
from engine.model.changes import ANSWERS
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Outcome
from engine.runtime.executors import ExecutorsProcessor
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.runtime.spark import LogStream, local_cluster, local_master, session
from engine.runtime.spark_tasks import Tasks
from engine.runtime.store import Commit, Head, QueryKey
from engine.sources.eventlog import EventLog, Span
from engine.sources.store import files_of
from webapp.platform.java import spark_environment

BATCH_ROWS = 1_000_000


class Memory:
    """A store that keeps the head and counts; committing costs nothing, so that the two runs
    differ only in their operators."""

    def __init__(self, queries: Sequence[RegisteredQuery]) -> None:
        self.head, self.wanted, self.answers = Head(1), list(queries), 0
        self.batches: list[tuple[float, int]] = []

    def open(self) -> Head:
        return self.head

    def version(self) -> int:
        return 1

    def queries(self, version: int) -> Sequence[RegisteredQuery]:
        return self.wanted

    def owns(self) -> bool:
        return True

    def recall(self, keys: Sequence[QueryKey]) -> Sequence[RegisteredQuery]:
        return []

    def prepare(self, changes: pa.Table) -> Sequence[int]:
        return [pc.sum(changes["weight"]).as_py() or 0]

    def commit(self, commit: Commit) -> bool:
        self.head = commit.head
        self.answers += sum(commit.changes)
        if commit.batch is not None:
            self.batches.append((time.monotonic(), commit.head.last_seq))
        return True

    def catching_up(self, queries: Sequence[str], read: int, rows: int) -> None:
        return

    def report_event(self, kind: str, text: str) -> None:
        logging.info("%s %s", kind, text)

    def rows_per_s(self) -> float:
        """From the end of the first batch, which warms everything up, to the end of the last.
        Raises ValueError when there was one alone."""
        if len(self.batches) < 2:
            raise ValueError("all rows came in one batch: nothing is left to measure")
        (start, first), (end, last) = self.batches[0], self.batches[-1]
        return (last - first) / (end - start)


def shared_session(cores: int = 2, *, separate: bool = False) -> SparkSession:
    """The one session of all that a run measures in Spark: in one JVM, or with this many separate
    executors. Started again when another number is needed. `end_session` ends it.
    """
    folder = Path(tempfile.gettempdir(), "vedette-bench-executors")
    master, extra = local_cluster(cores, folder) if separate else (local_master(cores), {})
    running = SparkSession.getActiveSession()
    if running is not None and running.sparkContext.master == master:
        return running
    end_session()
    os.environ.update(spark_environment())
    spark = session("bench", cores=cores, master=master, extra=extra)
    while separate and len(Tasks(spark).executors()) < cores:
        # One that came later would take partitions, and compile their queries,
        # while something is measured.
        time.sleep(0.1)
    return spark


def end_session() -> None:
    """Ends the session if there is one."""
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()


class NothingDone(FeedProcessor):
    """Takes the rows from the log and does nothing with them."""

    def _evaluate(self, span: Span) -> list[Outcome]:
        rows = sum(table.num_rows for table in self.log.all_between(span.first, span.stop))
        self.evaluator.position = span.stop - 1
        return [Outcome(ANSWERS.empty_table(), pa.Table.from_batches([], stamped_schema(FEED)), rows, 0, 0)]


def run(
    spark: Any, kind: type[FeedProcessor], log: EventLog, queries: Sequence[RegisteredQuery], partitions: int, *, feed: Feed = FEED,
    batch_rows: int = BATCH_ROWS
) -> Memory:  # fmt: skip
    """All of the log through a stream."""
    folder = Path(tempfile.mkdtemp(prefix="vedette-bench-"))
    store = Memory(queries)
    arguments = (spark,) if kind is ExecutorsProcessor else ()
    snapshots = Snapshots(files_of(folder / "state"))
    processor = kind(*arguments, feed, log, store, snapshots, partitions=partitions, batch_rows=batch_rows)  # type: ignore[arg-type, call-arg, misc]
    processor.follow()
    stream = LogStream(spark, folder / "stream", lambda seconds: _exhaust(processor))
    stream.start()
    try:
        while processor.head.last_seq < log.end[0] - 1:
            if not stream.alive:
                raise RuntimeError(stream.failure())
            time.sleep(0.02)
    finally:
        stream.stop()
        shutil.rmtree(folder)
    return store


def _exhaust(processor: FeedProcessor) -> None:
    while processor.process():
        pass


def measured(
    world: World, rows: int, placement: str, partitions: int, cores: int, rounds: int, *, batch_rows: int = BATCH_ROWS
) -> tuple[list[float], list[float], int]:  # fmt: skip
    """Rows/s without and with the operator, runs that take turns, and the answers of one run."""
    folder = Path(tempfile.mkdtemp(prefix="vedette-bench-"))
    log = EventLog(folder, FEED.name)
    write_log(log, rows, world)
    spark = shared_session(cores, separate=placement == "executors")
    queries = world.queries()
    kind = ExecutorsProcessor if placement == "executors" else FeedProcessor
    try:
        # Kernels compiled, JVM warm.
        run(spark, kind, log, queries, partitions, batch_rows=batch_rows)
        nothing, evaluated, answers = [], [], 0
        for _ in range(rounds):
            nothing.append(run(spark, NothingDone, log, [], 1, batch_rows=batch_rows).rows_per_s())
            found = run(spark, kind, log, queries, partitions, batch_rows=batch_rows)
            evaluated.append(found.rows_per_s())
            answers = found.answers
    finally:
        shutil.rmtree(folder)
    return nothing, evaluated, answers


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=5_000_000)
    options.add_argument("--world", choices=list(WORLDS), default="rectangles")
    options.add_argument("--placement", choices=["driver", "executors"], default="driver")
    options.add_argument("--partitions", type=int, help="as in production: 1 on the driver, one per core on executors")
    options.add_argument("--cores", type=int, default=2)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    partitions = chosen.partitions or (1 if chosen.placement == "driver" else chosen.cores)
    world = WORLDS[chosen.world]
    nothing, evaluated, answers = measured(world, chosen.rows, chosen.placement, partitions, chosen.cores, chosen.rounds)
    end_session()
    answer = {
        "rows": chosen.rows,
        "world": chosen.world,
        "placement": chosen.placement,
        "answers": answers,
        "nothing_rows_per_s": [round(rate) for rate in nothing],
        "rows_per_s": [round(rate) for rate in evaluated],
        "ratios": [round(ours / theirs, 3) for ours, theirs in zip(evaluated, nothing, strict=True)],
        "ratio": round(statistics.median(evaluated) / statistics.median(nothing), 3),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
