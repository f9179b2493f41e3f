"""Frames of the live socket, built from the results of selectors; ARCHITECTURE.md, WebSocket,
defines their forms."""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.utils import translation

from engine.model.messages import Message
from webapp.config.wording import translated
from webapp.feeds.heads import FeedStatus
from webapp.feeds.models import NAME
from webapp.live.frame_types import ErrorFrame, ResyncFrame, SnapshotFrame, StatusFrame

Box = tuple[float, float, float, float]
FEED_NAME = re.compile(NAME.regex)
"""Other texts must not reach the database or the channel layer, which refuse some characters."""
FRAME_BYTES = 65_536
"""The maximum length of a client's frame."""
MESSAGE_BYTES = 900_000
"""The maximum length of a message to a page: daphne refuses to send more than a mebibyte."""
QUERIES_NAMED = 1_000

NOT_LOGGED_IN = 4401
NOT_PERMITTED = 4403
TOO_OFTEN = 4429
RESTARTING = 4503
"""The server ends. The standard's code is 1012, but autobahn sends no code below 3000 except
1000."""
TOO_BIG = 4413
"""Close codes: of those below 3000 the web server lets an application send only 1000
(RFC 6455, section 7.4.2)."""


def group(feed_id: int) -> str:
    """The channel group that the publisher sends a feed's messages to. By its id, because another
    feed may get the name later."""
    return f"feed.{feed_id}"


class BadFrame(ValueError):
    """An invalid frame of a client; the text gives the reason."""


@dataclass(frozen=True)
class Subscribe:
    """Subscribes to a feed's answers: of `queries` (null: of all that the reader may see), resuming
    after number `since` if possible."""

    feed: str
    queries: frozenset[int] | None
    bbox: Box | None
    since: int | None
    from_t: int | None


@dataclass(frozen=True)
class View:
    """The reader's map shows another box now (null: everything)."""

    feed: str
    bbox: Box | None


@dataclass(frozen=True)
class Unsubscribe:
    feed: str


@dataclass(frozen=True)
class Ack:
    """The reader has taken everything up to number `seq`."""

    feed: str
    seq: int


ClientFrame = Subscribe | View | Unsubscribe | Ack


def parse(text: str) -> ClientFrame:
    """The client's frame. Raises BadFrame."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame(Message("A frame is a JSON object.")) from error
    if not isinstance(document, dict):
        raise BadFrame(Message("A frame is a JSON object."))
    feed = document.get("feed")
    if not isinstance(feed, str) or not FEED_NAME.match(feed):
        raise BadFrame(Message("feed names a feed."))
    match document.get("type"):
        case "subscribe":
            queries = _queries(document.get("queries"))
            return Subscribe(feed, queries, _box(document.get("bbox")), _number(document, "since"), _number(document, "from"))
        case "view":
            return View(feed, _box(document.get("bbox")))
        case "unsubscribe":
            return Unsubscribe(feed)
        case "ack":
            return Ack(feed, _number(document, "seq") or 0)
    raise BadFrame(Message("type is one of subscribe, view, unsubscribe, ack."))


def _queries(value: Any) -> frozenset[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > QUERIES_NAMED:
        raise BadFrame(Message("queries is null or a list of ids."))
    if not all(_is_id(item) for item in value):
        raise BadFrame(Message("queries is null or a list of ids."))
    return frozenset(int(item) for item in value)


def _is_id(item: Any) -> bool:
    """Ids are opaque to a page, which may keep them as text."""
    return (isinstance(item, int) and not isinstance(item, bool)) or (isinstance(item, str) and item.isdecimal() and len(item) < 19)


def _box(value: Any) -> Box | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 4:
        raise BadFrame(Message("bbox is null or [west, south, east, north]."))
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in value):
        raise BadFrame(Message("bbox holds finite numbers."))
    try:
        west, south, east, north = map(float, value)
    except OverflowError as error:
        raise BadFrame(Message("bbox holds finite numbers.")) from error
    if not all(map(math.isfinite, (west, south, east, north))):
        raise BadFrame(Message("bbox holds finite numbers."))
    return west, south, east, north


def _number(document: Mapping[str, Any], name: str) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise BadFrame(Message("{name} is null or a whole number.", name=name))
    return value


# -- from the server -------------------------------------------------------------------------------


def snapshot(
    feed: str,
    *,
    seq: int,
    detections: Sequence[Any],
    alerts: Sequence[Any],
    positions: Sequence[list[Any]],
    clock: int | None,
    since: int | None = None,
) -> SnapshotFrame:
    """The initial state of a page at outbox number `seq`: complete, or the newest positions, alerts
    and answers that fit a message.

    `detections` come oldest first, `alerts` newest first. The page requests the rest from the API,
    as it does for older times. `since`: all answers that began at or after it are among
    `detections`; null: all answers are. The message has this `since` for its own content.
    """
    places = newest(positions, MESSAGE_BYTES // 2)
    room = MESSAGE_BYTES - _bytes(places)
    shown = fitting(alerts, room // 3)
    room -= sum(map(_bytes, shown))
    kept = fitting(list(reversed(detections)), room)
    if len(kept) < len(detections):
        # Some that began at the same time as the oldest one may be missing.
        since = kept[-1]["start"] + 1 if kept else detections[-1]["start"] + 1
    return {
        "type": "snapshot", "feed": feed, "seq": seq, "detections": list(reversed(kept)), "alerts": shown, "positions": places, "clock": clock,
        "since": since,
    }  # fmt: skip


def fitting(rows: Sequence[Any], room: int) -> list[Any]:
    """The first of `rows` that together take at most `room` bytes."""
    kept = []
    for row in rows:
        room -= _bytes(row)
        if room < 0:
            break
        kept.append(row)
    return kept


def newest(positions: Sequence[list[Any]], room: int) -> list[list[Any]]:
    """Of rows [id, x, y, t] those with the greatest t that together take at most `room` bytes; all
    of them, in their order, where they fit."""
    if sum(map(_bytes, positions)) <= room:
        return list(positions)
    return fitting(sorted(positions, key=lambda row: row[3], reverse=True), room)


def _bytes(row: Any) -> int:
    """Of the row's text in a message, with the comma after it."""
    return len(encoded(row)) + 1


def encoded(frame: Any) -> str:
    """The text that is sent. It is ASCII: as many characters as bytes."""
    return _ENCODER.encode(frame)


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str)


def changes(feed: str, *, first: int, seq: int, detections: Sequence[str], alerts: Sequence[str], queries: Sequence[int] = ()) -> str:
    """The text of the numbers `first` to `seq` for this reader, perhaps empty; `seq` = `first`
    - 1: there is nothing new.

    `detections`, `alerts`: texts of the rows. `queries`: ids of those of which another version, or
    none, runs from now on; the page asks for them again.
    """
    head = encoded({"type": "changes", "feed": feed, "from": first, "seq": seq, "queries": list(queries)})[:-1]
    return f'{head},"detections":[{",".join(detections)}],"alerts":[{",".join(alerts)}]}}'


class RowTexts:
    """The texts of a message's rows, encoded once for all readers of this process: the channel
    layer passes the same lists to all of them."""

    LISTS = 128

    def __init__(self) -> None:
        # The list itself is kept, so that its id is not reused meanwhile.
        self.made: OrderedDict[int, tuple[Sequence[Any], list[str]]] = OrderedDict()

    def of(self, rows: Sequence[Any]) -> list[str]:
        """As many texts as rows. `rows` must not change afterwards."""
        known = self.made.get(id(rows))
        if known is None:
            known = self.made[id(rows)] = rows, list(map(encoded, rows))
            if len(self.made) > self.LISTS:
                self.made.popitem(last=False)
        return known[1]


texts_of = RowTexts().of


def positions(feed: str, *, t: int | None, entities: Sequence[Any], box: Box | None = None) -> str:
    """The text of a sample: where things in `box` are now, each as [id, x, y, t]; the latest ones
    where they do not all fit. Encoded once, because a sample goes to many readers.
    """
    head = encoded({"type": "positions", "feed": feed, "t": t})[:-1]
    texts, inside = texts_of(entities), _inside(box, entities)
    if sum(len(texts[at]) + 1 for at in inside) > MESSAGE_BYTES:
        inside = sorted(inside, key=lambda at: entities[at][3], reverse=True)
        room = accumulate(len(texts[at]) + 1 for at in inside)
        inside = [at for at, taken in zip(inside, room, strict=True) if taken <= MESSAGE_BYTES]
    return f'{head},"entities":[{",".join(texts[at] for at in inside)}]}}'


def status(feed: str, fields: FeedStatus) -> StatusFrame:
    """The state of the feed's processing."""
    return {"type": "status", "feed": feed, **fields}


def resync(feed: str) -> ResyncFrame:
    """The reader fell behind: it has to subscribe again."""
    return {"type": "resync", "feed": feed}


def error(code: str, message: Message, language: str) -> ErrorFrame:
    """The client's last frame, or its socket, was refused."""
    with translation.override(language):
        return {"type": "error", "code": code, "message": translated(message)}


def within(box: Box | None, entities: Sequence[list[Any]]) -> list[list[Any]]:
    """The positions that a map of `box` shows; a box whose west is greater than its east
    crosses the antimeridian."""
    return [entities[at] for at in _inside(box, entities)]


def _inside(box: Box | None, entities: Sequence[Sequence[Any]]) -> Sequence[int]:
    if box is None:
        return range(len(entities))
    west, south, east, north = box
    if west > east:
        return [at for at, e in enumerate(entities) if (e[1] >= west or e[1] <= east) and south <= e[2] <= north]
    return [at for at, e in enumerate(entities) if west <= e[1] <= east and south <= e[2] <= north]
