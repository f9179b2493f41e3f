"""The filtered alerts as CSV, streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet

from webapp.alerts.models import Alert
from webapp.alerts.rows import listed_row

AT_ONCE = 2_000
COLUMNS = (
    "id", "feed", "query", "query_name", "kind", "entities", "value", "start", "end", "severity", "state", "opened_at", "over_at", "acknowledged_at",
    "acknowledged_by", "assignee", "resolved_at", "resolved_by", "resolution", "muted",
)  # fmt: skip


def rows_of(alerts: QuerySet[Alert]) -> Iterator[list[Any]]:
    """One row per alert, newest first. Read in batches: no statement takes
    long, however many there are."""
    rest, below = alerts.order_by("-id"), None
    while piece := list((rest if below is None else rest.filter(id__lt=below))[:AT_ONCE]):
        yield from (_row(alert) for alert in piece)
        below = piece[-1].pk


def _row(alert: Alert) -> list[Any]:
    row: Mapping[str, Any] = listed_row(alert)
    return [_cell(row[name]) for name in COLUMNS]


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else value
