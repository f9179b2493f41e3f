"""A sample of `python -m tests.fuzz.streams`: mutated messages of each protocol become rows or
dead letters with a reason."""

from __future__ import annotations

import pytest

from tests.fuzz.streams import PROTOCOLS, campaign, through

COUNT = 60


@pytest.mark.parametrize("name", PROTOCOLS)
def test_no_message_stops_a_stream(name: str) -> None:
    for message in PROTOCOLS[name].messages:
        _, dead = through(name, message)
        assert dead == 0 or name == "kafka", "as it is, it is read"
    found, raised = campaign(name, COUNT)
    assert raised == []
    assert found["dead letters"] or name in ("gtfs-realtime", "ais")


def test_numbers_beyond_the_range_of_floats_are_dead_letters() -> None:
    """Found among 20,000: a coordinate and a power of 400 digits, which are integers to JSON."""
    point = b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": [%s, 2]}, "properties": {"entity": "e"}}' % (b"9" * 400)
    assert through("mqtt", point) == through("poll", point) == (0, 1)
    assert through("adsb-json", b'{"now": 1e999, "aircraft": [{"hex": "a", "lat": 1, "lon": 2}]}') == (0, 1)
    tag = b'{"timestamp": "2026-01-02T03:04:06Z", "tagInventoryEvent": {"epcHex": "30AA", "peakRssiCdbm": -%s}}' % (b"9" * 400)
    assert through("rfid", tag) == (1, 0), "the power alone is left out"
