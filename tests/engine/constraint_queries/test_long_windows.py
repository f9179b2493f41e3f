"""Long domains are looked up in cells: the same answers as all pairs by numpy, before and
after events are dropped."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.constraint_queries.operator import ConstraintOperator
from engine.constraint_queries.rings import LEAST_LONG
from engine.index.geodesic import distances
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Feed
from tests.engine.constraint_queries.worlds import GLOBE, PLANE
from tests.engine.runs import registered

COUNT, BATCH, WINDOW = 6_000, 500, 3_000
SIZES = {PLANE.name: (100.0, 1.0), GLOBE.name: (20.0, 30_000.0)}
"""By feed: the side of the square in its unit of x, and the greatest distance."""


def places(feed: Feed) -> np.ndarray:
    """Uniform about the origin of the plane, or about the antimeridian."""
    side, _ = SIZES[feed.name]
    place = np.random.default_rng(5).uniform(-side / 2, side / 2, (COUNT, 2))
    if feed is GLOBE:
        place[:, 0] = place[:, 0] % 360 - 180
    return place


@pytest.mark.parametrize("form", ["loose", "tight", "domains"])
@pytest.mark.parametrize("feed", [PLANE, GLOBE], ids=lambda feed: feed.name)
def test_pairs_in_long_windows_are_those_of_all_pairs(feed: Feed, form: str) -> None:
    place, (_, reach) = places(feed), SIZES[feed.name]
    document: dict[str, Any] = {
        "family": "constraint",
        "variables": {"A": {}, "B": {}},
        "constraints": [{"between": ["A", "B"], "dt": [0, WINDOW], "distance": {"max": reach}}],
        "expiration": form,
    }
    stages, dictionary = ConstraintOperator(), EntityDictionary()
    index = stages.compile(registered([document], feed), feed)
    state, found, celled = stages.keyed.initial(index), [], False
    for begin in range(0, COUNT, BATCH):
        at = np.arange(begin, begin + BATCH)
        rows = {"entity": pa.array(["a"] * BATCH), "t": pa.array(at), "seq": pa.array(at), "x": pa.array(place[at, 0]), "y": pa.array(place[at, 1])}
        output = stages.keyed.step(index, state, Batch(pa.RecordBatch.from_pydict(rows), dictionary), int(at[-1]))
        found += list(zip(output.changes.column("start").to_pylist(), output.changes.column("end").to_pylist(), strict=True))
        stages.keyed.check(index, state)
        celled = celled or bool(state.rings.corners[-1])
    assert celled, f"domains of {WINDOW} events, {LEAST_LONG} are long"
    assert sorted(found) == all_pairs(feed.name)


@cache
def all_pairs(name: str) -> list[tuple[int, int]]:
    """Times of the pairs that are close enough."""
    feed = PLANE if name == PLANE.name else GLOBE
    place, (_, reach) = places(feed), SIZES[name]
    expected = []
    for b in range(COUNT):
        first = max(0, b - WINDOW)
        # Points a degree of latitude apart are never close enough.
        near = first + np.flatnonzero(np.abs(place[first:b, 1] - place[b, 1]) <= 1.0)
        x, y = place[near].T
        if feed is GLOBE:
            apart = distances(x, y, np.full(len(x), place[b, 0]), np.full(len(x), place[b, 1]))
        else:
            apart = np.hypot(x - place[b, 0], y - place[b, 1])
        expected += [(a, b) for a in near[apart <= reach].tolist()]
    return sorted(expected)
