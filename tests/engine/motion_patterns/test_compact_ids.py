"""Wherever entities sit, the answers are the same; and they are renumbered where it pays."""

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
from engine.motion_patterns import compact_ids, plane_groups, plane_sweep
from engine.motion_patterns.compact_ids import along_the_curve, assign, change, no_ids, renumbered, with_entities
from engine.motion_patterns.plane_sweep import PlaneSweep
from engine.motion_patterns.sample_store import append, no_samples
from tests.engine.motion_patterns.worlds import GLOBE, OPERATOR, PLANE, box, documents, registered, run, streams
from tests.oracles.motion_patterns import answers

SIDE = 128


@contextmanager
def restless(seed: int) -> Iterator[None]:
    """At every batch entities are renumbered by cell or by number, or by cell now and then."""
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_sweep, "_FEW", 0)
        patch.setattr(plane_sweep, "_REST", 0)
        patch.setattr(plane_sweep, "_VACANT", 0 if seed % 2 else 10**9)
        patch.setattr(compact_ids, "in_order", lambda numbers: chance.random() < 0.3)
        patch.setattr(compact_ids, "scattered", lambda cells: chance.random() < 0.7)
        yield


@given(st.lists(documents(kinds=["windowed", "ordered"]), min_size=1, max_size=4), streams(), st.integers(0, 1000), st.integers(1, 3))
@settings(max_examples=75, deadline=None)
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
def test_a_growing_crowd_with_changing_ids_has_the_answers_of_numbers(slabbed, horizon, monkeypatch):
    monkeypatch.setattr(plane_groups, "_MOST_SLABBED", slabbed)
    index = OPERATOR.compile(registered(squares(horizon), PLANE), PLANE)

    def trace(loads: bool) -> list[str]:
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

    expected = trace(loads=False)
    assert len(expected) > 500
    with restless(3):
        assert trace(loads=True) == expected


@pytest.mark.parametrize("shuffled", [False, True])
def test_ids_are_few_and_by_cell_only_where_rows_come_in_no_order(shuffled, monkeypatch):
    """A tenth of the entities are in some square at a time; those who are come by number, or lie together in space and in memory."""
    monkeypatch.setattr(plane_sweep, "_FEW", 100)
    monkeypatch.setattr(plane_sweep, "_VACANT", 1.2)
    monkeypatch.setattr(compact_ids, "_CACHED", 100)
    index, dictionary = OPERATOR.compile(registered(squares(None), PLANE), PLANE), EntityDictionary()
    state = OPERATOR.keyed.initial(index)
    (sweep,) = state.planes
    renumberings = []
    renumber = PlaneSweep._renumber

    def watched(own, now, keys, there):
        renumbered = (len(there), int(there.sum()), keys.dtype == np.uint16)
        renumber(own, now, keys, there)
        renumberings.append((*renumbered, int(own.compact_ids.taken[0])))

    monkeypatch.setattr(PlaneSweep, "_renumber", watched)
    for begin in range(0, 240, 40):
        for rows in crowd(5000, begin, shuffled):
            batch = Batch(rows, dictionary)
            OPERATOR.keyed.step(index, state, batch, int(batch.t[-1]))
    OPERATOR.keyed.check(index, state)
    assert renumberings and all(by_cell == shuffled for _, _, by_cell, _ in renumberings)
    assert all(after == there for _, there, _, after in renumberings)
    assert any(before > 1.2 * there for before, there, _, _ in renumberings)
    assert sweep.compact_ids.taken[0] < 2500 and len(sweep.compact_ids.of) >= 5000


def test_each_cell_follows_one_that_it_touches():
    cells = {along_the_curve(column, level): (column, level) for column in range(SIDE) for level in range(SIDE)}
    assert sorted(cells) == list(range(SIDE * SIDE))
    walk = np.array([cells[n] for n in range(SIDE * SIDE)])
    assert (np.abs(np.diff(walk, axis=0)).sum(axis=1) == 1).all()


ODD = st.sampled_from([float("inf"), float("-inf"), -1e300, 0.0, 0.5, 0.99, 1.0])


@given(st.lists(st.tuples(st.integers(0, 9), ODD, ODD), max_size=20), st.integers(0, 3))
def test_renumbered_by_cell_those_with_samples_sit_in_the_order_of_the_curve(rows, gone):
    """The latest place counts; an entity without a stored sample loses its id."""
    entity, x, y = np.array([e for e, _, _ in rows], np.int32), *(np.array([row[axis] for row in rows], np.float64) for axis in (1, 2))
    store, none = no_samples(0, 0), np.zeros(len(rows), np.int64)
    append(store, np.arange(len(rows), dtype=np.int32), none, none, x, y, entity, none.astype(np.uint64))
    before = with_entities(no_ids(), 10)
    assign(before, store.entity, 0, len(rows), len(store.t) - 1)
    assert before.entity[: before.taken[0]].tolist() == list(dict.fromkeys(entity.tolist()))

    store.bounds[0] = min(gone, len(rows))
    cells = compact_ids.cells(before, store, (0.0, 0.0, 1.0, 1.0))
    after, moved = renumbered(before, cells, cells != compact_ids.NOWHERE)
    change(store, moved)
    kept = {e: (x, y) for e, x, y in rows[gone:]}
    assert sorted(after.entity[: after.taken[0]].tolist()) == sorted(kept)
    assert [after.entity[compact_id] for compact_id in store.entity[gone : len(rows)]] == entity[gone:].tolist()
    assert np.flatnonzero(after.of >= 0).tolist() == sorted(kept)

    def place(value: float) -> int:
        return int(min(max(value * SIDE, 0), SIDE - 1))

    walk = [along_the_curve(*map(place, kept[e])) for e in after.entity[: after.taken[0]].tolist()]
    assert walk == sorted(walk)
