"""The recordings with golden results, and functions that run the programs of
fixtures/programs over them."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from engine.event_calculus.replay import WindowReplay
from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "fixtures" / "programs"
DATA = Path(os.environ.get("VEDETTE_DATA", ROOT.parent / "shared" / "data"))


def feed_of(folder: str) -> Feed:
    return Feed.from_json(json.loads((PROGRAMS / folder / "feed.json").read_text()))


def query_of(folder: str, variant: str, *, distributed: bool = False) -> RegisteredQuery:
    document = json.loads((PROGRAMS / folder / f"query-{variant}.json").read_text()) | {"distributed": distributed}
    return RegisteredQuery(variant, 1, check(document, feed_of(folder)))


def stream(folder: str, file: str, *, by: str | None = None) -> pa.Table:
    """Checked rows in the order of the file, or of the column `by`."""
    renamed = {"name": "event", "vessel": "entity", "vessel2": "entity2"}
    text = {name: pa.string() for name in ("value", "entity", "vessel", "vessel2", "area")}
    options = pacsv.ConvertOptions(column_types=text, strings_can_be_null=True)
    table = pacsv.read_csv(DATA / folder / file, convert_options=options)
    table = table.rename_columns([renamed.get(name, name) for name in table.column_names])
    if by is not None:
        table = table.take(pa.array(np.argsort(np.asarray(table[by]), kind="stable")))
    good, dead = check_rows(table, feed_of(folder))
    assert not dead
    return Stamper().stamp(good)


def answers(query: RegisteredQuery, feed: Feed, stamped: pa.Table, *, batch_rows: int | None = None, partitions: int = 1) -> Counter[tuple[Any, ...]]:
    """Facts (kind, entities, value, start, end) of the final answer with their weights."""
    evaluator = Evaluator.start(feed, [query], partitions=partitions)
    total: Counter[tuple[Any, ...]] = Counter()
    size = batch_rows or len(stamped)
    for start in range(0, len(stamped), size):
        add(total, evaluator.process(stamped.slice(start, size)).changes)
        evaluator.check()
    add(total, evaluator.finish().changes)
    return total


def add(total: Counter[tuple[Any, ...]], changes: pa.Table) -> None:
    """Adds signed changes to `total`; facts whose weights cancel are removed."""
    columns = (changes[name].to_pylist() for name in ("kind", "entities", "value", "start", "end", "weight"))
    for kind, entities, value, start, end, weight in zip(*columns, strict=True):
        total[kind, tuple(entities), value, start, end] += weight
    for fact in [fact for fact, weight in total.items() if weight == 0]:
        del total[fact]


def windows(query: RegisteredQuery, feed: Feed, stamped: pa.Table, *, batch_rows: int | None = None) -> Iterator[tuple[Any, ...]]:
    """Facts (query time, kind, entities, value, start, end) of every window."""
    replay = WindowReplay(query, feed)
    size = batch_rows or len(stamped)
    tables = []
    for start in range(0, len(stamped), size):
        tables += replay.take(stamped.slice(start, size).combine_chunks().to_batches()[0])
    tables += replay.finish()
    for table in tables:
        yield from zip(*(table[name].to_pylist() for name in ("query_time", "kind", "entities", "value", "start", "end")), strict=True)


def golden(folder: str, variant: str) -> list[dict[str, str]]:
    with (DATA / folder / "golden" / f"{variant}.csv").open() as file:
        return list(csv.DictReader(file))


def shared_segment(moment: int) -> bool:
    """Whether the CAVIAR segment at a time is in the half with golden intervals."""
    with (DATA / "caviar" / "segments.csv").open() as file:
        segments = list(csv.DictReader(file))
    firsts = np.array([int(row["t_first"]) for row in segments])
    return segments[max(0, int(np.searchsorted(firsts, moment, "right")) - 1)]["split"] == "shared"


__all__ = ["DATA", "PROGRAMS", "add", "answers", "feed_of", "golden", "query_of", "shared_segment", "stream", "windows"]
