"""Spark's workers give the answers of one evaluator: in one JVM, on separate executors, with states
that are lost and workers killed."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.model.events import Stamper
from engine.operator import RegisteredQuery
from engine.runtime import steps
from engine.runtime.evaluator import Evaluator
from engine.runtime.executors import ExecutorsEvaluator, ExecutorsProcessor, PlanCache
from engine.runtime.placement import placed
from engine.runtime.snapshots import StateFiles
from engine.sources.eventlog import EventLog, Span
from engine.sources.segments import LogDamaged, Segment
from engine.sources.store import files_of
from engine.specification import check
from tests.engine.runtime.test_broadcast import BROADCAST, queries_of
from tests.engine.runtime.test_processor import FEED, QUERIES, SQUARE, rows_of
from webapp.platform.folders import ROOT
from webapp.platform.java import spark_environment
from webapp.platform.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOCUMENTS = [
    {"family": "encounter", "version": 1, "distance": 1, "every": 2, "gap": 3},
    {"family": "occupancy", "version": 1, "region": SQUARE, "count": [">=", 2]},
]
ALL_ROWS = queries_of(BROADCAST, 0)
TOGETHER = [*QUERIES, *(RegisteredQuery(f"r{i}", 1, check(document, FEED)) for i, document in enumerate(DOCUMENTS)), *ALL_ROWS]
"""With queries that need several entities at once."""


def batches(count: int = 4, rows: int = 60) -> list[pa.Table]:
    chance, stamper = random.Random(5), Stamper()
    return [stamper.stamp(rows_of(chance, rows, i * rows // 2)) for i in range(count)]


def answered(outcomes: list[Any]) -> Counter[str]:
    """The assertions, late rows and counts of all batches together."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(str(row) for row in outcome.changes.to_pylist())
        found.update(f"late {row['seq']}" for row in outcome.late.to_pylist())
        found.update({"processed": outcome.processed, "duplicates": outcome.duplicates})
    return found


def started(
    spark: SparkSession, folder: Path, queries: Sequence[RegisteredQuery], partitions: int, feed: Any = FEED, states: Any = None
) -> ExecutorsEvaluator:
    log = EventLog(folder / "log", feed.name)
    log.live.mkdir(parents=True)
    return ExecutorsEvaluator.start(PlanCache(spark), feed, log, StateFiles(files_of(states or folder / "state")), queries, partitions)


def logged(evaluator: ExecutorsEvaluator, table: pa.Table) -> pa.Table:
    """The rows, when they are in the log as a segment."""
    newest = max(pc.max(table.column(name)).as_py() for name in ("t", "clock"))
    pq.write_table(table, evaluator.log.live / Segment.name(table.column("seq")[0].as_py(), table.num_rows, newest))
    return table


def through(evaluator: ExecutorsEvaluator, table: pa.Table) -> Any:
    """One batch: a segment that comes into the log."""
    span = evaluator.log.ahead(evaluator.position, logged(evaluator, table).num_rows)
    assert span is not None
    return evaluator.take(span)


@pytest.mark.parametrize(("partitions", "first"), [(1, TOGETHER[:2]), (3, TOGETHER[:2]), (3, ALL_ROWS[:2])])
def test_answers_are_those_of_one_evaluator_also_after_a_restart_and_new_queries(
    spark: SparkSession, tmp_path: Path, partitions: int, first: list[RegisteredQuery]
) -> None:
    tables = batches(6)
    local, spread = Evaluator.start(FEED, first), started(spark, tmp_path, first, partitions)
    expected = [local.process(table) for table in tables[:2]]
    found = [through(spread, table) for table in tables[:2]]
    spread = ExecutorsEvaluator.load(PlanCache(spark), FEED, spread.log, StateFiles(files_of(tmp_path / "state")), first, spread.dump())
    for evaluator in (local, spread):
        side: Any = evaluator.side_evaluator([query for query in TOGETHER if query not in first])
        for table in tables[:2]:
            side.process(table)
        evaluator.register(TOGETHER, side)
    expected += [local.process(table) for table in tables[2:]]
    found += [through(spread, table) for table in tables[2:4]] + [spread.process(logged(spread, tables[4])), through(spread, tables[5])]
    assert answered(found) == answered(expected)
    assert {row["query"] for outcome in found for row in outcome.changes.to_pylist()} == {query.id for query in TOGETHER}
    assert (spread.position, spread.last_t, spread.watermark) == (local.position, local.last_t, local.watermark)


def test_a_state_that_is_lost_is_made_again_from_the_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    """A task that does not find the state it is asked for, for any reason, loads the last snapshot
    and evaluates the rows since then again."""
    tables = batches(5)
    local, spread = Evaluator.start(FEED, TOGETHER), started(spark, tmp_path, TOGETHER, 2)
    expected = [local.process(table) for table in tables]
    found = [through(spread, table) for table in tables[:2]]
    spread.dump()
    found += [through(spread, table) for table in tables[2:4]]
    before = spread.loads
    # An attempt at the last batch whose result was lost: states may have
    # advanced without the evaluator.
    position, since, state, last_t = spread.position, list(spread._since), spread.state, spread.last_t
    through(spread, tables[4])
    spread.position, spread._since, spread.state, spread.last_t = position, since, state, last_t
    found.append(through(spread, tables[4]))
    assert spread.loads - before >= 5, "both stages of both partitions, and what has all rows"
    assert answered(found) == answered(expected)


def test_a_killed_worker_is_replaced_and_the_answers_stay(spark: SparkSession, tmp_path: Path) -> None:
    """A task dies after its work and before its state is kept; Spark tries it again."""
    tables = batches(3)
    once = tmp_path / "once"
    once.mkdir()
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update({"VEDETTE_FAILPOINTS": "executor.before_state=kill@2", "VEDETTE_FAILPOINTS_ONCE": str(once)})
    try:
        local, spread = Evaluator.start(FEED, TOGETHER), started(spark, tmp_path, TOGETHER, 2)
        expected = [local.process(table) for table in tables]
        found = [through(spread, table) for table in tables]
    finally:
        environment.clear()
        environment.update(before)
    assert (once / "executor.before_state").exists()
    assert answered(found) == answered(expected)


def test_a_state_of_another_version_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spread = started(spark, tmp_path, QUERIES, 1)
    facts = json.loads(spread.dump())
    for older in ({**facts, "version": facts["version"] - 1}, {name: value for name, value in facts.items() if name != "version"}):
        with pytest.raises(ValueError, match="has version"):
            ExecutorsEvaluator.load(PlanCache(spark), FEED, spread.log, spread.states, QUERIES, json.dumps(older).encode())


def test_a_damaged_segment_is_named(spark: SparkSession, tmp_path: Path) -> None:
    spread = started(spark, tmp_path, QUERIES, 2)
    spread.log.append(rows_of(random.Random(1), 20, 0))
    (path,) = spread.log.live.iterdir()
    path.write_bytes(path.read_bytes()[:-9] + b"otherwise")
    span = spread.log.ahead(-1, 20)
    assert span is not None
    with pytest.raises(LogDamaged, match="checksum"):
        spread.take(span)


def test_partitions_stay_where_they_are_and_move_only_when_they_must() -> None:
    places = placed({}, ["a", "b"], range(5))
    assert sorted(Counter(places.values()).values()) == [2, 3]
    assert placed(places, ["a", "b"], range(5)) == places
    more = placed(places, ["a", "b", "c"], range(5))
    assert sorted(Counter(more.values()).values()) == [1, 2, 2]
    assert sum(more[p] != places[p] for p in range(5)) == 1
    less = placed(more, ["b", "c"], range(5))
    assert all(less[p] == more[p] for p in range(5) if more[p] != "a")
    assert placed(places, [], range(5)) == {}


SEPARATE = """
import sys, time
from pathlib import Path
import psutil
from engine.runtime.evaluator import Evaluator
from engine.runtime.spark import local_cluster, session
from tests.engine.runtime.test_executors import FEED, TOGETHER, answered, batches, started, through

folder = Path(sys.argv[1])
master, extra = local_cluster(2, folder / "work")
# So long a task waits for an executor that may have been killed.
spark = session("separate", cores=1, master=master, memory="512m", extra={**extra, "spark.locality.wait": "2s"})

def processes(name):
    return [one for one in psutil.Process().children(recursive=True) if name in command(one)]

def command(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""

def survives(place, states, by_files):
    tables = batches(14)
    local, spread = Evaluator.start(FEED, TOGETHER), started(spark, place, TOGETHER, 4, states=states)
    if by_files:
        spread.inline_bytes = 0
    while len(spread.tasks.executors()) < 2:
        time.sleep(0.1)
    expected, found = [], []

    def some(count):
        for table in tables[len(found):len(found) + count]:
            expected.append(local.process(table))
            found.append(through(spread, table))

    some(2)
    assert len(set(spread._places.values())) == 2, spread._places
    loads = spread.loads
    some(4)
    assert spread.loads == loads, "loads while all is well"
    spread.dump()
    some(2)
    worker = processes("pyspark.daemon")[-1]
    worker.kill()
    some(2)
    assert spread.loads > loads, "none after a worker was killed"
    loads = spread.loads
    processes("CoarseGrainedExecutorBackend")[0].kill()
    some(4)
    assert spread.loads > loads, "none after an executor was killed"
    spread.dump()
    # Of three dumps, each of all states; nothing of what was emitted is left.
    assert set(spread.parts) <= set(spread.states.files.names()), "the last dump is whole"
    assert len(spread.states.files.names()) <= 3 * len(spread.parts), spread.states.files.names()
    assert answered(found) == answered(expected), "the answers differ"

survives(folder / "folder", str(folder / "state"), by_files=False)
print("states in a folder survive", flush=True)
survives(folder / "store", sys.argv[2], by_files=True)
print("states in a store survive", flush=True)
spark.stop()
"""
"""States are in a folder and output goes through the driver; then states are in a store, and output
goes through files. One cluster, slow to start."""


@pytest.mark.nightly
def test_states_stay_at_separate_executors_and_survive_the_kill_of_a_worker_and_of_an_executor(tmp_path: Path) -> None:
    environment = {**os.environ, **spark_environment(tmp_path / "java"), "PYTHONPATH": str(ROOT)}
    server = ObjectStore(tmp_path / "s3")
    with server.running():
        command = [sys.executable, "-c", SEPARATE, str(tmp_path), server.url]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_batches_are_smaller_where_rows_give_very_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the next one is not evaluated twice."""
    processor = answering(monkeypatch, lambda rows: 900)
    assert processor._most_rows == 800
    processor._evaluate(Span(0, 800, 5))
    assert processor._most_rows == 711, "as many as give four fifths of the most answers"
    processor.evaluator = Answering(lambda rows: 10)
    processor._evaluate(Span(800, 1_244, 6))
    assert processor._most_rows == 800


def test_a_batch_with_too_many_answers_is_taken_again_with_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver its rows would be evaluated on one core, and all states read
    and written for each step."""
    processor = answering(monkeypatch, lambda rows: 4 * rows)
    (outcome,) = processor._evaluate(Span(0, 800, 5))
    assert outcome.changes.num_rows == 800
    assert processor.evaluator.taken == [Span(0, 200, 5)], "after a recovery"


def answering(monkeypatch: pytest.MonkeyPatch, count: Callable[[int], int]) -> Any:
    """A processor with two executors that find so many answers for a number of rows."""
    monkeypatch.setattr(steps, "MOST_ANSWERS", 1_000)
    monkeypatch.setattr(steps, "STEP_ROWS", 50)
    processor: Any = ExecutorsProcessor.__new__(ExecutorsProcessor)
    processor.batch_rows, processor._rows_for_answers, processor._part_rows = 400, math.inf, 10_000
    processor.tasks = SimpleNamespace(executors=lambda: ["a", "b"])
    processor.log = SimpleNamespace(all_between=lambda first, stop: iter(()), ahead=lambda position, most: Span(position + 1, position + 1 + most, 5))
    processor.evaluator = Answering(count)
    processor._recover = lambda: Answering(count)
    return processor


@dataclass
class Answering:
    count: Callable[[int], int]
    position: int = -1
    taken: list[Span] = field(default_factory=list)

    def take(self, span: Span, rows: Iterable[pa.Table]) -> Any:
        self.taken.append(span)
        return SimpleNamespace(changes=pa.table({"answer": range(self.count(span.rows))}))
