"""The history before the first start of a demo world is sent once, whenever it is started again."""

from typing import Any, cast

import pyarrow as pa
import pytest

from webapp.demo.management.commands import simulate
from webapp.feeds.client import IngestClient, Rejected


class Past:
    feed = "ocean"

    def history(self, end: int) -> pa.Table:
        return pa.table({"t": list(range(end - 25, end))})


class Ingest:
    """Accepts a key once, and again only with the same rows."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[int]] = {}

    def send(self, feed: str, rows: pa.Table, *, key: str) -> None:
        if self.bodies.setdefault(key, rows.column("t").to_pylist()) != rows.column("t").to_pylist():
            raise Rejected(422, "used before with another body")


def send(client: Any, end: int) -> None:
    simulate.send_history(cast(Any, Past()), cast(IngestClient, client), feed="ocean", end=end)


def test_a_later_start_does_not_change_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "HISTORY_ROWS", 10)
    client = Ingest()
    send(client, 100)
    first = dict(client.bodies)
    assert sum(map(len, first.values())) == 25
    send(client, 160)
    assert client.bodies == first


def test_any_other_refusal_is_reported() -> None:
    class Closed:
        def send(self, feed: str, rows: pa.Table, *, key: str) -> None:
            raise Rejected(403, "not yours")

    with pytest.raises(Rejected, match="not yours"):
        send(Closed(), 100)
