"""Which regions contain each sample: a uniform grid over all regions ([CMP] 4); in cells wholly
inside a region its border is not tested.

In cells that a border crosses ("gray" in [CMP] 5.2) the test is exact: small polygons and circles
of the plane in the kernel, all others by `Region.contains` in bulk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import shapely
from numba import njit

from engine.index.exact import in_circle, in_polygon
from engine.model.region import CircleRegion, PolygonRegion, Region

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

_CELLS = 128
"""Cells of a side; measured at 5 to 500 regions: with 64 more borders are tested, with 256 the
arrays exceed the caches."""
_SIZES = (_CELLS, 32, 8, 2, 1)
"""Sides of blocks in cells: a block is divided into the next smaller ones
only if a border crosses it."""
_FEW_EDGES = 64
_WHOLE, _POLYGON, _CIRCLE, _BULK = range(4)
_BLOCK = 2048
"""Samples of a block, which fits into the first-level cache."""


class SampleRegions(NamedTuple):
    """Sample `rows[at[i]]` is in `region[i]`, `at` ascending; `rows`: samples
    near some region, ascending."""

    region: Int32s
    at: Int32s
    rows: Int32s


class RegionSamples(NamedTuple):
    """Region r contains the samples `rows[at[first[r]:first[r + 1]]]`, ascending; `rows`: all
    samples near some region, ascending."""

    first: Ints
    at: Int32s
    rows: Int32s


class _Grid(NamedTuple):
    """The arrays of a `RegionGrid` for the kernels."""

    first: Ints
    region: Ints
    way: npt.NDArray[np.int8]
    edge_first: Ints
    edges: Floats
    circles: Floats
    boxes: Floats


class _Block(NamedTuple):
    """The samples of a block that are near some region: index i, cell `cells[i]`, for i in
    `near[:hit]`; `kept`: their number in earlier blocks."""

    x: Floats
    y: Floats
    cells: Int32s
    near: Int32s
    hit: int
    kept: int


@dataclass(frozen=True)
class RegionGrid:
    """Cell c lists the regions `region[first[c]]` to `region[first[c + 1]]` that intersect it, and
    the test of each (`way`).

    `edges[edge_first[r]:edge_first[r + 1]]` are rows ax, ay, bx, by of small polygons, `circles`
    rows x, y, radius, `boxes` rows west, south, east, north. The cell after the last has no regions
    and represents all points outside the grid.
    """

    regions: tuple[Region, ...]
    corner: tuple[float, float]
    scale: tuple[float, float]
    first: Ints
    region: Ints
    way: npt.NDArray[np.int8]
    edge_first: Ints
    edges: Floats
    circles: Floats
    boxes: Floats
    boxes_only: bool

    @classmethod
    def of(cls, regions: Sequence[Region]) -> RegionGrid:
        boxes = np.array([region.bounds for region in regions], np.float64).reshape(-1, 4)
        corner = (float(boxes[:, 0].min()), float(boxes[:, 1].min()))
        sides = np.maximum(boxes[:, 2:].max(axis=0) - corner, 1e-300)
        scale = (float(_CELLS / sides[0]), float(_CELLS / sides[1]))
        cells, owners, ways = [], [], []
        for r, region in enumerate(regions):
            region_cells, way = _cells_of(region, boxes[r], corner, sides / _CELLS)
            cells.append(region_cells)
            owners.append(np.full(len(region_cells), r, np.int64))
            ways.append(way)
        cell = np.concatenate(cells)
        order = np.argsort(cell, kind="stable")
        edges = [_edges_of(region) for region in regions]
        return cls(
            regions=tuple(regions),
            corner=corner,
            scale=scale,
            first=np.searchsorted(cell[order], np.arange(_CELLS * _CELLS + 2)),
            region=np.concatenate(owners)[order],
            way=np.concatenate(ways)[order].astype(np.int8),
            edge_first=np.cumsum([0, *(len(one) for one in edges)]),
            edges=np.concatenate(edges),
            circles=np.array([_circle_of(region) for region in regions], np.float64).reshape(-1, 3),
            boxes=boxes,
            boxes_only=all_boxes(regions),
        )

    def pairs(self, x: Floats, y: Floats) -> SampleRegions:
        """The regions that contain each sample; NaN is in none."""
        grid = _Grid(self.first, self.region, self.way, self.edge_first, self.edges, self.circles, self.boxes)
        region, at, undecided, rows = _pairs(x, y, (*self.corner, *self.scale), grid, self.boxes_only)
        if len(undecided):
            keep = np.ones(len(region), np.bool_)
            for r in np.unique(region[undecided]):
                pairs = undecided[region[undecided] == r]
                row = rows[at[pairs]]
                keep[pairs] = self.regions[r].contains(x[row], y[row])
            region, at = region[keep], at[keep]
        return SampleRegions(region, at, rows)

    def inside(self, x: Floats, y: Floats) -> RegionSamples:
        """The samples in each region; NaN is in none."""
        region, at, rows = self.pairs(x, y)
        first, ordered = _by_region(region, at, len(self.regions))
        return RegionSamples(first, ordered, rows)


def _cells_of(region: Region, box: Floats, corner: tuple[float, float], side: Floats) -> tuple[Ints, npt.NDArray[np.int8]]:
    """The cells that intersect the region, and the test in each. Cells are taken slightly larger,
    as a sample on an edge may be rounded into either."""
    low = np.clip(np.floor((box[:2] - corner) / side - 1e-6), 0, _CELLS - 1).astype(np.int64)
    high = np.clip(np.floor((box[2:] - corner) / side + 1e-6), 0, _CELLS - 1).astype(np.int64)
    columns = rows = np.zeros(1, np.int64)
    if isinstance(region, CircleRegion):
        columns, rows = _split(columns, rows, _CELLS, 1, low, high)
        return rows * _CELLS + columns, np.full(len(rows), _BULK if region.geodesic else _CIRCLE, np.int8)
    assert isinstance(region, PolygonRegion)
    shapely.prepare(region.geometry)
    cells, ways = [], []
    for larger, size in pairwise(_SIZES):
        columns, rows = _split(columns, rows, larger, size, low, high)
        west, south = corner[0] + (columns - 1e-6) * side[0], corner[1] + (rows - 1e-6) * side[1]
        east, north = corner[0] + (columns + size + 1e-6) * side[0], corner[1] + (rows + size + 1e-6) * side[1]
        squares = shapely.box(west, south, east, north)
        whole = shapely.contains_properly(region.geometry, squares)
        own_columns, own_rows = _split(columns[whole], rows[whole], size, 1, low, high)
        cells.append(own_rows * _CELLS + own_columns)
        ways.append(np.full(len(own_rows), _WHOLE, np.int8))
        gray = shapely.intersects(region.geometry, squares) & ~whole
        columns, rows = columns[gray], rows[gray]
    cells.append(rows * _CELLS + columns)
    ways.append(np.full(len(rows), _POLYGON if len(_edges_of(region)) else _BULK, np.int8))
    return np.concatenate(cells), np.concatenate(ways)


def _split(columns: Ints, rows: Ints, larger: int, size: int, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Divides blocks of `larger` cells a side into blocks of `size`: those with a cell from `low`
    to `high`; a block is named by its first cell."""
    parts = np.arange(0, larger, size)
    split_columns = np.broadcast_to(columns[:, None, None] + parts, (len(columns), len(parts), len(parts))).reshape(-1)
    split_rows = np.broadcast_to(rows[:, None, None] + parts[:, None], (len(rows), len(parts), len(parts))).reshape(-1)
    near = (split_columns + size > low[0]) & (split_columns <= high[0]) & (split_rows + size > low[1]) & (split_rows <= high[1])
    return split_columns[near], split_rows[near]


def _edges_of(region: Region) -> Floats:
    """The edges of a small polygon; empty for other regions."""
    if not isinstance(region, PolygonRegion) or shapely.get_num_coordinates(region.geometry) > _FEW_EDGES:
        return np.empty((0, 4))
    rings = [shapely.get_coordinates(ring) for ring in shapely.get_rings(shapely.get_parts(region.geometry))]
    return np.concatenate([np.hstack([ring[:-1], ring[1:]]) for ring in rings])


def all_boxes(regions: Sequence[Region]) -> bool:
    """Whether all regions are axis-parallel rectangles."""
    return all(isinstance(region, PolygonRegion) and _is_box(region) for region in regions)


def _is_box(region: PolygonRegion) -> bool:
    """Whether the polygon is an axis-parallel rectangle, equal to its bounds."""
    ring = shapely.get_coordinates(region.geometry)
    west, south, east, north = region.bounds
    corners = {(west, south), (east, south), (east, north), (west, north)}
    along = (ring[1:] == ring[:-1]).any(axis=1)
    return len(ring) == 5 and {(x, y) for x, y in ring.tolist()} == corners and bool(along.all())


def _circle_of(region: Region) -> tuple[float, float, float]:
    return (region.x, region.y, region.radius) if isinstance(region, CircleRegion) else (np.nan, np.nan, np.nan)


@njit(cache=True, nogil=True)
def _cells(x, y, west, south, across, up, cells):  # type: ignore[no-untyped-def]
    """Writes the cell of each sample; without branches, so that the loop is vectorized."""
    outside = np.int32(_CELLS * _CELLS)
    most = np.float64(_CELLS - 1)
    for i in range(len(x)):
        u = (x[i] - west) * across
        v = (y[i] - south) * up
        inside = (u >= -1e-6) & (u <= _CELLS + 1e-6) & (v >= -1e-6) & (v <= _CELLS + 1e-6)
        column = np.int32(min(max(u, 0.0), most) if inside else 0.0)
        row = np.int32(min(max(v, 0.0), most) if inside else 0.0)
        cells[i] = row * np.int32(_CELLS) + column if inside else outside


@njit(cache=True, nogil=True)
def _near(cells, size, first, near):  # type: ignore[no-untyped-def]
    """Writes the indexes of those of the `size` cells that list a region to `near`. Returns (their
    number, number of pairs they list)."""
    hit, pairs = 0, 0
    for i in range(size):
        listed = first[np.uint32(cells[i]) + 1] - first[np.uint32(cells[i])]
        near[hit] = i
        hit += listed > 0
        pairs += listed
    return hit, pairs


@njit(cache=True, nogil=True)
def _pairs(x, y, frame, grid, boxes_only):  # type: ignore[no-untyped-def]
    """(regions, `at`, numbers of pairs that `contains` must decide, `rows`): sample
    `rows[at[i]]` is in `region[i]`.

    Arrays grow as needed, because fresh memory costs more than copying. They grow only between two
    blocks, because a loop in which arrays are replaced counts their references in each iteration.
    """
    west, south, across, up = frame
    region, at = np.empty(2 * _BLOCK, np.int32), np.empty(2 * _BLOCK, np.int32)
    undecided, rows = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int32)
    cells, near = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.int32)
    n, n_undecided, kept = 0, 0, 0
    for start in range(0, len(x), _BLOCK):
        size = min(_BLOCK, len(x) - start)
        px, py = x[start : start + size], y[start : start + size]
        _cells(px, py, west, south, across, up, cells)
        hit, listed = _near(cells, size, grid.first, near)
        block = _Block(px, py, cells, near, hit, kept)
        if kept + hit > len(rows):
            rows = np.append(rows, np.empty_like(rows))
        if n + listed + 1 > len(region):
            more = np.empty(n + listed + 1, np.int32)
            region, at = np.append(region, more), np.append(at, more)
        if n_undecided + listed > len(undecided):
            undecided = np.append(undecided, np.empty(n_undecided + listed, np.int64))
        if boxes_only:
            n = _decide_boxes(block, grid, region, at, n)
        else:
            n, n_undecided = _decide(block, grid, region, at, n, undecided, n_undecided)
        for k in range(hit):
            rows[kept + k] = start + near[k]
        kept += hit
    return region[:n], at[:n], undecided[:n_undecided], rows[:kept]


@njit(cache=True, nogil=True)
def _decide_boxes(block, grid, pair_region, at, n):  # type: ignore[no-untyped-def]
    """Like `_decide` if all regions are boxes: without a branch, because it would be unpredictable.
    Returns the number of pairs."""
    x, y, cells, near, hit, kept = block
    first, region, way, _, _, _, boxes = grid
    for k in range(hit):
        i = np.uint32(near[k])
        cell = np.uint32(cells[i])
        px, py = x[i], y[i]
        for j in range(np.uint64(first[cell]), np.uint64(first[cell + np.uint32(1)])):
            r = np.uint32(region[j])
            pair_region[n] = r
            at[n] = kept + k
            n += (way[j] == _WHOLE) | ((boxes[r, 0] <= px) & (px <= boxes[r, 2]) & (boxes[r, 1] <= py) & (py <= boxes[r, 3]))
    return n


@njit(cache=True, nogil=True)
def _decide(block, grid, pair_region, at, n, undecided, n_undecided):  # type: ignore[no-untyped-def]
    """Appends the pairs of a block's samples to the arrays of `_pairs`, `at` from `kept` on.
    Returns (number of pairs, number of undecided ones)."""
    x, y, cells, near, hit, kept = block
    first, region, way, edge_first, edges, circles, _ = grid
    for k in range(hit):
        i = np.uint32(near[k])
        cell = np.uint32(cells[i])
        for j in range(np.uint64(first[cell]), np.uint64(first[cell + np.uint32(1)])):
            r = np.uint32(region[j])
            pair_region[n] = r
            at[n] = kept + k
            if way[j] == _WHOLE:
                n += 1
            elif way[j] == _POLYGON:
                n += in_polygon(edges, edge_first[r], edge_first[r + np.uint32(1)], x[i], y[i])
            elif way[j] == _CIRCLE:
                n += in_circle(circles[r, 0], circles[r, 1], circles[r, 2], x[i], y[i])
            else:
                undecided[n_undecided] = n
                n_undecided += 1
                n += 1
    return n, n_undecided


@njit(cache=True, nogil=True)
def _by_region(region, at, regions):  # type: ignore[no-untyped-def]
    """(first, `at` by region, otherwise in order)."""
    first = np.zeros(regions + 1, np.int64)
    for r in region:
        first[np.uint32(r) + 1] += 1
    for r in range(regions):
        first[r + 1] += first[r]
    slot = first.copy()
    ordered = np.empty(len(at), np.int32)
    for i in range(len(region)):
        r = np.uint32(region[i])
        ordered[np.uint64(slot[r])] = at[i]
        slot[r] += 1
    return first, ordered
