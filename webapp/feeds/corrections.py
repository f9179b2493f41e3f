"""Dead letters corrected and sent again: one by hand, or all of a reason by a rule.

The rows and their idempotency key are stored before they are sent: after a crash the next attempt sends the same rows under the same key, so each is
in the log once. A corrected row counts as received once more; the letter stays, with the time at which it was sent.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.model import events
from engine.model.faults import refuse
from engine.model.feed import ColumnType
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from webapp.audit.services import record
from webapp.config.wording import translated
from webapp.feeds.bodies import NDJSON, read_body
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.models import DeadLetter, Feed

AT_ONCE = 5_000
SHOWN = 10
COMMA_NUMBER = re.compile(r"\s*[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+\s*\Z")
NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")
"""In JSON. PostgreSQL stores no text with it, and the row is stored before it is sent."""
Row = Mapping[str, Any]


@dataclass
class Corrected:
    """`sent` rows are in the log, `late` of them were late; `refused` passed the check but not the clock; `wrong` are still faulty."""

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
    return {name: _thousandfold(value) if name in ("t", "t_end") else value for name, value in row.items()}


def swapped(row: Row, feed: EngineFeed) -> Row:
    """x and y exchanged, as where latitude comes first."""
    return {**row, "x": row.get("y"), "y": row.get("x")}


RULES: dict[str, tuple[str, Callable[[Row, EngineFeed], Row]]] = {
    "as_is": ("As they are, after the feed was changed", lambda row, feed: row),
    "decimal_comma": ("Decimal comma: 12,5 is 12.5", decimal_comma),
    "seconds": ("Times are seconds: 1000 times as many milliseconds", seconds),
    "swapped": ("x and y are exchanged", swapped),
}


def _number(value: Any) -> Any:
    return float(value.replace(".", "").replace(",", ".")) if isinstance(value, str) and COMMA_NUMBER.match(value) else value


def _thousandfold(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return round(value * 1000) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else value


def correct_all(*, feed: Feed, rule: str, reason: str = "") -> Corrected:
    """Applies a rule to the letters that were not sent yet, the oldest `AT_ONCE` of them; `late` rows are no faults and stay. Raises Refused."""
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
    if NUL.search(json.dumps(row)):
        raise refuse("/row", Message("A text of the row holds the character NUL: take it out."))
    return _send(feed, [(letter, dict(row))], "by hand")


def _send(feed: Feed, rows: Sequence[tuple[DeadLetter, dict[str, Any]]], how: str) -> Corrected:
    corrected = _finish(feed)
    dead = _faults(feed, [row for _, row in rows])
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
