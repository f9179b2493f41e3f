"""Regions as the index sees them: oriented edges, axis-parallel rectangles, circles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry
from shapely.geometry.polygon import orient

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Polygon:
    """Closed region by its edges: rows (ax, ay, bx, by), each with the region on its left; at least three."""

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
    """Closed circle; `radius` in metres along geodesics when `geodesic`, else in the plane's unit."""

    x: float
    y: float
    radius: float
    geodesic: bool


Shape = Polygon | Rectangle | Circle


def polygon_of(geometry: BaseGeometry) -> Polygon:
    """Edges of a valid Polygon or MultiPolygon; repeated vertices vanish.

    >>> polygon_of(shapely.box(0, 0, 1, 1)).edges.shape
    (4, 4)
    """
    rings = []
    for part in shapely.get_parts(geometry):
        turned = orient(part)
        rings += [np.asarray(ring.coords)[:, :2] for ring in (turned.exterior, *turned.interiors)]
    edges = np.concatenate([np.hstack([ring[:-1], ring[1:]]) for ring in rings])
    return Polygon(np.ascontiguousarray(edges[(edges[:, :2] != edges[:, 2:]).any(axis=1)], np.float64))


def shape_of(geometry: BaseGeometry) -> Polygon | Rectangle:
    """The cheapest exact form of a valid Polygon or MultiPolygon.

    >>> shape_of(shapely.box(0, 0, 2, 1))
    Rectangle(west=0.0, south=0.0, east=2.0, north=1.0)
    """
    polygon = polygon_of(geometry)
    edges = polygon.edges
    if len(edges) == 4 and ((edges[:, 0] == edges[:, 2]) | (edges[:, 1] == edges[:, 3])).all():
        (west, south), (east, north) = edges[:, :2].min(axis=0).tolist(), edges[:, :2].max(axis=0).tolist()
        return Rectangle(west, south, east, north)
    return polygon
