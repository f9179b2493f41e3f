"""Reads of jobs and of the progress of feeds."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from webapp.accounts.models import Membership, User
from webapp.jobs.models import DesiredState, Job, JobEvent, ObservedState


def job_list() -> QuerySet[Job]:
    return Job.objects.prefetch_related("heads__feed")


def jobs_held(owner_filter: dict[str, Any]) -> int:
    """How many jobs a team has."""
    return Job.objects.filter(**owner_filter).count()


SILENT_SECONDS = 30
"""A job without a heartbeat for this long is down, independent of its stored state."""
UP = (ObservedState.STARTING, ObservedState.RUNNING)


def jobs_down() -> bool:
    """Whether a job that should run does not: it keeps failing, waits to start again, or is silent.
    One that was never started is not down yet."""
    started = Job.objects.filter(desired_state=DesiredState.RUNNING).exclude(started_at=None)
    silent = timezone.now() - timedelta(seconds=SILENT_SECONDS)
    return any(job.observed_state not in UP or job.heartbeat is None or job.heartbeat < silent for job in started)


def is_shown(job: Job, *, user: User) -> bool:
    """Whether the user may see the job: the default job is visible to
    everyone, a team's to its members."""
    return job.team_id is None or user.is_superuser or Membership.objects.filter(user=user, team=job.team_id).exists()


def job_events(*, job: Job, feed_ids: Collection[int], limit: int = 50) -> list[JobEvent]:
    """The events of the job and of these feeds of it, newest first."""
    return list(job.events.filter(Q(feed=None) | Q(feed__in=feed_ids))[:limit])
