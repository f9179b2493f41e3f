"""Shapefiles in a zip archive."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any

import shapefile
import shapely.geometry

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.feeds.region_formats.archives import open_archive, read_entry, suffix
from webapp.feeds.region_formats.shapes import Shapes, geometry_or_fault
from webapp.feeds.region_formats.systems import Conversion, from_wkt, unchanged

# It would log each unusual ring.
shapefile.VERBOSE = False
PARTS = ("shp", "dbf", "cpg", "prj")


def shapes_of(data: bytes, *, geographic: bool) -> Shapes:
    """Of a `geographic` feed, in longitude and latitude if there is a `.prj` file."""
    with open_archive(data) as archive:
        entries = {entry.filename.lower(): entry for entry in archive.infolist()}
        for name in [name for name in entries if suffix(name) == ".shp" and not name.startswith("__macosx/")]:
            parts = {part: read_entry(archive, entries[name[:-4] + "." + part]) for part in PARTS if name[:-4] + "." + part in entries}
            system = from_wkt(parts["prj"].decode("utf-8", "replace")) if geographic and "prj" in parts else None
            yield from _layer(parts, system or unchanged)


def _layer(parts: Mapping[str, bytes], convert: Conversion) -> Shapes:
    def geometry_of(shape: Any) -> Any:
        return None if shape.shapeType == shapefile.NULL else convert(shapely.geometry.shape(shape.__geo_interface__))

    encoding = parts.get("cpg", b"").decode("ascii", "replace").strip() or "utf-8"
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        encoding = "utf-8"
    opened: dict[str, Any] = {name: io.BytesIO(parts[name]) for name in ("shp", "dbf") if name in parts}
    try:
        with shapefile.Reader(**opened, encoding=encoding, encodingErrors="replace") as reader:
            if "dbf" in parts:
                for both in reader.iterShapeRecords():
                    yield both.record.as_dict(), geometry_or_fault(geometry_of, both.shape)
            else:
                for shape in reader.iterShapes():
                    yield {}, geometry_or_fault(geometry_of, shape)
    except (shapefile.ShapefileException, ValueError, TypeError, KeyError, IndexError, struct.error, OverflowError, AttributeError) as error:
        raise refuse("/file", Message("The Shapefile cannot be read: {error}", error=error)) from error
