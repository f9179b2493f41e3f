"""Decisions on borders are exact: 100,000 points against GEOS, PROJ and rational numbers."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import shapely

from engine.border_monitoring.antimeridian import passes_over
from engine.border_monitoring.passes import Moves, geodesic_contacts
from engine.border_monitoring.shapes import Circle, polygon_of, shapes_of
from engine.index.exact import in_circle, in_polygon, orientation
from engine.index.geodesic import LEAST_RADIUS, chord_limits, circle_bounds, distances, earth_centred
from tests.engine.border_monitoring.worlds import GLOBE, PLANE, run
from tests.oracles.border_monitoring import answers


def star(rng: np.random.Generator, vertices: int, scale: float) -> shapely.Polygon:
    """A star polygon whose vertices are rounded to `scale`, so that points can hit its border."""
    angle = np.sort(rng.random(vertices)) * 2 * np.pi
    reach = rng.uniform(2, 9, vertices)
    return shapely.Polygon(np.round(np.c_[reach * np.cos(angle), reach * np.sin(angle)] * scale) / scale)


def test_a_hundred_thousand_points_are_located_as_by_geos():
    rng = np.random.default_rng(5)
    compared = on_border = 0
    while compared < 100_000:
        scale = [1, 2, 3, 10][compared % 4]
        polygon = star(rng, int(rng.integers(3, 40)), scale)
        hole = shapely.affinity.scale(polygon, 0.4, 0.4) if polygon.is_valid else None
        if hole is None or polygon.area == 0:
            continue
        if polygon.contains_properly(hole):
            polygon = polygon.difference(hole)
        edges = polygon_of(polygon).edges
        middles = 0.5 * (edges[:, :2] + edges[:, 2:])
        points = np.concatenate([rng.integers(-9 * scale, 9 * scale + 1, (1500, 2)) / scale, edges[:, :2], middles])
        expected = shapely.intersects_xy(polygon, points[:, 0], points[:, 1])
        assert [in_polygon(edges, 0, len(edges), x, y) for x, y in points.tolist()] == expected.tolist()
        compared += len(points)
        on_border += int(shapely.distance(polygon.boundary, shapely.points(points[expected])).min(initial=1.0) == 0)
    assert on_border > 20


def test_orientation_near_a_line_agrees_with_rational_arithmetic():
    rng = np.random.default_rng(1)
    signs = set()
    for _ in range(3000):
        a, b = rng.random(2) * 10, rng.random(2) * 10
        p = a + rng.random() * (b - a)
        p = p + rng.integers(-2, 3, 2) * np.spacing(p)
        ax, ay, bx, by, px, py = (Fraction(float(v)) for v in (*a, *b, *p))
        exact = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
        sign = (exact > 0) - (exact < 0)
        assert orientation(*a, *b, *p) == sign
        signs.add(sign)
    assert signs == {-1, 0, 1} or signs == {-1, 1}


def test_plane_circles_are_closed_and_compare_the_hypotenuse():
    assert in_circle(0.0, 0.0, 5.0, 3.0, 4.0)
    assert in_circle(0.0, 0.0, 0.5, 0.3, 0.4)
    assert not in_circle(0.0, 0.0, 5.0, 3.0, np.nextafter(4.0, 5.0))
    rng = np.random.default_rng(2)
    for _ in range(5000):
        x, y = rng.integers(-50, 51, 2) / 7
        radius = float(np.hypot(x - 1.0, y + 2.0)) * rng.choice([1.0, 1.0 - 2**-53, 1.0 + 2**-52, 0.9])
        assert in_circle(1.0, -2.0, radius, x, y) == (np.hypot(x - 1.0, y + 2.0) <= radius)


@pytest.mark.parametrize("radius", [0.5, 30.0, 10e3, 1.5e6, 8.9e6, 12e6, 20.1e6])
def test_chords_never_contradict_geodesics(radius):
    """147,000 positions around the globe, including poles and antimeridian, many
    extremely close to the circle."""
    rng = np.random.default_rng(int(radius))
    near, far = chord_limits(radius)
    n = 3_000
    undecided = 0
    for latitude in (0.0, 0.3, 37.0, -66.6, 89.9999, -90.0, 90.0):
        centre = (float(rng.choice([-180.0, 179.9999, 12.3])), latitude)
        bearing = rng.random(n) * 360
        reach = np.where(rng.random(n) < 0.7, radius * (1 + rng.normal(0, 1e-9, n)), rng.random(n) * 2e7)
        from engine.index.geodesic import WGS84

        x, y, _ = WGS84.fwd(np.full(n, centre[0]), np.full(n, centre[1]), bearing, reach)
        x, y = np.asarray(x), np.asarray(y)
        exact = distances(np.full(n, centre[0]), np.full(n, centre[1]), x, y) <= radius
        X, Y, Z = earth_centred(*centre)
        places = np.array([earth_centred(*place) for place in zip(x.tolist(), y.tolist(), strict=True)])
        chord = (places[:, 0] - X) ** 2 + (places[:, 1] - Y) ** 2 + (places[:, 2] - Z) ** 2
        assert exact[chord <= near].all()
        assert not exact[chord > far].any()
        undecided += int(((chord > near) & (chord <= far)).sum())
        west, south, east, north = circle_bounds(*centre, radius)
        assert ((x[exact] >= west) & (x[exact] <= east) & (y[exact] >= south) & (y[exact] <= north)).all()
    assert undecided > 0 or radius > np.pi * LEAST_RADIUS


def test_circles_over_poles_and_antimeridian_are_entered_and_left():
    rng = np.random.default_rng(8)
    documents = [
        {"family": "border", "region": {"center": centre, "radius": radius}}
        for centre, radius in (([179.95, 0.0], 30e3), ([-180.0, 52.0], 80e3), ([10.0, 89.9], 40e3), ([0.0, -90.0], 90e3), ([5.0, 5.0], 60e3))
    ]
    rows = []
    for seq in range(3000):
        home = documents[int(rng.integers(5))]["region"]["center"]
        x = (home[0] + rng.normal(0, 0.5) + 180) % 360 - 180
        if abs(home[1]) > 85:
            x = rng.uniform(-180, 180)
        rows.append({"entity": str(rng.integers(20)), "t": seq, "seq": seq, "x": x, "y": float(np.clip(home[1] + rng.normal(0, 0.5), -90, 90))})
    expected = answers(rows, documents, geographic=True)
    assert len({answer[0] for answer in expected}) == 5
    assert run(documents, rows, GLOBE) == expected


def test_a_move_over_the_antimeridian_goes_the_short_way():
    island = json.loads(shapely.to_geojson(shapely.MultiPolygon([shapely.box(179, -1, 180, 1), shapely.box(-180, -1, -179, 1)])))
    africa = json.loads(shapely.to_geojson(shapely.box(10, -1, 20, 1)))
    documents = [{"family": "border", "region": region, "segments": True} for region in (island, africa)]
    rows = [
        {"entity": "1", "t": 0, "seq": 0, "x": 178.0, "y": 0.0},
        {"entity": "1", "t": 400, "seq": 1, "x": -178.0, "y": 0.0},
        {"entity": "1", "t": 800, "seq": 2, "x": 178.0, "y": 0.5},
    ]
    found = run(documents, rows, GLOBE)
    assert found == answers(rows, documents, geographic=True)
    assert sorted(answer[:4] for answer in found) == [(0, "in", "1", 100), (0, "in", "1", 500), (0, "out", "1", 300), (0, "out", "1", 700)]


def test_passes_over_the_antimeridian_through_a_geodesic_circle():
    moves = Moves(np.array([[179.0, 0.0]]), np.array([[-179.0, 0.0]]), np.array([0]), np.array([2000]))
    circle = Circle(180.0, 0.0, 55_659.745, True)
    assert passes_over(moves, [circle], np.array([True])) == [(0, 0, 500, 1500)]


def test_passes_through_geodesic_circles_are_found_by_sampling_too():
    rng = np.random.default_rng(11)
    met = 0
    for _ in range(200):
        circle = Circle(float(rng.uniform(-60, 60)), float(rng.uniform(-70, 70)), float(rng.uniform(1e3, 8e4)), True)
        p = np.array([circle.x, circle.y]) + rng.normal(0, 1, 2)
        q = np.array([circle.x, circle.y]) + rng.normal(0, 1, 2)
        s = np.linspace(0, 1, 10_001)
        beyond = distances(np.full(len(s), circle.x), np.full(len(s), circle.y), p[0] + s * (q - p)[0], p[1] + s * (q - p)[1]) - circle.radius
        if beyond[0] <= 0 or beyond[-1] <= 0 or abs(beyond.min()) < 1:
            continue
        span = geodesic_contacts(p, q, circle)
        assert (span is not None) == bool((beyond <= 0).any())
        if span is not None:
            inside = s[beyond <= 0]
            assert abs(span[0] - inside[0]) < 1.2e-4 and abs(span[1] - inside[-1]) < 1.2e-4
            met += 1
    assert met > 25


def test_a_touch_gives_in_and_out_at_one_time_rounded_half_to_even():
    square = {"type": "Polygon", "coordinates": [[[2, 0], [4, 0], [4, 2], [2, 2], [2, 0]]]}
    circle = {"center": [5, 5], "radius": 5}
    documents = [{"family": "border", "region": region, "segments": True} for region in (square, circle)]
    rows = [
        {"entity": "touch", "t": 0, "seq": 0, "x": 1.0, "y": 3.0},
        {"entity": "touch", "t": 9, "seq": 1, "x": 3.0, "y": 1.0 + 4.0},
        {"entity": "corner", "t": 0, "seq": 2, "x": 1.0, "y": 1.0},
        {"entity": "corner", "t": 5, "seq": 3, "x": 3.0, "y": 3.0},
        {"entity": "corner", "t": 8, "seq": 4, "x": 1.0, "y": 3.0},
        {"entity": "tangent", "t": 3, "seq": 5, "x": 0.0, "y": 10.0},
        {"entity": "tangent", "t": 4, "seq": 6, "x": 10.0, "y": 10.0},
        {"entity": "through", "t": 0, "seq": 7, "x": 1.5, "y": 1.0},
        {"entity": "through", "t": 3, "seq": 8, "x": 4.5, "y": 1.0},
    ]
    found = run(documents, rows, PLANE)
    assert found == answers(rows, documents)
    # Corner (2, 2) at 2.5, the tangent's middle at 3.5: both to the even 2 and 4; through
    # at 0.5 and 2.5: to 0 and 2.
    corner = {(kind, start) for query, kind, entity, start, _, _ in found if entity == "corner" and query == 0}
    assert corner == {("in", 2), ("out", 2)}
    assert {(kind, start) for query, kind, entity, start, _, _ in found if entity == "tangent"} == {("in", 4), ("out", 4)}
    assert {(kind, start) for query, kind, entity, start, _, _ in found if entity == "through" and query == 0} == {("in", 0), ("out", 2)}


def test_a_rectangle_is_recognised_in_any_order_of_vertices():
    ring = [(0, 0), (0, 3), (2, 3), (2, 0), (0, 0)]
    for turned in (ring, ring[::-1]):
        assert shapes_of([shapely.Polygon(turned)]) == shapes_of([shapely.box(0, 0, 2, 3)])
