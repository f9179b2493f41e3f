"""`"edge": "rtec"`: a point fluent that holds at the window's edge starts anew there."""

from __future__ import annotations

import pytest

from engine.model.feed import Feed
from tests.engine.runs import final_answers

FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks"})
PROGRAM = "initiatedAt(idle(X)=true, T) :- happensAt(stop(X), T). terminatedAt(idle(X)=true, T) :- happensAt(start(moving(X)=true), T)."
INPUTS = {"stop": {"args": ["entity"]}, "moving": {"args": ["entity"], "fluent": "points"}}
ROWS = [
    {"event": "stop", "entity": "van", "t": 0},
    {"event": "moving", "entity": "van", "t": 0},
    {"event": "moving", "entity": "van", "t": 1},
    {"event": "moving", "entity": "car", "t": 5},
]


@pytest.mark.parametrize(("edge", "expected"), [("exact", [(1, None)]), ("rtec", [])])
def test_an_interval_that_ends_where_it_begins_is_no_answer(edge: str, expected: list[tuple[int, int | None]]) -> None:
    """`moving` starts at -1. The window (0, 4] sees only its second row, so it starts there at 0,
    the moment of `stop`."""
    document = {"family": "calculus", "program": PROGRAM, "outputs": ["idle"], "window": 4, "step": 1, "edge": edge, "inputs": INPUTS}
    assert [(fact["start"], fact["end"]) for fact in final_answers(FEED, [document], ROWS)] == expected
