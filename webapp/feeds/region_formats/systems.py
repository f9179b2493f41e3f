"""Coordinate reference systems that region files state: for a feed on the earth, corners become
longitude and latitude of WGS 84."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyproj
import shapely

from engine.model.messages import Message

Conversion = Callable[[Any], Any]
"""From a geometry in a file's system to one in longitude and latitude. Raises ValueError for
corners outside the system."""
WGS84 = 4326
DEFINITION_LETTERS = 20_000
"""A longer definition is not read; those of the EPSG have up to 5,000 letters."""


def unchanged(geometry: Any) -> Any:
    return geometry


@cache
def from_epsg(code: int) -> Conversion | None:
    """None for a code that PROJ does not know."""
    try:
        return _conversion(pyproj.CRS.from_epsg(code))
    except pyproj.exceptions.ProjError:
        return None


def from_wkt(definition: str) -> Conversion | None:
    """For a system as well-known text, such as that of a Shapefile's `.prj`;
    None if it cannot be read."""
    if len(definition) > DEFINITION_LETTERS:
        return None
    try:
        return _conversion(pyproj.CRS.from_wkt(definition))
    except pyproj.exceptions.ProjError:
        return None


def _conversion(system: pyproj.CRS) -> Conversion:
    """Raises ProjError."""
    # Otherwise PROJ would change the last digits.
    if system.to_epsg(min_confidence=70) == WGS84:
        return unchanged
    transformer = pyproj.Transformer.from_crs(system, WGS84, always_xy=True)

    def convert(corners: Any) -> Any:
        try:
            return np.column_stack(transformer.transform(corners[:, 0], corners[:, 1], errcheck=True))
        except pyproj.exceptions.ProjError as error:
            raise ValueError(Message("a corner does not lie in {system}", system=system.name)) from error

    return lambda geometry: shapely.transform(geometry, convert)
