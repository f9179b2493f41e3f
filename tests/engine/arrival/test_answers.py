"""Arrivals compared with their oracle, in small adversarial worlds."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.arrival.worlds import COLUMNS, RING, SQUARE, TWO, documents, streams
from tests.engine.runs import final_answers
from tests.examples import examples
from tests.oracles.arrival import answers, record
from tests.strategies import stamped

PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, dedupe=False, columns=COLUMNS)
GLOBE = Feed("globe", Crs.GEOGRAPHIC, TimeUnit.TICKS, dedupe=False, columns=COLUMNS)
ASKED = {"family": "arrival", "region": SQUARE, "within": 5, "over": 3, "gap": 4}
RECORD = ("hits", "false_alarms", "misses", "lead_of_hits")


def plain(rows):
    return [{name: value for name, value in row.items() if name != "seq"} for row in rows]


def facts_of(rows, asked, chance=None, feed=PLANE):
    facts = final_answers(feed, asked, plain(rows), chance)
    assert all(fact["kind"] == "arriving" and len(fact["entities"]) == 1 for fact in facts)
    return facts


def found(rows, asked, chance=None, feed=PLANE):
    return Counter(
        (
            fact["query"],
            fact["entities"][0],
            fact["start"],
            fact["end"],
            fact["score"],
            tuple((item["variable"], item["t"], item["seq"]) for item in fact["evidence"]),
        )
        for fact in facts_of(rows, asked, chance, feed)
    )


def counted(rows, document, partitions=1):
    evaluator = Evaluator.start(PLANE, [RegisteredQuery("q@1", 1, check(document, PLANE))], partitions)
    evaluator.process(stamped(plain(rows), PLANE))
    evaluator.finish()
    work = evaluator.counters()["arrival"]
    return {name: work[f"{name}@q@1"] for name in RECORD}


@settings(max_examples=examples(80))
@given(rows=streams(), asked=st.lists(documents(), min_size=1, max_size=3), seed=st.integers(0, 2**16))
def test_answers_are_those_of_the_definition(rows, asked, seed):
    assert found(rows, asked, random.Random(seed)) == answers(rows, asked)


@settings(max_examples=examples(40))
@given(rows=streams(west=178, scale=0.5), asked=documents(regions=(SQUARE, RING, TWO)), seed=st.integers(0, 2**16))
def test_predicted_lines_continue_over_the_antimeridian(rows, asked, seed):
    """The positions and the region are around longitude 180, where the region is split."""
    moved = [row | ({} if row["x"] is None else {"x": row["x"] - 360 if row["x"] > 180 else row["x"]}) for row in rows]
    region = {"type": "MultiPolygon", "coordinates": [
        [[[179, 0], [180, 0], [180, 1], [179, 1], [179, 0]]], [[[-180, 0], [-179, 0], [-179, 1], [-180, 1], [-180, 0]]],
    ]}  # fmt: skip
    asked = [asked | {"region": region}]
    assert found(moved, asked, random.Random(seed), GLOBE) == answers(moved, asked, geographic=True)


@settings(max_examples=examples(40))
@given(rows=streams(), asked=documents(), partitions=st.integers(1, 3))
def test_the_statistics_count_predictions_that_came_true(rows, asked, partitions):
    assert counted(rows, asked, partitions) == record(rows, asked)


def row(entity, t, x, y=1.0):
    return {"entity": entity, "t": t, "x": x, "y": y}


def test_an_answer_has_the_course_the_entry_and_the_entity():
    rows = [row("a", 0, -6), row("a", 2, -4), row("a", 3, -3), row("a", 4, 0)]
    (fact,) = facts_of(rows, [ASKED])
    assert (fact["start"], fact["end"], fact["score"]) == (2, 4, 6)
    assert [(item["variable"], item["t"], item["x"], item["y"], item["seq"]) for item in fact["evidence"]] == [
        ("from", 0, -6, 1, 0), ("at", 3, -3, 1, 2), ("expected", 6, 0, 1, 2), ("entered", 4, 0, 1, 3),
    ]  # fmt: skip
    assert counted(rows, ASKED) == {"hits": 1, "false_alarms": 0, "misses": 0, "lead_of_hits": 2}


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # Touched at the last moment of `within`.
        ([row("a", 0, -6), row("a", 1, -5)], [(1, None, 6)]),
        ([row("a", 0, -7), row("a", 1, -6)], []),
        ([row("a", 0, -3), row("a", 1, -2), row("b", 5, 9)], [(1, 5, 3)]),  # silent: `gap` later
        ([row("a", 0, -3), row("a", 1, -2), row("b", 4, 9)], [(1, None, 3)]),
        # The next report, too late for a course, comes when the gap ends.
        ([row("a", 0, -3), row("a", 1, -2), row("a", 5, -1)], [(1, 5, 3)]),
        # Stands still.
        ([row("a", 0, -3), row("a", 1, -2), row("a", 2, -2), row("a", 3, -2), row("a", 4, -2), row("a", 5, -2)], [(1, 3, 6)]),
        ([row("a", 0, -3), row("a", 1, -2), row("a", 1, -4)], []),  # the last of equal times counts
        ([row("a", 0, 1), row("a", 1, 2), row("a", 2, 1.5)], []),  # inside already
        ([row("a", 0, -1, 3), row("a", 1, -0.5, 2.5)], [(1, None, 2)]),  # a corner that is touched
    ],
)
def test_edge_cases_of_borders_silence_and_standing_still(rows, wanted):
    assert [(fact["start"], fact["end"], fact["score"]) for fact in facts_of(rows, [ASKED])] == wanted


def test_a_hole_is_outside():
    rows = [row("a", 0, 2, 3), row("a", 1, 3, 3)]
    assert [fact["score"] for fact in facts_of(rows, [ASKED | {"region": RING}])] == [3]


def test_the_entry_into_a_geodesic_circle_agrees_with_dense_sampling():
    rng = np.random.default_rng(5)
    geod, (cx, cy), radius = Geod(ellps="WGS84"), (11.0, 54.0), 8000.0
    asked = ASKED | {"region": {"center": [cx, cy], "radius": radius}, "within": 600_000, "over": 60_000, "gap": 60_000}
    starts = rng.uniform([10.6, 53.8], [11.4, 54.2], (120, 2))
    ends = starts + rng.uniform(-0.05, 0.05, (120, 2))
    rows = [row(f"{i}", t, *places[i].tolist()) for places, t in ((starts, 0), (ends, 60_000)) for i in range(len(starts))]
    facts = {fact["entities"][0]: fact["score"] for fact in facts_of(rows, [asked], feed=GLOBE)}
    s = np.linspace(0, 1, 6001)
    touched = 0
    for i, (a, b) in enumerate(zip(starts, ends, strict=True)):
        line = b + s[:, None] * (b - a) * 10
        beyond = geod.inv(np.full(len(s), cx), np.full(len(s), cy), line[:, 0], line[:, 1])[2] - radius
        inside = np.flatnonzero(beyond <= 0)
        if beyond[0] <= 0:
            assert str(i) not in facts
        elif len(inside):
            touched += 1
            assert 0 <= 60_000 + s[inside[0]] * 600_000 - facts[str(i)] <= 101
        elif beyond.min() > 5:
            assert str(i) not in facts
    assert touched > 10
