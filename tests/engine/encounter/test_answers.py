"""Encounters against their oracle, in small random worlds full of corner cases on
the plane and on the globe."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import QueryStopped
from tests.engine.encounter.worlds import COLUMNS, documents, streams
from tests.engine.runs import final_answers
from tests.examples import examples
from tests.oracles.encounter import answers

PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, dedupe=False, columns=COLUMNS)
GLOBE = Feed("globe", Crs.GEOGRAPHIC, TimeUnit.TICKS, dedupe=False, columns=COLUMNS)


def found(feed, rows, asked, chance=None):
    facts = final_answers(feed, asked, [{name: value for name, value in row.items() if name != "seq"} for row in rows], chance)
    assert all(fact["kind"] == "met" and [item["entity"] for item in fact["evidence"]] == fact["entities"] for fact in facts)
    return Counter((fact["query"], tuple(fact["entities"]), fact["start"], fact["end"], round(fact["score"], 6)) for fact in facts)


def expected(rows, asked, **options):
    return Counter({(*answer[:-1], round(answer[-1], 6)): count for answer, count in answers(rows, asked, **options).items()})


@settings(max_examples=examples(200))
@given(rows=streams(), asked=st.lists(documents(), min_size=1, max_size=3), seed=st.integers(0, 2**16))
def test_answers_are_those_of_the_definition(rows, asked, seed):
    assert found(PLANE, rows, asked, random.Random(seed)) == expected(rows, asked)


@settings(max_examples=examples(60))
@given(
    rows=streams(), asked=st.lists(documents(globe=True), min_size=1, max_size=3), shift=st.sampled_from([0, 178, -180]), seed=st.integers(0, 2**16)
)
def test_answers_on_the_globe_are_those_of_the_definition(rows, asked, shift, seed):
    moved = [row | {"x": None if row["x"] is None else (row["x"] + shift + 180) % 360 - 180} for row in rows]
    assert found(GLOBE, moved, asked, random.Random(seed)) == expected(moved, asked, geographic=True)


def row(entity, t, x, y=0.0, s="p"):
    return {"entity": entity, "t": t, "x": x, "y": y, "s": s}


QUERY = {"family": "encounter", "distance": 1, "every": 5, "gap": 10}


def test_a_pair_of_equal_roles_is_sorted_and_asserted_once():
    rows = [row("z", 0, 0), row("m", 0, 0.5), row("m", 12, 9)]
    assert found(PLANE, rows, [QUERY]) == {(0, ("m", "z"), 0, 10, 0.5): 1}


def test_two_that_each_fit_both_roles_are_two_pairs():
    rows = [row("z", 0, 0), row("m", 0, 0.5)]
    asked = QUERY | {"a": {"where": [["s", "=", "p"]]}, "b": {"where": [["s", "in", ["p"]]]}}
    assert found(PLANE, rows, [asked]) == {(0, ("m", "z"), 0, None, 0.5): 1, (0, ("z", "m"), 0, None, 0.5): 1}


def test_interpolated_places_wait_for_the_next_tuple():
    rows = [row("a", 0, 0), row("b", 0, 8), row("a", 10, 8), row("b", 10, 0)]
    assert found(PLANE, rows, [QUERY | {"position": "interpolated"}]) == {(0, ("a", "b"), 5, 10, 0.0): 1}


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e12])
def test_random_crowds_meet_as_the_definition_says(scale):
    chance = random.Random(5)
    rows = [row(f"e{chance.randint(0, 30)}", t // 3, chance.random() * 4 * scale, chance.random() * 4 * scale) for t in range(240)]
    rows = [one | {"seq": i, "v": 1} for i, one in enumerate(rows)]
    for position in ("last", "interpolated"):
        asked = [QUERY | {"position": position, "distance": 0.7 * scale}]
        digits = 6 - round(len(str(int(scale))))
        wanted = Counter((*one[:-1], round(one[-1] / scale, digits)) for one in answers(rows, asked).elements())
        facts = final_answers(PLANE, asked, [{k: v for k, v in one.items() if k != "seq"} for one in rows])
        assert Counter((f["query"], tuple(f["entities"]), f["start"], f["end"], round(f["score"] / scale, digits)) for f in facts) == wanted
        assert len(wanted) > 50


def test_a_query_that_finds_too_many_pairs_is_stopped_with_the_time_as_people_read_it(monkeypatch):
    monkeypatch.setattr("engine.encounter.operator.meetings", lambda *_: None)
    sea = Feed("sea", Crs.PLANAR, TimeUnit.MS, dedupe=False, columns=COLUMNS)
    with pytest.raises(QueryStopped, match=r"near each other at t = 2023-11-14 22:13:20\.000 UTC: take a shorter distance"):
        found(sea, [row("z", 1_700_000_000_000, 0)], [QUERY])
