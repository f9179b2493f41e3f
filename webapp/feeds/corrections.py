"""Dead letters corrected and sent again: one by hand, or all of a reason by a rule.

The rows and their idempotency key are stored before they are sent: after a crash the next attempt
sends the same rows under the same key, so each is in the log once. A corrected row counts as
received once more; the letter stays, with the time at which it was sent.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from django.db import transaction
from django.utils import timezone

from engine.model import events
from engine.model.faults import refuse
from engine.model.feed import ColumnType
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from engine.sources.formats.chunks import column_from
from engine.sources.reading import Reading, read_rows, reading_of
from webapp.audit.services import record
from webapp.config.wording import translated
from webapp.feeds.bodies import NDJSON, read_body
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.models import DeadLetter, Feed
from webapp.feeds.playback import Move

AT_ONCE = 5_000
SHOWN = 10
COMMA_NUMBER = re.compile(r"\s*[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+\s*\Z")
Row = Mapping[str, Any]
LetterRow = tuple[DeadLetter, dict[str, Any]]


@dataclass
class Corrected:
    """`sent` rows are in the log, `late` of them were late; `refused` passed the check but not the
    clock; `wrong` are still faulty."""

    sent: int = 0
    late: int = 0
    refused: int = 0
    wrong: int = 0
    left: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)


def decimal_comma(row: Row, feed: EngineFeed) -> Row:
    """Numbers written `1.234,5`, in the columns that hold numbers."""
    numbers = {"x", "y", *(name for name, kind in feed.columns.items() if kind is ColumnType.FLOAT)}
    return {name: _number(value) if name in numbers else value for name, value in row.items()}


def seconds(row: Row, feed: EngineFeed) -> Row:
    """Times in seconds instead of milliseconds."""
    return {name: _in_milliseconds(value) if name in ("t", "t_end") else value for name, value in row.items()}


def swapped(row: Row, feed: EngineFeed) -> Row:
    """x and y exchanged, for example because latitude comes first."""
    return {**row, "x": row.get("y"), "y": row.get("x")}


RULES: dict[str, tuple[str, Callable[[Row, EngineFeed], Row]]] = {
    "as_is": ("As they are, after the feed was changed", lambda row, feed: row),
    "decimal_comma": ("Decimal comma: 12,5 is 12.5", decimal_comma),
    "seconds": ("Times are seconds: 1000 times as many milliseconds", seconds),
    "swapped": ("x and y are exchanged", swapped),
}


def _number(value: Any) -> Any:
    return float(value.replace(".", "").replace(",", ".")) if isinstance(value, str) and COMMA_NUMBER.match(value) else value


def _in_milliseconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return round(value * 1000) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else value


def correct_all(*, feed: Feed, rule: str, reason: str = "") -> Corrected:
    """Applies a rule to the letters that were not sent yet, the oldest `AT_ONCE` of them; `late`
    rows are no faults and stay. Raises Refused."""
    if rule not in RULES:
        raise refuse("/rule", Message("One of {known}.", known=", ".join(RULES)))
    change, schema = RULES[rule][1], feed.engine_feed()
    letters = DeadLetter.objects.filter(feed=feed, sending="", row__isnull=False).exclude(reason="late")
    if reason:
        letters = letters.filter(reason=reason)
    waiting = list(letters.order_by("id")[: AT_ONCE + 1])
    rows = [(letter, dict(change(letter.row, schema))) for letter in waiting[:AT_ONCE] if isinstance(letter.row, dict)]
    corrected = _send(feed, rows, f"rule {rule}")
    corrected.left = max(0, letters.count() - corrected.wrong)
    return corrected


def correct_one(*, feed: Feed, pk: int, row: Row) -> Corrected:
    """Sends a row in place of a dead letter's. Raises Refused for one that was sent already."""
    letter = DeadLetter.objects.filter(feed=feed, pk=pk).first()
    if letter is None:
        raise refuse("/id", Message("There is no such dead letter."))
    if letter.sending:
        raise refuse("/id", Message("It was already corrected and sent."))
    return _send(feed, [(letter, dict(row))], "by hand")


def _send(feed: Feed, rows: Sequence[LetterRow], how: str) -> Corrected:
    corrected = _finish(feed)
    rows, unread = _in_the_feeds_columns(feed, rows)
    dead = {**_faults(feed, [row for _, row in rows]), **unread}
    corrected.wrong = len(dead)
    corrected.problems = [{"id": rows[at][0].pk, "reason": one.reason, "detail": translated(one.detail)} for at, one in list(dead.items())[:SHOWN]]
    good = [(letter, row) for at, (letter, row) in enumerate(rows) if at not in dead]
    if not good:
        return corrected
    key = f"corrected-{uuid.uuid4().hex}"
    with transaction.atomic():
        locked = {one.pk: one for one in DeadLetter.objects.select_for_update().filter(pk__in=[letter.pk for letter, _ in good], sending="")}
        for letter, row in good:
            if letter.pk in locked:
                locked[letter.pk].sending, locked[letter.pk].corrected = key, row
        DeadLetter.objects.bulk_update(locked.values(), ["sending", "corrected"], batch_size=500)
        record("dead-letters.correct", feed, count=len(locked), how=how)
    done = _finish(feed)
    corrected.sent, corrected.late, corrected.refused = corrected.sent + done.sent, corrected.late + done.late, corrected.refused + done.refused
    return corrected


def _in_the_feeds_columns(feed: Feed, rows: Sequence[LetterRow]) -> tuple[list[LetterRow], dict[int, events.DeadLetter]]:
    """Rows that still have the columns of their file or stream, read as it is read; the faults of
    those that cannot be, by their index."""
    read, faults, parts = list(rows), dict[int, events.DeadLetter](), dict[str, list[int]]()
    for at, (letter, _) in enumerate(rows):
        parts.setdefault(letter.source, []).append(at)
    for source, places in parts.items():
        reading, move = _reading_of(feed, source)
        if reading is None:
            continue
        named = {*reading.entity, *reading.time, reading.x, reading.y} - {""}
        places = [at for at in places if not named.isdisjoint(rows[at][1])]
        table = pa.table({name: column_from([_cell(rows[at][1].get(name)) for at in places]) for name in reading.sources})
        checked = read_rows(table, reading, feed.engine_feed()).checked
        faults |= {places[position]: letter for position, letter in zip(checked.positions, checked.dead(), strict=True)}
        good = iter(move.moved(checked.good()).to_pylist())
        for at in places:
            if at not in faults:
                read[at] = (rows[at][0], {name: value for name, value in next(good).items() if value is not None})
    return read, faults


def _reading_of(feed: Feed, source: str) -> tuple[Reading | None, Move]:
    """What the columns of a letter's file or connector mean, as far as that is known, and how
    the file's times are moved."""
    kind, _, name = source.partition(":")
    if kind == "upload":
        upload = feed.uploads.filter(name=name).exclude(reading={}).order_by("-created_at").first()
        if upload is not None:
            return reading_of(upload.reading), Move(upload.moved_since, upload.moved_to, upload.rate) if upload.as_now else Move()
    if kind == "connector":
        connector = feed.connectors.filter(name=name).exclude(reading={}).first()
        if connector is not None:
            return reading_of({**connector.reading, "kind": "json"}), Move()
    return None, Move()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _faults(feed: Feed, rows: Sequence[Row]) -> dict[int, events.DeadLetter]:
    """The faults of rows, by their index."""
    return {(one.line or 1) - 1: one for one in read_body(_lines(rows), NDJSON, feed.engine_feed()).dead()}


def _lines(rows: Sequence[Row]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def _finish(feed: Feed) -> Corrected:
    """Sends the stored rows that were not sent yet."""
    corrected = Corrected()
    unsent = DeadLetter.objects.filter(feed=feed, sent_at=None).exclude(sending="")
    for key in sorted(set(unsent.values_list("sending", flat=True))):
        letters = unsent.filter(sending=key).order_by("id")
        rows = [row or {} for row in letters.values_list("corrected", flat=True)]
        piece = read_body(_lines(rows), NDJSON, feed.engine_feed())
        receipt = ingest(feed, Delivery(piece.rows, piece.dead(), "corrected dead letters", key))
        letters.update(sent_at=timezone.now())
        corrected.sent += receipt.appended
        corrected.late += receipt.late
        corrected.refused += receipt.dead
    return corrected
