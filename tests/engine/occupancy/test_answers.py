"""Occupancy compared with its oracle, in small adversarial worlds."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.feed import Crs, Feed, TimeUnit
from tests.engine.occupancy.worlds import COLUMNS, SQUARE, documents, streams
from tests.engine.runs import final_answers
from tests.examples import examples
from tests.oracles.occupancy import answers

PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, dedupe=False, columns=COLUMNS)


def found(rows, asked, chance=None):
    facts = final_answers(PLANE, asked, [{name: value for name, value in row.items() if name != "seq"} for row in rows], chance)
    assert all(fact["kind"] == "occupied" and fact["entities"] == [] for fact in facts)
    return Counter((fact["query"], fact["start"], fact["end"], fact["score"]) for fact in facts)


@settings(max_examples=examples(150))
@given(rows=streams(), asked=st.lists(documents(), min_size=1, max_size=3), seed=st.integers(0, 2**16))
def test_answers_are_those_of_the_definition(rows, asked, seed):
    assert found(rows, asked, random.Random(seed)) == answers(rows, asked)


def row(entity, t, x=1):
    return {"entity": entity, "t": t, "x": x, "y": 1}


def test_an_empty_region_counts_as_empty_from_the_first_row_of_any_entity():
    rows = [row("far", 3, 9), row("guard", 5), row("guard", 8, 9), row("far", 12, 9)]
    assert found(rows, [{"family": "occupancy", "region": SQUARE, "count": ["<=", 0]}]) == {(0, 3, 5, 0): 1, (0, 8, None, 0): 1}


def test_the_evidence_of_a_crowd_is_the_tuples_that_began_it():
    rows = [row("a", 0), row("b", 4), row("c", 6)]
    (fact,) = final_answers(PLANE, [{"family": "occupancy", "region": SQUARE, "count": [">=", 2], "lasting": 2}], rows)
    assert (fact["start"], fact["end"], fact["score"]) == (4, None, 3)
    assert [(item["entity"], item["t"], item["seq"]) for item in fact["evidence"]] == [("b", 4, 1)]
