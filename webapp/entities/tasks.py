"""The task that looks for reports of watched entities; it may run twice or be lost:
the next run does the same."""

from celery import shared_task

from webapp.entities import services


@shared_task  # type: ignore[untyped-decorator]
def look() -> None:
    """Looks once for reports of all watched entities."""
    services.watches_look()
