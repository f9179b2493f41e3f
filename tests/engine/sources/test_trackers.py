"""Reports of trackers as their makers document them: OsmAnd's protocol, Traccar Client, Traccar's forwarding; and GTFS-realtime."""

from __future__ import annotations

from typing import Any

import pytest

from engine.sources.formats import Broken
from engine.sources.live.gtfs import vehicles
from engine.sources.trackers import reports_of
from tests.fuzz.streams import CLIENT, FORWARDED, NOW, OSMAND, _osmand, gtfs


def only(found: Any) -> dict[str, Any]:
    (one,) = found
    assert not isinstance(one, Broken), one.problem
    return {name: value for name, value in one.items() if value is not None and name != "received"}


def test_a_report_in_osmands_protocol() -> None:
    report = only(_osmand(OSMAND))
    assert {name: report[name] for name in ("id", "time", "lat", "lon")} == {"id": "van7", "time": NOW, "lat": "52.5", "lon": "13.4"}
    assert (report["speed"], report["course"], report["altitude"], report["accuracy"], report["battery"]) == ("10.5", "90", "31", "4", "71.5")
    for written in ("1767348000", "1767348000000", "2026-01-02 10:00:00", "2026-01-02T10:00:00Z", "2026-01-02T11:00:00+01:00"):
        assert only(reports_of({"id": "a", "location": "1,2", "timestamp": written}, b"", 5))["time"] == NOW, written
    assert only(reports_of({"id": "a", "lat": "1", "lon": "2"}, b"", 5))["time"] == 5, "without a time it is now"


def test_reports_as_json() -> None:
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
def test_what_is_wrong_with_a_report_is_said(query: dict[str, str], body: bytes, words: str) -> None:
    (found,) = reports_of(query, body, 5)
    assert isinstance(found, Broken) and words in found.problem


def test_vehicles_of_public_transport() -> None:
    found: list[Any] = list(vehicles(gtfs()))
    assert [(one["vehicle"], one["time"]) for one in found] == [("bus 0", NOW), ("bus 1", NOW - 1000), ("bus 2", NOW - 2000)]
    first = found[0]
    assert (round(first["lat"], 5), round(first["lon"], 5), first["speed"], first["bearing"]) == (53.4, -2.98, 7.5, None)
    assert (first["line"], first["status"], first["trip"], first["occupancy"]) == ("14", "STOPPED_AT", None, None)
    with pytest.raises(ValueError, match="GTFS-realtime"):
        list(vehicles(b"<html>no</html>"))
