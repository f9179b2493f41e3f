"""The counters of a feed add up at any moment, whether ingest or the job is ahead."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed, IngestCounter
from webapp.jobs.models import FeedHead

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.mark.parametrize(
    ("received", "dead", "processed", "duplicates", "late", "waiting"),
    [
        (0, 0, 0, 0, 0, 0),
        (100, 7, 0, 0, 0, 93),
        (100, 7, 80, 5, 3, 5),
        (100, 7, 85, 5, 3, 0),
        # The job is ahead of ingest's count: 40 rows were appended and processed
        # before they were counted.
        (60, 7, 85, 5, 3, 0),
        (0, 0, 1, 0, 0, 0),
    ],
)
def test_received_is_the_sum_of_the_others(
    people: SimpleNamespace,
    feed: Feed,
    client_of: Callable[..., APIClient],
    received: int,
    dead: int,
    processed: int,
    duplicates: int,
    late: int,
    waiting: int,
) -> None:
    feed_head_ensure(feed)
    IngestCounter.objects.update_or_create(feed=feed, defaults={"received": received, "dead": dead})
    FeedHead.objects.update(processed=processed, duplicates=duplicates, late=late)
    shown = client_of(people.viewer).get("/api/v1/feeds/yard/").json()["counters"]
    assert shown["received"] == sum(shown[name] for name in ("processed", "duplicates", "late", "dead", "waiting"))
    assert shown["received"] >= received
    assert (shown["processed"], shown["dead"], shown["waiting"]) == (processed, dead, waiting)


def test_the_counters_of_all_feeds_are_read_in_one_statement(
    people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient], django_assert_num_queries: Callable[..., object]
) -> None:
    from webapp.feeds.selectors import feed_counters, feed_list

    feed_head_ensure(feed)
    (found,) = feed_list(user=people.viewer)
    with django_assert_num_queries(0):
        feed_counters(found)
