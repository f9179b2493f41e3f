"""Every edge of a computed fluent is explained by a rule, and evaluating that rule confirms it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.explanation import Explainer
from engine.event_calculus.intervals import INF
from engine.event_calculus.parser import clause_texts
from engine.event_calculus.sandbox import run_sandbox
from engine.event_calculus.shapes import base_name
from engine.event_calculus.state import Settings
from engine.model.faults import Refused
from tests.engine.event_calculus.test_operator import DOCUMENT, FEED, PROGRAM, stamped
from tests.engine.event_calculus.worlds import FACTS, LAST, ByEngine, Row, compiled, divided, on_time, programs, rows, with_terms
from tests.examples import examples

STORY = [("enter", "a", 2, 0, 0), ("enter", "b", 3, 0, 0), ("position", "a", 5, 0, 0), ("position", "b", 5, 1, 1), ("leave", "b", 9, 0, 0)]


@settings(max_examples=examples(60), deadline=None)
@given(st.one_of(programs(), divided(), st.one_of(programs(), divided()).map(with_terms)), rows(), st.sampled_from(["rtec", "rtec1"]))
def test_every_edge_has_its_rule(text: str, stream: list[Row], dialect: str) -> None:
    """In one window that begins before the first row every edge has a rule."""
    program = compiled(text)
    engine = ByEngine(program, Settings(LAST + 60, LAST + 60, LAST, dialect=dialect))
    for row, arrived in zip(stream, on_time(stream), strict=True):
        engine._take(row, arrived)
    evaluation, _ = engine.windows.evaluate(engine.state, LAST)
    explainer = Explainer(evaluation, clause_texts(FACTS + text))
    for node, table in evaluation.fluents.items():
        for row_ in range(table.n):
            key = tuple(int(column[row_]) for column in table.keys)
            for k in range(table.lists.ptr[row_], table.lists.ptr[row_ + 1]):
                s, e = int(table.lists.s[k]), int(table.lists.e[k])
                causes = [explainer.explain_start(node, key, s), explainer.explain_end(node, key, e)]
                assert causes[0] is not None, (text, node, s)
                assert (causes[1] is None) == (e == INF), (text, node, e)
                for cause in causes:
                    assert cause is None or base_name(node.name) + "(" in cause.text.split(":-")[0]


def lane(lanes: list[dict[str, Any]], fluent: str, *args: str) -> dict[str, Any]:
    return next(lane for lane in lanes if lane["fluent"] == fluent and lane["args"] == list(args))


def test_lanes_of_all_fluents_with_their_rules() -> None:
    lanes = run_sandbox(PROGRAM, DOCUMENT, FEED, stamped(STORY), 0, 12)
    assert [(one["fluent"], one["level"], one["kind"]) for one in lanes] == [
        ("close", 0, "input"), ("close", 0, "input"), ("present", 1, "simple"), ("present", 1, "simple"),
        ("together", 2, "derived"), ("parted", 3, "event"),
    ]  # fmt: skip
    (interval,) = lane(lanes, "present", "b")["intervals"]
    assert (interval["start"], interval["end"]) == (4, 10)
    assert interval["rule_start"] == {
        "line": 3, "text": "initiatedAt(present(P)=true, T) :- happensAt(enter(P), T).", "t": 3, "because": ["happensAt(enter(b), 3)"],
    }  # fmt: skip
    assert interval["rule_end"]["because"] == ["happensAt(leave(b), 9)"]
    (met,) = lane(lanes, "together", "a", "b")["intervals"]
    assert met["rule_start"]["because"] == ["close(a, b)=true begins", "present(a)=true holds", "present(b)=true holds"]
    assert lane(lanes, "parted", "a", "b")["intervals"][0]["rule_start"]["because"] == ["happensAt(end(together(a, b)=true), 5)"]
    assert lane(lanes, "close", "a", "b")["intervals"][0]["rule_start"] is None
    assert not lane(lanes, "close", "a", "b")["is_output"]


def test_lanes_of_terms_are_reported_as_answers_are() -> None:
    rules = """
initiatedAt(pow(leave(P))=true, T) :- happensAt(enter(P), T).
terminatedAt(pow(leave(P))=true, T) :- happensAt(leave(P), T).
happensAt(reported(left(P), 1), T) :- happensAt(end(pow(leave(P))=true), T).
happensAt(reported(left(P), 2), T) :- happensAt(reported(left(P), 1), T).
"""
    lanes = run_sandbox(PROGRAM + rules, {**DOCUMENT, "outputs": ["pow"]}, FEED, stamped(STORY), 0, 12)
    power = lane(lanes, "pow", "leave", "b")
    assert power["is_output"] and [(one["start"], one["end"]) for one in power["intervals"]] == [(4, 10)]
    first, second = lane(lanes, "reported", "left", "b", "1"), lane(lanes, "reported", "left", "b", "2")
    assert first["level"] < second["level"]
    assert first["intervals"][0]["rule_start"]["because"] == ["happensAt(end(pow(leave(b))=true), 9)"]
    assert second["intervals"][0]["rule_start"]["because"] == ["happensAt(reported(left(b), 1), 9)"]
    assert power["intervals"][0]["rule_end"]["because"] == ["happensAt(leave(b), 9)"]


def test_only_the_period_and_the_entities_asked_for() -> None:
    assert run_sandbox(PROGRAM, DOCUMENT, FEED, stamped(STORY), 20, 30) == []
    lanes = run_sandbox(PROGRAM, DOCUMENT, FEED, stamped(STORY), 0, 4, entities=["a"])
    assert [(one["fluent"], one["args"], one["intervals"][0]["end"]) for one in lanes] == [("present", ["a"], None)]


def test_refusals_and_the_limit() -> None:
    with pytest.raises(Refused, match="line 2"):
        run_sandbox("\nbroken(", DOCUMENT, FEED, stamped(STORY), 0, 12)
    with pytest.raises(LimitExceeded, match="more than 3 intervals"):
        run_sandbox(PROGRAM, DOCUMENT, FEED, stamped(STORY), 0, 12, limit=3)


def test_clause_texts_are_as_written() -> None:
    texts = clause_texts("a(1). b(2).\n% note\ninitiatedAt(f(X)=true, T) :-\n  happensAt(e(X), T).  ")
    assert list(texts.values()) == ["a(1).", "b(2).", "initiatedAt(f(X)=true, T) :-\n  happensAt(e(X), T)."]
