"""Real recordings through the whole running system: ingest, log, Spark, PostgreSQL; stored
detections against `backtest` and the oracle.

    python bench/replay.py --url http://127.0.0.1:8000 --user analyst --password ...
        --data ../shared/data [northsea us kitimat beijing]
    python bench/replay.py ... --many --rows 150000

For each recording: a feed and its queries (border and transition in turn, 200 by default) are
created by the API, the rows posted as Arrow streams as fast as ingest takes them, and when the job
has processed them all the detections are read back and compared, fact by fact, in both directions:
with those of the command, and with the oracle. `--many`: Beijing's taxis against 20,000 squares and
5,000 polygons, registered as GeoJSON; the oracle then takes every 50th query over all taxis, and
every 50th taxi over all queries.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.latency import Client
from bench.processors import a_million, spent
from tests.recordings import taxis
from tests.recordings.oracle import Fact, accepted, answers
from tests.recordings.sources import RECORDINGS, Recording, regions, write_queries

Document = dict[str, Any]
"""A query's specification; its name too."""

ROWS_A_POST = 20_000
REGIONS_A_POST = 2_500
QUERIES_A_POST = 1_000
TIMEOUT_S = 1800
ALIKE = 50
"""The oracle checks one in this many of very many queries, and of the entities."""
EXPORT_ROWS = 100_000
"""A file has at most this many detections."""


def create(client: Client, recording: Recording, documents: Sequence[Document], bulk: bool) -> dict[str, int]:
    """The feed and its queries; returns each query's id by its name."""
    name = recording.feed()["name"]
    if any(feed["name"] == name for feed in client.call("GET", "feeds/?page_size=1000")["results"]):
        sys.exit(f"the feed {name} is there already: delete it first, this starts from nothing")
    client.call("POST", "feeds/", recording.feed() | {"title": name, "wall_clock": False, "retention_hours": 87_840})
    if bulk:
        return registered(client, name, documents)
    wanted = [{"feed": name, "name": document["name"], "specification": document, "alert_kinds": []} for document in documents]
    return {
        made["name"]: made["id"]
        for first in range(0, len(wanted), QUERIES_A_POST)
        for made in client.call("POST", "queries/", wanted[first : first + QUERIES_A_POST])
    }


def registered(client: Client, feed: str, documents: Sequence[Document]) -> dict[str, int]:
    """The queries' ids by name, registered as files of regions: one for each template
    and REGIONS_A_POST of them."""
    by_template: dict[str, list[Document]] = {}
    for document in documents:
        template = {key: value for key, value in document.items() if key not in ("name", "region")}
        by_template.setdefault(json.dumps(template), []).append(document)
    ids: dict[str, int] = {}
    for text, alike in by_template.items():
        for first in range(0, len(alike), REGIONS_A_POST):
            some = alike[first : first + REGIONS_A_POST]
            features = [{"type": "Feature", "properties": {"name": one["name"]}, "geometry": one["region"]} for one in some]
            body = {"feed": feed, "template": json.loads(text), "geojson": {"type": "FeatureCollection", "features": features}, "alert_kinds": []}
            ids |= {made["name"]: made["id"] for made in client.call("POST", "queries/bulk", body)["queries"]}
    return ids


def excerpt(recording: Recording, data: Path, rows: int | None, folder: Path) -> Path:
    """The recording's file, or one with its first `rows` rows."""
    if rows is None:
        return recording.path(data)
    pq.write_table(pq.read_table(recording.path(data)).slice(0, rows), folder / "rows.parquet")
    return folder / "rows.parquet"


def posts(recording: Recording, events: Path) -> Iterator[bytes]:
    """The file as Arrow streams of ROWS_A_POST rows, columns named as the feed's."""
    wanted = [*recording.columns.values(), *recording.attributes]
    table = pq.read_table(events, columns=wanted)
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
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        found = client.call("GET", f"feeds/{feed}/")
        head = found["head"]
        if head and found["counters"]["waiting"] == 0 and head["query_version"] == found["query_version"]:
            return dict(found)
        time.sleep(1)
    raise RuntimeError(f"{feed} was not processed within {TIMEOUT_S} s: {found}")


def exported(client: Client, feed: str, since: int, until: int) -> list[dict[str, Any]]:
    """The feed's detections that overlap [since, until), read as files: half the time when one
    would be too long for a file."""
    found: dict[str, dict[str, Any]] = {}
    spans = [(since, until)]
    while spans:
        low, high = spans.pop()
        address = f"{client.url}/api/v1/detections/export?feed={feed}&format=jsonl&from={low}&to={high}"
        rows = [json.loads(line) for line in client.opener.open(address).read().splitlines()]
        if len(rows) == EXPORT_ROWS:
            spans += [(low, (low + high) // 2), ((low + high) // 2, high)]
            continue
        found |= {row["id"]: row for row in rows}
    return list(found.values())


def stored(client: Client, feed: str, ids: dict[str, int], since: int, until: int) -> list[Fact]:
    """The facts of the feed's detections that overlap [since, until)."""
    names = {number: query for query, number in ids.items()}
    rows = exported(client, feed, since, until)
    return sorted((names[row["query"]], row["kind"], row["entities"][0], row["start"], row["end"]) for row in rows)


def backtested(recording: Recording, events: Path, documents: Sequence[Document], folder: Path) -> tuple[list[Fact], dict[str, Any]]:
    """The facts that the command finds in the file, and what it counts."""
    (folder / "feed.json").write_text(json.dumps(recording.feed()))
    command = [sys.executable, "manage.py", "backtest", "--feed", str(folder / "feed.json"), "--events", str(events)]
    command += ["--map", recording.map_option, "--out", str(folder / "out.parquet"), "--stats", str(folder / "stats.json")]
    for document in documents:
        path = folder / f"{document['name']}.json"
        path.write_text(json.dumps(document))
        command += ["--query", str(path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    table = pq.read_table(folder / "out.parquet", columns=["query", "kind", "entities", "start", "end"])
    first = [entities[0] for entities in table["entities"].to_pylist()]
    columns = [table[name].to_pylist() for name in ("query", "kind", "start", "end")]
    facts = sorted((query, kind, entity, start, end) for entity, query, kind, start, end in zip(first, *columns, strict=True))
    return facts, json.loads((folder / "stats.json").read_text())


def answers_in(feed: Document, rows: pa.Table, documents: Sequence[Document], folder: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """These columns of what the command answers over rows in memory."""
    (folder / "feed.json").write_text(json.dumps(feed))
    pq.write_table(rows, folder / "rows.parquet")
    for document in documents:
        (folder / f"{document['name']}.json").write_text(json.dumps(document))
    command = [sys.executable, "manage.py", "backtest", "--feed", str(folder / "feed.json"), "--events", str(folder / "rows.parquet")]
    command += ["--out", str(folder / "out.parquet"), "--query", *(str(folder / f"{document['name']}.json") for document in documents)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    found: list[dict[str, Any]] = pq.read_table(folder / "out.parquet", columns=list(columns)).to_pylist()
    return found


def like_oracle(facts: Sequence[Fact], documents: Sequence[Document], frame: pd.DataFrame, alike: int) -> tuple[bool, int]:
    """Whether the facts of every `alike`-th query, and those of every `alike`-th entity, are the
    oracle's; how many those are."""
    some = documents[::alike]
    names = {document["name"] for document in some}
    expected = sorted(fact for document in some for fact in answers(document["name"], document, frame))
    same, count = [fact for fact in facts if fact[0] in names] == expected, len(expected)
    if alike > 1:
        entities = set(sorted(set(frame["entity"]))[::alike])
        part = frame[frame["entity"].isin(entities)].reset_index(drop=True)
        end = int(frame["t"].max())
        expected = sorted(fact for document in documents for fact in answers(document["name"], document, part, end))
        same, count = same and [fact for fact in facts if fact[2] in entities] == expected, count + len(expected)
    return same, count


def megabytes(client: Client, feed: str) -> dict[str, int]:
    """The most memory that the feed's job has had so far, its Python process and its JVM; empty
    when it runs on another machine."""
    job = next((job["name"] for job in client.call("GET", "jobs/") if feed in job["feeds"]), "")
    port = f"VEDETTE_PORT={client.port}"
    found: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().decode().split("\0")
            if "run_job" in words and job in words and port in (path / "environ").read_bytes().decode().split("\0"):
                every = [int(path.name), *map(int, (path / "task" / path.name / "children").read_text().split())]
                found |= {f"{_field(one, 'Name')} MB": int(_field(one, "VmHWM").split()[0]) // 1000 for one in every}
    return found


def _field(pid: int, name: str) -> str:
    """A line of a process's status."""
    return next(line.split(":", 1)[1].strip() for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(f"{name}:"))


def replay(client: Client, recording: Recording, data: Path, documents: Sequence[Document], rows: int | None, alike: int) -> dict[str, Any]:
    """Everything for one recording and these queries; `rows`: only this
    many, from its beginning."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        events = excerpt(recording, data, rows, folder)
        began = time.monotonic()
        ids = create(client, recording, documents, bulk=alike > 1)
        feed = recording.feed()["name"]
        token = client.call("POST", "tokens/", {"name": f"replay {feed}", "scopes": ["ingest"]})["token"]
        before, started = spent(client.port), time.monotonic()
        for number, body in enumerate(posts(recording, events)):
            send(client, feed, token, body, f"{feed}-{number}")
        sent = time.monotonic()
        found = wait(client, feed)
        done, after = time.monotonic(), spent(client.port)
        memory = megabytes(client, feed)
        frame = accepted({name: column[:rows] for name, column in recording.rows(data).items()})
        command, stats = backtested(recording, events, documents, folder)
    as_oracle, count = like_oracle(command, documents, frame, alike)
    # Live, the watermark is at the last row: what is due at that very moment is still open
    # (specification 1); a backtest ends there.
    first, last = int(frame["t"].min()), int(frame["t"].max())
    decided = [fact for fact in command if not (fact[1].startswith("stayed") and fact[4] >= last)]
    facts = stored(client, feed, ids, first, last + 1)
    return {
        "recording": feed,
        "rows": found["counters"]["received"],
        **found["counters"],
        "queries": len(ids),
        "stored": len(facts),
        "backtest": len(command),
        "oracle": count,
        "stored = backtest": facts == decided,
        "backtest = oracle": as_oracle,
        "registered s": round(started - began, 1),
        "ingest s": round(sent - started, 1),
        "all processed s": round(done - started, 1),
        "rows/s": round(found["counters"]["received"] / (done - started)),
        "processor s a million rows": a_million(before, after, found["counters"]["received"]),
        **memory,
        "backtest's own": {name: value for name, value in stats.items() if name != "queries"},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", default=list(RECORDINGS))
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--many", action="store_true", help="20,000 squares and 5,000 polygons over Beijing's taxis")
    parser.add_argument("--rows", type=int, help="only this many, from the beginning")
    arguments = parser.parse_args()
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    wrong = False
    for name in ["beijing"] if arguments.many else arguments.recordings:
        documents = list(taxis.documents(arguments.data)) if arguments.many else few(RECORDINGS[name], arguments.data, arguments.queries)
        found = replay(client, RECORDINGS[name], arguments.data, documents, arguments.rows, ALIKE if arguments.many else 1)
        print(json.dumps(found), flush=True)
        wrong = wrong or not (found["stored = backtest"] and found["backtest = oracle"])
    sys.exit(wrong)


def few(recording: Recording, data: Path, queries: int) -> list[Document]:
    """Regions of all kinds over the places of the recording."""
    with tempfile.TemporaryDirectory() as place:
        return [document for _, document, _ in write_queries(Path(place), regions(recording, data, queries, seed=7))]


if __name__ == "__main__":
    main()
