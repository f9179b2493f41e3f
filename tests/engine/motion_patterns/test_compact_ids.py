"""Answers do not depend on compact ids; entities are renumbered if too many ids have no samples."""

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
from engine.motion_patterns import plane_groups, plane_sweep
from engine.motion_patterns.compact_ids import assign, change, no_ids, renumbered, with_entities, with_samples
from engine.motion_patterns.plane_sweep import PlaneSweep
from engine.motion_patterns.sample_store import append, no_samples
from tests.engine.motion_patterns.worlds import GLOBE, OPERATOR, PLANE, box, documents, run, streams
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.motion_patterns import answers


@contextmanager
def restless(seed: int) -> Iterator[None]:
    """Entities are renumbered at every batch, or at every batch that leaves an id vacant."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_sweep, "_FEW", 0)
        patch.setattr(plane_sweep, "_REST", 0)
        patch.setattr(plane_sweep, "_VACANT", 0 if seed % 2 else 1)
        yield


@given(st.lists(documents(kinds=["windowed", "ordered"]), min_size=1, max_size=4), streams(), st.integers(0, 1000), st.integers(1, 3))
@settings(max_examples=examples(75), deadline=None)
def test_entities_that_never_sit_still_match_alike(queries, rows, seed, partitions):
    with restless(seed):
        assert run(queries, rows, PLANE, random.Random(seed), partitions) == answers(rows, queries)


@given(st.lists(documents(globe=True, kinds=["windowed", "ordered"]), min_size=1, max_size=3), streams(), st.integers(0, 1000))
@settings(max_examples=examples(30), deadline=None)
def test_on_the_globe(queries, rows, seed):
    with restless(seed):
        assert run(queries, rows, GLOBE, random.Random(seed)) == answers(rows, queries, geographic=True)


def crowd(entities: int, begin: int = 0, shuffled: bool = True) -> Iterator[pa.RecordBatch]:
    """Rows of entities that walk in a square of 100, in forty batches of one instant; their
    number grows in the first ten."""
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
def test_ids_are_few_and_in_the_order_of_numbers(shuffled, monkeypatch):
    """A tenth of the entities are in some square at a time."""
    monkeypatch.setattr(plane_sweep, "_FEW", 100)
    monkeypatch.setattr(plane_sweep, "_VACANT", 1.2)
    index, dictionary = OPERATOR.compile(registered(squares(None), PLANE), PLANE), EntityDictionary()
    state = OPERATOR.keyed.initial(index)
    (sweep,) = state.planes
    renumberings = []
    renumber = PlaneSweep._renumber

    def watched(own, now, there):
        renumber(own, now, there)
        taken = int(own.compact_ids.taken[0])
        assert (np.diff(own.compact_ids.entity[:taken]) > 0).all()
        renumberings.append((len(there), int(there.sum()), taken))

    monkeypatch.setattr(PlaneSweep, "_renumber", watched)
    for begin in range(0, 240, 40):
        for rows in crowd(5000, begin, shuffled):
            batch = Batch(rows, dictionary)
            OPERATOR.keyed.step(index, state, batch, int(batch.t[-1]))
    OPERATOR.keyed.check(index, state)
    assert renumberings and all(after == there < before / 1.2 for before, there, after in renumberings)
    assert sweep.compact_ids.taken[0] < 2500 and len(sweep.compact_ids.of) >= 5000


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(0, 3))
def test_an_entity_without_a_stored_sample_loses_its_id(rows, gone):
    entity, none = np.array(rows, np.int32), np.zeros(len(rows), np.int64)
    store = no_samples(0, 0)
    append(store, np.arange(len(rows), dtype=np.int32), none, none, none * 0.0, none * 0.0, entity, none.astype(np.uint64))
    before = with_entities(no_ids(), 10)
    assign(before, store.entity, 0, len(rows), len(store.t) - 1)
    assert before.entity[: before.taken[0]].tolist() == list(dict.fromkeys(rows))

    store.bounds[0] = min(gone, len(rows))
    after, moved = renumbered(before, with_samples(before, store))
    change(store, moved)
    kept = sorted(set(rows[gone:]))
    assert after.entity[: after.taken[0]].tolist() == kept
    assert [after.entity[compact_id] for compact_id in store.entity[gone : len(rows)]] == rows[gone:]
    assert np.flatnonzero(after.of >= 0).tolist() == kept
