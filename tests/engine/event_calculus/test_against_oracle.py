"""Random programs over random streams: the compiled plan against sets of ticks, windows against one
window, late against in order."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus import derived, fused
from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.state import Settings
from tests.engine.event_calculus.worlds import FACTS, INPUTS, LAST, ByEngine, Row, by_oracle, compiled, on_time, programs, rows
from tests.examples import examples

ONE_WINDOW = Settings(window=LAST + 30, step=LAST + 30, origin=LAST)


@settings(max_examples=examples(150), deadline=None)
@given(programs(), rows(), st.sampled_from(["rtec", "rtec1"]), st.booleans(), st.sampled_from([0, 2, fused.MAX_ROWS]))
def test_one_window_is_the_oracle(text: str, stream: list[Row], dialect: str, exact: bool, few: int) -> None:
    """Both ways of evaluating holdsFor rules, and the switch between them."""
    program = compiled(text)
    engine = ByEngine(program, Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, dialect=dialect, exact=exact))
    with patch.object(derived, "MAX_ROWS", few):
        engine.feed_at_once(stream, on_time(stream))
    assert engine.facts == (by_oracle(FACTS + text, stream, dialect) if stream else set()), text


@settings(max_examples=examples(150), deadline=None)
@given(programs(timeless=True), rows(), st.integers(1, 8), st.integers(0, 8), st.sampled_from(["rtec", "rtec1"]), st.booleans())
def test_sliding_windows_are_one_window(text: str, stream: list[Row], step: int, longer: int, dialect: str, restart: bool) -> None:
    """Rows in order: no window drops rows that are still needed. Each interval comes as one row, so
    intervals fit into the window."""
    stream = [row for row in stream if INPUTS[row[0]][0] != "intervals" or row[3] - row[2] <= longer]
    program = compiled(text.replace("initially", "% initially"))
    whole = ByEngine(program, Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, dialect=dialect))
    whole.feed_at_once(stream, on_time(stream))
    sliding = ByEngine(program, Settings(step + longer, step, LAST % step, dialect=dialect), restart=restart)
    sliding.feed(stream, on_time(stream))
    assert sliding.facts == whole.facts, text


@settings(max_examples=examples(100), deadline=None)
@given(programs(timeless=True), rows(), st.data())
def test_late_rows_revise_to_the_same_answer(text: str, stream: list[Row], data: st.DataObject) -> None:
    """A row that is late by less than window - step - 1 has the same effect as one in time."""
    program = compiled(text.replace("initially", "% initially"))
    settings_ = Settings(window=14, step=4, origin=0)
    stream = [row for row in stream if INPUTS[row[0]][0] != "intervals"]
    in_order = ByEngine(program, settings_)
    in_order.feed_at_once(stream, on_time(stream))
    delays = [data.draw(st.integers(0, 8)) for _ in stream]
    order = sorted(range(len(stream)), key=lambda i: (stream[i][2] + delays[i], i))
    shuffled = [stream[i] for i in order]
    late = ByEngine(program, settings_)
    late.state.first_time = min((row[2] for row in stream), default=late.state.first_time)
    late.feed(shuffled, on_time(shuffled))
    assert late.facts == in_order.facts, text


@pytest.mark.parametrize("first", ["ev", "go"])
def test_a_value_ends_where_it_is_initiated_together_with_another(first: str) -> None:
    """Whichever of the two holds before: neither wins, and none begins."""
    program = "initiatedAt(f(X)=on, T) :- happensAt(ev(X), T). initiatedAt(f(X)=off, T) :- happensAt(go(X), T)."
    stream = sorted([(first, ("a",), 1, 2), ("ev", ("a",), 5, 6), ("go", ("a",), 5, 6)], key=lambda row: row[2])
    engine = ByEngine(compiled(program), ONE_WINDOW)
    engine.feed_at_once(stream, on_time(stream))
    value = {"ev": "on", "go": "off"}[first]
    assert engine.facts == {("f", ("a",), value, 2, 6)} == by_oracle(FACTS + program, stream, "rtec")


def test_a_window_looked_at_before_its_time_is_not_passed_over() -> None:
    """After a long silence a row comes and the clock does not advance, so its window is evaluated
    before the clock has passed it; then the clock moves far ahead."""
    program = compiled("initiatedAt(seen(X)=true, T) :- happensAt(ev(X), T).")
    engine = ByEngine(program, Settings(window=6, step=3))
    for moment, name in ((1, "a"), (100, ""), (200, "b"), (905, ""), (1000, "c")):
        if name:
            engine.feed_one(("ev", (name,), moment, moment + 1), moment)
            engine.look_ahead(moment)
        else:
            engine.pass_to(moment)
    assert engine.facts == {("seen", (name,), "true", moment, None) for name, moment in (("a", 2), ("b", 201), ("c", 1001))}


def test_a_window_that_would_take_too_long_is_refused_with_the_figure() -> None:
    """The bound counts rows read, so that it is the same on every machine."""
    program = compiled("initiatedAt(all(X, Y, Z, W)=true, T) :- happensAt(ev(X), T), kind(Y, _), kind(Z, _), kind(W, _).")
    engine = ByEngine(program, Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, max_work=5_100))
    stream: list[Row] = [("ev", (name,), t, t + 1) for t in range(20) for name in "abc"]
    with pytest.raises(LimitExceeded, match="5,100 rows"):
        engine.feed_at_once(stream, on_time(stream))


def test_pairs_come_from_what_joins_them_not_from_all_pairs() -> None:
    """With many entities on either side and more contacts than entities: joining the small lists
    first would give 160,000 rows."""
    lists = "holdsFor(iv(X)=true, I1), holdsFor(iv(Y)=true, I2), holdsFor(near(X, Y)=true, I3)"
    text = f"holdsFor(both(X, Y)=true, I) :- {lists}, intersect_all([I1, I2, I3], I)."
    engine = ByEngine(compiled(text), Settings(ONE_WINDOW.window, ONE_WINDOW.step, ONE_WINDOW.origin, max_work=50_000))
    names = [f"n{number}" for number in range(400)]
    stream: list[Row] = [("iv", (name,), 1, 5) for name in names]
    stream += [("near", (name, names[(place + k) % 400]), 2, 6) for place, name in enumerate(names) for k in (1, 2)]
    engine.feed_at_once(stream, on_time(stream))
    assert len(engine.facts) == 800


def test_events_of_one_moment_that_share_no_variable_give_all_pairs() -> None:
    program = compiled("initiatedAt(all(X, Y)=true, T) :- happensAt(ev(X), T), happensAt(go(Y), T).")
    names = [f"n{i}" for i in range(70)]
    stream: list[Row] = [(event, (name,), 2, 3) for event in ("ev", "go") for name in names]
    engine = ByEngine(program, ONE_WINDOW)
    engine.feed_at_once(stream, on_time(stream))
    assert engine.facts == {("all", (x, y), "true", 3, None) for x in names for y in names}


def test_what_ends_at_an_edge_does_not_end_again_after_a_silence() -> None:
    """A fluent that ended with the last tick before a window ends there once, for any
    number of skipped windows."""
    program = compiled("initiatedAt(busy(X)=on, T) :- happensAt(ev(X), T). fi(busy(X)=on, busy(X)=off, 2).")
    engine = ByEngine(program, Settings(window=7, step=1, dialect="rtec1"))
    for name, moment in (("a", 3), ("b", 20)):
        engine.feed_one(("ev", (name,), moment, moment + 1), moment)
    engine.pass_to(40)
    assert engine.facts == {
        *(("busy", ("a",), value, s, e) for value, s, e in (("on", 4, 6), ("off", 6, None))),
        *(("busy", ("b",), value, s, e) for value, s, e in (("on", 21, 23), ("off", 23, None))),
    }
