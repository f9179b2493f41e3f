"""Rows into a feed's log, exactly once, with every row accounted for.

The log is the source of truth. Each of its segments records the appends in it (key, counts, dead
letters), and `settle` copies them into PostgreSQL, in order, in the transaction that also moves
`IngestCounter.log_seq`: if a process dies between the append and that transaction, the next request
or the ingest process settles it. A request's own answer is read from the settled records.

A repeated key is found in PostgreSQL when it was settled before this request began, and in
the log behind `log_seq` otherwise: there `EventLog.append` looks under its lock, so two
concurrent attempts write once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from django.db import transaction

from engine.failpoints import failpoint
from engine.model import events
from engine.model.messages import Message
from engine.sources.appends import AppendEntry, AppendPoint
from engine.sources.segments import LogDamaged
from webapp.feeds.admission import Admission
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestCounter, IngestReceipt
from webapp.feeds.offsets import connector_reached

SHOWN = 10
"""At most this many dead letters are shown in the response."""
KEPT = 1_000
"""At most this many dead letters of one request are stored one by one; the rest are counted in
one more for each reason."""
DETAIL_CHARACTERS, ROW_CHARACTERS = 500, 2_000


class KeyReused(ValueError):
    """The idempotency key was used before, with another body."""


@dataclass(frozen=True)
class Delivery:
    """A delivery of a source: checked rows, and the faults of the others."""

    rows: pa.Table
    dead: Sequence[events.DeadLetter] = ()
    source: str = ""
    key: str | None = None
    digest: str = ""
    """Of the body: distinguishes a repetition from another body under the same key."""
    reached: Mapping[str, Any] | None = None
    """Of a connector: which one, and how far it is with this delivery (`feeds/offsets.py`)."""

    @property
    def received(self) -> int:
        return int(self.rows.num_rows) + len(self.dead)


@dataclass(frozen=True)
class Receipt:
    """The answer to a delivery; `first_seq` and `last_seq` are null when nothing was appended.
    `late` of the appended rows came too late."""

    received: int
    appended: int
    dead: int
    first_seq: int | None
    last_seq: int | None
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    repeated: bool = False
    late: int = 0


def ingest(feed: Feed, delivery: Delivery) -> Receipt:
    """Appends the delivery's rows and stores its dead letters; all of it is durable when this
    returns.

    A delivery with the key of an earlier one gets that one's receipt and changes nothing. Raises
    KeyReused, and OSError or a database error when a disk or PostgreSQL is unavailable: then it may
    or may not have been stored, which a repetition with the same key shows.
    """
    since = settle(feed)
    known = _receipt_of(feed, delivery)
    if known is not None:
        return known
    if not delivery.rows.num_rows:
        return _without_rows(feed, delivery)
    admission, admitted = Admission(feed), delivery

    def admit(rows: pa.Table, end: AppendPoint) -> tuple[pa.Table, dict[str, Any]]:
        nonlocal admitted
        admitted = replace(delivery, rows=admission.admit(rows, end), dead=[*delivery.dead, *admission.refused])
        return admitted.rows, _note(admitted) | {"late": admission.late_rows}

    appended = event_log(feed.name).append(delivery.rows, key=delivery.key, admit=admit, since=since)
    failpoint("ingest.after_append")
    if not appended.repeated and not admitted.rows.num_rows:
        return _without_rows(feed, admitted)
    settle(feed)
    failpoint("ingest.after_settle")
    if appended.repeated:
        known = _receipt_of(feed, delivery)
        assert known is not None, "settle stores a receipt for every key in the log"
        return known
    return Receipt(
        received=admitted.received,
        appended=admitted.rows.num_rows,
        dead=len(admitted.dead),
        first_seq=appended.first_seq,
        last_seq=appended.last_seq,
        dead_letters=shown(admitted.dead),
        late=admission.late_rows,
    )


def settle(feed: Feed) -> int:
    """Counts the rows in the log from `log_seq` on, with its dead letters and receipts;
    returns the new `log_seq`."""
    log = event_log(feed.name)
    counter = IngestCounter.objects.filter(feed=feed).first()
    if counter is None:
        IngestCounter.objects.bulk_create([IngestCounter(feed=feed)], ignore_conflicts=True)
    elif counter.log_seq >= (end := log.end[0]):
        if counter.log_seq > end:
            reason = Message("it ends at row {end}, but rows up to {last} were received", end=end - 1, last=counter.log_seq - 1)
            raise LogDamaged(feed.name, reason)
        return counter.log_seq
    with transaction.atomic():
        counter = IngestCounter.objects.select_for_update().get(feed=feed)
        entries = [entry for entry in log.entries(counter.log_seq) if entry.first_seq >= counter.log_seq]
        if not entries:
            return counter.log_seq
        _keep(feed, counter, entries)
        counter.log_seq = entries[-1].first_seq + entries[-1].rows
        counter.save(update_fields=["received", "dead", "log_seq"])
        failpoint("ingest.before_settle_commit")
    return counter.log_seq


def _keep(feed: Feed, counter: IngestCounter, entries: Sequence[AppendEntry]) -> None:
    """Adds the entries to the counter and stores their dead letters and receipts. Caller
    holds the counter's lock."""
    letters: list[DeadLetter] = []
    receipts: list[IngestReceipt] = []
    for entry in entries:
        note = entry.note
        counter.received += note.get("received", 0)
        counter.dead += note.get("dead", 0)
        letters += _letters(feed, note)
        if entry.key is not None:
            answered = entry.appended
            receipts.append(
                IngestReceipt(
                    feed=feed,
                    key=entry.key,
                    digest=note.get("digest", ""),
                    first_seq=answered.first_seq,
                    last_seq=answered.last_seq,
                    accepted=entry.rows,
                    dead=note.get("dead", 0),
                    late=note.get("late", 0),
                    dead_letters=note.get("letters", [])[:SHOWN],
                )
            )
        connector_reached(feed, note, entry.rows)
    DeadLetter.objects.bulk_create(letters, batch_size=1_000)
    IngestReceipt.objects.bulk_create(receipts, ignore_conflicts=True)


def _without_rows(feed: Feed, delivery: Delivery) -> Receipt:
    """A delivery without accepted rows needs only one transaction."""
    note = _note(delivery)
    with transaction.atomic():
        counter = IngestCounter.objects.select_for_update().get(feed=feed)
        # Another attempt with this key may have held this lock before.
        known = _receipt_of(feed, delivery)
        if known is not None:
            return known
        counter.received += delivery.received
        counter.dead += len(delivery.dead)
        counter.save(update_fields=["received", "dead"])
        DeadLetter.objects.bulk_create(_letters(feed, note), batch_size=1_000)
        connector_reached(feed, note, 0)
        listed = note["letters"][:SHOWN]
        if delivery.key is not None:
            IngestReceipt.objects.create(feed=feed, key=delivery.key, digest=delivery.digest, dead=len(delivery.dead), dead_letters=listed)
    return Receipt(delivery.received, 0, len(delivery.dead), None, None, listed)


def _receipt_of(feed: Feed, delivery: Delivery) -> Receipt | None:
    """The receipt stored under the delivery's key. Raises KeyReused for another body."""
    if delivery.key is None:
        return None
    stored = IngestReceipt.objects.filter(feed=feed, key=delivery.key).first()
    if stored is None:
        return None
    if stored.digest != delivery.digest:
        raise KeyReused(f"The idempotency key {delivery.key!r} was used before with another body.")
    return Receipt(
        received=stored.accepted + stored.dead,
        appended=stored.accepted,
        dead=stored.dead,
        first_seq=stored.first_seq,
        last_seq=stored.last_seq,
        dead_letters=stored.dead_letters,
        repeated=True,
        late=stored.late,
    )


def _note(delivery: Delivery) -> dict[str, Any]:
    """The record of a delivery that the log stores with its rows."""
    letters = [_letter_of(letter) for letter in delivery.dead[:KEPT]]
    more = Counter(str(letter.reason) for letter in delivery.dead[KEPT:])
    letters += [
        {"reason": reason, "detail": Message("and {count} more rows of this delivery", count=count), "line": None, "row": None}
        for reason, count in more.items()
    ]
    note = {
        "received": delivery.received,
        "dead": len(delivery.dead),
        "digest": delivery.digest,
        "source": delivery.source[:200],
        "letters": letters,
    }
    return note if delivery.reached is None else {**note, "reached": delivery.reached}


def shown(dead: Sequence[events.DeadLetter]) -> list[dict[str, Any]]:
    """The first dead letters as an answer shows them."""
    return [_letter_of(letter) for letter in dead[:SHOWN]]


def _letter_of(letter: events.DeadLetter) -> dict[str, Any]:
    """A dead letter as JSON, with long values shortened."""
    row = None if letter.row is None else _as_json(letter.row)
    if len(json.dumps(row)) > ROW_CHARACTERS:
        row = {"too long": json.dumps(row)[:ROW_CHARACTERS]}
    return {"reason": str(letter.reason), "detail": _printable(letter.detail[:DETAIL_CHARACTERS]), "line": letter.line, "row": row}


def _as_json(value: Any) -> Any:
    """`value` with everything that JSON or PostgreSQL cannot hold as text: NaN, infinity, bytes,
    times, NUL, lone surrogates."""
    if isinstance(value, dict):
        return {_printable(str(key)): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return _printable(value if isinstance(value, str) else str(value))


def _printable(text: str) -> str:
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def _letters(feed: Feed, note: Mapping[str, Any]) -> list[DeadLetter]:
    source = note.get("source", "")
    return [DeadLetter(feed=feed, source=source, **letter) for letter in note.get("letters", [])]
