"""Reads of alerts and channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Prefetch, Q, QuerySet

from webapp.accounts.permissions import AnyUser
from webapp.alerts.models import Alert, AlertState, Channel, Delivery
from webapp.queries.models import Query, Severity


def alert_list(*, user: AnyUser) -> QuerySet[Alert]:
    """The alerts of the queries that `user` may see, newest first, with `editable`: whether they may handle it, and `comment_count`."""
    may_handle = Query.objects.editable_by(user).filter(pk=OuterRef("query"))
    return (
        Alert.objects.filter(query__in=Query.objects.visible_to(user).values("pk"))
        .select_related("query", "feed", "acknowledged_by", "resolved_by")
        .annotate(editable=Exists(may_handle), comment_count=Count("comments", distinct=True))
        .order_by("-id")
    )


def alerts_told(*, ids: list[int]) -> list[Alert]:
    """Alerts with everything that `alert_row` reads, in order of their ids."""
    return list(Alert.objects.filter(pk__in=ids).select_related("acknowledged_by").order_by("pk"))


def alerts_open(*, feed_id: int, query_ids: list[int], limit: int = 1000) -> list[Alert]:
    """The newest unresolved alerts of these queries on the feed: what a page starts with."""
    found = Alert.objects.filter(~Q(state=AlertState.RESOLVED), feed=feed_id, query__in=query_ids)
    return list(found.select_related("acknowledged_by").order_by("-id")[:limit])


def alert_rows(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """The alerts as frames carry them; the names of all their queries come by one look-up."""
    names = dict(Query.objects.filter(pk__in={alert.query_id for alert in alerts}).values_list("pk", "name")) if alerts else {}
    return [alert_row(alert, query_name=names[alert.query_id]) for alert in alerts]


def alert_row(alert: Alert, *, query_name: str) -> dict[str, Any]:
    """The alert as frames carry it (ARCHITECTURE.md, WebSocket)."""
    by = alert.acknowledged_by
    return {
        "id": alert.pk,
        "query": alert.query_id,
        "query_name": query_name,
        "kind": alert.kind,
        "entities": list(alert.entities),
        "value": alert.value,
        "start": alert.start,
        "end": alert.end,
        "severity": alert.severity,
        "state": alert.state,
        "resolution": alert.resolution,
        "opened_at": alert.opened_at.isoformat().replace("+00:00", "Z"),
        "detection": bytes(alert.detection_key).hex(),
        "acknowledged_by": by.username if by is not None else None,
    }


def alert_summary(*, user: AnyUser) -> dict[str, dict[str, int]]:
    """How many unresolved alerts of each severity the user has before them, for each state."""
    counts = {state: dict.fromkeys(Severity.values, 0) for state in (AlertState.NEW.value, AlertState.ACKNOWLEDGED.value)}
    visible = Alert.objects.filter(~Q(state=AlertState.RESOLVED), query__in=Query.objects.visible_to(user).values("pk"))
    for row in visible.values("state", "severity").annotate(n=Count("id")).order_by():
        counts[row["state"]][row["severity"]] = row["n"]
    return counts


def channel_list(*, user: AnyUser) -> QuerySet[Channel]:
    """The channels that `user` may see, of their queries those that `user` may see, with `last_sent_at` and `waiting` (messages not sent yet)."""
    unsent = Q(deliveries__sent_at=None, deliveries__failed_at=None, deliveries__id__isnull=False)
    return (
        Channel.objects.visible_to(user)
        .with_editable(user)
        .annotate(last_sent_at=Max("deliveries__sent_at"), waiting=Count("deliveries", filter=unsent, distinct=True))
        .select_related("owner", "team")
        .prefetch_related(Prefetch("queries", Query.objects.visible_to(user)))
        .order_by("name", "id")
    )


def choosing_channels(*, user: AnyUser) -> QuerySet[Channel]:
    """The channels, of those that `user` may see, that carry the alerts of chosen queries only."""
    return Channel.objects.visible_to(user).filter(all_queries=False)


def delivery_list(*, channel: Channel) -> QuerySet[Delivery]:
    """What was sent to a channel, newest first."""
    return channel.deliveries.prefetch_related("notifications")


def deliveries_of(alert: Alert, *, user: AnyUser) -> list[dict[str, Any]]:
    """How an alert went out: one item for each channel that `user` may see."""
    rows = alert.notifications.filter(channel__in=Channel.objects.visible_to(user).values("pk")).annotate(
        name=F("channel__name"), sent_at=F("delivery__sent_at"), attempts=F("delivery__attempts"), error=F("delivery__error")
    )
    return [{"channel": r.name, "sent_at": r.sent_at, "attempts": r.attempts or 0, "error": r.error or ""} for r in rows]
