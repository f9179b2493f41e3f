"""Alerts to a topic of a real broker: acknowledged, under a stable key,
only to permitted addresses."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.engine.sources.live.brokers import KafkaBroker
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import channel_create, channel_send, deliveries_prepare, notifications_plan
from webapp.alerts.models import Channel, Delivery
from webapp.alerts.transports import kafka
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
END_S = 90.0


def deliver(channel: Channel) -> None:
    notifications_plan()
    deliveries_prepare()
    channel_send(channel_id=channel.pk)


@pytest.mark.slow
def test_all_messages_of_an_alert_have_one_key(query: Query, people: SimpleNamespace, settings: Any, tmp_path: Path) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    one = KafkaBroker(tmp_path)
    channel = channel_create(owner=people.owner, name="topic", kind="kafka", url=f"kafka://127.0.0.1:{one.port}/alerts")
    record(query, crossing(query, "in", "a", 10))
    deliver(channel)
    sent = Delivery.objects.get()
    assert sent.sent_at is None and sent.error.startswith("Sending to Kafka failed: "), "the broker is away: the message waits"
    one.start()
    try:
        servers = {"bootstrap.servers": f"127.0.0.1:{one.port}", "log_level": 0}
        deliver_again(channel)
        assert "cannot be written" in Delivery.objects.get().error, "there is no such topic yet"
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("alerts", 1, 1)])["alerts"].result(END_S)
        for _ in range(2):
            # The second time, as after a crash between the broker's
            # acknowledgement and its recording.
            Delivery.objects.update(sent_at=None)
            deliver_again(channel)
        consumer = Consumer({**servers, "group.id": "test"})
        consumer.assign([TopicPartition("alerts", 0, 0)])
        messages = consumer.consume(2, END_S)
        consumer.close()
    finally:
        one.stop(kill=True)
    sent.refresh_from_db()
    assert sent.sent_at is not None and sent.error == ""
    assert {message.key().decode() for message in messages} == {str(sent.webhook_id)} and len(messages) == 2
    body = json.loads(messages[0].value())
    assert (body["id"], body["type"], body["data"]["alerts"][0]["entities"]) == (str(sent.webhook_id), "alerts.opened", ["a"])


def deliver_again(channel: Channel) -> None:
    Delivery.objects.update(next_at=Delivery.objects.get().created_at)
    channel_send(channel_id=channel.pk)


def test_internal_brokers_are_refused(query: Query, people: SimpleNamespace) -> None:
    channel = channel_create(owner=people.owner, name="topic", kind="kafka", url="kafka://127.0.0.1/x")
    record(query, crossing(query, "in", "a", 10))
    deliver(channel)
    assert "not a public one" in Delivery.objects.get().error
    assert channel.shown_url == "kafka://127.0.0.1/x"
    channel.url = "kafkas://ben:se:cret@b.example.org:9093,c.example.org/x"
    assert channel.shown_url == "kafkas://ben:***@b.example.org:9093,c.example.org/x"


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("kafkas://b.example.org:9093,c.example.org:9093/a.b_c-d", True),
        ("kafka://u:p@b.example.org/a?mechanism=SCRAM-SHA-512", True),
        ("kafka://b.example.org/a?mechanism=GSSAPI", False),
        ("kafka://b.example.org/", False),
        ("kafka://b.example.org/a/b", False),
        ("kafka://b.example.org:x/a", False),
        ("kafka://b.example.org,/a", False),
        ("kafka://127.0.0.1/a", False),
        ("https://b.example.org/a", False),
        ("kafka://[::1/a", False),
        ("", False),
    ],
)
def test_addresses_must_name_brokers_and_one_topic(url: str, is_good: bool) -> None:
    assert (kafka.refuse({"url": url}) == {}) is is_good
