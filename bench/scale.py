"""How the cost of a job follows its partitions: `python -m bench --only scale [--plots FOLDER]`.

Each workload is read from a log through the batch protocol, its answers are counted and discarded:
in the single process, and by executors (processes of one core on this machine, two of them for more
partitions than one) with 1, 2, 4, 8 and 16 partitions. A value is processor time a million rows
where rows are evaluated: of the single process, or of the executors with their Python workers. JVMs
and kernels are warm: all rows have gone through once in small batches, and a third of them again.
Facts contain the time of the driver and its JVM, and the rate. All runs of a workload must find the
same number of answers.

The simulation draws from the measured costs how many rows a second 8, 32 and 128 executors take;
its assumptions are in `simulated`.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from bench import Figure, Layer, Row, Size
from bench.border_worlds import FEED, WORLDS, World, write_log
from engine.model.columns import CLOCK, SEQ
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.broadcast import job_plan
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from engine.specification import check

PLACED: Mapping[int, Sequence[int]] = {1: (1,), 2: (2, 4, 8, 16), 4: (4,)}
"""Executors, and the partitions they are measured with. Four are for the simulation: on two cores
their processor time counts, not their rate."""
EACH_ONE: Mapping[int, Sequence[int]] = {1: (1,), 2: (2,), 4: (4,)}
"""As many partitions as executors."""
EXECUTORS = (8, 32, 128)
MOST_TIMES_SINGLE, MOST_TIMES_ONE, LEAST_TIMES_RATE = 1.5, 1.3, 1.5
WARM_BATCHES = 150
FIGURES = {
    "partitions": Figure("Processor time of executors a million rows, by partitions", "partitions", log_x=True),
    "executors": Figure("Rows a second, simulated from measured costs", "executors of one core", log_x=True),
}


@dataclass(frozen=True)
class Workload:
    """Queries over a feed, and rows of it put into a log."""

    title: str
    feed: Feed
    register: Callable[[], list[RegisteredQuery]]
    write: Callable[[EventLog, int], None]
    rows: int
    placed: Mapping[int, Sequence[int]] = field(default_factory=lambda: PLACED)

    @cached_property
    def queries(self) -> list[RegisteredQuery]:
        """Made once, because 30,000 patterns take long."""
        return self.register()

    def busy(self, executors: int) -> int:
        """How many of this number of executors, with one partition each, have rows to evaluate."""
        plan = job_plan(self.queries, self.feed, executors)
        return executors if plan.partitions_rows else len(plan.broadcast.partitions)


@dataclass(frozen=True)
class Cost:
    """Processor seconds a million rows: of the driver's Python, of its JVM, and of the executors
    with their workers. `answers` of all rows."""

    driver: float
    jvm: float
    workers: float
    rate: float
    answers: int

    @property
    def evaluating(self) -> float:
        """Where rows are evaluated: the workers, or the single process."""
        return self.workers or self.driver


Costs = dict[tuple[int, int], Cost]
"""By executors and partitions."""


def rows(size: Size) -> Iterator[Row]:
    """The single process, in a smoke run; else `spark_rows` measures it with the executors."""
    for workload in _workloads(size) if size is Size.QUICK else ():
        with _logged(workload) as log:
            yield _row(workload, "single process", _single(workload, log))


def spark_rows(size: Size) -> Iterator[Row]:
    """The single process and executors, workload by workload, and the simulation."""
    from bench.spark_overhead import shared_session

    for workload in _workloads(size):
        single: list[Cost] = []
        costs: Costs = {}
        with _logged(workload) as log:
            on_one_core = 0.0
            for executors, counts in workload.placed.items():
                spark = shared_session(executors, separate=True)
                single.append(_single(workload, log))
                _spread(workload, log, spark, counts[0], workload.rows // WARM_BATCHES)
                for count in counts[:1] if size is Size.QUICK else counts:
                    costs[executors, count] = _spread(workload, log, spark, count)
                if executors == 1:
                    with _one_core():
                        on_one_core = _spread(workload, log, spark, counts[0]).rate
        yield from _compared(workload, single, costs)
        rates = {"one core, 1 executor": on_one_core, "1 executor": costs[1, 1].rate, "single process": single[0].rate}
        title = f"{workload.title}, 2 executors on two cores"
        yield Row(title, Layer.SPARK, costs[2, 2].rate, "rows/s", rates, {"one core, 1 executor": LEAST_TIMES_RATE}, less_is_better=False)
        yield from _simulation(workload, costs)


def _compared(workload: Workload, single: Sequence[Cost], costs: Costs) -> Iterator[Row]:
    alone = sorted(single, key=lambda cost: cost.evaluating)[len(single) // 2]
    yield _row(workload, "single process", alone)
    one = costs[1, 1]
    for (executors, partitions), cost in costs.items():
        assert cost.answers == alone.answers, f"{workload.title}: {cost.answers} answers in {partitions} partitions, {alone.answers} in one process"
        if executors <= 2:
            least = {"single process": 1 / MOST_TIMES_SINGLE} | ({"1 partition": 1 / MOST_TIMES_ONE} if partitions == 16 else {})
            baselines = {"single process": alone.evaluating, "1 partition": one.evaluating}
            yield _row(workload, f"{partitions} partition{'s' * (partitions > 1)}", cost, partitions, baselines, least)


def _row(
    workload: Workload,
    how: str,
    cost: Cost,
    partitions: int | None = None,
    baselines: Mapping[str, float] | None = None,
    least: Mapping[str, float] | None = None,
) -> Row:
    facts = {"rows/s": round(cost.rate)} | ({"driver s": round(cost.driver, 2), "its JVM s": round(cost.jvm, 2)} if cost.workers else {})
    figure, x, series = ("partitions", float(partitions), workload.title) if partitions is not None else (None, None, None)
    title = f"{workload.title}, {how}"
    unit = "s a million rows"
    return Row(title, Layer.SPARK, cost.evaluating, unit, baselines or {}, least or {}, facts=facts, figure=figure, x=x, series=series)


# -- workloads -------------------------------------------------------------------------------------


def _workloads(size: Size) -> Iterator[Workload]:
    quick = size is Size.QUICK
    for name, world in WORLDS.items():
        yield Workload(name, FEED, world.queries, _of_world(world), 300_000 if quick else 9_600_000)
    if not quick:
        yield _motion()
        yield _composite()
        yield _constraint("constraint, 100", 0.01)
        yield _constraint("constraint, 100, fewer answers", 0.001)
        yield from _caviar()
        yield _roadstead()


def _of_world(world: World) -> Callable[[EventLog, int], None]:
    return lambda log, rows: write_log(log, rows, world)


def _motion() -> Workload:
    from bench.motion import MINUTE_MS, SIDE, _spark_queries

    world = World(20_000, SIDE, 1.0, 1.0, MINUTE_MS, _spark_queries)
    return Workload("motion, ten", FEED, _spark_queries, _of_world(world), 9_600_000)


def _composite() -> Workload:
    from bench.composite import HOT, MANY, MIXED, logged
    from bench.composite_worlds import FEED as READS
    from bench.composite_worlds import events, trees

    rate = 40_000

    def write(log: EventLog, rows: int) -> None:
        given = events(np.random.default_rng(2), rows, rate, HOT)
        for first in range(0, given.num_rows, rate):
            log.append(pa.Table.from_batches([logged(given.slice(first, rate))]))

    return Workload("composite, 30,000", READS, lambda: list(trees(np.random.default_rng(1), MANY, 3, HOT, MIXED)), write, 2_400_000)


def _constraint(title: str, verbosity: float) -> Workload:
    """`verbosity`: the share of rows that complete a solution of a query. One in a hundred
    gives more answers than rows."""
    from bench.constraint import LENGTHS, REACHES, _as_rows
    from bench.constraint_worlds import MEASURED, SEA, calibrated, measurements, shapes

    def queries() -> list[RegisteredQuery]:
        made = shapes(100, (3,), MEASURED, LENGTHS, 1, REACHES)
        documents = calibrated(made, verbosity, measurements(6_000), SEA, MEASURED)
        return [RegisteredQuery(str(i), 1, check(dict(one), SEA)) for i, one in enumerate(documents)]

    def write(log: EventLog, rows: int) -> None:
        stream = measurements(rows)
        for begin in range(0, len(stream), 50_000):
            log.append(_as_rows(stream.slice(begin, 50_000)))

    return Workload(title, SEA, queries, write, 2_400_000)


def _caviar() -> Iterator[Workload]:
    """Where the recording is."""
    from bench.calculus import DATA, _document, _feed, _frames

    if not (DATA / "caviar" / "sde.csv.gz").exists():
        return

    feed = Feed.from_json(_feed("caviar") | {"tick": 1})
    query = RegisteredQuery("caviar", 1, check(_document("caviar", "rtec_2025_allpairs", window=10_000, step=10_000), feed))

    def write(log: EventLog, rows: int) -> None:
        table = _frames(20, 1_000_000).drop_columns([SEQ, CLOCK]).slice(0, rows)
        for first in range(0, len(table), 100_000):
            log.append(table.slice(first, 100_000))

    yield Workload("CAVIAR enlarged", feed, lambda: [query], write, 6_400_000)


def _roadstead() -> Workload:
    """A program about pairs of vessels, with a synopsis, that asks to be distributed."""
    from bench.spread import ENCOUNTERS, PROGRAMS, programs, roadstead

    vessels, minutes = 600, 24
    feed = Feed.from_json(json.loads((PROGRAMS / "strait" / "feed.json").read_text()))
    query = RegisteredQuery("encounters", 1, check(programs()[ENCOUNTERS] | {"distributed": True}, feed))

    def write(log: EventLog, rows: int) -> None:
        table = roadstead(vessels, minutes, feed).drop_columns([SEQ, CLOCK]).slice(0, rows)
        for first in range(0, len(table), 3_600):
            log.append(table.slice(first, 3_600))

    return Workload("roadstead, a distributed program", feed, lambda: [query], write, vessels * minutes * 6, EACH_ONE)


@contextmanager
def _logged(workload: Workload) -> Iterator[EventLog]:
    """A log of the workload's rows, for as long as it is open."""
    with tempfile.TemporaryDirectory(prefix="vedette-bench-") as folder:
        log = EventLog(Path(folder), workload.feed.name)
        workload.write(log, workload.rows)
        yield log


# -- measuring -------------------------------------------------------------------------------------


def _single(workload: Workload, log: EventLog) -> Cost:
    cost = _measured(log, lambda store, snapshots: FeedProcessor(workload.feed, log, store, snapshots, batch_rows=_batch(workload)), workload)
    # Another run's session may be idle at the same time.
    return replace(cost, jvm=0.0, workers=0.0)


def _spread(workload: Workload, log: EventLog, spark: object, partitions: int, batch_rows: int | None = None) -> Cost:
    from engine.runtime.executors import ExecutorsProcessor

    def make(store: object, snapshots: Snapshots) -> FeedProcessor:
        rows = batch_rows or _batch(workload)
        return ExecutorsProcessor(spark, workload.feed, log, store, snapshots, partitions=partitions, batch_rows=rows)  # type: ignore[arg-type]

    return _measured(log, make, workload)


def _batch(workload: Workload) -> int:
    """For each executor a fifth of a second's work or more; with two
    executors there are four batches."""
    return workload.rows // 8


def _measured(log: EventLog, make: Callable[[object, Snapshots], FeedProcessor], workload: Workload) -> Cost:
    from bench.spark_overhead import Memory

    store = Memory(workload.queries)
    with tempfile.TemporaryDirectory(prefix="vedette-bench-") as folder:
        processor = make(store, Snapshots(files_of(Path(folder, "state"))))
        processor.follow()
        while processor.head.last_seq < workload.rows // 3:
            processor.process()
        began, before, first = time.monotonic(), _spent(), processor.head.last_seq
        while processor.process():
            pass
        seconds, after = time.monotonic() - began, _spent()
    rows = processor.head.last_seq - first
    driver, jvm, workers = ((b - a) / rows * 1e6 for a, b in zip(before, after, strict=True))
    return Cost(driver, jvm, workers, rows / seconds, store.answers)


@contextmanager
def _one_core() -> Iterator[None]:
    """This process, its JVM and the executors on one core: what a machine with one takes."""
    me = psutil.Process()
    everything = [me, *me.children(recursive=True)]
    cores = me.cpu_affinity()
    _pinned(everything, cores[:1])
    try:
        yield
    finally:
        _pinned(everything, cores)


def _pinned(processes: Sequence[psutil.Process], cores: Sequence[int]) -> None:
    """All their threads; those that they start later follow."""
    for process in processes:
        for thread in process.threads():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, cores)


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


# -- beyond this machine ---------------------------------------------------------------------------


def _simulation(workload: Workload, costs: Costs) -> Iterator[Row]:
    for executors in EXECUTORS:
        rate, share, most = simulated(costs, _batch(workload), executors, workload.busy)
        facts = {"of it at the driver": f"{share:.0%}", "with a thousand times as many": round(most)}
        title = f"{workload.title}, {executors} executors (simulated)"
        point = Row(title, Layer.SPARK, rate, "rows/s", less_is_better=False, facts=facts)
        yield replace(point, figure="executors", x=float(executors), series=workload.title)


def simulated(
    costs: Costs, batch_rows: int, executors: int, busy: Callable[[int], int] = lambda executors: executors, *, spread: float = 0.2
) -> tuple[float, float, float]:
    """Rows a second with this many executors of a core each and one partition each, the driver's
    part of the time, and the rows a second of a thousand times as many. Assumptions:

    - a batch has `batch_rows` for each executor;
    - `busy` of them take rows: what they do for a batch has a part that stays and one that grows
      with their number (each opens and checks every segment), a line through what was measured with
      as many partitions as executors; the slowest takes `spread` longer than the mean;
    - what the driver and its JVM do for a batch grows with them on a line too, is done on one core,
      and nothing else runs at the same time;
    - the network, the storage and PostgreSQL are no limit.
    """
    measured = sorted(placed for placed in costs if placed[0] == placed[1])
    counts = np.array([count for count, _ in measured], float)

    def line(seconds: Sequence[float]) -> tuple[float, float]:
        slope, base = np.polyfit(counts, seconds, 1) if len(counts) > 1 else (0.0, seconds[0])
        return max(float(base), 0.0), max(float(slope), 0.0)

    millions = batch_rows / 1e6
    at_driver = line([(costs[one].driver + costs[one].jvm) * millions * one[0] for one in measured])
    at_executors = line([costs[one].workers * (1 + spread) * millions for one in measured])

    def rate(count: int) -> tuple[float, float]:
        taking = busy(count)
        driver, together = (base + slope * taking for base, slope in (at_driver, at_executors))
        each = together * count / taking
        return batch_rows * count / (driver + each), driver / (driver + each)

    (rows, of_driver), (most, _) = rate(executors), rate(1_000 * executors)
    return rows, of_driver, most
