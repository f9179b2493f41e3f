"""A missing number has no name: it satisfies no condition and is in no answer; an infinite
one is a number like others."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.event_calculus.recordings import answers
from tests.engine.runs import final_answers

FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks", "tick": 1, "lateness": 0, "columns": {"speed": "float", "limit": "float"}})
ROWS = [("a", 1, 3.0, 3.0), ("b", 2, None, None), ("c", 3, math.inf, None), ("d", 4, None, 3.0), ("e", 5, 4.5, math.inf)]


def found(rules: str, output: str) -> list[tuple[Any, ...]]:
    """(entities, value) of all answers about `output`."""
    inputs = {"move": {"args": ["entity", "speed", "limit"]}}
    document = {"family": "calculus", "version": 1, "program": rules, "outputs": [output], "window": 20, "step": 10, "inputs": inputs}
    columns = dict(zip(("entity", "t", "speed", "limit"), (list(column) for column in zip(*ROWS, strict=True)), strict=True))
    good, _ = check_rows(pa.table({"event": ["move"] * len(ROWS), **columns}), FEED)
    asserted = answers(RegisteredQuery("q", 1, check(document, FEED)), FEED, Stamper().stamp(good))
    return sorted((tuple(fact[1]), fact[2]) for fact in asserted)


@pytest.mark.parametrize(
    ("body", "who"),
    [
        ("happensAt(move(V, S, L), T)", "abcde"),
        ("happensAt(move(V, S, L), T), S > 3.5", "ce"),
        ("happensAt(move(V, S, L), T), S =\\= 3", "ce"),
        ("happensAt(move(V, S, L), T), S \\= 3", "ce"),
        ("happensAt(move(V, S, L), T), S @>= 4", "ce"),
        ("happensAt(move(V, S, L), T), S = S", "ace"),
        ("happensAt(move(V, S, L), T), S = L", "a"),
        ("happensAt(move(V, S, L), T), \\+ S > 3.5", "abd"),
    ],
)
def test_conditions(body: str, who: str) -> None:
    assert found(f"initiatedAt(moves(V)=true, T) :- {body}.", "moves") == [((one,), "true") for one in who]


@pytest.mark.parametrize("head", ["initiatedAt(at(S)=true, T)", "happensAt(at(S), T)"])
def test_arguments_of_a_head(head: str) -> None:
    value = None if head.startswith("happens") else "true"
    assert found(f"{head} :- happensAt(move(V, S, L), T).", "at") == [((one,), value) for one in ("3", "4.5", "inf")]


def test_values_of_a_fluent() -> None:
    assert found("initiatedAt(limit(V)=L, T) :- happensAt(move(V, S, L), T).", "limit") == [(("a",), "3"), (("d",), "3"), (("e",), "inf")]


def test_a_domain_of_pairs_knows_only_named_ones() -> None:
    rules = """dynamicDomain(pair(_, _)). grounding(move(V, S, L)) :- pair(V, S). grounding(fast(V, S)=true) :- pair(V, S).
    initiatedAt(fast(V, S)=true, T) :- happensAt(move(V, S, L), T)."""
    assert [entities for entities, _ in found(rules, "fast")] == [("a", "3"), ("c", "inf"), ("e", "4.5")]


def test_whole_numbers_that_no_double_holds_are_rounded() -> None:
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks", "columns": {"count": "int"}})
    inputs = {"move": {"args": ["entity", "count"]}}
    document = {"family": "calculus", "program": "happensAt(at(N), T) :- happensAt(move(_, N), T).", "window": 20, "step": 10, "inputs": inputs}
    found = final_answers(feed, [document], [{"event": "move", "entity": "a", "t": 1, "count": 2**53 + 1}])
    assert [fact["entities"] for fact in found] == [["9007199254740992.0"]]
