"""Changes answers when the job leaves a version of a query, or resumes one (decision 20)."""

from __future__ import annotations

from collections.abc import Sequence

from webapp.alerts.selectors import AlertRow
from webapp.alerts.services import alerts_end_with_versions
from webapp.detections.models import Detection
from webapp.detections.selectors import DetectionRow, detection_row
from webapp.feeds.models import Feed
from webapp.feeds.recent import oldest_clock
from webapp.jobs.models import FeedHead
from webapp.queries.versions import Key, versions_back, versions_leave


def answers_end(head: FeedHead, keys: Sequence[Key]) -> tuple[list[DetectionRow], list[AlertRow]]:
    """The open answers of these versions end at the feed's clock: they and their
    alerts, as frames carry them.

    In the transaction of the job's commit, under the lock of the head row.
    """
    if not keys:
        return [], []
    versions_leave(keys, at=head.max_t, seq=head.outbox_seq)
    if head.max_t is None:
        return [], []
    keys_to_end = set(keys)
    detections = Detection.objects.filter(feed=head.feed_id, weight=1, end=None, query__in={query for query, _ in keys})
    rows = [detection_row(one, left_at=head.max_t) for one in detections.iterator() if (one.query_id, one.version) in keys_to_end]
    return rows, alerts_end_with_versions(feed_id=head.feed_id, keys=keys_to_end, at=head.max_t)


def answers_forget(head: FeedHead, keys: Sequence[Key]) -> list[DetectionRow]:
    """Retracts answers that versions asserted before the job left them and did not assert again
    from the log: they depended on later rows.

    Answers that began before the log's oldest row stay, because they cannot be found again. The
    retracted answers, as frames carry them.
    """
    left = versions_back(keys)
    if not left:
        return []
    begin = oldest_clock(Feed.objects.get(pk=head.feed_id))
    rows: list[DetectionRow] = []
    for (query, version), seq in left.items():
        stale = Detection.objects.filter(feed=head.feed_id, query=query, version=version, weight=1, seq__lte=seq)
        stale = stale if begin is None else stale.filter(start__gt=begin)
        rows += [{**detection_row(detection), "weight": -1} for detection in stale]
        stale.update(weight=0)
    return rows
