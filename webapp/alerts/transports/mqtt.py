"""Messages to a topic of an MQTT broker (3.1.1), with QoS 1: a message is sent when the
broker has acknowledged it.

At least once; the `id` in each message stays the same over all attempts. The address is
`mqtt[s]://[user:password@]host[:port]/topic`.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import paho.mqtt.client as paho
from django.conf import settings
from paho.mqtt.enums import CallbackAPIVersion

from engine.model.messages import Message, message_of
from webapp.alerts.models import Delivery
from webapp.alerts.reasons import reason_of
from webapp.alerts.webhooks import Answer
from webapp.config.outside import RefusedAddress, check_host, is_named

LONGEST = timedelta(seconds=30)
CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 10.0
PORTS = {"mqtt": 1883, "mqtts": 8883}
TOPIC_LENGTH = 200
TAKEN = 200


def refuse(attributes: Mapping[str, Any]) -> dict[str, Message]:
    """The address names a broker and one topic."""
    try:
        text = attributes.get("url") or ""
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return {"url": Message("The address cannot be read: {why}.", why=error)}
    topic = _topic(parts)
    if parts.scheme not in PORTS or not parts.hostname:
        return {"url": Message("As mqtts://user:password@broker.example.org:8883/vedette/alerts.")}
    if not topic or set("+#?\0") & {*topic, *text.rpartition("@")[2]} or len(topic) > TOPIC_LENGTH:
        return {"url": Message("The path is the topic: 1 to {most} characters, without +, # and ?.", most=TOPIC_LENGTH)}
    if port is not None and port not in PORTS.values() and not settings.WEBHOOK_NETWORKS:
        return {"url": Message("Port {port} is not a port of brokers: {known}.", port=port, known=", ".join(map(str, PORTS.values())))}
    try:
        check_host(parts.hostname)
    except RefusedAddress as error:
        return {"url": message_of(error)}
    return {}


def send(delivery: Delivery, now: datetime) -> Answer:
    """Publishes the message and waits until the broker has it."""
    parts = urlsplit(delivery.channel.url)
    body = json.dumps({"id": str(delivery.webhook_id), **json.loads(delivery.body)})
    client = _Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
    answered = threading.Event()
    problems: list[Message | None] = []

    def connected(_client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            problems.append(Message("The broker refused the connection: {why}", why=reason))
            answered.set()
            return
        client.publish(_topic(parts), body, qos=1)

    def published(_client: Any, _data: Any, _id: Any, _reason: Any, _properties: Any) -> None:
        problems.append(None)
        answered.set()

    client.on_connect, client.on_publish = connected, published
    if parts.username:
        client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
    if parts.scheme == "mqtts":
        client.tls_set_context(ssl.create_default_context())
    try:
        client.connect(parts.hostname or "", parts.port or PORTS[parts.scheme])
        client.loop_start()
        answered.wait(TOTAL_SECONDS)
    except (OSError, RefusedAddress) as error:
        return Answer(None, reason_of(error))
    finally:
        client.disconnect()
        client.loop_stop()
    late = Message("The broker did not acknowledge the message within {seconds} s.", seconds=f"{TOTAL_SECONDS:g}")
    problem = problems[0] if problems else late
    return Answer(TAKEN) if problem is None else Answer(None, problem)


class _Client(paho.Client):
    """Connects to the checked address, under the requested host name."""

    def _create_socket_connection(self) -> socket.socket:
        infos = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        addresses = [str(sockaddr[0]) for *_, sockaddr in infos]
        for address in addresses:
            if not is_named(address) and self._port not in PORTS.values():
                raise RefusedAddress(Message("Port {port} is not a port of brokers.", port=self._port))
        return socket.create_connection((addresses[0], self._port), CONNECT_SECONDS)


def _topic(parts: SplitResult) -> str:
    return unquote(parts.path.removeprefix("/"))
