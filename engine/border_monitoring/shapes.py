"""Regions as the index sees them: oriented edges, axis-parallel rectangles, circles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Polygon:
    """Closed region by its edges: rows (ax, ay, bx, by), each with the region on
    its left; at least three."""

    edges: Floats


@dataclass(frozen=True)
class Rectangle:
    """Closed axis-parallel rectangle."""

    west: float
    south: float
    east: float
    north: float


@dataclass(frozen=True)
class Circle:
    """Closed circle; `radius` in metres along geodesics when `geodesic`,
    else in the plane's unit."""

    x: float
    y: float
    radius: float
    geodesic: bool


Shape = Polygon | Rectangle | Circle


def edges_of(geometries: Sequence[BaseGeometry]) -> list[Floats]:
    """Edges (k, 4) of each valid Polygon or MultiPolygon, the region on their left;
    repeated vertices vanish.

    >>> edges_of([shapely.box(0, 0, 1, 1)])[0].shape
    (4, 4)
    """
    turned = shapely.orient_polygons(np.array(geometries, object))
    parts, part_owner = shapely.get_parts(turned, return_index=True)
    rings, ring_part = shapely.get_rings(parts, return_index=True)
    places, ring = shapely.get_coordinates(rings, return_index=True)
    edges = np.hstack([places[:-1], places[1:]])
    real = (ring[:-1] == ring[1:]) & (edges[:, :2] != edges[:, 2:]).any(axis=1)
    owner = part_owner[ring_part[ring[:-1][real]]]
    return np.split(edges[real], np.searchsorted(owner, np.arange(1, len(turned))))


def polygon_of(geometry: BaseGeometry) -> Polygon:
    return Polygon(edges_of([geometry])[0])


def shapes_of(geometries: Sequence[BaseGeometry]) -> list[Polygon | Rectangle]:
    """The cheapest exact form of valid Polygons and MultiPolygons.

    >>> shapes_of([shapely.box(0, 0, 2, 1)])
    [Rectangle(west=0.0, south=0.0, east=2.0, north=1.0)]
    """
    every = edges_of(geometries)
    shapes: list[Polygon | Rectangle] = [Polygon(edges) for edges in every]
    four = [i for i, edges in enumerate(every) if len(edges) == 4]
    if four:
        edges = np.stack([every[i] for i in four])
        parallel = ((edges[:, :, 0] == edges[:, :, 2]) | (edges[:, :, 1] == edges[:, :, 3])).all(axis=1)
        sides = np.hstack([edges[:, :, :2].min(axis=1), edges[:, :, :2].max(axis=1)])
        for i, is_parallel, box in zip(four, parallel.tolist(), sides.tolist(), strict=True):
            if is_parallel:
                shapes[i] = Rectangle(*box)
    return shapes
