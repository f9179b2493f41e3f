"""The engine's Store over PostgreSQL: heads and answers of one feed for one start of a job."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from django.db import close_old_connections, transaction
from django.utils import timezone

from engine.model.columns import EVENT
from engine.model.events import HEARTBEAT
from engine.model.messages import Message
from engine.operator import RegisteredQuery
from engine.runtime.store import Commit, Head, QueryKey
from engine.sinks.facts import Fact, facts_of
from webapp.feeds.heads import CatchingUp, feed_event_add
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead
from webapp.queries.derivation import registered
from webapp.queries.models import QueryVersion
from webapp.queries.selectors import versions_running
from webapp.supervisor import sink


def late_events(late: pa.Table | None) -> int:
    """The number of late rows without heartbeats, which the job adds and no source sends."""
    return 0 if late is None else late.num_rows - (pc.sum(pc.equal(late.column(EVENT), HEARTBEAT)).as_py() or 0)


class FeedStore:
    """Implements `engine.runtime.store.Store`. `job`: the one that starts; starts of different jobs
    may have the same number."""

    def __init__(self, feed: Feed, epoch: int, job: int | None = None) -> None:
        self.feed, self.epoch, self.job = feed, epoch, job
        self._engine_feed = feed.engine_feed()
        self._stored_queries: tuple[QueryKey, ...] = ()
        self._stored_seq = -1

    def open(self) -> Head:
        """Takes over the feed. Raises sink.Fenced when a newer start has it, or another job."""
        with transaction.atomic():
            head = FeedHead.objects.select_for_update(of=("self",)).get(feed=self.feed)
            if self.job not in (None, head.job_id):
                raise sink.Fenced(f"{self.feed} was given to another job")
            if head.epoch > self.epoch:
                raise sink.Fenced(f"{self.feed}: epoch {head.epoch} has taken over from {self.epoch}")
            head.epoch = self.epoch
            head.catching_up = None
            head.save()
        self._stored_queries = tuple((str(key), int(version)) for key, version in head.queries)
        self._stored_seq = head.last_seq
        return Head(
            epoch=self.epoch,
            checkpoint=head.checkpoint,
            last_batch=head.last_batch,
            last_seq=head.last_seq,
            query_version=head.query_version,
            queries=self._stored_queries,
            snapshot=head.snapshot,
            snapshot_seq=head.snapshot_seq,
        )

    def owns(self) -> bool:
        head = FeedHead.objects.values("job", "epoch").get(feed=self.feed)
        return head["epoch"] == self.epoch and self.job in (None, head["job"])

    def version(self) -> int:
        close_old_connections()
        return Feed.objects.values_list("query_version", flat=True).get(pk=self.feed.pk)

    def queries(self, version: int) -> Sequence[RegisteredQuery]:
        return registered(versions_running(feed=self.feed, version=version), self._engine_feed)

    def recall(self, keys: Sequence[QueryKey]) -> Sequence[RegisteredQuery]:
        rows = {(str(row.query_id), row.version): row for row in QueryVersion.objects.filter(query__in=[int(key) for key, _ in keys])}
        return registered([rows[key] for key in keys if key in rows], self._engine_feed)

    def prepare(self, changes: pa.Table) -> Sequence[Fact]:
        return facts_of(changes)

    def commit(self, commit: Commit) -> bool:
        head = commit.head
        # A hundred thousand keys are more than the answers of most batches: written only when they
        # changed.
        queries = {} if head.queries is self._stored_queries else {"queries": [list(key) for key in head.queries]}
        # A query that joins brings a batch without rows.
        moved = {"updated_at": timezone.now()} if head.last_seq > self._stored_seq else {}
        stored = sink.commit(
            sink.FencedWrite(
                feed_id=self.feed.pk,
                epoch=self.epoch,
                job=self.job,
                checkpoint=head.checkpoint,
                batch=commit.batch,
                facts=commit.changes,
                late=commit.late,
                backfill=commit.backfill,
                progress={
                    "last_seq": head.last_seq,
                    "query_version": head.query_version,
                    "snapshot": head.snapshot,
                    "snapshot_seq": head.snapshot_seq,
                    **moved,
                    **queries,
                    **commit.measures,
                },
                added={**commit.counted, "late": late_events(commit.late)},
                stopped=[(int(one.key[0]), one.key[1], one.reason) for one in commit.stopped],
                left=_beyond(self._stored_queries, head.queries),
                joined=_beyond(head.queries, self._stored_queries),
            )
        )
        if stored:
            self._stored_queries, self._stored_seq = head.queries, head.last_seq
        return stored

    def catching_up(self, queries: Sequence[str], read: int, rows: int) -> None:
        self._set_catching_up({"queries": [int(query) for query in queries], "read": read, "rows": rows})

    def caught_up(self) -> None:
        self._set_catching_up(None)

    def _set_catching_up(self, progress: CatchingUp | None) -> None:
        FeedHead.objects.filter(feed=self.feed, epoch=self.epoch).update(catching_up=progress)

    def report_event(self, kind: str, text: Message) -> None:
        feed_event_add(self.feed, kind, text)


def _beyond(some: Sequence[QueryKey], others: Sequence[QueryKey]) -> list[tuple[int, int]]:
    """Those of `some` that are not among `others`."""
    return [] if some is others else sorted((int(query), version) for query, version in set(some) - set(others))
