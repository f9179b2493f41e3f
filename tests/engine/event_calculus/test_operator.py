"""The family's operator: batches, partitions, restarts, queries that are added and
removed, late rows, refusals."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.candidates import essential
from engine.event_calculus.compiler import compile_text
from engine.model.events import Stamper, check_rows
from engine.model.faults import Refused
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.event_calculus.recordings import add, answers
from tests.examples import examples

FEED = Feed.from_json(
    {"name": "yard", "crs": "planar", "time": "ticks", "tick": 1, "lateness": 30, "columns": {"entity2": "string", "value": "string"}}
)
PROGRAM = """
spatial(close(P, Q)=true, distance(position, 2)).
initiatedAt(present(P)=true, T) :- happensAt(enter(P), T).
terminatedAt(present(P)=true, T) :- happensAt(leave(P), T).
holdsFor(together(P, Q)=true, I) :-
    holdsFor(close(P, Q)=true, Ic), holdsFor(present(P)=true, Ip), holdsFor(present(Q)=true, Iq), P @< Q,
    intersect_all([Ic, Ip, Iq], I).
happensAt(parted(P, Q), T) :- happensAt(end(together(P, Q)=true), T).
"""
DOCUMENT: dict[str, Any] = {
    "family": "calculus", "version": 1, "program": PROGRAM, "outputs": ["present", "together", "parted"], "window": 20, "step": 4,
    "inputs": {"enter": {"args": ["entity"]}, "leave": {"args": ["entity"]}, "position": {"args": ["entity"]}},
}  # fmt: skip


def query(name: str = "q", version: int = 1, **changed: Any) -> RegisteredQuery:
    return RegisteredQuery(name, version, check({**DOCUMENT, "name": name, **changed}, FEED))


Row = tuple[str, str, int, int, int]


def stamped(rows: list[Row]) -> pa.Table:
    table = pa.table(
        {
            "event": pa.array([row[0] for row in rows], pa.string()), "entity": pa.array([row[1] for row in rows], pa.string()),
            "t": pa.array([row[2] for row in rows], pa.int64()),
            "x": pa.array([float(row[3]) if row[0] == "position" else None for row in rows], pa.float64()),
            "y": pa.array([float(row[4]) if row[0] == "position" else None for row in rows], pa.float64()),
        }
    )  # fmt: skip
    good, dead = check_rows(table, FEED)
    assert not dead
    return Stamper().stamp(good)


streams = st.lists(
    st.tuples(st.sampled_from(["enter", "leave", "position"]), st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 3), st.integers(0, 3)),
    min_size=1, max_size=40,
)  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@given(streams, st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_batches_and_partitions(rows: list[Row], batch_rows: int, partitions: int, distributed: bool) -> None:
    table, asked = stamped(rows), query(distributed=distributed)
    assert answers(asked, FEED, table, batch_rows=batch_rows, partitions=partitions) == answers(query(), FEED, table)


@settings(max_examples=examples(40), deadline=None)
@given(streams, st.data())
def test_restart_between_batches(rows: list[Row], data: st.DataObject) -> None:
    table = stamped(rows)
    cut = data.draw(st.integers(0, len(rows)))
    evaluator = Evaluator.start(FEED, [query()])
    total: Counter[tuple[Any, ...]] = Counter()
    add(total, evaluator.process(table.slice(0, cut)).changes)
    evaluator = Evaluator.load(FEED, [query()], evaluator.dump())
    add(total, evaluator.process(table.slice(cut)).changes)
    add(total, evaluator.finish().changes)
    assert total == answers(query(), FEED, table)


@settings(max_examples=examples(25), deadline=None)
@given(streams, st.data())
def test_queries_come_and_go(rows: list[Row], data: st.DataObject) -> None:
    """A query that caught up answers as if it had always run, and does not affect the others."""
    table = stamped(rows)
    cut = data.draw(st.integers(0, len(rows)))
    other = query("other", step=6)
    running = Evaluator.start(FEED, [query()])
    total: Counter[tuple[Any, ...]] = Counter()
    side = running.side_evaluator([other])
    add(total, running.process(table.slice(0, cut)).changes)
    add(total, side.process(table.slice(0, cut)).changes)
    running.register([other, query()], side)
    add(total, running.process(table.slice(cut)).changes)
    add(total, running.finish().changes)
    assert total == answers(query(), FEED, table) + answers(other, FEED, table)
    running.register([])
    assert running.finish().changes.num_rows == 0


def test_a_late_row_revises_what_was_asserted() -> None:
    evaluator = Evaluator.start(FEED, [query()])
    table = stamped([("enter", "a", 2, 0, 0), ("enter", "b", 9, 0, 0), ("enter", "c", 13, 0, 0), ("leave", "a", 5, 0, 0), ("enter", "c", 30, 0, 0)])
    first = evaluator.process(table.slice(0, 3)).changes
    assert (["a"], 3, None, 1) in _facts(first)
    revised = evaluator.process(table.slice(3)).changes
    assert {(["a"][0], 3, None, -1), ("a", 3, 6, 1)} <= {(entities[0], start, end, weight) for entities, start, end, weight in _facts(revised)}


def _facts(changes: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(changes[name].to_pylist() for name in ("entities", "start", "end", "weight")), strict=True))


@pytest.mark.parametrize(
    ("changed", "pointer", "words"),
    [
        ({"window": 0}, "/window", "at least 1"),
        ({"steps": 3}, "/steps", "did you mean 'step'"),
        ({"program": 3}, "/program", "text of a program"),
        (
            {"program": PROGRAM.replace("present(P)=true, Ip", "presnt(P)=true, Ip")},
            "/program",
            "line 6, column 46: unknown fluent 'presnt'; did you mean 'present'?",
        ),
        ({"outputs": ["togehter"]}, "/outputs/0", "did you mean 'together'"),
        ({"inputs": {**DOCUMENT["inputs"], "enter": {"args": ["entitty"]}}}, "/inputs/enter/args/0", "did you mean 'entity"),
        ({"inputs": {**DOCUMENT["inputs"], "enter": {"args": ["entity", "entity2"]}}}, "/program", "event enter takes 2 arguments, not 1"),
        ({"dialect": "rtec2"}, "/dialect", "did you mean"),
        ({"edge": "soft"}, "/edge", "unknown value"),
        ({"window": "PT3M"}, "/window", "whose time is"),
    ],
)
def test_refusals(changed: dict[str, Any], pointer: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        query(**changed)
    assert any(fault.pointer == pointer and words in fault.message for fault in caught.value.faults), caught.value.faults


def test_an_input_with_an_unknown_column_is_no_unknown_event() -> None:
    with pytest.raises(Refused) as caught:
        query(inputs={**DOCUMENT["inputs"], "enter": {"args": ["entitty"]}})
    assert [fault.pointer for fault in caught.value.faults] == ["/inputs/enter/args/0"]


def test_columns_of_a_stored_state_are_in_the_order_of_the_text() -> None:
    """Another process reads them, with other hashes of names."""
    program = compile_text("""
    collectIntervals(g(_, _, _, _, _, _, _)=true). collectIntervals(h(_, _, _, _, _, _, _)=true).
    holdsFor(long(A)=true, I) :- holdsFor(g(A, Q, C, Z, E, X, G)=true, I1), holdsFor(h(A, Q, C, Z, E, X, G)=true, I2),
        intersect_all([I1, I2], I0), intDurGreater(I0, 5, I).
    """)
    assert essential(program.interval_rules[0]) == ["A", "Q", "C", "Z", "E", "X", "G"]
