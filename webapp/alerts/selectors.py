"""Reads of alerts and channels."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.db.models import Count, Exists, F, Func, IntegerField, Max, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.accounts.models import User
from webapp.accounts.permissions import AnyUser, users_who_may_change, visible
from webapp.alerts.models import OPEN_STATES, UNATTENDED_STATES, Alert, AlertState, AlertStep, Channel, Delivery, Notification, RoutingRule
from webapp.alerts.rows import AlertRow as AlertRow
from webapp.alerts.rows import alert_rows
from webapp.config.wording import translated
from webapp.queries.models import Query, Severity

BROKEN_AFTER = 5
"""After this many failures in a row a channel gets one message at a time, until one arrives."""


def alert_list(*, user: AnyUser, to_handle: bool = False) -> QuerySet[Alert]:
    """The alerts of the queries that `user` may see, newest first, with `editable`: whether they
    may handle it, and `comment_count`.

    `to_handle`: only those that they may handle.
    """
    handled = Query.objects.editable_by(user)
    may_handle = handled.filter(pk=OuterRef("query"))
    # Counted for the rows of one page: a join would group all matching alerts
    # before the first is shown.
    comments = AlertStep.objects.filter(alert=OuterRef("pk")).exclude(text="").order_by().annotate(n=Func(F("pk"), function="COUNT")).values("n")
    # For a page the query of each row is checked: `alerts_seen` compares each row with every
    # query that the user may see.
    seen = Q(query__in=handled.values("pk")) if to_handle else visible(Query, user, prefix="query__")
    return (
        Alert.objects.filter(seen)
        .select_related("query", "feed")
        # With joins for the users PostgreSQL took longer to plan the statement (50 ms) than to read
        # the rows.
        .prefetch_related("acknowledged_by", "resolved_by", "assignee")
        .annotate(editable=Exists(may_handle), comment_count=Coalesce(Subquery(comments, output_field=IntegerField()), 0))
        .order_by("-id")
    )


def alerts_seen(*, user: AnyUser) -> QuerySet[Alert]:
    """The alerts of the queries that `user` may see, without annotations: for counting."""
    return Alert.objects.filter(query__in=Query.objects.visible_to(user).values("pk")).order_by()


def handlers_of(query: Query) -> QuerySet[User]:
    """The users who may handle the query's alerts, and to whom they can be assigned."""
    return users_who_may_change(query)


def alerts_by_id(*, ids: list[int]) -> list[Alert]:
    """Alerts with everything that `alert_row` reads, in order of their ids."""
    return list(Alert.objects.filter(pk__in=ids).select_related("acknowledged_by", "assignee").order_by("pk"))


def alerts_open(*, feed_id: int, query_ids: list[int], limit: int = 1000) -> list[AlertRow]:
    """The newest unresolved alerts of these queries on the feed, in the form of frames:
    the initial state of a page."""
    alerts = Alert.objects.filter(~Q(state=AlertState.RESOLVED), feed=feed_id, query__in=query_ids)
    return alert_rows(list(alerts.select_related("acknowledged_by", "assignee").order_by("-id")[:limit]))


def alerts_waiting(*, user: AnyUser, at_most: int = 100) -> int:
    """The number of unassigned alerts, without muted ones; counted up to `at_most`."""
    return alerts_seen(user=user).filter(state__in=UNATTENDED_STATES, mute=None)[:at_most].count()


class DeliveryRow(TypedDict):
    """How an alert goes to a channel, by the channel's name. `due_at`: when it will be in a
    message, null if it is in one; `after_minutes` above 0: unless it is acknowledged first."""

    channel: str
    due_at: datetime | None
    after_minutes: int
    sent_at: datetime | None
    attempts: int
    error: str


def alert_summary(*, user: AnyUser) -> dict[str, dict[str, int]]:
    """The number of unresolved alerts of the user, without muted ones, by state and severity."""
    counts = {state: dict.fromkeys(Severity.values, 0) for state in OPEN_STATES}
    waiting = alerts_seen(user=user).filter(~Q(state=AlertState.RESOLVED), mute=None)
    for row in waiting.values("state", "severity").annotate(n=Count("id")):
        counts[row["state"]][row["severity"]] = row["n"]
    return counts


def channel_list(*, user: AnyUser) -> QuerySet[Channel]:
    """The channels that `user` may see, with the queries that `user` may see, with `last_sent_at`,
    `waiting` (messages not sent yet), `problem` (why the last one failed, empty after a success)
    and `held_back` (alerts that are in no message yet: for quiet hours, digests, or because a limit
    of messages is reached)."""
    unsent = Q(deliveries__sent_at=None, deliveries__failed_at=None, deliveries__id__isnull=False)
    held_back = Notification.objects.filter(channel=OuterRef("pk"), delivery=None).order_by().values("channel").annotate(n=Count("id")).values("n")
    failed = Delivery.objects.filter(channel=OuterRef("pk"), channel__failures__gt=0, sent_at=None).exclude(error="")
    problems = failed.order_by("-id").values("error")
    return (
        Channel.objects.visible_to(user)
        .with_editable(user)
        .annotate(held_back=Coalesce(Subquery(held_back), 0), problem=Coalesce(Subquery(problems[:1]), Value("")))
        .annotate(last_sent_at=Max("deliveries__sent_at"), waiting=Count("deliveries", filter=unsent, distinct=True))
        .select_related("owner", "team")
        .prefetch_related(Prefetch("queries", Query.objects.visible_to(user)))
        .order_by("name", "id")
    )


def channels_working() -> QuerySet[Channel]:
    """The working channels: enabled, not failing, of an active user."""
    return Channel.objects.filter(enabled=True, failures__lt=BROKEN_AFTER, owner__is_active=True)


def choosing_channels(*, user: AnyUser) -> QuerySet[Channel]:
    """The channels that `user` may see and that are limited to chosen queries."""
    return Channel.objects.visible_to(user).filter(all_queries=False)


def delivery_list(*, channel: Channel) -> QuerySet[Delivery]:
    """Messages to a channel, newest first."""
    return channel.deliveries.prefetch_related("notifications")


def deliveries_of(alert: Alert, *, user: AnyUser) -> list[DeliveryRow]:
    """The deliveries of an alert to channels that `user` may see, without escalations that are no
    longer needed."""
    rows = alert.notifications.filter(channel__in=Channel.objects.visible_to(user).values("pk")).annotate(
        name=F("channel__name"), sent_at=F("delivery__sent_at"), attempts=F("delivery__attempts"), error=F("delivery__error")
    )
    if alert.acknowledged_at is not None or alert.state == AlertState.RESOLVED:
        rows = rows.exclude(delivery=None, after_minutes__gt=0)
    return [_delivery_row(row) for row in rows.order_by("id")]


def _delivery_row(row: Any) -> DeliveryRow:
    return {
        "channel": row.name,
        "due_at": row.due_at if row.delivery_id is None else None,
        "after_minutes": row.after_minutes,
        "sent_at": row.sent_at,
        "attempts": row.attempts or 0,
        "error": translated(row.error or ""),
    }


def channels_held(owner_filter: dict[str, Any]) -> int:
    """The number of someone's channels."""
    return Channel.objects.filter(**owner_filter).count()


def rules_held(owner_filter: dict[str, Any]) -> int:
    """The number of someone's routing rules."""
    return RoutingRule.objects.filter(**owner_filter).count()


def messages_held(owner_filter: dict[str, Any], now: datetime | None = None) -> int:
    """The number of messages to someone's channels within the last hour, including tests; not those
    that wait for a failing channel, which would use up the quota of the others."""
    since = (now or timezone.now()) - timedelta(hours=1)
    made = Delivery.objects.filter(channel__in=Channel.objects.filter(**owner_filter).values("pk"), created_at__gt=since)
    return made.exclude(sent_at=None, test=False, channel__failures__gte=BROKEN_AFTER).count()
