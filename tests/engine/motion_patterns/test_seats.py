"""Wherever entities sit, the answers are the same; and they change seats where it pays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import Batch, EntityDictionary
from engine.motion_patterns import plane_groups, plane_sweep, seats
from engine.motion_patterns.plane_sweep import PlaneSweep
from engine.motion_patterns.sample_store import append, no_samples
from engine.motion_patterns.seats import BY_NUMBER, along_the_curve, by_cell, looked_up
from tests.engine.motion_patterns.worlds import GLOBE, OPERATOR, PLANE, box, documents, registered, run, streams
from tests.oracles.motion_patterns import answers

SIDE = 128


@contextmanager
def restless(seed: int) -> Iterator[None]:
    """At every batch entities take seats by cell, go back to their numbers, or stay."""
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_sweep, "_TELLING", 0)
        patch.setattr(plane_sweep, "_REST", 0)
        patch.setattr(seats, "in_order", lambda numbers: chance.random() < 0.2)
        patch.setattr(seats, "scattered", lambda seats: chance.random() < 0.8)
        yield


@given(st.lists(documents(kinds=["windowed", "ordered"]), min_size=1, max_size=4), streams(), st.integers(0, 1000), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_entities_that_never_sit_still_match_alike(queries, rows, seed, partitions):
    with restless(seed):
        assert run(queries, rows, PLANE, random.Random(seed), partitions) == answers(rows, queries)


@given(st.lists(documents(globe=True, kinds=["windowed", "ordered"]), min_size=1, max_size=3), streams(), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_on_the_globe(queries, rows, seed):
    with restless(seed):
        assert run(queries, rows, GLOBE, random.Random(seed)) == answers(rows, queries, geographic=True)


def crowd(entities: int, begin: int = 0, shuffled: bool = True) -> Iterator[pa.RecordBatch]:
    """Rows of entities that walk about a square of 100, in forty batches of an instant; more and more of them in the first ten."""
    chance = np.random.default_rng(5)
    names = pa.array([f"e{number}" for number in range(entities)])
    x, y = chance.uniform(0, 100, (2, entities))
    for t in range(40):
        x, y = x + chance.normal(0, 0.5, entities), y + chance.normal(0, 0.5, entities)
        there = entities * min(10, t + 1) // 10
        who = chance.permutation(there) if shuffled else np.arange(there)
        columns = {
            "entity": pa.DictionaryArray.from_arrays(pa.array(who.astype(np.int32)), names[:there]),
            "t": np.full(there, begin + t),
            "x": np.where(chance.random(there) < 0.02, np.nan, x[who]),
            "y": y[who],
            "seq": np.arange(there) + (begin + t) * entities,
        }
        yield pa.RecordBatch.from_pydict(columns)


def squares(horizon: int | None) -> list[dict[str, object]]:
    """Few entities are in some square at a time."""
    chance, found = np.random.default_rng(1), []
    for _ in range(6):
        a, b = chance.uniform(0, 80, 2).tolist()
        spans = [{"window": [12, 6], "quantifier": "exists"}, {"window": [6, 0], "quantifier": "exists"}] if horizon is None else [{}, {}]
        steps = [{"inside": box(a + 2 * i, b, 9, 9), **span} for i, span in enumerate(spans)]
        found.append({"family": "motion", "predicates": steps, "every": 2} | ({"horizon": horizon} if horizon else {}))
    return found


@pytest.mark.parametrize("slabbed", [0, 16])
@pytest.mark.parametrize("horizon", [None, 20])
def test_a_growing_crowd_in_restless_seats_tells_what_it_does_by_number(slabbed, horizon, monkeypatch):
    monkeypatch.setattr(plane_groups, "_MOST_SLABBED", slabbed)
    index = OPERATOR.compile(registered(squares(horizon), PLANE), PLANE)

    def told(loads: bool) -> list[str]:
        found, state, dictionary = [], OPERATOR.keyed.initial(index), EntityDictionary()
        for rows in crowd(6000):
            batch = Batch(rows, dictionary)
            output = OPERATOR.keyed.step(index, state, batch, int(batch.t[-1]))
            found += sorted(map(repr, output.changes.to_pylist()))
            OPERATOR.keyed.check(index, output.state)
            state = output.state
            if loads and batch.t[-1] % 7 == 0:
                state = OPERATOR.keyed.load(index, OPERATOR.keyed.dump(index, state))
            if loads and batch.t[-1] % 11 == 0:
                state = OPERATOR.keyed.migrate(index, [(index, state)])
        return found

    expected = told(loads=False)
    assert len(expected) > 500
    with restless(3):
        assert told(loads=True) == expected


def test_seats_are_taken_where_rows_come_in_no_order_and_left_where_they_do(monkeypatch):
    """With entities by the thousand a bucket's hits lie in few lines of memory soon after rows came in no order."""
    monkeypatch.setattr(plane_sweep, "_TELLING", 100)
    monkeypatch.setattr(seats, "_CACHED_LINES", 50)
    index, dictionary = OPERATOR.compile(registered(squares(None), PLANE), PLANE), EntityDictionary()
    state = OPERATOR.keyed.initial(index)
    (sweep,) = state.planes

    def taken(shuffled: bool, begin: int) -> PlaneSweep:
        for rows in crowd(5000, begin, shuffled):
            batch = Batch(rows, dictionary)
            OPERATOR.keyed.step(index, state, batch, int(batch.t[-1]))
        OPERATOR.keyed.check(index, state)
        return sweep

    def lines() -> int:
        first, stop = plane_sweep.bit_planes.newest(sweep.planes)
        return len(set((sweep.store.entity[np.arange(first, stop) & (len(sweep.store.t) - 1)] // 16).tolist()))

    assert taken(shuffled=False, begin=0).seats is BY_NUMBER
    by_number = lines()
    assert taken(shuffled=True, begin=40).seats is not BY_NUMBER
    assert lines() < by_number / 2, (lines(), by_number)
    for begin in range(80, 280, 40):
        taken(shuffled=False, begin=begin)
    assert sweep.seats is BY_NUMBER


def test_each_cell_follows_one_that_it_touches():
    cells = {along_the_curve(column, level): (column, level) for column in range(SIDE) for level in range(SIDE)}
    assert sorted(cells) == list(range(SIDE * SIDE))
    walk = np.array([cells[n] for n in range(SIDE * SIDE)])
    assert (np.abs(np.diff(walk, axis=0)).sum(axis=1) == 1).all()


ODD = st.sampled_from([float("nan"), float("inf"), float("-inf"), -1e300, 0.0, 0.5, 1.0])


@given(st.lists(st.tuples(st.integers(0, 9), ODD, ODD), max_size=20), st.lists(st.tuples(st.integers(0, 9), ODD, ODD), max_size=20))
def test_who_was_seen_last_in_a_cell_earlier_on_the_curve_sits_earlier(stored, rows):
    """Two times over: by number first, then by the seats so found. Nobody's seat is another's, and who was seen nowhere sits last, by number."""

    def columns(some):
        return np.array([e for e, _, _ in some], np.int32), *(np.array([one[axis] for one in some], np.float64) for axis in (1, 2))

    found = BY_NUMBER
    for _ in range(2):
        store, (entity, x, y) = no_samples(0, 0), columns(stored)
        none = np.zeros(len(entity), np.int64)
        append(store, np.arange(len(entity), dtype=np.int32), none, none, x, y, looked_up(found.of, entity), none.astype(np.uint64))
        found = by_cell(found, 10, *columns(rows), store, (0.0, 0.0, 1.0, 1.0))
    assert (found.of[found.entity] == np.arange(10)).all()

    def cell(value: float) -> int:
        return int(min(max(value * SIDE, 0), SIDE - 1))

    seen = {e: along_the_curve(cell(x), cell(y)) for e, x, y in [*stored, *rows] if x == x and y == y}
    cells = [seen.get(e, SIDE * SIDE) for e in found.entity.tolist()]
    assert cells == sorted(cells)
    assert [e for e in found.entity.tolist() if e not in seen] == [e for e in range(10) if e not in seen]


def test_whoever_comes_later_sits_at_his_own_number():
    table = np.array([2, 0, 1], np.int32)
    assert looked_up(table, np.array([0, 1, 2, 3, 70], np.int32)).tolist() == [2, 0, 1, 3, 70]
