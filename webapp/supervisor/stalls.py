"""Feeds that stand still while rows wait: shown once, with the reason, on the feed's page; and again when they go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from webapp.feeds.damage import feeds_set_aside, kept_apart
from webapp.feeds.heads import feed_event_add
from webapp.feeds.logs import event_log
from webapp.jobs.models import DesiredState, FeedHead, JobEvent, ObservedState

STANDS_STILL = timedelta(seconds=10)


def stalls_report() -> None:
    """Looks at all feeds; cheap for those of which no row waits."""
    damaged = feeds_set_aside()
    for head in FeedHead.objects.select_related("feed", "job").defer("queries"):
        with kept_apart(head.feed):
            waiting = event_log(head.feed.name).waiting_since(head.last_seq)
            _judge(head, None if waiting is None else datetime.fromtimestamp(waiting, UTC), head.feed_id in damaged)


def _judge(head: FeedHead, waiting: datetime | None, is_damaged: bool) -> None:
    now = timezone.now()
    since = None if waiting is None else max(waiting, head.updated_at or waiting)
    if since is not None and now - since >= STANDS_STILL:
        # Of several workers one reports.
        if FeedHead.objects.filter(pk=head.pk, stalled_at=None).update(stalled_at=since):
            text = f"Rows have waited for {(now - since).total_seconds():.0f} s: {_reason(head, now, is_damaged)}."
            feed_event_add(head.feed, JobEvent.Kind.STALLED, text)
    elif head.stalled_at is not None and FeedHead.objects.filter(pk=head.pk, stalled_at=head.stalled_at).update(stalled_at=None):
        feed_event_add(head.feed, JobEvent.Kind.RESUMED, f"It goes on after {(now - head.stalled_at).total_seconds():.0f} s.")


def _reason(head: FeedHead, now: datetime, is_damaged: bool) -> str:
    job = head.job
    if is_damaged:
        return "the feed is set aside, because its log is damaged"
    if job.desired_state == DesiredState.STOPPED:
        return f"the job {job.name} is stopped"
    if job.observed_state != ObservedState.RUNNING:
        return f"the job {job.name} is not running ({ObservedState(job.observed_state).label.lower()})"
    if job.heartbeat is None or now - job.heartbeat > STANDS_STILL:
        return f"the job {job.name} gives no sign of life"
    return f"the job {job.name} runs, but has finished no batch of this feed"
