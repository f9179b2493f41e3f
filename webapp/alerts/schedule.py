"""When each alert is sent to its channels: immediately, or with others in a digest.

The query's limit of messages an hour comes first, else the grouping of the rule that sends it, else
that of the channel. Then the digests and quiet hours of both apply. The result depends only on the
alerts' times and on earlier notifications for the channel.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from webapp.alerts.models import Alert, Notification
from webapp.alerts.routing import Route
from webapp.alerts.timing import HOUR, LONGEST_GROUP_MINUTES, Grouping, Limit, Timing
from webapp.queries.models import Calls

Written = Mapping[tuple[int, str], Iterable[datetime]]
"""By channel and group, the times of messages about it."""


@dataclass(frozen=True)
class Planned:
    """A route and its time. `gathered`: in a digest with all alerts due by then."""

    route: Route
    due_at: datetime
    gathered: bool
    group: str


def schedule(routes: Sequence[Route], written: Written, now: datetime | None = None) -> list[Planned]:
    """The time of each route, in the order of the alerts' times. Messages due before `now` may have
    been sent: nothing is added to them."""
    times = {key: list(found) for key, found in written.items()}
    return [_planned(route, times, now) for route in sorted(routes, key=lambda route: (_moment(route), route.alert.pk, route.channel.pk))]


def sooner(waiting: Sequence[tuple[Route, datetime]], written: Written, now: datetime) -> list[Planned]:
    """The times of routes that wait until the given times, after a change of a timing: never later.
    Those of a group that are freed together are sent together."""
    times = {key: list(found) for key, found in written.items()}
    return [_sooner(route, due_at, times, now) for route, due_at in sorted(waiting, key=lambda one: (_moment(one[0]), one[0].alert.pk))]


def _sooner(route: Route, due_at: datetime, times: dict[tuple[int, str], list[datetime]], now: datetime) -> Planned:
    earliest, severity, limit = max(_moment(route), now), route.alert.severity, _limit_of(route)
    written = [] if limit is None else times.setdefault((route.channel.pk, limit.key), [])
    permitted = earliest if limit is None or earliest in written else limit.next_due(earliest, written)
    released = route.channel.timing.release(route.timing.release(permitted, severity), severity)
    written.append(min(due_at, released))
    return Planned(route, written[-1], True, "" if limit is None else limit.key)


def written_for(routes: Sequence[Route], *, but: Iterable[int] = ()) -> Written:
    """Recent messages of the routes' groups, as far back as they count; `but`: without these
    notifications."""
    limits = [(route, limit) for route in routes if (limit := _limit_of(route)) is not None]
    if not limits:
        return {}
    since = min(_moment(route) for route, _ in limits) - timedelta(minutes=LONGEST_GROUP_MINUTES)
    channels, groups = {route.channel.pk for route, _ in limits}, {limit.key for _, limit in limits}
    notifications = Notification.objects.filter(channel__in=channels, group__in=groups, due_at__gt=since).exclude(group="").exclude(pk__in=list(but))
    times: dict[tuple[int, str], list[datetime]] = {}
    for channel_id, group, due_at in notifications.order_by().values_list("channel", "group", "due_at").distinct():
        times.setdefault((channel_id, group), []).append(due_at)
    return times


def calling(alerts: Iterable[Alert]) -> list[int]:
    """The ids of alerts to deliver: not muted, and, for a query that alerts only once, without an
    earlier alert that is still open."""
    lasting = Q(over_at=None, end=None) | Q(over_at__gt=OuterRef("opened_at"))
    unresolved = Q(resolved_at=None) | Q(resolved_at__gt=OuterRef("opened_at"))
    earlier = Alert.objects.filter(
        lasting, unresolved, query=OuterRef("query"), entities=OuterRef("entities"), kind=OuterRef("kind"), pk__lt=OuterRef("pk"), mute=None
    )
    unmuted = Alert.objects.filter(pk__in=[alert.pk for alert in alerts], mute=None)
    return list(unmuted.exclude(Q(query__calls=Calls.ONCE) & Exists(earlier)).order_by("pk").values_list("pk", flat=True))


def _planned(route: Route, times: dict[tuple[int, str], list[datetime]], now: datetime | None) -> Planned:
    moment, severity = _moment(route), route.alert.severity
    earliest = moment if now is None else max(moment, now)
    limit = _limit_of(route)
    written = [] if limit is None else times.setdefault((route.channel.pk, limit.key), [])
    due_at = earliest if limit is None else limit.next_due(earliest, written)
    due_at = route.channel.timing.release(route.timing.release(due_at, severity), severity)
    written.append(due_at)
    waits = due_at > earliest
    return Planned(route, due_at if waits or limit is not None else moment, waits, "" if limit is None else limit.key)


def _moment(route: Route) -> datetime:
    return route.alert.opened_at + timedelta(minutes=route.after_minutes)


def _limit_of(route: Route) -> Limit | None:
    query = route.alert.query
    stage = f"after {route.after_minutes} " if route.after_minutes else ""
    if query.calls_per_hour is not None:
        return Limit(f"{stage}query {query.pk}", query.calls_per_hour, HOUR)
    for timing in (route.timing, route.channel.timing):
        if timing.group_by and (key := _group_of(route.alert, timing)):
            return Limit(stage + key, 1, timedelta(minutes=timing.group_minutes))
    return None


def _group_of(alert: Alert, timing: Timing) -> str:
    """The group of the alert; empty if it has none of that kind. A pair is a separate group;
    several regions are one too."""
    if timing.group_by == Grouping.ENTITY:
        return f"entity {json.dumps(alert.entities)}" if alert.entities else ""
    if timing.group_by == Grouping.REGION:
        regions = sorted(region.pk for region in alert.query.regions.all())
        return f"region {' '.join(map(str, regions))}" if regions else ""
    return f"query {alert.query_id}"
