"""End to end at full load: HTTP, log, job, PostgreSQL and an open page; rows a second and the
processor time of each process.

    python -m bench.whole_way --password ... --data ../shared/data
        [--url http://127.0.0.1:8000] [--user analyst]
        [--formats arrow csv ndjson] [--senders 2] [--queries 200]

Beijing's taxis on a running system, for each format from nothing: a feed with 200 queries; senders
with a lasting connection each, which share the taxis and post as fast as they are answered; a page
that follows all queries. The time ends when the page has its last answer. Then the counters and all
stored detections are compared with those of `backtest` over the same rows. The feed stays.

The senders go forward together, a request each, and the feed's lateness covers the difference
between them: no row is late. `senders` and `page` are the bench's own processes: a real system's
are on other machines.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import websockets.sync.client as websockets

from bench.latency import Client
from bench.processors import a_million, spent
from bench.replay import Document, backtested, create, few, stored, wait
from tests.recordings.oracle import Fact
from tests.recordings.sources import RECORDINGS, Recording

ROWS_A_REQUEST = 30_000
QUIET_S = 2.0
"""The page has all answers if none has arrived for this long after the closing one."""
REST_S = 10.0
"""How long the system is observed before anything is sent: its processor time without rows."""
CLOSING = "closing"
"""The entity of the last rows: its step into the first query's region is
answered in the last batch."""


@dataclass(frozen=True)
class Tolerant(Recording):
    """A recording on a feed that accepts late rows."""

    title: str = ""
    lateness: int = 0

    def feed(self) -> dict[str, Any]:
        return super().feed() | {"name": self.title, "lateness": self.lateness}


def arrow(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def as_csv(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pv.write_csv(rows, sink)
    return sink.getvalue()


def ndjson(rows: pa.Table) -> bytes:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows.to_pylist()).encode()


FORMATS: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    "arrow": ("application/vnd.apache.arrow.stream", arrow),
    "csv": ("text/csv", as_csv),
    "ndjson": ("application/x-ndjson", ndjson),
}


def rounds(rows: pa.Table, senders: int) -> list[list[pa.Table]]:
    """The rows of each sender, by round: those of its own taxis in the same period."""
    whole = [rows.slice(first, senders * ROWS_A_REQUEST) for first in range(0, rows.num_rows, senders * ROWS_A_REQUEST)]
    shares = [part.column("entity").to_numpy() % senders for part in whole]
    return [[part.filter(pa.array(share == sender)) for sender in range(senders)] for part, share in zip(whole, shares, strict=True)]


def closing_rows(document: Document, last: int, lateness: int) -> pa.Table:
    """An entity's step into a circle, and a row that lets the clock pass it."""
    x, y = document["region"]["center"]
    times = [last + 1, last + 2, last + 3 + lateness]
    return pa.table({"entity": [CLOSING] * 3, "t": pa.array(times, pa.int64()), "x": [0.0, x, x], "y": [0.0, y, y]})


def post(address: str, feed: str, token: str, kind: str, bodies: Sequence[tuple[str, bytes]], start: Connection) -> None:
    """A process of senders: posts the bodies of each round (key, body) side by side on a signal;
    reports when each round was answered."""
    host = address.removeprefix("http://")
    headers = {"Content-Type": kind, "Authorization": f"Bearer {token}"}

    def send(connection: http.client.HTTPConnection, key: str, body: bytes) -> None:
        while True:
            connection.request("POST", f"/api/v1/feeds/{feed}/events", body, headers | {"Idempotency-Key": key})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == http.HTTPStatus.ACCEPTED:
                return
            if answer.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
                raise RuntimeError(f"{answer.status}: {text[:500]!r}")
            time.sleep(float(answer.headers["Retry-After"]))

    by_round: dict[str, list[tuple[str, bytes]]] = {}
    for key, body in bodies:
        by_round.setdefault(key.split("-")[0], []).append((key, body))
    connections = [http.client.HTTPConnection(host) for _ in range(max(map(len, by_round.values())))]
    with ThreadPoolExecutor(len(connections)) as pool:
        start.recv()
        before = time.process_time()
        for parts in by_round.values():
            list(pool.map(send, connections, [key for key, _ in parts], [body for _, body in parts]))
        start.send((time.time(), time.process_time() - before))


def page(address: str, headers: dict[str, str], feed: str, queries: Sequence[int], ready: Connection) -> None:
    """A process of one open page: follows the feed as the live page does until the closing answer
    has come and no further frame arrives."""
    answers = resyncs = 0
    closed, came, before = False, time.time(), time.process_time()
    with websockets.connect(address, origin=headers["Origin"], additional_headers={"Cookie": headers["Cookie"]}, max_size=None) as socket:  # type: ignore[arg-type]
        subscribe = {"type": "subscribe", "feed": feed, "queries": list(queries), "bbox": None, "since": None, "from": None}
        socket.send(json.dumps(subscribe))
        ready.send(True)
        # A batch's answers come by family, so others follow the closing answer; the state of the
        # feed comes every second.
        while not closed or time.time() - came < QUIET_S:
            frame = json.loads(socket.recv())
            if frame["type"] == "resync":
                resyncs += 1
                socket.send(json.dumps(subscribe))
            elif frame["type"] in ("changes", "snapshot"):
                came = time.time()
                answers += len(frame["detections"])
                socket.send(json.dumps({"type": "ack", "feed": feed, "seq": frame["seq"]}))
                closed = closed or any(row["entities"] == [CLOSING] and row["kind"] == "in" for row in frame["detections"])
    ready.send((came, time.process_time() - before, answers, resyncs))


@dataclass(frozen=True)
class Load:
    """The bodies of each round, and the answers of `backtest` to them."""

    recording: Tolerant
    documents: Sequence[Document]
    rounds: list[list[pa.Table]]
    closing: pa.Table
    first: int
    stop: int
    facts: list[Fact]


def load(data: Path, senders: int, queries: int) -> Load:
    """Beijing's taxis for this many senders."""
    beijing = RECORDINGS["beijing"]
    documents = few(beijing, data, queries)
    rows = pq.read_table(beijing.path(data), columns=list(beijing.columns.values())).rename_columns(list(beijing.columns))
    t = rows.column("t").to_numpy()
    parts = rounds(rows, senders)
    spans = [pa.concat_tables(some).column("t").to_numpy() for some in parts]
    lateness = 0 if senders == 1 else max(int(span.max() - span.min()) for span in spans)
    closing = closing_rows(documents[0], int(t.max()), lateness)
    recording = Tolerant(**(vars(beijing) | {"title": "whole-way", "lateness": lateness, "columns": {name: name for name in beijing.columns}}))
    with tempfile.TemporaryDirectory() as place:
        events = Path(place) / "rows.parquet"
        text = rows.set_column(0, "entity", rows.column("entity").cast(pa.string()))
        pq.write_table(pa.concat_tables([text, closing]), events)
        found, _ = backtested(recording, events, documents, Path(place))
    stop = int(closing.column("t")[2].as_py()) + 1
    # Live, the watermark is `lateness` before the last row, and what is due at that very moment is
    # still open; a backtest goes to the end.
    decided = [fact for fact in found if not (fact[1].startswith("stayed") and fact[4] >= stop - 1 - lateness)]
    return Load(recording, documents, parts, closing, int(t.min()), stop, decided)


def measured(client: Client, load: Load, name: str) -> dict[str, Any]:
    """Everything for one format."""
    kind, body_of = FORMATS[name]
    feed = f"whole-way-{name}-{int(time.time())}"
    began = time.monotonic()
    ids = create(client, replace(load.recording, title=feed), load.documents, bulk=False)
    registered = time.monotonic() - began
    wait(client, feed)
    token = client.call("POST", "tokens/", {"name": feed, "scopes": ["ingest"]})["token"]
    bodies = [(f"{number}-{sender}", body_of(rows)) for number, some in enumerate(load.rounds) for sender, rows in enumerate(some) if rows.num_rows]
    bodies.append(("end-0", body_of(load.closing)))
    spawn = get_context("spawn")
    sending, start = spawn.Pipe()
    reading, ready = spawn.Pipe()
    cookie = "; ".join(f"{one.name}={one.value}" for one in client.jar)
    address = client.url.replace("http", "ws", 1) + "/ws/live/"
    reader = spawn.Process(target=page, args=(address, {"Origin": client.url, "Cookie": cookie}, feed, sorted(ids.values()), ready))
    writer = spawn.Process(target=post, args=(client.url, feed, token, kind, bodies, start))
    reader.start()
    writer.start()
    # Detects one that ends with an error.
    start.close()
    ready.close()
    reading.recv()
    resting = spent(client.port)
    time.sleep(REST_S)
    before, idle, begins = spent(client.port), _idle(), time.time()
    at_rest = a_million(resting, before, int(REST_S * 1e6))
    sending.send(True)
    answered, senders_s = sending.recv()
    ended, page_s, answers, resyncs = reading.recv()
    after, idle, over = spent(client.port), _idle() - idle, time.time()
    for process in (reader, writer):
        process.join()
    counters = wait(client, feed)["counters"]
    count = counters["received"]
    facts = stored(client, feed, ids, load.first, load.stop)
    seconds, own = ended - begins, a_million(before, after, count)
    return {
        "format": name,
        "senders": max(map(len, load.rounds)),
        "requests": len(bodies),
        "MB": round(sum(len(body) for _, body in bodies) / 1e6),
        **counters,
        "queries": len(ids),
        "stored": len(facts),
        "stored = backtest": facts == load.facts,
        "on the page": answers,
        "resyncs": resyncs,
        "registered s": round(registered, 1),
        "sent s": round(answered - begins, 1),
        "last answer on the page s": round(seconds, 2),
        "from the last 202 to the page s": round(ended - answered, 2),
        "rows/s": round(count / seconds),
        "idle share of the processors": round(idle / (over - begins) / (psutil.cpu_count() or 1), 2),
        "processor s a million rows": own,
        "together": round(sum(own.values()), 2),
        "of it, as at rest": round(sum(at_rest.values()) * (over - begins) / count * 1e6, 2),
        "processor s a second at rest": at_rest,
        "bench's own": {"senders": round(senders_s / count * 1e6, 2), "page": round(page_s / count * 1e6, 2)},
    }


def _idle() -> float:
    """Seconds for which the machine's processors were idle."""
    times = psutil.cpu_times()
    return float(times.idle + times.iowait)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    client = Client(arguments.url)
    client.login(arguments.user, arguments.password)
    wanted = load(arguments.data, arguments.senders, arguments.queries)
    wrong = False
    for name in arguments.formats:
        found = measured(client, wanted, name)
        print(json.dumps(found), flush=True)
        wrong = wrong or not found["stored = backtest"] or found["late"] > 0 or found["lost"] > 0
    sys.exit(wrong)


if __name__ == "__main__":
    main()
