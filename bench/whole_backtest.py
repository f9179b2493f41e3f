"""Rows a second of the whole `backtest` command, family by family: from the start of the process
over a Parquet file to the file of answers.

    python -m bench.whole_backtest [--rounds 3] [TITLE ...]

The rows are those of `bench.scale` and `bench.pairs`. The queries are made in the process instead
of read from files: nothing else differs from the command. Prints a line for each workload: rows,
answers, rows a second (median of the rounds) and the greatest memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import Size
from bench.pairs import ENCOUNTER, EVERY, OVER, PLANE, WITHIN, world
from bench.scale import Workload, _logged, _workloads
from engine.families import FAMILIES, family_of
from engine.model.columns import CLOCK, SEQ
from engine.operator import RegisteredQuery
from engine.sources.eventlog import EventLog
from engine.specification import check

OBJECTS, INSTANTS = 150_000, 24
"""Of the workloads over pairs and places: they report every ten seconds, so
15,000 rows are real time."""
CHILD = "--in-this-process"


def workloads() -> Iterator[Workload]:
    yield from (one for one in _workloads(Size.FULL) if "distributed" not in one.title)
    yield _moving("encounter, 150,000 objects", ENCOUNTER)
    side = world(100, 1).side / np.sqrt(100) * np.sqrt(OBJECTS)
    yield _moving("occupancy, one region", {"family": "occupancy", "region": _circle(side), "count": [">=", 4_500]})
    yield _moving("arrival, one region", {"family": "arrival", "region": _circle(side), "within": WITHIN, "over": OVER, "gap": 3 * EVERY})


def _circle(side: float) -> dict[str, Any]:
    """Forty corners in the middle of the square."""
    turn = np.linspace(0, 2 * np.pi, 41)[:-1]
    corners = side / 2 + side / 10 * np.column_stack([np.cos(turn), np.sin(turn)])
    return {"type": "Polygon", "coordinates": [[*corners.tolist(), corners[0].tolist()]]}


def _moving(title: str, document: dict[str, Any]) -> Workload:
    def write(log: EventLog, rows: int) -> None:
        for table in world(OBJECTS, INSTANTS).batches(PLANE):
            log.append(table.drop_columns([SEQ, CLOCK]))

    def queries() -> list[RegisteredQuery]:
        return [RegisteredQuery("0", 1, check({**document, "version": 1}, PLANE))]

    return Workload(title, PLANE, queries, write, OBJECTS * INSTANTS)


def answered(title: str, folder: Path) -> None:
    """Runs the command in this process, with the workload's queries."""
    from engine.backtest import evaluation
    from engine.backtest.command import main

    workload = next(one for one in workloads() if one.title == title)
    queries = workload.queries
    names = {id(family): name for name, family in FAMILIES.items()}
    documents = {query.id: {"family": names[id(family_of(query.specification))]} for query in queries}
    evaluation.read_queries = lambda *_: (documents, queries)
    paths = {"feed": "feed.json", "events": "rows.parquet", "query": "queries.json", "out": "answers.parquet", "stats": "stats.json"}
    sys.exit(main([part for name, path in paths.items() for part in (f"--{name}", str(folder / path))]))


def measured(workload: Workload, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="vedette-bench-") as name:
        folder = Path(name)
        (folder / "feed.json").write_text(json.dumps(workload.feed.to_json()))
        (folder / "queries.json").write_text("{}")
        with _logged(workload) as log:
            _write(log, folder / "rows.parquet")
        seconds = []
        for _ in range(rounds):
            began = time.monotonic()
            subprocess.run([sys.executable, "-m", "bench.whole_backtest", CHILD, str(folder), workload.title], check=True, stderr=subprocess.DEVNULL)
            seconds.append(time.monotonic() - began)
        figures = json.loads((folder / "stats.json").read_text())
    return {
        "workload": workload.title,
        "rows": figures["rows_read"],
        "answers": figures["answers"],
        "rows/s": round(figures["rows_read"] / statistics.median(seconds)),
        "of it evaluating": round(figures["rows_per_second"]),
        "seconds": [round(one, 1) for one in seconds],
        "MB": figures["peak_memory_bytes"] // 1_000_000,
    }


def _write(log: EventLog, path: Path) -> None:
    writer = None
    for table in log.read():
        rows = table.drop_columns([SEQ, CLOCK])
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(pa.table(rows))
    assert writer is not None
    writer.close()


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument(CHILD, type=Path, default=None, help=argparse.SUPPRESS)
    options.add_argument("titles", nargs="*")
    chosen = options.parse_args(arguments)
    if chosen.in_this_process is not None:
        answered(chosen.titles[0], chosen.in_this_process)
    for workload in workloads():
        if not chosen.titles or workload.title in chosen.titles:
            print(json.dumps(measured(workload, chosen.rounds)), flush=True)


if __name__ == "__main__":
    main()
