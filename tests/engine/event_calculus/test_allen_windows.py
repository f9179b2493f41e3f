"""Allen's relations in sliding windows, against sets of ticks: a source that ended before the
window still has the targets that come after it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.event_calculus.compiler import compile_text
from engine.event_calculus.state import Settings
from tests.engine.event_calculus.worlds import LAST, ByEngine, Facts, Inputs, Row, on_time
from tests.examples import examples
from tests.oracles.event_calculus import ALLEN, allen, runs

INPUTS: Inputs = {"src": ("points", 1), "tgt": ("points", 1), "more": ("points", 1)}
MODES = ("source", "target", "union", "intersection", "relative_complement", "relative_complement_inverse")
NAMES = ("a", "b")
INFINITE = LAST + 100


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    """Runs of ticks, in order of time."""
    rows = set()
    for _ in range(draw(st.integers(1, 8))):
        name, entity, start = draw(st.sampled_from(sorted(INPUTS))), draw(st.sampled_from(NAMES)), draw(st.integers(0, LAST))
        rows |= {(name, (entity,), t, t + 1) for t in range(start, min(LAST, start + draw(st.integers(0, 9))) + 1)}
    return sorted(rows, key=lambda row: (row[2], row))


def spans(stream: Iterable[Row], name: str, entity: str, until: int) -> list[tuple[int, int]]:
    """The maximal intervals of an input that are known at `until`; one that holds then is open."""
    ticks = {t for given_, arguments, t, _ in stream if given_ in name.split("|") and arguments == (entity,) and t <= until}
    return [(s, INFINITE if e > until else e) for s, e in runs(ticks)]


def ticks_of(found: Iterable[tuple[int, int]]) -> set[int]:
    return {t for s, e in found for t in range(s, e)}


def windowed(stream: list[Row], relation: str, mode: str, flag: str, source: str, pairs: list[tuple[str, str]], when: Settings) -> Facts:
    """The answer after all windows. Results before a window's first tick are final; a selected
    interval that extends into it is asserted as a whole."""
    answers: dict[tuple[str, str], set[int]] = {pair: set() for pair in pairs}
    first_of_all = next(t for t in range(LAST + 60) if t % when.step == when.origin % when.step and t >= stream[0][2])
    for query_time in range(first_of_all, LAST + when.step, when.step):
        first = query_time - when.window + (0 if when.exact else 1)
        for (x, y), asserted in answers.items():
            sources, targets = spans(stream, source, x, query_time), spans(stream, "tgt", y, query_time)
            related = [(i, j) for i in sources for j in targets if j[1] > first and allen(relation, *i, *j, INFINITE)]
            left, right = ticks_of(i for i, _ in related if i[1] > first), ticks_of(j for _, j in related)
            made = {
                "source": left, "target": right, "union": left | right, "intersection": left & right,
                "relative_complement": left - right, "relative_complement_inverse": right - left,
            }[mode]  # fmt: skip
            if mode.startswith("relative_complement"):
                made = {t for t in made if t >= first}
            if flag in ("true", "false") and (flag == "true") != bool(related):
                made = set()
            answers[x, y] = {t for t in asserted if t < first} | made
        if query_time >= LAST:
            break
    return {
        ("rel", (x, y), "true", s, None if e >= INFINITE else e) for (x, y), asserted in answers.items() for s, e in runs(asserted)
    }  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(
    streams(), st.sampled_from(ALLEN), st.sampled_from(MODES), st.sampled_from(["_", "_", "true", "false"]), st.booleans(), st.booleans(),
    st.integers(1, 8), st.integers(0, 8), st.booleans(), st.booleans(),
)  # fmt: skip
@example([("src", ("a",), 1, 2), ("tgt", ("a",), 15, 16)], "before", "target", "_", False, False, 2, 2, True, False)
def test_a_source_that_ended_before_the_window_still_counts(
    stream: list[Row], relation: str, mode: str, flag: str, joined: bool, crossed: bool, step: int, longer: int, exact: bool, restart: bool
) -> None:
    """`joined`: the source is the union of two lists. `crossed`: it is another entity's, which may
    have no row in the target's window."""
    lists = "holdsFor(src(X)=true, I1), holdsFor(more(X)=true, I2), union_all([I1, I2], S)" if joined else "holdsFor(src(X)=true, S)"
    text = f"holdsFor(rel(X, Y)=true, I) :- {lists}, holdsFor(tgt(Y)=true, T), allen({relation}, S, T, {mode}, {flag}, I).\n"
    text += "grounding(rel(X, Y)=true) :- pair(X, Y).\n"
    text = text + "pair(a, b). pair(b, a)." if crossed else text.replace("Y", "X") + "pair(a, a). pair(b, b)."
    when = Settings(window=step + longer, step=step, origin=LAST % step, exact=exact)
    engine = ByEngine(compile_text(text, inputs=INPUTS), when, restart=restart, inputs=INPUTS)
    engine.feed(stream, on_time(stream, INPUTS))
    pairs = [("a", "b"), ("b", "a")] if crossed else [("a", "a"), ("b", "b")]
    assert engine.facts == windowed(stream, relation, mode, flag, "src|more" if joined else "src", pairs, when), text


@pytest.mark.parametrize("relation", ["before", "meets", "starts", "during", "overlaps"])
@settings(max_examples=examples(15), deadline=None)
@given(streams(), st.integers(1, 8), st.integers(0, 8))
def test_targets_are_those_of_one_window(relation: str, stream: list[Row], step: int, longer: int) -> None:
    """Relations that a target keeps once it has them: sliding windows have the same result as
    one window over everything."""
    text = f"holdsFor(rel(X)=true, I) :- holdsFor(src(X)=true, S), holdsFor(tgt(X)=true, T), {relation}(S, T, target, I)."
    program = compile_text(text, inputs=INPUTS)
    whole = ByEngine(program, Settings(window=LAST + 30, step=LAST + 30, origin=LAST), inputs=INPUTS)
    whole.feed_at_once(stream, on_time(stream, INPUTS))
    sliding = ByEngine(program, Settings(step + longer, step, LAST % step), inputs=INPUTS)
    sliding.feed(stream, on_time(stream, INPUTS))
    assert sliding.facts == whole.facts


@pytest.mark.parametrize(("target", "relations"), [(4, {"before"}), (3, {"meets"}), (2, {"overlaps"})])
def test_intervals_that_share_one_tick_meet_and_do_not_overlap(target: int, relations: set[str]) -> None:
    """As in RTEC: the source's last tick is 3."""
    heads = "".join(f"holdsFor({one}(X)=true, I) :- holdsFor(src(X)=true, S), holdsFor(tgt(X)=true, T), {one}(S, T, target, I). " for one in ALLEN)
    engine = ByEngine(compile_text(heads, inputs=INPUTS), Settings(window=60, step=60), inputs=INPUTS)
    stream = sorted([("src", ("a",), t, t + 1) for t in range(4)] + [("tgt", ("a",), t, t + 1) for t in range(target, 7)], key=lambda row: row[2])
    engine.feed(stream, on_time(stream, INPUTS))
    assert {fact[0] for fact in engine.facts} == relations
