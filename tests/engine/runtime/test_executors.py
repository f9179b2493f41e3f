"""The executors placement gives the answers of one evaluator: on threads of one JVM, on separate executor processes, with workers killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.model.events import Stamper
from engine.runtime.evaluator import Evaluator
from engine.runtime.executors import ExecutorsEvaluator, ForTheDriver
from engine.sources.segments import Segment
from tests.engine.runtime.test_processor import FEED, QUERIES, rows_of
from webapp.platform.folders import ROOT
from webapp.platform.java import spark_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def batches(count: int = 4, rows: int = 60) -> list[pa.Table]:
    chance, stamper = random.Random(5), Stamper()
    return [stamper.stamp(rows_of(chance, rows, i * rows // 2)) for i in range(count)]


def answered(outcomes: list[Any]) -> Counter[str]:
    """What was stated, late and counted in all batches together."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(str(row) for row in outcome.changes.to_pylist())
        found.update(f"late {row['seq']}" for row in outcome.late.to_pylist())
        found.update({"processed": outcome.processed, "duplicates": outcome.duplicates})
    return found


def through(spark: SparkSession, evaluator: ExecutorsEvaluator, table: pa.Table, folder: Path) -> Any:
    """One batch as Spark delivers it: a segment of the log."""
    return evaluator.process_segments(delivered(spark, table, folder))


def delivered(spark: SparkSession, table: pa.Table, folder: Path) -> DataFrame:
    newest = max(pc.max(table.column(name)).as_py() for name in ("t", "clock"))
    path = folder / Segment.name(table.column("seq")[0].as_py(), table.num_rows, newest)
    pq.write_table(table, path)
    return spark.read.format("binaryFile").load(str(path))


def test_answers_are_those_of_one_evaluator_also_after_a_restart_and_new_queries(spark: SparkSession, tmp_path: Path) -> None:
    tables = batches()
    local = Evaluator.start(FEED, QUERIES[:2])
    spread = ExecutorsEvaluator.start(spark, FEED, tmp_path / "state", QUERIES[:2], 2)
    expected = [local.process(table) for table in tables[:2]]
    found = [through(spark, spread, table, tmp_path) for table in tables[:2]]
    spread = ExecutorsEvaluator.load(spark, FEED, tmp_path / "state", QUERIES[:2], spread.dump())
    for evaluator in (local, spread):
        side = evaluator.beside(QUERIES[2:])
        for table in tables[:2]:
            side.process(table)
        evaluator.register(QUERIES, side)
    expected += [local.process(table) for table in tables[2:]]
    found += [spread.process(tables[2]), through(spark, spread, tables[3], tmp_path)]
    assert answered(found) == answered(expected)
    assert sum(outcome.changes.num_rows for outcome in found) > 20
    assert (spread.position, spread.last_t, spread.watermark) == (local.position, local.last_t, local.watermark)


def test_a_killed_worker_is_replaced_and_the_answers_stay(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task dies after its work and before its state is written; Spark tries it again."""
    tables = batches(2)
    once = tmp_path / "once"
    once.mkdir()
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment.update({"VEDETTE_FAILPOINTS": "executor.before_state=kill", "VEDETTE_FAILPOINTS_ONCE": str(once)})
    try:
        local, spread = Evaluator.start(FEED, QUERIES), ExecutorsEvaluator.start(spark, FEED, tmp_path / "state", QUERIES, 2)
        expected = [local.process(table) for table in tables]
        found = [through(spark, spread, table, tmp_path) for table in tables]
    finally:
        environment.clear()
        environment.update(before)
    assert (once / "executor.before_state").exists()
    assert answered(found) == answered(expected)


def test_what_tasks_cannot_take_as_it_is_leaves_everything_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """A segment that is not there yet; more answers than a step may find. The driver may then take the same rows, or the tasks with the rest."""
    tables = batches(2)
    local, spread = Evaluator.start(FEED, QUERIES), ExecutorsEvaluator.start(spark, FEED, tmp_path / "state", QUERIES, 2)
    with pytest.raises(ForTheDriver, match="rows 0 to 59 are missing"):
        through(spark, spread, tables[1], tmp_path)
    expected, found = [local.process(tables[0])], [through(spark, spread, tables[0], tmp_path)]
    second = delivered(spark, tables[1], tmp_path)
    with pytest.raises(ForTheDriver, match="answers"):
        spread.process_segments(second, most_answers=0)
    expected, found = [*expected, local.process(tables[1])], [*found, spread.process(tables[1])]
    assert answered(found) == answered(expected)
    assert not spread.process_segments(second).changes.num_rows


SEPARATE = """
import sys
from pathlib import Path
from engine.runtime.evaluator import Evaluator
from engine.runtime.executors import ExecutorsEvaluator
from engine.runtime.spark import session
from tests.engine.runtime.test_executors import FEED, QUERIES, answered, batches, through

folder, tables = Path(sys.argv[1]), batches(3)
extra = {"spark.executor.memory": "512m", "spark.authenticate.secret": "known to driver and executors"}
spark = session("separate", cores=2, master="local-cluster[2,1,1024]", memory="512m", extra=extra)
local, spread = Evaluator.start(FEED, QUERIES), ExecutorsEvaluator.start(spark, FEED, folder / "state", QUERIES, 3)
expected, found = [local.process(table) for table in tables], [through(spark, spread, table, folder) for table in tables]
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
spark.stop()
assert answered(found) == answered(expected), "the answers differ"
print("executors", executors)
"""


def test_answers_on_separate_executor_processes(tmp_path: Path) -> None:
    environment = {**os.environ, **spark_environment(tmp_path / "java"), "SPARK_WORKER_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SEPARATE, str(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "executors 2" in done.stdout
