"""Relations defined by themselves with other constants, compound terms, and conditions of
`initially`, against the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.state import Settings
from tests.engine.event_calculus.worlds import (
    FACTS,
    INPUTS,
    LAST,
    ByEngine,
    Facts,
    Row,
    by_oracle,
    compiled,
    divided,
    in_terms,
    on_time,
    programs,
    rows,
    with_terms,
)
from tests.examples import examples

ONE_WINDOW = Settings(window=LAST + 30, step=LAST + 30, origin=LAST)


def by_engine(text: str, stream: list[Row], settings_: Settings = ONE_WINDOW, *, restart: bool = False) -> Facts:
    engine = ByEngine(compiled(text), settings_, restart=restart)
    if settings_ is ONE_WINDOW:
        engine.feed_at_once(stream, on_time(stream))
    else:
        engine.feed(stream, on_time(stream))
    return engine.facts


@settings(max_examples=examples(60), deadline=None)
@given(divided(), rows(), st.sampled_from(["rtec", "rtec1"]))
def test_levels_by_constants_are_the_oracle(text: str, stream: list[Row], dialect: str) -> None:
    window = Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, dialect=dialect)
    engine = ByEngine(compiled(text.replace("(X, 2)", "(X, 2.0)", 1)), window)
    engine.feed_at_once(stream, on_time(stream))
    assert engine.facts == (by_oracle(FACTS + text, stream, dialect) if stream else set()), text


@settings(max_examples=examples(40), deadline=None)
@given(divided(), rows(), st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_levels_by_constants_over_sliding_windows(text: str, stream: list[Row], step: int, longer: int, restart: bool) -> None:
    stream = [row for row in stream if INPUTS[row[0]][0] != "intervals" or row[3] - row[2] <= longer]
    sliding = by_engine(text, stream, Settings(step + longer, step, LAST % step), restart=restart)
    assert sliding == by_engine(text, stream), text


@settings(max_examples=examples(40), deadline=None)
@given(st.one_of(programs(), divided()), rows())
def test_what_stands_in_terms_is_what_stands_without(text: str, stream: list[Row]) -> None:
    flat = by_oracle(FACTS + text, stream, "rtec") if stream else set()
    assert by_engine(with_terms(text), stream) == in_terms(flat), text


@settings(max_examples=examples(20), deadline=None)
@given(st.one_of(programs(timeless=True), divided()), rows(), st.integers(1, 8), st.integers(0, 8))
def test_terms_over_sliding_windows(text: str, stream: list[Row], step: int, longer: int) -> None:
    sliding = Settings(step + longer, step, LAST % step)
    assert by_engine(with_terms(text), stream, sliding, restart=True) == in_terms(by_engine(text, stream, sliding)), text


CONDITIONS = [
    "",
    "kind(X, N)",
    "kind(X, N), N > 1",
    "kind(X, N), M is N * 2 - 1, M =< 3",
    "kind(X, _), \\+ kind(X, 2)",
    "kind(X, _), X \\= b",
    "X = a",
]
GROUNDINGS = ["", "grounding(f(X)=V) :- kind(X, N), N < 3, value(V).", "grounding(f(X)=on) :- kind(X, _)."]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.sampled_from(CONDITIONS), st.sampled_from(GROUNDINGS), st.sampled_from(["f(X)=on", "f(a)=on", "f(X)=off", "f(_)=on", "g(t(X))=on"]),
    st.sampled_from(["", "initiatedAt(f(_)=off, T) :- happensAt(ev(a), T)."]), rows(),
)  # fmt: skip
def test_initially_with_conditions_is_the_oracle(condition: str, grounding: str, head: str, opened: str, stream: list[Row]) -> None:
    opened = opened if "=V" in grounding else ""
    unbound = ("X" in head and not condition) or "_" in head
    body = f" :- {condition}" if condition else ""
    text = f"""value(on). value(off). {grounding} {opened}
        initially({head}){body}.
        initiatedAt(f(X)=on, T) :- happensAt(go(X), T).
        terminatedAt(f(X)=_, T) :- happensAt(ev(X), T).
        terminatedAt(g(t(X))=_, T) :- happensAt(ev(X), T)."""
    if unbound and (not grounding or head.startswith("g")):
        with pytest.raises(ValueError, match="unsafe"):
            compiled(text)
        return
    plain = text.replace("g(t(X))", "gt(X)")
    flat = by_oracle(FACTS + plain, stream, "rtec") if stream else set()
    wanted = {("g", ("t", *arguments), value, s, e) if name == "gt" else (name, arguments, value, s, e) for name, arguments, value, s, e in flat}
    assert by_engine(text, stream) == wanted, text


OVERLAPPING = """
initiatedAt(g(X)=on, T) :- happensAt(ev(X), T).
terminatedAt(g(X)=on, T) :- happensAt(go(X), T).
holdsFor(f(X)=V, I) :- holdsFor(g(X)=V, I).
holdsFor(f(X)=on, I) :- holdsFor(pt(X)=true, I1), holdsFor(iv(X)=true, I2), union_all([I1, I2], I).
happensAt(begun(X), T) :- happensAt(start(f(X)=on), T).
initiatedAt(seen(X)=true, T) :- happensAt(end(f(X)=on), T).
"""


@settings(max_examples=examples(20), deadline=None)
@given(rows(), st.sampled_from(["f(X)=V", "f(X)=on"]))
def test_rules_that_state_the_same_begin_and_end_it_together(stream: list[Row], head: str) -> None:
    """If one rule's list is within another's, it adds no edge."""
    text = OVERLAPPING.replace("f(X)=V, I) :- holdsFor(g(X)=V", f"{head}, I) :- holdsFor(g(X)={head[-2:].strip('=')}")
    assert by_engine(text, stream) == (by_oracle(FACTS + text, stream, "rtec") if stream else set())


def test_a_grounding_that_is_not_declared_is_initiated_for_no_condition() -> None:
    text = """only('7'). grounding(f(X)=on) :- only(X).
        initiatedAt(f(X)=on, T) :- happensAt(ev(X), T).
        initiatedAt(g(X)=on, T) :- initiatedAt(f(X)=on, _, T, _)."""
    stream: list[Row] = [("ev", ("a",), 5, 5), ("ev", ("7",), 6, 6)]
    facts = {(name, arguments) for name, arguments, *_ in by_engine(text, stream)}
    assert facts == {(name, arguments) for name, arguments, *_ in by_oracle(text, stream, "rtec")} == {("f", ("7",)), ("g", ("7",))}
