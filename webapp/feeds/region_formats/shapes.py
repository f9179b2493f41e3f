"""The result of a reader for each feature, and how it makes a geometry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import shapely

from engine.model.messages import Message

Properties = Mapping[str, Any]
Shapes = Iterator[tuple[Properties, Any]]
"""(properties, a shapely geometry or why it could not be read) of each feature."""


def collection_of(parts: Sequence[Any]) -> Any:
    if len(parts) < 2:
        return parts[0] if parts else None
    kinds = {part.geom_type for part in parts if part is not None}
    return shapely.MultiPolygon(parts) if kinds == {"Polygon"} else shapely.GeometryCollection([part for part in parts if part is not None])


def geometry_or_fault(make: Callable[[Any], Any], element: Any) -> Any:
    """The geometry that `make` returns, or why it failed."""
    try:
        return make(element)
    except (ValueError, TypeError, shapely.errors.GEOSException) as error:
        return Message("The geometry cannot be read: {error}.", error=error)
