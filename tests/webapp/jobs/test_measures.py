"""The last day of a feed's processing is kept for its charts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead, FeedMeasure
from webapp.supervisor.measures import measures_expire, measures_take

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def test_a_measure_is_taken_every_ten_seconds_and_shown(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    measures_take()
    assert not FeedMeasure.objects.exists(), "nothing was processed yet"
    FeedHead.objects.update(updated_at=timezone.now(), watermark=9_000, max_t=10_000, rows_per_s=12.5, batch_ms=40.0)
    measures_take()
    measures_take()
    shown = client_of(people.viewer).get("/api/v1/feeds/yard/measures").json()
    assert (shown["rows_per_s"], shown["lag"], shown["batch_ms"], len(shown["at"])) == ([12.5], [1_000], [40.0], 1)


def test_a_feed_that_is_silent_processes_nothing_and_one_of_the_wall_clock_lags_behind_it(feed: Feed) -> None:
    now = timezone.now()
    Feed.objects.update(wall_clock=True)
    behind = round(now.timestamp() * 1000) - 30_000
    FeedHead.objects.update(updated_at=now - timedelta(seconds=21), watermark=behind, max_t=behind, rows_per_s=12.5)
    measures_take()
    taken = FeedMeasure.objects.get()
    assert taken.rows_per_s == 0 and 30_000 <= (taken.lag or 0) < 60_000


def test_a_day_is_kept(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    now = timezone.now()
    for hours in (25, 23, 0.25):
        FeedMeasure.objects.create(feed=feed, at=now - timedelta(hours=hours), rows_per_s=hours)
    measures_expire()
    assert set(FeedMeasure.objects.values_list("rows_per_s", flat=True)) == {23, 0.25}
    assert client_of(people.viewer).get("/api/v1/feeds/yard/measures?minutes=30").json()["rows_per_s"] == [0.25]
