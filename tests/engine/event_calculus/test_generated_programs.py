"""Programs drawn from the language's grammar against the oracle: one window, sliding windows,
disorder, partitions, restarts."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.event_calculus import derived, fused
from engine.event_calculus.compiler import compile_text
from engine.event_calculus.parser import ProgramRefused
from engine.event_calculus.program import Program
from engine.event_calculus.shapes import base_name
from engine.event_calculus.state import Settings
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.event_calculus.grammar import KNOWLEDGE, generated
from tests.engine.event_calculus.test_partitioning import ENTITIES, FEED, LATENESS, answer, table
from tests.engine.event_calculus.worlds import INPUTS, LAST, ByEngine, Row, by_oracle, on_time, rows
from tests.examples import examples

ONE_WINDOW = Settings(window=LAST + 30, step=LAST + 30, origin=LAST)
MANY_REFUSED = [HealthCheck.filter_too_much, HealthCheck.too_slow]


def accepted(text: str) -> Program:
    try:
        return compile_text(KNOWLEDGE + text, inputs=INPUTS)
    except ProgramRefused:
        assume(False)
        raise


@settings(max_examples=examples(60), deadline=None, suppress_health_check=MANY_REFUSED)
@given(generated(), rows(), st.sampled_from(["rtec", "rtec", "rtec1"]), st.sampled_from([0, 2, fused.MAX_ROWS]))
def test_a_program_is_the_oracle(text: str, stream: list[Row], dialect: str, few: int) -> None:
    program = accepted(text)
    engine = ByEngine(program, Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, dialect=dialect))
    with patch.object(derived, "MAX_ROWS", few):
        engine.feed_at_once(stream, on_time(stream))
    assert engine.facts == (by_oracle(KNOWLEDGE + text, stream, dialect) if stream else set()), text


@settings(max_examples=examples(40), deadline=None, suppress_health_check=MANY_REFUSED)
@given(generated(timeless=True), rows(), st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_sliding_windows_are_the_oracle(text: str, stream: list[Row], step: int, longer: int, restart: bool) -> None:
    stream = [row for row in stream if INPUTS[row[0]][0] != "intervals" or row[3] - row[2] <= longer]
    program = accepted(text)
    sliding = ByEngine(program, Settings(step + longer, step, LAST % step), restart=restart)
    sliding.feed(stream, on_time(stream))
    assert sliding.facts == (by_oracle(KNOWLEDGE + text, stream, "rtec") if stream else set()), text


@st.composite
def disordered(draw: st.DrawFn, longest: int) -> list[Row]:
    """Rows up to the feed's lateness late, intervals no longer than `longest`; the last is at LAST,
    the end of the oracle's time."""
    stream = [row for row in draw(rows()) if INPUTS[row[0]][0] != "intervals" or row[3] - row[2] <= longest]
    delays = [draw(st.integers(0, LATENESS)) for _ in stream]
    order = sorted(zip(delays, stream, strict=True), key=lambda pair: pair[0] + pair[1][2])
    return [*(row for _, row in order), ("go", ("nobody",), LAST, LAST + 1)]


def asked(text: str, **when: Any) -> RegisteredQuery:
    program = accepted(text)
    outputs = sorted({base_name(name) for name, _ in program.fluents | program.events})
    document = {"family": "calculus", "version": 1, "program": KNOWLEDGE + text, "inputs": ENTITIES, "outputs": outputs, **when}
    return RegisteredQuery("q", 1, check(document, FEED))


def answered(query: RegisteredQuery, stream: list[Row], data: st.DataObject) -> set[tuple[Any, ...]]:
    """The sum of the changes of all batches, from an evaluator with several partitions that may be
    restarted after each batch."""
    batch_rows, partitions, restart = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4)), data.draw(st.booleans())
    total = sum(answer(query, table(stream), batch_rows, partitions, restart=restart), Counter())
    assert all(weight == 1 for weight in total.values())
    return {(name, arguments, value or "", start, end) for name, arguments, value, start, end in total}


@settings(max_examples=examples(40), deadline=None, suppress_health_check=MANY_REFUSED)
@given(generated(timeless=True), st.data())
def test_windows_disorder_partitions_and_restarts_are_the_oracle(text: str, data: st.DataObject) -> None:
    """Windows long enough for all late rows: a step, the lateness and the
    longest interval together."""
    step, longer = data.draw(st.integers(1, 9)), data.draw(st.integers(LATENESS, LATENESS + 6))
    dialect, stream = data.draw(st.sampled_from(["rtec", "rtec", "rtec1"])), data.draw(disordered(longer))
    query = asked(text, window=step + longer, step=step, origin=LAST % step, dialect=dialect, distributed=data.draw(st.booleans()))
    assert answered(query, stream, data) == by_oracle(KNOWLEDGE + text, stream, dialect), text


@settings(max_examples=examples(40), deadline=None, suppress_health_check=MANY_REFUSED)
@given(generated(), disordered(LAST), st.sampled_from(["rtec", "rtec1"]), st.data())
def test_one_window_disorder_partitions_and_restarts_are_the_oracle(text: str, stream: list[Row], dialect: str, data: st.DataObject) -> None:
    """All constructs, also those of time: durations, complements, Allen's relations."""
    query = asked(text, window=LAST + 30, step=LAST + 30, origin=LAST, dialect=dialect, distributed=data.draw(st.booleans()))
    assert answered(query, stream, data) == by_oracle(KNOWLEDGE + text, stream, dialect), text


TAKEN_FROM_LONG = """
    initiatedAt(slow(X)=true, T) :- happensAt(ev(X), T).
    terminatedAt(slow(X)=true, T) :- happensAt(go(X), T).
    initiatedAt(near(X)=true, T) :- happensAt(tie(X, _), T).
    terminatedAt(near(X)=true, T) :- happensAt(tie(_, X), T).
    holdsFor(odd(X)=true, I) :-
        holdsFor(slow(X)=true, S), holdsFor(near(X)=true, N), intDurGreater(S, 2, L), relative_complement_all(L, [N], I).
    """


@st.composite
def beginnings_and_ends(draw: st.DrawFn) -> list[Row]:
    """Of slow(a) and near(a), some late: both begin early and change rarely, so that much holds
    longer than a window."""
    happened = []
    for begins, ends in ((("ev", ("a",)), ("go", ("a",))), (("tie", ("a", "b")), ("tie", ("b", "a")))):
        t = draw(st.integers(0, 4))
        for row in (begins, ends, begins, ends):
            happened.append((t + draw(st.sampled_from([0, 0, LATENESS])), row, t))
            t += draw(st.sampled_from([1, 2, 3, 6, 12, LAST]))
    return [*((name, arguments, t, t + 1) for _, (name, arguments), t in sorted(happened) if t < LAST), ("go", ("nobody",), LAST, LAST + 1)]


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_what_is_taken_from_long_intervals_is_the_oracles_in_sliding_windows(data: st.DataObject) -> None:
    """Windows in which an interval becomes long before its start leaves them, however late its rows
    are: 2 is its duration."""
    step, stream = data.draw(st.integers(1, 4)), data.draw(beginnings_and_ends())
    window = step + LATENESS + 2 + data.draw(st.integers(2, 4))
    query = asked(TAKEN_FROM_LONG, window=window, step=step, origin=LAST % step, dialect=data.draw(st.sampled_from(["rtec", "rtec1"])))
    assert answered(query, stream, data) == by_oracle(KNOWLEDGE + TAKEN_FROM_LONG, stream, "rtec")


FROM_THE_BEGINNING = """
    initially(simple0(X)=off) :- pal(X, Y).
    initiatedAt(simple0(X)=on, T) :- happensAt(ev(X), T).
    grounding(simple0(X)=on) :- kind(X, _).
    grounding(simple0(X)=off) :- kind(X, _).
    holdsFor(derived1(X)=true, I) :- holdsFor(simple0(X)=off, I1), low(X), union_all([I1], I).
    """


@pytest.mark.parametrize("edge", ["rtec", "exact"])
@pytest.mark.parametrize("first", [1, 5, LAST])
def test_what_follows_from_initially_holds_from_the_beginning_of_time_whenever_the_first_row_comes(first: int, edge: str) -> None:
    for kind in ("go", "iv"):
        stream: list[Row] = [("go", ("nobody",), first, first + 1) if kind == "go" else ("iv", ("a",), first, first + 2)]
        stream.append(("go", ("nobody",), LAST + 2, LAST + 3))
        query = asked(FROM_THE_BEGINNING, window=7, step=1, origin=0, dialect="rtec", edge=edge)
        total = sum(answer(query, table(stream), 1, 1, restart=False), Counter())
        found = {(name, arguments, start, end) for name, arguments, _, start, end in total if name == "derived1"}
        assert ("derived1", ("a",), 0, None) in found
        assert {begin for _, _, begin, _ in found} == {0}, kind


def test_what_holds_initially_is_not_lost_when_no_rule_reads_the_first_rows() -> None:
    text = "initially(simple0(b)=on).\ninitiatedAt(simple0(X)=on, T) :- happensAt(ev(X), T).\n"
    stream: list[Row] = [("iv", ("a",), 1, 7), ("go", ("nobody",), LAST, LAST + 1)]
    total = sum(answer(asked(text, window=7, step=1, origin=0, dialect="rtec"), table(stream), 1, 1, restart=False), Counter())
    assert {(name, arguments, value, start, end) for name, arguments, value, start, end in total} == {("simple0", ("b",), "on", 0, None)}


@pytest.mark.parametrize("what", ["begins", "goes on"])
def test_a_head_left_to_its_grounding_is_not_any(what: str) -> None:
    """Persons a and b, e and d(a) at 5, so s(b) holds from 6 on."""
    text = {
        "begins": "initiatedAt(s(C)=true, T) :- happensAt(e(_), T), \\+ happensAt(d(C), T).",
        "goes on": "initiatedAt(s(C)=true, T) :- happensAt(f(_), T). terminatedAt(s(C)=true, T) :- happensAt(e(_), T), \\+ happensAt(d(C), T).",
    }[what]
    inputs = {"e": ("event", 1), "d": ("event", 1), "f": ("event", 1)}
    program = compile_text(f"{text} grounding(s(C)=true) :- person(C). person(a). person(b).", inputs=inputs)
    engine = ByEngine(program, ONE_WINDOW, inputs=inputs)
    stream: list[Row] = [("f", ("x",), 2, 3), ("d", ("a",), 5, 6), ("e", ("x",), 5, 6)]
    engine.feed_at_once(stream, on_time(stream, inputs))
    began = {("s", ("b",), "true", 6, None)}
    assert engine.facts == (began if what == "begins" else {("s", ("a",), "true", 3, None), ("s", ("b",), "true", 3, 6)})
