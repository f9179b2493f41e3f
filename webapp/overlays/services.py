"""Checks and stores overlays."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from engine.model.faults import Faults, Refused, refuse
from engine.model.messages import Message
from webapp.audit.services import record
from webapp.config.room import room_check
from webapp.feeds.models import Feed
from webapp.overlays.models import Overlay

OVERLAYS = 20
"""Of one feed."""
FEATURES = 20_000
CORNERS = 200_000
GREATEST = 1e300
DEPTHS = {"Point": 0, "MultiPoint": 1, "LineString": 1, "MultiLineString": 2, "Polygon": 2, "MultiPolygon": 3}
"""How many nested lists contain the positions of each geometry."""


def overlay_keep(*, feed: Feed, name: str, document: Any) -> Overlay:
    """Stores an overlay; replaces one of the same name. Raises Refused."""
    checked = check_document(document)
    with transaction.atomic():
        others = Overlay.objects.filter(feed=feed).exclude(name=name)
        full = Message("A feed has at most {most} overlays: remove one first.", most=OVERLAYS)
        room_check(others, OVERLAYS, of=feed, full=full, pointer="/name")
        record("overlay.keep", feed, overlay=name)
        return Overlay.objects.update_or_create(feed=feed, name=name, defaults={"document": checked})[0]


def overlay_remove(*, overlay: Overlay) -> None:
    """Removes an overlay."""
    with transaction.atomic():
        record("overlay.remove", overlay.feed, overlay=overlay.name)
        overlay.delete()


def check_document(document: Any) -> dict[str, Any]:
    """The document with nothing but geometries and their names. Raises
    Refused with all faults found."""
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or document.get("type") != "FeatureCollection":
        raise refuse("/document", Message('A GeoJSON FeatureCollection is needed: {"type": "FeatureCollection", "features": [...]}.'))
    if not 1 <= len(features) <= FEATURES:
        raise refuse("/document/features", Message("1 to {most:,} features; these are {count:,}.", most=FEATURES, count=len(features)))
    faults, kept, corners = Faults(), [], 0
    if sum(_most_corners(feature) for feature in features) > CORNERS:
        raise _too_many()
    for number, feature in enumerate(features):
        try:
            geometry = _geometry(feature)
        except ValueError as error:
            faults.note(f"/document/features/{number}/geometry", Message("{error}.", error=error))
            continue
        corners += _count(geometry["coordinates"])
        if corners > CORNERS:
            raise _too_many()
        properties = feature.get("properties")
        name = properties.get("name") if isinstance(properties, dict) else None
        kept.append({"type": "Feature", "properties": {"name": str(name)[:100]} if name is not None else {}, "geometry": geometry})
    if faults:
        raise Refused(faults)
    return {"type": "FeatureCollection", "features": kept}


def _too_many() -> Refused:
    return refuse("/document/features", Message("The features have more than {most:,} corners together: simplify them.", most=CORNERS))


def _most_corners(feature: Any) -> int:
    """An upper bound of the number of corners, without reading each; 0 if malformed."""
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    if not isinstance(geometry, dict) or not (depth := DEPTHS.get(str(geometry.get("type")), 0)):
        return 0
    lists = [geometry.get("coordinates")]
    for _ in range(depth - 1):
        lists = [inner for one in lists if isinstance(one, list) for inner in one]
    return sum(len(one) for one in lists if isinstance(one, list))


def _geometry(feature: Any) -> dict[str, Any]:
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if not isinstance(geometry, dict) or not isinstance(kind, str) or kind not in DEPTHS:
        raise ValueError(f"the geometry is one of {', '.join(DEPTHS)}; this is {kind!r}"[:200])
    return {"type": kind, "coordinates": _positions(geometry.get("coordinates"), DEPTHS[kind])}


def _positions(value: Any, depth: int) -> list[Any]:
    """The coordinates without heights."""
    if not isinstance(value, list) or not value:
        raise ValueError(Message("coordinates are missing"))
    if depth > 0:
        return [_positions(one, depth - 1) for one in value]
    if len(value) < 2 or not all(map(_is_number, value[:2])):
        raise ValueError(Message("a position is two numbers, x (or longitude) and y (or latitude)"))
    return value[:2]


def _is_number(value: Any) -> bool:
    """A whole number of four hundred digits cannot be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= GREATEST


def _count(coordinates: list[Any]) -> int:
    return sum(map(_count, coordinates)) if isinstance(coordinates[0], list) else 1
