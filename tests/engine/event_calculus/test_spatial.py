"""Spatial input fluents against all pairs, on a grid so small that borders and ties are hit."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from engine.event_calculus import spatial
from engine.event_calculus.intervals import INF
from engine.event_calculus.tables import FluentTable
from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.event_calculus.recordings import answers
from tests.examples import examples

Sample = tuple[int, int, int, int]
"""Entity, t, x, y."""

samples = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 7), st.integers(0, 7)), max_size=60, unique_by=lambda s: (s[0], s[1])
)
crowds = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 1), st.integers(-9, 9), st.integers(-9, 9)),
    min_size=30,
    max_size=120,
    unique_by=lambda s: (s[0], s[1]),
)


def positions(rows: list[Sample]) -> spatial.Positions:
    ordered = sorted(rows, key=lambda row: row[1])
    entity, t, x, y = (np.array(column) for column in zip(*ordered, strict=True)) if ordered else (np.empty(0, np.int64),) * 4
    return spatial.Positions(entity, t, x.astype(np.float64), y.astype(np.float64))


def ticks_of(table: FluentTable, last: int) -> dict[tuple[int, int], set[int]]:
    table.check()
    found: dict[tuple[int, int], set[int]] = {}
    for place in range(table.n):
        for k in range(table.lists.ptr[place], table.lists.ptr[place + 1]):
            end = last + 1 if table.lists.e[k] == INF else int(table.lists.e[k])
            found.setdefault((int(table.keys[0][place]), int(table.keys[1][place])), set()).update(range(int(table.lists.s[k]), end))
    return found


def all_pairs(rows: list[Sample], distance: float) -> dict[tuple[int, int], set[int]]:
    found: dict[tuple[int, int], set[int]] = {}
    for a, t, x, y in rows:
        for b, u, v, w in rows:
            if a != b and t == u and math.hypot(x - v, y - w) <= distance:
                found.setdefault((a, b), set()).add(t)
    return found


@settings(max_examples=examples(100), deadline=None)
@given(samples, st.sampled_from([1.0, 2.0, 5.0, math.sqrt(2)]), st.sampled_from([0.5, 1.0]))
def test_distance_is_all_pairs(rows: list[Sample], distance: float, share: float) -> None:
    found = spatial.contacts(positions(rows), 1, 12, [distance], False)
    assert ticks_of(spatial.near_pairs(found, distance * share, 9), 12) == all_pairs(rows, distance * share)


@settings(max_examples=examples(60), deadline=None)
@given(crowds, st.sampled_from([1.0, 3.0, 5.0]))
def test_cells_find_what_all_pairs_find(rows: list[Sample], distance: float) -> None:
    found = spatial.contacts(positions(rows), 1, 1, [distance], False)
    assert ticks_of(spatial.near_pairs(found, distance, 9), 1) == all_pairs(rows, distance)


@settings(max_examples=examples(60), deadline=None)
@given(crowds, st.sampled_from([1.0, 3.0, 5.0]), st.integers(1, 4), st.data())
def test_sides_that_meet_are_measured_and_no_others(rows: list[Sample], distance: float, groups: int, data: st.DataObject) -> None:
    """Each pair of samples whose groups meet is tested, once; another one never."""
    drawn = np.array(data.draw(st.lists(st.booleans(), min_size=groups**2, max_size=groups**2))).reshape(groups, groups)
    meet, many = drawn | drawn.T, positions(rows)
    of = many.entity * 7 % groups
    all_tested = spatial.contacts(many, 1, 1, [distance], False).examined
    found = spatial.contacts(many, 1, 1, [distance], False, spatial.Sides(of, meet))
    expected = {pair: ticks for pair, ticks in all_pairs(rows, distance).items() if meet[pair[0] * 7 % groups, pair[1] * 7 % groups]}
    assert ticks_of(spatial.near_pairs(found, distance, 9), 1) == expected
    others = spatial.contacts(many, 1, 1, [distance], False, spatial.Sides(of, ~meet))
    assert found.examined + others.examined == all_tested


def test_cells_leave_most_pairs_alone() -> None:
    place = np.random.default_rng(7)
    n = 4_000
    many = spatial.Positions(np.arange(n), np.zeros(n, np.int64), place.uniform(0, 1_000, n), place.uniform(0, 1_000, n))
    found = spatial.contacts(many, 1, 1, [5.0], False)
    assert found.pairs.shape[1] > 100
    assert found.examined < n * (n - 1) / 2 * 0.001


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-70, 70)), min_size=2, max_size=40), st.floats(0, 0.02), st.floats(0, 0.02))
def test_proximity_is_geodesic(places: list[tuple[float, float]], dx: float, dy: float) -> None:
    """Each place has a neighbour a little off, so that thresholds lie among the distances."""
    x = np.array([place for lon, _ in places for place in (lon, lon + dx)])
    y = np.array([place for _, lat in places for place in (lat, lat + dy)])
    together = spatial.Positions(np.arange(len(x)), np.zeros(len(x), np.int64), x, y)
    left, right = np.triu_indices(len(x), 1)
    distance = Geod(ellps="WGS84").inv(x[left], y[left], x[right], y[right])[2]
    threshold = float(np.median(distance[0:1])) + 1.0
    found = spatial.contacts(together, 1, 0, [threshold], True)
    assert set(zip(*found.pairs.tolist(), strict=True)) == {(int(a), int(b)) for a, b, d in zip(left, right, distance, strict=True) if d <= threshold}


AROUND = st.tuples(
    st.sampled_from([180.0, -180.0, 179.99, -179.99, 179.5, -179.2, 0.0, 90.0, -90.0]), st.sampled_from([0.0, 0.01, 60.0, -89.95, 89.99, 90.0, 89.0])
)
"""Places at the antimeridian and at the poles, some of them less than a mile apart."""


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), AROUND), max_size=40, unique_by=lambda s: s[:2]),
    st.lists(st.sampled_from([0.001, 1_500.0, 12_000.0, 60_000.0, 2e6, 1.5e7]), min_size=1, max_size=3, unique=True),
)
def test_distances_over_the_antimeridian_and_the_poles_are_geodesic(rows: list[tuple[int, int, tuple[float, float]]], limits: list[float]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    entity, t = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    x, y = (np.array([row[2][i] for row in rows], np.float64) for i in (0, 1))
    many = spatial.Positions(entity, t, x, y)
    found = spatial.contacts(many, 1, 2, limits, True)
    for limit in limits:
        expected: dict[tuple[int, int], set[int]] = {}
        for a, b in zip(*np.triu_indices(len(rows), 1), strict=True):
            if t[a] == t[b] and Geod(ellps="WGS84").inv(x[a], y[a], x[b], y[b])[2] <= limit:
                for pair in ((entity[a], entity[b]), (entity[b], entity[a])):
                    expected.setdefault((int(pair[0]), int(pair[1])), set()).add(int(t[a]))
        assert ticks_of(spatial.near_pairs(found, limit, 9), 2) == expected


def test_a_limit_below_another_one_is_compared_with_the_distance_on_the_ellipsoid() -> None:
    """The sphere's distances differ by half a percent."""
    for dx, dy in ((0.01, 0.0), (0.0, 0.01)):
        two = spatial.Positions(np.arange(2), np.zeros(2, np.int64), np.array([0.0, dx]), np.array([0.0, dy]))
        distance = Geod(ellps="WGS84").inv(0, 0, dx, dy)[2]
        for factor in (0.999, 1.001):
            found = spatial.contacts(two, 1, 0, [distance * factor, 50_000.0], True)
            assert (spatial.near_pairs(found, distance * factor, 9).n > 0) == (factor > 1)


class Square:
    def contains(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x >= 2) & (x <= 4) & (y >= 2) & (y <= 4)


@settings(max_examples=examples(100), deadline=None)
@given(samples, st.integers(1, 6))
def test_stays_last_until_the_next_sample_or_the_gap(rows: list[Sample], longest: int) -> None:
    last = 12
    found: dict[tuple[int, int], set[int]] = {}
    for entity, t, x, y in rows:
        later = [u for other, u, _, _ in rows if other == entity and u > t]
        end = min([t + longest, *later])
        if 2 <= x <= 4 and 2 <= y <= 4:
            found.setdefault((entity, 9), set()).update(range(t, min(end, last + 1)))
    assert ticks_of(spatial.stays(positions(rows), [(None, Square())], longest, last, 9), last) == found


def met(rows: list[Sample], distance: float, slot: int, last: int) -> dict[tuple[int, int], set[int]]:
    """By the definition: at t each of the two has a sample in (t - slot,
    t], and the two are near."""
    found: dict[tuple[int, int], set[int]] = {}
    for a, t, x, y in rows:
        for b, u, v, w in rows:
            if a != b and math.hypot(x - v, y - w) <= distance:
                both = {now for now in range(last + 1) if now - slot < t <= now and now - slot < u <= now}
                if both:
                    found.setdefault((a, b), set()).update(both)
    return found


@settings(max_examples=examples(100), deadline=None)
@given(samples, st.sampled_from([1.0, 2.0, 5.0]), st.sampled_from([0.5, 1.0]), st.integers(1, 6))
def test_proximity_is_two_samples_of_the_last_slot(rows: list[Sample], distance: float, share: float, slot: int) -> None:
    found = spatial.meetings(positions(rows), slot, 12, [distance], False)
    assert ticks_of(spatial.near_pairs(found, distance * share, 9), 12) == met(rows, distance * share, slot, 12)


def test_a_meeting_over_a_slots_edge_and_one_before_the_last_sample() -> None:
    rows = [(1, 9, 0, 0), (2, 11, 0, 0), (1, 12, 9, 9), (3, 21, 5, 5), (4, 22, 5, 5), (3, 28, 0, 9)]
    found = ticks_of(spatial.near_pairs(spatial.meetings(positions(rows), 10, 99, [1.0], False), 1.0, 9), 99)
    assert found[1, 2] == set(range(11, 19)) and found[3, 4] == set(range(22, 31))


PROGRAM = """
spatial(met(A, B)=true, proximity(position, 2, 4)).
spatial(in(A)=true, inside(position, square, 3)).
"""


@settings(max_examples=examples(60), deadline=None)
@given(samples, st.integers(1, 5), st.integers(0, 4))
def test_sliding_windows_lose_no_meeting_and_no_stay(rows: list[Sample], step: int, longer: int) -> None:
    """For every window: samples before it reach into it. The input continues to
    the last of all query times."""
    rows = [*rows, (9, 12, 99, 99)]
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks", "tick": 1, "lateness": 0})
    table = pa.table(
        {
            "entity": [f"e{entity}" for entity, *_ in sorted(rows, key=lambda row: row[1])],
            **{
                name: [float(row[place]) if place > 1 else row[place] for row in sorted(rows, key=lambda row: row[1])]
                for name, place in (("t", 1), ("x", 2), ("y", 3))
            },
        },
        schema=pa.schema([("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64())]),
    )
    good, dead = check_rows(table, feed)
    assert not dead
    area = {"type": "Polygon", "coordinates": [[[2, 2], [4, 2], [4, 4], [2, 4], [2, 2]]]}
    document = {
        "family": "calculus",
        "version": 1,
        "program": PROGRAM,
        "outputs": ["met", "in"],
        "inputs": {"position": {"args": ["entity"]}},
        "areas": {"square": area},
        "origin": 12,
    }
    stamped = Stamper().stamp(good)
    whole, sliding = (
        answers(RegisteredQuery("q", 1, check({**document, "window": window, "step": by}, feed)), feed, stamped, batch_rows=3)
        for window, by in ((40, 40), (step + longer, step))
    )
    assert sliding == whole
