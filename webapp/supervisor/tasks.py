"""Celery tasks of supervision: short, idempotent, never the job itself."""

from __future__ import annotations

import os

from celery import shared_task
from django.db import close_old_connections

from webapp.detections.services import detections_expire, outbox_expire
from webapp.jobs.services import job_events_expire
from webapp.supervisor import processes
from webapp.supervisor.measures import measures_expire, measures_take
from webapp.supervisor.reconciler import reconcile as reconcile_jobs
from webapp.supervisor.stalls import stalls_report


@shared_task(soft_time_limit=40, time_limit=50)  # type: ignore[untyped-decorator]
def reconcile() -> None:
    """One round of `webapp.supervisor.reconciler`. A lost or repeated message does no harm: the
    next one does the same."""
    close_old_connections()
    reconcile_jobs(owner=f"{processes.hostname()}:{os.getppid()}")
    stalls_report()
    measures_take()


@shared_task  # type: ignore[untyped-decorator]
def expire() -> None:
    """Deletes expired rows."""
    close_old_connections()
    outbox_expire()
    detections_expire()
    job_events_expire()
    measures_expire()
