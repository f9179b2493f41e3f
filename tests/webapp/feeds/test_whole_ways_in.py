"""The same rows come in by every whole way: sent to the API, put into the feed's folder, over a
connector, and as a file of a backtest.

Whatever the way, the same rows are accepted, and the others have the same dead letters: unreadable,
wrong, from the future, and late.
"""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from engine.backtest.command import main as backtest
from engine.model.untimely import late_letters
from engine.runtime.gate import Gate
from tests.examples import examples
from webapp.accounts.services import token_create
from webapp.connectors.running import Run
from webapp.connectors.services import connector_create
from webapp.feeds.folders import Inbox
from webapp.feeds.logs import event_log
from webapp.feeds.models import Connector, DeadLetter, Feed, IngestCounter
from webapp.feeds.services import feed_create

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool_connections")]

LATENESS, AHEAD = 10, 3_600_000
COLUMNS = {"speed": "float", "kind": "string"}
QUERY = {"family": "border", "version": 1, "region": {"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 5], [0, 5], [0, 0]]]}}
NUMBERS = count()

Letter = tuple[str, str, str]
"""Reason, detail and row of a dead letter."""
Found = tuple[int, Counter[Letter]]
"""How many rows were accepted, and the dead letters."""


@st.composite
def rows(draw: Any) -> list[dict[str, Any]]:
    """Rows of one entity or two whose times advance, fall back and leap; some without an entity, a
    time, or half of a place.

    Leaps are long: a feed's clock may advance by the time for which no row came, which
    is some milliseconds here.
    """
    found, t = [], 100
    for _ in range(draw(st.integers(1, 12))):
        t += draw(st.sampled_from([0, 1, 5, 5, 9, 2 * AHEAD, -3, -LATENESS, -LATENESS - 1]))
        found.append(
            {
                "entity": draw(st.sampled_from(["a", "a", "a", "b", "b", None])),
                "t": draw(st.sampled_from([t, t, t, t, t, None])),
                "x": draw(st.sampled_from([1.5, 1.5, 7.0, None])),
                "y": draw(st.sampled_from([2.0, 2.0, 2.0, None])),
                "speed": draw(st.sampled_from([0.5, None])),
                "kind": draw(st.sampled_from(["tug", "", None])),
            }
        )
    return found


TYPES = pa.schema(
    [("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("speed", pa.float64()), ("kind", pa.string())]
)


def json_lines(table: Sequence[dict[str, Any]]) -> bytes:
    """With a line that is no row in the middle."""
    lines = [json.dumps({name: value for name, value in row.items() if value is not None}) for row in table]
    return "".join(f"{line}\n" for line in [*lines[:2], '{"entity": "a", "t":', *lines[2:]]).encode()


def comma_separated(table: Sequence[dict[str, Any]]) -> bytes:
    """With a line that has too few cells at the end."""
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table]
    return "".join(f"{line}\n" for line in [",".join(TYPES.names), *lines, "a,1"]).encode()


def arrow(table: Sequence[dict[str, Any]]) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, TYPES) as stream:
        stream.write_table(pa.Table.from_pylist(list(table), TYPES))
    return written.getvalue()


def parquet(table: Sequence[dict[str, Any]]) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(table), TYPES), written)
    return written.getvalue()


class Ways:
    """Each way sends a body to a new feed and returns the result."""

    def __init__(self, people: SimpleNamespace, folder: Path) -> None:
        self.people, self.folder = people, folder
        self.token = token_create(user=people.owner, name="source", scopes=["ingest"]).text

    def feed(self) -> Feed:
        name = f"yard-{next(NUMBERS)}"
        about: dict[str, Any] = {"crs": "planar", "time": "ms", "lateness": LATENESS, "ahead": AHEAD, "columns": COLUMNS}
        return feed_create(owner=self.people.owner, team=self.people.harbour, name=name, title=name, **about)

    def post(self, body: bytes, kind: str, encoding: str = "") -> Found:
        feed = self.feed()
        headers = {"Authorization": f"Bearer {self.token}", **({"Content-Encoding": encoding} if encoding else {})}
        answer = APIClient().generic("POST", f"/api/v1/feeds/{feed.name}/events", body, kind, headers=headers)
        assert answer.status_code == 202, answer.content
        return stored(feed)

    def put_into_the_folder(self, body: bytes, suffix: str) -> Found:
        feed = self.feed()
        inbox = Inbox(self.folder / "inbox", chunk_rows=3, quiet_s=0.0)
        path = inbox.root / feed.name / f"rows.{suffix}"
        path.parent.mkdir(parents=True)
        path.write_bytes(body)
        inbox.scan([feed], budget_s=60)
        assert not path.exists()
        return stored(feed)

    def connect(self, messages: Sequence[bytes], received: int, form: str = "json") -> Found:
        feed = self.feed()
        with sending(messages) as port:
            about = {"url": f"ws://127.0.0.1:{port}/", "format": form}
            made = connector_create(feed=feed, name="socket", kind="websocket", settings=about)
            run = Run(Connector.objects.get(pk=made.pk))
            run.start()
            end = time.monotonic() + 30
            while not (counter := IngestCounter.objects.filter(feed=feed).first()) or counter.received < received:
                assert time.monotonic() < end, counter and counter.received
                time.sleep(0.01)
            run.over.set()
            run.join()
        return stored(feed)

    def backtest(self, body: bytes, suffix: str) -> Found:
        place = self.folder / f"backtest-{next(NUMBERS)}"
        place.mkdir()
        events, feed, query = place / f"rows.{suffix}", place / "feed.json", place / "crossings.json"
        events.write_bytes(body)
        feed.write_text(json.dumps({**self.feed().engine_feed().to_json(), "ahead": AHEAD}))
        query.write_text(json.dumps(QUERY))
        outputs = {name: place / f"{name}.jsonl" for name in ("out", "dead-letters")} | {"stats": place / "stats.json"}
        given = ["--feed", feed, "--events", events, "--query", query, *(part for name, path in outputs.items() for part in (f"--{name}", path))]
        assert backtest([str(one) for one in given]) == 0
        letters = [json.loads(line) for line in outputs["dead-letters"].read_text().splitlines()]
        counts = json.loads(outputs["stats"].read_text())
        return counts["rows_accepted"] + counts["rows_duplicate"], Counter(
            letter_of(one["reason"], one["detail"], json.loads(one["row"])) for one in letters
        )


@contextmanager
def sending(messages: Sequence[bytes]) -> Iterator[int]:
    """A server that sends the messages to each client that connects, and its port."""

    def send(connection: ServerConnection) -> None:
        for message in messages:
            connection.send(message, text=True)
        with suppress(ConnectionClosed):
            connection.recv(timeout=30)

    with serve(send, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.socket.getsockname()[1])
        server.shutdown()


def stored(feed: Feed) -> Found:
    """The rows that a job accepts from the log, and the dead letters."""
    engine_feed = feed.engine_feed()
    gate, accepted = Gate(engine_feed), 0
    letters = Counter(letter_of(one.reason, one.detail, one.row) for one in DeadLetter.objects.filter(feed=feed))
    for table in event_log(feed.name).read():
        late = gate.take(table, -(2**60)).late
        accepted += table.num_rows - late.num_rows
        letters += Counter(letter_of(one.reason, one.detail, one.row) for one in late_letters(late, engine_feed))
    return accepted, letters


def letter_of(reason: str, detail: str, row: dict[str, Any] | None) -> Letter:
    """Without what a way adds to a row: when a message came. Parts without a value are left out,
    since JSON lines leave them out."""
    shown = {name: value for name, value in (row or {}).items() if name != "received" and value not in (None, "")}
    return str(reason), str(detail), json.dumps(shown, sort_keys=True)


def of_wrong_rows(found: Found) -> Found:
    """For a line that is not a row each way shows the part that it has read."""
    accepted, letters = found
    return accepted, Counter({letter if letter[0] != "malformed" else ("malformed", "", ""): number for letter, number in letters.items()})


@pytest.fixture
def ways(people: SimpleNamespace, tmp_path: Path, settings: Any) -> Ways:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    return Ways(people, tmp_path)


EXAMPLES = settings(max_examples=examples(5), phases=[Phase.explicit, Phase.generate], suppress_health_check=[*HealthCheck])
"""Few, and not made smaller when they fail: each takes a second, as servers, files
and a connector are real."""
LEAPS = [{"entity": "a", "t": t, "x": 1.5, "y": 2.0, "speed": None, "kind": "tug"} for t in (100, 120, 9_999_999, 109, 110, 120)]


@EXAMPLES
@given(table=rows())
def test_json_lines(ways: Ways, table: list[dict[str, Any]]) -> None:
    text = json_lines(table)
    found = ways.backtest(text, "jsonl")
    assert ways.backtest(gzip.compress(text), "jsonl.gz") == found
    assert ways.post(text, "application/x-ndjson") == found
    assert ways.post(gzip.compress(text), "application/x-ndjson", "gzip") == found
    assert ways.put_into_the_folder(text, "jsonl") == ways.put_into_the_folder(gzip.compress(text), "jsonl.gz") == found
    assert of_wrong_rows(ways.connect(text.splitlines(), len(table) + 1)) == of_wrong_rows(found)


@EXAMPLES
@given(table=rows())
def test_csv(ways: Ways, table: list[dict[str, Any]]) -> None:
    text = comma_separated(table)
    found = ways.backtest(text, "csv")
    assert ways.post(text, "text/csv") == found
    assert ways.put_into_the_folder(text, "csv") == ways.put_into_the_folder(zstandard.compress(text), "csv.zst") == found
    assert of_wrong_rows(ways.connect([text], len(table) + 1, "csv")) == of_wrong_rows(found)


@EXAMPLES
@given(table=rows())
def test_columns_of_arrow_and_parquet(ways: Ways, table: list[dict[str, Any]]) -> None:
    found = ways.backtest(parquet(table), "parquet")
    assert ways.put_into_the_folder(parquet(table), "parquet") == found
    assert ways.post(arrow(table), "application/vnd.apache.arrow.stream") == found


def test_rows_that_are_late_or_from_the_future_have_dead_letters_that_say_how_much(ways: Ways) -> None:
    accepted, letters = ways.post(arrow(LEAPS), "application/vnd.apache.arrow.stream")
    assert accepted == 4
    assert sorted((reason, detail) for reason, detail, _ in letters) == [
        ("future", "t is too far ahead of the clock, 120: the feed allows 1 h (its setting ahead)"),
        ("late", "t is 11 ms behind the newest row: the feed allows 10 ms (its setting lateness)"),
    ]
