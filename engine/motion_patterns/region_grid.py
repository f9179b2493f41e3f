"""Which regions hold each sample: a uniform grid over all regions ([CMP] 4), cells wholly inside a region decided without looking at its border.

Cells that a border passes ("gray" in [CMP] 5.2) are decided exactly: small polygons and circles of the plane in the kernel, all others by
`Region.contains` in bulk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from numba import njit

from engine.index.exact import in_circle, in_polygon
from engine.model.region import CircleRegion, PolygonRegion, Region

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CELLS = 128
"""Cells of a side; measured at 5 to 500 regions: 64 tests more borders, 256 misses the caches."""
_FEW_EDGES = 64
_WHOLE, _POLYGON, _CIRCLE, _BULK = range(4)


@dataclass(frozen=True)
class RegionGrid:
    """Cell c lists the regions `region[first[c]]` to `region[first[c + 1]]` that meet it and how each is decided there (`way`).

    `edges[edge_first[r]:edge_first[r + 1]]` are rows ax, ay, bx, by of small polygons, `circles` rows x, y, radius.
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

    @classmethod
    def of(cls, regions: Sequence[Region]) -> RegionGrid:
        boxes = np.array([region.bounds for region in regions], np.float64).reshape(-1, 4)
        corner = (float(boxes[:, 0].min()), float(boxes[:, 1].min()))
        sides = np.maximum(boxes[:, 2:].max(axis=0) - corner, 1e-300)
        scale = (float(_CELLS / sides[0]), float(_CELLS / sides[1]))
        cells, owners, ways = [], [], []
        for r, region in enumerate(regions):
            own, way = _cells_of(region, boxes[r], corner, sides / _CELLS)
            cells.append(own)
            owners.append(np.full(len(own), r, np.int64))
            ways.append(way)
        cell = np.concatenate(cells)
        order = np.argsort(cell, kind="stable")
        edges = [_edges_of(region) for region in regions]
        return cls(
            regions=tuple(regions),
            corner=corner,
            scale=scale,
            first=np.searchsorted(cell[order], np.arange(_CELLS * _CELLS + 1)),
            region=np.concatenate(owners)[order],
            way=np.concatenate(ways)[order].astype(np.int8),
            edge_first=np.cumsum([0, *(len(one) for one in edges)]),
            edges=np.concatenate(edges),
            circles=np.array([_circle_of(region) for region in regions], np.float64).reshape(-1, 3),
        )

    def inside(self, x: Floats, y: Floats) -> tuple[Ints, Ints]:
        """(first, rows): region r holds the samples `rows[first[r]:first[r + 1]]`, ascending."""
        region, row, undecided = _pairs(x, y, *self.corner, *self.scale, self.first, self.region, self.way, self.edge_first, self.edges, self.circles)
        if undecided.any():
            keep = ~undecided
            for r in np.unique(region[undecided]):
                asked = np.flatnonzero(undecided & (region == r))
                keep[asked] = self.regions[r].contains(x[row[asked]], y[row[asked]])
            region, row = region[keep], row[keep]
        first, rows = _by_region(region, row, len(self.regions))
        return first, rows


def _cells_of(region: Region, box: Floats, corner: tuple[float, float], side: Floats) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Cells that meet the region, and the way to decide there. Cells count as a little larger: a sample on their edge may be rounded into either."""
    low = np.clip(np.floor((box[:2] - corner) / side - 1e-6), 0, _CELLS - 1).astype(np.int64)
    high = np.clip(np.floor((box[2:] - corner) / side + 1e-6), 0, _CELLS - 1).astype(np.int64)
    columns, rows = (part.reshape(-1) for part in np.meshgrid(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1)))
    cells = rows * _CELLS + columns
    if isinstance(region, CircleRegion):
        return cells, np.full(len(cells), _BULK if region.geodesic else _CIRCLE, np.int8)
    assert isinstance(region, PolygonRegion)
    squares = shapely.box(
        corner[0] + (columns - 1e-6) * side[0],
        corner[1] + (rows - 1e-6) * side[1],
        corner[0] + (columns + 1 + 1e-6) * side[0],
        corner[1] + (rows + 1 + 1e-6) * side[1],
    )
    shapely.prepare(region.geometry)
    meets = shapely.intersects(region.geometry, squares)
    way = np.full(len(cells), _POLYGON if len(_edges_of(region)) else _BULK, np.int8)
    way[shapely.contains_properly(region.geometry, squares)] = _WHOLE
    return cells[meets], way[meets]


def _edges_of(region: Region) -> Floats:
    """Edges of a small polygon; none of others."""
    if not isinstance(region, PolygonRegion) or shapely.get_num_coordinates(region.geometry) > _FEW_EDGES:
        return np.empty((0, 4))
    rings = [shapely.get_coordinates(ring) for ring in shapely.get_rings(shapely.get_parts(region.geometry))]
    return np.concatenate([np.hstack([ring[:-1], ring[1:]]) for ring in rings])


def _circle_of(region: Region) -> tuple[float, float, float]:
    return (region.x, region.y, region.radius) if isinstance(region, CircleRegion) else (np.nan, np.nan, np.nan)


@njit(cache=True, nogil=True)
def _pairs(x, y, west, south, across, up, first, region, way, edge_first, edges, circles):  # type: ignore[no-untyped-def]
    """(region, row, undecided) of the samples that lie in regions, in order of the rows; undecided: whether `contains` must be asked."""
    found = np.empty(len(x) + 16, np.int64)
    rows = np.empty(len(x) + 16, np.int64)
    undecided = np.zeros(len(x) + 16, np.bool_)
    n = 0
    for i in range(len(x)):
        u = (x[i] - west) * across
        v = (y[i] - south) * up
        if not (-1e-6 <= u <= _CELLS + 1e-6 and -1e-6 <= v <= _CELLS + 1e-6):
            continue
        cell = min(max(int(v), 0), _CELLS - 1) * _CELLS + min(max(int(u), 0), _CELLS - 1)
        if n + first[cell + 1] - first[cell] > len(found):
            room = 2 * (n + first[cell + 1] - first[cell])
            more, more_rows, more_undecided = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room, np.bool_)
            more[:n], more_rows[:n], more_undecided[:n] = found[:n], rows[:n], undecided[:n]
            found, rows, undecided = more, more_rows, more_undecided
        for j in range(first[cell], first[cell + 1]):
            r = region[j]
            if way[j] == _POLYGON:
                holds = in_polygon(edges, edge_first[r], edge_first[r + 1], x[i], y[i])
            elif way[j] == _CIRCLE:
                holds = in_circle(circles[r, 0], circles[r, 1], circles[r, 2], x[i], y[i])
            else:
                holds = True
            if holds:
                found[n] = r
                rows[n] = i
                undecided[n] = way[j] == _BULK
                n += 1
    return found[:n], rows[:n], undecided[:n]


@njit(cache=True, nogil=True)
def _by_region(region, row, regions):  # type: ignore[no-untyped-def]
    first = np.zeros(regions + 1, np.int64)
    for r in region:
        first[r + 1] += 1
    for r in range(regions):
        first[r + 1] += first[r]
    place = first.copy()
    rows = np.empty(len(row), np.int64)
    for i in range(len(region)):
        rows[place[region[i]]] = row[i]
        place[region[i]] += 1
    return first, rows
