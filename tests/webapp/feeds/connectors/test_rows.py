"""Records become rows or dead letters, whatever they contain."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.model.faults import Refused
from engine.model.feed import Feed
from engine.sources.formats import InvalidLine
from engine.sources.live.ais import KINDS as AIS
from engine.sources.live.mqtt import KINDS as MQTT
from engine.sources.live.payloads import records_in
from webapp.connectors.rows import reading_for, rows_of

COLUMNS = {"speed": "float", "count": "int", "name": "string", "ok": "bool"}
FEED = Feed.from_json(
    {"name": "sea", "crs": "geographic", "time": "ms", "tick": 1, "lateness": 0, "dedupe": True, "columns": COLUMNS},
)
ROW = {"entity": "e", "t": 1_700_000_000_000, "x": 1.5, "y": 2, "event": "moved", "speed": 3, "count": 5, "name": "ä", "ok": True}
SPLICES = (b"\\ud800", b"1e999", b"[[[[", b"null", b"\x00", b"9" * 30, b"11e999700000000000", b"NaN", b'{"a":' * 30, b"\xff")


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = {"a": found}
    return found


def test_records_in_the_form_of_rows_need_no_mapping() -> None:
    rows = rows_of([ROW, {**ROW, "more": {"of": [1]}}, InvalidLine(3, "bad", "x")], reading_for({}, MQTT[0], FEED), FEED)
    assert rows.rows.to_pylist()[0] == {**ROW, "t_end": None, "speed": 3.0, "y": 2.0} and rows.rows.num_rows == 2
    assert [(one.reason, one.detail, one.row) for one in rows.dead()] == [("malformed", "bad", {"text": "x"})]


def test_a_reading_names_columns_inside_objects() -> None:
    document = {
        "entity": ["id"], "time": ["at.when"], "time_format": "iso", "x": "at.lon", "y": "at.lat",
        "attributes": [{"source": "v", "name": "speed", "type": "float"}],
    }  # fmt: skip
    record = {"id": 7, "at": {"when": "2026-01-02T03:04:05Z", "lon": 10, "lat": 50}, "v": "3.5"}
    (row,) = rows_of([record], reading_for(document, MQTT[0], FEED), FEED).rows.to_pylist()
    assert (row["entity"], row["t"], row["x"], row["y"], row["speed"], row["name"]) == ("7", 1_767_323_045_000, 10.0, 50.0, 3.5, None)


def test_a_value_that_no_column_can_hold_refuses_only_its_record() -> None:
    odd = [
        deep(900),
        {**ROW, "entity": deep(500)},
        {**ROW, "count": 2**70},
        {**ROW, "name": "\ud800"},
        {f"c{n}": n for n in range(5_000)},
        {**ROW, "t": "x"},
    ]
    rows = rows_of([ROW, *odd, ROW], reading_for({}, MQTT[0], FEED), FEED)
    assert rows.rows.num_rows + len(rows.dead()) == len(odd) + 2 and rows.rows.num_rows >= 2


@pytest.mark.parametrize("form", ["json", "csv"])
def test_mutated_payloads_never_stop_the_stream(form: str) -> None:
    """20,000 of each were sent by hand (docs/connectors.md); these are a few."""
    chance = random.Random(7)
    base = json.dumps([ROW, {**ROW, "more": {"a": [1, 2]}}]).encode() if form == "json" else b'entity,t,x,y\na,1,2,3\n"b c",2,3,4\n'
    records: list[Any] = []
    for _ in range(300):
        payload = bytearray(base)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(payload))
            payload[at : at + chance.randint(0, 3)] = chance.choice([bytes([chance.randrange(256)]), *SPLICES])
        records += records_in(bytes(payload), {"topic": "a/b"}, form=form)
    rows = rows_of(records, reading_for({}, MQTT[0], FEED), FEED)
    assert rows.rows.num_rows + len(rows.dead()) == len(records) and rows.rows.num_rows and rows.dead()
    json.dumps([one.row for one in rows.dead()], default=str)


def test_a_reading_that_does_not_suit_the_feed_is_refused() -> None:
    plane = Feed.from_json({"name": "p", "crs": "planar", "time": "ticks", "tick": 1, "lateness": 0, "dedupe": True, "columns": {}})
    with pytest.raises(Refused) as refused:
        reading_for({}, AIS[0], plane)
    assert {fault.pointer for fault in refused.value.faults} == {"/crs", "/time_format"}
