"""impliedSpeedBelow: against the definition in plain loops, and sliding windows against one window
that contains everything."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.event_calculus.conditions import distance_m
from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.event_calculus.recordings import answers
from tests.examples import examples

FEED = Feed.from_json({"name": "sea", "crs": "geographic", "time": "ticks", "tick": 1, "lateness": 0, "columns": {"lon": "float", "lat": "float"}})
PROGRAM = """
initiatedAt(silent(V)=true, T) :- happensAt(lost(V), T).
terminatedAt(silent(V)=true, T) :- happensAt(found(V), T).
holdsFor(delayed(V)=true, I) :- holdsFor(silent(V)=true, Is), impliedSpeedBelow(Is, coord(V, _, _), 1000, I).
"""
INPUTS = {"lost": {"args": ["entity"]}, "found": {"args": ["entity"]}, "coord": {"args": ["entity", "lon", "lat"]}}
LAST = 30
Row = tuple[str, str, int, int]
"""Event, entity, t, longitude in hundredths of a degree: 1,112 m on the equator."""


def query(window: int, step: int) -> RegisteredQuery:
    document = {
        "family": "calculus", "version": 1, "name": "q", "program": PROGRAM, "outputs": ["silent", "delayed"], "window": window, "step": step,
        "origin": LAST % step, "inputs": INPUTS,
    }  # fmt: skip
    return RegisteredQuery("q", 1, check(document, FEED))


def stamped(rows: list[Row]) -> pa.Table:
    placed = [row[3] / 100 if row[0] == "coord" else None for row in rows]
    table = pa.table(
        {
            "event": pa.array([row[0] for row in rows]), "entity": pa.array([row[1] for row in rows]),
            "t": pa.array([row[2] for row in rows], pa.int64()),
            "lon": pa.array(placed, pa.float64()), "lat": pa.array([None if x is None else 0.0 for x in placed], pa.float64()),
        }
    )  # fmt: skip
    good, dead = check_rows(table, FEED)
    assert not dead
    return Stamper().stamp(good)


def delays(rows: list[Row], silences: list[tuple[str, int, int | None]]) -> set[tuple[str, int, int | None]]:
    """A silence [s, e) is a delay if the places at s - 1 and e - 1 are less than (e - s) * 1000 m
    apart; an open one if the first is known."""
    places = {(entity, t): x / 100 for event, entity, t, x in reversed(rows) if event == "coord"}
    found = set()
    for entity, s, e in silences:
        begin, end = places.get((entity, s - 1)), None if e is None else places.get((entity, e - 1))
        open_ = e is None and begin is not None
        if open_ or (e is not None and begin is not None and end is not None and distance_m(begin, 0.0, end, 0.0) / (e - s) < 1_000):
            found.add((entity, s, e))
    return found


streams = st.lists(
    st.tuples(st.sampled_from(["lost", "found", "coord", "coord"]), st.sampled_from("ab"), st.integers(0, LAST), st.integers(0, 4)), max_size=40
).map(lambda rows: sorted({(row[1], row[2], row[0]): row for row in rows}.values(), key=lambda row: row[2]))


def facts_of(found: Counter[tuple[Any, ...]], name: str) -> set[tuple[str, int, int | None]]:
    assert set(found.values()) <= {1}
    return {(entities[0], start, end) for kind, entities, _, start, end in found if kind == name}


@settings(max_examples=examples(120), deadline=None)
@given(streams, st.integers(1, 9), st.integers(0, 9))
@example([("coord", "a", 2, 0), ("lost", "a", 2, 0), ("coord", "a", 20, 300), ("found", "a", 20, 0), ("coord", "b", 30, 0)], 3, 2)
@example([("coord", "a", 2, 0), ("lost", "a", 2, 0), ("coord", "a", 25, 3), ("found", "a", 25, 0), ("coord", "b", 30, 0)], 3, 2)
def test_a_delay_is_judged_by_both_places_however_far_the_window_has_slid(rows: list[Row], step: int, longer: int) -> None:
    """Silences longer than any window, apparent delays that turn out not to be any: they are
    retracted as a whole."""
    if not rows:
        return
    table = stamped(rows)
    whole = answers(query(LAST + 5, LAST + 5), FEED, table)
    assert facts_of(whole, "delayed") == delays(rows, sorted(facts_of(whole, "silent"), key=str))
    assert answers(query(step + longer, step), FEED, table, batch_rows=3) == whole
