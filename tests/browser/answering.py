"""The job's work without Spark: the same evaluator over the same log,
stored by the same transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from django.conf import settings
from django.utils import timezone

from engine.runtime.derived import GraphEvaluator
from engine.sinks.facts import facts_of
from engine.sources.eventlog import EventLog
from tests.webapp.answers import a_head
from webapp.feeds.models import Feed
from webapp.jobs.models import Job, ObservedState
from webapp.queries.derivation import registered
from webapp.queries.models import QueryVersion
from webapp.supervisor.sink import FencedWrite, commit

if TYPE_CHECKING:
    from tests.crash.world import World


class Answering:
    """Evaluates the rows of a feed's log (the world's, or another) that were not evaluated before;
    stores and publishes the answers."""

    def __init__(self, world: World, feed: Feed | None = None) -> None:
        self.feed = feed or world.feed
        self.log = EventLog(settings.EVENT_LOG_ROOT, self.feed.name)
        self.head = a_head(self.feed)
        # The heartbeat of its process.
        Job.objects.filter(heads=self.head).update(observed_state=ObservedState.RUNNING)
        own = self.feed.engine_feed()
        rows = QueryVersion.objects.filter(to_feed_version=None, query__feed=self.feed).order_by("query_id")
        self.evaluator = GraphEvaluator.local(own, registered(rows, own))
        self.batch = 0

    def catch_up(self) -> int:
        """The number of changes stored."""
        outcomes = [self.evaluator.process(table) for table in self.log.read(self.evaluator.position + 1)]
        changes = pa.concat_tables([outcome.changes for outcome in outcomes])
        self.batch += 1
        progress = {
            "last_seq": self.evaluator.position,
            "watermark": self.evaluator.watermark,
            "max_t": self.log.end[1],
            "updated_at": timezone.now(),
        }
        assert commit(FencedWrite(self.feed.pk, self.head.epoch, self.head.checkpoint, self.batch, facts_of(changes), progress=progress))
        return int(changes.num_rows)
