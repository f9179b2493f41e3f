"""The alerts that the filters leave as CSV, written while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from webapp.alerts.models import Alert
from webapp.alerts.selectors import iso

AT_ONCE = 2_000
COLUMNS = (
    "id", "feed", "query", "query_name", "kind", "entities", "value", "start", "end", "severity", "state", "opened_at", "over_at", "acknowledged_at",
    "acknowledged_by", "assignee", "resolved_at", "resolved_by", "resolution", "muted",
)  # fmt: skip


def rows_of(alerts: QuerySet[Alert]) -> Iterator[list[Any]]:
    """A row an alert, newest first. Asked for piece by piece: no statement takes long, however many there are."""
    rest, below = alerts.order_by("-id"), None
    while piece := list((rest if below is None else rest.filter(id__lt=below))[:AT_ONCE]):
        yield from (_row(alert) for alert in piece)
        below = piece[-1].pk


def _row(alert: Alert) -> list[Any]:
    people = [one.username if one is not None else "" for one in (alert.acknowledged_by, alert.assignee, alert.resolved_by)]
    acknowledged, resolved, over = ("" if at is None else iso(at) for at in (alert.acknowledged_at, alert.resolved_at, alert.over_at))
    what = [alert.pk, alert.feed.name, alert.query_id, alert.query.name, alert.kind, " ".join(alert.entities), alert.value or ""]
    when = [alert.start, "" if alert.end is None else alert.end, alert.severity, alert.state, iso(alert.opened_at), over]
    return [*what, *when, acknowledged, people[0], people[1], resolved, people[2], alert.resolution, alert.mute_id is not None]
