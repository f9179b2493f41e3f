"""Maintenance of a feed's log and tables: settling, compaction, retention."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from webapp.feeds.damage import damage_isolated
from webapp.feeds.heads import feed_position
from webapp.feeds.ingest import settle
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestReceipt

RECEIPTS_KEPT = timedelta(days=7)
"""How long an idempotency key is kept."""
DELETED_AT_ONCE = 10_000


def feed_maintain(*, feed: Feed) -> None:
    """One round for one feed; cheap when there is nothing to do.

    Retention counts back from the log's newest row, not from today, so that old recordings are
    kept.
    """
    with damage_isolated(feed):
        _settle_and_compact(feed)
    _expire(feed)


def _settle_and_compact(feed: Feed) -> None:
    settled = settle(feed)
    log = event_log(feed.name)
    # Rows whose answers are stored are read again only by readers that also find them in the larger
    # files.
    up_to = min(settled - 1, feed_position(feed_id=feed.pk))
    if up_to >= 0:
        log.compact(up_to)
    newest = log.end[1]
    if feed.time == "ms" and newest is not None:
        log.drop_before(newest - feed.retention_hours * 3_600_000)


def _expire(feed: Feed) -> None:
    """Deletes dead letters beyond the retention, and expired receipts; a
    bounded number at a time."""
    now = timezone.now()
    old_letters = DeadLetter.objects.filter(feed=feed, received_at__lt=now - timedelta(hours=feed.retention_hours)).order_by("id")
    old_receipts = IngestReceipt.objects.filter(feed=feed, created_at__lt=now - RECEIPTS_KEPT).order_by("id")
    DeadLetter.objects.filter(pk__in=list(old_letters.values_list("pk", flat=True)[:DELETED_AT_ONCE])).delete()
    IngestReceipt.objects.filter(pk__in=list(old_receipts.values_list("pk", flat=True)[:DELETED_AT_ONCE])).delete()
