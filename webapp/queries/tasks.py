"""Celery tasks for the set of queries."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from webapp.queries.services import queries_stop_without_access


@shared_task  # type: ignore[untyped-decorator]
def stop_queries_without_access() -> None:
    """A message that is lost or doubled does no harm: the next one does the same."""
    close_old_connections()
    queries_stop_without_access()
