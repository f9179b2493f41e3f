"""Planes and index points have the same answers; planes with few entities or
many, dense or sparse buckets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.arrays import pack_arrays, unpack_arrays
from engine.model.batch import Batch, EntityDictionary
from engine.motion_patterns import plane_groups, sample_store
from engine.motion_patterns.batch_cache import BatchCache
from engine.motion_patterns.evaluation import RETRACTED
from engine.motion_patterns.plane_groups import bucket_width
from engine.motion_patterns.region_grid import RegionGrid
from tests.engine.motion_patterns.worlds import GLOBE, OPERATOR, PLANE, batch_of, box, documents, streams
from tests.engine.runs import registered
from tests.examples import examples


def answered(queries, rows, feed, unknown=0):
    """Changes and emitted rows of the keyed stage, in three batches with a restart between;
    `unknown` are entities that were there before."""
    index, dictionary = OPERATOR.compile(registered(queries, feed), feed), EntityDictionary()
    if unknown:
        dictionary.encode(pa.array([f"stranger {i}" for i in range(unknown)]))
    state, found = OPERATOR.keyed.initial(index), []
    third = len(rows) // 3
    for part in (rows[:third], rows[third : 2 * third], rows[2 * third :]):
        output = OPERATOR.keyed.step(index, state, batch_of(part, dictionary), part[-1]["t"] if part else -1000)
        OPERATOR.keyed.check(index, output.state)
        state = OPERATOR.keyed.load(index, OPERATOR.keyed.dump(index, output.state))
        OPERATOR.keyed.check(index, state)
        emitted = output.emitted.to_pylist() if output.emitted else []
        # The score of a retraction is not significant.
        found += [output.changes.to_pylist(), [row | {"score": None} if row["what"] == RETRACTED else row for row in emitted]]
    return [sorted(map(repr, rows)) for rows in found]


@given(st.lists(documents(), min_size=1, max_size=4), streams(most=40))
@settings(max_examples=examples(40), deadline=None)
def test_planes_and_index_points_have_equal_answers(queries, rows):
    by_planes = answered(queries, rows, PLANE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_groups, "MOST_BUCKETS", 0)
        by_points = answered(queries, rows, PLANE)
    assert by_planes == by_points


@given(st.lists(documents(), min_size=1, max_size=4), streams(most=40), st.sampled_from([63, 64, 200, 700]))
@settings(max_examples=examples(40), deadline=None)
def test_buckets_without_planes_have_equal_answers(queries, rows, unknown):
    """With many entities a bucket of a few hits has no plane."""
    assert answered(queries, rows, PLANE, unknown) == answered(queries, rows, PLANE)


@given(st.lists(documents(), min_size=2, max_size=6), streams(most=40), st.sampled_from([0, 16]))
@settings(max_examples=examples(30), deadline=None)
def test_queries_in_several_groups_have_equal_answers(queries, rows, slabbed):
    """One group for each query with different sequences; boxes are tested by
    slabs or by a shared grid."""
    whole = answered(queries, rows, PLANE)
    most = max(len(group.sequences) for query in queries for group in OPERATOR.compile(registered([query], PLANE), PLANE).groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_groups, "MOST_SEQUENCES", max(most, 1 + max(len(query["predicates"]) for query in queries)))
        patch.setattr(plane_groups, "_MOST_SLABBED", slabbed)
        assert answered(queries, rows, PLANE) == whole


def test_equal_predicates_come_into_one_group():
    shapes = [box(i, 0, 1, 1) for i in range(90)]
    asked = [[0, 1], *([i] for i in range(2, 90)), [0, 2], [89]]
    documents = [{"family": "motion", "predicates": [{"inside": shapes[i], "window": [1, 0]} for i in own], "every": 1} for own in asked]
    groups = OPERATOR.compile(registered(documents, PLANE), PLANE).groups
    assert [len(group.sequences) for group in groups] == [64, 26]
    assert [sorted(set(group.queries.tolist()) & {0, 1, 88, 89, 90}) for group in groups] == [[0, 1, 89], [88, 90]]


def test_a_query_of_very_many_predicates_keeps_index_points():
    for predicates, groups in ((63, 1), (64, 0)):
        document = {
            "family": "motion",
            "predicates": [{"inside": box(i, 0, 1, 1), "window": [1, 0], "quantifier": "forall"} for i in range(predicates)],
            "every": 1,
        }
        assert len(OPERATOR.compile(registered([document], PLANE), PLANE).groups) == groups


@pytest.mark.parametrize(
    ("window", "every", "width"), [([30, 20], 4, 2), ([10, 0], 5, 5), ([128, 0], 1, 1), ([129, 0], 1, None), ([1000, 500], 7, None)]
)
def test_a_window_of_very_many_buckets_keeps_index_points(window, every, width):
    document = {"family": "motion", "predicates": [{"inside": box(0, 0, 1, 1), "window": window}], "every": every}
    (query,) = registered([document], PLANE)
    assert bucket_width(query.specification) == width
    assert len(OPERATOR.compile([query], PLANE).groups) == (width is not None)


def test_samples_at_the_edges_of_buckets_and_windows():
    """At T = 10 the window (4, 8] holds samples at 5 to 8, and buckets are
    2 wide: (4, 6] and (6, 8]."""
    document = {"family": "motion", "predicates": [{"inside": box(0, 0, 1, 1), "window": [6, 2]}], "every": 2}
    for t, first, past in [(4, 6, 10), (5, 8, 12), (6, 8, 12), (8, 10, 14)]:
        rows = [{"entity": "1", "t": t, "x": 0.5, "y": 0.5, "seq": 0}]
        index, dictionary = OPERATOR.compile(registered([document], PLANE), PLANE), EntityDictionary()
        assert index.groups[0].width == 2
        output = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of(rows, dictionary), 30)
        assert [(one["start"], one["end"]) for one in output.changes.to_pylist()] == [(first, past)]


def test_far_distances_are_compared_by_their_samples():
    """Distances that float32 cannot distinguish or represent."""
    document = {"family": "motion", "predicates": [{"distance": [0, 0], "window": [5, 0]}], "every": 5, "theta": {"op": "min"}}
    for far in (1e3, 1e12, 1e30):
        rows = [{"entity": f"{i}", "t": 1, "x": far * (1 + 1e-9 * i), "y": 0.0, "seq": i} for i in (2, 1, 3)]
        index, dictionary = OPERATOR.compile(registered([document], PLANE), PLANE), EntityDictionary()
        output = OPERATOR.keyed.step(index, OPERATOR.keyed.initial(index), batch_of(rows, dictionary), 6)
        assert [(one["entity"], one["score"]) for one in output.emitted.to_pylist()] == [("1", far * (1 + 1e-9))]


def test_a_state_of_another_version_is_refused():
    index = OPERATOR.compile([], PLANE)
    arrays = unpack_arrays(OPERATOR.keyed.dump(index, OPERATOR.keyed.initial(index)))
    for version in ({"version": np.array([1])}, {}):
        old = {name: column for name, column in arrays.items() if name != "version"} | version
        with pytest.raises(ValueError, match="version 1, this program reads 6"):
            OPERATOR.keyed.load(index, pack_arrays(old))


@pytest.mark.parametrize("feed", [PLANE, GLOBE], ids=["plane", "globe"])
def test_the_grid_finds_what_each_region_holds(feed):
    """Boxes alone, and with other regions, are decided by different loops."""
    chance = np.random.default_rng(3)
    boxes = [box(*chance.integers(0, 8, 2).tolist(), *chance.integers(1, 4, 2).tolist()) for _ in range(6)]
    ring = [[1, 1], [6, 2], [3, 7], [1, 1]]
    others = [{"type": "Polygon", "coordinates": [ring]}, {"center": [4, 4], "radius": 2.0 if feed is PLANE else 2e5}]
    x, y = chance.integers(-1, 25, (2, 5000)) / 2
    x[::50] = np.nan
    for shapes in (boxes, boxes + others):
        asked = [{"family": "motion", "predicates": [{"inside": shape, "window": [1, 0]}], "every": 1} for shape in shapes]
        regions = [query.specification.predicates[0].target for query in registered(asked, feed)]
        first, at, rows = RegionGrid.of(regions).inside(x, y)
        for r, region in enumerate(regions):
            there = ~np.isnan(x)
            there[there] = region.contains(x[there], y[there])
            assert rows[at[first[r] : first[r + 1]]].tolist() == np.flatnonzero(there).tolist()


@pytest.mark.parametrize("slabbed", [16, 0], ids=["slabs", "grid"])
def test_stored_samples_are_those_that_boxes_hold(slabbed, monkeypatch):
    """Samples on borders, close to them, outside, with huge coordinates or none;
    the store grows meanwhile."""
    monkeypatch.setattr(plane_groups, "_MOST_SLABBED", slabbed)
    chance = np.random.default_rng(4)
    shapes = [box(*chance.uniform(0, 8, 2).tolist(), *chance.uniform(0.1, 4, 2).tolist()) for _ in range(7)]
    document = {"family": "motion", "predicates": [{"inside": shape, "window": [1, 0]} for shape in shapes], "every": 1}
    index = OPERATOR.compile(registered([document], PLANE), PLANE)
    (sweep,) = OPERATOR.keyed.initial(index).planes
    assert (sweep.group.slabs is not None) == (slabbed > 0)
    edges = np.unique([value for shape in shapes for corner in shape["coordinates"][0] for value in corner])
    some = np.concatenate([edges, np.nextafter(edges, 99), np.nextafter(edges, -99), [-1e300, 1e300, np.inf, np.nan], chance.uniform(-1, 13, 50)])
    x, y = chance.choice(some, (2, 5000))
    rows = pa.RecordBatch.from_pydict({"entity": ["1"] * len(x), "t": [0] * len(x), "x": x, "y": y, "seq": range(len(x))})
    sweep.take(BatchCache(Batch(rows, EntityDictionary())))
    kept = sample_store.live(sweep.store)
    seq, word = kept["seq"], kept["word"]
    found = {(int(s), p) for s, bits in zip(seq, word.tolist(), strict=True) for p in range(64) if bits >> p & 1}
    wanted = {
        (int(s), p)
        for p, (_, target) in enumerate(sweep.group.sequences)
        for s in np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        if target.bounds[0] <= x[s] <= target.bounds[2] and target.bounds[1] <= y[s] <= target.bounds[3]
    }
    assert found == wanted and len(found) > 1000
    assert set(seq.tolist()) == {s for s, _ in wanted}
