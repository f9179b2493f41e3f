"""Composite patterns over reader recordings through `backtest` give the oracle's detections."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import backtest
from engine.complex_events.text import translate
from tests.oracles.complex_events import Row, answers

pytestmark = pytest.mark.data
MINUTE = 60_000
FORMS = [
    "A : B", "A :[0,{d}] B", "A : B : C", "A AND B", "A AND B AND C", "A ;[{d}] B", "(A OR B) : C", "A : !B : C", "A : !B :[0,{d}] C", "A : !B[{d}]",
    "(A OR C) : !B[{d}]", "(A AND B) : !C[{d}]", "(A : !C[{d}]) AND B", "A : (B AND C)", "A ;[{d}] (B : C)", "(A : B) OR (B : A)", "A : !(B : C) : A",
]  # fmt: skip
SOURCES: dict[str, tuple[str, dict[str, str], dict[str, str], dict[str, list[list[Any]]], int, int]] = {
    "tags at readers": (
        "rfid_readers_orfid/detections.parquet", {"entity": "tag", "t": "ts"}, {"reader": "string", "dur_ms": "int"},
        {"A": [["reader", "=", "upstream"]], "B": [["reader", "=", "downstream"]], "C": [["dur_ms", ">", 200]]}, 10_671, 360 * MINUTE,
    ),
    "badges that meet": (
        "rfid_contacts_sociopatterns/hospital_2010.parquet", {"entity": "id1", "t": "ts"}, {"group1": "string", "group2": "string"},
        {"A": [["group1", "=", "NUR"]], "B": [["group1", "=", "MED"]], "C": [["group2", "=", "ADM"]]}, 0, 2 * MINUTE,
    ),
    "a wearable at antennas": (
        "rfid_activity_uci/reads.parquet", {"entity": "trial", "t": "ts"}, {"antenna": "int", "label": "int"},
        {"A": [["antenna", "=", 1]], "B": [["antenna", "=", 3]], "C": [["antenna", "in", [2, 4]]]}, 0, 3_000,
    ),
}  # fmt: skip
"""File, its columns under our names, attributes, primitives, the first row of the slice, and a span in which some of them come together."""
ROWS = 140


@pytest.mark.parametrize("name", SOURCES)
def test_backtest_of_patterns_equals_the_oracle(name: str, data_folder: Path, tmp_path: Path) -> None:
    file, columns, attributes, primitives, first, span = SOURCES[name]
    table = pq.read_table(data_folder / file).sort_by([("ts", "ascending")]).slice(first, ROWS)
    named = {ours: table.column(theirs) for ours, theirs in columns.items()} | {column: table.column(column) for column in attributes}
    named["entity"] = named["entity"].cast(pa.string())
    pq.write_table(pa.table(named), tmp_path / "rows.parquet")
    rows: list[Row] = [{**row, "seq": seq} for seq, row in enumerate(pa.table(named).to_pylist())]
    feed = {"name": "readers", "crs": "planar", "time": "ms", "lateness": 0, "dedupe": False, "columns": attributes}
    (tmp_path / "feed.json").write_text(json.dumps(feed))
    documents = []
    command = ["--feed", str(tmp_path / "feed.json"), "--events", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "out.parquet")]
    for number, form in enumerate(FORMS):
        text = form.format(d=span)
        document: dict[str, Any] = {"family": "composite", "version": 1, "name": str(number), "pattern": text, "within": 3 * span}
        document |= {"primitives": {one: {"where": where} for one, where in primitives.items()}, "per": "entity" if number % 3 == 0 else None}
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
        documents.append({**document, "pattern": translate(text).tree})
        command += ["--query", str(tmp_path / f"{number}.json")]

    assert backtest.main(command) == 0

    got = pq.read_table(tmp_path / "out.parquet", columns=["query", "entities", "start", "end"]).to_pylist()
    found = Counter((int(one["query"]), one["entities"][0] if one["entities"] else None, one["start"], one["end"]) for one in got)
    expected = answers(rows, documents)
    assert expected.total() > 100 and len({one.query for one in expected}) > 10
    assert found == Counter({tuple(one): count for one, count in expected.items()})
