"""Reports of trackers as their makers document them: OsmAnd's protocol, Traccar Client, Traccar's
forwarding; and GTFS-realtime."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from engine.sources.formats import InvalidLine
from engine.sources.live.gtfs import vehicles
from engine.sources.trackers import reports_of
from tests.fuzz.streams import CLIENT, FORWARDED, NOW, OSMAND, _osmand, gtfs


def only(found: Any) -> dict[str, Any]:
    (one,) = found
    assert not isinstance(one, InvalidLine), one.problem
    return {name: value for name, value in one.items() if value is not None and name != "received"}


def test_a_report_in_the_osmand_protocol_is_read() -> None:
    report = only(_osmand(OSMAND))
    assert {name: report[name] for name in ("id", "time", "lat", "lon")} == {"id": "van7", "time": NOW, "lat": "52.5", "lon": "13.4"}
    assert (report["speed"], report["course"], report["altitude"], report["accuracy"], report["battery"]) == ("10.5", "90", "31", "4", "71.5")
    for written in ("1767348000", "1767348000000", "2026-01-02 10:00:00", "2026-01-02T10:00:00Z", "2026-01-02T11:00:00+01:00"):
        assert only(reports_of({"id": "a", "location": "1,2", "timestamp": written}, b"", 5))["time"] == NOW, written
    assert only(reports_of({"id": "a", "lat": "1", "lon": "2"}, b"", 5))["time"] == 5, "without a time it is now"


def test_reports_in_json_are_read() -> None:
    import json

    forwarded = only(reports_of({}, json.dumps(FORWARDED).encode(), 5))
    assert (forwarded["id"], forwarded["name"], forwarded["time"], forwarded["lat"], forwarded["speed"], forwarded["battery"]) == (
        "8675309", "Van", NOW, 52.5, 12.5, 71,
    )  # fmt: skip
    client = only(reports_of({}, json.dumps(CLIENT).encode(), 5))
    assert (client["id"], client["time"], client["lon"], client["battery"]) == ("8675309", NOW, 13.4, 71.0)
    assert client["speed"] == pytest.approx(4.2 * 3600 / 1852) and "course" not in client, "a negative course is unknown"


@pytest.mark.parametrize(
    ("query", "body", "words"),
    [
        ({"lat": "1", "lon": "2"}, b"", "its id is missing"),
        ({"id": "a", "lat": "1", "lon": "2", "timestamp": "soon"}, b"", "its time is neither"),
        ({}, b"", "neither lat and lon nor JSON"),
        ({}, b"[7]", "a JSON object"),
        ({}, b'{"a": 1}', "a position"),
        ({}, b'{"position": {"valid": false}, "device": {}}', "no fix"),
        ({}, b"[" * 100_000, "neither lat and lon nor JSON"),
    ],
)
def test_faults_of_reports_are_named(query: dict[str, str], body: bytes, words: str) -> None:
    (found,) = reports_of(query, body, 5)
    assert isinstance(found, InvalidLine) and words in found.problem
    assert "'" not in found.text, "JSON, as it was sent"


def test_positions_of_public_transport_vehicles_are_read() -> None:
    found: list[Any] = list(vehicles(gtfs()))
    assert [(one["vehicle"], one["time"]) for one in found] == [("bus 0", NOW), ("bus 1", NOW - 1000), ("bus 2", NOW - 2000)]
    first = found[0]
    assert (round(first["lat"], 5), round(first["lon"], 5), first["speed"], first["bearing"]) == (53.4, -2.98, 7.5, None)
    assert (first["line"], first["status"], first["trip"], first["occupancy"]) == ("14", "STOPPED_AT", None, None)
    with pytest.raises(ValueError, match="GTFS-realtime"):
        list(vehicles(b"<html>no</html>"))


HOSTILE = """
import resource
from engine.sources.live.gtfs import vehicles
def sized(field, data):
    size, written = len(data), bytes([field << 3 | 2])
    while size > 127:
        written, size = written + bytes([size & 127 | 128]), size >> 7
    return written + bytes([size]) + data
many = 9_000_000
messages = {
    "entities": bytes([0x12, 0]) * many,
    "updates": sized(2, sized(1, b"1") + sized(3, bytes([0x12, 0]) * many)),
    "carriages": sized(2, sized(1, b"1") + sized(4, bytes([0x5a, 0]) * many)),
    "headers": bytes([0x0a, 0]) * many,
    "header": sized(1, bytes([0x0a, 0]) * many),
}
list(vehicles(sized(2, sized(1, b"1"))))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name, message in messages.items():
    try:
        print(name, *(one.problem for one in vehicles(message)))
    except ValueError as refused:
        print(name, refused)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000, name
"""


def test_a_hostile_response_is_refused_before_allocation() -> None:
    found = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "entities it has more than 50,000 entities",
        "updates an entity has at most 100,000 bytes; this one has 18,000,008",
        "carriages an entity has at most 100,000 bytes; this one has 18,000,008",
        "headers it has more than 50,000 entities",
        "header its header has more than 100,000 bytes",
    ]


def test_unknown_fields_are_skipped_and_truncated_responses_refused() -> None:
    later = bytes([0xF8, 0x3F, 5, 0xF9, 0x3F, *range(8), 0xFD, 0x3F, *range(4), 0xFA, 0x3F, 2, 1, 2])
    assert len(list(vehicles(later + gtfs() + later))) == len(list(vehicles(gtfs())))
    for cut in range(1, len(gtfs())):
        try:
            list(vehicles(gtfs()[:cut]))
        except ValueError as refused:
            assert "GTFS-realtime" in str(refused)
