"""Quiet hours, digests and grouping: decided only by times, each alert in
one message of a channel."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import channel_create, channel_update, deliveries_prepare, notifications_plan
from webapp.alerts.models import Alert, Channel, Delivery, Mute, Notification
from webapp.alerts.rules import rule_save
from webapp.alerts.selectors import BROKEN_AFTER, channel_list
from webapp.alerts.timing import Limit, Timing
from webapp.queries.models import Query

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
NIGHT = {"zone": "Europe/Athens", "quiet_from": time(22), "quiet_until": time(6)}


@pytest.mark.parametrize(
    ("timing", "moment", "due"),
    [
        ({}, "2026-11-23T12:00", "2026-11-23T12:00"),
        (NIGHT, "2026-11-23T12:00", "2026-11-23T12:00"),
        (NIGHT, "2026-11-23T20:00", "2026-11-24T04:00"),
        (NIGHT, "2026-11-24T03:59", "2026-11-24T04:00"),
        (NIGHT, "2026-11-24T04:00", "2026-11-24T04:00"),
        # The clocks of Athens go forward on 29 March 2026: six o'clock comes an hour earlier.
        (NIGHT, "2026-03-28T21:00", "2026-03-29T03:00"),
        ({"digest": "hourly"}, "2026-11-23T12:00:01", "2026-11-23T13:00"),
        ({"digest": "hourly"}, "2026-11-23T13:00", "2026-11-23T13:00"),
        ({"digest": "hourly", "zone": "Asia/Kolkata"}, "2026-11-23T12:01", "2026-11-23T12:30"),
        ({"digest": "daily", "digest_at": time(8)}, "2026-11-23T08:01", "2026-11-24T08:00"),
        ({"digest": "daily", "digest_at": time(23), **NIGHT}, "2026-11-23T12:00", "2026-11-24T04:00"),
        # 23 November 2026 is a Monday.
        ({"digest": "weekly", "digest_at": time(8)}, "2026-11-23T08:00", "2026-11-23T08:00"),
        ({"digest": "weekly", "digest_at": time(8)}, "2026-11-23T08:01", "2026-11-30T08:00"),
        ({"digest": "weekly", "digest_at": time(8)}, "2026-11-29T08:01", "2026-11-30T08:00"),
        ({"digest": "weekly", "digest_at": time(8), "zone": "Pacific/Auckland"}, "2026-11-22T18:00", "2026-11-22T19:00"),
    ],
)
def test_messages_wait_for_digests_and_the_end_of_quiet_hours(timing: dict[str, Any], moment: str, due: str) -> None:
    at, expected = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (moment, due))
    assert Timing(**timing).release(at, "high") == expected
    assert Timing(**timing).release(at, "critical") == at
    assert Timing(**timing, critical_passes=False).release(at, "critical") == expected


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30), st.integers(1, 3))
def test_no_window_has_more_messages_than_the_limit_and_none_waits_longer_than_it(minutes: list[int], most: int) -> None:
    limit, due = Limit("x", most, timedelta(minutes=60)), list[datetime]()
    for minute in sorted(minutes):
        moment = NOON + timedelta(minutes=minute)
        due.append(limit.next_due(moment, due))
        assert moment <= due[-1] <= moment + limit.window
    times = sorted(set(due))
    assert all(later - sooner >= limit.window for sooner, later in zip(times, times[most:], strict=False))


services = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def desk(people: SimpleNamespace) -> Channel:
    return channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x", all_queries=False)


def alert(query: Query, entity: str, minute: float, severity: str = "low") -> None:
    """An alert that is opened and scheduled this many minutes after noon."""
    record(query, crossing(query, "in", entity, int(minute * 1000)))
    at = NOON + timedelta(minutes=minute)
    Alert.objects.filter(planned_at=None).update(opened_at=at, severity=severity)
    notifications_plan(at)


def sent(channel: Channel, minute: float) -> list[tuple[str, list[str]]]:
    """The messages created by then, each with the entities of its alerts."""
    deliveries_prepare(NOON + timedelta(minutes=minute))
    bodies = [json.loads(one.body) for one in channel.deliveries.order_by("id")]
    return [(body["type"].removeprefix("alerts."), [entity for alert in body["data"]["alerts"] for entity in alert["entities"]]) for body in bodies]


class TestPlanned:
    pytestmark = services

    def test_quiet_hours_end_with_one_digest(self, query: Query, people: SimpleNamespace, desk: Channel) -> None:
        rule_save(user=people.owner, name="night", channels=[desk], quiet_from=time(11), quiet_until=time(13))
        alert(query, "a", 1)
        alert(query, "b", 2, "critical")
        alert(query, "c", 59)
        assert sent(desk, 59) == [("opened", ["b"])], "critical ones pass"
        assert sent(desk, 60) == [("opened", ["b"]), ("digest", ["a", "c"])]
        alert(query, "d", 61)
        assert sent(desk, 61) == [("opened", ["b"]), ("digest", ["a", "c"]), ("opened", ["d"])]

    def test_quiet_hours_of_a_personal_channel_hold_for_all_rules(self, query: Query, people: SimpleNamespace, desk: Channel) -> None:
        Channel.objects.update(quiet_from=time(11), quiet_until=time(13), critical_passes=False)
        rule_save(user=people.owner, name="all", people=[people.owner], digest="hourly")
        alert(query, "a", 1, "critical")
        assert sent(desk, 59) == []
        assert sent(desk, 60) == [("digest", ["a"])]

    def test_a_digest_lists_the_gravest_first(self, query: Query, people: SimpleNamespace, desk: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("webapp.alerts.deliveries.LISTED_IN_ONE_MESSAGE", 3)
        rule_save(user=people.owner, name="hourly", channels=[desk], digest="hourly")
        for minute, (entity, severity) in enumerate([("a", "low"), ("b", "low"), ("c", "info"), ("d", "low"), ("e", "high")]):
            alert(query, entity, minute + 1, severity)
        assert sent(desk, 60) == [("digest", ["e", "a", "b"])]
        assert json.loads(desk.deliveries.get().body)["data"]["count"] == 5

    def test_an_hourly_limit_holds_for_all_channels_of_a_person(self, query: Query, people: SimpleNamespace, desk: Channel, settings: Any) -> None:
        settings.USER_QUOTAS = {**settings.USER_QUOTAS, "messages": 4}
        others = [channel_create(owner=people.owner, name=f"desk {n}", url=f"https://hooks.example.org/{n}", all_queries=False) for n in range(3)]
        rule_save(user=people.owner, name="all", channels=[desk, *others])
        for minute in range(1, 6):
            alert(query, f"e{minute}", minute)
            sent(desk, minute)
        assert Delivery.objects.count() == 4
        assert sum(one.held_back for one in channel_list(user=people.owner)) == 4 * 5 - 4
        # Alerts beyond the limit wait, and are sent together.
        sent(desk, 62)
        assert Delivery.objects.count() == 8
        sizes = [len(json.loads(one.body)["data"]["alerts"]) for one in Delivery.objects.order_by("id")]
        assert sum(sizes) == 4 * 5, "each alert once for each channel"

    def test_a_broken_channel_does_not_take_what_others_may_be_sent(
        self, query: Query, people: SimpleNamespace, desk: Channel, settings: Any
    ) -> None:
        settings.USER_QUOTAS = {**settings.USER_QUOTAS, "messages": 4}
        broken = channel_create(owner=people.owner, name="gone", url="https://hooks.example.org/gone", all_queries=False)
        rule_save(user=people.owner, name="all", channels=[desk, broken])
        Channel.objects.filter(pk=broken.pk).update(failures=BROKEN_AFTER)
        for minute in range(1, 6):
            alert(query, f"e{minute}", minute)
            sent(desk, minute)
        assert desk.deliveries.count() == 4
        assert broken.deliveries.count() >= 3, "each alert is another try"

    def test_a_digest_is_sent_once_despite_retries(self, query: Query, people: SimpleNamespace, desk: Channel) -> None:
        rule_save(user=people.owner, name="hourly", channels=[desk], digest="hourly")
        for minute in range(1, 5):
            alert(query, f"e{minute}", minute)
            Alert.objects.update(planned_at=None)  # as if a planner had died before its commit
            notifications_plan(NOON + timedelta(minutes=minute))
        for _ in range(3):
            assert sent(desk, 60) == [("digest", ["e1", "e2", "e3", "e4"])]
        assert Notification.objects.count() == 4

    @pytest.mark.parametrize("by", ["query", "region", "entity"])
    def test_the_first_alert_of_a_group_is_sent_at_once_and_the_others_as_a_digest(
        self, by: str, query: Query, people: SimpleNamespace, desk: Channel
    ) -> None:
        rule_save(user=people.owner, name="flood", channels=[desk], group_by=by, group_minutes=10)
        for minute, entity in ((0, "a"), (1, "a"), (2, "b"), (3, "a"), (11, "a")):
            alert(query, entity, minute)
        if by == "entity":
            at_ten = [("opened", ["a"]), ("opened", ["b"]), ("digest", ["a", "a"])]
        else:
            at_ten = [("opened", ["a"]), ("digest", ["a", "b", "a"])]
        assert sent(desk, 9) == [one for one in at_ten if one[0] == "opened"]
        assert sent(desk, 10) == at_ten
        assert sent(desk, 19) == at_ten, "the digest was a message of the group too"
        assert sent(desk, 20) == [*at_ten, ("digest", ["a"])]

    def test_messages_of_a_query_are_limited_per_hour(self, query: Query, people: SimpleNamespace, desk: Channel) -> None:
        Query.objects.update(calls_per_hour=2)
        rule_save(user=people.owner, name="all", channels=[desk])
        for minute in (0, 10, 20, 30, 61):
            alert(query, f"e{minute}", minute)
        first = [("opened", ["e0"]), ("opened", ["e10"])]
        assert sent(desk, 59) == first
        assert sent(desk, 62) == [*first, ("digest", ["e20", "e30"])], "the third within an hour of the second waits"
        assert sent(desk, 70) == [*first, ("digest", ["e20", "e30"]), ("digest", ["e61"])]

    def test_a_query_limited_to_one_alert_is_delivered_again_after_that_alert(self, query: Query, people: SimpleNamespace, desk: Channel) -> None:
        Query.objects.update(calls="once")
        rule_save(user=people.owner, name="all", channels=[desk])
        alert(query, "a", 0)
        alert(query, "a", 1)
        alert(query, "b", 2)
        assert sent(desk, 2) == [("opened", ["a"]), ("opened", ["b"])]
        Alert.objects.filter(entities=["a"]).update(over_at=NOON + timedelta(minutes=3))
        alert(query, "a", 4)
        assert [entities for _, entities in sent(desk, 4)] == [["a"], ["b"], ["a"]]

    def test_alerts_muted_while_waiting_are_left_out_of_the_digest(self, query: Query, people: SimpleNamespace, desk: Channel) -> None:
        rule_save(user=people.owner, name="hourly", channels=[desk], digest="hourly")
        alert(query, "a", 1)
        alert(query, "b", 2)
        mute = Mute.objects.create(owner=people.owner, feed=query.feed, entities=["a"], reason="x", window_from=NOON)
        Alert.objects.filter(entities=["a"]).update(mute=mute)
        assert sent(desk, 60) == [("digest", ["b"])]
        assert Delivery.objects.count() == 1

    def test_timing_is_kept_over_the_api_and_a_dry_run_counts_messages(
        self, query: Query, people: SimpleNamespace, desk: Channel, client_of: Callable[..., APIClient]
    ) -> None:
        client, rule = client_of(people.owner), {"name": "night", "channels": [desk.pk], "group_by": "query"}
        record(query, *(crossing(query, "in", entity, 10) for entity in "abc"))
        tried = client.post("/api/v1/routing-rules/dry-run", rule, format="json").json()["results"][0]
        assert (tried["count"], tried["messages"]) == (3, 2)
        made = client.post("/api/v1/routing-rules/", {**rule, "digest": "daily", "digest_at": "07:30"}, format="json").json()
        assert (made["digest"], made["digest_at"], made["group_minutes"]) == ("daily", "07:30:00", 30)
        for address in (f"/api/v1/routing-rules/{made['id']}/", f"/api/v1/channels/{desk.pk}/"):
            for wrong, pointer in (({"quiet_from": "22:00"}, "/quiet_until"), ({"zone": "Mars"}, "/zone"), ({"group_minutes": 0}, "/group_minutes")):
                assert client.patch(address, wrong, format="json").json()["faults"][0]["pointer"] == pointer
            assert client.patch(address, {"quiet_from": "22:00", "quiet_until": "06:00"}, format="json").status_code == 200
        changed = client.patch(f"/api/v1/queries/{query.pk}/", {"calls": "once", "calls_per_hour": 3}, format="json").json()
        assert (changed["calls"], changed["calls_per_hour"], changed["version"]) == ("once", 3, 1)


class TestTimingChanged:
    """What waits when quiet hours, a digest or a grouping are changed."""

    pytestmark = services

    @pytest.fixture
    def at(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
        return lambda minute: monkeypatch.setattr("webapp.alerts.waiting.timezone.now", lambda: NOON + timedelta(minutes=minute))

    def test_what_waits_is_sent_when_quiet_hours_of_a_channel_end_early(
        self, query: Query, people: SimpleNamespace, desk: Channel, at: Callable[[float], None]
    ) -> None:
        channel_update(channel=desk, user=people.owner, all_queries=True, quiet_from=time(11), quiet_until=time(18))
        alert(query, "a", 1)
        alert(query, "b", 2)
        at(10)
        channel_update(channel=desk, user=people.owner, quiet_until=time(12, 30))
        assert sent(desk, 29) == []
        at(29)
        channel_update(channel=desk, user=people.owner, name="bridge")
        channel_update(channel=desk, user=people.owner, quiet_from=time(11), quiet_until=time(19))
        assert sent(desk, 30) == [("digest", ["a", "b"])], "later quiet hours hold back nothing more"
        at(31)
        channel_update(channel=desk, user=people.owner, quiet_from=None, quiet_until=None)
        assert sent(desk, 24 * 60) == [("digest", ["a", "b"])], "each alert once"

    def test_what_waits_by_a_rule_is_sent_by_its_new_timing(
        self, query: Query, people: SimpleNamespace, desk: Channel, at: Callable[[float], None]
    ) -> None:
        rule = rule_save(user=people.owner, name="daily", channels=[desk], digest="daily", quiet_from=time(11), quiet_until=time(13))
        alert(query, "a", 1)
        at(10)
        rule_save(user=people.owner, rule=rule, digest="")
        assert sent(desk, 59) == []
        assert sent(desk, 60) == [("digest", ["a"])]

    @pytest.mark.parametrize("group_by", ["query", ""])
    def test_a_group_that_is_freed_stays_together_and_within_its_limit(
        self, group_by: str, query: Query, people: SimpleNamespace, desk: Channel, at: Callable[[float], None]
    ) -> None:
        rule = rule_save(user=people.owner, name="flood", channels=[desk], group_by="query", group_minutes=600)
        for minute, entity in ((0, "a"), (1, "b"), (2, "c")):
            alert(query, entity, minute)
            sent(desk, minute)
        at(10)
        rule_save(user=people.owner, rule=rule, group_minutes=20, group_by=group_by)
        together = [("opened", ["a"]), ("digest", ["b", "c"])]
        assert sent(desk, 19) == (together[:1] if group_by else together)
        assert sent(desk, 20) == together

    def test_a_group_held_by_quiet_hours_is_sent_together(
        self, query: Query, people: SimpleNamespace, desk: Channel, at: Callable[[float], None]
    ) -> None:
        rule = rule_save(user=people.owner, name="x", channels=[desk], group_by="query", quiet_from=time(11), quiet_until=time(18))
        alert(query, "a", 1)
        alert(query, "b", 2)
        at(10)
        rule_save(user=people.owner, rule=rule, quiet_from=None, quiet_until=None)
        assert sent(desk, 10) == [("digest", ["a", "b"])]

    def test_an_escalation_is_not_sent_before_its_time(
        self, query: Query, people: SimpleNamespace, desk: Channel, at: Callable[[float], None]
    ) -> None:
        rule = rule_save(user=people.owner, name="x", channels=[desk], after_minutes=30, quiet_from=time(11), quiet_until=time(18))
        alert(query, "a", 1)
        at(10)
        rule_save(user=people.owner, rule=rule, quiet_from=None, quiet_until=None)
        assert sent(desk, 30) == []
        assert sent(desk, 31) == [("digest", ["a"])]
