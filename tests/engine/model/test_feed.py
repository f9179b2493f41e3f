"""Feeds, durations and faults."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.durations import parse_duration
from engine.model.faults import Refused
from engine.model.feed import ColumnType, Feed

GOOD = {"name": "sea", "crs": "geographic", "time": "ms", "tick": 1, "lateness": 0, "dedupe": True, "columns": {"sog": "float"}}


def faults_of(document: Any) -> dict[str, str]:
    with pytest.raises(Refused) as refused:
        Feed.from_json(document)
    return {fault.pointer: fault.message for fault in refused.value.faults}


def test_a_feed_is_read_and_written_back() -> None:
    assert Feed.from_json(GOOD).to_json() == GOOD


def test_built_in_columns_may_be_declared_with_their_type() -> None:
    feed = Feed.from_json({**GOOD, "columns": {"entity": "string", "t": "int", "entity2": "string", "entity10": "string"}})
    assert feed.columns == {"entity2": ColumnType.STRING, "entity10": ColumnType.STRING}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"crs": "mercator"}, "/crs"),
        ({"time": "s"}, "/time"),
        ({"tick": 0}, "/tick"),
        ({"tick": True}, "/tick"),
        ({"lateness": -1}, "/lateness"),
        ({"lateness": "PT1M", "time": "ticks"}, "/lateness"),
        ({"lateness": float("nan")}, "/lateness"),
        ({"lateness": 1.5}, "/lateness"),
        ({"dedupe": 1}, "/dedupe"),
        ({"name": ""}, "/name"),
        ({"columns": {"sog": "double"}}, "/columns/sog"),
        ({"columns": {"seq": "int"}}, "/columns/seq"),
        ({"columns": {"t": "float"}}, "/columns/t"),
        ({"columns": []}, "/columns"),
        ({"columns": {f"c{n}": "int" for n in range(1_001)}}, "/columns"),
        ({"latness": 1}, "/latness"),
    ],
)
def test_faults_have_pointers(change: dict[str, Any], pointer: str) -> None:
    assert list(faults_of({**GOOD, **change})) == [pointer]


@pytest.mark.parametrize("lateness", ["P99999999999D", f"P{'9' * 400}D", 2**60])
def test_a_lateness_that_is_too_long_is_refused_as_such(lateness: object) -> None:
    assert "below 2^60" in str(faults_of(GOOD | {"lateness": lateness})["/lateness"])


def test_all_faults_are_reported_together_with_the_nearest_name() -> None:
    found = faults_of({"name": "a", "crs": "x", "lateness": "soon", "latness": 3})
    assert set(found) == {"/crs", "/lateness", "/latness"}
    assert "did you mean 'lateness'" in found["/latness"]


@pytest.mark.parametrize(("text", "ms"), [("PT3M", 180_000), ("P1W", 604_800_000), ("P1DT1H1M1.001S", 90_061_001), ("-PT0.5S", -500), ("PT0S", 0)])
def test_durations_are_parsed(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "3M", "P1M", "P1Y", "PT1M3", "PT0.0001S", "P1D T1H", "PT-1S", "pt1s", "P1DT"])
def test_durations_without_fixed_length_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)
