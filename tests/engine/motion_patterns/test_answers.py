"""The operator gives the oracle's answers for any batches, partitions,
restarts and registrations."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.motion_patterns.worlds import GLOBE, PLANE, box, documents, run, streams
from tests.examples import examples
from tests.oracles.motion_patterns import answers

seeds = st.integers(0, 1000)


@given(st.lists(documents(kinds=["windowed"]), min_size=1, max_size=4), streams())
@settings(max_examples=examples(200), deadline=None)
def test_windows_and_quantifiers(queries, rows):
    assert run(queries, rows, PLANE) == answers(rows, queries)


@given(st.lists(documents(kinds=["ordered"]), min_size=1, max_size=4), streams())
@settings(max_examples=examples(300), deadline=None)
def test_predicates_in_order_between_all_neighbours(queries, rows):
    assert run(queries, rows, PLANE) == answers(rows, queries)


@given(st.lists(documents(kinds=["scored"]), min_size=1, max_size=4), streams())
@settings(max_examples=examples(200), deadline=None)
def test_scores_and_every_theta(queries, rows):
    assert run(queries, rows, PLANE) == answers(rows, queries)


@given(st.lists(documents(kinds=["totals", "totals", "mixed"]), min_size=1, max_size=3), streams(), seeds, st.integers(1, 3))
@settings(max_examples=examples(200), deadline=None)
def test_accumulated_time(queries, rows, seed, partitions):
    assert run(queries, rows, PLANE, random.Random(seed), partitions) == answers(rows, queries)


@given(st.lists(documents(), min_size=1, max_size=5), streams(), seeds, st.integers(1, 3))
@settings(max_examples=examples(200), deadline=None)
def test_any_batches_partitions_restarts_and_registrations(queries, rows, seed, partitions):
    assert run(queries, rows, PLANE, random.Random(seed), partitions) == answers(rows, queries)


@given(st.lists(documents(globe=True), min_size=1, max_size=3), streams(), seeds)
@settings(max_examples=examples(60), deadline=None)
def test_globe(queries, rows, seed):
    assert run(queries, rows, GLOBE, random.Random(seed), 2) == answers(rows, queries, geographic=True)


@given(st.lists(documents(), min_size=1, max_size=4), streams(), st.integers(1, 6), seeds)
@settings(max_examples=examples(100), deadline=None)
def test_any_arrival_within_the_lateness(queries, rows, lateness, seed):
    chance = random.Random(seed)
    delays = {row["seq"]: chance.uniform(0, lateness) for row in rows}
    arrived = sorted(rows, key=lambda row: (row["t"] + delays[row["seq"]], row["seq"]))
    # Rows of equal times keep their order of arrival, which is significant.
    arrived = [{**row, "seq": seq} for seq, row in enumerate(arrived)]
    assert run(queries, arrived, replace(PLANE, lateness=lateness), chance, 2) == answers(arrived, queries)


@pytest.mark.nightly
def test_worlds_hold_what_they_should_test():
    """The strategies produce matches of all kinds, open ends and ties; otherwise the comparisons
    above would prove little."""
    seen: Counter = Counter()

    @given(st.lists(documents(), min_size=1, max_size=4), streams())
    @settings(max_examples=600, deadline=None, database=None, derandomize=True)
    def collect(queries, rows):
        for query, _, _, end, score, seqs in answers(rows, queries):
            document = queries[query]
            free = [i for i, predicate in enumerate(document["predicates"]) if predicate.get("window") is None]
            seen["open"] += end is None
            seen["scored"] += score is not None
            seen[document.get("theta", {}).get("op")] += 1
            seen["order of two"] += len(free) > 1
            seen["between windows"] += any(0 < i < len(document["predicates"]) - 1 for i in free) and len(free) < len(document["predicates"])
            seen["forall"] += any(predicate.get("quantifier") == "forall" for predicate in document["predicates"])
            seen["one sample for several"] += len(set(seqs)) < len(seqs)

    collect()
    for kind in ("open", "scored", None, "<=", ">=", "min", "max", "top", "order of two", "between windows", "forall", "one sample for several"):
        assert seen[kind] > 10, (kind, seen)


def at(t, x, seq=0):
    return {"entity": "1", "t": t, "x": x + 0.5, "y": 0.5, "seq": seq}


def step(x, *window, quantifier="exists"):
    return {"inside": box(x, 0, 1, 1), **({"window": list(window), "quantifier": quantifier} if window else {})}


def test_the_example_of_section_3():
    """{(Q1, (30, 20), forall), (Q2), (Q3), (Q4, (10, 5), exists)}: the only entity is in
    place 0, then 2, 4 and 6."""
    pattern = {"family": "motion", "predicates": [step(0, 30, 20, quantifier="forall"), step(2), step(4), step(6, 10, 5)], "every": 1, "horizon": 30}
    rows = [at(t, place, seq) for seq, (t, place) in enumerate([(2, 0), (9, 0), (13, 2), (18, 4), (24, 6), (40, 9)])]
    assert set(run([pattern], rows, PLANE)) == {(0, "1", 29, 33, None, (1, 2, 3, 4))}


def test_neighbours_two_by_two_make_no_order_of_four():
    """The counterexample of docs/papers/cmp.md to [CMP] 5.4."""
    pattern = {"family": "motion", "predicates": [step(0), step(2), step(4), step(6)], "every": 1, "horizon": 50}
    rows = [at(t, place, seq) for seq, (t, place) in enumerate([(1, 2), (2, 4), (3, 6), (4, 0), (5, 2), (6, 4)])]
    assert not run([pattern], rows, PLANE)
    assert set(run([pattern], [*rows, at(9, 6, 6)], PLANE)) == {(0, "1", 9, None, None, (3, 4, 5, 6))}


def test_a_sample_that_left_the_window_of_a_total_explains_no_best_match_of_later():
    """Alone in its partition entity c is the best long before it is the best of all, and its sample
    at 6 has left the total's window by then."""
    outside = {"outside": box(-9, -9, 1, 1), "window": [9, 0], "quantifier": "total", "at_least": 1, "gap": 5}
    near = {"distance": [0, 0], "window": [24, 4], "quantifier": "exists"}
    pattern = {"family": "motion", "predicates": [outside, near], "every": 1, "theta": {"op": "min"}}
    places = [("a", 0, 1.0), ("a", 1, 1.0), ("c", 6, 2.0), ("a", 46, 1.0)]
    rows = [{"entity": entity, "t": t, "x": x, "y": 0.0, "seq": seq} for seq, (entity, t, x) in enumerate(places)]
    expected = answers(rows, [pattern])
    assert any(entity == "c" and seqs == (2,) for _, entity, _, _, _, seqs in expected)
    for partitions in (1, 2, 3, 4, 5):
        assert run([pattern], rows, PLANE, partitions=partitions) == expected
