"""Services for stored answers: the outbox and retention."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from webapp.detections.models import AnswerCount, Detection, Outbox
from webapp.detections.partitions import SPAN, partition_drop, partitions_list
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead

CHUNK = 500
"""Detections in one outbox row at most: a frame stays well below a megabyte."""
OUTBOX_CHANNEL = "vedette_outbox"
"""The channel of LISTEN; the payload of a notification is the feed's id."""


def outbox_append(*, feed_id: int, detections: Sequence[Mapping[str, object]] = (), alerts: Sequence[Mapping[str, object]] = ()) -> int:
    """Sends browsers a change outside a batch, e.g. an acknowledged alert;
    returns the last number used.

    To be called within the transaction that changes what is sent: the head row stays locked until
    its end, even with nothing to send.
    """
    head = _locked_head(feed_id)
    with connection.cursor() as cursor:
        last = outbox_write(cursor, feed_id, head.outbox_seq, [json.dumps(row) for row in detections], [json.dumps(row) for row in alerts])
    if last != head.outbox_seq:
        head.outbox_seq = last
        head.save(update_fields=["outbox_seq"])
    return last


def _locked_head(feed_id: int) -> FeedHead:
    locked = FeedHead.objects.select_for_update(of=("self",))
    head = locked.filter(feed_id=feed_id).first()
    if head is None:
        feed_head_ensure(Feed.objects.get(pk=feed_id))
        head = locked.get(feed_id=feed_id)
    return head


def outbox_write(cursor: Any, feed_id: int, last: int, detections: Sequence[str], alerts: Sequence[str], queries: Sequence[int] = ()) -> int:
    """Appends JSON texts in rows of at most CHUNK after number `last`; the last number used. Caller
    holds the head row's lock.

    `queries`: those of which another version, or none, runs from now on.
    """
    chunks = max(-(-len(items) // CHUNK) for items in (detections, alerts, queries))
    if not chunks:
        return last
    rows = []
    for i in range(chunks):
        part = slice(i * CHUNK, (i + 1) * CHUNK)
        ids = json.dumps(queries[part])
        rows.append((feed_id, last + 1 + i, f'{{"detections":[{",".join(detections[part])}],"alerts":[{",".join(alerts[part])}],"queries":{ids}}}'))
    cursor.executemany("INSERT INTO detections_outbox (feed_id, seq, payload) VALUES (%s, %s, %s)", rows)
    cursor.execute("SELECT pg_notify(%s, %s)", [OUTBOX_CHANNEL, str(feed_id)])
    return last + chunks


def outbox_expire() -> int:
    """Deletes outbox rows after their retention: clients that were away for longer start from a
    snapshot. Returns how many."""
    deleted, _ = Outbox.objects.filter(created_at__lt=timezone.now() - timedelta(hours=settings.VEDETTE_CHANGES_HOURS)).delete()
    return deleted


def detections_expire() -> int:
    """Deletes the answers that ended before their feed's retention, by event time; returns how many
    partitions were dropped as a whole.

    The retention counts back from the newest event of the feed: a replayed recording keeps its
    answers however old they are.
    """
    oldest = {head.feed_id: _oldest_kept(head) for head in FeedHead.objects.select_related("feed")}
    for feed_id, start in oldest.items():
        if start is not None:
            Detection.objects.filter(feed_id=feed_id, start__lt=start, end__lt=start).delete()
    AnswerCount.objects.filter(count=0).delete()
    dropped = 0
    for span in partitions_list()[:-1]:
        with transaction.atomic():
            if not Detection.objects.filter(start__gte=span * SPAN, start__lt=(span + 1) * SPAN).exists():
                partition_drop(span)
                dropped += 1
    return dropped


def _oldest_kept(head: FeedHead) -> int | None:
    if head.max_t is None or head.feed.time != "ms":
        return None
    return head.max_t - head.feed.retention_hours * 3_600_000


def detections_held(*, feed_id: int) -> int:
    """The number of stored answers of a feed."""
    return Detection.objects.filter(feed=feed_id).count()


def detections_forget(*, feed_id: int) -> None:
    """Deletes all answers of a feed that is being removed: they have no foreign key to it."""
    Detection.objects.filter(feed=feed_id).delete()
