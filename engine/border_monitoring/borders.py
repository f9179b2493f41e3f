"""The borders of regions in nested uniform grids, whose cells list the
borders that pass through them.

A region can change its answer between two samples only if the straight move between them meets its
border, so a move walks the cells it touches and looks at the borders listed there; everything else
is untouched, for any number of regions.

A **border item** is one edge of a polygon, one rectangle, or one circle. A cell with many items
holds its own finer grid, so cells adapt to polygons of many vertices and to crowded places,
and memory follows the length of the borders, not the area.

Correctness of the walk: a meeting point P of a move and an item lies in exactly one cell of each
grid (indices are monotone functions of the coordinates, clamped). Both the filling and the walk
take all cells touched by the item or move widened by `pad`, which exceeds the rounding of the
interval arithmetic; hence both take the cell of P.

References: [BMQ] 4.1 (region segments) carried to the plane; research notes, border
grid with crossing parity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.border_monitoring.shapes import Circle, Polygon, Rectangle, Shape
from engine.index.geodesic import chord_limits, circle_bounds, earth_centred

EDGE, RECTANGLE, CIRCLE, GEODESIC_CIRCLE = 0, 1, 2, 3

_LEAF_ITEMS = 24  # A cell with more items is tried as a finer grid.
_SPREAD = 3.0
"""A finer grid pays when its cells list its items at most this often on average: borders that
cross many cells gain nothing."""
_LISTED = 26
"""Cells that list an item, on average, at most. Beyond it larger cells save memory and cost a
seventh of the time (research notes)."""
_DEEPEST = 5
_PAD = 1e-12  # of the magnitude of the coordinates; a cell is never smaller than 1e-9 of it

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


class Borders(NamedTuple):
    """Immutable index of the borders of all regions of one tuple class.

    Shapes: n items, g grids, c cells. `coordinates[i]` is (ax, ay, bx, by) of an edge with the
    region on its left, (west, south, -east, -north) of a rectangle, (centre x, centre y, radius,
    row in `circles`) of a circle. Items of one region are contiguous: region r (position given by
    the caller) owns items `region_items[r]` to `region_items[r + 1]`. `grid_boxes[g]` is (x0, y0,
    cell width, cell height, and their inverses); `grid_sizes[g]` is (columns, rows, first cell, how
    many cells descend). Cell k lists `cell_items[cell_first[k]:cell_first[k + 1]]`, a rectangle i
    as ~i; or it descends into grid `cell_grid[k]` when that is not -1, and lists nothing. So the
    lists of consecutive cells of a row are contiguous.
    """

    kinds: npt.NDArray[np.int8]
    coordinates: Floats
    regions: Ints
    region_items: Ints
    circles: Floats
    passes_wanted: npt.NDArray[np.bool_]
    grid_boxes: Floats
    grid_sizes: npt.NDArray[np.int64]
    cell_first: Ints
    cell_items: Ints
    cell_grid: Ints
    pad: float

    @property
    def nbytes(self) -> int:
        arrays = (value for value in self if isinstance(value, np.ndarray))
        return sum(array.nbytes for array in arrays)


@njit(cache=True, nogil=True, inline="always")
def place(value, origin, density, count):  # type: ignore[no-untyped-def]
    """Clamped cell number of a coordinate along one axis; `density` is
    cells for each unit of length."""
    position = (value - origin) * density
    if not position > 0.0:
        return 0
    if position >= count:
        return count - 1
    return int(position)


@njit(cache=True, nogil=True, inline="always")
def row_span(segment, box, columns, row, pad):  # type: ignore[no-untyped-def]
    """(first, last) column of the cells of `row` that the segment (ax, ay, bx, by) may
    touch; last < first when none.

    `box` is the grid's row of `Borders.grid_boxes`, as a tuple.
    """
    ax, ay, bx, by = segment
    x0, y0, width, height, density, _ = box
    low = y0 + row * height - pad
    high = y0 + (row + 1) * height + pad
    dy = by - ay
    west = min(ax, bx)
    east = max(ax, bx)
    if dy != 0.0:
        s0 = min(max((low - ay) / dy, 0.0), 1.0)
        s1 = min(max((high - ay) / dy, 0.0), 1.0)
        xa = ax + s0 * (bx - ax)
        xb = ax + s1 * (bx - ax)
        west = max(west, min(xa, xb) - pad)
        east = min(east, max(xa, xb) + pad)
    if east < x0 - pad or west > x0 + columns * width + pad:
        return 0, -1
    return place(west - pad, x0, density, columns), place(east + pad, x0, density, columns)


@njit(cache=True, nogil=True)
def _circle_touches(row, circles, geodesic, west, south, east, north):  # type: ignore[no-untyped-def]
    """Whether the border of a circle may pass through a box. May have false
    positives, never false negatives."""
    if geodesic:
        # Every point of the box is within `reach` of its middle: the box is at most this wide on
        # the widest parallel it holds.
        lat = 0.0 if south < 0.0 < north else min(abs(south), abs(north))
        reach = 0.5 * (111.4e3 * (east - west) * np.cos(np.radians(lat)) + 111.8e3 * (north - south)) + 1.0
        x, y, z = earth_centred(0.5 * (west + east), min(max(0.5 * (south + north), -90.0), 90.0))
        chord = np.sqrt((x - circles[row, 3]) ** 2 + (y - circles[row, 4]) ** 2 + (z - circles[row, 5]) ** 2)
        near = max(chord - reach, 0.0)
        far = chord + reach
        return near * near <= circles[row, 7] and far * far >= circles[row, 6]
    cx, cy, radius = circles[row, 0], circles[row, 1], circles[row, 2]
    dx = max(west - cx, cx - east, 0.0)
    dy = max(south - cy, cy - north, 0.0)
    if dx * dx + dy * dy > radius * radius * (1.0 + 1e-12):
        return False
    fx = max(abs(west - cx), abs(east - cx))
    fy = max(abs(south - cy), abs(north - cy))
    return fx * fx + fy * fy >= radius * radius * (1.0 - 1e-12)


@njit(cache=True, nogil=True)
def _touched_cells(items, kinds, coordinates, circles, bounds, box, columns, rows, pad):  # type: ignore[no-untyped-def]
    """(cells, items): every pair of a cell of the grid and an item whose border may touch it,
    items in the given order."""
    frame = box[0], box[1], box[2], box[3], box[4], box[5]
    x0, y0, width, height, across, upwards = frame
    cells = np.empty(len(items) * 2 + 16, np.int32)
    found = np.empty(len(items) * 2 + 16, np.int32)
    n = 0
    for item in items:
        kind = kinds[item]
        west, south, east, north = bounds[item, 0], bounds[item, 1], bounds[item, 2], bounds[item, 3]
        if east < x0 - pad or west > x0 + columns * width + pad or north < y0 - pad or south > y0 + rows * height + pad:
            continue
        left, right = place(west - pad, x0, across, columns), place(east + pad, x0, across, columns)
        for row in range(place(south - pad, y0, upwards, rows), place(north + pad, y0, upwards, rows) + 1):
            first, last = left, right
            if kind == EDGE:
                edge = coordinates[item, 0], coordinates[item, 1], coordinates[item, 2], coordinates[item, 3]
                first, last = row_span(edge, frame, columns, row, pad)
            cell_south, cell_north = y0 + row * height - pad, y0 + (row + 1) * height + pad
            for column in range(first, last + 1):
                cell_west, cell_east = x0 + column * width - pad, x0 + (column + 1) * width + pad
                if kind == RECTANGLE:
                    if west < cell_west and cell_east < east and south < cell_south and cell_north < north:
                        continue
                elif kind != EDGE and not _circle_touches(
                    int(coordinates[item, 3]), circles, kind == GEODESIC_CIRCLE, cell_west, cell_south, cell_east, cell_north
                ):
                    continue
                if n == len(cells):
                    cells = np.concatenate((cells, np.empty(n, np.int32)))
                    found = np.concatenate((found, np.empty(n, np.int32)))
                cells[n] = row * columns + column
                found[n] = item
                n += 1
    return cells[:n], found[:n]


class _Filler:
    """Builds the nested grids of one set of items."""

    def __init__(self, kinds: npt.NDArray[np.int8], coordinates: Floats, circles: Floats, bounds: Floats, pad: float) -> None:
        self.kinds, self.coordinates, self.circles, self.bounds, self.pad = kinds, coordinates, circles, bounds, pad
        self.boxes: list[tuple[float, ...]] = []
        self.sizes: list[tuple[int, int, int, int]] = []
        self.counts: list[npt.NDArray[np.int64]] = []
        self.items: list[Ints] = []
        self.grids: list[Ints] = []
        self.cells = 0

    def fill(self, items: Ints, box: tuple[float, float, float, float], depth: int) -> int:
        """Add a grid over `box` (west, south, east, north) for `items` and finer ones where they
        pay; its number, -1 if it does not pay."""
        columns, rows = self._size(items, box, depth)
        frame, cells, found = self._list_cells(items, box, columns, rows)
        if depth == 0 and len(found) > _LISTED * len(items):
            part = _LISTED * len(items) / len(found)
            columns, rows = max(1, int(columns * part)), max(1, int(rows * part))
            frame, cells, found = self._list_cells(items, box, columns, rows)
        width, height = frame[2:4]
        if depth > 0 and len(found) > _SPREAD * len(items):
            return -1
        order = np.argsort(cells, kind="stable")
        cells, found = cells[order], found[order]
        counts = np.bincount(cells, minlength=columns * rows)
        grid, base = len(self.boxes), self.cells
        self.boxes.append(frame)
        self.sizes.append((columns, rows, base, 0))
        self.cells += columns * rows
        children = np.full(columns * rows, -1, np.int32)
        for kept in (self.counts, self.items, self.grids):
            kept.append(np.empty(0, np.int32))
        if depth < _DEEPEST and min(width, height) > 1e3 * self.pad:
            ends = np.cumsum(counts)
            for cell in np.flatnonzero(counts > _LEAF_ITEMS).tolist():
                row, column = divmod(cell, columns)
                west, south = box[0] + column * width, box[1] + row * height
                inside = found[ends[cell] - counts[cell] : ends[cell]]
                children[cell] = self.fill(inside, (west, south, west + width, south + height), depth + 1)
        descends = children >= 0
        self.sizes[grid] = (columns, rows, base, int(descends.sum()))
        self.counts[grid], self.items[grid], self.grids[grid] = np.where(descends, 0, counts), found[~descends[cells]], children
        return grid

    def _list_cells(self, items: Ints, box: tuple[float, float, float, float], columns: int, rows: int) -> tuple[tuple[float, ...], Ints, Ints]:
        """(frame, cells, items) of a grid over the box."""
        width, height = (box[2] - box[0]) / columns, (box[3] - box[1]) / rows
        frame = (box[0], box[1], width, height, 1.0 / width, 1.0 / height)
        return frame, *_touched_cells(items, self.kinds, self.coordinates, self.circles, self.bounds, np.array(frame), columns, rows, self.pad)

    def _size(self, items: Ints, box: tuple[float, float, float, float], depth: int) -> tuple[int, int]:
        """Columns and rows: about as many cells as items, square ones, so that a
        mean item touches few cells."""
        limit = 1024 if depth == 0 else 32
        wanted = max(1.0, float(np.sqrt(len(items)))) * (1.5 if depth == 0 else 1.0)
        width, height = box[2] - box[0], box[3] - box[1]
        shape = np.sqrt(width / height)
        return int(min(max(wanted * shape, 1), limit)), int(min(max(wanted / shape, 1), limit))


def build_borders(shapes: Sequence[Shape], passes_wanted: Sequence[bool]) -> Borders:
    """Index over the borders of `shapes`; `passes_wanted[r]`: report moves that touch region r
    between two outside samples.

    A rectangle whose passes are wanted must be given as a Polygon.
    """
    lengths = np.array([len(shape.edges) if isinstance(shape, Polygon) else 1 for shape in shapes], np.int64)
    region_items = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    n = int(region_items[-1])
    kinds = np.zeros(n, np.int8)
    coordinates, bounds = np.zeros((n, 4)), np.zeros((n, 4))
    circles: list[tuple[float, ...]] = []
    for shape, first, last in zip(shapes, region_items[:-1].tolist(), region_items[1:].tolist(), strict=True):
        if isinstance(shape, Polygon):
            coordinates[first:last] = shape.edges
            bounds[first:last, :2] = np.minimum(shape.edges[:, :2], shape.edges[:, 2:])
            bounds[first:last, 2:] = np.maximum(shape.edges[:, :2], shape.edges[:, 2:])
        elif isinstance(shape, Rectangle):
            kinds[first] = RECTANGLE
            coordinates[first] = (shape.west, shape.south, -shape.east, -shape.north)
            bounds[first] = (shape.west, shape.south, shape.east, shape.north)
        else:
            kinds[first] = GEODESIC_CIRCLE if shape.geodesic else CIRCLE
            coordinates[first] = (shape.x, shape.y, shape.radius, len(circles))
            bounds[first], row = _circle_row(shape)
            circles.append(row)
    circle_rows = np.array(circles, np.float64).reshape(-1, 8)
    box, pad = _frame(bounds)
    filler = _Filler(kinds, coordinates, circle_rows, bounds, pad)
    filler.fill(np.arange(n, dtype=np.int32), box, 0)
    listed = np.concatenate(filler.items).astype(np.int32)
    return Borders(
        kinds=kinds,
        coordinates=coordinates,
        regions=np.repeat(np.arange(len(shapes), dtype=np.int32), lengths),
        region_items=region_items,
        circles=circle_rows,
        passes_wanted=np.asarray(passes_wanted, np.bool_),
        grid_boxes=np.array(filler.boxes),
        grid_sizes=np.array(filler.sizes, np.int64),
        cell_first=np.concatenate([[0], np.cumsum(np.concatenate(filler.counts))]).astype(np.int32),
        cell_items=np.where(kinds[listed] == RECTANGLE, ~listed, listed),
        cell_grid=np.concatenate(filler.grids),
        pad=pad,
    )


def _circle_row(circle: Circle) -> tuple[tuple[float, float, float, float], tuple[float, ...]]:
    """Bounding box of a circle and its row in `Borders.circles`: x, y, radius, earth-centred
    middle, squared chord limits."""
    if circle.geodesic:
        near, far = chord_limits(circle.radius)
        row = (circle.x, circle.y, circle.radius, *earth_centred(circle.x, circle.y), near, far)
        return circle_bounds(circle.x, circle.y, circle.radius), row
    r = circle.radius * (1.0 + 1e-12)
    return (circle.x - r, circle.y - r, circle.x + r, circle.y + r), (circle.x, circle.y, circle.radius, 0.0, 0.0, 0.0, 0.0, 0.0)


def _frame(bounds: Floats) -> tuple[tuple[float, float, float, float], float]:
    """Box around all items, never flat, and the pad that covers the
    rounding of coordinates in it."""
    west, south = bounds[:, 0].min(), bounds[:, 1].min()
    east, north = bounds[:, 2].max(), bounds[:, 3].max()
    magnitude = max(abs(west), abs(south), abs(east), abs(north), 1e-100)
    pad = _PAD * magnitude
    least = 1e4 * pad
    return (west - pad, south - pad, max(east + pad, west + least), max(north + pad, south + least)), pad
