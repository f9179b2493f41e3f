"""Real recordings through the whole running system: ingest, log, Spark, PostgreSQL; stored detections against `backtest` and the oracle.

    python bench/replay.py --url http://127.0.0.1:8000 --user analyst --password ... --data ../shared/data [northsea us kitimat beijing]

For each recording: a feed and its queries (border and transition in turn, 200 by default) are created by the API, the rows posted as Arrow streams
as fast as ingest takes them, and when the job has processed them all the detections are read back and compared, fact by fact, in both directions.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.latency import Client
from tests.recordings.oracle import Fact, accepted, answers
from tests.recordings.sources import RECORDINGS, Recording, regions, write_queries

ROWS_A_POST = 20_000
PATIENCE_S = 1800


def create(client: Client, recording: Recording, documents: list[tuple[str, dict[str, Any], Path]]) -> dict[str, int]:
    """The feed and its queries; gives each query's id by its name."""
    name = recording.feed()["name"]
    if any(feed["name"] == name for feed in client.call("GET", "feeds/?page_size=1000")["results"]):
        sys.exit(f"the feed {name} is there already: delete it first, this starts from nothing")
    client.call("POST", "feeds/", recording.feed() | {"title": name, "wall_clock": False, "retention_hours": 87_840})
    ids = {}
    for query, document, _ in documents:
        made = client.call("POST", "queries/", {"feed": name, "name": query, "specification": document, "alert_kinds": []})
        ids[query] = made["id"]
    return ids


def posts(recording: Recording, data: Path) -> Iterator[bytes]:
    """The recording as Arrow streams of ROWS_A_POST rows, columns named as the feed's."""
    wanted = [*recording.columns.values(), *recording.attributes]
    table = pq.read_table(recording.path(data), columns=wanted)
    table = table.rename_columns([*recording.columns, *recording.attributes])
    for first in range(0, len(table), ROWS_A_POST):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(first, ROWS_A_POST))
        yield sink.getvalue()


def send(client: Client, feed: str, token: str, body: bytes, key: str) -> None:
    """Posts one stream; the key makes a repetition harmless."""
    headers = {"Content-Type": "application/vnd.apache.arrow.stream", "Authorization": f"Bearer {token}", "Idempotency-Key": key}
    client.call("POST", f"feeds/{feed}/events", body, headers)


def wait(client: Client, feed: str) -> dict[str, Any]:
    """The feed when everything in its log has been processed under its present queries."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = client.call("GET", f"feeds/{feed}/")
        head = found["head"]
        if head and found["counters"]["waiting"] == 0 and head["query_version"] == found["query_version"]:
            return dict(found)
        time.sleep(1)
    raise RuntimeError(f"{feed} was not processed within {PATIENCE_S} s: {found}")


def stored(client: Client, feed: str, ids: dict[str, int]) -> list[Fact]:
    """The feed's detections, at most the 100,000 of one export."""
    names = {number: query for query, number in ids.items()}
    text = client.opener.open(f"{client.url}/api/v1/detections/export?feed={feed}&format=jsonl").read()
    rows = [json.loads(line) for line in text.splitlines()]
    return sorted((names[row["query"]], row["kind"], row["entities"][0], row["start"], row["end"]) for row in rows)


def backtested(recording: Recording, data: Path, documents: list[tuple[str, dict[str, Any], Path]], folder: Path) -> list[Fact]:
    """The facts that the command finds in the recording's file."""
    (folder / "feed.json").write_text(json.dumps(recording.feed()))
    command = [sys.executable, "manage.py", "backtest", "--feed", str(folder / "feed.json"), "--events", str(recording.path(data))]
    command += ["--map", recording.map_option, "--out", str(folder / "out.parquet")]
    for _, _, path in documents:
        command += ["--query", str(path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    rows = pq.read_table(folder / "out.parquet", columns=["query", "kind", "entities", "start", "end"]).to_pylist()
    return sorted((row["query"], row["kind"], row["entities"][0], row["start"], row["end"]) for row in rows)


def replay(client: Client, recording: Recording, data: Path, queries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        documents = write_queries(folder, regions(recording, data, queries, seed=7))
        ids = create(client, recording, documents)
        feed = recording.feed()["name"]
        token = client.call("POST", "tokens/", {"name": f"replay {feed}", "scopes": ["ingest"]})["token"]
        started = time.monotonic()
        for number, body in enumerate(posts(recording, data)):
            send(client, feed, token, body, f"{feed}-{number}")
        sent = time.monotonic()
        found = wait(client, feed)
        done = time.monotonic()
        frame = accepted(recording.rows(data))
        last = int(frame["t"].max())
        oracle = sorted(fact for query, document, _ in documents for fact in answers(query, document, frame))
        command = backtested(recording, data, documents, folder)
    # Live the watermark stands at the last row: what is due at that very moment is still open (CONTRACT 1); a backtest ends there.
    live_oracle = [fact for fact in oracle if not (fact[1].startswith("stayed") and fact[4] >= last)]
    facts = stored(client, feed, ids)
    return {
        "recording": feed,
        "rows": found["counters"]["received"],
        **found["counters"],
        "queries": queries,
        "stored": len(facts),
        "oracle": len(oracle),
        "stored = oracle": facts == live_oracle,
        "backtest = oracle": command == oracle,
        "ingest s": round(sent - started, 1),
        "all processed s": round(done - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", default=list(RECORDINGS))
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    wrong = False
    for name in arguments.recordings:
        found = replay(client, RECORDINGS[name], arguments.data, arguments.queries)
        print(json.dumps(found), flush=True)
        wrong = wrong or not (found["stored = oracle"] and found["backtest = oracle"])
    sys.exit(wrong)


if __name__ == "__main__":
    main()
