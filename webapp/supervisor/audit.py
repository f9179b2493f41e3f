"""Checks that the stored data of a feed follow exactly from its log: evaluates the whole log again
and compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection, transaction

from engine.model.changes import ANSWERS
from engine.model.columns import ENTITY
from engine.model.counts import counted
from engine.runtime.derived import GraphEvaluator
from engine.sinks.facts import facts_of
from engine.sources.eventlog import EventLog
from engine.sources.repair import LOST
from engine.sources.segments import LogDamaged
from webapp.alerts.models import Alert
from webapp.detections.models import Detection, Outbox
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead
from webapp.supervisor.store import FeedStore, late_events

Query = tuple[int, int]
"""A query's id and version."""


@dataclass(frozen=True)
class StoredState:
    """The stored data of a feed, read in one snapshot."""

    head: FeedHead
    stored: Mapping[bytes, tuple[int, int | None]]
    alerts: list[bytes]
    outbox: list[int]


@dataclass
class Audit:
    """The result: `faults` is empty when everything is exact."""

    rows: int = 0
    facts: int = 0
    alerts: int = 0
    lost: int = 0
    faults: list[str] = field(default_factory=list)

    def expect(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)


def feed_audit(*, feed: Feed) -> Audit:
    """Compares detections, alerts, counters and the outbox of `feed` with its log, up to
    the last row of its head.

    May run while the job is running. Needs the log from its first row on: reports it when retention
    has dropped the beginning.
    """
    audit = Audit()
    state = _stored_state(feed)
    log = event_log(feed.name)
    try:
        audit.expect(log.start == 0, f"the log begins at row {log.start}: what was found in older rows cannot be judged")
        changes, counts = _evaluated(feed, state.head, log)
    except LogDamaged as damage:
        audit.faults.append(f"its log is damaged: {damage} (to be repaired by manage.py repair {feed.name})")
        return audit
    audit.lost = counts.pop("lost")
    facts = {fact.key: (fact.start, fact.end) for fact in facts_of(changes) if fact.weight}
    audit.rows, audit.facts, audit.alerts = state.head.last_seq + 1, len(facts), len(state.alerts)
    missing, extra = facts.keys() - state.stored.keys(), state.stored.keys() - facts.keys()
    differing = [key for key in facts.keys() & state.stored.keys() if facts[key] != state.stored[key]]
    audit.expect(not missing, f"not stored: {counted(len(missing), 'fact')}, for example {_example(missing)}")
    audit.expect(not extra, f"stored but not true: {counted(len(extra), 'fact')}, for example {_example(extra)}")
    audit.expect(not differing, f"stored with other times: {counted(len(differing), 'fact')}, for example {_example(differing)}")
    audit.expect(len(state.alerts) == len(set(state.alerts)), "a fact has two alerts")
    for name, count in counts.items():
        kept = getattr(state.head, name)
        audit.expect(kept == count, f"the head counts {counted(kept, 'row')} as {name}, the log has {count:,}")
    dense = state.outbox == list(range(state.head.outbox_seq - len(state.outbox) + 1, state.head.outbox_seq + 1))
    audit.expect(dense, "the outbox's numbers have a gap")
    return audit


def _stored_state(feed: Feed) -> StoredState:
    with transaction.atomic():
        if len(connection.savepoint_ids) == 0 and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        head = FeedHead.objects.get(feed=feed)
        running = {(int(query), int(version)) for query, version in head.queries}
        rows = Detection.objects.filter(feed=feed, weight=1).values_list("query_id", "version", "key", "start", "end")
        stored = {bytes(key): (start, end) for query, version, key, start, end in rows.iterator() if (query, version) in running}
        alerts = [bytes(key) for key in Alert.objects.filter(feed=feed).values_list("detection_key", flat=True)]
        outbox = list(Outbox.objects.filter(feed=feed).order_by("seq").values_list("seq", flat=True))
        return StoredState(head, stored, alerts, outbox)


def _evaluated(feed: Feed, head: FeedHead, log: EventLog) -> tuple[pa.Table, dict[str, int]]:
    """The changes of all rows up to the head's under the queries that have joined, and the counts
    of rows."""
    queries = FeedStore(feed, head.epoch).recall([(str(query), int(version)) for query, version in head.queries])
    evaluator = GraphEvaluator.local(feed.engine_feed(), queries)
    evaluator.skip_to(log.start - 1)
    changes, counts = [ANSWERS.empty_table()], {"processed": 0, "duplicates": 0, "late": 0, "lost": 0}
    for rows in log.read(log.start, head.last_seq + 1):
        outcome = evaluator.process(rows)
        changes.append(outcome.changes)
        counts["processed"] += outcome.processed
        counts["duplicates"] += outcome.duplicates
        counts["late"] += late_events(outcome.late)
        counts["lost"] += pc.sum(pc.equal(rows.column(ENTITY), LOST)).as_py() or 0
    return pa.concat_tables(changes), counts


def _example(keys: object) -> str:
    return min(keys, default=b"").hex()  # type: ignore[call-overload, no-any-return]
