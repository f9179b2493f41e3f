"""How the cost of a job follows its partitions: `python -m bench --only scale [--plots FOLDER]`.

Each workload is read from a log through the batch protocol, its answers are counted and thrown away: in the single process, and by executors
(processes of one core on this machine, as many as partitions up to the cores) with 1, 2, 4, 8 and 16 partitions. A value is processor time of the
whole process tree a million rows, from the end of a third of the rows on, so that JVMs and kernels are warm. Facts tell which processes it went to,
and the rate. All runs of a workload must find the same number of answers.

The simulation draws from the measured costs how many rows a second 8, 32 and 128 executors take; its assumptions are in `simulated`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from bench import Figure, Layer, Row, Size
from bench.border_worlds import FEED, WORLDS, World, write_log
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.processor import BATCH_ROWS, FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.specification import check

PARTITIONS = (1, 2, 4, 8, 16)
EXECUTORS = (8, 32, 128)
MOST_TIMES_SINGLE, MOST_TIMES_ONE = 1.5, 1.3
FIGURES = {"partitions": Figure("Processor time a million rows, by partitions", "partitions", log_x=True)}


@dataclass(frozen=True)
class Workload:
    """Queries over a feed, and rows of it put into a log."""

    title: str
    feed: Feed
    queries: Callable[[], list[RegisteredQuery]]
    write: Callable[[EventLog, int], None]
    rows: int


@dataclass(frozen=True)
class Cost:
    """Processor seconds a million rows: of the driver's Python, of its JVM, and of the executors with their workers. `answers` of all rows."""

    driver: float
    jvm: float
    workers: float
    rate: float
    answers: int

    @property
    def whole(self) -> float:
        return self.driver + self.jvm + self.workers


def rows(size: Size) -> Iterator[Row]:
    """The single process, in a smoke run; else `spark_rows` measures it beside the executors."""
    for workload in _workloads(size) if size is Size.QUICK else ():
        with _logged(workload, size) as log:
            cost = _single(workload, log)
            yield _row(workload, "single process", cost, None, {})


def spark_rows(size: Size) -> Iterator[Row]:
    """The single process and executors, workload by workload, and the simulation."""
    from bench.spark_overhead import shared_session

    partitions = PARTITIONS[:2] if size is Size.QUICK else PARTITIONS
    for workload in _workloads(size):
        with _logged(workload, size) as log:
            single = _single(workload, log)
            yield _row(workload, "single process", single, None, {})
            costs: dict[int, Cost] = {}
            for count in partitions:
                spark = shared_session(min(count, os.cpu_count() or 1), separate=True)
                costs[count] = _spread(workload, log, spark, count)
                assert costs[count].answers == single.answers, f"{workload.title}: {costs[count].answers} answers, {single.answers} in one process"
                yield _row(workload, f"{count} partitions", costs[count], count, {"single process": single.whole, "1 partition": costs[1].whole})
            yield from _simulation(workload, costs)


def _row(workload: Workload, how: str, cost: Cost, partitions: int | None, baselines: Mapping[str, float]) -> Row:
    facts = {"driver s": round(cost.driver, 2), "its JVM s": round(cost.jvm, 2), "workers s": round(cost.workers, 2), "rows/s": round(cost.rate)}
    least = {"single process": 1 / MOST_TIMES_SINGLE, "1 partition": 1 / MOST_TIMES_ONE} if baselines else {}
    figure, x, series = ("partitions", float(partitions), workload.title) if partitions is not None else (None, None, None)
    title = f"{workload.title}, {how}"
    return Row(title, Layer.SPARK, cost.whole, "s a million rows", baselines, least, facts=facts, figure=figure, x=x, series=series)


# -- workloads --------------------------------------------------------------------------------------------------------------------------------


def _workloads(size: Size) -> Iterator[Workload]:
    quick = size is Size.QUICK
    for name, world in WORLDS.items():
        yield Workload(name, FEED, world.queries, _of_world(world), 300_000 if quick else 4_000_000)
    if not quick:
        yield _motion()
        yield _composite()
        yield _constraint()


def _of_world(world: World) -> Callable[[EventLog, int], None]:
    return lambda log, rows: write_log(log, rows, world)


def _motion() -> Workload:
    from bench.motion import MINUTE_MS, SIDE, _spark_queries

    world = World(20_000, SIDE, 1.0, 1.0, MINUTE_MS, _spark_queries)
    return Workload("motion, ten", FEED, _spark_queries, _of_world(world), 3_000_000)


def _composite() -> Workload:
    from bench.composite import HOT, MANY, MIXED, logged
    from bench.composite_worlds import FEED as READS
    from bench.composite_worlds import events, trees

    rate = 40_000

    def write(log: EventLog, rows: int) -> None:
        given = events(np.random.default_rng(2), rows, rate, HOT)
        for first in range(0, given.num_rows, rate):
            log.append(pa.Table.from_batches([logged(given.slice(first, rate))]))

    return Workload("composite, 30,000", READS, lambda: list(trees(np.random.default_rng(1), MANY, 3, HOT, MIXED)), write, 1_600_000)


def _constraint() -> Workload:
    from bench.constraint import LENGTHS, REACHES, _as_rows
    from bench.constraint_worlds import MEASURED, SEA, calibrated, measurements, shapes

    def queries() -> list[RegisteredQuery]:
        made = shapes(100, (3,), MEASURED, LENGTHS, 1, REACHES)
        documents = calibrated(made, 0.01, measurements(6_000), SEA, MEASURED)
        return [RegisteredQuery(str(i), 1, check(dict(one), SEA)) for i, one in enumerate(documents)]

    def write(log: EventLog, rows: int) -> None:
        stream = measurements(rows)
        for begin in range(0, len(stream), 50_000):
            log.append(_as_rows(stream.slice(begin, 50_000)))

    return Workload("constraint, 100", SEA, queries, write, 900_000)


class _logged:
    """A log of the workload's rows, for as long as it is open."""

    def __init__(self, workload: Workload, size: Size) -> None:
        self.workload = workload
        self.folder = Path(tempfile.mkdtemp(prefix="vedette-bench-"))

    def __enter__(self) -> EventLog:
        log = EventLog(self.folder, self.workload.feed.name)
        self.workload.write(log, self.workload.rows)
        return log

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


# -- measuring --------------------------------------------------------------------------------------------------------------------------------


def _single(workload: Workload, log: EventLog) -> Cost:
    return _measured(log, lambda store, snapshots: FeedProcessor(workload.feed, log, store, snapshots, batch_rows=_batch(workload)), workload)


def _spread(workload: Workload, log: EventLog, spark: object, partitions: int) -> Cost:
    from engine.runtime.executors import ExecutorsProcessor

    def make(store: object, snapshots: Snapshots) -> FeedProcessor:
        return ExecutorsProcessor(spark, workload.feed, log, store, snapshots, partitions=partitions, batch_rows=_batch(workload))  # type: ignore[arg-type]

    return _measured(log, make, workload)


def _batch(workload: Workload) -> int:
    """Batches of about a second at full load, eight of them at least."""
    return min(BATCH_ROWS, workload.rows // 8)


def _measured(log: EventLog, make: Callable[[object, Snapshots], FeedProcessor], workload: Workload) -> Cost:
    from bench.spark_overhead import Memory

    folder = Path(tempfile.mkdtemp(prefix="vedette-bench-"))
    store = Memory(workload.queries())
    try:
        processor = make(store, Snapshots(folder / "state"))
        processor.follow()
        while processor.head.last_seq < workload.rows // 3:
            processor.process()
        began, before, first = time.monotonic(), _spent(), processor.head.last_seq
        while processor.process():
            pass
        seconds, after = time.monotonic() - began, _spent()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = processor.head.last_seq - first
    driver, jvm, workers = ((b - a) / rows * 1e6 for a, b in zip(before, after, strict=True))
    return Cost(driver, jvm, workers, rows / seconds, store.changes)


def _spent() -> tuple[float, float, float]:
    """Processor seconds so far of this process, of the JVM it started, and of all below that."""
    me = psutil.Process()
    jvms = [child for child in me.children() if child.name() == "java"]
    below = [process for jvm in jvms for process in jvm.children(recursive=True)]
    return _times([me]), _times(jvms), _times(below)


def _times(processes: Sequence[psutil.Process]) -> float:
    found = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        found += times.user + times.system
    return found


# -- beyond this machine ----------------------------------------------------------------------------------------------------------------------


def _simulation(workload: Workload, costs: Mapping[int, Cost]) -> Iterator[Row]:
    for executors in EXECUTORS:
        rate, share = simulated(costs, executors)
        facts = {"of it at the driver": f"{share:.0%}"}
        yield Row(f"{workload.title}, {executors} executors (simulated)", Layer.SPARK, rate, "rows/s", less_is_better=False, facts=facts)


def simulated(costs: Mapping[int, Cost], executors: int, *, spread: float = 0.2) -> tuple[float, float]:
    """Rows a second with so many executors of a core each and one partition each, and which part of the time is the driver's. Assumptions:

    - what workers do for a million rows has a part that does not depend on the partitions and one that grows with them, a line through the measured
      values; each executor has an equal part of it, and the slowest is `spread` above the mean;
    - what the driver and its JVM do grows with the partitions in the same way, on one core, and nothing of it goes on beside the workers;
    - batches have BATCH_ROWS rows for each executor, up to ten times as many, so what costs by the task is divided by more rows;
    - the network, the storage and PostgreSQL are no limit.
    """
    counts = np.array(sorted(costs), float)
    larger = min(executors, 10)

    def line(values: Sequence[float]) -> float:
        slope, base = np.polyfit(counts, values, 1) if len(counts) > 1 else (0.0, values[0])
        return float(max(base, 0.0) + max(slope, 0.0) * executors / larger)

    driver = line([costs[int(count)].driver + costs[int(count)].jvm for count in counts])
    workers = line([costs[int(count)].workers for count in counts]) * (1 + spread) / executors
    return 1e6 / (driver + workers), driver / (driver + workers)
