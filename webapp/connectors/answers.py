"""Answers of a feed's queries for an outgoing connector: first the stored ones, then each change
in the order of the outbox."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.model.messages import Message
from engine.sinks.live import Keyed
from engine.sources.live import SourceUnavailable
from webapp.detections.changes import ChangedDetectionRow, NoSuchNumber, NotKept, Wanted, changes_after
from webapp.detections.selectors import answers_by_key, detection_row
from webapp.feeds.heads import feed_status
from webapp.feeds.models import Connector, Feed
from webapp.queries.selectors import queries_visible

AT_ONCE = 2_000
LOOK_S = 5.0
"""How often permissions are read again."""


@dataclass(frozen=True)
class OutboxBatch:
    """Records and the offset after them. `seq`: the outbox number reached; `after`: the last key,
    while stored answers are sent."""

    records: Sequence[Keyed]
    offset: dict[str, Any]


def numbers_of(text: str) -> frozenset[int]:
    """The ids in `7, 12`; empty: all queries. Raises ValueError."""
    return frozenset(int(one) for one in text.split(",") if text.strip())


def answers_of(connector: Connector, offset: Mapping[str, Any]) -> Iterator[OutboxBatch]:
    """Never ends; a part is empty when nothing is new. Raises SourceUnavailable while the
    connector's user lacks the permission.

    Stored answers come in the order of their keys, those that were retracted among them: changes
    made meanwhile have greater numbers than the recorded one, and follow. All stored answers are
    sent again when changes were deleted before they could be sent.
    """
    feed, chosen = connector.feed, numbers_of(connector.settings["queries"])
    at = dict(offset)
    looked, query_ids = float("-inf"), frozenset[int]()
    while True:
        if time.monotonic() - looked > LOOK_S:
            looked, query_ids = time.monotonic(), _permitted(connector, chosen)
        part = _stored(feed, at, query_ids) if "after" in at else _changed(feed, at, query_ids)
        at = part.offset
        yield part


def beginning(connector: Connector) -> dict[str, Any]:
    """The offset of a connector that has sent nothing yet."""
    return _beginning(connector.feed, everything=connector.settings["start"] == "all")


def _beginning(feed: Feed, *, everything: bool) -> dict[str, Any]:
    seq = feed_status(feed_id=feed.pk)["outbox_seq"]
    return {"seq": seq, "after": ""} if everything else {"seq": seq}


def _permitted(connector: Connector, chosen: frozenset[int]) -> frozenset[int]:
    """The queries whose answers are sent: those that the user who set it up may see, as long as
    that user may change the feed."""
    person, feed = connector.set_by, connector.feed
    if person is None or not Feed.objects.editable_by(person).filter(pk=feed.pk).exists():
        raise SourceUnavailable(Message("The user who set up this connector may no longer change the feed: a user who may has to save it again."))
    visible = frozenset(queries_visible(user=person, feed=feed))
    return visible & chosen if chosen else visible


def _stored(feed: Feed, at: Mapping[str, Any], query_ids: frozenset[int]) -> OutboxBatch:
    answers = answers_by_key(feed_id=feed.pk, query_ids=sorted(query_ids), after=bytes.fromhex(at["after"]), limit=AT_ONCE)
    records = [_keyed(feed, {**detection_row(one), "seq": one.seq}) for one in answers]
    if len(answers) < AT_ONCE:
        return OutboxBatch(records, {"seq": at["seq"]})
    return OutboxBatch(records, {"seq": at["seq"], "after": records[-1].key})


def _changed(feed: Feed, at: Mapping[str, Any], query_ids: frozenset[int]) -> OutboxBatch:
    try:
        page = changes_after(feed_id=feed.pk, seq=at["seq"], wanted=Wanted(query_ids), size=AT_ONCE)
    except (NotKept, NoSuchNumber):
        return OutboxBatch([], _beginning(feed, everything=True))
    return OutboxBatch([_keyed(feed, one) for one in page["results"]], {"seq": page["seq"]})


def _keyed(feed: Feed, row: ChangedDetectionRow) -> Keyed:
    record = {"feed": feed.name, **row}
    return Keyed(row["id"], json.dumps(record, separators=(",", ":")) if row["weight"] > 0 else None, row["seq"])
