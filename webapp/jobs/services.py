"""Services that change jobs: users' requests, the reconciler's findings, and
reports of the job itself."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.shortcuts import get_object_or_404
from django.utils import timezone

from engine.model.faults import Fault
from engine.model.messages import Message
from webapp.accounts.models import Team
from webapp.accounts.quotas import quota_check
from webapp.config.faults import InUse
from webapp.jobs.models import DesiredState, Job, JobEvent, ObservedState
from webapp.jobs.selectors import jobs_held

DEFAULT_JOB = "main"
"""The job of feeds without a separate one: a single Spark driver for all
of them fits one machine."""
_SESSIONS = "vedette job {} start "


def job_default() -> Job:
    """The default job, created at the first call, with the desired state running."""
    job, _ = Job.objects.get_or_create(name=DEFAULT_JOB)
    return job


@transaction.atomic
def job_create(*, name: str, team: Team) -> Job:
    """A job of a team, stopped until someone starts it. Raises Refused."""
    job = Job(name=name, team=team, desired_state=DesiredState.STOPPED)
    job.full_clean(exclude=["team"])
    quota_check("jobs", team=team, more=1, held=jobs_held)
    job.save()
    return job


@transaction.atomic
def job_remove(*, job: Job) -> None:
    """Removes a team's job. Raises Refused while it has feeds, or runs."""
    job = get_object_or_404(Job.objects.select_for_update(), pk=job.pk)
    if job.name == DEFAULT_JOB or job.heads.exists() or job.observed_state != ObservedState.STOPPED:
        raise InUse([Fault("", Message("Only a team's stopped job without feeds can be removed: give its feeds to another one first."))])
    job.delete()


def job_start(*, job: Job, user: Any = None) -> None:
    """Requests that the job runs now, which ends a crash loop or back-off."""
    _want(job, DesiredState.RUNNING, user, start_after=None, failed_at=[])


def job_stop(*, job: Job, user: Any = None) -> None:
    """Requests that the job stops; it stays stopped until it is started."""
    _want(job, DesiredState.STOPPED, user)


def _want(job: Job, state: DesiredState, user: Any, **changes: Any) -> None:
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(desired_state=state, **changes)
        if state == DesiredState.RUNNING:
            Job.objects.filter(pk=job.pk, observed_state=ObservedState.CRASH_LOOP).update(observed_state=ObservedState.STOPPED)
        job_event_add(job, JobEvent.Kind.REQUESTED, _request(state, user))
    job.refresh_from_db()


def _request(state: DesiredState, user: Any) -> Message:
    if state == DesiredState.RUNNING:
        return Message("Asked to run.") if user is None else Message("Asked to run by {user}.", user=user)
    return Message("Asked to stop.") if user is None else Message("Asked to stop by {user}.", user=user)


def job_event_add(job: Job, kind: JobEvent.Kind | str, text: Message) -> None:
    """Records an event, for users."""
    JobEvent.objects.create(job=job, kind=kind, text=text)


def job_claim(*, name: str, epoch: int | None, pid: int, pgid: int, pid_started: float, host: str) -> Job | None:
    """Makes the calling process the job's only one, under a new highest epoch;
    None when it must not run.

    `epoch` is the one for which the reconciler started it: a process that comes too late (another
    start has happened since) is refused. Without it (started by hand) the process takes the next
    one, which fences the running one.
    """
    with transaction.atomic():
        job = Job.objects.select_for_update().filter(name=name).first()
        if job is None or job.desired_state != DesiredState.RUNNING:
            return None
        if epoch is None:
            job.epoch += 1
            job.token = secrets.token_hex(16)
        elif epoch != job.epoch or job.observed_state not in (ObservedState.STARTING, ObservedState.RUNNING):
            return None
        job.pid, job.pgid, job.pid_started, job.host = pid, pgid, pid_started, host
        job.observed_state = ObservedState.STARTING
        job.started_at = job.heartbeat = timezone.now()
        job.save()
    return job


def job_sessions(job: Job) -> dict[str, str]:
    """The variable (libpq's) that identifies the sessions of this start in the database."""
    return {"PGAPPNAME": f"{_SESSIONS.format(job.name)}{job.epoch}"}


def job_sessions_end(job: Job) -> None:
    """Ends the database sessions of the job's earlier starts: one that was suspended inside a
    transaction holds locks forever."""
    prefix = _SESSIONS.format(job.name)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND starts_with(application_name, %s) AND application_name <> %s",
            [prefix, f"{prefix}{job.epoch}"],
        )


def job_ready(*, job_id: int, epoch: int, seconds: float) -> None:
    """The job processes its feeds."""
    current = Job.objects.filter(pk=job_id, epoch=epoch)
    if current.update(observed_state=ObservedState.RUNNING, heartbeat=timezone.now(), last_error=""):
        text = Message("Processing after {seconds} s, from where it was.", seconds=round(seconds))
        JobEvent.objects.create(job_id=job_id, kind=JobEvent.Kind.READY, text=text)


def job_heartbeat(*, job_id: int, epoch: int) -> DesiredState | None:
    """Writes the heartbeat; returns the desired state, None when a newer start has taken over."""
    if not Job.objects.filter(pk=job_id, epoch=epoch).update(heartbeat=timezone.now()):
        return None
    return DesiredState(Job.objects.values_list("desired_state", flat=True).get(pk=job_id))


def job_failed(*, job_id: int, epoch: int, error: str) -> None:
    """Stores the reason of a failure for the page of the job."""
    Job.objects.filter(pk=job_id, epoch=epoch).update(last_error=error[:2000])


@transaction.atomic
def job_left(*, job_id: int, epoch: int) -> None:
    """The job's process ended regularly on a signal while the desired state is running: not a
    crash; the next start of the machine resumes it."""
    current = Job.objects.filter(pk=job_id, epoch=epoch, desired_state=DesiredState.RUNNING)
    if current.update(observed_state=ObservedState.STOPPED, pid=None, pgid=None, pid_started=None):
        text = Message("Ended by a signal; continues when it is started again.")
        JobEvent.objects.create(job_id=job_id, kind=JobEvent.Kind.STOPPED, text=text)


def job_events_expire() -> None:
    """Deletes events older than 30 days."""
    JobEvent.objects.filter(at__lt=timezone.now() - timedelta(days=30)).delete()
