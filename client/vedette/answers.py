"""The answers of one query: as they become known, and as they hold now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vedette.connection import Connection

if TYPE_CHECKING:
    import pandas as pd

POLL_S = 0.5
PAGE = 1_000


@dataclass(frozen=True)
class Answer:
    """An answer, or a change of one: `id` is the same in all. `start` and `end` are in the feed's
    unit; `end` null: it continues."""

    id: str
    kind: str
    entities: tuple[str, ...]
    value: Any
    start: int
    end: int | None
    weight: int
    version: int
    evidence: Any
    detected_at: int
    seq: int | None

    @property
    def is_withdrawn(self) -> bool:
        """Whether the answer was retracted."""
        return self.weight <= 0


class Answers:
    """Iterate to follow: each change once, in order, forever. `position` is the number to continue
    after; without `after` the newest of the moment in which this object is made."""

    def __init__(self, connection: Connection, query: dict[str, Any], *, after: int | None = None, poll: float = POLL_S) -> None:
        self._connection, self._query, self._poll = connection, query, poll
        self.position = self._newest() if after is None else after

    def __iter__(self) -> Iterator[Answer]:
        """Raises Forgotten, Refused, Unavailable."""
        feed, query = self._query["feed"], self._query["id"]
        while True:
            found = self._connection.get("detections/", feed=feed, query=query, after=self.position, page_size=PAGE)
            changes = found["results"]
            for one, then in zip_longest(changes, changes[1:]):
                # A caller that stops within a number gets all changes of that number again.
                self.position = one["seq"] - 1 if then is not None and then["seq"] == one["seq"] else one["seq"]
                yield _answer(one)
            self.position = found["seq"]
            if not found["more"]:
                time.sleep(self._poll)

    def _newest(self) -> int:
        return int((self._connection.get(f"feeds/{self._query['feed']}/")["head"] or {}).get("outbox_seq", 0))

    def now(self, *, since: int | None = None, until: int | None = None) -> Iterator[Answer]:
        """The answers that hold and that began from `since` to `until`; newest
        first. Raises Refused, Unavailable."""
        parameters: dict[str, Any] = {"feed": self._query["feed"], "query": self._query["id"], "from": since, "to": until, "page_size": PAGE}
        found = self._connection.get("detections/", **parameters)
        while True:
            yield from map(_answer, found["results"])
            if not found["next"]:
                return
            address = urlsplit(found["next"])
            found = self._connection.get(f"detections/?{address.query}")

    def frame(self, *, since: int | None = None, until: int | None = None) -> pd.DataFrame:
        """The answers that hold as a DataFrame, oldest first; `entities` are tuples, `end` is
        missing while an answer continues."""
        import pandas as pd

        names = ("id", "kind", "entities", "value", "start", "end", "version", "evidence", "detected_at")
        rows = [{name: getattr(one, name) for name in names} for one in self.now(since=since, until=until)]
        found = pd.DataFrame(rows[::-1], columns=list(names))
        return found.astype({"start": "int64", "end": "Int64", "version": "int64", "detected_at": "int64"})


def _answer(one: dict[str, Any]) -> Answer:
    return Answer(
        id=one["id"],
        kind=one["kind"],
        entities=tuple(one["entities"]),
        value=one["value"],
        start=one["start"],
        end=one["end"],
        weight=one["weight"],
        version=one["version"],
        evidence=one["evidence"],
        detected_at=one["detected_at"],
        seq=one.get("seq"),
    )
