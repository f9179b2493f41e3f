"""Routing rules: which alerts reach whom, and when; a rule never reaches anyone
who may not see the alert."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.accounts.models import Membership
from webapp.alerts import dry_run
from webapp.alerts.deliveries import channel_create, channels_due, deliveries_prepare, notifications_plan
from webapp.alerts.handling import Decision, alerts_decide
from webapp.alerts.models import Alert, Channel, Delivery, Notification, Step
from webapp.alerts.routing import terms
from webapp.alerts.rules import rule_save
from webapp.alerts.selectors import deliveries_of
from webapp.feeds.services import feed_create
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
Given = dict[str, Any]


def quiet(owner: Any, name: str = "desk", **fields: Any) -> Channel:
    """A channel that carries no alerts without a rule."""
    return channel_create(owner=owner, name=name, url="https://hooks.example.org/x", all_queries=False, **fields)


def reached() -> list[tuple[str, str | None]]:
    notifications_plan()
    return sorted((one.channel.name, one.rule and one.rule.name) for one in Notification.objects.select_related("channel", "rule"))


@pytest.mark.parametrize(
    ("given", "matches"),
    [
        (lambda w: {}, True),
        (lambda w: {"queries": [w.query]}, True),
        (lambda w: {"queries": [w.other]}, False),
        (lambda w: {"tags": ["harbour", "x"]}, True),
        (lambda w: {"tags": ["x"]}, False),
        (lambda w: {"regions": [w.region]}, True),
        (lambda w: {"feed": w.query.feed}, True),
        (lambda w: {"feed": w.feed}, False),
        (lambda w: {"min_severity": "low"}, True),
        (lambda w: {"min_severity": "high"}, False),
        (lambda w: {"enabled": False}, False),
    ],
)
def test_a_rule_matches_alerts_by_its_conditions(
    given: Callable[[SimpleNamespace], Given], matches: bool, query: Query, region: Any, people: SimpleNamespace
) -> None:
    Query.objects.filter(pk=query.pk).update(tags=["harbour"])
    other = Query.objects.create(feed=query.feed, name="other", owner=people.owner, family="border", specification={})
    elsewhere = feed_create(owner=people.owner, name="dock", title="Dock", crs="planar", time="ms")
    world = SimpleNamespace(query=query, other=other, region=region, feed=elsewhere)
    rule_save(user=people.owner, name="grave", channels=[quiet(people.owner)], **given(world))
    record(query, crossing(query, "in", "a", 10))
    assert reached() == ([("desk", "grave")] if matches else [])


@pytest.mark.parametrize(
    ("span", "moment", "is_on"),
    [
        (("08:00", "17:00", []), "2026-11-23T07:30", True),
        (("08:00", "17:00", []), "2026-11-23T15:00", False),
        (("08:00", None, []), "2026-11-23T21:00", True),
        (("22:00", "06:00", []), "2026-11-23T03:59", True),
        (("22:00", "06:00", []), "2026-11-23T04:00", False),
        (("22:00", "06:00", []), "2026-11-23T20:00", True),
        # The night that begins on Sunday in Athens lasts into Monday morning;
        # Monday's night is another one.
        (("22:00", "06:00", [6]), "2026-11-23T01:00", True),
        (("22:00", "06:00", [6]), "2026-11-23T21:00", False),
        ((None, None, [0]), "2026-11-22T22:30", True),
    ],
)
def test_a_rule_matches_only_in_its_hours(span: tuple[str | None, str | None, list[int]], moment: str, is_on: bool, people: SimpleNamespace) -> None:
    times = [None if text is None else datetime.fromisoformat(f"2026-01-01T{text}").time() for text in span[:2]]
    rule = terms(owner=people.owner, name="x", from_time=times[0], until_time=times[1], days=span[2], zone="Europe/Athens")
    assert rule.is_on(datetime.fromisoformat(moment).replace(tzinfo=UTC)) is is_on


def test_each_channel_of_teams_and_people_is_reached_once(query: Query, people: SimpleNamespace) -> None:
    quiet(people.operator, "team", team=people.harbour)
    quiet(people.viewer, "personal")
    both = quiet(people.owner, "named", team=people.harbour)
    quiet(people.analyst, "of somebody else")
    rule_save(user=people.owner, name="first", channels=[both], teams=[people.harbour])
    rule_save(user=people.owner, name="second", teams=[people.harbour], people=[people.viewer])
    record(query, crossing(query, "in", "a", 10))
    assert reached() == [("named", "first"), ("personal", "second"), ("team", "first")]


def test_a_rule_sends_only_what_its_owner_and_the_channels_owner_may_see(query: Query, people: SimpleNamespace) -> None:
    rule_save(user=people.stranger, name="spy", channels=[quiet(people.stranger, "stranger")])
    rule_save(user=people.owner, name="leak", channels=[quiet(people.stranger, "theirs")])
    record(query, crossing(query, "in", "a", 10))
    assert reached() == []


def test_a_message_names_the_rule_that_sent_it(query: Query, people: SimpleNamespace) -> None:
    rule_save(user=people.owner, name="grave", channels=[quiet(people.owner)])
    record(query, crossing(query, "in", "a", 10))
    notifications_plan()
    deliveries_prepare()
    listed = json.loads(Delivery.objects.get().body)["data"]["alerts"][0]
    assert (listed["rule"], listed["after_minutes"]) == ("grave", 0)


def escalating(query: Query, people: SimpleNamespace) -> datetime:
    """An alert that goes to one channel at once and after ten minutes again, then to a chief;
    returns when it was opened."""
    desk = quiet(people.owner)
    rule_save(user=people.owner, name="at once", channels=[desk])
    rule_save(user=people.owner, name="again", channels=[desk, quiet(people.owner, "chief")], after_minutes=10)
    record(query, crossing(query, "in", "a", 10))
    notifications_plan()
    return Alert.objects.get().opened_at


def test_an_unacknowledged_alert_is_escalated_after_its_delay(query: Query, people: SimpleNamespace) -> None:
    opened = escalating(query, people)
    assert deliveries_prepare(opened + timedelta(minutes=9)) == 1
    assert deliveries_prepare(opened + timedelta(minutes=10)) == 2
    assert deliveries_prepare(opened + timedelta(days=2)) == 0, "each of them once"
    assert [json.loads(one.body)["data"]["alerts"][0]["after_minutes"] for one in Delivery.objects.order_by("id")] == [0, 10, 10]


def test_what_was_sent_names_the_escalation(query: Query, people: SimpleNamespace, client_of: Callable[[Any], APIClient]) -> None:
    deliveries_prepare(escalating(query, people) + timedelta(minutes=10))
    desk = Channel.objects.get(name="desk")
    rows = client_of(people.owner).get(f"/api/v1/channels/{desk.pk}/deliveries").json()["results"]
    assert [one["escalations"] for one in rows] == [[10], []]


@pytest.mark.parametrize("step", [Step.ACKNOWLEDGED, Step.RESOLVED])
def test_an_acknowledged_alert_is_not_escalated(step: Step, query: Query, people: SimpleNamespace) -> None:
    opened = escalating(query, people)
    deliveries_prepare(opened)
    (alert,) = Alert.objects.all()
    listed = [(one["channel"], one["due_at"], one["after_minutes"]) for one in deliveries_of(alert, user=people.owner)]
    assert listed == [("desk", None, 0), ("desk", opened + timedelta(minutes=10), 10), ("chief", opened + timedelta(minutes=10), 10)]
    alerts_decide(alerts=[alert], decision=Decision(step, people.owner, ""))
    alert.refresh_from_db()
    assert [one["after_minutes"] for one in deliveries_of(alert, user=people.owner)] == [0], "no longer planned"
    assert deliveries_prepare(opened + timedelta(hours=1)) == 0
    assert Notification.objects.filter(delivery=None).count() == 0


def test_a_later_message_about_an_alert_waits_for_the_earlier_one(query: Query, people: SimpleNamespace) -> None:
    deliveries_prepare(escalating(query, people) + timedelta(hours=1))
    desk = Channel.objects.get(name="desk")
    now = timezone.now() + timedelta(hours=2)
    first, _ = desk.deliveries.order_by("id")
    Delivery.objects.filter(pk=first.pk).update(next_at=now + timedelta(hours=1))
    assert channels_due(now) == [Channel.objects.get(name="chief").pk]
    Delivery.objects.filter(pk=first.pk).update(sent_at=now)
    assert sorted(channels_due(now)) == sorted(Channel.objects.values_list("pk", flat=True))


# -- over the API ----------------------------------------------------------------------------------


def test_rules_are_kept_over_the_api(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client, desk = client_of(people.owner), quiet(people.owner)
    rule = {"name": "night", "feed": "yard", "queries": [query.pk], "min_severity": "high", "from_time": "22:00", "until_time": "06:00"}
    made = client.post("/api/v1/routing-rules/", {**rule, "zone": "Europe/Athens", "channels": [desk.pk], "after_minutes": 5}, format="json")
    assert made.status_code == 201 and made.json()["channels"] == [desk.pk] and made.json()["from_time"] == "22:00:00"
    address = f"/api/v1/routing-rules/{made.json()['id']}/"
    assert client.patch(address, {"channels": []}, format="json").json()["faults"][0]["pointer"] == "/channels"
    assert client.patch(address, {"zone": "Mars"}, format="json").json()["faults"][0]["pointer"] == "/zone"
    assert client.patch(address, {"enabled": False}, format="json").json()["enabled"] is False
    private = quiet(people.stranger, "theirs")
    refused = client.post("/api/v1/routing-rules/", {"name": "x", "channels": [private.pk], "people": ["stranger"]}, format="json")
    assert {fault["pointer"].split("/")[1] for fault in refused.json()["faults"]} == {"channels", "people"}
    assert client_of(people.viewer).post("/api/v1/routing-rules/", {"name": "x"}, format="json").status_code == 403
    assert client.delete(address).status_code == 204


def test_a_dry_run_says_who_would_have_been_reached(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    desk, client = quiet(people.owner), client_of(people.owner)
    quiet(people.stranger, "theirs")
    record(query, *(crossing(query, "in", entity, 10) for entity in "abc"))
    Alert.objects.filter(entities=["c"]).update(opened_at=timezone.now() - timedelta(hours=30))
    assert client.get("/api/v1/routing-rules/dry-run").json() == {
        "opened": 2, "alerts": 2, "unreached": 2, "unseen": 0, "matched": None, "reached": None, "warning": "", "results": [],
    }  # fmt: skip
    tried = client.post("/api/v1/routing-rules/dry-run?hours=48", {"name": "new", "channels": [desk.pk]}, format="json").json()
    assert (tried["alerts"], tried["unreached"], [(one["channel"]["name"], one["rule"], one["count"]) for one in tried["results"]]) == (
        3,
        0,
        [("desk", "new", 3)],
    )
    assert Notification.objects.count() == 0 and reached() == []
    unreached = {"name": "x", "teams": [Membership.objects.get(user=people.owner).team_id]}
    alone = [client.post("/api/v1/routing-rules/dry-run", {**unreached, "min_severity": one}, format="json").json() for one in ("critical", "info")]
    assert [(one["matched"], one["unreached"]) for one in alone] == [(0, 2), (2, 2)], "a rule that matches nothing, and a team without a channel"
    rule_save(user=people.owner, name="grave", channels=[desk], min_severity="critical")
    assert client.get("/api/v1/routing-rules/dry-run").json()["unreached"] == 2
    own = quiet(people.analyst, "their own")
    rule_save(user=people.analyst, name="mine", channels=[own])
    found = client.get("/api/v1/routing-rules/dry-run").json()
    assert (found["unreached"], found["unseen"], found["results"]) == (0, 2, []), "a channel that others do not see"


def test_a_dry_run_of_a_flood_reports_that_it_covers_only_the_newest_alerts(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "LOOKED_AT", 2)
    record(query, *(crossing(query, "in", entity, 10) for entity in "abc"))
    found = client_of(people.owner).get("/api/v1/routing-rules/dry-run").json()
    assert (found["opened"], found["alerts"], found["unreached"]) == (3, 2, 2)


def test_the_number_of_rules_per_person_is_limited(people: SimpleNamespace, client_of: Callable[..., APIClient], settings: Any) -> None:
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "rules": 1}
    client = client_of(people.operator)
    made = [client.post("/api/v1/routing-rules/", {"name": name, "people": ["operator"]}, format="json") for name in "ab"]
    assert [one.status_code for one in made] == [201, 403] and "Your quota of routing rules is 1" in made[1].json()["faults"][0]["message"]
    assert client.patch(f"/api/v1/routing-rules/{made[0].json()['id']}/", {"name": "c"}, format="json").status_code == 200
