"""If the database needs too long for a batch, the batch is stored in smaller parts, and
nothing is lost or stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection

from engine.model.events import row_schema
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from tests.webapp.answers import a_feed, a_user
from webapp.config.connections import limit_statements
from webapp.config.settings.storage import STATEMENT_SECONDS
from webapp.detections.models import Detection
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead, JobEvent
from webapp.queries.services import query_register
from webapp.supervisor import sink
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

SQUARE = {"family": "border", "version": 1, "region": {"center": [0, 0], "radius": 1}}
SLOWLY = sink._STATE.replace("WHERE weight = 1", "WHERE weight = 1 AND pg_sleep(0.02) IS NOT NULL")


@pytest.fixture(params=["a statement", "all together"])
def limit(settings: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """Delays by a second a statement, or all statements of a transaction before another."""
    settings.VEDETTE_STORE_SECONDS = 1
    if request.param == "a statement":
        limit_statements(1)
        connection.close()
    yield
    limit_statements(STATEMENT_SECONDS)
    connection.close()


@pytest.fixture
def feed(tmp_path: Path, settings: Any) -> Feed:
    settings.EVENT_LOG_ROOT = tmp_path / "log"
    feed = a_feed("yard", lateness=0)
    feed_head_ensure(feed)
    query_register(owner=a_user(), feed=feed, name="inside", specification=SQUARE, alert_kinds=["in"])
    return feed


def test_a_batch_that_takes_too_long_to_store_is_split(
    feed: Feed, limit: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 answers that take 20 ms each."""
    monkeypatch.setattr(sink, "_STATE", SLOWLY)
    log = EventLog(settings.EVENT_LOG_ROOT, feed.name)
    processor = FeedProcessor(feed.engine_feed(), log, FeedStore(feed, 1), Snapshots(files_of(tmp_path / "state")))
    processor.follow()
    rows = [{"event": "position", "entity": f"car {i}", "t": 2 * i + step, "x": 2.0 - 2.0 * step, "y": 0.0} for i in range(200) for step in range(2)]
    log.append(pa.Table.from_pylist(rows, schema=row_schema(feed.engine_feed())))
    while processor.process():
        pass
    assert Detection.objects.filter(feed_id=feed.pk).count() == 200
    head = FeedHead.objects.get()
    assert (head.last_seq, head.processed) == (399, 400)
    texts = [event.text for event in JobEvent.objects.filter(kind="resumed").order_by("id")]
    assert texts[0].endswith("it continues with 200 rows at a time.")
    assert texts[1].endswith("it continues with 100 rows at a time.")
    assert feed_audit(feed=feed).faults == []
