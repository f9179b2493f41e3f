"""MQTT against a real broker on loopback."""

from __future__ import annotations

import datetime
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version as version_of
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from engine.sources.formats import InvalidLine
from engine.sources.live import BATCH_ROWS, SourceUnavailable
from engine.sources.live.mqtt import FIELDS, KINDS, TopicTemplate, _Buffered, _Message, _room
from tests.engine.sources.live.brokers import Broker, broker
from tests.engine.sources.live.loopback import Loopback

(MQTT,) = KINDS
END_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("broker")) as one:
        yield one


def settings_for(one: Broker, **given: Any) -> dict[str, Any]:
    found = {field.name: field.default for field in FIELDS} | {"host": "127.0.0.1", "port": one.port} | given
    assert MQTT.check(found) == {}
    return found


def source_at(one: Broker, identity: str = "test", **given: Any) -> Any:
    return closing(MQTT.open(settings_for(one, **given), Loopback(), identity))


class Publisher:
    """Publishes with quality 1 and waits until the broker has it all."""

    def __init__(self, one: Broker, *, certificate: Path | None = None) -> None:
        self.client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        if certificate is not None:
            self.client.tls_set(str(certificate))
        self.client.max_inflight_messages_set(500)
        self.client.connect("localhost" if certificate else "127.0.0.1", one.port)
        self.client.loop_start()

    def send(self, *messages: tuple[str, bytes]) -> None:
        for info in [self.client.publish(topic, payload, qos=1) for topic, payload in messages]:
            info.wait_for_publish(END_S)
            assert info.is_published()

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def publisher(server: Broker) -> Iterator[Publisher]:
    one = Publisher(server)
    yield one
    one.close()


def taken(source: Any, count: int, offset: Any = None, *, acknowledged: bool = True) -> tuple[list[Any], Any]:
    """At least `count` records, and the offset after them."""
    found: list[Any] = []
    end = time.monotonic() + END_S
    for batch in source.batches(offset):
        found += batch.records
        offset = batch.offset
        if acknowledged:
            source.acknowledge(offset)
        if len(found) >= count:
            return found, offset
        assert time.monotonic() < end, f"only {len(found)} of {count} records came"
    raise AssertionError


@pytest.mark.parametrize("version", ["3", "5"])
@pytest.mark.parametrize("quality", ["0", "1"])
def test_topics_and_payloads_become_records(server: Broker, publisher: Publisher, version: str, quality: str) -> None:
    topic = f"fleet{version}{quality}/{{entity}}/{{event}}"
    with source_at(server, f"plain{version}{quality}", topic=topic, version=version, quality=quality) as source:
        base = f"fleet{version}{quality}"
        publisher.send(
            (f"{base}/van7/moved", b'{"t": 1, "at": {"lat": 52.5}}'),
            (f"{base}/van8/moved", b'[{"t": 2}, {"t": 3}, 4]'),
            (f"{base}/x", b"another topic"),
            (f"{base}/van9/left", b"\xff\x00 no JSON"),
        )
        found, _ = taken(source, 5)
    records = [one for one in found if not isinstance(one, InvalidLine)]
    assert [(one["entity"], one["event"], one["t"], one["topic"]) for one in records] == [
        ("van7", "moved", 1, f"{base}/van7/moved"),
        ("van8", "moved", 2, f"{base}/van8/moved"),
        ("van8", "moved", 3, f"{base}/van8/moved"),
    ]
    assert ["not an object" in one.problem or "cannot be read as JSON" in one.problem for one in found if isinstance(one, InvalidLine)] == [
        True,
        True,
    ]
    assert all(abs(one["received"] - time.time() * 1000) < 60_000 for one in records)


def publish_packet(topic: bytes, payload: bytes, *, mid: int | None, properties: bytes | None = None, flags: int = 0) -> bytes:
    number = b"" if mid is None else mid.to_bytes(2, "big")
    more = b"" if properties is None else bytes([len(properties)]) + properties
    body = len(topic).to_bytes(2, "big") + topic + number + more + payload
    size = bytes([len(body)]) if len(body) < 128 else bytes([len(body) % 128 | 128, len(body) // 128])
    return bytes([0x30 | flags | (2 if mid is not None else 0)]) + size + body


@pytest.mark.parametrize("is_5", [False, True])
def test_messages_that_arrive_together_are_read_together(is_5: bool) -> None:
    """The client parses one packet of the received bytes; our reader parses the complete packets
    after it, up to an invalid or incomplete one."""
    none, some = (b"", b"\x01\x01") if is_5 else (None, None)
    first = publish_packet(b"a/1", b"first", mid=None, properties=none)
    packets = [
        publish_packet(b"a/2", b"x" * 1_000, mid=7, properties=some, flags=8),
        publish_packet(b"a/\xc3\xa4", b"", mid=None, properties=none, flags=1),
    ]
    ping = b"\xd0\x00"
    behind = publish_packet(b"a/4", b"cut off", mid=9, properties=none)
    ours, peer = socket.socketpair()
    with ours, peer:
        peer.sendall(first + b"".join(packets) + ping + behind[:-1])
        buffered = _Buffered(ours)
        assert buffered.recv(len(first)) == first
        assert buffered.messages(is_5=is_5) == [_Message("a/2", b"x" * 1_000, 7, 1, True), _Message("a/ä", b"", 0, 0, False)]
        assert buffered.messages(is_5=is_5) == [] and buffered.recv(2) == ping
        assert buffered.messages(is_5=is_5) == [] and buffered.pending() == len(behind) - 1


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_stop_the_reading_of_messages(data: bytes, is_5: bool) -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        peer.sendall(b"x0" + data)
        buffered = _Buffered(ours)
        buffered.recv(1)
        found = buffered.messages(is_5=is_5)
        assert buffered.pending() + sum(len(one.payload) for one in found) <= len(data) + 1


def test_messages_with_many_records_are_delivered_in_bounded_batches(server: Broker, publisher: Publisher) -> None:
    """A few bytes become thousands of records: sixty megabytes of them
    would not fit into memory."""
    with source_at(server, "many", topic="many") as source:
        publisher.send(*[("many", b"[" + b"1," * 4_999 + b"1]")] * 6)
        batches = source.batches(None)
        sizes: list[int] = []
        while sum(sizes) < 30_000:
            batch = next(batches)
            sizes.append(len(batch.records))
            source.acknowledge(batch.offset)
    assert sum(sizes) == 30_000 and max(sizes) <= BATCH_ROWS + 5_000


def test_topics_count_towards_the_size_of_a_batch() -> None:
    assert _room(_Message("t" * 60_000, b"", 1, 1, False)) == 60_000


def test_the_mqtt_client_has_the_internals_that_the_reader_uses() -> None:
    """They are not a public API (decision 38): with another version of the client, review its
    `loop_read`, `_packet_read` and `_sock_close`."""
    assert version_of("paho-mqtt") == "2.2.0"
    client = paho.Client(CallbackAPIVersion.VERSION2)
    used = ("_create_socket_connection", "_create_socket", "_sock_close", "_packet_queue", "_in_packet", "_protocol", "_sock", "_host", "_port")
    assert [name for name in used if not hasattr(client, name)] == []
    assert client._in_packet["command"] == 0
    assert list(signature(client._packet_queue).parameters) == ["command", "packet", "mid", "qos", "info"]


def test_csv_lines_become_records(server: Broker, publisher: Publisher) -> None:
    with source_at(server, "csv", topic="csv/#", format="csv", csv_columns="entity,t,x,y") as source:
        publisher.send(("csv/a", b"a,1,2.5,3\nb,2,2.5\n"), ("csv/b", b'c,3,"4",5'))
        found, _ = taken(source, 3)
    assert [found[0]["entity"], found[2]["x"]] == ["a", "4"] and "values in the line: 3" in found[1].problem


@pytest.mark.parametrize("version", ["3", "5"])
def test_unacknowledged_messages_come_again_and_are_recognised(server: Broker, publisher: Publisher, version: str) -> None:
    """The process dies after storing and before acknowledging: a new one gets the stored offset."""
    given = {"topic": f"again{version}/{{entity}}", "version": version, "identity": f"again{version}"}
    with source_at(server, **given) as source:
        publisher.send(*[(f"again{version}/e", json.dumps({"n": n}).encode()) for n in range(10)])
        first, offset = taken(source, 10, acknowledged=False)
        stored = json.loads(json.dumps(offset))
    publisher.send(*[(f"again{version}/e", json.dumps({"n": n}).encode()) for n in range(10, 15)])
    with source_at(server, **given) as source:
        then, offset = taken(source, 5, stored)
    with source_at(server, **given) as source:
        publisher.send((f"again{version}/e", b'{"n": 15}'))
        last, _ = taken(source, 1, offset)
    assert [one["n"] for one in [*first, *then, *last]] == list(range(16))


def test_a_group_shares_the_messages(server: Broker, publisher: Publisher) -> None:
    given = {"topic": "shared/{entity}", "share": "harbour"}
    with source_at(server, "one", **given) as one, source_at(server, "two", **given) as two:
        publisher.send(*[("shared/e", json.dumps({"n": n}).encode()) for n in range(40)])
        streams, found = [one.batches(None), two.batches(None)], [[], []]
        end = time.monotonic() + END_S
        while sum(map(len, found)) < 40:
            for at, (source, stream) in enumerate(zip((one, two), streams, strict=True)):
                batch = next(stream)
                source.acknowledge(batch.offset)
                found[at] += [record["n"] for record in batch.records]
            assert time.monotonic() < end
    assert sorted(found[0] + found[1]) == list(range(40)) and found[0] and found[1]


def test_a_broker_that_dies_keeps_its_messages(tmp_path: Path) -> None:
    with broker(tmp_path) as one:
        source = MQTT.open(settings_for(one, topic="kept/{entity}"), Loopback(), "kept")
        first = Publisher(one)
        first.send(("kept/e", b'{"n": 1}'))
        _, offset = taken(source, 1)
        one.stop(kill=True)
        with pytest.raises(SourceUnavailable):
            for _ in source.batches(offset):
                pass
        source.close()
        first.close()
        with pytest.raises((SourceUnavailable, OSError)):
            MQTT.open(settings_for(one, topic="kept/{entity}"), Loopback(), "kept")
        one.start()
        with source_at(one, "kept", topic="kept/{entity}") as source:
            again = Publisher(one)
            again.send(("kept/e", b'{"n": 2}'))
            assert [record["n"] for record in taken(source, 1, offset)[0]] == [2]
            again.close()


def certified(path: Path) -> Path:
    """A key and a self-signed certificate for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    path.chmod(0o644)
    return path


def test_the_certificate_of_a_broker_is_checked(tmp_path: Path) -> None:
    certificate = certified(tmp_path / "broker.pem")
    with broker(tmp_path / "broker", certificate=certificate) as one:
        authority = certificate.read_text()
        authority = authority[authority.index("-----BEGIN CERTIFICATE") :]
        given = {"topic": "safe/{entity}", "tls": True, "host": "localhost"}
        with pytest.raises((SourceUnavailable, OSError), match="certificate verify failed"):
            MQTT.open(settings_for(one, **given), Loopback(), "safe")
        with pytest.raises((SourceUnavailable, OSError), match="certificate"):
            MQTT.open(settings_for(one, **{**given, "host": "127.0.0.1", "ca": authority}), Loopback(), "safe")
        with source_at(one, "safe", ca=authority, **given) as source:
            sender = Publisher(one, certificate=certificate)
            sender.send(("safe/e", b'{"n": 1}'))
            assert taken(source, 1)[0][0]["n"] == 1
            sender.close()


def test_hostile_payloads_are_reported_and_do_not_stop_the_stream(server: Broker, publisher: Publisher) -> None:
    chance = random.Random(5)
    good = json.dumps({"entity": "e", "t": 1, "x": [1, {"a": "\ud800"}], "y": {"z": 1e308}}).encode()
    bad = [b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"1" * 10_000, b'"\\ud800"', b"null", b"", b"x" * 1_200_000]
    for _ in range(200):
        payload = bytearray(good)
        for _ in range(chance.randint(1, 5)):
            payload[chance.randrange(len(payload))] = chance.randrange(256)
        bad.append(bytes(payload))
    with source_at(server, "hostile", topic="hostile/{entity}") as source:
        publisher.send(*[("hostile/e", payload) for payload in bad], ("hostile/e", b'{"last": true}'))
        found, offset = [], None
        while not any(not isinstance(one, InvalidLine) and one.get("last") is True for one in found):
            more, offset = taken(source, 1, offset)
            found += more
    assert sum(isinstance(one, InvalidLine) for one in found) > 50


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"topic": " , "}, "topic"),
        ({"topic": "a/#/b"}, "topic"),
        ({"topic": "a/b+"}, "topic"),
        ({"topic": "a/{b c}"}, "topic"),
        ({"topic": "a", "share": "x", "version": "3"}, "share"),
        ({"topic": "a", "share": "x/y"}, "share"),
    ],
)
def test_invalid_topics_are_refused(given: dict[str, Any], field: str) -> None:
    found = MQTT.check({one.name: one.default for one in FIELDS} | given)
    assert list(found) == [field]


def test_a_template_names_levels() -> None:
    template = TopicTemplate("a/{x}/+/{y}, b/{z}/#")
    assert template.filters == ["a/+/+/+", "b/+/#"]
    assert template.columns("a/1/2/3") == {"x": "1", "y": "3"} and template.columns("b/1/2/3") == {"z": "1"} and template.columns("c") == {}


def test_no_memory_is_allocated_for_a_packet_that_is_too_long() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = server.accept()
        with peer:
            peer.recv(1_000)
            peer.sendall(b"\x20\x02\x00\x00")  # The connection is taken, and then the subscription.
            subscription = peer.recv(1_000)
            peer.sendall(b"\x90\x03" + subscription[2:4] + b"\x00")
            time.sleep(0.3)
            peer.sendall(b"\x30\xff\xff\xff\x7f" + b"x" * 100)  # 268 MB are announced.
            peer.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    settings = {one.name: one.default for one in MQTT.fields} | {
        "host": "127.0.0.1",
        "port": server.getsockname()[1],
        "topic": "a",
        "quality": "0",
        "version": "3",
    }
    with (
        closing(MQTT.open(settings, Loopback(), "")) as source,
        pytest.raises(SourceUnavailable, match=r"a packet of 268,435,45\d bytes; at most 4,000,000"),
    ):
        for _ in islice(source.batches(None), 100):
            pass
    thread.join(10)
    server.close()
