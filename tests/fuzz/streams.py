"""Mutated messages of each protocol of live sources, through decoding, reading and checking:
`python -m tests.fuzz.streams [--count 20000]`.

Each message must become rows or dead letters with a reason; exceptions are printed with their
message, and the command fails.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from google.transit import gtfs_realtime_pb2
from pyais import encode_dict

from engine.model.feed import Feed
from engine.sources.formats import InvalidLine
from engine.sources.formats.nmea import Messages
from engine.sources.live import RECEIVED, Record, SourceKind
from engine.sources.live.arrivals import Lines, ReceivedBytes
from engine.sources.live.kinds import source_kinds
from engine.sources.live.mqtt import TopicTemplate
from engine.sources.live.payloads import records_in
from engine.sources.live.sbs import Aircraft
from engine.sources.live.web import PollingSource
from engine.sources.trackers import COLUMNS, READING, reports_of
from tests.engine.sources.live.loopback import Loopback
from tests.fuzz.mutation import mutated, mutated_document
from webapp.connectors.rows import own_reading, reading_for, rows_of

NOW = 1_767_348_000_000
FEED = Feed.from_json(
    {
        "name": "sea",
        "crs": "geographic",
        "time": "ms",
        "columns": {
            **dict.fromkeys(("speed", "course", "battery", "rssi"), "float"),
            **dict.fromkeys(("name", "label", "gtin"), "string"),
            "count": "int",
            "ok": "bool",
        },
    }
)
ROW = {"entity": "e", "t": NOW, "x": 1.5, "y": 2, "event": "moved", "speed": 3, "count": 5, "name": "ä", "ok": True}
JSON = [json.dumps(ROW).encode(), json.dumps([ROW, {**ROW, "more": {"a": [1, None]}}]).encode()]
GEOJSON = json.dumps(
    {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"entity": "e", "t": NOW}}],
    }
).encode()
POSITION = {
    "latitude": 52.5,
    "longitude": 13.4,
    "speed": 12.5,
    "course": 90,
    "altitude": 30,
    "valid": True,
    "fixTime": "2026-01-02T10:00:00.000+00:00",
}
FORWARDED = {"position": {**POSITION, "attributes": {"batteryLevel": 71}}, "device": {"uniqueId": "8675309", "name": "Van"}}
CLIENT = {
    "device_id": "8675309",
    "location": {
        "timestamp": "2026-01-02T10:00:00.000Z",
        "coords": {"latitude": 52.5, "longitude": 13.4, "speed": 4.2, "heading": -1, "accuracy": 5},
        "battery": {"level": 0.71},
    },
}
AIRCRAFT = {"now": NOW / 1000, "aircraft": [{"hex": "3c6444", "flight": "DLH1 ", "lat": 50.0, "lon": 8.0, "seen_pos": 2.5, "gs": 300}, {"hex": "x"}]}
TAG = {"antennaPort": 1, "antennaName": "Dock 1", "peakRssiCdbm": -6150}
TAGS = [
    {"timestamp": "2026-01-02T03:04:05.678Z", "hostname": "r700", "tagInventoryEvent": {**TAG, "epcHex": "3074257BF7194E4000001A85"}},
    {"timestamp": "2026-01-02T03:04:06Z", "hostname": "r700", "tagInventoryEvent": {**TAG, "epc": "NnQle_a3plmywr8QAAAAAAAAAAAAAAAAAA"}},
    {"timestamp": "2026-01-02T03:04:07Z", "inventoryStatusEvent": {"inventoryStatus": "running"}},
]
TAG_READING = {
    "entity": ["epc"],
    "time": ["time"],
    "event": "antenna",
    "attributes": [{"source": "gtin", "name": "gtin", "type": "string"}, {"source": "rssi", "name": "rssi", "type": "float"}],
}
"""Each code is an entity, each antenna an event."""
SBS = b"MSG,3,1,1,4CA2D6,1,2026/01/02,03:04:05.000,2026/01/02,03:04:05.000,,37000,,,51.45,-1.02,,,0,0,0,0\r\n"
AIS = b"\\c:1565218798*00\\!AIVDM,1,1,,A,13HOI:0P0000VOHLCnHQKwvL05Ip,0*23\r\n"
STATIC = "\r\n".join(
    encode_dict({"type": 5, "mmsi": 244000001, "shipname": "AURORA", "callsign": "PABC", "ship_type": 60, "to_bow": 20, "to_stern": 100})
).encode()
OSMAND = b"id=van7&lat=52.5&lon=13.4&timestamp=1767348000&speed=10.5&bearing=90&altitude=31&accuracy=4&batt=71.5"

Records = Iterable[Record | InvalidLine]


def gtfs() -> bytes:
    """A response of a transport operator."""
    message = gtfs_realtime_pb2.FeedMessage()
    message.header.gtfs_realtime_version, message.header.timestamp = "2.0", NOW // 1000
    for number in range(3):
        entity = message.entity.add(id=f"e{number}")
        entity.vehicle.vehicle.id, entity.vehicle.timestamp = f"bus {number}", NOW // 1000 - number
        entity.vehicle.position.latitude, entity.vehicle.position.longitude, entity.vehicle.position.speed = 53.4, -2.98, 7.5
        entity.vehicle.trip.route_id, entity.vehicle.current_status = "14", 1
    return bytes(message.SerializeToString())


@dataclass(frozen=True)
class Protocol:
    """Valid messages, how one is decoded, and the kind that defines how its records are read (null:
    trackers)."""

    messages: list[bytes]
    decoded: Callable[[bytes], Records]
    kind: str | None
    reading: Mapping[str, Any] = field(default_factory=dict)
    """The mapping of its records, if neither the kind nor the feed gives it."""


def _mqtt(message: bytes) -> Records:
    topic = message[:40].decode("utf-8", "replace")
    columns = TopicTemplate("fleet/{entity}/{event}").columns(topic if topic.count("/") == 2 else "fleet/van7/left")
    return records_in(message, {**columns, "topic": topic})


def _rfid(message: bytes) -> Records:
    return records_in(message, {"topic": "readers/dock"}, form="rfid")


def _kafka(message: bytes) -> Records:
    also = {"partition": 0, "offset": 7, "key": message[:9].decode("utf-8", "replace")}
    yield from records_in(message, also, {"entity": also["key"]})
    yield from records_in(message, also, form="csv", columns="entity,t,x,y")


def _websocket(message: bytes) -> Records:
    return records_in(message.decode("utf-8", "surrogateescape").encode("utf-8", "backslashreplace"), {})


def _polled(kind: str) -> Callable[[bytes], Records]:
    settings = {one.name: one.default for one in source_kinds()[kind].fields} | {"url": "http://127.0.0.1/"}
    source = source_kinds()[kind].open(settings, Loopback(), "")
    assert isinstance(source, PollingSource)
    return lambda message: source._new(message, set())[0]


def _sbs(message: bytes) -> Records:
    aircraft, part = Aircraft(), ReceivedBytes("peer", message, NOW, ended=True)
    return [found for line in Lines(1_000).of(part) if (found := aircraft.read(line, NOW)) is not None]


def _ais(message: bytes) -> Records:
    messages, part = Messages(), ReceivedBytes("peer", message, NOW, ended=True)
    found = [one for line in Lines(1_000).of(part) if (one := messages.read(line, NOW)) is not None]
    assert all(isinstance(value, str) for facts in messages.known.changed().values() for value in facts.values())
    return [one if isinstance(one, InvalidLine) else {**one, RECEIVED: NOW} for one in found]


def _osmand(message: bytes) -> Records:
    return reports_of(dict(parse_qsl(message.decode("utf-8", "replace"))), b"", NOW)


PROTOCOLS: Mapping[str, Protocol] = {
    "mqtt": Protocol([*JSON, GEOJSON], _mqtt, "mqtt"),
    "rfid": Protocol([json.dumps(TAGS).encode(), *(json.dumps(one).encode() for one in TAGS[:2])], _rfid, "mqtt", TAG_READING),
    "kafka": Protocol([*JSON, b"e,%d,1,2\nf,%d,2,3\n" % (NOW, NOW)], _kafka, "kafka"),
    "websocket": Protocol([*JSON, GEOJSON], _websocket, "websocket"),
    "poll": Protocol([*JSON, GEOJSON], _polled("poll"), "poll"),
    "adsb-json": Protocol([json.dumps(AIRCRAFT).encode()], _polled("adsb-json"), "adsb-json"),
    "adsb-sbs": Protocol([SBS, SBS * 3], _sbs, "adsb-sbs"),
    "gtfs-realtime": Protocol([gtfs()], _polled("gtfs-realtime"), "gtfs-realtime"),
    "ais": Protocol([AIS, AIS * 2, STATIC], _ais, "ais-tcp"),
    "osmand": Protocol([OSMAND, OSMAND.replace(b"lat=52.5&lon=13.4", b"location=52.5,13.4")], _osmand, None),
    "traccar": Protocol([json.dumps(FORWARDED).encode(), json.dumps([CLIENT]).encode()], lambda message: reports_of({}, message, NOW), None),
}


def through(name: str, message: bytes) -> tuple[int, int]:
    """How many rows and dead letters a message becomes. Raises AssertionError for a record that
    becomes neither, or a letter without a reason."""
    protocol = PROTOCOLS[name]
    kind: SourceKind | None = source_kinds()[protocol.kind] if protocol.kind else None
    reading = own_reading(READING, COLUMNS, FEED) if kind is None else reading_for(dict(protocol.reading), kind, FEED)
    records = list(protocol.decoded(message))
    rows = rows_of(records, reading, FEED)
    assert rows.rows.num_rows + len(rows.dead()) == len(records)
    assert all(one.reason and one.detail for one in rows.dead())
    json.dumps([one.row for one in rows.dead()], default=str)
    return rows.rows.num_rows, len(rows.dead())


def _changed(messages: list[bytes], chance: random.Random) -> bytes:
    """One of the messages with changed bytes; half of those in JSON with changed values, as most
    changed bytes are no longer JSON."""
    chosen = chance.choice(messages)
    if chosen.startswith((b"{", b"[")) and chance.random() < 0.5:
        documents = [json.loads(one) for one in messages if one.startswith((b"{", b"["))]
        return json.dumps(mutated_document(json.loads(chosen), documents, chance)).encode()
    return mutated(chosen, messages, chance)


def campaign(name: str, count: int, seed: int = 1) -> tuple[Counter[str], list[tuple[bytes, Exception]]]:
    """`count` mutated messages of a protocol: the results, and messages that raised."""
    chance, found, raised = random.Random(f"{name} {seed}"), Counter[str](), []
    messages = PROTOCOLS[name].messages
    for _ in range(count):
        message = _changed(messages, chance)
        try:
            good, dead = through(name, message)
        except Exception as error:
            raised.append((message, error))
        else:
            found.update({"rows": good, "dead letters": dead, "nothing": not good and not dead})
    return found, raised


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="mutated messages of each protocol")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("protocols", nargs="*", default=list(PROTOCOLS))
    asked = parser.parse_args()
    failed = 0
    for name in asked.protocols:
        begun = time.monotonic()
        found, raised = campaign(name, asked.count, asked.seed)
        print(f"{name}: {dict(found)}, {len(raised)} raised, {time.monotonic() - begun:.0f} s", flush=True)
        failed += len(raised)
        for message, error in raised[:5]:
            print(f"  {type(error).__name__}: {error} from {message!r}"[:1_000])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
