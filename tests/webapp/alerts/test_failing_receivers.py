"""Webhooks whose receiver fails: it rests between attempts, its messages wait for
it, and users see why."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.alerts.receiver import Receiver, deliver
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts import deliveries
from webapp.alerts.models import Channel, Delivery
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def test_retry_after_delays_all_messages_of_a_receiver(query: Query, channel: Channel, receiver: Receiver) -> None:
    receiver.statuses = [429]
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 10))
    assert deliver() == 1, "the second one would get the same answer"
    channel.refresh_from_db()
    assert channel.not_before is not None and 3500 < (channel.not_before - timezone.now()).total_seconds() <= 3600
    Delivery.objects.update(next_at=timezone.now())
    record(query, crossing(query, "in", "c", 11))
    assert (deliver(), len(receiver.got)) == (0, 1), "nor does a new one go before"
    Channel.objects.update(not_before=timezone.now())
    assert (deliver(), Channel.objects.get().not_before) == (3, None)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 3


def test_failed_deliveries_are_sent_as_soon_as_the_receiver_is_back(query: Query, channel: Channel, receiver: Receiver) -> None:
    receiver.statuses = [500] * 3
    record(query, *(crossing(query, "in", entity, 10) for entity in "abc"))
    assert deliver() == 3
    Delivery.objects.update(next_at=timezone.now() + timedelta(hours=8))
    record(query, crossing(query, "in", "d", 11))
    assert (deliver(), Delivery.objects.filter(sent_at=None).count()) == (4, 0)


def away(query: Query, receiver: Receiver) -> None:
    """Five messages have failed; more would fail."""
    receiver.statuses = [500] * 5
    record(query, *(crossing(query, "in", entity, 10) for entity in "abcde"))
    deliver()
    assert Channel.objects.get().failures == 5


def test_a_receiver_that_is_away_rests_between_attempts(query: Query, channel: Channel, receiver: Receiver) -> None:
    """Each of many messages that wait for it would hold up the messages of other channels."""
    away(query, receiver)
    record(query, crossing(query, "in", "f", 11))
    Delivery.objects.update(next_at=timezone.now())
    assert deliver() == 0
    receiver.statuses = [500, 500]
    for wait in (60, 90):
        Channel.objects.update(not_before=timezone.now())
        assert deliver() == 1
        rest = Channel.objects.get().not_before - timezone.now()  # type: ignore[operator]
        assert wait - 5 < rest.total_seconds() <= wait
    Channel.objects.update(not_before=timezone.now())
    assert (deliver(), Channel.objects.get().not_before, Delivery.objects.filter(sent_at=None).count()) == (6, None, 0)


def test_a_message_that_a_user_sends_again_goes_first(query: Query, channel: Channel, receiver: Receiver) -> None:
    away(query, receiver)
    Delivery.objects.update(next_at=timezone.now())
    chosen = Delivery.objects.latest("id")
    deliveries.delivery_retry(delivery=chosen)
    receiver.statuses = [500]
    assert deliver() == 1
    chosen.refresh_from_db()
    assert chosen.attempts == 2


def test_a_channel_that_fails_shows_why_and_when_it_is_tried_again(
    query: Query, channel: Channel, receiver: Receiver, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    receiver.statuses = [302, 429]
    record(query, crossing(query, "in", "a", 10), crossing(query, "in", "b", 10))
    deliver()
    (row,) = client.get("/api/v1/channels/").json()["results"]
    assert (row["problem"], row["failures"]) == ("HTTP 429: the receiver gets too many messages.", 2)
    sent = client.get(f"/api/v1/channels/{channel.pk}/deliveries").json()["results"]
    assert {one["next_at"] for one in sent} == {row["not_before"]}, "none is sent before the channel gets messages again"
    Channel.objects.update(not_before=None)
    Delivery.objects.update(next_at=timezone.now())
    deliver()
    (row,) = client.get("/api/v1/channels/").json()["results"]
    assert (row["problem"], row["not_before"]) == ("", None)


def test_a_test_that_arrives_ends_the_failures_of_a_channel(query: Query, channel: Channel, receiver: Receiver) -> None:
    away(query, receiver)
    channel.refresh_from_db()
    assert deliveries.channel_test(channel=channel).ok
    assert Channel.objects.get().failures == 0
    assert (deliver(), Delivery.objects.filter(sent_at=None).count()) == (5, 0)


def test_a_rejected_message_keeps_its_retry_schedule(query: Query, channel: Channel, receiver: Receiver) -> None:
    """Other messages that arrive do not use up its attempts."""
    receiver.statuses = [400]
    record(query, *(crossing(query, "in", entity, 10) for entity in "abc"))
    assert (deliver(), Delivery.objects.get(sent_at=None).attempts) == (3, 1)


def test_status_410_switches_the_channel_off(query: Query, channel: Channel, receiver: Receiver) -> None:
    receiver.statuses = [410]
    record(query, crossing(query, "in", "a", 10))
    deliver()
    channel.refresh_from_db()
    assert not channel.enabled and "410" in channel.disabled_reason
    record(query, crossing(query, "in", "b", 11))
    assert deliver() == 0 and len(receiver.got) == 1
