"""The requirements of queries of each family on rows: places, and events of some names."""

from __future__ import annotations

from typing import Any

import pytest

from engine.families import FAMILIES, family_of
from engine.model.feed import Feed
from engine.plausibility import events_of
from engine.specification import check

FEED = Feed.from_json({"name": "f", "crs": "planar", "time": "ticks", "columns": {"speed": "float"}})
BOX = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
RANGES = {"speed": [1, 5]}
PAIR = {"between": ["A", "B"], "dt": [0, 5]}
TWO = {"A": {"where": [["event", "=", "come"]]}, "B": {"where": [["event", "in", ["go", "stop"]]]}}
RULES = "initiatedAt(busy(X)=true, T) :- happensAt(came(X), T)."
NEAR = "\nspatial(near(X, Y)=true, distance(position, 2)).\ninitiatedAt(met(X, Y)=true, T) :- happensAt(start(near(X, Y)=true), T)."
INPUTS = {"came": {"args": ["entity"]}}
PROGRAM = {"family": "calculus", "window": 20, "step": 10, "program": RULES, "inputs": INPUTS}
PATTERN = {"family": "composite", "pattern": "A AND B", "within": 10}
DOCUMENTS: list[tuple[dict[str, Any], bool, set[str]]] = [
    ({"family": "border", "region": BOX, "where": [["event", "=", "come"]]}, True, {"come"}),
    ({"family": "border", "ranges": RANGES}, False, set()),
    ({"family": "border", "ranges": RANGES, "while": [["event", "!=", "come"]]}, False, set()),
    ({"family": "transition", "region": BOX, "within": 5}, True, set()),
    ({"family": "transition", "ranges": RANGES, "within": 5}, False, set()),
    ({"family": "motion", "predicates": [{"inside": BOX}], "every": 5, "horizon": 10}, True, set()),
    ({"family": "motion", "predicates": [{"distance": [1, 1], "window": [5, 0]}], "theta": {"op": "<=", "value": 3}, "every": 5}, True, set()),
    ({"family": "occupancy", "region": BOX, "count": [">=", 2]}, True, set()),
    ({"family": "occupancy", "ranges": RANGES, "count": [">=", 2]}, False, set()),
    ({"family": "encounter", "distance": 3, "every": 1, "gap": 2, "a": {"where": [["event", "=", "come"]]}}, True, {"come"}),
    ({"family": "arrival", "region": BOX, "within": 5, "over": 5, "gap": 5}, True, set()),
    ({"family": "constraint", "variables": TWO, "constraints": [PAIR]}, False, {"come", "go", "stop"}),
    ({"family": "constraint", "variables": TWO, "constraints": [{**PAIR, "distance": {"max": 3}}]}, True, {"come", "go", "stop"}),
    ({"family": "constraint", "variables": TWO, "constraints": [PAIR, {"between": ["A"], "inside": BOX}]}, True, {"come", "go", "stop"}),
    ({**PATTERN, "primitives": TWO}, False, {"come", "go", "stop"}),
    ({**PATTERN, "primitives": {**TWO, "B": {"outside": BOX}}}, True, {"come"}),
    (PROGRAM, False, {"came"}),
    ({**PROGRAM, "program": RULES + NEAR, "inputs": {**INPUTS, "position": {"args": ["entity"]}}}, True, {"came", "position"}),
    ({**PROGRAM, "where": [["event", "in", ["came", "went"]]]}, False, {"came", "went"}),
]


@pytest.mark.parametrize(("document", "places", "events"), DOCUMENTS)
def test_a_query_says_whether_it_needs_places_and_which_events_it_asks_for(document: dict[str, Any], places: bool, events: set[str]) -> None:
    specification = check(document, FEED)
    assert family_of(specification).uses_places(specification) is places
    assert events_of(specification) == events


def test_the_documents_are_of_all_families() -> None:
    assert {document["family"] for document, _, _ in DOCUMENTS} == FAMILIES.keys()
