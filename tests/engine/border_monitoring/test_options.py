"""Options of border and transition queries: the ends of each, combinations, refusals, and the
oracle in small worlds with options."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.border_monitoring.options import Options
from engine.border_monitoring.region_distance import Nearness
from engine.model.faults import Refused
from engine.model.feed import Crs
from engine.model.region import read_region
from engine.specification import check
from tests.engine.border_monitoring.worlds import GLOBE, PLANE, documents, options, polygons, run, streams
from tests.examples import examples
from tests.oracles.border_monitoring import answers, border_distance, inside, size, within

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}


def row(seq, t, x, y=1.0, **more):
    return {"entity": "1", "t": t, "seq": seq, "x": x, "y": y, **more}


def crossings(document, rows, feed=PLANE):
    """(kind, start, end, evidence) of the answers, after comparing them with the oracle."""
    document = {"family": "border", "region": SQUARE} | document
    found = run([document], rows, feed)
    assert found == answers(rows, [document], geographic=feed is GLOBE)
    return sorted((start, kind, end, evidence) for _, kind, _, start, end, evidence in found)


@st.composite
def optional(draw):
    document = draw(documents(optional=False))
    if "within" not in document:
        document["segments"] = False
    return document | draw(options(of_region="region" in document))


PLAIN = ("family", "region", "ranges", "where", "within", "types")


@given(st.lists(optional(), min_size=1, max_size=5), streams(), st.integers(0, 1000))
@settings(max_examples=examples(100), deadline=None)
def test_answers_with_options_are_the_oracles_in_any_batches(queries, rows, seed):
    expected = answers(rows, queries)
    assert run(queries, rows, PLANE) == expected
    assert run(queries, rows, PLANE, random.Random(seed)) == expected


@pytest.mark.nightly
def test_the_test_worlds_with_options_contain_every_case():
    seen: Counter = Counter()

    @given(st.lists(optional(), min_size=1, max_size=4), streams())
    @settings(max_examples=250, deadline=None, database=None, derandomize=True)
    def collect(queries, rows):
        plain = [
            {key: value for key, value in query.items() if key in ("family", "region", "ranges", "where", "within", "types")} for query in queries
        ]
        found, without = answers(rows, queries), answers(rows, plain)
        for number, query in enumerate(queries):
            for key in ("hysteresis", "accuracy", "first", "dwell", "while"):
                differ = {answer for answer in (found - without) + (without - found) if answer[0] == number}
                seen[key, query["family"]] += bool(key in query and differ)
        seen["alone"] += sum(len(answer[5]) == 1 and answer[1] == "in" for answer in found)

    collect()
    for family in ("border", "transition"):
        for key in ("hysteresis", "accuracy", "first", "dwell", "while"):
            assert seen[key, family] > 1, (key, family)
    assert seen["alone"] > 3


def test_an_entity_leaves_only_beyond_the_buffer():
    rows = [row(0, 0, 9.0), row(1, 1, 2.0), row(2, 2, 3.0), row(3, 3, 2.5), row(4, 4, 3.0000000000000004), row(5, 5, 2.5), row(6, 6, 2.0)]
    assert crossings({"hysteresis": 1}, rows) == [(1, "in", 1, (0, 1)), (4, "out", 4, (3, 4)), (6, "in", 6, (5, 6))]


def test_ties_at_round_corners_of_buffers_are_exact():
    near = Nearness(read_region(SQUARE, Crs.PLANAR), False)
    x, y = np.array([5.0, 5.0, 2.6, 2.6]), np.array([6.0, 6.000000000000001, 2.8, 2.8])
    assert near.near(x, y, np.zeros(4, np.bool_), np.array([5.0, 5.0, 1.0, 0.0])).tolist() == [True, False, True, False]


def test_an_inaccurate_fix_neither_enters_nor_leaves():
    radius = size(SQUARE, False)
    rows = [row(0, 0, 9.0, v=0.0), row(1, 1, 1.0, v=radius + 0.01), row(2, 2, 1.0, v=radius), row(3, 3, 9.0, v=7.0), row(4, 4, 9.0, v=6.9)]
    assert crossings({"accuracy": "v"}, rows) == [(2, "in", 2, (1, 2)), (4, "out", 4, (3, 4))]


def test_a_missing_or_negative_accuracy_is_ignored():
    rows = [row(0, 0, 9.0), row(1, 1, 1.0, v=-5.0), row(2, 2, 2.5, v=None)]
    assert crossings({"accuracy": "v"}, rows) == [(1, "in", 1, (0, 1)), (2, "out", 2, (1, 2))]


def test_the_option_first_counts_the_first_tuple_inside():
    rows = [row(0, 5, 1.0), row(1, 6, 9.0)]
    assert crossings({}, rows) == [(6, "out", 6, (0, 1))]
    assert crossings({"first": "enter"}, rows) == [(5, "in", 5, (0,)), (6, "out", 6, (0, 1))]
    assert crossings({"first": "enter", "segments": True}, [row(0, 5, 1.0), row(1, 6, 9.0), row(2, 8, -7.0)])[2:] == [
        (7, "in", 7, (1, 2)),
        (7, "out", 7, (1, 2)),
    ]


def test_a_dwell_ends_after_its_last_moment():
    rows = [row(0, 0, 9.0), row(1, 1, 1.0), row(2, 4, 9.0), row(3, 5, 1.0), row(4, 9, 9.0)]
    assert crossings({"dwell": 3}, rows) == [(8, "in", 8, (2, 3)), (9, "out", 9, (3, 4))]


def test_a_dwell_that_exceeds_the_input_is_open():
    rows = [row(0, 0, 9.0), row(1, 1, 1.0), row(2, 3, 1.0)]
    assert crossings({"dwell": 2}, rows) == [(3, "in", 3, (0, 1))]
    assert crossings({"dwell": 3}, rows) == []


def test_a_condition_that_begins_to_hold_lets_an_entity_in():
    rows = [row(0, 0, 9.0, v=9.0), row(1, 1, 1.0, v=0.0), row(2, 2, 1.0, v=9.0), row(3, 3, 1.0, v=None)]
    assert crossings({"while": [["v", ">", 5]]}, rows) == [(2, "in", 2, (1, 2)), (3, "out", 3, (2, 3))]


def test_transitions_pair_only_counted_events():
    stay = {"family": "transition", "within": 2, "dwell": 3, "first": "enter"}
    rows = [row(0, 0, 1.0), row(1, 5, 9.0), row(2, 6, 1.0), row(3, 8, 9.0), row(4, 9, 1.0), row(5, 20, 1.0)]
    assert crossings(stay, rows) == [(3, "passed", 5, (0, 1)), (5, "stayed_out", 7, (1,)), (12, "stayed_in", 14, (4,))]


def test_a_buffer_on_the_globe_is_in_metres():
    region = read_region(SQUARE, Crs.GEOGRAPHIC)
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 3, 300), rng.uniform(-1, 3, 300)
    held = region.contains(x, y)
    found = Nearness(region, True).near(x, y, held, np.full(300, 50_000.0))
    for i in range(300):
        away = 0.0 if held[i] else border_distance(x[i], y[i], SQUARE)
        assert abs(away - 50_000) < 100 or found[i] == (away <= 50_000)
    assert 0 < found.sum() < 300


@given(
    polygons(), st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9), st.sampled_from([1.0, 2.0, 1.4142135623730951])), min_size=1, max_size=30)
)
@settings(max_examples=examples(100), deadline=None)
def test_nearness_on_the_plane_is_exact(region, asked):
    document = {"family": "border", "region": region, "hysteresis": 1, "first": "enter"}
    near = Nearness(check(document, PLANE).region, False)
    x, y, slack = (np.array(column, np.float64) for column in zip(*asked, strict=True))
    rows = [{"x": a, "y": b} for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    held = np.array([inside(one, document, False) for one in rows])
    expected = [bool(h) or within(one, region, s, False) for h, one, s in zip(held, rows, slack.tolist(), strict=True)]
    assert near.near(x, y, held, slack).tolist() == expected


def test_a_document_without_options_has_none():
    assert not check({"family": "border", "region": SQUARE, "hysteresis": 0, "first": "ignore", "dwell": 0, "while": []}, PLANE).options
    given_ = check({"family": "border", "region": SQUARE, "hysteresis": 25, "accuracy": "v", "first": "enter", "dwell": 3}, PLANE).options
    assert given_ == Options(25.0, "v", True, 3)


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"hysteresis": -1}, "/hysteresis", "-1"),
        ({"hysteresis": "3"}, "/hysteresis", "number"),
        ({"accuracy": "vv"}, "/accuracy", "did you mean 'v'"),
        ({"accuracy": "k"}, "/accuracy", "string"),
        ({"first": "entre"}, "/first", "did you mean 'enter'"),
        ({"dwell": -1}, "/dwell", "-1"),
        ({"dwell": "PT3M"}, "/dwell", "ticks"),
        ({"while": [["vv", ">", 1]]}, "/while/0/0", "did you mean 'v'"),
        ({"while": {}}, "/while", "list"),
        ({"hysterisis": 1}, "/hysterisis", "hysteresis"),
        ({"segments": True, "hysteresis": 1}, "/hysteresis", "segments"),
        ({"segments": True, "accuracy": "v"}, "/accuracy", "segments"),
        ({"segments": True, "dwell": 1}, "/dwell", "segments"),
        ({"segments": True, "while": [["v", ">", 1]]}, "/while", "segments"),
    ],
)
def test_faults_of_options_have_pointers(change, pointer, word):
    with pytest.raises(Refused) as refused:
        check({"family": "border", "region": SQUARE} | change, PLANE)
    assert word in {fault.pointer: fault.message for fault in refused.value.faults}[pointer]


@pytest.mark.parametrize("key", ["hysteresis", "accuracy"])
def test_ranges_accept_no_distances(key):
    with pytest.raises(Refused, match="needs a region"):
        check({"family": "transition", "within": 1, "ranges": {"v": [0, 1]}, key: {"hysteresis": 1, "accuracy": "v"}[key]}, PLANE)
    check({"family": "transition", "within": 1, "ranges": {"v": [0, 1]}, "first": "enter", "dwell": 2, "while": [["k", "=", "p"]]}, PLANE)
