"""An audit reports exact data as exact, and names every deviation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.conf import settings as django_settings

from engine.model.events import HEARTBEAT, row_schema
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from tests.webapp.answers import a_feed, a_user
from webapp.detections.models import Detection
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead
from webapp.platform.folders import ROOT
from webapp.platform.postgres import with_database
from webapp.queries.services import query_register
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}


@pytest.fixture
def processed(tmp_path: Path, settings: Any) -> Feed:
    """A feed with 40 processed rows: one entity that enters and leaves, a duplicate, a late row."""
    settings.EVENT_LOG_ROOT = tmp_path / "log"
    feed = a_feed("yard", lateness=5)
    feed_head_ensure(feed)
    query_register(owner=a_user(), feed=feed, name="gate", specification={"family": "border", "version": 1, "region": SQUARE}, alert_kinds=["in"])
    log = EventLog(django_settings.EVENT_LOG_ROOT, "yard")
    rows = [{"event": "position", "entity": "a", "t": 10 * n, "x": float(n % 4), "y": 1.0} for n in range(38)]
    rows += [rows[-1], {**rows[3], "t": 30}]
    log.append(pa.Table.from_pylist(rows, schema=row_schema(feed.engine_feed())))
    processor = FeedProcessor(feed.engine_feed(), log, FeedStore(feed, 1), Snapshots(files_of(tmp_path / "state")))
    processor.follow()
    processor.process()
    return feed


def test_late_heartbeats_are_counted_nowhere(processed: Feed, tmp_path: Path) -> None:
    late = FeedHead.objects.get().late
    log = EventLog(django_settings.EVENT_LOG_ROOT, "yard")
    log.append(pa.Table.from_pylist([{"event": HEARTBEAT, "entity": HEARTBEAT, "t": 1}], schema=row_schema(processed.engine_feed())))
    FeedProcessor(processed.engine_feed(), log, FeedStore(processed, 1), Snapshots(files_of(tmp_path / "state"))).process()
    head = FeedHead.objects.get()
    assert (head.last_seq, head.late, late) == (40, 1, 1)
    assert feed_audit(feed=processed).faults == []


def test_what_a_job_stored_is_exact(processed: Feed) -> None:
    audit = feed_audit(feed=processed)
    assert audit.faults == []
    assert audit.rows == 40
    assert audit.facts == Detection.objects.count() > 10
    assert audit.alerts > 5


def test_lost_false_and_moved_facts_are_named(processed: Feed) -> None:
    first, second = Detection.objects.order_by("start")[:2]
    Detection.objects.filter(start=first.start, key=first.key).update(weight=0)
    Detection.objects.filter(start=second.start, key=second.key).update(end=second.start + 1)
    faults = " ".join(feed_audit(feed=processed).faults)
    assert "not stored: 1 fact," in faults
    assert "stored with other times: 1 fact," in faults


def test_a_counter_that_does_not_add_up_is_named(processed: Feed) -> None:
    FeedHead.objects.update(duplicates=0)
    assert "the head counts 0 rows as duplicates, the log has 1" in feed_audit(feed=processed).faults


def test_a_database_without_tables_is_reported_with_the_remedy(owner_url: str) -> None:
    """As for every command: the server's default database has no tables."""
    environment = {**os.environ, "DATABASE_URL": with_database(owner_url, "postgres")}
    done = subprocess.run([sys.executable, "manage.py", "audit", "yard"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert 'relation "feeds_feed" does not exist' in done.stderr and "manage.py migrate" in done.stderr
