"""The lists of rules and shifts show which of them reach nobody, and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation
from rest_framework.test import APIClient

from tests.webapp.alerts.test_lifecycle import crossing, record
from tests.webapp.alerts.test_routing import quiet
from webapp.accounts.models import User
from webapp.alerts.models import Channel, RoutingRule, Shift, Turn
from webapp.alerts.reach import rule_warnings
from webapp.alerts.rules import rule_save
from webapp.alerts.shifts import shifts_warn
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]

RULES = "/api/v1/routing-rules/"
SHIFTS = "/api/v1/shifts/"


def warning(rule: RoutingRule, user: User) -> str:
    return rule_warnings(rules=[rule], user=user, now=timezone.now())[rule.pk]


def on_call(owner: User, person: User, *, hours: float = 0, **fields: Any) -> Shift:
    """A shift that the person begins after these hours, for a year."""
    begin = timezone.now() + timedelta(hours=hours)
    shift = Shift.objects.create(owner=owner, name="Night", known_until=begin + timedelta(days=400), **fields)
    Turn.objects.create(shift=shift, person=person, begins_at=begin, ends_at=begin + timedelta(days=366))
    return shift


def test_a_rule_to_a_person_without_a_channel_says_that_it_reaches_nobody_and_the_remedy(
    people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    rule_save(user=people.owner, name="night", people=[people.viewer])
    (shown,) = client_of(people.owner).get(RULES).json()["results"]
    assert shown["warning"].startswith("Reaches nobody: viewer has no channel that works.") and "Account, Channels" in shown["warning"]
    own = quiet(people.viewer)
    assert client_of(people.owner).get(f"{RULES}{shown['id']}/").json()["warning"] == ""
    for broken in ({"enabled": False}, {"failures": 5}):
        Channel.objects.update(**{"enabled": True, "failures": 0, **broken})
        assert "viewer has no channel that works" in warning(RoutingRule.objects.get(), people.owner), broken
    Channel.objects.filter(pk=own.pk).update(enabled=True, failures=4, team=people.harbour)
    assert "viewer" in warning(RoutingRule.objects.get(), people.owner), "a team's channel is not the person's own"
    Channel.objects.filter(pk=own.pk).update(team=None)
    assert warning(RoutingRule.objects.get(), people.owner) == ""
    User.objects.filter(pk=people.viewer.pk).update(is_active=False)
    assert "viewer can no longer log in" in warning(RoutingRule.objects.get(), people.owner)


def test_who_has_no_channel_is_warned_that_rules_send_to_them(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    def warned(user: User) -> str:
        return str(client_of(user).get("/api/v1/channels/reach").json()["warning"])

    assert warned(people.viewer) == ""
    rule = rule_save(user=people.owner, name="night", people=[people.viewer], team=people.harbour)
    assert warned(people.viewer).startswith("The rule night sends you alerts, but you have no channel that works.")
    assert warned(people.analyst) == ""
    rule_save(user=people.stranger, name="theirs", shifts=[on_call(people.stranger, people.analyst)])
    assert warned(people.analyst).startswith("Rules of others send you alerts"), "no name of a rule that they may not see"
    Turn.objects.update(begins_at=timezone.now() + timedelta(days=31))
    assert warned(people.analyst) == "", "not for a long time"
    quiet(people.viewer)
    assert warned(people.viewer) == ""
    Channel.objects.update(failures=5)
    assert warned(people.viewer) != "", "it keeps failing"
    RoutingRule.objects.filter(pk=rule.pk).update(enabled=False)
    assert warned(people.viewer) == "", "the rule is switched off"


def test_nobody_is_warned_of_rules_whose_alerts_they_may_not_see(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    def warned(user: User) -> bool:
        return client_of(user).get("/api/v1/channels/reach").json()["warning"] != ""

    of_query = rule_save(user=people.owner, name="one", people=[people.viewer, people.stranger], queries=[query])
    assert (warned(people.viewer), warned(people.stranger)) == (True, False)
    rule_save(user=people.owner, rule=of_query, queries=[], feed=query.feed)
    assert (warned(people.viewer), warned(people.stranger)) == (True, False)


def test_teams_channels_and_shifts_that_reach_nobody_are_named(people: SimpleNamespace) -> None:
    off, broken = quiet(people.operator, "off", enabled=False), quiet(people.operator, "broken", failures=9)
    shift, empty = on_call(people.operator, people.viewer), Shift.objects.create(owner=people.operator, name="Day")
    rule = rule_save(user=people.operator, name="all", channels=[off, broken], teams=[people.harbour], shifts=[shift, empty])
    said = warning(rule, people.operator)
    for part in (
        "the team harbour has no channel that works",
        "in the shift Night, viewer has no channel that works",
        "in the shift Day, nobody is on call",
        "the channel off is switched off",
        "the channel broken keeps failing",
    ):
        assert part in said, said
    with translation.override("de"):
        assert warning(rule, people.operator).startswith("Erreicht niemanden: ")
    quiet(people.viewer, "own")
    assert warning(rule, people.operator) == "", "one who is reached is enough"


def test_a_rule_whose_owner_cannot_log_in_reaches_nobody(people: SimpleNamespace) -> None:
    rule = rule_save(user=people.operator, name="x", team=people.harbour, channels=[quiet(people.owner, team=people.harbour)])
    assert warning(rule, people.admin) == ""
    User.objects.filter(pk=people.operator.pk).update(is_active=False)
    assert "its owner operator can no longer log in" in warning(rule, people.admin)


def test_only_those_who_may_change_a_rule_or_a_shift_see_whether_others_have_channels(
    people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    rule_save(user=people.owner, name="night", team=people.harbour, people=[people.analyst])
    on_call(people.owner, people.analyst, team=people.harbour)
    for user, sees in ((people.owner, True), (people.operator, True), (people.viewer, False), (people.analyst, False)):
        for address in (RULES, SHIFTS):
            (shown,) = client_of(user).get(address).json()["results"]
            assert ("analyst" in shown["warning"]) is sees, (user, shown)
    assert client_of(people.stranger).get(RULES).json()["results"] == []


def test_what_the_reader_may_not_see_counts_but_has_no_name(people: SimpleNamespace) -> None:
    secret, shift = quiet(people.operator, "secret", enabled=False), on_call(people.operator, people.viewer)
    rule = rule_save(user=people.operator, name="x", team=people.harbour, channels=[secret], shifts=[shift])
    said = warning(rule, people.admin)
    assert "a channel that you may not see does not work" in said and "a shift of others reaches nobody" in said
    assert not any(word in said for word in ("secret", "Night", "viewer"))
    Channel.objects.filter(pk=secret.pk).update(enabled=True)
    assert warning(rule, people.admin) == "", "alerts do reach somebody"


def test_the_lists_take_as_many_statements_for_many_rules_and_shifts_as_for_few(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    def add(count: int) -> None:
        for n in range(count):
            person = (people.viewer, people.analyst, people.operator)[n % 3]
            channels = [quiet(people.owner, enabled=False)]
            shift = on_call(people.owner, person)
            rule_save(user=people.owner, name="x", people=[person], teams=[people.harbour], channels=channels, shifts=[shift])

    def statements(address: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            rows = client_of(people.owner).get(address).json()["results"]
        assert rows and all("eaches nobody" in row["warning"] for row in rows)
        return len(caught)

    add(1)
    few = [statements(address) for address in (RULES, SHIFTS)]
    add(8)
    assert [statements(address) for address in (RULES, SHIFTS)] == few


def test_a_shift_says_who_is_on_call_now_or_next_without_a_channel(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    shift = on_call(people.owner, people.viewer)
    client = client_of(people.owner)

    def said() -> str:
        (shown,) = client.get(SHIFTS).json()["results"]
        return str(shown["warning"])

    assert said().startswith("Reaches nobody now: viewer, on call without a channel that works.")
    quiet(people.viewer)
    assert said() == ""
    begin = timezone.now() + timedelta(days=9)
    Turn.objects.create(shift=shift, person=people.analyst, begins_at=begin, ends_at=begin + timedelta(days=1))
    assert said().startswith("Reaches nobody from ") and "analyst, next on call, without a channel" in said()
    Turn.objects.create(shift=shift, person=people.viewer, begins_at=begin, ends_at=begin + timedelta(days=1))
    assert said() == "", "somebody who is on call with them can be reached"


def test_the_owner_of_a_shift_gets_one_mail_about_it(people: SimpleNamespace, settings: Any, mailoutbox: list[EmailMessage]) -> None:
    settings.EMAIL_GIVEN = True
    User.objects.filter(pk=people.owner.pk).update(email="owner@example.org")
    on_call(people.owner, people.viewer)
    assert (shifts_warn(), shifts_warn()) == (1, 0)
    assert mailoutbox[0].subject == "The shift Night: Reaches nobody now: viewer, on call without a channel that works."
    assert "Account, Channels" in mailoutbox[0].body


def test_trying_a_rule_says_the_same_and_counts_channels_that_are_not_seen(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    record(query, crossing(query, "in", "a", 10))
    rule = {"name": "new", "people": ["viewer"]}

    def tried() -> dict[str, Any]:
        found: dict[str, Any] = client_of(people.operator).post(f"{RULES}dry-run", rule, format="json").json()
        return found

    assert (tried()["matched"], tried()["reached"]) == (1, 0) and "viewer has no channel that works" in tried()["warning"]
    quiet(people.viewer)
    assert (tried()["matched"], tried()["reached"], tried()["warning"], tried()["results"]) == (1, 1, "", []), "their channel is their own"
