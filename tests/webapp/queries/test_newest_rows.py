"""The newest rows, from which the arrival rate of a feed is estimated: read once for many requests,
and never while the feed is locked."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rest_framework.test import APIClient

from webapp.feeds.models import Feed
from webapp.queries import services
from webapp.queries.models import Query
from webapp.queries.newest_rows import KEPT_FEEDS, KEPT_S, NewestRows, read_rows
from webapp.queries.versions import next_version

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def pairs(seconds: int = 90) -> dict[str, Any]:
    return {"family": "constraint", "variables": {"A": {}, "B": {}}, "constraints": [{"between": ["A", "B"], "dt": [0, 1000 * seconds]}]}


class Reading:
    """Reads rows as the page does, and records of which feeds; tests set `clock`."""

    def __init__(self) -> None:
        self.feeds: list[str] = []
        self.clock = 0.0

    def __call__(self, feed: Feed) -> pa.Table:
        self.feeds.append(feed.name)
        return read_rows(feed)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    found = Reading()
    monkeypatch.setattr("webapp.queries.selectors.NEWEST_ROWS", NewestRows(found, lambda: found.clock))
    return found


def test_rows_are_read_once_for_all_requests_within_a_minute(
    people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient], received: Any, reading: Reading
) -> None:
    received(feed, [{"entity": "a", "t": 100 * k, "x": 0.0, "y": 0.0} for k in range(100)])
    client = client_of(people.owner)
    for seconds in (90, 91, 92):
        answer = client.post("/api/v1/queries/check", {"feed": "yard", "specification": pairs(seconds)}, format="json")
        assert answer.json()["faults"] == []
    assert reading.feeds == ["yard"]
    reading.clock = KEPT_S + 1
    client.post("/api/v1/queries/check", {"feed": "yard", "specification": pairs()}, format="json")
    assert reading.feeds == ["yard", "yard"]


def test_rows_are_read_again_when_the_feed_has_grown_or_changed(feed: Feed, received: Any) -> None:
    reading = Reading()
    newest = NewestRows(reading, lambda: 0.0)
    assert newest.rows(feed).num_rows == 0
    received(feed, [{"entity": "a", "t": 100 * k, "x": 0.0, "y": 0.0} for k in range(100)])
    assert newest.rows(feed).num_rows == 100
    received(feed, [{"entity": "a", "t": 100 * k, "x": 0.0, "y": 0.0} for k in range(100, 120)])
    assert newest.rows(feed).num_rows == 100
    received(feed, [{"entity": "a", "t": 100 * k, "x": 0.0, "y": 0.0} for k in range(120, 151)])
    assert newest.rows(feed).num_rows == 151
    feed.lateness = 7
    assert newest.rows(feed).num_rows == 151
    assert len(reading.feeds) == 4


def test_the_rows_of_few_feeds_are_kept(feed: Feed, received: Any) -> None:
    reading = Reading()
    newest = NewestRows(reading, lambda: 0.0)
    received(feed, [{"entity": "a", "t": 0, "x": 0.0, "y": 0.0}])
    for lateness in (*range(KEPT_FEEDS + 1), KEPT_FEEDS, 0):
        feed.lateness = lateness
        newest.rows(feed)
    assert len(reading.feeds) == KEPT_FEEDS + 2


def test_rows_are_read_before_the_feed_is_locked(
    people: SimpleNamespace, feed: Feed, query: Query, received: Any, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(locked: Feed) -> int:
        reading.feeds.append("locked")
        return next_version(locked)

    monkeypatch.setattr(services, "next_version", lock)
    received(feed, [{"entity": "a", "t": 100 * k, "x": 0.0, "y": 0.0} for k in range(100)])
    services.query_register(owner=people.owner, feed=feed, name="pairs", specification=pairs())
    reading.clock = KEPT_S + 1
    services.query_edit(query=query, user=people.owner, specification=pairs(80), alert_kinds=[])
    services.query_edit(query=query, user=people.owner, severity="high")
    assert reading.feeds == ["yard", "locked", "yard", "locked", "locked"]
