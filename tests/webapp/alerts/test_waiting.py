"""A timing that is changed while alerts are being planned, or while their channel is removed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import time, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from tests.webapp.alerts.test_lifecycle import crossing, record
from tests.webapp.config.test_room import waits_or_ends
from webapp.alerts.deliveries import channel_create, channel_update, notifications_plan
from webapp.alerts.models import Alert, Channel, Notification, RoutingRule
from webapp.alerts.rules import rule_save
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


def by_channel(channel: Channel, rule: RoutingRule, people: SimpleNamespace) -> Any:
    return channel_update(channel=channel, user=people.owner, digest="")


def by_rule(channel: Channel, rule: RoutingRule, people: SimpleNamespace) -> Any:
    return rule_save(user=people.owner, rule=rule, digest="")


@pytest.mark.parametrize(("change", "of_channel"), [(by_channel, True), (by_rule, False)])
def test_what_is_being_planned_is_freed_too(change: Callable[..., Any], of_channel: bool, query: Query, people: SimpleNamespace) -> None:
    """It is planned by the timing before, and stored after the change has begun."""
    timing: dict[str, Any] = {"digest": "daily", "digest_at": (timezone.now() + timedelta(hours=5)).time()}
    channel = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x", all_queries=False, **(timing if of_channel else {}))
    rule = rule_save(user=people.owner, name="all", channels=[channel], **({} if of_channel else timing))
    record(query, crossing(query, "in", "a", 10))
    Alert.objects.update(opened_at=timezone.now())
    with ThreadPoolExecutor(1) as thread:
        try:
            with transaction.atomic():
                assert notifications_plan() == 1
                assert Notification.objects.get().due_at > timezone.now() + timedelta(hours=4)
                work = thread.submit(change, channel, rule, people)
                waits_or_ends(work)
                assert not work.done()
            work.result(20)
        finally:
            thread.submit(connections.close_all).result()
    assert Notification.objects.get().due_at <= timezone.now()


def test_a_change_does_not_wait_for_the_removal_of_what_waits(query: Query, people: SimpleNamespace) -> None:
    timing: dict[str, Any] = {"quiet_from": time(0), "quiet_until": time(23, 59, 59)}
    channel = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x", **timing)
    record(query, crossing(query, "in", "a", 10))
    Alert.objects.update(opened_at=timezone.now())
    notifications_plan()
    with ThreadPoolExecutor(1) as thread:
        try:
            with transaction.atomic():
                Notification.objects.all().delete()
                thread.submit(channel_update, channel=channel, user=people.owner, quiet_from=None, quiet_until=None).result(20)
        finally:
            thread.submit(connections.close_all).result()
    assert not Notification.objects.exists()
