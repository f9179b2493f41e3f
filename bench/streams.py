"""Checks that a running system accepts 5,000 messages a second for a minute by AIS and by MQTT, and
measures the cost.

    VEDETTE_WEBHOOK_NETWORKS=127.0.0.0/8 make demo
    python -m bench.streams --password ... [--url http://127.0.0.1:8000]
        [--seconds 60] [--rate 5000] [ais mqtt-0 mqtt-1]

For each protocol: a feed and a connector are made, this program sends (as an AIS receiver over TCP,
or to a Mosquitto that it starts, with quality 0 or 1), and waits until all is in the log. A message
that is missing, refused, merged or stored twice is a failure. Prints how long sending took, how
much later the last message was in the log, and the processor time of the connectors' process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyais import encode_dict

from bench.latency import Client
from bench.processes import cpu_seconds, processes_of
from tests.engine.sources.live.brokers import broker

NOW, FIRST = 1_767_348_000_000, 200_000_000
MERGED_S = 12
"""A sentence is repeated after this time: beyond the time within which it would count as the same
message from another receiver."""
TICK_S, TIMEOUT_S = 0.01, 600.0
THINGS = 500


@dataclass
class Way:
    """A connector's kind and settings, and the messages, each as the bytes that go
    into the socket of `open`."""

    kind: str
    settings: dict[str, Any]
    messages: Sequence[bytes]
    open: Any


@contextmanager
def ais(rate: int, count: int) -> Iterator[Way]:
    """We are the receiver."""
    reports = [{"type": 1, "mmsi": FIRST + n, "lat": 54.5, "lon": 10 + n % 97 / 100, "speed": n % 20} for n in range(min(count, rate * MERGED_S))]
    messages = [encode_dict(one)[0].encode() + b"\r\n" for one in reports]
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Way("ais-tcp", {"host": "127.0.0.1", "port": server.getsockname()[1]}, messages, lambda: server.accept()[0])


@contextmanager
def mqtt(quality: int, count: int) -> Iterator[Way]:
    """We write packets of MQTT 3.1.1 ourselves: a client library would cost
    more than the measured work."""
    messages = [_publish(n, quality) for n in range(count)]
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as server:

        def connect() -> socket.socket:
            peer = socket.create_connection(("127.0.0.1", server.port))
            peer.sendall(b"\x10\x11\x00\x04MQTT\x04\x02\x00\x00\x00\x05bench")
            peer.recv(4)
            return peer

        yield Way("mqtt", {"host": "127.0.0.1", "port": server.port, "topic": "fleet/{entity}", "quality": str(quality)}, messages, connect)


def _publish(n: int, quality: int) -> bytes:
    topic = b"fleet/van%d" % (n % THINGS)
    number = struct.pack(">H", n % 65_535 + 1) if quality else b""
    row = {"t": NOW + n, "x": 10 + n % 97 / 100, "y": 54.5, "speed": n % 20}
    body = struct.pack(">H", len(topic)) + topic + number + json.dumps(row).encode()
    assert len(body) < 128
    return bytes([0x30 | quality << 1, len(body)]) + body


WAYS = {"ais": ais, "mqtt-0": lambda rate, count: mqtt(0, count), "mqtt-1": lambda rate, count: mqtt(1, count)}


def send(peer: socket.socket, messages: Sequence[bytes], rate: int, count: int) -> float:
    """Sends `count` messages at the pace of `rate`; returns how long that took.
    Replies are read and dropped."""

    def drain() -> None:
        try:
            while peer.recv(65_536):
                pass
        except OSError:
            return

    threading.Thread(target=drain, daemon=True).start()
    begun, sent, source = time.monotonic(), 0, itertools.cycle(messages)
    while sent < count:
        due = min(count, int((time.monotonic() - begun) * rate))
        peer.sendall(b"".join(itertools.islice(source, due - sent)))
        sent = due
        time.sleep(TICK_S)
    return time.monotonic() - begun


def measure(client: Client, protocol: str, rate: int, seconds: int) -> str:
    """One protocol on a separate feed, which is removed again."""
    count, name = rate * seconds, f"bench-{protocol}-{time.time():.0f}"
    feed = {"name": name, "title": name, "crs": "geographic", "time": "ms", "columns": {"speed": "float"}, "ahead": None}
    client.call("POST", "feeds/", feed)
    process = processes_of(client.port)["connectors"]
    with WAYS[protocol](rate, count) as way:
        made = client.call("POST", "connectors/", {"feed": name, "name": "bench", "kind": way.kind, "settings": way.settings})
        address = f"connectors/{made['id']}/"
        try:
            with way.open() as peer:
                _until(client, address, lambda status: status["state"] == "running", "the connector runs")
                before = cpu_seconds(process)
                took = send(peer, way.messages, rate, count)
                begun = time.monotonic()
                status = _until(client, address, lambda status: status["messages"] >= count, "all has come", rows=True)
                later, spent = time.monotonic() - begun, cpu_seconds(process) - before
                # Duplicates would show a little later.
                time.sleep(3)
                status = client.call("GET", address)
        finally:
            client.call("DELETE", address)
            client.call("DELETE", f"feeds/{name}/", {"name": name})
    found = (status["messages"], status["rows"], status["dead"], status["merged"])
    words = f"{protocol:7} {count:,} messages sent in {took:.1f} s; all in the log {later:.1f} s later; {spent:.1f} s of one core"
    assert found == (count, count, 0, 0), f"{words}; messages, rows, dead letters, merged: {found}"
    return words


def _until(client: Client, address: str, done: Any, what: str, *, rows: bool = False) -> dict[str, Any]:
    end, seen = time.monotonic() + TIMEOUT_S, -1
    while not done(status := client.call("GET", address)):
        assert time.monotonic() < end, f"not within {TIMEOUT_S:g} s: {what}; {status}"
        if rows and status["rows"] > seen:
            # As long as more come.
            seen, end = status["rows"], time.monotonic() + 60
        time.sleep(0.1)
    return dict(status)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("protocols", nargs="*", default=list(WAYS), help=", ".join(WAYS))
    options = parser.parse_args()
    client = Client(options.url)
    client.login(options.user, options.password)
    failed = 0
    for protocol in options.protocols:
        try:
            print(measure(client, protocol, options.rate, options.seconds), f"(load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"{protocol}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
