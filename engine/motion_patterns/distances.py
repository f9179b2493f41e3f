"""Distances of samples from points and regions: metres along geodesics of WGS 84 on a geographic
feed, else the plane's unit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from engine.index.geodesic import distances
from engine.index.geodesic_borders import GeodesicBorder
from engine.model.region import CircleRegion, PolygonRegion, Region
from engine.motion_patterns.specification import TargetPoint

Floats = npt.NDArray[np.float64]


def distances_to(target: Region | TargetPoint, x: Floats, y: Floats, border: GeodesicBorder | None) -> Floats:
    """Distance of each position from the target; 0 inside a region. `border`: for polygons on a
    geographic feed, else null."""
    if isinstance(target, TargetPoint):
        return _from_point(target.x, target.y, target.geodesic, x, y)
    if isinstance(target, CircleRegion):
        return np.maximum(_from_point(target.x, target.y, target.geodesic, x, y) - target.radius, 0.0)
    assert isinstance(target, PolygonRegion)
    if border is not None:
        distances = np.zeros(len(x))
        outside = np.flatnonzero(~target.contains(x, y))
        distances[outside] = border.distances(x[outside], y[outside])
        return distances
    return np.asarray(shapely.distance(target.geometry, shapely.points(x, y)), np.float64)


def _from_point(px: float, py: float, geodesic: bool, x: Floats, y: Floats) -> Floats:
    if geodesic:
        return distances(np.full(len(x), px), np.full(len(x), py), x, y)
    return np.asarray(np.hypot(x - px, y - py), np.float64)
