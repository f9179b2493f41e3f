"""The regions in a file of a user: GeoJSON, KML, KMZ, GPX, a Shapefile in a zip, GeoPackage,
CSV with a column of WKT.

This is read in a caged process (`webapp/cage/child.py`), in memory, by readers of these formats
only: no library here knows other formats, follows references, or executes parts of a file. The
format of a file is detected from its content.
"""

from __future__ import annotations

import codecs
import csv
import encodings.aliases
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import shapefile
import shapely

from engine.model.faults import Fault, Refused, refuse, unknown_name
from engine.model.messages import Message
from webapp.feeds.region_formats import geopackage, kml_gpx, shapefiles
from webapp.feeds.region_formats.archives import unpacked
from webapp.feeds.region_formats.shapes import Properties, Shapes, geometry_or_fault
from webapp.feeds.region_formats.systems import Conversion, from_epsg, unchanged

FILE_BYTES = 20_000_000
FEATURES = 5_000
CORNERS = 300_000
"""Of all regions of a file together."""
DEFUSED = re.compile(r"^'(?=[=+\-@\t\r\n＝＋－＠])")
"""The prefix in our own CSV files of a text that a spreadsheet would read as a formula."""
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
CIRCLE_TEXT = 200
"""The longest text of a circle."""
VALUES = 1_500_000
"""Numbers and texts of all regions together: a corner has two."""
FAR_FROM_DEGREES = 1_000
NOT_DEGREES = Message(
    "Its corners are not in degrees, and the file does not state their coordinate reference system: "
    "convert it to longitude and latitude (EPSG:4326), or put the .prj file into the archive of a Shapefile."
)
NAME_LETTERS = 100
LONG_NAME = Message("Its name has more than {most} characters: shorten it, or choose another field for the names.", most=NAME_LETTERS)
SHOWN_PROPERTIES = 30
"""Of a file, in a message."""
NAME_FIELDS = ("name", "Name", "NAME", "title", "id")
_EPSG = re.compile(
    r"(?:urn:(?:x-)?ogc:def:crs:EPSG:[\w.]*:|EPSG:|https?://www\.opengis\.net/(?:def/crs/EPSG/[\w.]+/|gml/srs/epsg\.xml#))(\d{4,6})", re.IGNORECASE
)
_LONGITUDE_LATITUDE = re.compile(r".*CRS:?84", re.IGNORECASE)


@dataclass(frozen=True)
class Feature:
    """One region of a file: its position (from 1), its name if it has one, and its region
    document or why it has none."""

    row: int
    name: str
    geometry: Any
    fault: Message | None = None
    tags: Sequence[str] = field(default_factory=tuple)


def warm_up() -> None:
    """Reads a file of each kind of library, and all encodings: a process that may open no files any
    more has loaded what they need."""
    for codec in {*encodings.aliases.aliases.values()}:
        with suppress(LookupError):
            codecs.lookup(codec)
    parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts) as writer:
        writer.field("day", "D")
        writer.poly([[(0, 0), (0, 1), (1, 1), (0, 0)]])
        writer.record(None)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(f"x.{name}", part.getvalue())
    for data in (b"{}", b"<kml><Placemark/></kml>", b"name,wkt\na,POINT (0 0)\n", packed.getvalue(), b"SQLite format 3\x00"):
        run({"name_field": None, "geographic": True}, data)
    # PROJ opens its database.
    if (convert := from_epsg(25832)) is not None:
        convert(shapely.Point(500_000, 5_700_000))


def _written(feature: Feature) -> dict[str, Any]:
    return {**asdict(feature), "fault": feature.fault and feature.fault.to_json()}


def run(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The program's work: `features`, or `faults` when the file as a whole cannot be read."""
    try:
        return {"features": [_written(feature) for feature in features_of(data, request["name_field"], geographic=request["geographic"])]}
    except Refused as refused:
        return {"faults": [fault.to_json() for fault in refused.faults]}
    except OSError:
        # Its text may name files of the server.
        return {"faults": [Fault("/file", Message("The file cannot be read.")).to_json()]}


def features_of(data: bytes, name_field: str | None, *, geographic: bool) -> list[Feature]:
    """The regions in a file; of a `geographic` feed, in longitude and latitude. Raises Refused when
    the file as a whole cannot be read."""
    if len(data) > FILE_BYTES:
        raise refuse("/file", Message("The file has more than {most} MB.", most=FILE_BYTES // 1_000_000))
    features: list[Feature] = []
    corners = values = 0
    naming = _Naming(name_field)
    for feature in _features(data, naming, geographic):
        if geographic and feature.fault is None and _is_far_from_degrees(feature.geometry):
            feature = replace(feature, geometry=None, fault=NOT_DEGREES)
        if len(feature.name) > NAME_LETTERS:
            feature = replace(feature, name=feature.name[:NAME_LETTERS], geometry=None, fault=feature.fault or LONG_NAME)
        if len(features) == FEATURES:
            raise refuse("/file", Message("The file has more than {most:,} regions.", most=FEATURES))
        features.append(feature)
        written = json.dumps(feature.geometry)
        corners, values = corners + written.count("["), values + written.count(",") + written.count("[") + written.count("{")
        if corners > CORNERS:
            raise refuse(
                "/file",
                Message("The regions of the file have more than {most:,} corners together: simplify them, or send several files.", most=CORNERS),
            )
        if values > VALUES:
            raise refuse(
                "/file",
                Message("The regions of the file hold more than {most:,} values together: simplify them, or send several files.", most=VALUES),
            )
    if not features:
        raise refuse("/file", Message("There are no regions in the file."))
    naming.check()
    return features


def _features(data: bytes, naming: _Naming, geographic: bool) -> Iterator[Feature]:
    kind, documents = format_of(data), [data]
    if kind == "zip":
        kind, documents = unpacked(data)
    if kind == "geojson":
        yield from _geojson(data, naming, geographic)
        return
    readers: dict[str, Callable[[bytes], Shapes]] = {
        "csv": _csv,
        "xml": kml_gpx.shapes_of,
        "shp": partial(shapefiles.shapes_of, geographic=geographic),
        "gpkg": partial(geopackage.shapes_of, geographic=geographic),
    }
    shapes = chain.from_iterable(map(readers[kind], documents))
    for row, (properties, geometry) in enumerate(shapes, start=1):
        name, circle = naming(properties), _circle(properties)
        feature = _from_shape(row, name, geometry) if circle is None else Feature(row, name, circle)
        yield replace(feature, tags=_tags(properties))


def _is_far_from_degrees(geometry: Any) -> bool:
    """Whether a corner is so far out that its coordinates are metres
    rather than mistaken degrees."""
    try:
        return bool(np.abs(shapely.from_geojson(json.dumps(geometry)).bounds).max() > FAR_FROM_DEGREES)
    except (ValueError, TypeError, AttributeError, shapely.errors.GEOSException):
        # The region's own check reports the fault.
        return False


def format_of(data: bytes) -> str:
    """geojson, xml, zip, gpkg or csv, from the first bytes."""
    if data.startswith(b"SQLite format 3\x00"):
        return "gpkg"
    if data.startswith(b"PK"):
        return "zip"
    head = data[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    return "geojson" if head.startswith((b"{", b"[")) else "xml" if head.startswith(b"<") else "csv"


# -- GeoJSON and CSV -------------------------------------------------------------------------------


def _geojson(data: bytes, naming: _Naming, geographic: bool) -> Iterator[Feature]:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise refuse("/file", Message("This is not JSON: {error}", error=error)) from error
    if SURROGATE.search(data) and not _is_text(document):
        raise refuse("/file", Message("A text of the file has half a character (a lone surrogate)."))
    if not isinstance(document, dict):
        raise refuse("/file", Message("GeoJSON is an object: a FeatureCollection, a Feature or a geometry."))
    if document.get("type") == "FeatureCollection":
        items = document.get("features")
    else:
        items = [document if document.get("type") == "Feature" else {"type": "Feature", "geometry": document}]
    if not isinstance(items, list):
        raise refuse("/file", Message("The FeatureCollection has no list of features."))
    convert = _conversion_of(document) if geographic else unchanged
    for row, item in enumerate(items, start=1):
        members = item.get("properties") if isinstance(item, dict) else None
        properties: dict[str, Any] = members if isinstance(members, dict) else {}
        geometry = item.get("geometry") if isinstance(item, dict) else None
        circle = properties.get("circle")
        tags = _tags(properties)
        shape = circle if isinstance(circle, dict) else _without_height(geometry)
        if convert is not unchanged and not isinstance(circle, dict):
            yield replace(_from_shape(row, naming(properties), geometry_or_fault(_converted_by(convert), shape)), tags=tags)
        else:
            yield Feature(row, naming(properties), shape, tags=tags)


def _is_text(document: Any) -> bool:
    """Whether all its texts can be written: half a character cannot."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _conversion_of(document: Mapping[str, Any]) -> Conversion:
    """For the member `crs` of the first GeoJSON (2008), which programs still write. Refuses one
    that is not known: its numbers might look like degrees."""
    try:
        properties = document["crs"]["properties"]
        name = str(properties["name"] if "name" in properties else f"EPSG:{properties['code']}")
    except (KeyError, TypeError):
        return unchanged
    if _LONGITUDE_LATITUDE.fullmatch(name):
        return unchanged
    found = _EPSG.fullmatch(name)
    convert = from_epsg(int(found[1])) if found else None
    if convert is None:
        raise refuse(
            "/file", Message("The coordinate reference system {name} is not known: use longitude and latitude (EPSG:4326).", name=name[:100])
        )
    return convert


def _converted_by(convert: Conversion) -> Conversion:
    return lambda shape: convert(shapely.from_geojson(json.dumps(shape)))


def _without_height(geometry: Any) -> Any:
    """The geometry with positions of two numbers; unexpected values are left to the region's own
    check."""

    def flat(node: Any) -> Any:
        if isinstance(node, list) and node and isinstance(node[0], int | float):
            return node[:2]
        return [flat(inner) for inner in node] if isinstance(node, list) else node

    if isinstance(geometry, dict) and "coordinates" in geometry:
        try:
            return {"type": geometry.get("type"), "coordinates": flat(geometry["coordinates"])}
        except RecursionError as error:
            raise refuse("/file", Message("The coordinates are nested too deeply.")) from error
    return geometry


def _csv(data: bytes) -> Shapes:
    # A region of many corners is a long cell.
    csv.field_size_limit(FILE_BYTES)
    try:
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), restkey="", restval="")
        wkt = next((column for column in rows.fieldnames or () if column.lower() in ("wkt", "geometry", "geom")), None)
        if wkt is None:
            raise refuse("/file", Message("The table needs a column wkt with polygons as well-known text."))
        for cells in rows:
            values = {column: DEFUSED.sub("", cell) if isinstance(cell, str) else cell for column, cell in cells.items()}
            try:
                yield values, shapely.from_wkt(values[wkt])
            except shapely.errors.GEOSException as error:
                yield values, Message("Not well-known text: {error}", error=error)
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse("/file", Message("This is not a text table in UTF-8: {error}", error=error)) from error


# -- common to all formats -----------------------------------------------------------------------


def _from_shape(row: int, name: str, geometry: Any) -> Feature:
    """A polygon as it is, a closed line as the ring that it draws."""
    if isinstance(geometry, Message):
        return Feature(row, name, None, geometry)
    if geometry is None or geometry.is_empty:
        return Feature(row, name, None, Message("There is no geometry."))
    geometry = shapely.force_2d(geometry)
    if geometry.geom_type == "GeometryCollection" and len(geometry.geoms) == 1:
        geometry = geometry.geoms[0]
    if geometry.geom_type in ("MultiLineString", "MultiPolygon") and len(geometry.geoms) == 1:
        geometry = geometry.geoms[0]
    if geometry.geom_type == "LineString" and len(geometry.coords) >= 4 and geometry.is_closed:
        geometry = shapely.Polygon(geometry)
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        return Feature(row, name, None, Message("A {kind} is not a region: only polygons and closed lines are.", kind=geometry.geom_type))
    return Feature(row, name, json.loads(shapely.to_geojson(geometry)))


def _tags(properties: Properties) -> list[str]:
    """A list in GeoJSON; a text with commas in the other formats, as the export writes them."""
    tags = properties.get("tags")
    given = tags if isinstance(tags, list) else [tags] if isinstance(tags, str) else []
    return [tag for text in given for part in str(text).split(",") if (tag := part.strip())]


def _circle(properties: Properties) -> dict[str, Any] | None:
    """The circle that a polygon of our own export stands for; other attributes of this name are
    no circles."""
    text = properties.get("circle")
    if not isinstance(text, str) or not text.startswith("{") or len(text) > CIRCLE_TEXT:
        return None
    try:
        circle = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return circle if isinstance(circle, dict) and circle.keys() == {"center", "radius"} else None


class _Naming:
    """The names of features: from the property `field`, else from the first usual one that has a
    value."""

    def __init__(self, field: str | None) -> None:
        self._field = field
        self._found = False
        self._known: set[str] = set()

    def __call__(self, properties: Properties) -> str:
        self._found = self._found or self._field in properties
        if len(self._known) < SHOWN_PROPERTIES:
            self._known.update(properties)
        others = [key for key in properties if re.search(r"name|bezeichn", key, re.IGNORECASE)]
        fields = (self._field,) if self._field else (*NAME_FIELDS, *others)
        value = next((properties[key] for key in fields if properties.get(key) not in (None, "")), "")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return "".join(c for c in str(value).strip() if c.isprintable())

    def check(self) -> None:
        """Raises Refused when a field was named that no feature has."""
        if self._field and not self._found:
            known = sorted(self._known)[:SHOWN_PROPERTIES]
            raise refuse("/name_field", unknown_name(self._field, known, what=Message("property")))
