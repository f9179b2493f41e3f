"""Composite patterns over reader recordings through `backtest` give the oracle's detections."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.backtest.command import main
from tests.oracles.complex_events import Row, answers
from tests.recordings.patterns import READINGS, as_trees

pytestmark = pytest.mark.data
ROWS = 140


@pytest.mark.parametrize("name", READINGS)
def test_backtest_of_patterns_equals_the_oracle(name: str, data_folder: Path, tmp_path: Path) -> None:
    readings = READINGS[name]
    table = readings.rows(data_folder, ROWS)
    pq.write_table(table, tmp_path / "rows.parquet")
    rows: list[Row] = [{**row, "seq": seq} for seq, row in enumerate(table.to_pylist())]
    (tmp_path / "feed.json").write_text(json.dumps(readings.feed))
    command = ["--feed", str(tmp_path / "feed.json"), "--events", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "out.parquet")]
    documents = readings.documents()
    for document in documents:
        path = tmp_path / f"{document['name']}.json"
        path.write_text(json.dumps(document))
        command += ["--query", str(path)]

    assert main(command) == 0

    got = pq.read_table(tmp_path / "out.parquet", columns=["query", "entities", "start", "end"]).to_pylist()
    found = Counter((int(one["query"]), one["entities"][0] if one["entities"] else None, one["start"], one["end"]) for one in got)
    expected = answers(rows, as_trees(documents))
    assert expected.total() > 100 and len({one.query for one in expected}) > 10
    assert found == Counter({tuple(one): count for one, count in expected.items()})
