"""MQTT: answers as messages, each answer under its own topic.

All messages of quality 1 that were sent on one connection come in their order, and a broker closes
an earlier connection with the same client id before: what a killed process had under way cannot
come after what the next one sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from engine.model.messages import Message
from engine.sinks.live import WANTED, Keyed, SinkKind
from engine.sources.live import HOST, Field, FieldType, Network, Settings, SourceUnavailable
from engine.sources.live.mqtt import ACCESS, CONNECT_S, KEEP_ALIVE_S, PORT, VERSION, NetworkClient, refused_for, secure

TAKEN_S = 30.0
"""How long the broker may take to acknowledge a batch."""
MOMENT_S = 0.1
TOPIC_BYTES = 60_000


class MqttSink:
    """The topics below one."""

    def __init__(self, settings: Settings, network: Network, identity: str) -> None:
        self._topic, self._keeps = settings["topic"].strip(), settings["retained"]
        self._problem, self._about = "", tuple[str, ...]()
        self._ready = threading.Event()
        is_5 = settings["version"] == "5"
        self._client = NetworkClient(
            CallbackAPIVersion.VERSION2,
            client_id=f"vedette-{identity}" if identity else "",
            protocol=MQTTProtocolVersion.MQTTv5 if is_5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        self._client.network = network
        secure(self._client, settings)
        self._client.on_connect, self._client.on_disconnect = self._connected, self._disconnected
        self._connect(settings["host"], settings["port"])

    def _connect(self, host: str, port: int) -> None:
        try:
            self._client.connect(host, port, KEEP_ALIVE_S)
        except (OSError, ValueError) as error:
            raise SourceUnavailable(Message("The broker cannot be reached: {error}", error=error)) from error
        self._client.loop_start()
        if not self._ready.wait(CONNECT_S):
            self._problem = self._problem or Message("The broker did not answer.")
        if self._problem:
            self.close()
            raise SourceUnavailable(self._problem, *self._about)

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._problem, self._about = Message("The broker refuses the connection: {reason}", reason=reason), refused_for(reason)
        self._ready.set()

    def _disconnected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._problem = self._problem or Message("The broker ended the connection: {reason}", reason=reason)
        self._ready.set()

    def write(self, records: Sequence[Keyed]) -> None:
        end = time.monotonic() + TAKEN_S
        for sent in [self._publish(one) for one in records]:
            while not self._problem and not sent.is_published() and time.monotonic() < end:
                sent.wait_for_publish(MOMENT_S)
            if not sent.is_published():
                late = Message("The broker did not acknowledge all messages within {seconds} s.", seconds=f"{TAKEN_S:g}")
                raise SourceUnavailable(self._problem or late)

    def _publish(self, one: Keyed) -> paho.MQTTMessageInfo:
        # An empty message takes a retained one away.
        sent = self._client.publish(f"{self._topic}/{one.key}", one.value or "", qos=1, retain=self._keeps)
        if sent.rc != paho.MQTT_ERR_SUCCESS:
            raise SourceUnavailable(self._problem or paho.error_string(sent.rc))
        return sent

    def check(self) -> None:
        if self._problem:
            raise SourceUnavailable(self._problem)

    def description(self) -> str:
        return Message("The broker can be reached. Answers will be messages of the topics {topic}/… Nothing was sent.", topic=self._topic)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def check(settings: Settings) -> dict[str, str]:
    """The faults of the topic."""
    topic = settings["topic"].strip()
    if "+" in topic or "#" in topic or topic.startswith("$") or "\0" in topic or len(topic.encode()) > TOPIC_BYTES:
        return {"topic": "A topic to send to has no + and #, and does not begin with $."}
    return {}


KINDS = (
    SinkKind(
        "mqtt-answers",
        "MQTT: answers to topics",
        (
            HOST,
            PORT,
            Field("topic", "Topic", required=True, hint="vedette/yard: each answer is a message of vedette/yard/ID. An empty message withdraws it."),
            *WANTED,
            Field("retained", "The broker keeps the last message of each answer", FieldType.BOOLEAN, False, hint="Later subscribers get them."),
            VERSION,
            *ACCESS,
        ),
        "Each change of an answer at least once (quality 1), in the order in which it was stored, even when a process dies. "
        "The last message of each topic is the answer as it is stored; an empty one says that it was withdrawn. "
        "Subscribers that were away get what their own session keeps.",
        MqttSink,
        check=check,
    ),
)
