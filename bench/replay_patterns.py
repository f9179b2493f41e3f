"""Patterns over recordings of readers through the whole running system: stored detections against
`backtest` and the oracle.

    python bench/replay_patterns.py --url http://127.0.0.1:8000 --user analyst --password ...
        --data ../shared/data ["badges that meet" ...]

For each recording: a feed and 51 patterns (`tests/recordings/patterns.py`, with three spans) are
created by the API, the rows posted as Arrow streams as fast as ingest takes them, and when the job
has processed them all the stored detections are compared with those of the command, each as often
as it is there, in both directions. The oracle enumerates occurrences, so it gets excerpts of the
rows: an occurrence that ends in an excerpt depends on rows that are at most `within` older. Live,
the watermark is at the last row, so occurrences that end at that very moment are left out on both
sides (specification 1).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.latency import Client
from bench.replay import answers_in, exported, wait
from bench.replay_programs import post
from tests.oracles.complex_events import answers
from tests.recordings.patterns import READINGS, Document, Readings, as_trees

Facts = Counter[tuple[str, str | None, int, int]]
"""Query, entity, start, end."""
STRETCH_ROWS, STRETCHES = 80, 6


def documents(readings: Readings) -> list[Document]:
    """All forms with three spans, named as no other."""
    found = []
    for number, share in enumerate((1, 2, 5)):
        found += [{**one, "name": f"{one['name']}-{number}"} for one in replace(readings, span=readings.span // share).documents()]
    return found


def facts_of(rows: Sequence[dict[str, Any]], names: dict[int, str] | None = None) -> Facts:
    return Counter((names[row["query"]] if names else row["query"], next(iter(row["entities"]), None), row["start"], row["end"]) for row in rows)


def backtested(readings: Readings, rows: pa.Table, patterns: Sequence[Document], folder: Path) -> Facts:
    """The answers of the command on the same rows."""
    return facts_of(answers_in(readings.feed, rows, patterns, folder, ["query", "entities", "start", "end"]))


def like_oracle(facts: Facts, rows: pa.Table, patterns: Sequence[Document]) -> tuple[bool, int]:
    """Whether the facts that end in some excerpts are the oracle's, and how many those are."""
    every, same, count = [{**row, "seq": seq} for seq, row in enumerate(rows.to_pylist())], True, 0
    trees, within = as_trees(patterns), max(one["within"] for one in patterns)
    for number in range(STRETCHES):
        first = number * (len(every) - STRETCH_ROWS) // max(1, STRETCHES - 1)
        part = every[first : first + STRETCH_ROWS]
        # Rows of one time before the excerpt are missing too, and a timer of its last time may come
        # after rows that are.
        low, high = (part[0]["t"] + within if first else part[0]["t"] - 1), part[-1]["t"]
        expected = Counter({(patterns[one.query]["name"], one.entity, one.start, one.end): n for one, n in answers(part, trees).items()})
        inside = {fact: n for fact, n in expected.items() if low < fact[3] < high}
        same = same and inside == {fact: n for fact, n in facts.items() if low < fact[3] < high}
        count += sum(inside.values())
    return same, count


def replay(client: Client, name: str, data: Path, count: int) -> dict[str, Any]:
    readings = READINGS[name]
    rows, patterns, feed = readings.rows(data, count), documents(readings), name.replace(" ", "-")
    client.call("POST", "feeds/", readings.feed | {"name": feed, "title": name, "wall_clock": False, "retention_hours": 87_840})
    names = {}
    for one in patterns:
        names[client.call("POST", "queries/", {"feed": feed, "name": one["name"], "specification": one, "alert_kinds": []})["id"]] = one["name"]
    token = client.call("POST", "tokens/", {"name": f"replay {feed}", "scopes": ["ingest"]})["token"]
    began = time.monotonic()
    post(client, feed, token, rows, feed)
    counters = wait(client, feed)["counters"]
    done = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = backtested(readings, rows, patterns, Path(folder))
    last = rows["t"][-1].as_py()
    live = facts_of(exported(client, feed, rows["t"][0].as_py(), last + 1), names)
    decided = [Counter({fact: n for fact, n in facts.items() if fact[3] < last}) for facts in (live, command)]
    as_oracle, compared = like_oracle(command, rows, patterns)
    return {
        "recording": name, **counters, "queries": len(patterns), "stored": live.total(), "backtest": command.total(),
        "stored = backtest": decided[0] == decided[1], "backtest = oracle": as_oracle, "oracle": compared, "all processed s": round(done - began, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", default=list(READINGS))
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=3_000, help="of each recording")
    arguments = parser.parse_args()
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    wrong = False
    for name in arguments.recordings:
        found = replay(client, name, arguments.data, arguments.rows)
        print(json.dumps(found), flush=True)
        wrong = wrong or not (found["stored = backtest"] and found["backtest = oracle"])
    sys.exit(wrong)


if __name__ == "__main__":
    main()
