"""Sends rows to a feed, in batches, each under an idempotency key."""

from __future__ import annotations

import gzip
import json
import math
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from queue import Queue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from vedette.connection import Connection, Refused

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
BATCH_ROWS = 10_000
LINGER_S = 0.25
WAITING_ROWS = 50_000
"""Rows that a writer holds before `put` waits."""
TOO_LARGE = 413
SHOWN = 100


@dataclass(frozen=True)
class Receipt:
    """The result of sending rows: `received = appended + dead`; `late` of the appended ones came
    too late to count. `dead_letters`: the first refused."""

    received: int = 0
    appended: int = 0
    dead: int = 0
    late: int = 0
    dead_letters: list[dict[str, Any]] = field(default_factory=list)

    def __add__(self, other: Receipt) -> Receipt:
        letters = [*self.dead_letters, *other.dead_letters][:SHOWN]
        return Receipt(self.received + other.received, self.appended + other.appended, self.dead + other.dead, self.late + other.late, letters)


class Feed:
    """A feed of the server, by its name."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self.name = connection, name

    def send(self, rows: pd.DataFrame | Iterable[Row], *, key: str | None = None) -> Receipt:
        """Sends rows and waits until they are on the server's disk.

        Columns are `entity`, `t` (an integer in the feed's unit, or a datetime), `x`, `y`, `event`
        and the feed's own; NaN and None are left out. Sending the same rows again under the same
        `key` adds nothing. Raises Refused, Unavailable; what was sent before the fault stays.
        """
        key = key or uuid.uuid4().hex
        total = Receipt()
        for number, batch in enumerate(_batches(_records(rows))):
            total += self._send(batch, f"{key}-{number}")
        return total

    def writer(self) -> Writer:
        """For rows that come one by one: use it in a `with` statement."""
        return Writer(self)

    def head(self) -> dict[str, Any]:
        """The feed as the API shows it: its schema, counters, how far it has been
        processed. Needs the scope read."""
        found: dict[str, Any] = self._connection.get(f"feeds/{quote(self.name, safe='')}/")
        return found

    def _send(self, batch: list[Row], key: str) -> Receipt:
        body = gzip.compress("".join(f"{json.dumps(_plain(row))}\n" for row in batch).encode(), 1, mtime=0)
        # The same bytes each time: the server thereby distinguishes a repetition from another
        # request under the same key.
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "Idempotency-Key": key}
        try:
            receipt = self._connection.request("POST", f"feeds/{quote(self.name, safe='')}/events", body, headers)
        except Refused as refused:
            if refused.status != TOO_LARGE or len(batch) == 1:
                raise
            half = len(batch) // 2
            return self._send(batch[:half], f"{key}a") + self._send(batch[half:], f"{key}b")
        return Receipt(receipt["received"], receipt["appended"], receipt["dead"], receipt["late"], receipt["dead_letters"])


class Writer:
    """Collects rows and sends them in a separate thread, at most BATCH_ROWS at once,
    after LINGER_S at the latest.

    `put` waits while WAITING_ROWS have not been sent. Leaving the `with` block waits for all of
    them. Errors are raised there, or by the next `put`.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._rows: Queue[Row | None] = Queue(WAITING_ROWS)
        self._thread = threading.Thread(target=self._work, name=f"vedette-{feed.name}", daemon=True)
        self._fault: BaseException | None = None
        self.receipt = Receipt()

    def put(self, row: Row) -> None:
        """Takes a row. Raises the error of earlier rows, if there was one."""
        _check(row)
        if self._fault is not None:
            raise self._fault
        self._rows.put(row)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._rows.put(None)
        self._thread.join()
        if error is None and self._fault is not None:
            raise self._fault

    def _work(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._batch()
            # After a fault rows are taken and dropped, so that no caller waits
            # forever: `put` raises the fault.
            if batch and self._fault is None:
                try:
                    self.receipt += self._feed.send(batch)
                except BaseException as error:
                    self._fault = error

    def _batch(self) -> tuple[list[Row], bool]:
        first = self._rows.get()
        if first is None:
            return [], True
        batch = [first]
        threading.Event().wait(LINGER_S)
        while len(batch) < BATCH_ROWS and not self._rows.empty():
            row = self._rows.get()
            if row is None:
                return batch, True
            batch.append(row)
        return batch, False


def _records(rows: Any) -> Iterator[Row]:
    if isinstance(rows, Mapping | str | bytes):
        raise TypeError(f"rows are a list of dicts or a DataFrame, not one {type(rows).__name__}: send([row]) sends a single row")
    return (
        (dict(zip(rows.columns, values, strict=True)) for values in rows.itertuples(index=False, name=None))
        if hasattr(rows, "itertuples")
        else iter(rows)
    )


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, BATCH_ROWS)):
        for row in batch:
            _check(row)
        yield batch


def _check(row: Any) -> None:
    """Raises TypeError for a value that is not a row."""
    if not isinstance(row, Mapping):
        raise TypeError(f"a row is a dict such as {{'entity': 'a', 't': 1}}, not {type(row).__name__}")


def _plain(row: Row) -> dict[str, Any]:
    found = {name: _value(value) for name, value in row.items()}
    return {name: value for name, value in found.items() if value is not None}


def _value(value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, datetime):
        value = value.item()  # of NumPy
    if isinstance(value, datetime):
        # NaT is a datetime that is not equal to itself.
        return None if value != value else round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else None if value != value else str(value)
