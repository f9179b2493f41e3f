"""Regions: closed areas given as GeoJSON polygons or as circles, checked and brought into one form.

On a geographic feed longitudes of the result lie in [-180, 180]: a ring that crosses the
antimeridian (longitudes beyond 180 degrees, or neighbours more than 180 and less than 360 degrees
apart) is cut there, as RFC 7946, 3.1.9 asks; one that goes round a pole is closed over the pole of
its hemisphere. Edges are straight in longitude and latitude.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry

from engine.model.faults import Faults, Refused, unknown_name
from engine.model.feed import Crs, escaped
from engine.model.messages import Message

MAX_VERTICES = 100_000
LARGEST_COORDINATE = 1e150
"""Of a region: on which side of its border a point is takes products, which must be finite."""
Floats = npt.NDArray[np.float64]
Position = tuple[float, float]


@dataclass(frozen=True)
class Region(ABC):
    """A closed region: `PolygonRegion` or `CircleRegion`. Equal regions are equal values."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float, float, float]:
        """Least x, least y, greatest x, greatest y of a box that holds the region."""

    @abstractmethod
    def contains(self, x: Floats, y: Floats) -> npt.NDArray[np.bool_]:
        """Which points are inside or on the border; NaN is nowhere."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The region's document in canonical form."""


@dataclass(frozen=True)
class PolygonRegion(Region):
    """A valid Polygon or MultiPolygon."""

    geometry: BaseGeometry

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        west, south, east, north = self.geometry.bounds
        return west, south, east, north

    def contains(self, x: Floats, y: Floats) -> npt.NDArray[np.bool_]:
        shapely.prepare(self.geometry)
        return np.asarray(shapely.intersects_xy(self.geometry, x, y), np.bool_)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = shapely.geometry.mapping(self.geometry)
        return document


@dataclass(frozen=True)
class CircleRegion(Region):
    """All points at most `radius` from (x, y): metres along geodesics of WGS 84 when
    `geodesic`, else the plane's unit."""

    x: float
    y: float
    radius: float
    geodesic: bool

    @cached_property
    def _box(self) -> tuple[float, float, float, float]:
        if not self.geodesic:
            return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius
        from engine.index.geodesic import circle_bounds

        return circle_bounds(self.x, self.y, self.radius)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self._box

    def contains(self, x: Floats, y: Floats) -> npt.NDArray[np.bool_]:
        if not self.geodesic:
            return np.asarray(np.hypot(x - self.x, y - self.y) <= self.radius, np.bool_)
        from engine.index.geodesic import distances

        west, south, east, north = self.bounds
        inside = np.zeros(len(x), np.bool_)
        near = np.flatnonzero((y >= south) & (y <= north) & (x >= west) & (x <= east))
        if len(near):
            inside[near] = distances(np.full(len(near), self.x), np.full(len(near), self.y), x[near], y[near]) <= self.radius
        return inside

    def to_json(self) -> dict[str, Any]:
        return {"center": [self.x, self.y], "radius": self.radius}


def read_region(document: Any, crs: Crs, pointer: str = "") -> Region:
    """The region of a document: GeoJSON Polygon or MultiPolygon, or
    `{"center": [x, y], "radius": r}`.

    Raises Refused with all faults found, below `pointer`; a crossing of
    edges is named by its place.

    >>> read_region({"center": [1, 2], "radius": 3}, Crs.PLANAR).bounds
    (-2.0, -1.0, 4.0, 5.0)
    """
    reader = _Reader(crs)
    region = reader.region(document, pointer)
    if reader.faults:
        raise Refused(reader.faults)
    assert region is not None
    return region


class _Reader:
    """Reads one region and collects its faults."""

    def __init__(self, crs: Crs) -> None:
        self.geographic = crs is Crs.GEOGRAPHIC
        self.faults = Faults()

    def fault(self, pointer: str, message: Message) -> None:
        self.faults.note(pointer, message)

    def region(self, document: Any, pointer: str) -> Region | None:
        if not isinstance(document, Mapping):
            self.fault(pointer, _WHAT)
            return None
        kind = document.get("type")
        if "center" in document or "radius" in document:
            return self.circle(document, pointer)
        if kind in ("Polygon", "MultiPolygon"):
            return self.polygons(document, pointer)
        if kind == "Feature" or kind == "FeatureCollection":
            self.fault(f"{pointer}/type", Message("a region is a geometry, not a {kind}: give the feature's `geometry`", kind=kind))
        elif "type" in document:
            self.fault(f"{pointer}/type", Message("must be Polygon or MultiPolygon, not {kind}", kind=repr(kind)))
        else:
            self.fault(pointer, _WHAT)
        return None

    def keys(self, document: Mapping[str, Any], known: Sequence[str], pointer: str) -> None:
        for key in document:
            if key not in known:
                self.fault(f"{pointer}/{escaped(key)}", unknown_name(key, known, what=Message("key")))

    def circle(self, document: Mapping[str, Any], pointer: str) -> Region | None:
        before = len(self.faults)
        self.keys(document, ("center", "radius"), pointer)
        center = document.get("center")
        place = None
        if not isinstance(center, list | tuple) or len(center) != 2:
            self.fault(f"{pointer}/center", Message("must be a point [x, y]"))
        else:
            place = self.position(center, f"{pointer}/center")
        radius: Any = document.get("radius")
        if not _is_number(radius) or not 0 < radius < math.inf:
            self.fault(
                f"{pointer}/radius",
                Message("must be a number greater than 0, in metres") if self.geographic else Message("must be a number greater than 0"),
            )
        elif radius > LARGEST_COORDINATE:
            self.fault(f"{pointer}/radius", _TOO_FAR)
        elif place is not None and max(map(abs, place)) + radius > LARGEST_COORDINATE:
            self.fault(f"{pointer}/center", _TOO_FAR)
        if len(self.faults) > before or place is None:
            return None
        x, y = place
        if self.geographic:
            x = _within_world(x)
        return CircleRegion(x, y, float(radius), self.geographic)

    def position(self, position: Any, pointer: str) -> Position | None:
        if not isinstance(position, list | tuple) or not 2 <= len(position) <= 3 or not all(map(_is_number, position)):
            self.fault(pointer, Message("must be a position [x, y] of two numbers"))
            return None
        x, y = float(position[0]), float(position[1])
        if not (math.isfinite(x) and math.isfinite(y)):
            self.fault(pointer, Message("must be finite numbers"))
        elif self.geographic and not -90 <= y <= 90:
            self.fault(f"{pointer}/1", Message("latitude {y} is not between -90 and 90; positions are [longitude, latitude]", y=y))
        elif self.geographic and not -540 <= x <= 540:
            self.fault(f"{pointer}/0", Message("longitude {x} is not between -540 and 540", x=x))
        else:
            return x, y
        return None

    def polygons(self, document: Mapping[str, Any], pointer: str) -> Region | None:
        before = len(self.faults)
        self.keys(document, ("type", "coordinates", "bbox"), pointer)
        coordinates = document.get("coordinates")
        at = f"{pointer}/coordinates"
        many = document["type"] == "MultiPolygon"
        if not isinstance(coordinates, list | tuple) or not coordinates:
            polygons, rings = (
                Message("must be a list of polygons, each a list of rings"),
                Message("must be a list of rings, each a list of positions"),
            )
            self.fault(at, polygons if many else rings)
            return None
        parts = coordinates if many else [coordinates]
        vertices = sum(len(ring) for part in parts if isinstance(part, list | tuple) for ring in part if isinstance(ring, list | tuple))
        if vertices > MAX_VERTICES + sum(len(part) for part in parts if isinstance(part, list | tuple)):
            self.fault(at, Message("has more than {most:,} vertices; simplify it", most=MAX_VERTICES))
            return None
        read = [self.rings(part, f"{at}/{i}" if many else at) for i, part in enumerate(parts)]
        if len(self.faults) > before:
            return None
        geometry = self.assembled([rings for rings in read if rings is not None], at, many)
        return None if geometry is None else PolygonRegion(geometry)

    def rings(self, part: Any, pointer: str) -> list[list[Position]] | None:
        if not isinstance(part, list | tuple) or not part:
            self.fault(pointer, Message("must be a list of rings: the outer one first, then holes"))
            return None
        return [ring for i, one in enumerate(part) if (ring := self.ring(one, f"{pointer}/{i}")) is not None]

    def ring(self, ring: Any, pointer: str) -> list[Position] | None:
        if not isinstance(ring, list | tuple) or len(ring) < 4:
            self.fault(pointer, Message("must be a ring: a list of at least four positions, the last equal to the first"))
            return None
        places: list[Position] = []
        for i, position in enumerate(ring):
            place = self.position(position, f"{pointer}/{i}")
            if place is None:
                return None
            if max(abs(place[0]), abs(place[1])) > LARGEST_COORDINATE:
                self.fault(f"{pointer}/{i}", _TOO_FAR)
                return None
            places.append(place)
        if places[0] != places[-1]:
            self.fault(f"{pointer}/{len(ring) - 1}", Message("the ring is not closed: its last position must equal its first"))
            return None
        return places

    def assembled(self, parts: list[list[list[Position]]], pointer: str, many: bool) -> BaseGeometry | None:
        cut: list[BaseGeometry] = []
        for i, rings in enumerate(parts):
            at = f"{pointer}/{i}" if many else pointer
            unrolled = _Unrolled(rings) if self.geographic else None
            polygon = shapely.Polygon(rings[0], rings[1:]) if unrolled is None or unrolled.plain else unrolled.polygon()
            if not self.valid(polygon, at):
                return None
            if unrolled is not None and not unrolled.plain:
                if polygon.bounds[2] - polygon.bounds[0] > 360:
                    self.fault(at, Message("goes round the Earth more than once"))
                    return None
                # One part may be cut into neighbours (round a pole), which together are one.
                cut.append(shapely.union_all(unrolled.cut(polygon)))
            else:
                cut.append(polygon)
        geometry = cut[0] if len(cut) == 1 else shapely.MultiPolygon([piece for one in cut for piece in shapely.get_parts(one)])
        if len(cut) > 1 and not self.valid(geometry, pointer):
            return None
        return geometry

    def valid(self, geometry: BaseGeometry, pointer: str) -> bool:
        if shapely.is_valid(geometry) and geometry.area > 0:
            return True
        reason = shapely.is_valid_reason(geometry)
        what, _, place = reason.partition("[")
        if place:
            where = ", ".join(place.rstrip("]").split())
            self.fault(pointer, Message("is not a valid region: {why} at [{where}]", why=what.strip().lower(), where=where))
        else:
            self.fault(pointer, Message("is not a valid region: it has no area"))
        return False


_WHAT = Message('a region is a GeoJSON Polygon or MultiPolygon, a circle {"center": [x, y], "radius": r} or a reference {"region": "name"}')

_TOO_FAR = Message("is beyond {most}, the greatest coordinate of a region", most=f"{LARGEST_COORDINATE:g}")


class _Unrolled:
    """Rings of one polygon with longitudes that run on where they cross the antimeridian.

    `plain`: nothing crosses and all longitudes are in [-180, 180]. Vertices keep their exact given
    coordinates through cutting.
    """

    def __init__(self, rings: Sequence[Sequence[Position]]) -> None:
        self.given: dict[Position, Position] = {}
        unrolled = [list(_unrolled(ring)) for ring in rings]
        self.plain = all(-180 <= x <= 180 for ring in unrolled for x, _ in ring) and all(
            new[0] == old[0] for ring, was in zip(unrolled, rings, strict=True) for new, old in zip(ring, was, strict=True)
        )
        self.rings = [_closed_over_pole(ring) for ring in unrolled]
        outer_west = min(x for x, _ in self.rings[0])
        outer_east = max(x for x, _ in self.rings[0])
        self.rings = [self.rings[0], *(_beside(ring, outer_west, outer_east) for ring in self.rings[1:])]
        for ring, was in zip(self.rings, rings, strict=True):
            self.given |= dict(zip(ring, was, strict=False))

    def polygon(self) -> BaseGeometry:
        return shapely.Polygon(self.rings[0], self.rings[1:])

    def cut(self, polygon: BaseGeometry) -> list[BaseGeometry]:
        """Pieces of `polygon` between antimeridians, moved to [-180, 180]."""
        west, _, east, _ = polygon.bounds
        first, last = math.floor((west + 180) / 360), math.ceil((east + 180) / 360)
        pieces: list[BaseGeometry] = []
        for turn in range(first, last):
            strip = shapely.box(360 * turn - 180, -90, 360 * turn + 180, 90)
            for piece in shapely.get_parts(shapely.intersection(polygon, strip)):
                if piece.geom_type == "Polygon" and piece.area > 0:
                    pieces.append(shapely.transform(piece, lambda points, turn=turn: self.moved(points, turn)))
        return pieces

    def moved(self, points: Floats, turn: int) -> Floats:
        return np.array([self._moved(x, y, turn) for x, y in points.tolist()])

    def _moved(self, x: float, y: float, turn: int) -> Position:
        given = self.given.get((x, y))
        moved = min(max(x - 360.0 * turn, -180.0), 180.0)
        # A vertex on the antimeridian belongs to both sides with either sign.
        if given is not None and abs(given[0] - moved) < 1e-9:
            return given
        return moved, y


def _unrolled(ring: Sequence[Position]) -> Iterator[Position]:
    turns = 0
    before = ring[0][0]
    for x, y in ring:
        jump = x - before
        if 180 < abs(jump) < 360:
            turns -= 1 if jump > 0 else -1
        before = x
        yield (x + 360.0 * turns if turns else x), y


def _closed_over_pole(ring: list[Position]) -> list[Position]:
    """A ring that ends 360 degrees from its beginning goes round a pole: closed over the one of the
    hemisphere where it mostly is."""
    if ring[0][0] == ring[-1][0]:
        return ring
    pole = 90.0 if sum(y for _, y in ring) >= 0 else -90.0
    return [*ring, (ring[-1][0], pole), (ring[0][0], pole), ring[0]]


def _beside(ring: list[Position], west: float, east: float) -> list[Position]:
    """A hole moved by whole turns to where its outer ring was unrolled to."""
    for turn in (0, 1, -1, 2, -2):
        moved = [(x + 360.0 * turn, y) for x, y in ring] if turn else ring
        if min(x for x, _ in moved) >= west and max(x for x, _ in moved) <= east:
            return moved
    return ring


def _within_world(x: float) -> float:
    return x if -180 <= x <= 180 else (x + 180) % 360 - 180


def _is_number(value: Any) -> bool:
    # JSON has whole numbers of any length; beyond these no float is left.
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 1024)
