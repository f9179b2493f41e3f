"""The serialised forms of an alert: the row of frames and messages, and the
longer row of lists and files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from webapp.accounts.models import User
from webapp.alerts.models import Alert, AlertState
from webapp.config.moments import iso
from webapp.config.openapi import Moment
from webapp.queries.models import Query, Severity


class AlertRow(TypedDict):
    """An alert as in frames."""

    id: int
    query: int
    query_name: str
    kind: str
    entities: list[str]
    value: str | None
    start: int
    end: int | None
    severity: Severity
    state: AlertState
    resolution: str
    opened_at: Moment
    detection: str
    acknowledged_by: str | None
    assignee: str | None
    over_at: Moment | None
    revision: int
    muted: bool


class ListedAlertRow(AlertRow):
    """An alert as in lists; `comments`: their number."""

    feed: str
    acknowledged_at: Moment | None
    resolved_by: str | None
    resolved_at: Moment | None
    comments: int
    editable: bool


def alert_rows(alerts: Sequence[Alert]) -> list[AlertRow]:
    """The alerts in the form of frames; the names of all their queries need one look-up."""
    names = dict(Query.objects.filter(pk__in={alert.query_id for alert in alerts}).values_list("pk", "name")) if alerts else {}
    return [alert_row(alert, query_name=names[alert.query_id]) for alert in alerts]


def alert_row(alert: Alert, *, query_name: str) -> AlertRow:
    """The alert in the form of frames (ARCHITECTURE.md, WebSocket)."""
    return {
        "id": alert.pk,
        "query": alert.query_id,
        "query_name": query_name,
        "kind": alert.kind,
        "entities": list(alert.entities),
        "value": alert.value,
        "start": alert.start,
        "end": alert.end,
        "severity": Severity(alert.severity),
        "state": AlertState(alert.state),
        "resolution": alert.resolution,
        "opened_at": iso(alert.opened_at),
        "detection": bytes(alert.detection_key).hex(),
        "acknowledged_by": _name(alert.acknowledged_by),
        "assignee": _name(alert.assignee),
        "over_at": _iso_or_null(alert.over_at),
        "revision": alert.revision,
        "muted": alert.mute_id is not None,
    }


def listed_row(alert: Any) -> ListedAlertRow:
    """The alert of a list, with its feed and the users' decisions. `alert`: from `alert_list`,
    which annotates who may handle it and the number of comments."""
    return {
        **alert_row(alert, query_name=alert.query.name),
        "feed": alert.feed.name,
        "acknowledged_at": _iso_or_null(alert.acknowledged_at),
        "resolved_by": _name(alert.resolved_by),
        "resolved_at": _iso_or_null(alert.resolved_at),
        "comments": alert.comment_count,
        "editable": alert.editable,
    }


def _iso_or_null(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def _name(person: User | None) -> str | None:
    return None if person is None else person.username
