"""A feed gets more columns while its job runs: the kept state continues, exactly as if all rows had
had them from the beginning, null before."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.derive import sources_of
from engine.model.events import row_schema
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.runtime.store import Commit
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from engine.specification import check
from tests.engine.runtime.test_processor import Memory
from tests.forms import FORMS

BEFORE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, lateness=300, columns={"v": ColumnType.INT})
AFTER = replace(BEFORE, columns={"v": ColumnType.INT, "kind": ColumnType.STRING, "load": ColumnType.FLOAT})


class Answers(Memory):
    """A store that keeps answers with any kind of evidence."""

    def commit(self, commit: Commit) -> bool:
        for row in commit.changes:
            self.facts[fact(row)] += row["weight"]
        self.counted.update(commit.counted)
        self.head = commit.head
        return True


def fact(row: Mapping[str, Any]) -> tuple[Any, ...]:
    seqs = tuple(item["seq"] for item in row["evidence"] or ())
    return row["query"], row["kind"], tuple(row["entities"]), row["start"], row["end"], seqs


def queries(feed: Feed) -> list[RegisteredQuery]:
    return [RegisteredQuery(name, 1, check(document, feed), sources_of(document)) for name, document in FORMS.items()]


def rows(feed: Feed, t: int, seed: int) -> pa.Table:
    """Reports of 20 things, some out of order, some twice; some that
    differ only in the new columns."""
    chance = random.Random(seed)
    found = []
    for _ in range(600):
        t += chance.choice([0, 10, 20])
        place = {"x": round(chance.uniform(0, 10), 1), "y": round(chance.uniform(0, 10), 1)}
        row = {
            "event": "position",
            "entity": f"e{chance.randrange(20)}",
            "t": t - chance.choice([0, 0, 100, 250, 900]),
            **place,
            "v": chance.randrange(2),
        }
        found.append(row)
        if chance.random() < 0.3:
            found.append(row | {"kind": chance.choice([None, "van"]), "load": chance.choice([None, 1.5])})
    return pa.Table.from_pylist(found, schema=row_schema(feed))


def test_a_job_that_starts_again_under_more_columns_answers_as_if_they_had_always_been_there(tmp_path: Path) -> None:
    log, store = EventLog(tmp_path, "plane"), Answers(wanted=queries(BEFORE), number=1, known=queries(BEFORE))
    first = rows(BEFORE, 1_000, 1)
    log.append(first)
    job = FeedProcessor(BEFORE, log, store, Snapshots(files_of(tmp_path / "state")), partitions=2)
    job.follow()
    while job.process():
        pass
    # An earlier report is repeated under the new columns: it is the same where they are null.
    again = pa.Table.from_pylist(first.slice(first.num_rows - 5).to_pylist(), schema=row_schema(AFTER))
    log.append(again)
    log.append(rows(AFTER, 7_000, 2))
    store.known = store.wanted = queries(AFTER)
    job = FeedProcessor(AFTER, log, store, Snapshots(files_of(tmp_path / "state")), partitions=2)
    while job.process():
        pass
    assert "rebuilt" not in store.called, "the state of before is taken over"
    evaluator = GraphEvaluator.local(AFTER, queries(AFTER))
    wanted: Counter[tuple[Any, ...]] = Counter()
    duplicates = 0
    for table in log.read():
        outcome = evaluator.process(table)
        duplicates += outcome.duplicates
        for row in outcome.changes.to_pylist():
            wanted[fact(row)] += row["weight"]
    assert store.counted["duplicates"] == duplicates > 5
    assert {key: count for key, count in store.facts.items() if count} == {key: count for key, count in wanted.items() if count}
    assert len({key[0] for key in wanted}) >= 8, "most forms have answers"


def test_a_state_is_not_taken_over_by_a_feed_with_other_columns(tmp_path: Path) -> None:
    evaluator = GraphEvaluator.local(BEFORE, queries(BEFORE)[:1])
    log = EventLog(tmp_path, "plane")
    log.append(rows(BEFORE, 1_000, 1))
    for table in log.read():
        evaluator.process(table)
    other = replace(BEFORE, columns={"kind": ColumnType.STRING, "v": ColumnType.INT})
    with pytest.raises(ValueError, match="not only more"):
        GraphEvaluator.load(other, queries(other)[:1], evaluator.dump(), lambda some, data: type(evaluator.base).load(other, some, data))
