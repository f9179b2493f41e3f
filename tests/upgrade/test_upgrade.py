"""The newest code on data of the previous release: `tests/upgrade/make.py` wrote them
with that release's code."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.store import files_of
from tests.crash.outage import pointed_at
from webapp.feeds.ingest import settle
from webapp.feeds.maintenance import feed_maintain
from webapp.feeds.models import Feed, IngestReceipt
from webapp.feeds.recent import log_of
from webapp.feeds.selectors import feed_counters, feed_list
from webapp.jobs.models import FeedHead
from webapp.platform.postgres import fresh_database, run_script, with_database
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

RELEASES = sorted(path.parent.name for path in Path(__file__).parent.glob("*/database.sql.gz"))


@pytest.fixture(params=RELEASES)
def release(request: Any, transactional_db: None, tmp_path: Path, settings: Any) -> Iterator[Feed]:
    """The release's data, migrated."""
    from django.db import connection

    folder = Path(__file__).parent / request.param
    with tarfile.open(folder / "files.tar.gz") as archive:
        # Without `filter`, which needs Python 3.11.4; the archive is ours.
        archive.extractall(tmp_path)
    settings.VEDETTE_LOG_STORE = ""
    settings.EVENT_LOG_ROOT, settings.CHECKPOINT_ROOT = tmp_path / "log-of-events", tmp_path / "checkpoints"
    owner_url = fresh_database(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"], "upgrade")
    run_script(owner_url, gzip.decompress((folder / "database.sql.gz").read_bytes()))
    with pointed_at(with_database(os.environ["DATABASE_URL"], "upgrade"), owner_url):
        call_command("migrate", verbosity=0)
        yield Feed.objects.get(name="yard")
        connection.close()


def process(feed: Feed, settings: Any) -> None:
    state = Snapshots(files_of(Path(settings.CHECKPOINT_ROOT) / feed.name / "state"))
    processor = FeedProcessor(feed.engine_feed(), log_of(feed), FeedStore(feed, FeedHead.objects.get().epoch + 1), state)
    processor.process()


def test_data_of_the_previous_release_stay_exact_and_the_job_continues(release: Feed, settings: Any) -> None:
    before = FeedHead.objects.get().last_seq
    assert (feed_audit(feed=release).faults, before) == ([], 1475), "the audit of the new code agrees with what the old code found"
    settle(release)
    assert IngestReceipt.objects.filter(key="part-14").exists(), "deliveries that the release had not counted are counted"
    process(release, settings)
    audit = feed_audit(feed=release)
    assert (audit.faults, audit.rows) == ([], log_of(release).end[0])
    counters = feed_counters(feed_list(user=release.owner).get(pk=release.pk))
    assert counters["waiting"] == 0 and counters["dead"] == 15
    feed_maintain(feed=release)
    process(release, settings)
    feed_maintain(feed=release)
    assert sum(table.num_rows for table in log_of(release).read()) == log_of(release).end[0]
