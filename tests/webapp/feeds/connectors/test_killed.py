"""The connector process is killed while messages arrive: each is stored as often as the
protocol's guarantee says."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paho.mqtt.client as paho
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from paho.mqtt.enums import CallbackAPIVersion
from pyais import encode_dict

from tests.engine.sources.live.brokers import KafkaBroker, broker
from tests.webapp.feeds.connectors.lives import rows_of, run_through_kills
from webapp.connectors.services import connector_create
from webapp.feeds.models import Connector, DeadLetter
from webapp.feeds.services import feed_create

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

NOW, FIRST = 1_767_348_000_000, 200_000_000
PAUSE_S = 0.002
AT_LEAST = 300
"""Messages that come after the last start."""
KILLED_AT = ("ingest.after_append=kill@3",)
"""The rows of the third delivery are in the log, but PostgreSQL does not know of them, and none of
its messages is acknowledged."""


@dataclass
class Outside:
    """The other side of a connector: `send` publishes a message, `owed` are the messages that
    must be in the log by now."""

    kind: str
    settings: dict[str, Any]
    send: Callable[[int], None]
    owed: Callable[[int], set[int]] = lambda sent: set(range(sent))


def message(n: int) -> bytes:
    return json.dumps({"entity": str(FIRST + n), "t": NOW + n, "x": 1, "y": 2}).encode()


@contextmanager
def mqtt(folder: Path) -> Iterator[Outside]:
    with broker(folder) as server:
        sender = paho.Client(CallbackAPIVersion.VERSION2)
        sender.connect("127.0.0.1", server.port)
        sender.loop_start()

        def send(n: int) -> None:
            sender.publish("fleet/x", message(n), qos=1)

        yield Outside("mqtt", {"host": "127.0.0.1", "port": server.port, "topic": "fleet/#"}, send)
        sender.disconnect()
        sender.loop_stop()


@contextmanager
def kafka(folder: Path) -> Iterator[Outside]:
    server = KafkaBroker(folder)
    server.start()
    try:
        servers = {"bootstrap.servers": f"127.0.0.1:{server.port}", "log_level": 0}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("fleet", 3, 1)])["fleet"].result(60)
        producer = Producer({**servers, "linger.ms": 1})

        def send(n: int) -> None:
            producer.produce("fleet", message(n), key=str(n))
            producer.poll(0)

        yield Outside("kafka", {"servers": f"127.0.0.1:{server.port}", "topic": "fleet"}, send)
    finally:
        server.stop()


@contextmanager
def ais(folder: Path) -> Iterator[Outside]:
    """A receiver to which we connect. It repeats nothing: only what it sends over a
    surviving connection is owed."""
    server = socket.create_server(("127.0.0.1", 0))
    peers: list[socket.socket] = []
    sent_to: dict[socket.socket, set[int]] = {}

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer, _ = server.accept()
                sent_to[peer] = set()
                peers.append(peer)

    def send(n: int) -> None:
        (sentence,) = encode_dict({"type": 1, "mmsi": FIRST + n, "lat": 2.0, "lon": 1.0})
        if peers:
            peer = peers[-1]
            with suppress(OSError):
                peer.sendall(sentence.encode() + b"\r\n")
                sent_to[peer].add(n)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield Outside("ais-tcp", {"host": "127.0.0.1", "port": server.getsockname()[1]}, send, lambda sent: sent_to[peers[-1]])
    finally:
        server.shutdown(socket.SHUT_RDWR)
        for one in (server, *peers):
            one.close()


class Flow(threading.Thread):
    """Sends messages, one after the other, until `over`."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(daemon=True)
        self.outside, self.over, self.sent = outside, threading.Event(), 0

    def run(self) -> None:
        while not self.over.wait(PAUSE_S):
            self.outside.send(self.sent)
            self.sent += 1


def stored() -> Counter[int]:
    return Counter(int(row["entity"]) - FIRST for row in rows_of("sea"))


@pytest.mark.parametrize("protocol", [mqtt, ais, pytest.param(kafka, marks=pytest.mark.slow)])
def test_messages_are_stored_as_guaranteed_through_kills(
    protocol: Callable[[Path], Any], people: SimpleNamespace, tmp_path: Path, settings: Any
) -> None:
    settings.WEBHOOK_NETWORKS, settings.VAR, settings.EVENT_LOG_ROOT = ["127.0.0.0/8"], tmp_path, tmp_path / "log-of-events"
    sea = feed_create(owner=people.owner, name="sea", title="Sea", crs="geographic", team=people.harbour, columns={}, ahead=None)
    with protocol(tmp_path / "outside") as outside:
        connector_create(feed=sea, name="one", kind=outside.kind, settings=outside.settings)
        flow = Flow(outside)
        came_before = list[int]()

        def done(lives: int) -> bool:
            state = Connector.objects.get().state
            if lives == 1 and state == "running" and not flow.is_alive():
                flow.start()
            if lives <= len(KILLED_AT):
                return False
            if flow.is_alive():
                came_before.append(len(stored()))
                if came_before[-1] - came_before[0] < AT_LEAST:
                    return False
                flow.over.set()
                flow.join()
            return outside.owed(flow.sent) <= stored().keys() and Connector.objects.get().rows >= len(stored())

        lives = run_through_kills(tmp_path, KILLED_AT, done)
    found = stored()
    assert lives == len(KILLED_AT) + 1
    assert set(found.values()) == {1}, "nothing is doubled"
    assert found.keys() <= set(range(flow.sent)) and not DeadLetter.objects.exists()
    if protocol is not ais:
        assert len(found) == flow.sent, "nothing is missing"
