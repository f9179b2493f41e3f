"""Why a rule reaches nobody: none of its recipients has a working channel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from django.db.models import Q
from django.utils.translation import gettext, ngettext

from webapp.accounts.models import Team, User
from webapp.alerts.models import Channel, RoutingRule, Shift, Turn
from webapp.alerts.routing import SETS, Terms, terms_of
from webapp.alerts.selectors import channels_working
from webapp.alerts.shifts import SOON, on_duty, shifts_at
from webapp.feeds.models import Feed
from webapp.queries.models import Query

LISTED = 5
"""Rules named in one sentence."""


def rule_warnings(*, rules: Iterable[RoutingRule], user: User, now: datetime) -> dict[int, str]:
    """Why each rule reaches nobody, for `user`; empty if it reaches someone, or if `user` may not
    change it: only editors see whether other users have channels."""
    editable = RoutingRule.objects.editable_by(user).filter(pk__in=[rule.pk for rule in rules])
    # Read again, with the choices that `user` may not see.
    stored = [terms_of(rule) for rule in editable.select_related("owner", "feed").prefetch_related(*SETS)]
    found = warnings_of(stored, user=user, now=now)
    return {rule.pk: text for rule, text in zip(stored, found, strict=True) if rule.pk is not None}


def warnings_of(rules: Sequence[Terms], *, user: User, now: datetime) -> list[str]:
    """Why each rule reaches nobody; empty if it reaches someone. The number of statements does not
    depend on that of the rules."""
    if not rules:
        return []
    shifts = {shift.pk: shift for shift in shifts_at(Shift.objects.filter(pk__in=_all(rules, "shifts")), now)}
    duty = {pk: {turn.person for turn in on_duty(shift)} for pk, shift in shifts.items()}
    working = _working(rules, {person.pk for people in duty.values() for person in people})
    silent = [rule for rule in rules if not _reaches(rule, working, duty)]
    names = _Names(silent, user, shifts, duty) if silent else None
    return [names.warning(rule) if names is not None and rule in silent else "" for rule in rules]


def _all(rules: Iterable[Terms], kind: str) -> set[int]:
    return {pk for rule in rules for pk in getattr(rule, kind)}


def _working(rules: Sequence[Terms], on_call: set[int]) -> list[Channel]:
    personal = Q(team=None, owner__in=_all(rules, "people") | on_call)
    return list(channels_working().filter(Q(pk__in=_all(rules, "channels")) | Q(team__in=_all(rules, "teams")) | personal))


def _reaches(rule: Terms, working: Iterable[Channel], duty: Mapping[int, set[User]]) -> bool:
    on_call = {person.pk for shift in rule.shifts for person in duty.get(shift, ())}
    return rule.owner.is_active and any(rule.goes_to(channel, on_call.__contains__) for channel in working)


class Reachability(TypedDict):
    """Why the alerts that rules send to the user do not arrive; empty if they do, or if no rule
    does."""

    warning: str


def own_reachability(*, user: User, now: datetime) -> Reachability:
    """Whether `user`, to whom rules send alerts that they may see, now or soon, has a channel that
    works."""
    if channels_working().filter(team=None, owner=user).exists():
        return {"warning": ""}
    shifts = Turn.objects.filter(person=user, begins_at__lt=now + SOON, ends_at__gt=now).values("shift")
    # Channels get the alerts of queries that their owner sees.
    seen = Query.objects.visible_to(user).filter(deleted_at=None)
    of_seen = (Q(feed=None) | Q(feed__in=Feed.objects.visible_to(user))) & (Q(queries=None) | Q(queries__in=seen))
    rules = RoutingRule.objects.filter(Q(people=user) | Q(shifts__in=shifts), of_seen, enabled=True, owner__is_active=True).distinct()
    if not rules.exists():
        return {"warning": ""}
    names = list(rules.filter(pk__in=RoutingRule.objects.visible_to(user).values("pk")).order_by("name").values_list("name", flat=True)[: LISTED + 1])
    known = ngettext("The rule %(names)s sends you alerts", "The rules %(names)s send you alerts", len(names))
    shown = [*names[:LISTED], *(["…"] if len(names) > LISTED else [])]
    who = known % {"names": ", ".join(shown)} if names else gettext("Rules of others send you alerts")
    text = gettext("%(who)s, but you have no channel that works. Add or repair one under Account, Channels.")
    return {"warning": text % {"who": who}}


class _Names:
    """The sentence about rules that reach nobody; objects that `user` may not see are not named."""

    def __init__(self, rules: Sequence[Terms], user: User, shifts: Mapping[int, Any], duty: Mapping[int, set[User]]) -> None:
        self.shifts, self.duty = shifts, duty
        self.people = User.objects.in_bulk(list(_all(rules, "people")))
        self.channels = Channel.objects.select_related("owner").in_bulk(list(_all(rules, "channels")))
        self.seen_channels = set(Channel.objects.visible_to(user).filter(pk__in=self.channels).values_list("pk", flat=True))
        self.own_shifts = set(Shift.objects.editable_by(user).filter(pk__in=shifts).values_list("pk", flat=True))
        teams = Team.objects.all() if user.is_superuser else Team.objects.filter(memberships__user=user)
        self.teams = teams.in_bulk(list(_all(rules, "teams")))

    def warning(self, rule: Terms) -> str:
        """The reasons, and the remedy."""
        if not rule.owner.is_active:
            reasons = [gettext("its owner %(name)s can no longer log in") % {"name": rule.owner.username}]
            remedy = gettext("Make a rule like it, and remove this one.")
        else:
            reasons = [*self._about_people(rule), *self._about_teams(rule), *self._about_shifts(rule), *self._about_channels(rule)]
            reasons = reasons or [gettext("its recipients were removed")]
            remedy = gettext("Add or repair a channel under Account, Channels (everyone adds their own), or let the rule send elsewhere.")
        return gettext("Reaches nobody: %(why)s. %(remedy)s") % {"why": "; ".join(reasons), "remedy": remedy}

    def _about_people(self, rule: Terms) -> list[str]:
        people = [self.people[pk] for pk in rule.people if pk in self.people]
        return _without_channel(person for person in people if person.is_active) + _gone(person for person in people if not person.is_active)

    def _about_teams(self, rule: Terms) -> list[str]:
        names = sorted(self.teams[pk].name for pk in rule.teams if pk in self.teams)
        known = ngettext("the team %(names)s has no channel that works", "the teams %(names)s have no channel that works", len(names))
        others = [gettext("a team of others has no channel that works")] if len(names) < len(rule.teams) else []
        return [*([known % {"names": ", ".join(names)}] if names else []), *others]

    def _about_shifts(self, rule: Terms) -> list[str]:
        reasons = []
        for shift in sorted(rule.shifts & self.own_shifts):
            people = _without_channel(self.duty[shift])
            why = gettext("nobody is on call") if not people else people[0]
            reasons.append(gettext("in the shift %(name)s, %(why)s") % {"name": self.shifts[shift].name, "why": why})
        hidden = [gettext("a shift of others reaches nobody")] if rule.shifts - self.own_shifts else []
        return reasons + hidden

    def _about_channels(self, rule: Terms) -> list[str]:
        hidden = [gettext("a channel that you may not see does not work")] if rule.channels - self.seen_channels else []
        return [_state(self.channels[pk]) for pk in sorted(rule.channels & self.seen_channels)] + hidden


def _without_channel(people: Iterable[User]) -> list[str]:
    names = sorted(person.username for person in people)
    text = ngettext("%(names)s has no channel that works", "%(names)s have no channel that works", len(names))
    return [text % {"names": ", ".join(names)}] if names else []


def _gone(people: Iterable[User]) -> list[str]:
    names = sorted(person.username for person in people)
    text = ngettext("%(names)s can no longer log in", "%(names)s can no longer log in", len(names))
    return [text % {"names": ", ".join(names)}] if names else []


def _state(channel: Channel) -> str:
    if not channel.enabled:
        text = gettext("the channel %(name)s is switched off")
    elif not channel.owner.is_active:
        text = gettext("the owner of the channel %(name)s can no longer log in")
    else:
        text = gettext("the channel %(name)s keeps failing")
    return text % {"name": channel.name}
