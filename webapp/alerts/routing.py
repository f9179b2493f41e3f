"""Which channels an alert goes to: those that subscribe to it, and those that a rule names.

A rule sends only alerts that its owner may see, and a channel carries only alerts that its owner
may see. An alert goes to a channel once immediately, by the first matching rule, and once for each
escalation time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from webapp.accounts.models import User
from webapp.alerts.models import Alert, Channel, RoutingRule
from webapp.alerts.shifts import Roster
from webapp.alerts.timing import AT_ONCE, Timing, timing_of
from webapp.feeds.models import Feed
from webapp.queries.models import Query, Severity


@dataclass(frozen=True)
class Terms:
    """A routing rule, stored (`pk`) or new. Empty conditions always hold."""

    pk: int | None
    name: str
    owner: User
    feed: int | None = None
    queries: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()
    regions: frozenset[int] = frozenset()
    min_severity: str = Severity.INFO
    days: frozenset[int] = frozenset()
    from_time: time | None = None
    until_time: time | None = None
    after_minutes: int = 0
    timing: Timing = AT_ONCE
    channels: frozenset[int] = frozenset()
    teams: frozenset[int] = frozenset()
    people: frozenset[int] = frozenset()
    shifts: frozenset[int] = frozenset()

    def matches(self, alert: Alert) -> bool:
        """Whether the rule matches the alert."""
        query = alert.query
        return (
            (self.feed is None or alert.feed_id == self.feed)
            and (not self.queries or query.pk in self.queries)
            and (not self.tags or not self.tags.isdisjoint(query.tags))
            and (not self.regions or any(region.pk in self.regions for region in query.regions.all()))
            and rank(alert.severity) >= rank(self.min_severity)
            and self.is_on(alert.opened_at)
        )

    def is_on(self, moment: datetime) -> bool:
        """Whether the rule applies at `moment`. A period over midnight belongs to the day on which
        it begins."""
        local = moment.astimezone(ZoneInfo(self.timing.zone))
        begin, end, at = self.from_time or time.min, self.until_time, local.time()
        day = local
        if end is not None and end <= begin:
            if at < end:
                day -= timedelta(days=1)
            elif at < begin:
                return False
        elif at < begin or (end is not None and at >= end):
            return False
        return not self.days or day.weekday() in self.days

    def sends_to(self, channel: Channel, alert: Alert, roster: Roster) -> bool:
        """Whether the channel is one of the rule's, or belongs to someone who is on
        call at the time of sending."""
        at = alert.opened_at + timedelta(minutes=self.after_minutes)
        return self.goes_to(channel, lambda person: roster.is_on_call(person, self.shifts, at))

    def goes_to(self, channel: Channel, is_on_call: Callable[[int], bool]) -> bool:
        """Whether the channel is one of the rule's, while these users are on call in its shifts."""
        if channel.pk in self.channels or channel.team_id in self.teams:
            return True
        if channel.team_id is not None:
            return False
        return channel.owner_id in self.people or is_on_call(channel.owner_id)


@dataclass(frozen=True)
class Route:
    """An alert to be sent to a channel; `rule_id` None: the channel subscribes to it.
    `timing`: that of the rule."""

    alert: Alert
    channel: Channel
    rule_id: int | None
    rule_name: str | None
    after_minutes: int
    timing: Timing = AT_ONCE


EPOCH = datetime.fromtimestamp(0, UTC)
SETS = ("queries", "regions", "channels", "teams", "people", "shifts")
PLAIN = ("name", "tags", "min_severity", "days", "from_time", "until_time", "after_minutes")


def terms_of(rule: RoutingRule) -> Terms:
    """The stored rule."""
    fields = {name: getattr(rule, name) for name in (*PLAIN, *RoutingRule.TIMING)} | {name: getattr(rule, name).all() for name in SETS}
    return terms(pk=rule.pk, owner=rule.owner, feed=rule.feed, **fields)


def terms(*, owner: User, pk: int | None = None, feed: Feed | None = None, **fields: Any) -> Terms:
    """A rule with these fields, whose choices are objects."""
    sets: dict[str, Any] = {name: frozenset(one.pk for one in fields.pop(name, ())) for name in SETS}
    sets |= {name: frozenset(fields.pop(name, ())) for name in ("tags", "days")}
    timing = timing_of(fields)
    return Terms(pk, fields.pop("name"), owner, None if feed is None else feed.pk, timing=timing, **sets, **fields)


def routes_of(alerts: Sequence[Alert], rules: Sequence[Terms] | None = None) -> list[Route]:
    """The routes of the alerts, by the enabled rules and channels, or only by the given rules."""
    ways = list(Channel.objects.filter(enabled=True).select_related("owner").prefetch_related("queries"))
    stored = RoutingRule.objects.filter(enabled=True).select_related("owner").prefetch_related(*SETS).order_by("after_minutes", "id")
    conditions = [terms_of(rule) for rule in stored] if rules is None else rules
    queryset = Alert.objects.filter(pk__in=[one.pk for one in alerts])
    known = list(queryset.select_related("query", "feed").prefetch_related("query__regions").order_by("id"))
    sight, roster = _VisibleQueries({alert.query_id for alert in known}), _roster(conditions, known)
    routes: dict[tuple[int, int, int], Route] = {}
    for rule in conditions:
        matching = [alert for alert in known if sight.sees(rule.owner, alert) and rule.matches(alert)]
        for channel in ways:
            for alert in matching:
                if rule.sends_to(channel, alert, roster) and sight.sees(channel.owner, alert):
                    routes.setdefault(
                        (alert.pk, channel.pk, rule.after_minutes), Route(alert, channel, rule.pk, rule.name, rule.after_minutes, rule.timing)
                    )
    for channel in ways if rules is None else ():
        for alert in known:
            if _carries(channel, alert) and sight.sees(channel.owner, alert):
                routes.setdefault((alert.pk, channel.pk, 0), Route(alert, channel, None, None, 0))
    return [routes[key] for key in sorted(routes)]


def _roster(rules: Sequence[Terms], alerts: Sequence[Alert]) -> Roster:
    shifts = {shift for rule in rules for shift in rule.shifts}
    if not shifts or not alerts:
        return Roster((), EPOCH, EPOCH)
    opened = [alert.opened_at for alert in alerts]
    return Roster(shifts, min(opened), max(opened) + timedelta(minutes=max(rule.after_minutes for rule in rules)))


def rank(severity: str) -> int:
    """The rank of the severity, from 0."""
    return Severity.values.index(severity)


def _carries(channel: Channel, alert: Alert) -> bool:
    """Whether the channel subscribes to the alert: severe enough, and of its queries."""
    is_chosen = channel.all_queries or any(query.pk == alert.query_id for query in channel.queries.all())
    return is_chosen and rank(alert.severity) >= rank(channel.min_severity)


class _VisibleQueries:
    """Which users see which of some queries; each is looked up once."""

    def __init__(self, queries: set[int]) -> None:
        self.queries, self.seen = queries, dict[int, set[int]]()

    def sees(self, user: User, alert: Alert) -> bool:
        if user.pk not in self.seen:
            self.seen[user.pk] = set(Query.objects.visible_to(user).filter(pk__in=self.queries).values_list("pk", flat=True))
        return alert.query_id in self.seen[user.pk]
