"""SIMD comparisons compared with scalar ones, including ties and NaN."""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.index.lanes import LANES, at_most, below, box_holds

VALUES = np.array([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf, np.nan])


@njit
def asked(doubles, numbers, place, value, number):
    return at_most(doubles, place, value), below(numbers, place, number)


@njit
def held(boxes, k, x, y):
    return box_holds(boxes, k, x, y)


def bits(answers):
    return sum(1 << k for k, answer in enumerate(answers) if answer)


def test_eight_entries_are_compared_from_any_offset():
    rng = np.random.default_rng(1)
    doubles, numbers = rng.choice(VALUES, 100 + LANES), rng.integers(-3, 3, 100 + LANES).astype(np.int32)
    for place in range(100):
        value, number = rng.choice(VALUES), int(rng.integers(-3, 3))
        expected = bits(doubles[place : place + LANES] <= value), bits(numbers[place : place + LANES] < number)
        assert asked(doubles, numbers, place, value, np.int32(number)) == expected


def test_a_closed_box_contains_its_edges():
    rng = np.random.default_rng(2)
    ends = rng.integers(-2, 3, (200, 4)).astype(np.float64)
    boxes = ends * [1, 1, -1, -1]
    for k, (west, south, east, north) in enumerate(ends.tolist()):
        x, y = rng.choice([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, np.nan], 2)
        assert held(boxes, k, x, y) == (west <= x <= east and south <= y <= north)
