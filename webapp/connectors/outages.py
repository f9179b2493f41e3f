"""Events about connectors that keep failing, and about their recovery: each is recorded once, in
whichever process the connector runs."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from engine.model.messages import Message
from webapp.feeds.heads import feed_event_add
from webapp.feeds.models import Connector
from webapp.jobs.models import JobEvent

REPORTED_AFTER = 5
"""Failures in a row, which take a quarter of a minute at least: the other side may restart
meanwhile."""


@transaction.atomic
def connector_keeps_failing(connector: Connector, *, since: datetime, why: str) -> None:
    """Records that the connector keeps failing, unless that is known, or its settings
    were changed meanwhile."""
    present = Connector.objects.filter(pk=connector.pk, revision=connector.revision, enabled=True, failing_since=None)
    if present.update(failing_since=since):
        text = Message(
            "The connector {name} of {feed} keeps failing; it tries again about once a minute: {why}",
            name=connector.name,
            feed=connector.feed.name,
            why=why,
        )
        feed_event_add(connector.feed, JobEvent.Kind.CONNECTOR_FAILED, text)


@transaction.atomic
def connector_recovers(connector: Connector) -> None:
    """Records that a connector that kept failing runs again."""
    present = Connector.objects.select_for_update().filter(pk=connector.pk, revision=connector.revision)
    since = present.values_list("failing_since", flat=True).first()
    if since is not None:
        present.update(failing_since=None)
        seconds = round((timezone.now() - since).total_seconds())
        text = Message("The connector {name} of {feed} runs again after {seconds} s.", name=connector.name, feed=connector.feed.name, seconds=seconds)
        feed_event_add(connector.feed, JobEvent.Kind.CONNECTOR_RUNS, text)
