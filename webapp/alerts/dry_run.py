"""Where the alerts of the last hours would have gone under the present rules and channels, in how
many messages. Sends nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from webapp.accounts.models import User
from webapp.alerts.models import Alert, Channel, RoutingRule
from webapp.alerts.reach import warnings_of
from webapp.alerts.routing import Terms, routes_of
from webapp.alerts.schedule import Planned, calling, schedule
from webapp.queries.models import Query, Severity

LOOKED_AT = 10_000
"""A dry run considers at most this many of the newest alerts."""
LISTED = 5


class OwnedChannel(TypedDict):
    """A channel and its owner."""

    id: int
    name: str
    owner: str


class ListedAlert(TypedDict):
    """An alert in short."""

    id: int
    query_name: str
    entities: list[str]
    severity: Severity


class RoutedAlerts(TypedDict):
    """The alerts that a rule (null: the channel itself, or a rule that the user does not see) sends
    to a channel, the last few of them listed."""

    channel: OwnedChannel
    rule: str | None
    after_minutes: int
    count: int
    messages: int
    alerts: list[ListedAlert]


class DryRun(TypedDict):
    """`opened` alerts were opened, the newest `alerts` of them looked at; `unreached` reach nobody,
    `unseen` only to channels that the user does not see.

    For a rule tried alone, `matched`: the alerts that it matches, `reached`: those of them that
    reach someone, also by channels that the user does not see; `warning`: why the rule reaches
    nobody.
    """

    opened: int
    alerts: int
    unreached: int
    unseen: int
    matched: int | None
    reached: int | None
    warning: str
    results: list[RoutedAlerts]


def dry_run(*, user: User, hours: int, now: datetime, rule: Terms | None = None) -> DryRun:
    """With all rules and channels that `user` may see, or with `rule` alone."""
    since, queries = now - timedelta(hours=hours), Query.objects.visible_to(user)
    opened = Alert.objects.filter(query__in=queries.values("pk"), opened_at__gte=since, mute=None)
    alerts = list(opened.select_related("query").prefetch_related("query__regions").order_by("-id")[:LOOKED_AT])
    seen = set(Channel.objects.visible_to(user).values_list("pk", flat=True))
    rules = set(RoutingRule.objects.visible_to(user).values_list("pk", flat=True))
    heard = set(calling(alerts))
    routes = routes_of([alert for alert in alerts if alert.pk in heard], None if rule is None else [rule])
    groups: dict[tuple[int, int, int], list[Planned]] = defaultdict(list)
    for planned in schedule([route for route in routes if route.channel.pk in seen], {}):
        route = planned.route
        groups[route.channel.pk, route.after_minutes, route.rule_id or 0].append(planned)
    results = [_group(groups[key], rule is not None or key[2] in rules) for key in sorted(groups)]
    reached = {route.alert.pk for route in routes}
    shown = {planned.route.alert.pk for group in groups.values() for planned in group}
    count = len(alerts) if len(alerts) < LOOKED_AT else opened.count()
    matched = None if rule is None else sum(rule.matches(alert) for alert in alerts if alert.pk in heard)
    warning = "" if rule is None else warnings_of([rule], user=user, now=now)[0]
    return {
        "opened": count,
        "alerts": len(alerts),
        "unreached": len(heard - reached),
        "unseen": len(reached - shown),
        "matched": matched,
        "reached": None if rule is None else len(reached),
        "warning": warning,
        "results": results,
    }


def _group(group: Sequence[Planned], is_seen: bool) -> RoutedAlerts:
    first = group[0].route
    at_once = sum(not one.gathered for one in group)
    return {
        "channel": {"id": first.channel.pk, "name": first.channel.name, "owner": first.channel.owner.username},
        "rule": first.rule_name if is_seen else None,
        "after_minutes": first.after_minutes,
        "count": len(group),
        "messages": at_once + len({one.due_at for one in group if one.gathered}),
        "alerts": [_row_of(one) for one in group[-LISTED:]],
    }


def _row_of(planned: Planned) -> ListedAlert:
    alert = planned.route.alert
    return {"id": alert.pk, "query_name": alert.query.name, "entities": alert.entities, "severity": Severity(alert.severity)}
