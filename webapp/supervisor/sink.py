"""The one transaction that stores the results of a batch: detections, alerts, outbox, late rows,
counters and the head row, or none of it.

The head row of the feed is the fence: it carries the epoch of the only job that may write, and the
last batch stored. The outbox is numbered under its lock, so the numbers have no gaps and follow
the order of the commits.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from django.conf import settings
from django.db import connection, transaction
from django.db.utils import InterfaceError, OperationalError
from psycopg2.errors import QueryCanceled

from engine.failpoints import failpoint
from engine.model.messages import Message
from engine.model.untimely import late_letters
from engine.runtime.store import StoreTooSlow
from engine.sinks.answer_rows import answer_text
from engine.sinks.facts import Fact, StoredFact
from engine.sinks.keys import may_be_revised
from webapp.alerts import services as alerts
from webapp.alerts.selectors import AlertRow
from webapp.detections.partitions import partitions_ensure, span_of
from webapp.detections.services import CHUNK, outbox_write
from webapp.jobs.models import FeedHead, JobEvent
from webapp.jobs.services import job_event_add
from webapp.platform.disk import is_full
from webapp.queries.services import query_stop
from webapp.queries.versions import Key as VersionKey
from webapp.supervisor.turnover import answers_end, answers_forget

TIMEOUT_S = 60.0
"""How long a commit waits for an unavailable database before the job gives up."""

Answer = TypeVar("Answer")

# Found by key: of a partition that was filled just now PostgreSQL expects next to nothing in a span
# of times, begins with all of it, and would go through all that comes in for each row.
_INCOMING = """
CREATE TEMPORARY TABLE IF NOT EXISTS incoming (
    position integer, key bytea UNIQUE, query_id bigint, version integer, kind text, entities text[], value text, score double precision,
    start bigint, "end" bigint, evidence jsonb, weight smallint
) ON COMMIT DELETE ROWS
"""
_KNOWN = """
SELECT i.position FROM incoming i
JOIN detections_detection d ON d.feed_id = %s AND d.key = i.key AND d.start = i.start
WHERE d.weight = 1 AND d.start BETWEEN %s AND %s
"""
_RETRACT = """
UPDATE detections_detection d SET weight = 0, seq = %(seq)s + i.position / %(chunk)s, detected_at = %(now)s
FROM incoming i
WHERE i.weight = 0 AND d.feed_id = %(feed)s AND d.key = i.key AND d.start = i.start AND d.start BETWEEN %(low)s AND %(high)s
"""
_STATE = """
INSERT INTO detections_detection
    (feed_id, key, query_id, version, kind, entities, value, score, start, "end", evidence, weight, backfill, seq, detected_at)
SELECT %(feed)s, key, query_id, version, kind, entities, value, score, start, "end", evidence, 1, %(backfill)s,
    %(seq)s + position / %(chunk)s, %(now)s
FROM incoming WHERE weight = 1
ON CONFLICT (feed_id, key, start) DO UPDATE SET
    value = excluded.value, score = excluded.score, "end" = excluded."end", evidence = excluded.evidence, weight = 1,
    seq = excluded.seq, detected_at = excluded.detected_at
"""


class Fenced(RuntimeError):
    """A newer start of the job writes for this feed: this process is a zombie and
    must end without writing."""


class DatabaseUnavailable(RuntimeError):
    """PostgreSQL did not come back within TIMEOUT_S."""


@dataclass(frozen=True)
class FencedWrite:
    """The work of one transaction for a feed, if the epoch is still that of its head row. `batch`
    None: new queries joined between two batches.

    `facts` are the results of the changes; `late` are the late rows as received. `progress` are new
    values of the head row's columns, `added` the increments of its counters. A `backfill` opens no
    alert. `stopped`: queries (id, version, reason) that are stopped. `left` and `joined`: versions
    of queries that the job has left, and runs from now on. `job`: the job of the epoch; null where
    another process writes.
    """

    feed_id: int
    epoch: int
    checkpoint: int
    batch: int | None
    facts: Sequence[Fact] = ()
    late: pa.Table | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    backfill: bool = False
    stopped: Sequence[tuple[int, int, str]] = ()
    left: Sequence[VersionKey] = ()
    joined: Sequence[VersionKey] = ()
    job: int | None = None

    def is_of(self, job: int, epoch: int) -> bool:
        """Whether a head with this job and epoch is the one to be written. Each job
        counts its starts by itself."""
        return epoch == self.epoch and self.job in (None, job)


def commit(work: FencedWrite, *, timeout_s: float = TIMEOUT_S) -> bool:
    """Stores `work` exactly once; False when that had been done before (a replayed batch).

    Retries while the database is unavailable; the head row shows whether a COMMIT whose answer was
    lost took place. Raises Fenced, StoreTooSlow, and DatabaseUnavailable after `timeout_s`.
    """
    expected: list[int] = []

    def attempt() -> bool:
        head = FeedHead.objects.values("job", "epoch", "commits").get(feed_id=work.feed_id)
        if work.is_of(head["job"], head["epoch"]) and [head["commits"]] == expected:
            return True
        expected[:] = [head["commits"] + 1]
        with connection.execute_wrapper(_within(settings.VEDETTE_STORE_SECONDS)):
            return store(work)

    return with_retries(attempt, timeout_s=timeout_s)


def with_retries(attempt: Callable[[], Answer], *, timeout_s: float = TIMEOUT_S) -> Answer:
    """The result of `attempt`, which is retried while the database is unavailable. Raises
    StoreTooSlow, and DatabaseUnavailable after `timeout_s`."""
    started = time.monotonic()
    while True:
        try:
            return attempt()
        except (OperationalError, InterfaceError) as error:
            if isinstance(error.__cause__, QueryCanceled):
                raise StoreTooSlow(str(error).strip()) from error
            if time.monotonic() - started > timeout_s:
                what = "the database's disk is full" if is_full(error) else f"the database did not answer for {timeout_s:g} s"
                raise DatabaseUnavailable(f"{what}: {error}") from error
            connection.close()
            time.sleep(0.25)


def store(work: FencedWrite) -> bool:
    """One attempt to store `work`. Raises Fenced, and errors of the database."""
    partitions_ensure({span_of(fact.start) for fact in work.facts})
    with transaction.atomic():
        # The column `queries` is not read, and written only when it changed.
        head = FeedHead.objects.select_for_update().defer("queries").get(feed_id=work.feed_id)
        if not work.is_of(head.job_id, head.epoch):
            raise Fenced(f"feed {work.feed_id} belongs to epoch {head.epoch}; this is {work.epoch}")
        if work.batch is not None and (work.checkpoint, work.batch) <= (head.checkpoint, head.last_batch):
            return False
        _write(work, head)
        failpoint("sink.before_commit")
    failpoint("sink.after_commit")
    return True


def _within(seconds: float) -> Callable[..., Any]:
    """Starts no statement after this long; PostgreSQL limits each statement, in a job to the same
    time. Raises StoreTooSlow."""
    ends = time.monotonic() + seconds

    def execute(begin: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if time.monotonic() > ends:
            raise StoreTooSlow(f"more than {seconds:g} s")
        return begin(sql, params, many, context)

    return execute


def _write(work: FencedWrite, head: FeedHead) -> None:
    facts = work.facts
    now = time.time_ns() // 1_000_000
    opened: list[AlertRow] = []
    with connection.cursor() as cursor:
        if facts:
            known = _upsert(cursor, work, facts, head.outbox_seq + 1, now)
            if not work.backfill:
                opened = alerts.alerts_record(feed_id=work.feed_id, changes=_stored(facts, known))
        texts = [answer_text(fact, backfill=work.backfill, detected_at=now) for fact in facts]
        head.outbox_seq = outbox_write(cursor, work.feed_id, head.outbox_seq, texts, [json.dumps(alert) for alert in opened])
        _turn_over(cursor, work, head)
    if work.late is not None and work.late.num_rows:
        _dead_letters(head, work.late)
    for query_id, version, reason in work.stopped:
        name = query_stop(query_id=query_id, version=version, reason=reason)
        job_event_add(
            head.job, JobEvent.Kind.QUERY, Message("The query {name} was stopped and the others continue: {reason}.", name=name, reason=reason)
        )
    _advance(head, work)


def _turn_over(cursor: Any, work: FencedWrite, head: FeedHead) -> None:
    """Ends the open answers of the versions that the job has left, and takes
    up those that it runs now."""
    if not work.left and not work.joined:
        return
    ended, ended_alerts = answers_end(head, work.left)
    forgotten = answers_forget(head, work.joined)
    changed = sorted({query for query, _ in (*work.left, *work.joined)})
    rows = [json.dumps(row) for row in (*ended, *forgotten)]
    head.outbox_seq = outbox_write(cursor, work.feed_id, head.outbox_seq, rows, [json.dumps(alert) for alert in ended_alerts], changed)


def _advance(head: FeedHead, work: FencedWrite) -> None:
    if work.batch is not None:
        head.checkpoint, head.last_batch = work.checkpoint, work.batch
    for name, value in work.progress.items():
        setattr(head, name, value)
    for name, value in work.added.items():
        setattr(head, name, getattr(head, name) + value)
    head.commits += 1
    head.save()


def _upsert(cursor: Any, work: FencedWrite, facts: Sequence[Fact], seq: int, now: int) -> set[int]:
    """Brings `facts` into the table; positions of those that were there, not retracted, before
    (unless the facts open no alerts)."""
    cursor.execute(_INCOMING)
    cursor.copy_expert("COPY incoming FROM STDIN", _Lines(_copy_line(i, fact) for i, fact in enumerate(facts)))
    # Statistics only for the columns that the planner uses: analysing all texts and evidence
    # took a seventh of the time.
    cursor.execute("ANALYZE incoming (key, start, weight)")
    # The bounds let PostgreSQL leave out the partitions that cannot hold these rows.
    low, high = min(fact.start for fact in facts), max(fact.start for fact in facts)
    known: set[int] = set()
    if not work.backfill and any(may_be_revised(fact.kind, fact.evidence is not None) or not fact.weight for fact in facts):
        # Needed for alerts. Other facts are asserted once, so they are not looked up.
        cursor.execute(_KNOWN, [work.feed_id, low, high])
        known = {position for (position,) in cursor.fetchall()}
    values = {"feed": work.feed_id, "seq": seq, "chunk": CHUNK, "now": now, "low": low, "high": high, "backfill": work.backfill}
    if any(not fact.weight for fact in facts):
        cursor.execute(_RETRACT, values)
    cursor.execute(_STATE, values)
    return known


def _stored(facts: Sequence[Fact], known: set[int]) -> list[StoredFact]:
    return [
        StoredFact(f.key, f.query_id, f.version, f.kind, f.entities, f.value, f.start, f.end, f.weight, i not in known) for i, f in enumerate(facts)
    ]


def _dead_letters(head: FeedHead, late: pa.Table) -> None:
    from webapp.feeds.models import DeadLetter

    letters = [
        DeadLetter(feed=head.feed, reason=letter.reason, detail=letter.detail, row=letter.row, source="job")
        for letter in late_letters(late, head.feed.engine_feed())
    ]
    DeadLetter.objects.bulk_create(letters, batch_size=1000)


class _Lines(io.TextIOBase):
    """A file over an iterator of lines, for COPY."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines: Iterator[str] = iter(lines)
        self._rest = ""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> str:
        parts, length = [self._rest], len(self._rest)
        for line in self._lines:
            parts.append(line)
            length += len(line)
            if size is not None and 0 <= size <= length:
                break
        text = "".join(parts)
        if size is None or size < 0:
            self._rest = ""
            return text
        self._rest = text[size:]
        return text[:size]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _copy_line(position: int, fact: Fact) -> str:
    """One line in COPY's text format."""
    quoted = ('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in fact.entities)
    fields = (
        str(position),
        f"\\\\x{fact.key.hex()}",
        str(fact.query_id),
        str(fact.version),
        _escape(fact.kind),
        _escape("{" + ",".join(quoted) + "}"),
        "\\N" if fact.value is None else _escape(fact.value),
        "\\N" if fact.score is None else repr(fact.score),
        str(fact.start),
        "\\N" if fact.end is None else str(fact.end),
        "\\N" if fact.evidence is None else _escape(fact.evidence),
        str(fact.weight),
    )
    return "\t".join(fields) + "\n"
