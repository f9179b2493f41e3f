"""Shapefiles in a zip archive."""

from __future__ import annotations

import io
import re
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
LANGUAGE_DRIVERS = {0x01: "cp437", 0x02: "cp850", 0x64: "cp852", 0x65: "cp866", 0xC8: "cp1250", 0xC9: "cp1251", 0xCA: "cp1254", 0xCB: "cp1253"}
"""Code pages by byte 29 of a table; most others that are met mean cp1252."""


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
        if shape.shapeType == shapefile.NULL:
            return None
        try:
            return convert(shapely.geometry.shape(shape.__geo_interface__))
        except shapefile.GeoJSON_Error:
            return Message("A {kind} is not a region: only polygons and closed lines are.", kind=shape.shapeTypeName)

    encoding = _encoding_of(parts)
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


def _encoding_of(parts: Mapping[str, bytes]) -> str:
    """The one that the `.cpg` file states; without it UTF-8 if the texts are in it, else the one
    that the table's header states."""
    if (stated := _codec(parts.get("cpg", b"").decode("ascii", "replace").strip())) is not None:
        return stated
    table = parts.get("dbf", b"")
    text = table[int.from_bytes(table[8:10], "little") :].decode("utf-8", "replace")
    broken = text.count("\ufffd")
    # A text that was cut to its column's width may end within a letter.
    if 2 * broken <= sum(letter > "\x7f" for letter in text):
        return "utf-8"
    return LANGUAGE_DRIVERS.get(int.from_bytes(table[29:30]), "cp1252")


def _codec(stated: str) -> str | None:
    """Python's name of an encoding as programs write it: `UTF-8`, `1252`, `ANSI 1252`, `OEM 850`,
    `ISO 88591`, `88591`."""
    iso = re.fullmatch(r"(?:iso)?[ _-]*8859[ _-]*(\d{1,2})", stated, re.IGNORECASE)
    page = re.fullmatch(r"(?:ansi|oem|windows|cp)?[ _-]*(\d{3,5})", stated, re.IGNORECASE)
    name = f"iso8859-{iso[1]}" if iso else f"cp{page[1]}" if page else stated
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return None
    return name or None
