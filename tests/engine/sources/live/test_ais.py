"""AIS over real sockets on loopback: every report of a recording is read, from any
sender and in any chunks."""

from __future__ import annotations

import gzip
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyais import encode_dict

from engine.sources.formats import InvalidLine
from engine.sources.formats.nmea import MessageMerger, Messages
from engine.sources.live import SourceKind, SourceUnavailable
from engine.sources.live.ais import KINDS
from tests.engine.sources.live.loopback import Loopback

CLIENT, SERVER, DATAGRAMS = KINDS
POSITION = b"!AIVDM,1,1,,A,13HOI:0P0000VOHLCnHQKwvL05Ip,0*23"
FILES = ("dma_2010.nmea", "kystverket_2019.nm4", "aisdb_2021.nm4")
END_S = 60.0


def opened(kind: SourceKind, network: Loopback, **settings: Any) -> Any:
    return closing(kind.open({"host": "127.0.0.1", "port": 0, "merge_seconds": 0, **settings}, network, ""))


def records_until(source: Any, done: Callable[[list[Any]], bool]) -> list[Any]:
    """All records until `done` is true."""
    found: list[Any] = []
    end = time.monotonic() + END_S
    for batch in source.batches(None):
        found += batch.records
        if done(found):
            return found
        assert time.monotonic() < end, f"only {len(found)} records came"
    return found


@pytest.fixture
def served() -> Iterator[Callable[[list[bytes]], int]]:
    """Serves pieces of bytes to one client and ends the connection; the port."""
    servers: list[tuple[socket.socket, threading.Thread]] = []

    def serve(pieces: list[bytes]) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=_send, args=(server, pieces), daemon=True)
        thread.start()
        servers.append((server, thread))
        return int(server.getsockname()[1])

    yield serve
    for server, thread in servers:
        server.close()
        thread.join(5)


def _send(server: socket.socket, pieces: list[bytes]) -> None:
    peer, _ = server.accept()
    with peer:
        for piece in pieces:
            peer.sendall(piece)


def cut(data: bytes, seed: int) -> list[bytes]:
    """The bytes in random chunks."""
    chance, pieces, at = random.Random(seed), [], 0
    while at < len(data):
        size = chance.randint(1, 3_000)
        pieces.append(data[at : at + size])
        at += size
    return pieces


def all_until_end(source: Any) -> list[Any]:
    found: list[Any] = []
    with pytest.raises(SourceUnavailable, match="ended"):
        for batch in source.batches(None):
            found += batch.records
    return found


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_every_position_of_a_recording_is_read_over_a_connection(name: str, data_folder: Path, served: Callable[[list[bytes]], int]) -> None:
    folder = data_folder / "ais_raw_nmea"
    data = gzip.decompress((folder / f"{name}.gz").read_bytes())
    with opened(CLIENT, Loopback(), port=served(cut(data, 7))) as source:
        found = [one for one in all_until_end(source) if not isinstance(one, InvalidLine)]
    reference = pq.read_table(folder / "decoded_reference.parquet").to_pylist()
    wanted = [
        (str(row["mmsi"]), row["ts"], row["lon"], row["lat"])
        for row in reference
        if row["file"].startswith(name) and row["lon"] is not None and row["lat"] is not None and row["lon"] != 181 and row["lat"] != 91
    ]
    assert len(wanted) > 300
    assert [(one["mmsi"], one["time"], one["lon"], one["lat"]) for one in found] == wanted


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_names_and_types_in_a_recording_become_attributes_of_vessels(name: str, data_folder: Path) -> None:
    folder = data_folder / "ais_raw_nmea"
    messages, facts = Messages(), dict[int, dict[str, str]]()
    for line in gzip.decompress((folder / f"{name}.gz").read_bytes()).splitlines():
        messages.read(line)
        facts |= messages.known.changed()
    wanted: dict[int, dict[str, str]] = {}
    for row in pq.read_table(folder / "decoded_reference.parquet").to_pylist():
        static = {"name": row["name"], "ship_type": row["ship_type"], "callsign": row["callsign"]}
        if row["file"].startswith(name) and any(static.values()):
            wanted.setdefault(row["mmsi"], {}).update({key: str(value).strip() for key, value in static.items() if value})
    assert len(wanted) > 20
    assert {mmsi: {key: facts[mmsi][key] for key in ("name", "ship_type", "callsign") if key in facts[mmsi]} for mmsi in wanted} == wanted


VESSEL = {
    "mmsi": 211000001,
    "shipname": "AURORA",
    "callsign": "DABC",
    "imo": 9074729,
    "ship_type": 71,
    "to_stern": 120,
    "to_port": 9,
    "to_starboard": 10,
}


def test_static_messages_are_reported_when_they_change() -> None:
    messages = Messages()

    def static(**fields: Any) -> dict[int, dict[str, str]]:
        for sentence in encode_dict(fields):
            messages.read(sentence.encode())
        return messages.known.changed()

    whole = {"name": "AURORA", "callsign": "DABC", "imo": "9074729", "ship_type": "71", "type": "cargo, category A", "length": "120", "width": "19"}
    assert static(type=5, **VESSEL) == {211000001: whole}
    assert static(type=5, **VESSEL) == {}, "vessels repeat it every six minutes"
    assert static(type=5, **{**VESSEL, "shipname": "BOREALIS", "imo": 0, "to_stern": 0}) == {211000001: whole | {"name": "BOREALIS"}}
    assert static(type=24, partno=0, mmsi=211000002, shipname="GULL") == {211000002: {"name": "GULL"}}
    assert static(type=24, partno=1, mmsi=211000002, ship_type=36, to_bow=8, to_stern=4, callsign="") == {
        211000002: {"name": "GULL", "ship_type": "36", "type": "sailing", "length": "12"}
    }


def test_receivers_connect_to_us_and_send_datagrams() -> None:
    network = Loopback()
    with opened(SERVER, network) as source:
        peers = [socket.create_connection(("127.0.0.1", network.port)) for _ in range(3)]
        for peer in peers:
            # Half of a line waits for the other half of the same receiver.
            peer.sendall(POSITION[:20])
        for peer in peers:
            peer.sendall(POSITION[20:] + b"\r\n")
            peer.close()
        found = records_until(source, lambda records: len(records) == 3)
    assert {(one["mmsi"], one["lon"], one["lat"]) for one in found} == {(found[0]["mmsi"], found[0]["lon"], found[0]["lat"])}
    with opened(DATAGRAMS, network) as source, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        # A datagram needs no end of line.
        for _ in range(3):
            sender.sendto(POSITION, ("127.0.0.1", network.port))
        assert len(records_until(source, lambda records: len(records) == 3)) == 3


def test_a_new_receiver_replaces_a_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sources.live.arrivals.MOST_PEERS", 2)
    monkeypatch.setattr("engine.sources.live.arrivals.IDLE_S", 0.0)
    network = Loopback()
    with opened(SERVER, network) as source, ExitStack() as silent:
        for _ in range(2):
            silent.enter_context(socket.create_connection(("127.0.0.1", network.port)))
        with socket.create_connection(("127.0.0.1", network.port)) as third:
            third.sendall(POSITION + b"\r\n")
            assert len(records_until(source, lambda records: len(records) == 1)) == 1


def test_silent_peers_are_probed(served: Callable[[list[bytes]], int]) -> None:
    with opened(CLIENT, Loopback(), port=served([POSITION + b"\n"])) as source:
        (connection,) = source._arrivals._sockets
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


def test_memory_for_long_lines_is_bounded() -> None:
    """Up to 100,000 messages are remembered to recognise repetitions, and parts of messages wait
    for others, for every sender."""
    known = MessageMerger(merge_ms=10_000)
    messages = Messages(known)
    for n in range(50):
        body = b"AIVDM,1,1,,A,%s,0" % (b"1" * 900 + b"%d" % n)
        part = b"AIVDM,2,1,%d,A,%s,0" % (n % 10, b"1" * 900 + b"%d" % n)
        for one in (body, part):
            messages.read(b"!%s*%02X" % (one, reduce(xor, one)), 1)
    assert len(known._heard) == 50 and max(map(len, known._heard)) <= 16
    assert not messages._parts


def test_a_message_heard_by_several_receivers_counts_once() -> None:
    network = Loopback()
    with opened(DATAGRAMS, network, merge_seconds=10) as source, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for at in (1_600_000_000, 1_600_000_003, 1_600_000_010, 1_600_000_021):
            sender.sendto(b"\\s:r%d,c:%d*00\\" % (at % 7, at) + POSITION, ("127.0.0.1", network.port))
        found: list[Any] = []
        merged = messages = 0
        for batch in source.batches(None):
            found, merged, messages = [*found, *batch.records], merged + batch.merged, messages + batch.messages
            if messages == 4:
                break
    assert [one["time"] for one in found] == [1_600_000_000_000, 1_600_000_021_000] and merged == 2


def test_hostile_lines_are_reported_and_do_not_stop_the_stream(served: Callable[[list[bytes]], int]) -> None:
    chance = random.Random(11)
    bad = [
        b"!" + b"A" * 200_000 + b"\n",
        b"!AIVDM,2,1,9,A,1,0*00\n",
        bytes(range(256)) * 20 + b"\n",
        b"$PGHP,1,99999999999999999999,1,1,1,1,1,1\n",
        b"\x00" * 1_000 + b"\n",
    ]
    for _ in range(300):
        line = bytearray(POSITION)
        for _ in range(chance.randint(1, 4)):
            line[chance.randrange(len(line))] = chance.randrange(256)
        bad.append(bytes(line) + b"\n")
    data = b"".join(bad) + POSITION + b"\n"
    with opened(CLIENT, Loopback(), port=served(cut(data, 3))) as source:
        found = all_until_end(source)
    assert isinstance(found[0], InvalidLine) and len(found[0].text) <= 200
    assert not isinstance(found[-1], InvalidLine) and found[-1]["lat"]


def test_an_unreachable_receiver_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError):
        CLIENT.open({"host": "127.0.0.1", "port": port, "merge_seconds": 0}, Loopback(), "")
