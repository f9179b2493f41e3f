"""Real recordings through `backtest` give the oracle's answers, fact by fact."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.backtest.command import main
from tests.recordings.oracle import accepted, answers
from tests.recordings.sources import RECORDINGS, regions, write_queries

pytestmark = pytest.mark.data


@pytest.mark.parametrize("name", RECORDINGS)
def test_backtest_of_a_recording_equals_the_oracle(name: str, data_folder: Path, tmp_path: Path) -> None:
    recording = RECORDINGS[name]
    queries = write_queries(tmp_path, regions(recording, data_folder, 200, seed=7))
    (tmp_path / "feed.json").write_text(json.dumps(recording.feed()))
    command = ["--feed", str(tmp_path / "feed.json"), "--events", str(recording.path(data_folder)), "--map", recording.map_option]
    command += ["--out", str(tmp_path / "out.parquet"), "--stats", str(tmp_path / "stats.json")]
    command += ["--query", *(str(path) for _, _, path in queries)]

    assert main(command) == 0

    got = pq.read_table(tmp_path / "out.parquet", columns=["query", "kind", "entities", "start", "end"]).to_pylist()
    frame = accepted(recording.rows(data_folder))
    expected = [fact for query, document, _ in queries for fact in answers(query, document, frame)]
    assert len(expected) > 100
    assert sorted((a["query"], a["kind"], a["entities"][0], a["start"], a["end"]) for a in got) == sorted(expected)
    stats = json.loads((tmp_path / "stats.json").read_text())
    assert stats["rows_accepted"] == len(frame)
