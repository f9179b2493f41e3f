"""Incomplete patterns: steps are done as by the definition, and every witness proves its step."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import EntityDictionary
from engine.motion_patterns.plan import compile_index
from engine.motion_patterns.progress import progress, reach
from tests.engine.motion_patterns.worlds import GLOBE, PLANE, batch_of, box, documents, streams
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.motion_patterns import distance, is_forall, is_sample, orders_of, precedes, satisfies, satisfying, steps_done, window_of


def trajectories_of(rows, document, now):
    found: dict = {}
    for row in rows:
        if row["t"] <= now:
            found.setdefault(row["entity"], [])
            if is_sample(row, document):
                found[row["entity"]].append(row)
    return found


def found_at(document, rows, now, feed):
    """(entity -> list of witnesses or None, matches with scores) from only the rows
    within the windows' reach."""
    index = compile_index(registered([document], feed), feed)
    kept = [row for row in rows if now - reach(index, 0) < row["t"] <= now]
    entities = EntityDictionary()
    batch = batch_of(kept, entities)
    batch.entity  # noqa: B018  Encoded, as the runtime has it.
    found = progress(index, 0, batch, now)
    steps = {name: [kept[row] if row >= 0 else None for row in found.row[code]] for code, name in enumerate(entities.names)}
    assert (found.done == (found.row >= 0)).all()
    matches = {name: found.score[code] for code, name in enumerate(entities.names) if found.matches[code]}
    return steps, matches


@given(documents(), streams(), st.integers(0, 40))
@settings(max_examples=examples(150), deadline=None)
def test_what_is_done_is_what_the_definition_says(document, rows, now):
    now -= now % document["every"]
    steps, matches = found_at(document, rows, now, PLANE)
    nothing = [None] * len(document["predicates"])
    for entity, past in trajectories_of(rows, document, now).items():
        assert [one is not None for one in steps.get(entity, nothing)] == steps_done(past, document, now, False)
    expected = satisfying(trajectories_of(rows, document, now), document, now, False)
    assert set(matches) == set(expected)
    for entity, (score, seqs) in expected.items():
        assert score is None or matches[entity] == score
        assert tuple(one["seq"] for one in steps[entity]) == seqs, "a match shows the witnesses of its evidence"


@given(documents(), streams(), st.integers(0, 40))
@settings(max_examples=examples(60), deadline=None)
def test_every_witness_proves_its_step(document, rows, now):
    now -= now % document["every"]
    predicates = document["predicates"]
    spans = {i: window_of(predicate, document, now) for i, predicate in enumerate(predicates)}
    for witnesses in found_at(document, rows, now, PLANE)[0].values():
        there = {i: one for i, one in enumerate(witnesses) if one is not None}
        for i, one in there.items():
            assert spans[i][0] < one["t"] <= spans[i][1]
            assert "distance" in predicates[i] or satisfies(one, predicates[i], False)
        for a, b in orders_of(predicates):
            if {a, b} <= set(there) and not (is_forall(predicates[a]) and is_forall(predicates[b])):
                assert precedes(a, b, there, predicates, spans)


@given(documents(globe=True), streams(most=12), st.integers(0, 30))
@settings(max_examples=examples(20), deadline=None)
def test_globe(document, rows, now):
    now -= now % document["every"]
    matches = found_at(document, rows, now, GLOBE)[1]
    expected = satisfying(trajectories_of(rows, document, now), document, now, True)
    assert set(matches) == set(expected)


def test_a_tour_of_five_banks_stands_at_step_three():
    banks = [{"inside": box(2 * i, 0, 1, 1)} for i in range(5)]
    document = {"family": "motion", "predicates": banks, "every": 1, "horizon": 100}
    rows = [{"entity": "1", "t": t, "seq": t, "x": x + 0.5, "y": 0.5} for t, x in enumerate([0, 4, 2, 1, 4])]
    steps, matches = found_at(document, rows, 4, PLANE)
    assert [one and one["t"] for one in steps["1"]] == [0, 2, 4, None, None]
    assert not matches


def test_a_distance_is_reported_before_the_pattern_is_complete():
    document = {
        "family": "motion",
        "predicates": [{"inside": box(9, 9, 1, 1), "window": [5, 0]}, {"distance": [0, 0], "window": [5, 0]}],
        "theta": {"op": "min"},
        "every": 1,
    }
    rows = [{"entity": "1", "t": t, "seq": t, "x": float(3 - t), "y": 0.0} for t in range(3)]
    steps, matches = found_at(document, rows, 2, PLANE)
    assert steps["1"][0] is None and distance(steps["1"][1], [0, 0], False) == 1
    assert not matches


@pytest.mark.nightly
def test_worlds_hold_half_finished_patterns():
    seen: Counter = Counter()

    @given(documents(), streams(), st.integers(0, 25))
    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    def collect(document, rows, now):
        for witnesses in found_at(document, rows, now, PLANE)[0].values():
            done = sum(one is not None for one in witnesses)
            seen["half" if 0 < done < len(witnesses) else "all" if done else "none"] += 1

    collect()
    assert min(seen[kind] for kind in ("half", "all", "none")) > 5, seen


@pytest.mark.parametrize("window", [[7, 0], [9, 3]])
def test_reach_is_the_longest_window(window):
    document = {
        "family": "motion",
        "predicates": [{"inside": box(0, 0, 1, 1), "window": window}, {"inside": box(0, 0, 1, 1)}],
        "every": 1,
        "horizon": 4,
    }
    assert reach(compile_index(registered([document], PLANE), PLANE), 0) == window[0]
