"""Answers small enough to check by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.complex_events.detection import TOO_MUCH_WORK
from engine.complex_events.query_search import GIVEN_UP, GIVEN_UP_AT, SearchBuffers
from engine.model.events import Stamper
from engine.model.feed import TimeUnit
from engine.operator import QueryStopped
from engine.runtime.evaluator import Evaluator
from tests.engine.complex_events.worlds import PLANE, compare, table_of
from tests.engine.runs import registered
from tests.oracles.complex_events import Row

Seen = tuple[str, int, str]


def rows(*seen: Seen) -> list[Row]:
    """Events (entity, t, reader)."""
    return [{"seq": seq, "entity": entity, "t": t, "x": None, "y": None, "reader": reader} for seq, (entity, t, reader) in enumerate(seen)]


def answers(pattern: Any, *seen: Seen, within: int = 100, per: str | None = None) -> list[tuple[str | None, int, int]]:
    """Detections (entity, start, end), checked against the oracle too."""
    names = [name for name in "ABC" if name in str(pattern)]
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in names}
    document = {"family": "composite", "pattern": pattern, "primitives": primitives, "within": within, "per": per}
    found = compare([document], rows(*seen)).found
    return sorted((answer[1:] for answer in found.elements()), key=repr)


def test_shoplifting_is_a_shelf_and_an_exit_of_one_item_without_a_checkout() -> None:
    seen = [("x", 1, "a"), ("y", 1, "a"), ("y", 2, "b"), ("x", 4, "c"), ("y", 5, "c")]
    assert answers("A : !B : C", *seen, per="entity") == [("x", 1, 4)]
    assert answers("A : !B : C", *seen) == []


def test_a_missed_scan_is_reported_by_a_timer_after_all_events_of_its_time() -> None:
    late = [("x", 0, "a"), ("x", 5, "b"), ("x", 20, "a"), ("x", 26, "b"), ("x", 99, "c")]
    assert answers("A : !B[5]", *late) == [(None, 20, 25)]
    assert answers("A : !B[5]", ("x", 0, "a"), ("x", 4, "c")) == []  # Not due at the end of input.
    assert answers("A : !B[5]", ("x", 0, "a"), ("x", 5, "c")) == [(None, 0, 5)]
    assert answers("A : !B[5]", ("x", 0, "a"), ("y", 0, "a"), ("x", 9, "c")) == [(None, 0, 5)]


def test_each_completing_event_is_one_detection_with_the_most_recent_start() -> None:
    assert answers("A : B", ("x", 1, "a"), ("x", 2, "a"), ("x", 3, "b"), ("x", 3, "b")) == [(None, 2, 3), (None, 2, 3)]
    assert answers("A OR (A : B)", ("x", 1, "a"), ("x", 2, "b")) == [(None, 1, 1), (None, 1, 2)]


def test_events_of_one_time_are_no_sequence_but_may_be_together() -> None:
    assert answers("A : B", ("x", 1, "a"), ("x", 1, "b")) == []
    assert answers("A AND B", ("x", 1, "b"), ("x", 1, "a")) == [(None, 1, 1)]


def test_a_longer_way_is_found_where_the_latest_start_does_not_fit() -> None:
    seen = [("x", 0, "a"), ("x", 4, "b"), ("x", 7, "b"), ("x", 9, "c")]
    assert answers("A :[0,5] (B : C)", *seen) == [(None, 0, 9)]
    assert answers("A : !B : C", ("x", 1, "a"), ("x", 2, "c"), ("x", 3, "b"), ("x", 4, "c")) == [(None, 1, 2)]
    assert answers("(A : B) :[1,1] C", ("x", 0, "a"), ("x", 5, "b"), ("x", 6, "c")) == [(None, 0, 6)]
    assert answers("(A : B) : !A : C", ("x", 0, "a"), ("x", 1, "a"), ("x", 5, "b"), ("x", 6, "c")) == [(None, 1, 6)]


def test_within_binds_timers_too() -> None:
    seen = [("x", 0, "a"), ("x", 3, "b"), ("x", 9, "b")]
    assert answers("(A : B) : !C[5]", *seen, within=8) == [(None, 0, 8)]
    assert answers("(A : B) : !C[5]", ("x", 0, "a"), ("x", 4, "b"), ("x", 20, "b"), within=8) == []


def test_what_cannot_occur_has_no_answers() -> None:
    seen = [("x", t, reader) for t in range(12) for reader in "abc"]
    for pattern in ("A :[0,0] B", "(A : B) ;[0] C", "A : !B[60] : !C[60]", "A : !B[200]", "(A : !B[6]) ;[5] C"):
        assert answers(pattern, *seen) == []


def test_what_is_over_is_not_kept() -> None:
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in "AB"}
    queries = registered([{"family": "composite", "pattern": "A : B", "primitives": primitives, "within": 10, "per": "entity"}], PLANE)
    evaluator = Evaluator.start(PLANE, queries)
    stamper = Stamper()
    for start in range(0, 20_000, 1000):
        evaluator.process(stamper.stamp(table_of(rows(*((f"e{t}", t, "a") for t in range(start, start + 1000))))))
    (work,) = evaluator.counters().values()
    assert work["events_kept"] <= 11
    assert len(evaluator.dump()) < 900_000  # The names of 20,000 entities, and little else.


@st.composite
def visits(draw: st.DrawFn) -> list[Row]:
    """One sample a time for each of two entities, in and out of a circle."""
    found: list[dict[str, Any]] = []
    for t in range(draw(st.integers(0, 14))):
        for entity in draw(st.sampled_from(["", "a", "b", "ab"])):
            x = draw(st.sampled_from([0.0, 5.0]))
            found.append({"seq": len(found), "entity": entity, "t": t, "x": x, "y": 0.0})
    return found


@given(visits(), st.integers(1, 6))
def test_region_transitions_are_composite_patterns(world: Sequence[Row], span: int) -> None:
    circle = {"center": [0, 0], "radius": 1}
    primitives = {"In": {"inside": circle}, "Out": {"outside": circle}}
    entering = "(Out : !(In OR Out) : In)"
    composites = [
        {"family": "composite", "pattern": pattern, "primitives": primitives, "within": 1000, "per": "entity"}
        for pattern in (f"{entering} : !Out :[1,{span}] Out", f"{entering} : !Out[{span}]")
    ]
    transition = {"family": "transition", "region": circle, "within": span, "types": ["passed", "stayed_in"]}
    evaluator = Evaluator.start(PLANE, registered([*composites, transition], PLANE))
    found = evaluator.process(Stamper().stamp(table_of(world))).changes.to_pylist() + evaluator.finish().changes.to_pylist()
    kinds = {"0": "passed", "1": "stayed_in"}
    composite = sorted((kinds[row["query"]], row["entities"], row["end"]) for row in found if row["query"] in kinds)
    assert composite == sorted((row["kind"], row["entities"], row["end"]) for row in found if row["query"] == "2")


def test_a_query_that_searches_too_long_is_stopped_with_the_time_as_people_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*arguments: Any) -> int:
        (work,) = (one for one in arguments if isinstance(one, SearchBuffers))
        work.cursor[[GIVEN_UP, GIVEN_UP_AT]] = 0, 1_700_000_000_000
        return TOO_MUCH_WORK

    monkeypatch.setattr("engine.complex_events.operator.advance", gives_up)
    document = {"family": "composite", "pattern": "A : B", "primitives": {"A": {}, "B": {}}, "within": 100}
    sea = replace(PLANE, time=TimeUnit.MS)
    evaluator = Evaluator.start(sea, registered([document], sea))
    with pytest.raises(QueryStopped, match=r"one search at t = 2023-11-14 22:13:20\.000 UTC visits"):
        evaluator.process(Stamper().stamp(table_of(rows(("x", 1, "a")))))
