"""The TAO buoys through the whole running system: stored solutions of constraint
queries against `backtest`.

    python bench/replay_buoys.py --url http://127.0.0.1:8000 --user analyst --password ...
        --data ../shared/data

The last ten years of measurements; a feed and tuned queries of 2 to 5 variables
(`tests/recordings/test_constraint.py`; the forms of expiration in turn) are created by the API, the
measurements posted as Arrow streams as fast as ingest takes them, and when the job has processed
them all the stored detections are compared with those of the command, in both directions. That the
command's are the oracle's is shown on slices by tests/recordings.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.latency import Client
from bench.replay import answers_in, exported, wait
from bench.replay_programs import post
from engine.constraint_queries.reader import EXPIRATIONS
from tests.recordings.test_constraint import FEED, buoys, queries, stamped

RETENTION_HOURS = 87_840
"""Ten years, the most that a feed keeps; the buoys reported for fifteen
years, but rarely at first."""
Document = dict[str, Any]
Facts = Counter[tuple[str, tuple[str, ...], int, int, tuple[int, ...]]]
"""Query, entities, start, end, times of the events in the order of the variables."""


def facts_of(rows: Sequence[Mapping[str, Any]], names: Mapping[int, str] | None = None) -> Facts:
    return Counter(
        (names[row["query"]] if names else row["query"], tuple(row["entities"]), row["start"], row["end"], tuple(one["t"] for one in row["evidence"]))
        for row in rows
    )


def backtested(rows: pa.Table, documents: Sequence[Document], folder: Path) -> Facts:
    """The answers of the command on the same rows."""
    return facts_of(answers_in(FEED.to_json(), rows, documents, folder, ["query", "entities", "start", "end", "evidence"]))


def replay(client: Client, data: Path, count: int, verbosity: float) -> dict[str, Any]:
    rows = buoys(data)
    documents = queries(count, verbosity, stamped(rows).slice(90_000, 3_000))
    documents = [{**one, "name": f"q{n}", "expiration": EXPIRATIONS[n % len(EXPIRATIONS)]} for n, one in enumerate(documents)]
    rows = rows.filter(pc.greater(rows.column("t"), pc.subtract(pc.max(rows.column("t")), RETENTION_HOURS * 3_600_000)))
    rows = rows.drop_columns([name for name in rows.column_names if rows.column(name).null_count == len(rows)])
    client.call("POST", "feeds/", FEED.to_json() | {"title": "TAO", "wall_clock": False, "retention_hours": RETENTION_HOURS})
    names = {}
    for one in documents:
        names[client.call("POST", "queries/", {"feed": FEED.name, "name": one["name"], "specification": one, "alert_kinds": []})["id"]] = one["name"]
    token = client.call("POST", "tokens/", {"name": "replay tao", "scopes": ["ingest"]})["token"]
    began = time.monotonic()
    post(client, FEED.name, token, rows, "tao")
    counters = wait(client, FEED.name)["counters"]
    done = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = backtested(rows, documents, Path(folder))
    times = rows.column("t").to_numpy()
    live = facts_of(exported(client, FEED.name, int(times.min()), int(times.max()) + 1), names)
    return {
        "recording": FEED.name, **counters, "queries": count, "verbosity": verbosity, "stored": live.total(), "backtest": command.total(),
        "stored = backtest": live == command, "all processed s": round(done - began, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--verbosity", type=float, default=0.01)
    arguments = parser.parse_args()
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    found = replay(client, arguments.data, arguments.queries, arguments.verbosity)
    print(json.dumps(found), flush=True)
    sys.exit(not found["stored = backtest"])


if __name__ == "__main__":
    main()
