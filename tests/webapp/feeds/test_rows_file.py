"""Rows of a feed as a file: all that its answers are made from, which `backtest` reads."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from hypothesis import given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from engine.model.events import row_schema
from engine.model.feed import Feed as EngineFeed
from engine.sources.eventlog import EventLog
from tests.examples import examples
from tests.oracles.gate import judged
from webapp.feeds import rows_file
from webapp.feeds.models import Feed
from webapp.feeds.services import feed_update

LATENESS = 4
FEED = EngineFeed.from_json({"name": "yard", "crs": "planar", "time": "ms", "lateness": LATENESS, "columns": {}})
STEP = st.tuples(st.sampled_from("ab"), st.integers(-6, 9), st.sampled_from([1.0, 2.0]))
PERIOD = st.tuples(st.none() | st.integers(-3, 40), st.none() | st.integers(-3, 60))
Client = Callable[..., APIClient]


def rows_of(moves: list[tuple[str, int, float]]) -> list[dict[str, Any]]:
    rows, t = [], 10
    for entity, later, x in moves:
        t = max(0, t + later)
        rows.append({"event": "position", "entity": entity, "t": t, "x": x, "y": 5.0})
    return rows


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(STEP, max_size=20).map(rows_of), st.integers(1, 8), PERIOD)
def test_a_file_has_the_rows_of_the_period_that_were_on_time(rows: list[dict[str, Any]], segment: int, period: tuple[int | None, int | None]) -> None:
    late = set(judged(rows, LATENESS, dedupe=False, columns=())[1])
    low, high = (bound if bound is not None else other for bound, other in zip(period, (-1_000, 1_000), strict=True))
    expected = [row for i, row in enumerate(rows) if i not in late and low <= row["t"] <= high]
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder), FEED.name)
        for begin in range(0, len(rows), segment):
            log.append(pa.Table.from_pylist(rows[begin : begin + segment], schema=row_schema(FEED)))
        found, is_cut = rows_file.rows_between(log, FEED, *period)
    assert [{name: row[name] for name in rows[0]} for row in found.to_pylist()] == expected and not is_cut
    assert found.schema == row_schema(FEED)


@pytest.mark.services
@pytest.mark.django_db
def test_backtest_reads_the_file(feed: Feed, received: Callable[..., None], people: SimpleNamespace, client_of: Client, tmp_path: Path) -> None:
    received(feed, [{"entity": "=a", "t": 10_000 * n, "x": float(n % 3), "y": 0.0, "speed": float(n)} for n in range(9)])
    received(feed, [{"entity": "late", "t": 0, "x": 0.0, "y": 0.0}])
    feed = feed_update(feed=feed, columns={**feed.columns, "draught": "float"})
    received(feed, [{"entity": "b", "t": 100_000, "x": 1.0, "y": 0.0, "draught": 7.5}])
    answer = client_of(people.viewer).get("/api/v1/feeds/yard/rows.parquet?from=20000")
    assert answer["Content-Disposition"] == 'attachment; filename="yard.parquet"'
    table = pq.read_table(io.BytesIO(answer.content))
    assert table.column("t").to_pylist() == [*range(20_000, 90_000, 10_000), 100_000]
    assert table.column("draught").to_pylist()[-2:] == [None, 7.5]
    documents = {
        "rows.parquet": answer.content,
        "feed.json": json.dumps(
            {"name": "yard", "crs": "planar", "time": "ms", "lateness": 1000, "columns": feed.engine_feed().to_json()["columns"]}
        ),
        "query.json": json.dumps({"family": "border", "version": 1, "region": {"center": [0, 0], "radius": 0.5}}),
    }
    for name, data in documents.items():
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    paths = {name: str(tmp_path / name) for name in (*documents, "out.jsonl")}
    asked = ["--query", paths["query.json"], "--events", paths["rows.parquet"], "--feed", paths["feed.json"], "--out", paths["out.jsonl"]]
    call_command("backtest", *asked)
    rows = [json.loads(line) for line in Path(paths["out.jsonl"]).read_text().splitlines()]
    assert [(row["kind"], row["entities"], row["start"]) for row in rows] == [
        (kind, ["=a"], t) for t, kind in ((30_000, "in"), (40_000, "out"), (60_000, "in"), (70_000, "out"))
    ]


@pytest.mark.services
@pytest.mark.django_db
def test_cells_of_tables_are_harmless_and_long_files_are_cut(
    feed: Feed, received: Callable[..., None], people: SimpleNamespace, client_of: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["=1+1", "-2", "@x", "＝3", "plain", "a=b"]
    received(feed, [{"entity": name, "t": n, "x": -1.5, "y": 0.0} for n, name in enumerate(names)])
    client = client_of(people.viewer)
    lines = list(csv.DictReader(io.StringIO(client.get("/api/v1/feeds/yard/rows.csv").content.decode())))
    assert [line["entity"] for line in lines] == ["'=1+1", "'-2", "'@x", "'＝3", "plain", "a=b"] and lines[0]["x"] == "-1.5"
    monkeypatch.setattr(rows_file, "MOST_ROWS", 4)
    answer = client.get("/api/v1/feeds/yard/rows.csv?to=4")
    assert 'filename="yard-first-4.csv"' in answer["Content-Disposition"] and answer.content.count(b"\n") == 5
    assert client.get("/api/v1/feeds/yard/rows.csv?to=3")["Content-Disposition"].endswith('"yard.csv"')
    assert client.get("/api/v1/feeds/yard/rows.csv?from=4&to=3").json()["faults"][0]["pointer"] == "/to"
