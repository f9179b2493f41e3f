"""Mutes: muted alerts are stored and shown as muted and not delivered; those
still open afterwards are."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from engine.model.faults import Refused
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import channel_create, notifications_plan
from webapp.alerts.handling import Decision, alerts_decide
from webapp.alerts.models import Alert, Mute, Notification, Step
from webapp.alerts.mutes import mute_create, mute_lift, mutes_turn, window_after
from webapp.feeds.models import Feed
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
HOUR = timedelta(hours=1)


def muted() -> list[str]:
    return sorted(alert.entities[0] for alert in Alert.objects.exclude(mute=None))


def snooze(feed: Feed, owner: Any, **what: Any) -> Mute:
    return mute_create(owner=owner, feed=feed, reason="Our own van", until=timezone.now() + HOUR, **what)


@pytest.mark.parametrize(
    ("what", "expected"),
    [("query", ["a", "b"]), ("region", ["a", "b"]), ("entity", ["b"]), ("pair", [])],
)
def test_a_mute_applies_only_to_what_it_names(what: str, expected: list[str], query: Query, region: Any, people: SimpleNamespace) -> None:
    named: dict[str, Any] = {
        "query": {"query": query},
        "region": {"region": region.pk},
        "entity": {"entities": ["b"]},
        "pair": {"entities": ["a", "b"]},
    }
    record(query, crossing(query, "in", "a", 10))
    snooze(query.feed, people.owner, **named[what])
    assert muted() == [name for name in expected if name == "a"], "what is open already"
    published = record(query, crossing(query, "in", "b", 11))
    assert muted() == expected
    assert published[0]["muted"] == ("b" in expected)


def test_a_muted_alert_is_not_delivered_until_the_mute_ends(query: Query, people: SimpleNamespace) -> None:
    channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x")
    mute = snooze(query.feed, people.owner, query=query)
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 10))
    record(query, crossing(query, "out", "b", 12))
    notifications_plan()
    assert not Notification.objects.exists()
    assert mutes_turn(mute.window_until) == 1
    assert muted() == ["b"], "what is over needs no call any more"
    notifications_plan()
    assert [one.alert.entities for one in Notification.objects.all()] == [["a"]]
    assert Mute.objects.get().ended_at is not None and mutes_turn(mute.window_until) == 0


def test_what_was_snoozed_comes_back_and_what_was_resolved_does_not(query: Query, people: SimpleNamespace) -> None:
    record(query, *(crossing(query, "in", name, 10) for name in "ab"))
    mute = snooze(query.feed, people.owner, query=query)
    alerts_decide(alerts=[Alert.objects.get(entities=["a"])], decision=Decision(Step.RESOLVED, people.owner))
    mute_lift(mute=mute)
    assert muted() == ["a"]


def test_a_mute_applies_only_to_queries_that_its_owner_may_change(query: Query, people: SimpleNamespace) -> None:
    Query.objects.update(public=True, team=None)
    snooze(query.feed, people.analyst, entities=["a"])
    record(query, crossing(query, "in", "a", 10))
    assert muted() == []


def test_a_maintenance_window_repeats_in_its_time_zone(query: Query, people: SimpleNamespace) -> None:
    # A Sunday at 1:00 in Athens, where summer time ends on the 25th.
    begin = datetime(2026, 10, 17, 22, tzinfo=UTC)
    mute = Mute(owner=people.owner, feed=query.feed, query=query, rule="FREQ=WEEKLY", zone="Europe/Athens", first_from=begin, length=2 * HOUR)
    mute.window_from, mute.window_until = begin, begin + 2 * HOUR
    spans = [window_after(mute, begin + timedelta(days=days)) for days in (0, 1, 8)]
    assert [span and span[0].isoformat() for span in spans] == ["2026-10-17T22:00:00+00:00", "2026-10-24T22:00:00+00:00", "2026-10-31T23:00:00+00:00"]


@pytest.mark.parametrize(
    ("first", "ends"),
    [
        ((datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 5, tzinfo=UTC)), ["2026-10-25T05", "2026-10-26T05", "2026-10-27T05"]),
        ((datetime(2026, 10, 23, 20, tzinfo=UTC), datetime(2026, 10, 24, 4, tzinfo=UTC)), ["2026-10-24T04", "2026-10-25T05", "2026-10-26T05"]),
        ((datetime(2027, 3, 27, 21, tzinfo=UTC), datetime(2027, 3, 28, 4, tzinfo=UTC)), ["2027-03-28T04", "2027-03-29T04", "2027-03-30T04"]),
    ],
)
def test_nights_end_at_the_same_hour_when_the_clock_changes(
    first: tuple[datetime, datetime], ends: list[str], query: Query, people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: first[0] - HOUR)
    # 22:00 to 6:00.
    night = {"starts_at": first[0], "until": first[1], "rule": "FREQ=DAILY", "zone": "Europe/Berlin"}
    mute = mute_create(owner=people.owner, feed=query.feed, query=query, reason="Works", **night)
    windows = [window_after(mute, first[0] + timedelta(days=days)) for days in (0, 1, 2)]
    assert [window and window[1].isoformat()[:13] for window in windows] == ends


def test_a_window_in_an_hour_that_the_clock_skips_is_left_out(query: Query, people: SimpleNamespace) -> None:
    # 2:30 in Berlin, where summer time begins a day later.
    begin = datetime(2027, 3, 27, 1, 30, tzinfo=UTC)
    mute = Mute(owner=people.owner, feed=query.feed, query=query, rule="FREQ=DAILY", zone="Europe/Berlin", first_from=begin, length=HOUR / 2)
    mute.window_from, mute.window_until = begin, begin + HOUR / 2
    window = window_after(mute, begin + HOUR)
    assert window is not None and window[0].isoformat() == "2027-03-29T00:30:00+00:00"


def test_a_window_that_begins_in_an_hour_that_the_clock_skips_begins_after_it(query: Query, people: SimpleNamespace) -> None:
    # 2:30 to 3:30 in Berlin, where summer time begins a day later.
    begin = datetime(2027, 3, 27, 1, 30, tzinfo=UTC)
    mute = Mute(owner=people.owner, feed=query.feed, query=query, rule="FREQ=DAILY", zone="Europe/Berlin", first_from=begin, length=HOUR)
    mute.window_from, mute.window_until = begin, begin + HOUR
    window = window_after(mute, begin + 2 * HOUR)
    assert window is not None and [moment.isoformat()[:16] for moment in window] == ["2027-03-28T01:00", "2027-03-28T01:30"]


def test_a_repeating_window_mutes_while_it_is_open_and_moves_on(query: Query, people: SimpleNamespace) -> None:
    now = timezone.now()
    mute = mute_create(
        owner=people.owner, feed=query.feed, query=query, reason="Works", starts_at=now + HOUR, until=now + 2 * HOUR, rule="FREQ=DAILY"
    )
    record(query, crossing(query, "in", "a", 10))
    assert muted() == [] and mutes_turn(now + HOUR) == 1
    assert muted() == ["a"] and mutes_turn(now + HOUR) == 0
    assert mutes_turn(now + 2 * HOUR) == 1
    mute.refresh_from_db()
    assert muted() == [] and mute.ended_at is None
    assert timedelta(days=1) - HOUR <= mute.window_from - now - HOUR <= timedelta(days=1) + HOUR


def test_windows_without_a_pause_between_them_are_one(query: Query, people: SimpleNamespace) -> None:
    now = timezone.now()
    record(query, crossing(query, "in", "a", 10))
    days = {"starts_at": now, "until": now + 24 * HOUR, "rule": "FREQ=DAILY;COUNT=2"}
    mute = mute_create(owner=people.owner, feed=query.feed, query=query, reason="Weekend", **days)
    assert muted() == ["a"] and mutes_turn(now + 25 * HOUR) == 1
    assert muted() == ["a"], "it does not come back between two days"
    assert not Alert.objects.filter(planned_at=None, mute=None).exists()
    assert mutes_turn(now + 49 * HOUR) == 1 and muted() == []
    mute.refresh_from_db()
    assert mute.ended_at is not None


def test_a_pause_that_nobody_saw_is_a_pause(query: Query, people: SimpleNamespace) -> None:
    """No tick ran between the end of the window and the next one: alerts that were opened and ended
    in between were not muted."""
    begin = timezone.now().replace(microsecond=0) - timedelta(days=1) - HOUR / 2
    days = {"starts_at": begin, "until": begin + HOUR, "rule": "FREQ=DAILY"}
    mute = mute_create(owner=people.owner, feed=query.feed, query=query, reason="Works", **days)
    Mute.objects.filter(pk=mute.pk).update(window_from=begin, window_until=begin + HOUR, begun=True)
    record(query, crossing(query, "in", "a", 10))
    Alert.objects.update(opened_at=begin + 2 * HOUR, mute=None)
    assert mutes_turn(begin + 24 * HOUR + HOUR / 2) == 1
    mute.refresh_from_db()
    assert mute.window_from == begin + timedelta(days=1) and muted() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "FREQ=SECONDLY"},
        {"rule": "FREQ=DAILY;BYHOUR=1"},
        {"rule": "every day"},
        {"rule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31"},
        {"rule": "FREQ=DAILY;BYSETPOS=2"},
        {"rule": "FREQ=WEEKLY;BYMONTH=2;BYMONTHDAY=31"},
        {"rule": "FREQ=DAILY", "starts_at": datetime(1, 1, 1, tzinfo=UTC), "until": datetime(1, 1, 2, tzinfo=UTC)},
        {"rule": "FREQ=DAILY;UNTIL=20200101T000000"},
        {"rule": "FREQ=DAILY", "zone": "Nowhere"},
        {"rule": "FREQ=DAILY", "until": None},
        {"until": datetime(2020, 1, 1, tzinfo=UTC)},
        {"entities": ["a"]},
    ],
)
def test_an_invalid_mute_is_refused(wrong: dict[str, Any], query: Query, people: SimpleNamespace) -> None:
    usual = {"query": query, "reason": "x", "until": timezone.now() + HOUR}
    before = process_time()
    with pytest.raises(Refused):
        mute_create(owner=people.owner, feed=query.feed, **{**usual, **wrong})
    assert process_time() - before < 1.5, "a rule is not followed for thousands of years"


def test_mutes_are_listed_with_owner_and_reason_and_can_be_lifted(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    record(query, crossing(query, "in", "a", 10))
    client = client_of(people.analyst)
    asked = {"feed": "yard", "query": query.pk, "reason": "Works", "until": None, "team": people.harbour.pk}
    made = client.post("/api/v1/mutes/", asked)
    assert made.status_code == 201
    (row,) = client_of(people.viewer).get("/api/v1/mutes/").json()["results"]
    assert (row["of"], row["reason"], row["owner"]["name"], row["window_until"], row["alerts"]) == ("In and out", "Works", "analyst", None, 1)
    assert client.get("/api/v1/alerts/?muted=false").json()["results"] == []
    assert client.get("/api/v1/alerts/summary").json()["new"]["low"] == 0
    (alert,) = client.get("/api/v1/alerts/?muted=true").json()["results"]
    assert client.get(f"/api/v1/alerts/{alert['id']}/").json()["mute"]["by"] == "analyst"
    assert client_of(people.viewer).delete(f"/api/v1/mutes/{row['id']}/").status_code == 403
    assert client.delete(f"/api/v1/mutes/{row['id']}/").status_code == 204
    assert [one["muted"] for one in client.get("/api/v1/alerts/?muted=false").json()["results"]] == [False]
    assert client_of(people.viewer).post("/api/v1/mutes/", asked).status_code == 403
    elsewhere = client.post("/api/v1/mutes/", {**asked, "feed": "harbor"})
    assert "There is no feed 'harbor' that you may see." in elsewhere.content.decode()
