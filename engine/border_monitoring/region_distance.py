"""Whether positions are in a region, or within some distance of it, decided exactly on the plane.

On a geographic feed distances are those of PROJ's geodesics; to a polygon's edges they are found to
1 mm + 1e-7 (`geodesic_borders`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import pi, sqrt

import numpy as np
import numpy.typing as npt
import shapely

from engine.border_monitoring.shapes import edges_of
from engine.index.geodesic import WGS84, distances
from engine.index.geodesic_borders import GeodesicBorder
from engine.model.region import CircleRegion, PolygonRegion, Region

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Rounding of a plane distance computed in doubles, relative to the coordinates, with room to spare.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Nearness:
    """One region on a feed that is `geographic` or planar."""

    region: Region
    geographic: bool

    @cached_property
    def size(self) -> float:
        """The radius of a circle, else of the circle with the polygon's area
        (geodesic on a geographic feed)."""
        if isinstance(self.region, CircleRegion):
            return self.region.radius
        geometry = self._polygon.geometry
        area = abs(WGS84.geometry_area_perimeter(shapely.orient_polygons(geometry))[0]) if self.geographic else geometry.area
        return sqrt(area / pi)

    def near(self, x: Floats, y: Floats, inside: Bools, slack: Floats) -> Bools:
        """Which positions are `inside`, or have a positive `slack` and the
        region at most so far away."""
        found = inside.copy()
        asked = np.flatnonzero(~inside & (slack > 0))
        if len(asked):
            found[asked] = self._within(x[asked], y[asked], slack[asked])
        return found

    @property
    def _polygon(self) -> PolygonRegion:
        assert isinstance(self.region, PolygonRegion)
        return self.region

    @cached_property
    def _border(self) -> GeodesicBorder:
        return GeodesicBorder.of(self._polygon.geometry)

    @cached_property
    def _edges(self) -> Floats:
        return edges_of([self._polygon.geometry])[0]

    def _within(self, x: Floats, y: Floats, slack: Floats) -> Bools:
        """Of positions outside."""
        if isinstance(self.region, CircleRegion):
            cx, cy, reach = np.full(len(x), self.region.x), np.full(len(x), self.region.y), self.region.radius + slack
            return np.asarray((distances(cx, cy, x, y) if self.geographic else np.hypot(x - cx, y - cy)) <= reach)
        if self.geographic:
            return np.asarray(self._border.distances(x, y) <= slack)
        away = shapely.distance(self._polygon.geometry, shapely.points(x, y))
        found = np.asarray(away <= slack)
        scale = np.maximum(np.abs(self._edges).max(), np.maximum(np.abs(x), np.abs(y)))
        for i in np.flatnonzero(np.abs(away - slack) <= _ROUNDING * scale).tolist():
            found[i] = self._exactly_within(float(x[i]), float(y[i]), float(slack[i]))
        return found

    def _exactly_within(self, x: float, y: float, slack: float) -> bool:
        px, py, limit = Fraction(x), Fraction(y), Fraction(slack) ** 2
        return any(_square_distance(px, py, edge) <= limit for edge in self._edges.tolist())


def _square_distance(x: Fraction, y: Fraction, edge: list[float]) -> Fraction:
    """From a point to a closed edge."""
    ax, ay, bx, by = (Fraction(value) for value in edge)
    dx, dy = bx - ax, by - ay
    s = min(max(((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy), Fraction(0)), Fraction(1))
    return (ax + s * dx - x) ** 2 + (ay + s * dy - y) ** 2
