"""Reads of jobs and of how far feeds have been processed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import Membership, Role, User
from webapp.feeds.models import Feed
from webapp.jobs.models import DesiredState, FeedHead, Job, JobEvent, ObservedState


def job_list() -> QuerySet[Job]:
    return Job.objects.prefetch_related("heads__feed")


def jobs_held(whose: dict[str, Any]) -> int:
    """How many jobs a team has."""
    return Job.objects.filter(**whose).count()


SILENT_SECONDS = 30
"""A job that has given no sign of life for so long is down, whatever its state says."""
UP = (ObservedState.STARTING, ObservedState.RUNNING)


def jobs_down() -> bool:
    """Whether a job that should run does not: it keeps failing, waits to start again, or is silent. One that was never started is not down yet."""
    wanted = Job.objects.filter(desired_state=DesiredState.RUNNING).exclude(started_at=None)
    silent = timezone.now() - timedelta(seconds=SILENT_SECONDS)
    return any(job.observed_state not in UP or job.heartbeat is None or job.heartbeat < silent for job in wanted)


def may_operate(job: Job, *, user: User) -> bool:
    """Whether the user may start and stop the job: who may change all of its feeds, for each of them stands still with it.

    A team's job without feeds is for the team's operators, the default one for superusers.
    """
    if user.is_superuser:
        return True
    feeds = {head.feed_id for head in job.heads.all()}
    if feeds:
        return Feed.objects.editable_by(user).filter(pk__in=feeds).count() == len(feeds)
    return job.team_id is not None and Membership.objects.filter(user=user, team=job.team_id, role__in=Role.OPERATOR.and_above).exists()


def is_shown(job: Job, *, user: User) -> bool:
    """Whether the user may know of the job: the default one is everybody's, a team's is its members'."""
    return job.team_id is None or user.is_superuser or Membership.objects.filter(user=user, team=job.team_id).exists()


def job_events(*, job: Job, limit: int = 50) -> list[JobEvent]:
    """What happened to the job, newest first."""
    return list(job.events.all()[:limit])


def feed_status(*, feed_id: int) -> dict[str, Any]:
    """How the processing of a feed stands: what the feeds page shows and the `status` frames carry."""
    head = FeedHead.objects.select_related("job").filter(feed_id=feed_id).first()
    return _status(head) if head is not None else dict(_NONE)


def feed_position(*, feed_id: int) -> int:
    """The last row whose answers are stored; -1 before the first."""
    last: int | None = FeedHead.objects.filter(feed_id=feed_id).values_list("last_seq", flat=True).first()
    return -1 if last is None else last


def feed_statuses() -> dict[int, dict[str, Any]]:
    """`feed_status` of all feeds that have a head, by feed id."""
    return {head.feed_id: _status(head) for head in FeedHead.objects.select_related("job")}


_NONE: dict[str, Any] = {
    "watermark": None, "max_t": None, "rate": None, "batch_ms": None, "job": "stopped", "last_seq": -1, "processed": 0, "duplicates": 0,
    "late": 0, "outbox_seq": 0, "query_version": 0, "catching_up": {}, "updated_at": None,
}  # fmt: skip


RATE_SECONDS = 10
"""After so long without a batch nothing arrives any more."""


def _rate(head: FeedHead) -> float | None:
    """Rows a second that arrive now."""
    if head.updated_at is None:
        return None
    return head.rows_per_s if (timezone.now() - head.updated_at).total_seconds() < RATE_SECONDS else 0.0


def _status(head: FeedHead) -> dict[str, Any]:
    return {
        "watermark": head.watermark,
        "max_t": head.max_t,
        "rate": _rate(head),
        "batch_ms": head.batch_ms,
        "job": head.job.observed_state,
        "last_seq": head.last_seq,
        "processed": head.processed,
        "duplicates": head.duplicates,
        "late": head.late,
        "outbox_seq": head.outbox_seq,
        "query_version": head.query_version,
        "catching_up": head.catching_up,
        "updated_at": head.updated_at.isoformat() if head.updated_at else None,
    }
