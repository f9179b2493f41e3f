"""Boxes found by words of bits, against comparisons with every box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.motion_patterns import box_slabs, sample_store
from engine.motion_patterns.box_slabs import MOST_BOXES, BoxSlabs

# Few values, so that points are on borders, and boxes touch, are equal, or have no width.
PLACES = st.sampled_from([-1e300, -3.0, -1.0, -5e-324, 0.0, 0.1, 0.30000000000000004, 1.0, 2.0, 2.5, 1e9])
ODD = st.sampled_from([float("nan"), float("inf"), float("-inf")])


@st.composite
def boxes(draw: st.DrawFn) -> tuple[float, float, float, float]:
    (west, east), (south, north) = sorted([draw(PLACES), draw(PLACES)]), sorted([draw(PLACES), draw(PLACES)])
    return west, south, east, north


@given(
    boxes=st.lists(boxes(), min_size=1, max_size=MOST_BOXES),
    points=st.lists(st.tuples(PLACES | ODD | st.floats(-4, 4), PLACES | ODD | st.floats(-4, 4)), max_size=40),
)
def test_each_sample_hits_the_bits_of_the_boxes_that_hold_it(
    boxes: list[tuple[float, float, float, float]], points: list[tuple[float, float]]
) -> None:
    slabs = BoxSlabs.of(np.array(boxes, np.float64))
    x, y = (np.array([point[axis] for point in points], np.float64) for axis in range(2))
    t, entity = np.arange(len(points)), np.arange(len(points), dtype=np.int32)
    store = sample_store.with_room(sample_store.no_samples(0, max(len(points), 1)), max(len(points), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        done, hits = box_slabs.take(0, (x, y, t, t, entity), slabs.arrays, store)
    assert done == len(points)
    kept = [int(store.entity[k]) for k in range(*store.bounds)]
    found = {(i, r) for k, i in enumerate(kept) for r in range(MOST_BOXES) if int(store.word[k]) >> r & 1}
    expected = {
        (i, r)
        for i, (px, py) in enumerate(points)
        for r, (west, south, east, north) in enumerate(boxes)
        if west <= px <= east and south <= py <= north
    }
    assert found == expected and hits == len(expected)
    assert kept == sorted({i for i, _ in expected})


@pytest.mark.parametrize("axis", [0, 1])
def test_in_the_cell_of_a_border_the_border_decides(axis: int) -> None:
    slabs = BoxSlabs.of(np.array([[0.0, 0.0, 1.0, 1.0], [0.2, 0.2, 0.7, 0.7]]))
    near = np.array([0.2 - 1e-5, 0.2, 0.2 + 1e-5, 0.7 - 1e-5, 0.7, 0.7 + 1e-5])
    x, y = np.array([near, np.full(len(near), 0.5)])[[axis, 1 - axis]]
    t, store = np.arange(len(near)), sample_store.no_samples(0, 0, len(near))
    box_slabs.take(0, (x, y, t, t, t.astype(np.int32)), slabs.arrays, store)
    assert sample_store.live(store)["word"].tolist() == [1, 3, 3, 3, 3, 1]
