"""Every form of query over Spark's workers: the answers of one process, with any partitions, also
after a restart and for queries that join."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.derive import sources_of
from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator
from engine.runtime.executors import ExecutorsEvaluator, PlanCache
from engine.runtime.snapshots import StateFiles
from engine.runtime.spark_backtest import SparkEvaluator
from engine.sources.store import files_of
from engine.specification import check
from tests.engine.runtime import test_derived
from tests.engine.runtime.test_executors import logged, started
from tests.examples import examples
from tests.forms import FORMS
from tests.strategies import stamped, summed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FEED = Feed("yard", Crs.PLANAR, TimeUnit.MS, lateness=500)
QUERIES = [RegisteredQuery(name, 1, check(document, FEED), sources_of(document)) for name, document in FORMS.items()]


def walks(rows: int) -> pa.Table:
    """Forty walkers on the plane; some rows come out of order, twice or too late."""
    chance = random.Random(11)
    places = {f"w{i}": [chance.uniform(0, 10), chance.uniform(0, 10)] for i in range(40)}
    found: list[dict[str, Any]] = []
    t = 0
    for _ in range(rows):
        t += chance.randint(0, 12)
        name = chance.choice(list(places))
        places[name] = [min(10.0, max(0.0, value + chance.gauss(0, 0.4))) for value in places[name]]
        found.append({"entity": name, "t": max(0, t - chance.choice([0, 0, 0, 100, 400, 700])), "x": places[name][0], "y": places[name][1]})
        if chance.random() < 0.02:
            found.append(dict(found[-1]))
    return stamped(found, FEED)


TABLE = walks(2000)


def answered(evaluator: Any, tables: Sequence[pa.Table]) -> Any:
    """The sum of all changes, the end of the input included."""
    asserted = [evaluator.process(table).changes for table in tables]
    found = summed(pa.concat_tables([*asserted, evaluator.finish().changes]))
    evaluator.close()
    return found


@pytest.fixture(scope="module")
def expected() -> Any:
    found = answered(GraphEvaluator.local(FEED, QUERIES), [TABLE])
    assert all(any(f"('query', {name!r})" in fact for fact in found) for name in FORMS), "each query finds something"
    return found


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.nightly), 2, pytest.param(4, marks=pytest.mark.nightly)])
def test_a_backtest_gives_the_answers_of_one_process(spark: SparkSession, expected: Any, partitions: int) -> None:

    def begin(queries: Any) -> SparkEvaluator:
        return SparkEvaluator.start(FEED, queries, partitions, batch_rows=1200, spark=spark)

    evaluator = GraphEvaluator.start(FEED, QUERIES, begin)
    assert answered(evaluator, [TABLE.slice(at, 700) for at in range(0, TABLE.num_rows, 700)]) == expected


@settings(max_examples=examples(3))
@given(documents=test_derived.graphs(), rows=test_derived.streams(), partitions=st.integers(1, 5), batch_rows=st.integers(6, 20))
def test_worlds_of_every_form_answer_as_the_definition_says(
    spark: SparkSession, documents: dict[str, Any], rows: list[dict[str, Any]], partitions: int, batch_rows: int
) -> None:
    """As one process does with many more worlds (test_derived); this test is about the
    placement."""
    feed, table = test_derived.FEED, stamped(rows, test_derived.FEED)

    def begin(queries: Any) -> SparkEvaluator:
        return SparkEvaluator.start(feed, queries, partitions, batch_rows=batch_rows, spark=spark)

    evaluator = GraphEvaluator.start(feed, test_derived.registered(documents), begin)
    asserted = [evaluator.process(table.slice(at, 3)).changes for at in range(0, table.num_rows, 3)]
    asserted.append(evaluator.finish().changes)
    evaluator.close()
    numbered = [row | {"seq": seq} for seq, row in enumerate(rows)]
    assert test_derived.final(asserted) == test_derived.expected(documents, numbered)


def test_queries_that_join_over_executors_and_a_restart_change_nothing(spark: SparkSession, expected: Any, tmp_path: Path) -> None:
    """Half of the queries join in mid-stream, with what they derive from
    running already, or joining too."""
    first = [query for query in QUERIES if query.id in ("crowd", "pair", "crossing", "back alone")]
    tables = [TABLE.slice(at, 800) for at in range(0, TABLE.num_rows, 800)]
    evaluator = GraphEvaluator.start(FEED, first, lambda queries: started(spark, tmp_path, queries, 2, FEED))
    log, states = evaluator.base.log, StateFiles(files_of(tmp_path / "state"))

    def taken(evaluator: GraphEvaluator, table: pa.Table) -> pa.Table:
        logged(evaluator.base, table)
        span = log.ahead(evaluator.position, table.num_rows)
        assert span is not None
        return evaluator.take(span, [table]).changes

    asserted = [taken(evaluator, table) for table in tables[:2]]
    side = evaluator.side_evaluator([query for query in QUERIES if query not in first])
    asserted += [side.process(table).changes for table in tables[:2]]
    evaluator.register(QUERIES, side)
    asserted += [taken(evaluator, tables[2])]
    data = evaluator.dump()
    again = GraphEvaluator.load(
        FEED, QUERIES, data, lambda queries, part: ExecutorsEvaluator.load(PlanCache(spark), FEED, log, states, queries, part)
    )
    asserted += [taken(again, table) for table in tables[3:]]

    def ended(queries: Sequence[RegisteredQuery], part: bytes) -> Any:
        """In this process: the end of the input is the driver's."""
        return ExecutorsEvaluator.load(PlanCache(spark), FEED, log, states, queries, part).local()

    last = GraphEvaluator.load(FEED, QUERIES, again.dump(), ended)
    assert summed(pa.concat_tables([*asserted, last.finish().changes])) == expected
