"""Feeds and regions from outside, checked by the engine's rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from engine.model.faults import Fault, Refused
from engine.model.feed import KEYS, Crs
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from engine.model.region import read_region
from webapp.feeds.models import Feed

Box = tuple[float, float, float, float]
VIEW_KEYS = {"center", "zoom"}


def checked_region(document: Any, feed: Feed, pointer: str) -> tuple[Any, Box]:
    """The region document as it is to be stored, and its bounding box. Raises Refused with
    pointers below `pointer`."""
    west, south, east, north = (float(bound) for bound in read_region(document, Crs(feed.crs), pointer).bounds)
    return document, (west, south, east, north)


def read_schema(document: Mapping[str, Any]) -> tuple[EngineFeed | None, list[Fault]]:
    """The engine's feed of a document that may have further keys than the schema's, and all faults
    of schema, view and plan."""
    faults = [*_view_faults(document.get("view")), *_plan_faults(document.get("plan_bounds"), document.get("crs"))]
    try:
        schema = EngineFeed.from_json({name: document[name] for name in KEYS if name in document})
    except Refused as refused:
        return None, [*refused.faults, *faults]
    return schema, faults


def feed_faults(feed: Feed) -> list[Fault]:
    """The faults of a feed beyond those of its single fields."""
    return read_schema({name: getattr(feed, name) for name in (*KEYS, "view", "plan_bounds")})[1]


def _view_faults(view: Any) -> list[Fault]:
    if view in ({}, None):
        return []
    if not isinstance(view, dict) or set(view) != VIEW_KEYS:
        return [Fault("/view", Message('Written as {"center": [x, y], "zoom": z}.'))]
    numbers = [*view["center"], view["zoom"]] if isinstance(view["center"], list) and len(view["center"]) == 2 else [None]
    if not all(_is_number(number) for number in numbers):
        return [Fault("/view", Message("Centre and zoom are finite numbers."))]
    return []


def _plan_faults(bounds: Any, crs: Any) -> list[Fault]:
    if bounds is None:
        return []
    if (
        not isinstance(bounds, list)
        or len(bounds) != 4
        or not all(_is_number(number) for number in bounds)
        or bounds[0] >= bounds[2]
        or bounds[1] >= bounds[3]
    ):
        return [Fault("/plan_bounds", Message("x0, y0, x1, y1 with x0 < x1 and y0 < y1."))]
    return [] if crs == "planar" else [Fault("/plan_bounds", Message("Only planar feeds have a plan."))]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def vertices_of(geometry: Any) -> int:
    """How many vertices a region's document has; a circle has one.

    >>> vertices_of({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]})
    4
    >>> vertices_of({"center": [0, 0], "radius": 1})
    1
    """
    if geometry.get("type") == "Polygon":
        return sum(map(len, geometry["coordinates"]))
    if geometry.get("type") == "MultiPolygon":
        return sum(len(ring) for polygon in geometry["coordinates"] for ring in polygon)
    return 1
