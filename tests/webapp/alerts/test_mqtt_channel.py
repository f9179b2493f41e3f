"""Alerts to a topic of a real broker: acknowledged by it, with a stable id,
only to permitted addresses."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paho.mqtt.client as paho
import pytest
from django.utils import timezone
from paho.mqtt.enums import CallbackAPIVersion
from rest_framework.test import APIClient

from tests.engine.sources.live.brokers import broker
from tests.webapp.alerts.test_lifecycle import crossing, record
from webapp.alerts.deliveries import channel_create, channel_send, deliveries_prepare, notifications_plan
from webapp.alerts.models import Channel, Delivery
from webapp.alerts.transports import mqtt
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def deliver(channel: Any) -> None:
    notifications_plan()
    deliveries_prepare()
    channel_send(channel_id=channel.pk)


def test_an_alert_reaches_a_topic_and_waits_while_the_broker_is_away(query: Query, people: SimpleNamespace, settings: Any, tmp_path: Path) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    with broker(tmp_path / "broker") as one:
        channel = channel_create(owner=people.owner, name="topic", kind="mqtt", url=f"mqtt://127.0.0.1:{one.port}/vedette/alerts")
        heard, subscribed, came = list[dict[str, Any]](), threading.Event(), threading.Event()
        reader = paho.Client(CallbackAPIVersion.VERSION2)
        reader.on_connect = lambda *_: reader.subscribe("vedette/#", qos=1)
        reader.on_subscribe = lambda *_: subscribed.set()

        def on_message(_client: Any, _data: Any, message: paho.MQTTMessage) -> None:
            heard.append({"topic": message.topic, "qos": message.qos, **json.loads(message.payload)})
            came.set()

        reader.on_message = on_message
        reader.connect("127.0.0.1", one.port)
        reader.loop_start()
        try:
            assert subscribed.wait(30)
            record(query, crossing(query, "in", "a", 10))
            deliver(channel)
            assert came.wait(30)
        finally:
            reader.disconnect()
            reader.loop_stop()
    sent = Delivery.objects.get()
    assert sent.sent_at is not None and sent.error == ""
    assert [(one["topic"], one["qos"], one["id"], one["data"]["alerts"][0]["entities"]) for one in heard] == [
        ("vedette/alerts", 1, str(sent.webhook_id), ["a"])
    ]
    record(query, crossing(query, "in", "b", 11))
    deliver(channel)
    waiting = Delivery.objects.get(sent_at=None)
    assert waiting.next_at > timezone.now() and "connection refused" in waiting.error


def test_internal_brokers_are_refused(query: Query, people: SimpleNamespace) -> None:
    channel = channel_create(owner=people.owner, name="topic", kind="mqtt", url="mqtt://127.0.0.1/x")
    record(query, crossing(query, "in", "a", 10))
    deliver(channel)
    assert "not a public one" in Delivery.objects.get().error


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        ("mqtts://broker.example.org/a/b", True),
        ("mqtt://u:p@broker.example.org:1883/a", True),
        ("mqtt://broker.example.org/", False),
        ("mqtt://broker.example.org/a/#", False),
        ("https://broker.example.org/a", False),
        ("mqtt://broker.example.org:22/a", False),
        ("mqtt://broker.example.org:x/a", False),
        ("", False),
    ],
)
def test_addresses_must_name_a_broker_and_one_topic(url: str, is_good: bool) -> None:
    assert (mqtt.refuse({"url": url}) == {}) is is_good


def test_the_password_is_not_shown_again_and_stays(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    made = client.post("/api/v1/channels/", {"name": "t", "kind": "mqtt", "url": "mqtts://ben:se:cret@b.example.org/a"}, format="json").json()
    assert made["url"] == "mqtts://ben:***@b.example.org/a"
    changed = client.patch(f"/api/v1/channels/{made['id']}/", {"name": "u", "url": made["url"]}, format="json").json()
    assert (changed["name"], changed["url"]) == ("u", made["url"])
    assert Channel.objects.get().url == "mqtts://ben:se:cret@b.example.org/a"
