"""The removal of a feed with concurrent writers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from tests.webapp.answers import a_head, crossing, facts
from webapp.alerts.models import Alert
from webapp.detections import removal as removal_of_feeds
from webapp.detections.removal import feed_delete
from webapp.feeds import ingest
from webapp.feeds.models import Connector, Feed
from webapp.queries.services import query_remove
from webapp.supervisor import sink

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


def until_waiting() -> None:
    """Returns when another connection waits for a lock of this one."""
    give_up = time.monotonic() + 30
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))")
            if cursor.fetchone()[0]:
                return
            assert time.monotonic() < give_up, "the removal waits for no lock"
            time.sleep(0.01)


@pytest.fixture
def removal() -> Any:
    """Starts to remove a feed on another connection, and returns when that waits for this one."""

    def remove(feed: Feed) -> None:
        try:
            feed_delete(feed=feed, user=feed.owner)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:

        def begin(feed: Feed) -> Future[None]:
            future = pool.submit(remove, feed)
            until_waiting()
            return future

        yield begin


def test_a_feed_can_be_removed_while_its_job_stores_a_batch(feed: Any, query: Any, removal: Callable[[Feed], Future[None]], monkeypatch: Any) -> None:
    a_head(feed)
    query_remove(query=query)
    begun = list[Future[None]]()
    monkeypatch.setattr(sink, "failpoint", lambda name: begun.append(removal(feed)) if name == "sink.before_commit" else None)
    # The commit refers to the query, which the removal deletes.
    stopped = [(query.pk, 1, "took too long")]
    assert sink.store(sink.FencedWrite(feed.pk, 1, 1, 0, stopped=stopped))
    begun[0].result()
    assert not Feed.objects.exists()


def test_a_feed_can_be_removed_while_rows_of_a_connector_arrive(
    feed: Any, received: Callable[..., None], removal: Callable[[Feed], Future[None]], monkeypatch: Any
) -> None:
    ingest.settle(feed)
    received(feed, [{"entity": "a", "t": 1, "x": 0, "y": 0}])
    connector = Connector.objects.create(feed=feed, name="buoys", kind="mqtt")
    begun = list[Future[None]]()

    def reached(*_: Any) -> None:
        """The connector's row is written under the lock of the counter."""
        begun.append(removal(feed))
        Connector.objects.filter(pk=connector.pk).update(messages=1)

    monkeypatch.setattr(ingest, "connector_reached", reached)
    assert ingest.settle(feed) == 1
    begun[0].result()
    assert not Feed.objects.exists()


def test_alerts_of_a_flood_go_in_several_transactions(feed: Any, query: Any, monkeypatch: Any) -> None:
    a_head(feed)
    found = facts([crossing(query, name, 2000) for name in "abcde"])
    assert sink.commit(sink.FencedWrite(feed.pk, 1, 1, 0, found), timeout_s=5)
    query_remove(query=query)
    monkeypatch.setattr(removal_of_feeds, "ALERTS_AT_ONCE", 2)
    left = list[int]()
    monkeypatch.setattr(removal_of_feeds, "outbox_append", lambda **_: left.append(Alert.objects.count()))
    feed_delete(feed=feed, user=feed.owner)
    assert (left, Feed.objects.exists(), Alert.objects.exists()) == ([5, 3, 1], False, False)
