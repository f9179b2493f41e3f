"""Windows shorter than their step: rows of the gaps never count, deadlines fire in them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.feed import Feed
from engine.specification import check
from tests.engine.runs import final_answers

FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks"})
PROGRAM = "initiatedAt(f(X)=u, T) :- happensAt(a(X), T). fi(f(X)=u, f(X)=w, 7). fi(f(X)=w, f(X)=u, 3)."


def runs_of(window: int, first: int, *, distributed: bool = False, partitions: int = 1) -> list[tuple[Any, ...]]:
    """(value, start, end) of f(x), initiated at `first`; the last query time is 40."""
    document = {"family": "calculus", "program": PROGRAM, "window": window, "step": 8, "inputs": {"a": {"args": ["entity"]}}}
    rows = [{"event": "a", "entity": "x", "t": first}, {"event": "b", "entity": "x", "t": 38}]
    documents = [{**document, "distributed": distributed}]
    return sorted((fact["value"], fact["start"], fact["end"]) for fact in final_answers(FEED, documents, rows, partitions=partitions))


@pytest.mark.parametrize("window", [2, 4, 6, 8])
def test_deadlines_fire_between_windows(window: int) -> None:
    expected = [("u", 8, 15), ("w", 15, 18), ("u", 18, 25), ("w", 25, 28), ("u", 28, 35), ("w", 35, 38), ("u", 38, None)]
    assert runs_of(window, 7) == sorted(expected)


@pytest.mark.parametrize("first", [7, 37])
@pytest.mark.parametrize("window", [2, 6])
def test_deadlines_in_gaps_do_not_depend_on_partitions(window: int, first: int) -> None:
    assert runs_of(window, first, distributed=True, partitions=3) == runs_of(window, first)


def test_a_row_between_windows_does_not_count() -> None:
    assert runs_of(2, 5) == []


@pytest.mark.parametrize(("origin", "same"), [("PT2S", 2000), ("-PT0.5S", -500), ("P1D", 86_400_000)])
def test_the_origin_may_be_a_duration(origin: str, same: int) -> None:
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": "ms"})
    document = {"family": "calculus", "program": PROGRAM, "window": "PT9S", "step": "PT7S", "inputs": {"a": {"args": ["entity"]}}}
    settings = [check({**document, "origin": one}, feed).settings for one in (origin, same)]
    assert settings[0] == settings[1]
