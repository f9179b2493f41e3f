"""The decompressed size of a body is checked before decompression; the refusal names the limit."""

from __future__ import annotations

import gzip
import io
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from django.db import connections
from rest_framework.test import APIClient

from webapp.accounts.services import token_create
from webapp.feeds import ingest_views
from webapp.feeds.arrow_streams import Limits, StreamRefused, StreamTooLarge, read_stream
from webapp.feeds.bodies import ARROW, BODY_ROWS, CSV, NDJSON, TooLarge, read_body
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed

LIMITS = Limits(100_000, 1_000_000, 25_000_000)
MILLION = "x" * 1_000_000


def stream(table: pa.Table, **options: Any) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return written.getvalue()


def views_of_one_text(rows: int) -> pa.Array:
    """Rows that share the 1,000 bytes of one text."""
    view = np.array([1_000, int.from_bytes(b"yyyy", "little"), 0, 0], np.int32)
    return pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(np.tile(view, rows).tobytes()), pa.py_buffer(b"y" * 1_000)])


BOMBS = {
    "null rows": (stream(pa.table({"entity": pa.nulls(300_000)})), "100,000 rows"),
    "zeros": (stream(pa.table({"entity": np.zeros(20_000_000)}), compression="zstd"), "100,000 rows"),
    "a long text": (stream(pa.table({"entity": ["a" * 50_000_000]}), compression="zstd"), "25,000,000 bytes"),
    "one text in a dictionary": (
        stream(pa.table({"entity": pa.DictionaryArray.from_arrays(np.zeros(90_000, np.int8), [MILLION])})),
        "25,000,000 bytes",
    ),
    "one text in a run": (
        stream(pa.table({"entity": pa.RunEndEncodedArray.from_arrays(pa.array([90_000], pa.int32()), [MILLION])})),
        "25,000,000 bytes",
    ),
    "one text in views": (stream(pa.table({"entity": views_of_one_text(90_000)})), "25,000,000 bytes"),
    "nulls in a list": (stream(pa.table({"z": pa.FixedSizeListArray.from_arrays(pa.nulls(10_000_000), 10_000_000)})), "1,000,000 values"),
    "many columns": (stream(pa.table({str(n): pa.nulls(1) for n in range(1_001)})), "1,000 columns"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_the_size_of_an_arrow_stream_is_checked_before_decompression(bomb: str) -> None:
    body, limit = BOMBS[bomb]
    before = pa.default_memory_pool().bytes_allocated()
    with pytest.raises(StreamTooLarge, match=limit):
        read_stream(body, LIMITS, ["entity"])
    assert pa.default_memory_pool().bytes_allocated() == before


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_arrow_streams_within_the_limits_are_read(compression: str | None) -> None:
    table = pa.table(
        {
            "entity": pa.array(["a", "b", None]).dictionary_encode(),
            "kind": pa.array(["abc", "d" * 30, None], pa.string_view()),
            "zone": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", None])),
            "t": [1, 2, 3],
            "more": [[1], [2, 3], None],
        }
    )
    read = read_stream(stream(table, compression=compression), LIMITS, ["entity", "t"])
    assert read.schema.names == ["entity", "kind", "zone", "t"], "a list that is no column of the feed is left out"
    assert read.to_pylist() == [{name: row[name] for name in read.schema.names} for row in table.to_pylist()]


def test_a_list_where_the_feed_has_a_column_is_refused_by_name() -> None:
    with pytest.raises(StreamRefused, match="'entity' has the Arrow type list"):
        read_stream(stream(pa.table({"entity": [["a"]]})), LIMITS, ["entity", "t"])


def test_a_mutated_stream_is_read_or_refused() -> None:
    table = pa.table({"entity": ["a", "b", None], "t": [1, 2, 3], "d": pa.array(["q", "r", "q"]).dictionary_encode()})
    random, read, refused = np.random.default_rng(17), 0, 0
    for body in (stream(table), stream(table, compression="zstd")):
        for _ in range(1_000):
            mutated = np.frombuffer(body, np.uint8).copy()
            mutated[random.integers(0, len(mutated), 1 + read % 3)] = random.integers(0, 256)
            try:
                read_stream(mutated.tobytes(), LIMITS, ["entity", "t"])
                read += 1
            except (StreamRefused, StreamTooLarge):
                refused += 1
    assert read > 50 and refused > 500


@pytest.fixture
def token(people: SimpleNamespace) -> Iterator[str]:
    yield token_create(user=people.owner, name="source", scopes=["ingest"]).text
    # The pool's lasting connections would keep the test database from being emptied.
    for done in [ingest_views._pool.submit(lambda: (connections.close_all(), time.sleep(0.05))) for _ in range(ingest_views.WORKERS)]:
        done.result()


def commas(rows: int, columns: int) -> bytes:
    return ",".join(f"c{n}" for n in range(columns)).encode() + (b"\n" + b"," * (columns - 1)) * rows


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("body", "kind", "limit"),
    [
        (BOMBS["null rows"][0], ARROW, "100,000 rows"),
        (BOMBS["zeros"][0], ARROW, "100,000 rows"),
        (gzip.compress(b"\n" * 24_000_000), NDJSON, "100,000 rows"),
        (gzip.compress(b"entity\n" + b"a\n" * 12_000_000), CSV, "100,000 rows"),
        (gzip.compress(commas(20_000, 1_000)), CSV, "1,000,000 values"),
        (gzip.compress((b'{"a":[' + b"[]," * 300_000 + b"[]]}\n") * 25), NDJSON, "1,000,000 values"),
        (gzip.compress(b"") * 200_000, NDJSON, "100 gzip members"),
    ],
    ids=["null rows", "zeros", "empty lines", "short rows", "empty cells", "empty lists", "gzip members"],
)
def test_a_decompression_bomb_is_refused_at_once(body: bytes, kind: str, limit: str, feed: Feed, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} | ({"Content-Encoding": "gzip"} if kind != ARROW else {})
    assert len(body) < 5_000_000
    # The first request of a process loads what later ones use.
    assert APIClient().generic("POST", "/api/v1/feeds/yard/events", b"", NDJSON, headers={"Authorization": f"Bearer {token}"}).status_code == 202
    started = time.process_time()
    answer = APIClient().generic("POST", "/api/v1/feeds/yard/events", body, kind, headers=headers)
    assert answer.status_code == 413 and limit in answer.json()["faults"][0]["message"]
    assert time.process_time() - started < 1
    assert event_log(feed.name).end[0] == 0


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_a_body_with_the_maximum_of_rows_is_accepted(feed: Feed, token: str) -> None:
    body = b"entity,t\n" + b"".join(b"a,%d\n" % t for t in range(BODY_ROWS))
    answer = APIClient().generic("POST", "/api/v1/feeds/yard/events", body, CSV, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 202 and answer.json()["appended"] == BODY_ROWS


@pytest.mark.services
@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "header"), [(CSV, b"entity,t\n"), (NDJSON, b"")])
def test_the_maximum_of_rows_is_exact(kind: str, header: bytes, feed: Feed) -> None:
    rows = b"\n" * (BODY_ROWS - 1) + b"x"
    for most in (rows, rows + b"\n"):
        read_body(header + most, kind, feed.engine_feed())
    for more in (b"\n" + rows, b"\n" + rows + b"\n"):
        with pytest.raises(TooLarge, match="more than 100,000 rows"):
            read_body(header + more, kind, feed.engine_feed())
