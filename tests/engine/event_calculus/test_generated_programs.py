"""Programs drawn from the language's grammar against the oracle: one window, sliding windows, late rows, restarts."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.event_calculus import derived, fused, fused_points
from engine.event_calculus.compiler import compile_text
from engine.event_calculus.parser import ProgramRefused
from engine.event_calculus.program import Program
from engine.event_calculus.windows import Settings
from tests.engine.event_calculus.grammar import KNOWLEDGE, generated
from tests.engine.event_calculus.worlds import INPUTS, LAST, ByEngine, Row, by_oracle, on_time, rows

ONE_WINDOW = Settings(window=LAST + 30, step=LAST + 30, origin=LAST)
MANY_REFUSED = [HealthCheck.filter_too_much, HealthCheck.too_slow]


def accepted(text: str) -> Program:
    try:
        return compile_text(KNOWLEDGE + text, inputs=INPUTS)
    except ProgramRefused:
        assume(False)
        raise


@settings(max_examples=60, deadline=None, suppress_health_check=MANY_REFUSED)
@given(generated(), rows(), st.sampled_from(["rtec", "rtec", "rtec1"]), st.sampled_from([0, 2, fused.MAX_ROWS]))
def test_a_program_is_the_oracle(text: str, stream: list[Row], dialect: str, few: int) -> None:
    program = accepted(text)
    engine = ByEngine(program, Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, dialect=dialect))
    with patch.object(derived, "MAX_ROWS", few), patch.object(fused_points, "MAX_ROWS", few):
        engine.feed_at_once(stream, on_time(stream))
    assert engine.facts == (by_oracle(KNOWLEDGE + text, stream, dialect) if stream else set()), text


@settings(max_examples=40, deadline=None, suppress_health_check=MANY_REFUSED)
@given(generated(timeless=True), rows(), st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_sliding_windows_are_the_oracle(text: str, stream: list[Row], step: int, longer: int, restart: bool) -> None:
    stream = [row for row in stream if INPUTS[row[0]][0] != "intervals" or row[3] - row[2] <= longer]
    program = accepted(text)
    sliding = ByEngine(program, Settings(step + longer, step, LAST % step), restart=restart)
    sliding.feed(stream, on_time(stream))
    assert sliding.facts == (by_oracle(KNOWLEDGE + text, stream, "rtec") if stream else set()), text


@pytest.mark.parametrize("what", ["begins", "goes on"])
def test_a_head_left_to_its_grounding_is_not_any(what: str) -> None:
    """The issue's own world: persons a and b, e and d(a) at 5, so s(b) holds from 6 on."""
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
