"""Predicates in order by planes: candidates from planes, chains from samples, and windows
that slide over many buckets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import EntityDictionary
from engine.motion_patterns import plane_groups
from tests.engine.motion_patterns.worlds import OPERATOR, PLANE, batch_of, box, run
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.motion_patterns import answers


def step(x, *window, quantifier="exists"):
    return {"inside": box(x, 0, 1, 1), **({"window": list(window), "quantifier": quantifier} if window else {})}


def in_order(*steps, horizon=10, every=1):
    return {"family": "motion", "predicates": list(steps), "horizon": horizon, "every": every}


def visits(*pairs, entity="1"):
    """Samples (t, place)."""
    return [{"entity": entity, "t": t, "x": place + 0.5, "y": 0.5, "seq": seq} for seq, (t, place) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("pattern", "rows", "expected"),
    [
        # Equal times are in no order, independent of their arrival.
        (in_order(step(0), step(2)), visits((1, 0), (3, 0), (3, 2), (40, 9)), {(3, 11, (0, 2))}),
        (in_order(step(0), step(2)), visits((3, 0), (3, 2), (40, 9)), set()),
        # The horizon is open at its far end: the first sample leaves at 1 + 10.
        (in_order(step(0), step(2)), visits((1, 0), (10, 2), (40, 9)), {(10, 11, (0, 1))}),
        (in_order(step(0), step(2)), visits((1, 0), (11, 2), (40, 9)), set()),
        # When the first chain ends, a later one continues the same match,
        # which keeps its witnesses.
        (in_order(step(0), step(2)), visits((1, 0), (3, 2), (5, 0), (6, 2), (40, 9)), {(3, 15, (0, 1))}),
        # A candidate without a chain becomes a match by one more sample of a
        # predicate that already had some.
        (in_order(step(0), step(2)), visits((1, 2), (2, 0), (5, 2), (40, 9)), {(5, 12, (1, 2))}),
        # A windowed neighbour's sample counts from when it is in the window, by time alone.
        (in_order(step(0), step(2, 9, 5)), visits((1, 0), (3, 2), (40, 9)), {(8, 11, (0, 1))}),
        # A forall neighbour may leave an empty horizon.
        (in_order(step(0, 5, 0, quantifier="forall"), step(0)), visits((1, 0), (2, 0), (40, 9)), set()),
        (in_order(step(0), step(2, 3, 1, quantifier="forall")), visits((1, 0), (3, 2), (40, 9)), {(4, 6, (0, 1))}),
        # A silence much longer than the horizon, and negative times.
        (in_order(step(0), step(2)), visits((-7, 0), (-5, 2), (10**12, 9)), {(-5, 3, (0, 1))}),
    ],
)
def test_begin_end_and_witnesses(pattern, rows, expected):
    found = run([pattern], rows, PLANE)
    assert found == answers(rows if rows[-1]["t"] < 100 else rows[:-1], [pattern], until=min(rows[-1]["t"], 100))
    assert {(start, end, seqs) for _, _, start, end, _, seqs in found} == expected


def wanderers(entities, instants, seed):
    """Rows of entities that walk up and down a line of eight places and stay at each for some
    instants; every instant, or occasionally."""
    chance = np.random.default_rng(seed)
    place, often = chance.integers(0, 8, entities), chance.choice([0.1, 1.0], entities)
    rows = []
    for t in range(instants):
        moves = chance.random(entities) < 0.15
        place = np.where(moves, np.clip(place + chance.choice([-1, 1], entities), 0, 7), place)
        for e in np.flatnonzero(chance.random(entities) < often).tolist():
            rows.append({"entity": f"{e}", "t": t, "x": int(place[e]) + 0.5, "y": 0.5, "seq": len(rows)})
    return rows


PATTERNS = [
    in_order(step(3), step(4), step(5), horizon=40, every=2),
    in_order(step(6), step(5, 30, 4), step(4), horizon=60, every=2),
    in_order(step(2), {"outside": box(0, 0, 3, 1), "window": [6, 0], "quantifier": "forall"}, step(1), horizon=30, every=3),
    in_order(step(7), {"outside": box(7, 0, 1, 1)}, step(7), horizon=50, every=1),
    in_order(step(0), step(1), {"distance": [4, 0], "window": [10, 0]}, horizon=20, every=2) | {"theta": {"op": "<=", "value": 2.5}},
    {"family": "motion", "predicates": [step(3, 60, 10), step(4, 50, 0)], "every": 2},
]


def answered(rows, most_buckets, batch, restart):
    """All changes over `rows` in batches of `batch` instants, with planes for windows of at most
    `most_buckets` buckets; and the work counters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_groups, "MOST_BUCKETS", most_buckets)
        index = OPERATOR.compile(registered(PATTERNS, PLANE), PLANE)
    assert sum(len(group.queries) for group in index.groups) == (len(PATTERNS) if most_buckets else 0)
    state, dictionary, found = OPERATOR.keyed.initial(index), EntityDictionary(), []
    for first in range(0, 130, batch):
        part = [row for row in rows if first <= row["t"] < first + batch]
        output = OPERATOR.keyed.step(index, state, batch_of(part, dictionary), first + batch)
        state = output.state
        OPERATOR.keyed.check(index, state)
        if restart:
            state = OPERATOR.keyed.load(index, OPERATOR.keyed.dump(index, state))
            OPERATOR.keyed.check(index, state)
        found += map(repr, output.changes.to_pylist())
    return sorted(found)


@pytest.mark.parametrize(("entities", "restart"), [(30, False), (300, False), (300, True)])
def test_planes_and_index_points_have_equal_answers(entities, restart):
    """Sliding windows of up to 60 buckets, dense and sparse: bits of leaving buckets are cleared
    unless another bucket has them."""
    rows = wanderers(entities, 120, seed=entities)
    found = answered(rows, 128, 2, restart)
    assert found == answered(rows, 0, 2, False)
    assert len(found) > 3 * entities


@given(st.integers(0, 10**6), st.sampled_from([5, 13]))
@settings(max_examples=examples(5), deadline=None)
def test_any_cut_into_batches(seed, batch):
    rows = wanderers(20, 100, seed)
    whole, cut = (answered(rows, 128, size, False) for size in (130, batch))
    # A match that is reported while it is open is retracted when it ends.
    assert set(whole) <= set(cut)


def test_only_candidates_are_evaluated():
    """150 visit one of the two places, one visits both."""
    index = OPERATOR.compile(registered([in_order(step(0), step(2))], PLANE), PLANE)
    rows = [row for e in range(150) for row in visits((1 + e % 5, 2 * (e % 2)), entity=f"{e}")] + visits((7, 0), (8, 2), entity="both")
    rows = [row | {"seq": seq} for seq, row in enumerate(sorted(rows, key=lambda row: row["t"]))]
    state = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of(rows, EntityDictionary()), 40).state
    # Two samples when the chain is found, two for its witnesses.
    assert OPERATOR.keyed.counters(index, state)["samples_read"] == 4
