"""Alerts that wait for the end of quiet hours, for a digest or for others of their group, when that
timing is changed: they are due by the new one if that is earlier.

An alert that is in a message stays in it. Neither a planner nor a maker of messages sees a part of
the change: the first is stopped, and for the second the channels' rows are held.
"""

from __future__ import annotations

from collections import defaultdict

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from webapp.alerts.models import Channel, Notification
from webapp.alerts.routing import Route
from webapp.alerts.schedule import sooner, written_for
from webapp.alerts.timing import AT_ONCE

PLANNER = 7_230_023
"""The advisory lock of the process that plans."""


def planner_alone() -> bool:
    """Whether no other process plans until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [PLANNER])
        return bool(cursor.fetchone()[0])


def planner_stop() -> None:
    """Waits until nothing is being planned; then nothing is until this transaction ends. To be
    called before any row is locked."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PLANNER])


def waiting_free(notifications: QuerySet[Notification]) -> None:
    """Makes those of the notifications that wait due by the timings of now, if that is earlier."""
    now = timezone.now()
    waiting = notifications.filter(delivery=None, due_at__gt=now)
    channels = Channel.objects.filter(pk__in=waiting.order_by().values("channel"))
    list(channels.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    # A channel's removal holds its notifications before its row.
    held = waiting.select_for_update(skip_locked=True, of=("self",)).select_related("alert__query", "alert__feed", "channel", "rule")
    by_route = {_key(one): one for one in held.prefetch_related("alert__query__regions")}
    routes = [(_route(one), one.due_at) for one in by_route.values()]
    written = written_for([route for route, _ in routes], but=[one.pk for one in by_route.values()])
    together = defaultdict(list)
    for planned in sooner(routes, written, now):
        route = planned.route
        one = by_route[route.alert.pk, route.channel.pk, route.after_minutes]
        if planned.due_at < one.due_at:
            together[planned.due_at, planned.group].append(one.pk)
    for (due_at, group), keys in together.items():
        Notification.objects.filter(pk__in=keys).update(due_at=due_at, group=group, gathered=True)


def _key(one: Notification) -> tuple[int, int, int]:
    return one.alert_id, one.channel_id, one.after_minutes


def _route(one: Notification) -> Route:
    name, timing = (None, AT_ONCE) if one.rule is None else (one.rule.name, one.rule.timing)
    return Route(one.alert, one.channel, one.rule_id, name, one.after_minutes, timing)
