"""Measurements of each feed's processing over the last day, for its charts: taken by the workers,
so no page has to be open."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict

from django.utils import timezone

from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead, FeedMeasure

EVERY = timedelta(seconds=10)
KEPT = timedelta(days=1)
SILENT = timedelta(seconds=20)
"""A feed without a batch for this long processes nothing."""


def measures_take() -> None:
    """Adds a measure of each feed that has none of the last ten seconds."""
    now = timezone.now()
    fresh = set(FeedMeasure.objects.filter(at__gt=now - EVERY).values_list("feed", flat=True))
    heads = FeedHead.objects.exclude(updated_at=None).exclude(feed__in=fresh).select_related("feed").defer("queries")
    FeedMeasure.objects.bulk_create([_measure(head, now) for head in heads])


def _measure(head: FeedHead, now: datetime) -> FeedMeasure:
    is_silent = head.updated_at is None or now - head.updated_at > SILENT
    return FeedMeasure(feed=head.feed, at=now, rows_per_s=0.0 if is_silent else head.rows_per_s, lag=lag_of(head, now), batch_ms=head.batch_ms)


def lag_of(head: FeedHead, now: datetime) -> int | None:
    """How far the watermark is behind, in the feed's unit; null before the first."""
    if head.watermark is None or head.max_t is None:
        return None
    is_real = head.feed.wall_clock and head.feed.time == "ms"
    return (round(now.timestamp() * 1000) if is_real else head.max_t) - head.watermark


def measures_expire() -> None:
    """Deletes measures older than a day."""
    FeedMeasure.objects.filter(at__lt=timezone.now() - KEPT).delete()


class Measures(TypedDict):
    """Lists of equal length, oldest first; `at` in milliseconds since the epoch."""

    at: list[int]
    rows_per_s: list[float | None]
    lag: list[int | None]
    batch_ms: list[float | None]


def feed_measures(*, feed: Feed, minutes: int) -> Measures:
    """Those of the last `minutes`."""
    rows = list(feed.measures.filter(at__gt=timezone.now() - timedelta(minutes=minutes)).values_list("at", "rows_per_s", "lag", "batch_ms"))
    return {
        "at": [round(at.timestamp() * 1000) for at, *_ in rows],
        "rows_per_s": [one[1] for one in rows],
        "lag": [one[2] for one in rows],
        "batch_ms": [one[3] for one in rows],
    }
