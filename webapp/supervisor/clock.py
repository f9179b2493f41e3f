"""Sets a feed's clock back: rows with wrong times are removed from the log, and the stored data are
changed to those of the log without them.

Those rows become dead letters. Rows that were late only because of them are events, facts that were
found only by them are retracted, facts that were missed are asserted and raise their alerts:
`audit` finds the feed exact afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from django.db import transaction

from engine.model.changes import ANSWERS
from engine.model.columns import CLOCK, SEQ, TIME
from engine.model.events import plain_row
from engine.model.messages import Message
from engine.runtime.derived import GraphEvaluator
from engine.sinks.facts import Fact, facts_of
from engine.sources.eventlog import EventLog
from engine.sources.removal import later_rows, remove_later, without_later
from webapp.audit.services import record
from webapp.feeds.ingest import settle
from webapp.feeds.logs import event_log, states_forget
from webapp.feeds.models import DeadLetter, Feed, IngestCounter
from webapp.jobs.models import FeedHead, JobEvent
from webapp.jobs.services import job_event_add
from webapp.supervisor import sink
from webapp.supervisor.store import FeedStore, late_events

LETTERS = 1_000
"""At most this many of the rows that are removed from the log are stored one by
one; the others are counted."""
COUNTED = ("processed", "duplicates", "late")


@dataclass(frozen=True)
class ClockReset:
    """The result of setting a clock back: rows that left the log, facts
    retracted, facts asserted."""

    rows: int
    retracted: int
    asserted: int


@dataclass(frozen=True)
class _Evaluation:
    facts: Mapping[bytes, Fact]
    late: pa.Table | None
    counts: Mapping[str, int]
    watermark: int | None


def rows_beyond(feed: Feed, to: int) -> int:
    """The number of events of the log after `to`."""
    return sum(table.num_rows for table in later_rows(event_log(feed.name), to))


def clock_set_back(*, feed: Feed, to: int, reason: str) -> ClockReset:
    """Removes the rows beyond `to` from the feed's log. The feed's job must be stopped, and stay
    stopped until this returns.

    Raises sink.Fenced when a job has started meanwhile: then nothing was changed.
    """
    log = event_log(feed.name)
    settle(feed)
    head = FeedHead.objects.get(feed=feed)
    before = _evaluation(feed, head, log.start, log.read(log.start, head.last_seq + 1))
    after = _evaluation(feed, head, log.start, without_later(log.read(log.start, head.last_seq + 1), to))
    gone = [fact for key, fact in before.facts.items() if key not in after.facts]
    new = [fact for key, fact in after.facts.items() if before.facts.get(key) != fact]
    removed = list(later_rows(log, to))
    rows = sum(table.num_rows for table in removed)
    with transaction.atomic():
        DeadLetter.objects.filter(feed=feed, reason="late", source="job").delete()
        sink.store(_correction(head, after, before, [*(replace(fact, weight=0) for fact in gone), *new]))
        _dead(feed, removed, to, rows)
        text = Message(
            "{feed}: the clock was set back to {to}; rows beyond it, dead letters now: {rows} ({reason}).",
            feed=feed,
            to=feed.engine_feed().moment(to),
            rows=rows,
            reason=reason,
        )
        job_event_add(head.job, JobEvent.Kind.REQUESTED, text)
        record("feed.clock", feed, to=to, rows=rows, retracted=len(gone), asserted=len(new), reason=reason)
        # States that contain the old clock are removed: the job builds its state from the log.
        states_forget(feed.name)
        remove_later(log, to)
    return ClockReset(rows, len(gone), len(new))


def _evaluation(feed: Feed, head: FeedHead, start: int, tables: Iterable[pa.Table]) -> _Evaluation:
    """The answers of the running queries on the rows that the job has processed."""
    queries = FeedStore(feed, head.epoch).recall([(str(query), int(version)) for query, version in head.queries])
    evaluator = GraphEvaluator.local(feed.engine_feed(), queries)
    evaluator.skip_to(start - 1)
    changes, late, counts = [ANSWERS.empty_table()], [], dict.fromkeys(COUNTED, 0)
    for rows in tables:
        outcome = evaluator.process(rows)
        changes.append(outcome.changes)
        if outcome.late.num_rows:
            late.append(outcome.late)
        counters = {"processed": outcome.processed, "duplicates": outcome.duplicates, "late": late_events(outcome.late)}
        counts = {name: counts[name] + counters[name] for name in COUNTED}
    facts = {fact.key: fact for fact in facts_of(pa.concat_tables(changes)) if fact.weight}
    return _Evaluation(facts, pa.concat_tables(late, promote_options="default") if late else None, counts, evaluator.watermark)


def _correction(head: FeedHead, after: _Evaluation, before: _Evaluation, facts: Sequence[Fact]) -> sink.FencedWrite:
    watermark = after.watermark
    progress: dict[str, Any] = {
        "snapshot": "",
        "snapshot_seq": -1,
        "watermark": watermark,
        "max_t": None if watermark is None else watermark + head.feed.lateness,
        # Spark reads the files that are there now from the beginning.
        "checkpoint": head.checkpoint + 1,
        "last_batch": -1,
    }
    added = {name: after.counts[name] - before.counts[name] for name in COUNTED}
    return sink.FencedWrite(head.feed_id, head.epoch, head.checkpoint, None, facts, after.late, progress, added)


def _dead(feed: Feed, removed: Iterable[pa.Table], to: int, rows: int) -> None:
    """Counts and keeps the rows that leave the log."""
    counter = IngestCounter.objects.select_for_update().get(feed=feed)
    counter.dead += rows
    counter.save(update_fields=["dead"])
    detail = Message("the feed's clock was set back to {to}", to=str(to))
    letters = [
        DeadLetter(feed=feed, reason="future", detail=detail, row=plain_row(row), source="clock")
        for table in removed
        for row in table.drop_columns([SEQ, CLOCK]).to_pylist()
    ]
    if len(letters) > LETTERS:
        more = Message("and {count} more rows: {why}", count=rows - LETTERS, why=detail)
        letters = [*letters[:LETTERS], DeadLetter(feed=feed, reason="future", detail=more, source="clock")]
    DeadLetter.objects.bulk_create(letters, batch_size=1_000)


def newest_times(feed: Feed, count: int = 5) -> list[tuple[int, str]]:
    """(t, entity) of the rows that are furthest ahead, greatest first."""
    log: EventLog = event_log(feed.name)
    best: list[tuple[int, str]] = []
    for table in log.read(log.start, columns=[TIME, "entity"]):
        best = sorted([*best, *zip(table.column(TIME).to_pylist(), table.column("entity").to_pylist(), strict=True)], reverse=True)[:count]
    return best
