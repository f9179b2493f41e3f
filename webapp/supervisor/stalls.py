"""Reports feeds that are stalled while rows wait, once, with the reason, on the feed's page;
and again when they resume."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from engine.model.messages import Message
from webapp.feeds.damage import damage_isolated, feeds_set_aside
from webapp.feeds.heads import feed_event_add
from webapp.feeds.logs import event_log
from webapp.jobs.models import DesiredState, FeedHead, JobEvent, ObservedState

STANDS_STILL = timedelta(seconds=10)
_IN_WORDS = {
    ObservedState.STARTING: Message("starting"),
    ObservedState.RUNNING: Message("running"),
    ObservedState.STOPPING: Message("stopping"),
    ObservedState.STOPPED: Message("stopped"),
    ObservedState.BACKOFF: Message("waiting to start again"),
    ObservedState.CRASH_LOOP: Message("keeps failing"),
}


def stalls_report() -> None:
    """Checks all feeds; cheap for feeds without waiting rows."""
    damaged = feeds_set_aside()
    for head in FeedHead.objects.select_related("feed", "job").defer("queries"):
        with damage_isolated(head.feed):
            waiting = event_log(head.feed.name).waiting_since(head.last_seq)
            _record_change(head, None if waiting is None else datetime.fromtimestamp(waiting, UTC), head.feed_id in damaged)


def _record_change(head: FeedHead, waiting: datetime | None, is_damaged: bool) -> None:
    now = timezone.now()
    since = None if waiting is None else max(waiting, head.updated_at or waiting)
    if since is not None and now - since >= STANDS_STILL:
        # Only one of several workers reports.
        if FeedHead.objects.filter(pk=head.pk, stalled_at=None).update(stalled_at=since):
            seconds = round((now - since).total_seconds())
            reason = _reason(head, now, is_damaged)
            text = Message("{feed}: rows have waited for {seconds} s: {reason}.", feed=head.feed.name, seconds=seconds, reason=reason)
            feed_event_add(head.feed, JobEvent.Kind.STALLED, text)
    elif head.stalled_at is not None and FeedHead.objects.filter(pk=head.pk, stalled_at=head.stalled_at).update(stalled_at=None):
        seconds = round((now - head.stalled_at).total_seconds())
        feed_event_add(head.feed, JobEvent.Kind.RESUMED, Message("{feed}: it continues after {seconds} s.", feed=head.feed.name, seconds=seconds))


def _reason(head: FeedHead, now: datetime, is_damaged: bool) -> Message:
    job = head.job
    if is_damaged:
        return Message("the feed is suspended, because its log is damaged")
    if job.desired_state == DesiredState.STOPPED:
        return Message("the job {job} is stopped", job=job.name)
    if job.observed_state != ObservedState.RUNNING:
        return Message("the job {job} is not running ({what})", job=job.name, what=_IN_WORDS[ObservedState(job.observed_state)])
    if job.heartbeat is None or now - job.heartbeat > STANDS_STILL:
        return Message("the job {job} gives no sign of life", job=job.name)
    return Message("the job {job} runs, but has finished no batch of this feed", job=job.name)
