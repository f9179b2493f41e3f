"""Regions: polygons with holes and circles, closed; read from GeoJSON with the place of every fault (CONTRACT 1).

A polygon is straight in x, y (RFC 7946: also on geographic feeds). On a geographic feed a ring may cross the antimeridian, either with
longitudes beyond 180 or with a step of more than 180 degrees between two vertices (and not exactly 360, which is an edge along a whole
parallel); it is cut there into parts on both sides. A ring around a pole is closed over that pole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from pyproj import Geod
from shapely import MultiPolygon, Polygon
from shapely.geometry import mapping

from engine.model.documents import Node
from engine.model.faults import unknown_name
from engine.model.feed import Crs

MAX_VERTICES = 100_000
WGS84 = Geod(ellps="WGS84")

Floats = npt.NDArray[np.float64]
Ring = list[tuple[float, float]]


@dataclass(frozen=True)
class PolygonRegion:
    """A valid polygon or multipolygon in x, y; equal coordinates are equal regions."""

    geometry: Polygon | MultiPolygon

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(west, south, east, north)."""
        return self.geometry.bounds  # type: ignore[no-any-return]

    def covers(self, x: Floats, y: Floats) -> npt.NDArray[np.bool_]:
        """Which points are inside or on the border (the reference; operators have their own indexes)."""
        return shapely.intersects_xy(self.geometry, x, y)  # type: ignore[no-any-return]

    def to_json(self) -> dict[str, Any]:
        found = mapping(self.geometry)
        return {"type": found["type"], "coordinates": found["coordinates"]}


@dataclass(frozen=True)
class CircleRegion:
    """All points at most `radius` from the centre: metres along the WGS 84 geodesic if `geodesic`, else plane units (hypot in doubles)."""

    x: float
    y: float
    radius: float
    geodesic: bool

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(west, south, east, north) that holds the circle; the whole range of longitudes where it meets the antimeridian or a pole."""
        if not self.geodesic:
            return (self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius)
        # No degree of latitude on the ellipsoid is shorter than 110,574 m; the margin takes up the rounding.
        rise = self.radius / 110_574 * (1 + 1e-9)
        south, north = self.y - rise, self.y + rise
        if south <= -90 or north >= 90:
            return (-180.0, max(south, -90.0), 180.0, min(north, 90.0))
        spread = math.degrees(math.asin(min(1.0, math.sin(math.radians(min(rise, 90.0))) / math.cos(math.radians(max(abs(south), abs(north))))))) * 1.01
        if self.x - spread < -180 or self.x + spread > 180:
            return (-180.0, south, 180.0, north)
        return (self.x - spread, south, self.x + spread, north)

    def covers(self, x: Floats, y: Floats) -> npt.NDArray[np.bool_]:
        """Which points are inside or on the border (the reference)."""
        if not self.geodesic:
            return np.hypot(x - self.x, y - self.y) <= self.radius
        _, _, distance = WGS84.inv(np.full(len(x), self.x), np.full(len(y), self.y), x, y)
        return np.asarray(distance) <= self.radius

    def to_json(self) -> dict[str, Any]:
        return {"center": [self.x, self.y], "radius": self.radius}


Region = PolygonRegion | CircleRegion


def read_region(node: Node, crs: Crs, stored: Mapping[str, Region]) -> Region | None:
    """The region a document describes; `stored` are the ones it may refer to by name."""
    if not isinstance(node.value, dict):
        node.expect_object(())
        return None
    if "region" in node.value:
        return _read_reference(node, stored)
    if "center" in node.value or "radius" in node.value:
        return _read_circle(node, crs)
    return _read_polygons(node, crs)


def _read_reference(node: Node, stored: Mapping[str, Region]) -> Region | None:
    node.expect_object(("region",))
    name = node.get("region").text(required=True)
    if name is None:
        return None
    if name not in stored:
        node.get("region").fault(unknown_name(name, stored, what="region"))
        return None
    return stored[name]


def _read_circle(node: Node, crs: Crs) -> Region | None:
    node.expect_object(("center", "radius"))
    centre = _position(node.get("center"), crs)
    radius = node.get("radius").number(required=True, check=lambda r: None if r > 0 else f"must be greater than 0, not {r:g}")
    if centre is None or radius is None:
        return None
    if crs is Crs.GEOGRAPHIC and abs(centre[0]) > 180:
        node.get("center").fault(f"longitude {centre[0]:g} is outside -180 to 180")
        return None
    return CircleRegion(*centre, radius, geodesic=crs is Crs.GEOGRAPHIC)


def _read_polygons(node: Node, crs: Crs) -> Region | None:
    if not node.expect_object(("type", "coordinates", "bbox")):
        return None
    kind = node.get("type").choice(("Polygon", "MultiPolygon"), required=True)
    if kind is None:
        return None
    before = len(node.faults)
    coordinates = node.get("coordinates")
    parts = [coordinates] if kind == "Polygon" else coordinates.items(least=1, what="polygons")
    polygons = [[_ring(ring, crs) for ring in part.items(least=1, what="rings")] for part in parts]
    if len(node.faults) > before:
        return None
    vertices = sum(len(ring) for rings in polygons for ring in rings)
    if vertices > MAX_VERTICES:
        coordinates.fault(f"has {vertices} vertices; at most {MAX_VERTICES} are taken: simplify the region")
        return None
    return _build(node, polygons, crs)


def _ring(node: Node, crs: Crs) -> Ring:
    """The vertices of a closed ring; empty after a fault."""
    places = node.items(least=4, what="positions (the last repeats the first)")
    read = [_position(place, crs) for place in places]
    ring = [position for position in read if position is not None]
    if len(ring) < max(len(places), 4):
        return []
    if ring[0] != ring[-1]:
        node.fault("is not closed: the last position must repeat the first")
        return []
    return ring


def _position(node: Node, crs: Crs) -> tuple[float, float] | None:
    """x, y of a position; a third number (altitude) is allowed and left out."""
    if not isinstance(node.value, (list, tuple)) or not 2 <= len(node.value) <= 3:
        node.fault("must be a position [x, y]")
        return None
    x, y = (part.number(required=True) for part in node.items()[:2])
    if x is None or y is None:
        return None
    if crs is Crs.GEOGRAPHIC and (abs(y) > 90 or abs(x) > 540):
        node.fault(f"[{x:g}, {y:g}] is not on the globe: longitude comes first, latitude is between -90 and 90")
        return None
    # -0.0 and 0.0 are one place; equal regions shall be equal values.
    return (x + 0.0, y + 0.0)


def _build(node: Node, polygons: Sequence[Sequence[Ring]], crs: Crs) -> Region | None:
    if crs is Crs.GEOGRAPHIC and any(_leaves_the_world(ring) for rings in polygons for ring in rings):
        return _build_cut(node, polygons)
    built = [Polygon(rings[0], rings[1:]) for rings in polygons]
    if not _all_valid(node, built):
        return None
    geometry = built[0] if len(built) == 1 else MultiPolygon(built)
    return PolygonRegion(geometry) if _all_valid(node, [geometry]) else None


def _build_cut(node: Node, polygons: Sequence[Sequence[Ring]]) -> Region | None:
    """Polygons over the antimeridian: laid out on one strip of longitudes, checked there, cut at 180 + k 360 and moved back."""
    original: dict[tuple[float, float], tuple[float, float]] = {}
    laid_out = []
    for rings in polygons:
        outer = _unwrap(rings[0], original)
        holes = [_beside(_unwrap(ring, original), outer, original) for ring in rings[1:]]
        laid_out.append(Polygon(outer, holes))
    if not _all_valid(node, laid_out):
        return None
    parts = [piece for polygon in laid_out for piece in _cut(polygon, original)]
    geometry = parts[0] if len(parts) == 1 else MultiPolygon(parts)
    if not geometry.is_valid:
        # Parts of different turns can lie side by side again (a ring around a pole that does not begin at the antimeridian).
        geometry = shapely.union_all(parts)
    return PolygonRegion(geometry) if _all_valid(node, [geometry]) else None


def _leaves_the_world(ring: Ring) -> bool:
    return any(abs(x) > 180 for x, _ in ring) or any(180 < abs(b[0] - a[0]) < 360 for a, b in zip(ring, ring[1:], strict=False))


def _unwrap(ring: Ring, original: dict[tuple[float, float], tuple[float, float]]) -> Ring:
    """The ring with longitudes that run on over the antimeridian; `original` remembers each moved vertex's own coordinates."""
    shift, laid = 0.0, [ring[0]]
    for (ax, _), (bx, by) in zip(ring, ring[1:], strict=False):
        if 180 < abs(bx - ax) < 360:
            shift += 360.0 if bx < ax else -360.0
        laid.append((bx + shift, by))
        original.setdefault((bx + shift, by), (bx, by))
    if shift:
        laid += _over_the_pole(laid)
    return laid


def _over_the_pole(laid: Ring) -> Ring:
    """What closes a ring that goes once around the earth: along the meridian to the nearer pole, along it, and back."""
    pole = math.copysign(90.0, sum(y for _, y in laid))
    return [(laid[-1][0], pole), (laid[0][0], pole), laid[0]]


def _beside(hole: Ring, outer: Ring, original: dict[tuple[float, float], tuple[float, float]]) -> Ring:
    """The hole in the turn of longitudes in which its polygon was laid out."""
    west, east = min(x for x, _ in outer), max(x for x, _ in outer)
    for turn in (0.0, 360.0, -360.0):
        if all(west <= x + turn <= east for x, _ in hole):
            for x, y in hole:
                original.setdefault((x + turn, y), original.get((x, y), (x, y)))
            return [(x + turn, y) for x, y in hole]
    return hole


def _cut(polygon: Polygon, original: Mapping[tuple[float, float], tuple[float, float]]) -> list[Polygon]:
    """The parts of a laid-out polygon inside -180 to 180, in their own turns; vertices get their own coordinates back."""
    west, _, east, _ = polygon.bounds
    parts = []
    for turn in range(math.floor((west + 180) / 360), math.ceil((east + 180) / 360)):
        low, high = -180.0 + 360 * turn, 180.0 + 360 * turn
        piece = shapely.intersection(polygon, shapely.box(low, -90, high, 90))
        for part in shapely.get_parts(piece):
            if part.geom_type == "Polygon" and not part.is_empty:
                parts.append(shapely.transform(part, lambda c, low=low: _home(c, low, original)))  # type: ignore[misc]
    return parts


def _home(coordinates: Floats, low: float, original: Mapping[tuple[float, float], tuple[float, float]]) -> Floats:
    home = []
    for x, y in coordinates.tolist():
        own = original.get((x, y))
        at = own[0] if own is not None and -180 <= own[0] <= 180 else x - (low + 180)
        # A vertex on the cut belongs to the side of its part.
        home.append((-180.0 if x == low else 180.0 if x == low + 360 else at, y))
    return np.array(home)


_PLACE = re.compile(r"(?P<what>[^\[]*)\[(?P<place>[^\]]*)\]")


def _all_valid(node: Node, geometries: Sequence[Any]) -> bool:
    """Whether all are valid; else the fault and its place are noted."""
    valid = True
    for geometry in geometries:
        if geometry.is_valid and geometry.area > 0:
            continue
        valid = False
        reason = shapely.is_valid_reason(geometry)
        found = _PLACE.match(reason)
        if found:
            place = ", ".join(found["place"].split())
            node.get("coordinates").fault(f"is no valid region: {found['what'].strip().lower()} at [{place}]; redraw it there")
        else:
            node.get("coordinates").fault("is no valid region: it has no area")
    return valid
