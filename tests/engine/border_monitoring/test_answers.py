"""The stage gives the oracle's answers, with any batches, dumps and migrations."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import EntityDictionary
from tests.engine.border_monitoring.worlds import (
    GLOBE,
    OPERATOR,
    PLANE,
    STAGE,
    answers_in,
    batch_of,
    documents,
    ordered,
    registered,
    run,
    streams,
)
from tests.examples import examples
from tests.oracles.border_monitoring import answers

seeds = st.integers(0, 1000)


@given(st.lists(documents(), min_size=1, max_size=6), streams(), seeds)
@settings(max_examples=examples(300), deadline=None)
def test_answers_on_the_plane_are_the_oracles_in_any_batches(queries, rows, seed):
    expected = answers(rows, queries)
    assert run(queries, rows, PLANE) == expected
    assert run(queries, rows, PLANE, random.Random(seed)) == expected


@given(st.lists(documents(), min_size=1, max_size=4), streams(scale=7))
@settings(max_examples=examples(150), deadline=None)
def test_answers_are_exact_off_the_grid(queries, rows):
    assert run(queries, rows, PLANE) == answers(rows, queries)


@given(st.lists(documents(globe=True), min_size=1, max_size=4), streams(), seeds)
@settings(max_examples=examples(100), deadline=None)
def test_answers_on_the_globe_are_the_oracles(queries, rows, seed):
    assert run(queries, rows, GLOBE, random.Random(seed)) == answers(rows, queries, geographic=True)


@given(st.lists(documents(kinds=["ranges"]), min_size=1, max_size=8), streams())
@settings(max_examples=examples(200), deadline=None)
def test_answers_are_the_oracles_for_ranges_of_one_to_nine_columns(queries, rows):
    assert run(queries, rows, PLANE) == answers(rows, queries)


@given(st.lists(documents(), min_size=1, max_size=4), streams(), st.sampled_from([2**53 - 1, 2**60 + 1, 1 - 2**61]), seeds)
@settings(max_examples=examples(100), deadline=None)
def test_times_beyond_double_precision_are_exact(queries, rows, begin, seed):
    """As on a feed in nanoseconds; stays are decided by the clock, without an event at that
    time."""
    rows = [row | {"t": row["t"] + begin} for row in rows]
    expected = answers(rows, queries)
    assert run(queries, rows, PLANE) == expected
    assert run(queries, rows, PLANE, random.Random(seed)) == expected


def test_integers_beyond_double_precision_are_compared_exactly():
    document = {"family": "border", "ranges": {"w": [2**53, 2**53 + 2]}}
    values = [0, 2**53 + 1, 2**53 + 3, 2**53, 2**63 - 1]
    rows = [{"entity": "a", "t": t, "seq": t, "w": w} for t, w in enumerate(values)]
    assert sorted((kind, at) for _, kind, _, at, _, _ in run([document], rows, PLANE)) == [("in", 1), ("in", 3), ("out", 2), ("out", 4)]


@given(st.lists(documents(), min_size=1, max_size=4), streams(), st.integers(2, 4))
@settings(max_examples=examples(100), deadline=None)
def test_partitions_by_entity_give_the_same_answers(queries, rows, partitions):
    total: Counter = Counter()
    last = max((row["t"] for row in rows), default=0)
    index = OPERATOR.compile(registered(queries, PLANE), PLANE)
    for p in range(partitions):
        own = [row for row in ordered(rows) if hash(row["entity"]) % partitions == p]
        output = STAGE.step(index, STAGE.initial(index), batch_of(own, EntityDictionary()), last + 1)
        total += answers_in(output.changes, index.queries)
    assert total == answers(rows, queries)


@pytest.mark.nightly
def test_the_test_worlds_contain_every_case():
    """The strategies generate passes, stays and equal times: otherwise the
    comparisons above would be vacuous."""
    seen: Counter = Counter()

    @given(st.lists(documents(), min_size=1, max_size=4), streams())
    @settings(max_examples=300, deadline=None, database=None, derandomize=True)
    def collect(queries, rows):
        found = answers(rows, queries)
        for _, kind, _, start, end, _ in found:
            seen[kind] += 1
            seen["instant pass"] += kind == "passed" and start == end
        outs = {(query, entity, evidence) for query, kind, entity, _, _, evidence in found if kind == "out"}
        seen["pass between samples"] += sum(kind == "in" and (query, entity, evidence) in outs for query, kind, entity, _, _, evidence in found)

    collect()
    for kind in ("in", "out", "passed", "returned", "stayed_in", "stayed_out", "instant pass", "pass between samples"):
        assert seen[kind] > 5, kind


def row(seq: int, t: int, x: float | None, y: float | None = 0.0, entity: str = "1") -> dict:
    return {"entity": entity, "t": t, "seq": seq, "x": x, "y": y if x is not None else None}


SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}


def steps(document, batches, feed=PLANE):
    """Facts (kind, start, end) after each (rows, watermark)."""
    index = OPERATOR.compile(registered([document], feed), feed)
    state, dictionary, asserted = STAGE.initial(index), EntityDictionary(), []
    for rows, watermark in batches:
        output = STAGE.step(index, state, batch_of(rows, dictionary), watermark)
        state = output.state
        asserted.append(sorted((kind, start, end) for _, kind, _, start, end, _ in answers_in(output.changes, index.queries)))
    return asserted


def test_a_stay_of_a_silent_entity_is_reported_by_the_watermark():
    stay = {"family": "transition", "region": SQUARE, "within": 5}
    asserted = steps(stay, [([row(0, 0, 9.0), row(1, 1, 1.0)], 1), ([], 6), ([], 7), ([], 99)])
    assert asserted == [[], [], [("stayed_in", 1, 6)], []]


def test_an_out_exactly_at_the_bound_has_passed():
    passing = {"family": "transition", "region": SQUARE, "within": 5}
    asserted = steps(passing, [([row(0, 0, 9.0), row(1, 1, 1.0)], 6), ([row(2, 6, 9.0)], 6), ([], 99)])
    assert asserted == [[], [("passed", 1, 6)], [("stayed_out", 6, 11)]]


def test_an_out_one_tick_later_comes_after_the_stay():
    asserted = steps({"family": "transition", "region": SQUARE, "within": 5}, [([row(0, 0, 9.0), row(1, 1, 1.0), row(2, 7, 9.0)], 7)])
    assert asserted == [[("stayed_in", 1, 6)]]


def test_many_timers_fire_at_their_watermarks():
    documents_ = [{"family": "transition", "region": SQUARE, "within": within, "types": ["stayed_in"]} for within in (3, 10, 3, 700)]
    rows = [row(2 * i + k, i + k, 9.0 if k == 0 else 1.0, entity=f"e{i}") for i in range(400) for k in (0, 1)]
    assert run(documents_, rows, PLANE, random.Random(3)) == answers(rows, documents_)
