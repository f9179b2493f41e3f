"""A program that sends rows to a feed over HTTP, like any outside source: it needs an address and a
token, but no database."""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
AGAIN = {429, 500, 502, 503, 504}
"""Statuses after which a retry may succeed."""
LONGEST_PAUSE_S = 10.0


class Rejected(RuntimeError):
    """The server refused the request with `status`: a retry will not help."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class IngestClient:
    """One connection to one server, kept open. `on_fault` is called for each failed attempt;
    `timeout_s` bounds all attempts for one request."""

    url: str
    token: str
    timeout_s: float = 600.0
    on_fault: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        secure = parts.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connection = connect(parts.hostname or "127.0.0.1", parts.port, timeout=30)
        self._base = parts.path.rstrip("/")

    def send(self, feed: str, rows: pa.Table, *, key: str | None = None) -> dict[str, Any]:
        """The server's receipt for `rows`, once they are safely stored: attempts are repeated
        under one idempotency key.

        Raises Rejected, or ConnectionError when the server is unavailable for longer than the
        timeout.
        """
        return self.send_bytes(feed, arrow_stream(rows), ARROW, key=key)

    def send_bytes(self, feed: str, body: bytes, content_type: str, *, key: str | None = None) -> dict[str, Any]:
        """Like `send`, for a body in any form that ingest accepts."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type, "Idempotency-Key": key or uuid.uuid4().hex}
        path = f"{self._base}/api/v1/feeds/{quote(feed, safe='')}/events"
        give_up, pause = time.monotonic() + self.timeout_s, 0.2
        while True:
            try:
                status, answer = self._attempt(path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                fault = f"{type(error).__name__}: {error}"
            else:
                if status == HTTPStatus.ACCEPTED:
                    receipt: dict[str, Any] = json.loads(answer)
                    return receipt
                fault = f"{status} {answer[:500].decode(errors='replace')}"
                if status not in AGAIN:
                    raise Rejected(status, fault)
            if time.monotonic() + pause > give_up:
                raise ConnectionError(fault)
            self.on_fault(fault)
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_S, pause * 2)

    def _attempt(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def close(self) -> None:
        """May be called twice."""
        self._connection.close()


def arrow_stream(rows: pa.Table) -> bytes:
    """`rows` as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())
