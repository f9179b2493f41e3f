"""Changes of answers, one after the other: what was asserted, revised and retracted after a number,
each once and in order.

The outbox is numbered for each feed without gaps in the order of the commits, so a reader who has
read up to a number has missed nothing before it and gets nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from engine.model.messages import Message
from webapp.detections.models import Outbox
from webapp.detections.selectors import DetectionRow
from webapp.feeds.heads import feed_status

AT_ONCE = 20
NUMBERS = 1_000
"""At most this many numbers are read for one page: most of them may be about other queries."""


class NoSuchNumber(ValueError):
    """The feed has not reached this number."""


class NotKept(ValueError):
    """Some of the changes after the number have been deleted."""


@dataclass(frozen=True)
class Wanted:
    """The requested changes; no `entities` or `kinds`: all of them."""

    queries: frozenset[int]
    entities: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def __contains__(self, detection: dict[str, Any]) -> bool:
        return (
            detection["query"] in self.queries
            and (not self.entities or not self.entities.isdisjoint(detection["entities"]))
            and (not self.kinds or detection["kind"] in self.kinds)
        )


class ChangedDetectionRow(DetectionRow):
    """An answer as a change asserted (`weight` 1) or retracted it (-1); `seq`:
    the number of the change."""

    seq: int


class Changes(TypedDict):
    """The changes after number `after` up to `seq`; `more`: there are later ones."""

    after: int
    seq: int
    more: bool
    results: list[ChangedDetectionRow]


def changes_after(*, feed_id: int, seq: int, wanted: Wanted, size: int) -> Changes:
    """`results`: the changes of the numbers after `seq` up to the answer's own `seq`, about `size`
    of them; `more`: repeat the request at once.

    The changes of one number stay together, so a page may be larger. Raises NoSuchNumber, NotKept.
    """
    newest = feed_status(feed_id=feed_id)["outbox_seq"]
    if seq > newest:
        raise NoSuchNumber(Message("The feed has reached number {newest}; begin there.", newest=newest))
    results: list[ChangedDetectionRow] = []
    reached = seq
    for number, detections in _numbers_after(feed_id, seq):
        if number != reached + 1 or len(results) >= size:
            break
        results += [cast(ChangedDetectionRow, {**one, "seq": number}) for one in detections if one in wanted]
        reached = number
    if reached == seq < newest:
        raise NotKept(
            Message(
                "The changes after number {seq} have been deleted. Read the answers by time and continue after {newest}.",
                seq=seq,
                newest=newest,
            )
        )
    return {"after": seq, "seq": reached, "more": reached < newest, "results": results}


def _numbers_after(feed_id: int, seq: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The detections of each number, a few numbers at a time: one may have hundreds."""
    for begin in range(seq, seq + NUMBERS, AT_ONCE):
        rows = Outbox.objects.filter(feed_id=feed_id, seq__gt=begin, seq__lte=begin + AT_ONCE).order_by("seq")
        yield from rows.values_list("seq", "payload__detections")
