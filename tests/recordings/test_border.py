"""Very many regions over a real recording: Beijing's taxis against 20,000 random
squares and 5,000 polygons."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.backtest.command import main
from tests.recordings.oracle import Fact, accepted, answers
from tests.recordings.taxis import BEIJING, documents

pytestmark = pytest.mark.data

ROWS = 150_000
"""The number of rows: the whole week of 1,244,023 takes two minutes more."""
ALIKE = 50
"""The oracle checks one in this many queries over all taxis, and one in this
many taxis over all queries."""


def write_command(folder: Path, data: Path) -> list[str]:
    """Files of the feed and of all queries in the folder, and the options of
    `backtest` that name them."""
    (folder / "feed.json").write_text(json.dumps(BEIJING.feed()))
    pq.write_table(pq.read_table(BEIJING.path(data)).slice(0, ROWS), folder / "taxis.parquet")
    command = ["--feed", str(folder / "feed.json"), "--events", str(folder / "taxis.parquet"), "--map", BEIJING.map_option]
    command.append("--query")
    for document in documents(data):
        path = folder / f"{document['name']}.json"
        path.write_text(json.dumps(document))
        command.append(str(path))
    return command


def facts(path: Path) -> set[Fact]:
    """The answers in a file; each is there once."""
    table = pq.read_table(path, columns=["query", "kind", "entities", "start", "end"])
    first = table.column("entities").combine_chunks().flatten().to_pylist()
    columns = [table.column(name).to_pylist() for name in ("query", "kind", "start", "end")]
    found = {(query, kind, entity, start, end) for entity, query, kind, start, end in zip(first, *columns, strict=True)}
    assert len(found) == table.num_rows
    return found


def test_crossings_of_twenty_five_thousand_regions_are_those_of_the_oracle(data_folder: Path, tmp_path: Path) -> None:
    command = [*write_command(tmp_path, data_folder), "--out", str(tmp_path / "out.parquet"), "--stats", str(tmp_path / "stats.json")]

    assert main(command) == 0

    found = facts(tmp_path / "out.parquet")
    assert len(found) > 100_000
    frame = accepted({name: column[:ROWS] for name, column in BEIJING.rows(data_folder).items()})
    assert json.loads((tmp_path / "stats.json").read_text())["rows_accepted"] == len(frame)
    every = list(documents(data_folder))
    some_queries = every[::ALIKE]
    names = {document["name"] for document in some_queries}
    expected = {fact for document in some_queries for fact in answers(document["name"], document, frame)}
    assert {fact for fact in found if fact[0] in names} == expected != set()
    taxis = set(sorted(set(frame["entity"]))[::ALIKE])
    end = int(frame["t"].max())
    part = frame[frame["entity"].isin(taxis)].reset_index(drop=True)
    expected = {fact for document in every for fact in answers(document["name"], document, part, end)}
    assert {fact for fact in found if fact[2] in taxis} == expected != set()
