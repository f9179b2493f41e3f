"""The grid agrees with `Region.contains`; distances from borders on the globe
are within their tolerance."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from engine.index.geodesic_borders import GeodesicBorder
from engine.model.feed import Crs
from engine.model.region import read_region
from engine.motion_patterns.region_grid import RegionGrid
from tests.engine.motion_patterns.worlds import regions
from tests.examples import examples

GEOD = Geod(ellps="WGS84")


def stars(draw_integer, corners):
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    radius = np.where(np.arange(corners) % 2, 1.0, 2.0 + draw_integer)
    points = np.column_stack([2 + radius * np.cos(angles), 2 + radius * np.sin(angles)]).tolist()
    return {"type": "Polygon", "coordinates": [[*points, points[0]]]}


shapes = st.one_of(regions(), st.builds(stars, st.integers(0, 2), st.sampled_from([3, 8, 200])))


@given(st.lists(shapes, min_size=1, max_size=6), st.lists(st.tuples(st.integers(-8, 64), st.integers(-8, 64)), max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_the_grid_gives_what_the_regions_say(documents, points):
    chosen = [read_region(document, Crs.PLANAR) for document in documents]
    x, y = (np.array([point[i] / 8 for point in points]) for i in range(2))
    first, at, near = RegionGrid.of(chosen).inside(x, y)
    rows = near[at]
    for r, region in enumerate(chosen):
        assert rows[first[r] : first[r + 1]].tolist() == np.flatnonzero(region.contains(x, y)).tolist()


@given(st.lists(regions(globe=True), min_size=1, max_size=4), st.lists(st.tuples(st.integers(-8, 64), st.integers(-8, 64)), max_size=20))
@settings(max_examples=examples(100), deadline=None)
def test_the_grid_on_the_globe(documents, points):
    chosen = [read_region(document, Crs.GEOGRAPHIC) for document in documents]
    x, y = (np.array([point[i] / 8 for point in points]) for i in range(2))
    first, at, near = RegionGrid.of(chosen).inside(x, y)
    rows = near[at]
    for r, region in enumerate(chosen):
        assert rows[first[r] : first[r + 1]].tolist() == np.flatnonzero(region.contains(x, y)).tolist()


@pytest.mark.parametrize(
    "polygon",
    [
        shapely.box(10, 50, 10.01, 50.02),
        shapely.box(116, 39, 117, 40),
        shapely.box(-20, 60, 60, 70),
        shapely.Polygon([(0, 0), (30, 5), (10, 40)], [[(10, 10), (12, 10), (11, 12)]]),
    ],
)
def test_distances_from_borders_keep_their_tolerance(polygon):
    """Against dense samples of the border, then ever denser ones round the nearest."""
    chance = np.random.default_rng(1)
    west, south, east, north = polygon.bounds
    spread = max(east - west, north - south)
    x = np.clip(chance.uniform(west - spread, east + spread, 40), -180, 180)
    y = np.clip(chance.uniform(south - spread, north + spread, 40), -89, 89)
    ours = GeodesicBorder.of(polygon).distances(x, y)
    edges = np.concatenate([np.hstack([c[:-1], c[1:]]) for c in (shapely.get_coordinates(ring) for ring in shapely.get_rings(polygon))])
    for i in range(len(x)):
        true = min(least_by_sampling(x[i], y[i], *edge) for edge in edges)
        assert abs(ours[i] - true) <= 1e-3 + 1e-7 * true


def least_by_sampling(x, y, ax, ay, bx, by):
    low, high = 0.0, 1.0
    for _ in range(7):
        s = np.linspace(low, high, 201)
        found = GEOD.inv(np.full(201, x), np.full(201, y), ax + s * (bx - ax), ay + s * (by - ay))[2]
        best = int(np.argmin(found))
        low, high = s[max(best - 2, 0)], s[min(best + 2, 200)]
    return float(found.min())


def test_cuts_at_the_antimeridian_are_no_border():
    document = {"type": "Polygon", "coordinates": [[[179, 0], [181, 0], [181, 2], [179, 2], [179, 0]]]}
    region = read_region(document, Crs.GEOGRAPHIC)
    inside = GeodesicBorder.of(region.geometry).distances(np.array([180.0]), np.array([1.0]))
    assert inside[0] > 100_000
