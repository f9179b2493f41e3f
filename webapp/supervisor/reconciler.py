"""Compares the desired state of each job with the process table and takes one step: start, adopt,
stop, kill, wait, give up.

Its whole state is in the job's row, so any worker may take the next step; a transaction-level
advisory lock lets one at a time. A process is started inside the transaction that raises the epoch:
if that never commits, the process finds another epoch in the row and ends by itself.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from engine.model.messages import Message, message_of
from webapp.feeds.heads import feed_heads_ensure
from webapp.jobs.models import DesiredState, Job, JobEvent, ObservedState
from webapp.jobs.services import job_default, job_event_add
from webapp.platform.java import JavaError, spark_environment
from webapp.supervisor import processes
from webapp.supervisor.processes import JobProcess

LOCK = 0x76646A62
"""Advisory lock of the active reconciler."""
LEASE = timedelta(seconds=20)
"""Without a renewal for this long, another machine may take over a job."""
SILENT = timedelta(seconds=20)
"""A job without a heartbeat for this long is suspect, and is killed if it
stays silent for SUSPECT more."""
UNCLAIMED = timedelta(seconds=120)
"""The same for a process that has not claimed the job yet: it still imports its modules, which
takes minutes on a busy machine. Killed and restarted, it would never finish."""
SUSPECT = timedelta(seconds=6)
STOP_TIMEOUT = timedelta(seconds=15)
BACKOFF_S = (1, 2, 4, 8, 15, 30, 60)
CRASH_LIMIT = 5
CRASH_SPAN = timedelta(minutes=10)
CRASH_LOOP_S = 120
"""A job that failed this often waits this long between two starts: a missing service may be
available by then, without an operator's help."""

SILENT_END = Message("The process ended without an error message, as one that is killed does, for example when memory runs out.")


def reconcile(*, owner: str) -> None:
    """One round over all jobs; nothing when another reconciler is at work. `owner`
    names the caller's worker."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            if cursor.fetchone() == (False,):
                return
        job_default()
        feed_heads_ensure()
        by_token: dict[str, list[JobProcess]] = defaultdict(list)
        for found in processes.job_processes():
            by_token[found.token].append(found)
        for job in Job.objects.select_for_update().order_by("name"):
            _Step(job, by_token.pop(job.token, []), owner, timezone.now()).take()
        for token, leftovers in by_token.items():
            _end_orphans(token, leftovers)


def _end_orphans(token: str, leftovers: list[JobProcess]) -> None:
    """Ends processes of an earlier start, or of a removed job."""
    killed = processes.kill_token(token)
    job = Job.objects.filter(name=leftovers[0].job).first()
    if killed and job is not None:
        job_event_add(job, JobEvent.Kind.ORPHAN, Message("Ended leftover processes of an earlier start: {count}.", count=killed))


class _Step:
    """One step for one job, whose row is locked."""

    def __init__(self, job: Job, found: list[JobProcess], owner: str, now: datetime) -> None:
        self.job, self.found, self.owner, self.now = job, found, owner, now
        held = job.lease_until is not None and job.lease_until > now and job.lease_owner != owner
        self.elsewhere = held and bool(job.host) and job.host != processes.hostname()

    def take(self) -> None:
        if self.elsewhere:
            return
        self._lease()
        root_lives = any(found.pid == self.job.pid for found in self.found) or (self.job.pid is None and bool(self.found))
        if self.job.desired_state == DesiredState.STOPPED:
            self._stop()
        elif root_lives:
            self._watch()
        else:
            self._bring_up()
        self.job.save()

    def _lease(self) -> None:
        job = self.job
        if self.found and job.lease_owner and job.lease_owner != self.owner and (job.lease_until is None or job.lease_until < self.now):
            job_event_add(job, JobEvent.Kind.ADOPTED, Message("Another supervisor took over the running job. It continued without a break."))
        if job.lease_owner == self.owner or job.lease_until is None or job.lease_until < self.now:
            job.lease_owner, job.lease_until = self.owner, self.now + LEASE

    # -- desired state stopped
    # ----------------------------------------------------------------------------

    def _stop(self) -> None:
        job = self.job
        if not self.found:
            if job.observed_state != ObservedState.STOPPED:
                job_event_add(job, JobEvent.Kind.STOPPED, Message("Stopped."))
            self._gone(ObservedState.STOPPED)
        elif job.observed_state != ObservedState.STOPPING or job.suspect_since is None:
            job.observed_state, job.suspect_since = ObservedState.STOPPING, self.now
            processes.ask_to_end(self.found, job.pid)
        elif self.now - job.suspect_since > STOP_TIMEOUT:
            killed = processes.kill_token(job.token)
            text = Message("It did not stop within {seconds} s; {count} processes were ended by force.", seconds=STOP_TIMEOUT.seconds, count=killed)
            job_event_add(job, JobEvent.Kind.KILLED, text)
            self._gone(ObservedState.STOPPED)

    # -- desired state running
    # ----------------------------------------------------------------------------

    def _watch(self) -> None:
        """The root process runs: is it healthy?"""
        job = self.job
        if job.observed_state == ObservedState.STOPPING:
            # Stopped and started again before it had ended: it ends, then a new one is started.
            processes.ask_to_end(self.found, job.pid)
            return
        seen = max(filter(None, (job.heartbeat, job.started_at)), default=self.now)
        if self.now - seen <= (SILENT if job.pid_started is not None else UNCLAIMED):
            job.suspect_since = None
        elif job.suspect_since is None:
            # Not immediately: after an outage of the database the job needs a
            # moment to send a heartbeat.
            job.suspect_since = self.now
        elif self.now - job.suspect_since > SUSPECT:
            processes.kill_token(job.token)
            self._crashed(Message("It gave no sign of life for {seconds} s and was ended by force.", seconds=(self.now - seen).seconds))

    def _bring_up(self) -> None:
        """The root process does not run."""
        job = self.job
        if self.found:
            processes.kill_token(job.token)
        if job.observed_state in (ObservedState.RUNNING, ObservedState.STARTING):
            self._crashed(job.last_error or processes.last_words(job.name) or SILENT_END)
        if job.start_after is not None and job.start_after > self.now:
            return
        self._start()

    def _crashed(self, reason: str) -> None:
        job = self.job
        since = (self.now - CRASH_SPAN).timestamp()
        job.failed_at = [*(at for at in job.failed_at if at > since), self.now.timestamp()]
        job.last_error = reason
        job.restarts += 1
        self._gone(ObservedState.BACKOFF)
        if job.failures >= CRASH_LIMIT:
            job.observed_state, wait = ObservedState.CRASH_LOOP, CRASH_LOOP_S
            text = Message(
                "Failed {count} times within {minutes} minutes; from now on it is tried every {wait} s. {reason}",
                count=job.failures,
                minutes=CRASH_SPAN.seconds // 60,
                wait=wait,
                reason=reason,
            )
            job_event_add(job, JobEvent.Kind.CRASH_LOOP, text)
        else:
            wait = BACKOFF_S[min(job.failures, len(BACKOFF_S)) - 1]
            text = Message("Ended unexpectedly; starts again in {wait} s, from where it was. {reason}", wait=wait, reason=reason)
            job_event_add(job, JobEvent.Kind.CRASHED, text)
        job.start_after = self.now + timedelta(seconds=wait)

    def _gone(self, state: ObservedState) -> None:
        job = self.job
        job.observed_state = state
        job.pid = job.pgid = job.pid_started = job.suspect_since = None

    def _start(self) -> None:
        job = self.job
        job.epoch += 1
        job.token = secrets.token_hex(16)
        job.observed_state = ObservedState.STARTING
        job.host = processes.hostname()
        job.started_at = job.heartbeat = self.now
        job.start_after = job.suspect_since = None
        job.last_error = ""
        try:
            job.pid = processes.start_job(job.name, job.epoch, job.token, spark_environment())
        except (JavaError, OSError) as error:
            self._crashed(message_of(error))
            return
        job_event_add(job, JobEvent.Kind.STARTED, Message("Starting (start number {number}).", number=job.epoch))
