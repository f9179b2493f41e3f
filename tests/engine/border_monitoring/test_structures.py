"""All index structures give the same meetings: cells, finer cells, sorted bounds, edges
of polygons, plain tests."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.border_monitoring import borders
from engine.border_monitoring.borders import build_borders
from engine.border_monitoring.bounds import CrossingBuffers, MoveColumns, bound_crossings, build_bounds, rows_of
from engine.border_monitoring.moves import IN, OUT, MeetingBuffers, border_meetings
from engine.border_monitoring.shapes import Circle, Polygon, Rectangle, polygon_of, shapes_of
from engine.model.feed import Crs
from engine.model.region import read_region
from tests.examples import examples


def meetings_of(index, before, after):
    moves = MoveColumns(before, after, np.ones(len(before), np.bool_))
    row, region, code, _ = border_meetings(index, moves, np.zeros(4, np.int64), MeetingBuffers())
    found = sorted(zip(row.tolist(), region.tolist(), code.tolist(), strict=True))
    assert len({pair[:2] for pair in found}) == len(found)
    assert (np.diff(row) >= 0).all()
    return found


def crossings_of(low, high, before, after, known=None):
    """(row, box, code) found by sorted bounds; the initial buffer is too small and has to grow."""
    moves = MoveColumns(before, after, np.ones(len(before), np.bool_) if known is None else known)
    last, boxes = bound_crossings(build_bounds(low, high), moves, np.zeros(4, np.int64), CrossingBuffers(boxes=np.empty(9, np.int32)))
    codes = np.where(boxes >= 0, IN, OUT)
    return sorted(zip(rows_of(last).tolist(), np.where(boxes >= 0, boxes, ~boxes).tolist(), codes.tolist(), strict=True))


def changes_of(was, now):
    """(row, region, code) from memberships (m, regions)."""
    row, region = np.nonzero(was != now)
    return sorted((r, k, IN if now[r, k] else OUT) for r, k in zip(row.tolist(), region.tolist(), strict=True))


def boxes_hold(boxes, points):
    return np.array([[b.west <= x <= b.east and b.south <= y <= b.north for b in boxes] for x, y in points.tolist()]).reshape(len(points), len(boxes))


places = st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), min_size=1, max_size=40)
some_boxes = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=40)


@given(some_boxes, places, places)
@settings(max_examples=examples(200), deadline=None)
def test_cells_bounds_and_edges_agree_on_rectangles(corners, starts, ends):
    boxes = [Rectangle(float(x), float(y), float(x + w), float(y + h)) for x, y, w, h in corners]
    n = min(len(starts), len(ends))
    before, after = np.array(starts[:n], np.float64), np.array(ends[:n], np.float64)
    expected = changes_of(boxes_hold(boxes, before), boxes_hold(boxes, after))
    assert meetings_of(build_borders(boxes, [False] * len(boxes)), before, after) == expected
    polygons = [polygon_of(shapely.box(b.west, b.south, b.east, b.north)) for b in boxes]
    assert meetings_of(build_borders(polygons, [False] * len(boxes)), before, after) == expected
    low = np.array([[b.west, b.south] for b in boxes])
    high = np.nextafter(np.array([[b.east, b.north] for b in boxes]), np.inf)
    assert crossings_of(low, high, before, after) == expected


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 10**6))
@settings(max_examples=examples(150), deadline=None)
def test_bounds_in_any_dimension_agree_with_plain_tests(d, n, seed):
    rng = np.random.default_rng(seed)
    low, high = rng.integers(0, 6, (n, d)).astype(float), rng.integers(2, 9, (n, d)).astype(float)
    low[rng.random((n, d)) < 0.3], high[rng.random((n, d)) < 0.3] = -np.inf, np.inf
    m = 60
    before, after = rng.integers(0, 9, (m, d)).astype(float), rng.integers(0, 9, (m, d)).astype(float)
    same = rng.random((m, d)) < 0.6
    after[same] = before[same]
    known = rng.random(m) < 0.9

    def held(values):
        return ((low[None] <= values[:, None]) & (values[:, None] < high[None])).all(axis=2) & known[:, None]

    assert crossings_of(low, high, before, after, known) == changes_of(held(before), held(after))


@pytest.mark.parametrize("leaf", [2, 24, 10**9])
@pytest.mark.parametrize("spread", [1.0, 1e-7, 1e6])
def test_finer_cells_do_not_change_the_answers(leaf, spread, monkeypatch):
    """Polygons with many vertices, tiny ones in a crowd, a huge one around all: the same meetings
    at every depth of the grid."""
    monkeypatch.setattr(borders, "_LEAF_ITEMS", leaf)
    rng = np.random.default_rng(7)
    geometries = []
    crowd = [(7, rng.normal(0, 3, 2), 1.0) for _ in range(40)] + [(5, rng.normal(4, 0.01, 2), 0.02) for _ in range(60)]
    for vertices, centre, reach in [(300, (0, 0), 8.0), *crowd]:
        angle = np.sort(rng.random(vertices)) * 2 * np.pi
        ring = np.asarray(centre) + np.c_[np.cos(angle), np.sin(angle)] * reach * rng.uniform(0.5, 1, (vertices, 1))
        polygon = shapely.Polygon(ring * spread)
        if polygon.is_valid and polygon.area > 0:
            geometries.append(polygon)
    before = np.concatenate([rng.normal(0, 5, (700, 2)), rng.normal(4, 0.03, (700, 2))]) * spread
    after = before + rng.normal(0, 1, before.shape) * rng.choice([0.01, 1.0, 10.0], (len(before), 1)) * spread
    # Samples on vertices and on edges' middles, and moves along edges.
    corners = np.concatenate([polygon_of(g).edges for g in geometries])[:600]
    before[: len(corners)], after[: len(corners)] = corners[:, :2], corners[:, 2:]
    index = build_borders(shapes_of(geometries), [False] * len(geometries))
    assert leaf > 100 or len(index.grid_sizes) > 1
    shapely.prepare(geometries)
    was = np.array([shapely.intersects_xy(g, before[:, 0], before[:, 1]) for g in geometries]).T
    now = np.array([shapely.intersects_xy(g, after[:, 0], after[:, 1]) for g in geometries]).T
    expected = changes_of(was, now)
    assert len(expected) > 300
    assert meetings_of(index, before, after) == expected


def test_a_move_over_more_borders_than_the_buffer_holds_is_complete():
    """Nested squares and triangles, and a few moves over all of them: the memory for
    meetings grows in between."""
    squares = [Rectangle(-k, -k, k, k) for k in range(1, 1001)]
    triangles = [polygon_of(shapely.Polygon([(-k, -k), (k, -k), (0, k)])) for k in range(1, 501)]
    before, after = np.array([[0.0, 2000.0], [0.0, 0.0], [3000.0, 0.5]]), np.array([[0.0, 0.0], [2000.0, 1.0], [0.0, 0.0]])
    every = [(row, region, code) for row, code in ((0, IN), (1, OUT), (2, IN)) for region in range(1500)]
    assert meetings_of(build_borders([*squares, *triangles], [False] * 1500), before, after) == every


ROUND_THE_EARTH = [
    [[170, -10], [190, -10], [190, 10], [170, 10], [170, -10]],
    [[179, 60], [-179, 60], [-179, 90], [179, 90], [179, 60]],
    [[-180, 70], [-60, 72], [60, 68], [170, 70], [-180, 70]],
    [[0, -80], [120, -78], [240, -82], [350, -80], [0, -80]],
    [[175, 0], [-175, 3], [-178, 20], [178, 17], [175, 0]],
    [[-180, -90], [-90, -90], [-90, -85], [-180, -85], [-180, -90]],
    [[-180, 85], [0, 85], [0, 90], [-180, 90], [-180, 85]],
    [[100, -10], [180, -10], [180, 10], [100, 10], [100, -10]],
]


@pytest.mark.parametrize("leaf", [2, 24])
def test_a_hundred_thousand_moves_near_antimeridian_and_poles_are_exact(leaf, monkeypatch):
    """Positions on a grid of half degrees, so that many are on borders and corners; every
    structure compared with GEOS."""
    monkeypatch.setattr(borders, "_LEAF_ITEMS", leaf)
    regions = [read_region({"type": "Polygon", "coordinates": [ring]}, Crs.GEOGRAPHIC).geometry for ring in ROUND_THE_EARTH]
    rng = np.random.default_rng(11)
    m = 100_000
    x = np.where(rng.random(m) < 0.7, rng.choice([-180.0, 180.0], m) + rng.integers(-20, 20, m) / 2, rng.integers(-360, 361, m) / 2)
    y = np.where(rng.random(m) < 0.5, rng.choice([-90.0, 90.0], m) + rng.integers(-40, 40, m) / 2, rng.integers(-40, 41, m) / 2)
    places = np.clip(np.stack([x, y], axis=1), (-180, -90), (180, 90))
    before, after = places, np.roll(places, 1, axis=0)
    held = np.array([shapely.intersects_xy(region, places[:, 0], places[:, 1]) for region in regions]).T
    expected = changes_of(held, np.roll(held, 1, axis=0))
    assert len(expected) > m // 2
    assert meetings_of(build_borders([polygon_of(region) for region in regions], [False] * len(regions)), before, after) == expected
    assert meetings_of(build_borders(shapes_of(regions), [False] * len(regions)), before, after) == expected
    boxes = [i for i, shape in enumerate(shapes_of(regions)) if isinstance(shape, Rectangle)]
    low, high = np.array([regions[i].bounds[:2] for i in boxes]), np.array([regions[i].bounds[2:] for i in boxes])
    found = [(row, boxes[box], code) for row, box, code in crossings_of(low, np.nextafter(high, np.inf), before, after)]
    assert found == [meeting for meeting in expected if meeting[1] in boxes]
    assert len(boxes) >= 3


def test_index_memory_grows_with_borders_not_with_area():
    rng = np.random.default_rng(0)
    corners = rng.random((5000, 2)) * 15_000
    small = [Rectangle(x, y, x + 500, y + 500) for x, y in corners.tolist()]
    assert build_borders(small, [False] * 5000).nbytes / 5000 < 160
    low = np.array([[b.west, b.south] for b in small])
    assert build_bounds(low, low + 5000).nbytes / 5000 < 160
    huge = [Polygon(polygon_of(shapely.box(0, 0, 1e6, 1e6)).edges), *small]
    assert build_borders(huge, [False] * 5001).nbytes / 5001 < 400


def test_a_geodesic_circle_is_indexed_only_in_cells_on_its_border():
    boxes = [Rectangle(4 + i / 50, 49.5, 4.01 + i / 50, 49.51) for i in range(100)]
    index = build_borders([Circle(5.0, 50.0, 20_000.0, True), *boxes], [False] * 101)
    rng = np.random.default_rng(3)
    before, after = rng.normal((5, 50), 0.3, (3000, 2)), rng.normal((5, 50), 0.3, (3000, 2))
    work = np.zeros(4, np.int64)
    border_meetings(index, MoveColumns(before, after, np.ones(3000, np.bool_)), work, MeetingBuffers())
    assert work[1] > 0
    assert len(index.cell_items) < 2000
