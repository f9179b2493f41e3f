"""Regions: which are accepted, split or refused, and what is inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from engine.model.faults import Refused
from engine.model.feed import Crs
from engine.model.region import MAX_VERTICES, PolygonRegion, read_region

GLOBE, PLANE = Crs.GEOGRAPHIC, Crs.PLANAR


def polygon(*rings: list[list[float]]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": list(rings)}


def box(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def inside(document: dict[str, Any], crs: Crs, *points: tuple[float, float]) -> list[bool]:
    x, y = np.array(points, float).T
    return read_region(document, crs).contains(x, y).tolist()


def faults_of(document: Any, crs: Crs = PLANE) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        read_region(document, crs)
    return [(fault.pointer, fault.message) for fault in refused.value.faults]


def test_regions_include_their_borders_and_the_borders_of_holes() -> None:
    ring = polygon(box(0, 0, 6, 6), box(2, 2, 4, 4))
    assert inside(ring, PLANE, (0, 0), (6, 3), (2, 3), (3, 3), (7, 7), (np.nan, 1)) == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    "ring",
    [box(170, -10, -170, 10), box(170, -10, 190, 10), box(-190, -10, -170, 10), box(-190, -10, -170, 10)[::-1]],
    ids=["by a jump", "beyond 180", "below -180", "clockwise"],
)
def test_a_ring_over_the_antimeridian_is_split_there(ring: list[list[float]]) -> None:
    found = read_region(polygon(ring), GLOBE)
    assert isinstance(found, PolygonRegion)
    west, _, east, _ = found.bounds
    assert (west, east) == (-180, 180)
    assert found.contains(np.array([175.0, -179.5, 180, -180, 0, 160]), np.zeros(6)).tolist() == [True, True, True, True, False, False]


def test_splitting_a_ring_keeps_exact_vertices() -> None:
    ring = [[179.9123456789, 0.1], [-179.8765432101, 0.3], [-179.7000000003, 5.7], [179.1, 5.2], [179.9123456789, 0.1]]
    x, y = np.array(ring[:-1]).T
    assert read_region(polygon(ring), GLOBE).contains(x, y).all()


def test_holes_are_split_with_their_ring() -> None:
    document = polygon(box(170, -10, -170, 10), box(175, -5, -175, 5), box(-174, -1, -173, 1))
    assert inside(document, GLOBE, (172, 0), (178, 0), (-178, 0), (-172, 0), (-173.5, 0)) == [True, False, False, True, False]


@pytest.mark.parametrize(("latitude", "pole"), [(60, 90), (-60, -90)])
def test_a_ring_around_a_pole_contains_it(latitude: float, pole: float) -> None:
    ring = [[x, latitude] for x in (0, 90, 180, -90, 0)]
    assert inside(polygon(ring), GLOBE, (17, pole), (-179.9, pole * 0.9), (45, 0)) == [True, True, False]


def test_the_whole_world_includes_its_edges() -> None:
    assert inside(polygon(box(-180, -90, 180, 90)), GLOBE, (0, 0), (180, 90), (-180, 0)) == [True, True, True]


def test_the_plane_has_no_antimeridian() -> None:
    assert inside(polygon(box(170, 0, 190, 10)), PLANE, (185, 5), (-175, 5)) == [True, False]


def test_a_polygon_that_touches_itself_in_a_point_is_valid_and_multipolygons_may() -> None:
    document = {"type": "MultiPolygon", "coordinates": [[box(0, 0, 1, 1)], [box(1, 1, 2, 2)]]}
    assert inside(document, PLANE, (1, 1), (0.5, 1.5)) == [True, False]


def test_circles_measure_geodesics_on_the_globe() -> None:
    circle = {"center": [179.9, 0], "radius": 30_000}
    assert inside(circle, GLOBE, (-179.9, 0), (-179.8, 0), (179.9, 0)) == [True, False, True]
    assert inside({"center": [0, 0], "radius": 5}, PLANE, (3, 4), (3, 4.001)) == [True, False]


@pytest.mark.parametrize(
    ("document", "pointer", "words"),
    [
        (None, "", "GeoJSON"),
        ({}, "", "GeoJSON"),
        ({"type": "Point", "coordinates": [0, 0]}, "/type", "Polygon"),
        ({"type": "Feature", "geometry": {}}, "/type", "geometry"),
        ({"type": "Polygon", "coordinates": []}, "/coordinates", "rings"),
        (polygon(), "/coordinates", "rings"),
        (polygon([[0, 0], [1, 0], [0, 0]]), "/coordinates/0", "four"),
        (polygon([[0, 0], [1, 0], [1, 1], [0, 1]]), "/coordinates/0/3", "closed"),
        (polygon([[0, 0], [1, "0"], [1, 1], [0, 0]]), "/coordinates/0/1", "numbers"),
        (polygon([[0, 0], [1, True], [1, 1], [0, 0]]), "/coordinates/0/1", "numbers"),
        (polygon([[0, 0], [1, float("nan")], [1, 1], [0, 0]]), "/coordinates/0/1", "finite"),
        (polygon(box(-1e300, 0, 1, 1)), "/coordinates/0/0", "beyond 1e+150"),
        (polygon([[0, 0], [1e155, 2e154], [2e154, 1e155], [0, 0]]), "/coordinates/0/1", "beyond 1e+150"),
        (polygon([[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]), "/coordinates", "[1, 1]"),
        (polygon([[0, 0], [1, 0], [2, 0], [0, 0]]), "/coordinates", "valid"),
        (polygon(box(0, 0, 2, 2), box(5, 5, 6, 6)), "/coordinates", "valid"),
        ({"type": "MultiPolygon", "coordinates": [[box(0, 0, 2, 2)], [box(1, 1, 3, 3)]]}, "/coordinates", "valid"),
        ({**polygon(box(0, 0, 1, 1)), "colour": 1}, "/colour", "unknown key"),
        ({"center": [0, 0]}, "/radius", "greater than 0"),
        ({"center": [0, 0], "radius": 0}, "/radius", "greater than 0"),
        ({"center": [0, 0], "radius": -1}, "/radius", "greater than 0"),
        ({"center": [0, 0], "radius": float("inf")}, "/radius", "greater than 0"),
        ({"center": [0, 0], "radius": 9e307}, "/radius", "is beyond 1e+150"),
        ({"center": [1e200, 0], "radius": 1}, "/center", "is beyond 1e+150"),
        ({"center": [0], "radius": 1}, "/center", "point"),
        ({"center": [0, 0], "radius": 1, "unit": "km"}, "/unit", "unknown key"),
    ],
)
def test_faults_of_regions_have_pointers(document: Any, pointer: str, words: str) -> None:
    ((found, message),) = faults_of(document)
    assert found == pointer
    assert words in message


@pytest.mark.parametrize("ring", [box(0, 0, 1, 91), box(0, 0, 541, 1)])
def test_points_off_the_globe_are_refused_only_on_the_globe(ring: list[list[float]]) -> None:
    assert faults_of(polygon(ring), GLOBE)[0][0].startswith("/coordinates/0/")
    assert read_region(polygon(ring), PLANE).bounds


def test_a_region_has_at_most_a_hundred_thousand_vertices() -> None:
    angles = np.linspace(0, 2 * np.pi, MAX_VERTICES, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]).tolist()
    assert shapely.get_num_coordinates(read_region(polygon([*ring, ring[0]]), PLANE).geometry) == MAX_VERTICES + 1  # type: ignore[attr-defined]
    more = [*ring, [1, -1e-9], ring[0]]
    assert "simplify" in faults_of(polygon(more))[0][1]


def test_equal_regions_are_equal_values() -> None:
    one, other = (read_region(polygon(box(0, 0, 1, 1)), PLANE) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
