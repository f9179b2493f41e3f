"""The job's work without Spark: the same evaluator over the same log, stored by the same transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.webapp.answers import a_head
from webapp.detections.sink import Commit, commit
from webapp.queries.models import QueryVersion

if TYPE_CHECKING:
    from tests.crash.world import World


class Answering:
    """Evaluates what the world's log holds, as far as it was not evaluated before, and stores and tells the answers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.head = a_head(world.feed)
        feed = world.feed.engine_feed()
        rows = QueryVersion.objects.filter(to_feed_version=None, query__feed=world.feed).order_by("query_id")
        self.evaluator = Evaluator.start(feed, [RegisteredQuery(str(row.query_id), row.version, check(row.specification, feed, {})) for row in rows])
        self.batch = 0

    def catch_up(self) -> int:
        """How many changes were stored."""
        outcomes = [self.evaluator.process(table) for table in self.world.log.read(self.evaluator.position + 1)]
        changes = pa.concat_tables([outcome.changes for outcome in outcomes])
        self.batch += 1
        progress = {"last_seq": self.evaluator.position, "watermark": self.evaluator.watermark, "max_t": self.world.log.end[1]}
        assert commit(Commit(self.world.feed.pk, self.head.epoch, self.head.checkpoint, self.batch, changes, progress=progress))
        return int(changes.num_rows)
