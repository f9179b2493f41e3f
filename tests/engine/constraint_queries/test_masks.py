"""Results as the bits of an integer, against numpy: around the ends of words, and with NaN."""

from __future__ import annotations

import numpy as np
import pytest

from engine.constraint_queries.candidates import mask_within_reach
from engine.constraint_queries.pairs import PairBounds
from engine.constraint_queries.pool import NewEvent
from engine.constraint_queries.ranges import passing_events
from engine.constraint_queries.rings import UNTIL, empty_rings

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, np.nextafter(1.0, 2.0))


@pytest.mark.parametrize("n", [0, 1, 7, 63, 64, 65, 1_023, 1_024, 1_025, 1_100])
def test_rows_that_pass_are_those_of_numpy(n: int) -> None:
    chance = np.random.default_rng(n)
    values = chance.choice([*SPECIAL, *chance.normal(0, 1, 9)], (3, n))
    ready = chance.random((2, n)) < 0.7
    # Three queries: filters of two ranges and a mask, an empty filter, filters with
    # equal or infinite limits.
    filters, bits = np.array([0, 2, 3, 5]), np.array([1, 6, 1, 2, 4])
    ranges, column = np.array([0, 2, 3, 3, 4, 5]), np.array([0, 1, 2, 1, 0])
    low, high = np.array([-np.inf, -0.5, 0.0, 1.0, -np.inf]), np.array([0.5, 1.0, 0.0, 1.0, np.inf])
    masks, mask = np.array([0, 1, 3, 3, 3, 4]), np.array([0, 0, 1, 1])
    expected = []
    for q in range(3):
        taken = np.zeros(n, np.int64)
        for f in range(filters[q], filters[q + 1]):
            passed = np.ones(n, np.bool_)
            for r in range(ranges[f], ranges[f + 1]):
                passed &= (values[column[r]] >= low[r]) & (values[column[r]] <= high[r])
            for r in range(masks[f], masks[f + 1]):
                passed &= ready[mask[r]]
            taken |= bits[f] * passed
        expected += [(row, q, int(taken[row])) for row in np.flatnonzero(taken).tolist()]
    rows, queries, found = passing_events(filters, bits, ranges, column, low, high, masks, mask, values, ready, n)
    assert sorted(zip(rows.tolist(), queries.tolist(), found.tolist(), strict=True)) == sorted(expected)
    assert all((np.diff(rows[queries == q]) > 0).all() for q in range(3))


@pytest.mark.parametrize("skip_expired", [False, True])
def test_the_events_of_a_window_within_reach_are_those_of_numpy(skip_expired: bool) -> None:
    chance = np.random.default_rng(1)
    count = 90
    rings = empty_rings(np.array([count]), np.zeros(2, np.int64))
    place, ring = rings.place, rings.ints
    place[:] = chance.integers(0, 4, (3, count))
    ring[UNTIL] = chance.integers(0, 3, count)
    for low in (0, 5, 27):
        for length in (1, 7, 8, 9, 16, 62, 63):
            reach, near, apart = 6.0, 5.0, 1.0
            bounds, new = PairBounds(0, True, 0, 0, 0, reach, near, apart), NewEvent(0, 1, 1, 1.0, 2.0, 0.0)
            mask, unsure = mask_within_reach(rings, low, low + length, bounds, new, skip_expired)
            own = place[:, low : low + length] - np.array([[1.0], [2.0], [0.0]])
            chord = (own * own).sum(axis=0)
            there = (chord <= reach) & ((ring[UNTIL, low : low + length] >= 1) | (not skip_expired))
            assert [(mask >> k) & 1 for k in range(64)] == [*there.astype(int).tolist(), *[0] * (64 - length)]
            open_ones = there & ~((chord <= near) & (chord > apart))
            assert [(unsure >> k) & 1 for k in range(64)] == [*open_ones.astype(int).tolist(), *[0] * (64 - length)]
