"""Answers by MQTT, with a real broker on loopback."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from engine.sinks.live import Keyed
from engine.sinks.live.kinds import sink_kinds
from engine.sinks.live.mqtt import MqttSink
from engine.sources.live import SourceUnavailable
from tests.engine.sources.live.brokers import Broker, broker
from tests.engine.sources.live.loopback import Loopback

KIND = sink_kinds()["mqtt-answers"]
END_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("broker")) as one:
        yield one


def sink(server: Broker, identity: str = "one", **chosen: Any) -> MqttSink:
    settings = {field.name: field.default for field in KIND.fields} | {"host": "127.0.0.1", "port": server.port, "topic": "yard"} | chosen
    assert KIND.check(settings) == {}
    return MqttSink(settings, Loopback(), identity)


@contextmanager
def listening(server: Broker, topic: str) -> Iterator[list[tuple[str, str]]]:
    """(topic, text) of all messages from now on; retained ones come first."""
    found: list[tuple[str, str]] = []
    ready = threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.on_connect = lambda *_: client.subscribe(topic, qos=1)
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = lambda _client, _data, message: found.append((message.topic, message.payload.decode()))
    client.connect("127.0.0.1", server.port)
    client.loop_start()
    try:
        assert ready.wait(END_S)
        yield found
    finally:
        client.disconnect()
        client.loop_stop()


def wait_for(found: list[tuple[str, str]], last: tuple[str, str]) -> None:
    end = time.monotonic() + END_S
    while last not in found:
        assert time.monotonic() < end, found[-5:]
        time.sleep(0.01)


@pytest.mark.parametrize("version", ["5", "3"])
def test_each_answer_has_a_topic_and_its_changes_come_in_order(server: Broker, version: str) -> None:
    changes = [Keyed(f"a{n % 7}", None if n % 11 == 5 else str(n), n) for n in range(500)]
    with closing(sink(server, version=version)) as out, listening(server, "yard/+") as found:
        out.write(changes)
        out.write([Keyed("end", "1", 500)])
        wait_for(found, ("yard/end", "1"))
    assert found == [*((f"yard/{one.key}", one.value or "") for one in changes), ("yard/end", "1")]


def test_late_subscribers_get_the_last_message_of_each_answer_not_retracted(server: Broker) -> None:
    with closing(sink(server, topic="kept", retained=True)) as out:
        out.write([Keyed("a", "1", 1), Keyed("b", "2", 2), Keyed("a", "3", 3), Keyed("c", "4", 4), Keyed("b", None, 5)])
    with listening(server, "kept/+") as found:
        wait_for(found, ("kept/c", "4"))
        wait_for(found, ("kept/a", "3"))
    assert sorted(found) == [("kept/a", "3"), ("kept/c", "4")]


def test_messages_of_a_former_process_cannot_overtake_newer_ones(server: Broker) -> None:
    with closing(sink(server, topic="fenced")) as stale, listening(server, "fenced/+") as found:
        stale.write([Keyed("a", "1", 1)])
        with closing(sink(server, topic="fenced")) as fresh:
            fresh.write([Keyed("a", "3", 3)])
            with pytest.raises(SourceUnavailable):
                stale.write([Keyed("a", "2", 2)])
            fresh.write([Keyed("end", "4", 4)])
        wait_for(found, ("fenced/end", "4"))
    assert found == [("fenced/a", "1"), ("fenced/a", "3"), ("fenced/end", "4")]


def test_a_batch_is_written_again_when_the_broker_dies(tmp_path: Path) -> None:
    with broker(tmp_path) as server:
        out = sink(server, retained=True)
        out.write([Keyed("a", "1", 1)])
        server.stop(kill=True)
        with closing(out), pytest.raises(SourceUnavailable):
            out.write([Keyed("a", "2", 2)])
        with pytest.raises(SourceUnavailable, match="cannot be reached"):
            sink(server)
        server.start()
        with closing(sink(server, retained=True)) as again:
            again.write([Keyed("a", "2", 2)])
        with listening(server, "yard/+") as found:
            wait_for(found, ("yard/a", "2"))
        assert found == [("yard/a", "2")]


def test_an_idle_sink_notices_that_the_broker_died(tmp_path: Path) -> None:
    with broker(tmp_path) as server, closing(sink(server)) as out:
        out.check()
        server.stop(kill=True)
        with pytest.raises(SourceUnavailable, match="ended the connection"):
            check_until_it_fails(out)


def check_until_it_fails(out: MqttSink) -> None:
    end = time.monotonic() + END_S
    while time.monotonic() < end:
        out.check()
        time.sleep(0.01)


@pytest.mark.parametrize("topic", ["yard/#", "+/yard", "$SYS/yard"])
def test_an_invalid_topic_is_refused(topic: str) -> None:
    assert "topic" in KIND.check({"topic": topic})
