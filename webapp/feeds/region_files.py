"""The regions in someone's file: GeoJSON, KML, KMZ, GPX, a Shapefile in a zip, GeoPackage, CSV with a column of WKT.

This is read in a caged process (`webapp/cage/child.py`), in memory, by readers that do nothing but read: no library here knows other formats,
follows references, or runs what a file brings along. The kind of a file is taken from its content.
"""

from __future__ import annotations

import codecs
import csv
import encodings.aliases
import io
import json
import sqlite3
import struct
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

import shapefile
import shapely
import shapely.geometry

from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message

FILE_BYTES = 20_000_000
FEATURES = 5_000
CORNERS = 300_000
"""Of all regions of a file together."""
VALUES = 1_500_000
"""Numbers and texts of all regions together: a corner has two."""
ARCHIVE_FILES = 100
ARCHIVE_BYTES = 100_000_000
"""The maximum decompressed size of all files of an archive."""
ARCHIVE_RATIO = 200
"""How many times as large as it is packed a file of an archive may be."""
DATABASE_STEPS = 20_000_000
"""Instructions of SQLite's machine that reading a GeoPackage may take."""
NAME_FIELDS = ("name", "Name", "NAME", "title", "id")


@dataclass(frozen=True)
class Feature:
    """One region of a file: its position (from 1), its name if it has one, and its region document or why it has none."""

    row: int
    name: str
    geometry: Any
    fault: Message | None = None
    tags: Sequence[str] = field(default_factory=tuple)


Properties = Mapping[str, Any]
Shapes = Iterator[tuple[Properties, Any]]
"""(properties, a shapely geometry or why it could not be read) of each feature."""


def warm_up() -> None:
    """Reads a file of each kind of library, and all encodings: a process that may open no files any more has loaded what they need."""
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
        run({"name_field": None}, data)


def _written(feature: Feature) -> dict[str, Any]:
    return {**asdict(feature), "fault": feature.fault and feature.fault.to_json()}


def run(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The program's work: `features`, or `faults` when the file as a whole cannot be read."""
    try:
        return {"features": [_written(feature) for feature in features_of(data, request["name_field"])]}
    except Refused as refused:
        return {"faults": [fault.to_json() for fault in refused.faults]}
    except OSError:
        # Its text may name files of the server.
        return {"faults": [Fault("/file", Message("The file cannot be read.")).to_json()]}


def features_of(data: bytes, name_field: str | None) -> list[Feature]:
    """The regions in a file. Raises Refused when the file as a whole cannot be read."""
    if len(data) > FILE_BYTES:
        raise refuse("/file", Message("The file has more than {most} MB.", most=FILE_BYTES // 1_000_000))
    found: list[Feature] = []
    corners = values = 0
    for feature in _features(data, name_field):
        if len(found) == FEATURES:
            raise refuse("/file", Message("The file has more than {most:,} regions.", most=FEATURES))
        found.append(feature)
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
    if not found:
        raise refuse("/file", Message("There are no regions in the file."))
    return found


def _features(data: bytes, name_field: str | None) -> Iterator[Feature]:
    kind = format_of(data)
    if kind == "zip":
        kind, data = _unpacked(data)
    if kind == "geojson":
        yield from _geojson(data, name_field)
    else:
        for row, (properties, geometry) in enumerate(_READERS[kind](data), start=1):
            yield _from_shape(row, _name(properties, name_field), geometry)


def format_of(data: bytes) -> str:
    """geojson, xml, zip, gpkg or csv, from the first bytes."""
    if data.startswith(b"SQLite format 3\x00"):
        return "gpkg"
    if data.startswith(b"PK"):
        return "zip"
    head = data[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")
    return "geojson" if head.startswith((b"{", b"[")) else "xml" if head.startswith(b"<") else "csv"


# -- GeoJSON and CSV ----------------------------------------------------------------------------------------------------------------


def _geojson(data: bytes, name_field: str | None) -> Iterator[Feature]:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise refuse("/file", Message("This is not JSON: {error}", error=error)) from error
    if not isinstance(document, dict):
        raise refuse("/file", Message("GeoJSON is an object: a FeatureCollection, a Feature or a geometry."))
    if document.get("type") == "FeatureCollection":
        items = document.get("features")
    else:
        items = [document if document.get("type") == "Feature" else {"type": "Feature", "geometry": document}]
    if not isinstance(items, list):
        raise refuse("/file", Message("The FeatureCollection has no list of features."))
    for row, item in enumerate(items, start=1):
        given = item.get("properties") if isinstance(item, dict) else None
        properties: dict[str, Any] = given if isinstance(given, dict) else {}
        geometry = item.get("geometry") if isinstance(item, dict) else None
        circle = properties.get("circle")
        tags = [str(tag) for tag in properties.get("tags", [])] if isinstance(properties.get("tags"), list) else []
        yield Feature(row, _name(properties, name_field), circle if isinstance(circle, dict) else _without_height(geometry), tags=tags)


def _without_height(geometry: Any) -> Any:
    """The geometry with positions of two numbers; anything that is not as expected is left to the region's own check."""

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
        for values in rows:
            try:
                yield values, shapely.from_wkt(values[wkt])
            except shapely.errors.GEOSException as error:
                yield values, f"No well-known text: {error}"
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse("/file", Message("This is not a text table in UTF-8: {error}", error=error)) from error


# -- KML and GPX ----------------------------------------------------------------------------------------------------------------------


class _Builder(ElementTree.TreeBuilder):
    """A document without a document type: entities and other files stand in one."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise refuse("/file", Message("XML with a document type is not read."))


def _xml(data: bytes) -> Shapes:
    try:
        root = ElementTree.fromstring(data, ElementTree.XMLParser(target=_Builder()))  # noqa: S314  The builder refuses document types.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise refuse("/file", Message("This is not XML: {error}", error=error)) from error
    kind = _local(root).lower()
    if kind not in ("kml", "gpx"):
        raise refuse("/file", Message("This XML is neither KML nor GPX."))
    return _kml(root) if kind == "kml" else _gpx(root)


def _kml(root: ElementTree.Element) -> Shapes:
    for placemark in root.iter():
        if _local(placemark) == "Placemark":
            yield _kml_properties(placemark), _made(_kml_geometry, placemark)


def _kml_properties(placemark: ElementTree.Element) -> dict[str, str]:
    properties = {_local(child): (child.text or "").strip() for child in placemark if not len(child)}
    for one in placemark.iter():
        if _local(one) == "SimpleData":
            properties.setdefault(one.get("name", ""), (one.text or "").strip())
        elif _local(one) == "Data":
            properties.setdefault(one.get("name", ""), next((child.text or "" for child in one if _local(child) == "value"), "").strip())
    return properties


def _kml_geometry(placemark: ElementTree.Element) -> Any:
    return _collected([_kml_shape(one) for one in placemark if _is_shape(one)])


def _is_shape(element: ElementTree.Element) -> bool:
    return _local(element) in ("Polygon", "LineString", "LinearRing", "Point", "MultiGeometry")


def _kml_shape(element: ElementTree.Element, depth: int = 0) -> Any:
    """A geometry of KML. Raises ValueError, GEOSException."""
    kind = _local(element)
    if kind == "MultiGeometry":
        if depth == 10:
            raise ValueError(Message("the geometries are nested too deeply"))
        return _collected([_kml_shape(one, depth + 1) for one in element if _is_shape(one)])
    if kind == "Polygon":
        outer = [ring for side in element if _local(side) == "outerBoundaryIs" for ring in _rings(side)]
        inner = [ring for side in element if _local(side) == "innerBoundaryIs" for ring in _rings(side)]
        if len(outer) != 1:
            raise ValueError(Message("a polygon has one outer ring"))
        return shapely.Polygon(outer[0], inner)
    places = _places(element)
    return shapely.Point(places[0]) if kind == "Point" else shapely.LineString(places)


def _rings(side: ElementTree.Element) -> Iterator[list[tuple[float, float]]]:
    return (_places(ring) for ring in side if _local(ring) == "LinearRing")


def _places(element: ElementTree.Element) -> list[tuple[float, float]]:
    text = next((child.text or "" for child in element if _local(child) == "coordinates"), "")
    places = [place.split(",") for place in text.split()]
    if not places or any(len(place) < 2 for place in places):
        raise ValueError(Message("coordinates are written as longitude,latitude"))
    return [(float(place[0]), float(place[1])) for place in places]


def _gpx(root: ElementTree.Element) -> Shapes:
    """Tracks and routes; waypoints are no regions."""
    for element in root:
        parts = {"trk": [one for one in element if _local(one) == "trkseg"], "rte": [element]}.get(_local(element))
        if parts is not None:
            properties = {_local(child): (child.text or "").strip() for child in element if not len(child)}
            yield properties, _made(_gpx_geometry, parts)


def _gpx_geometry(parts: Sequence[ElementTree.Element]) -> Any:
    return _collected([_track(part) for part in parts])


def _track(part: ElementTree.Element) -> Any:
    points = [one for one in part if _local(one) in ("trkpt", "rtept")]
    return shapely.LineString([(float(one.get("lon", "")), float(one.get("lat", ""))) for one in points])


def _local(element: ElementTree.Element) -> str:
    """The name without its namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _collected(parts: Sequence[Any]) -> Any:
    if len(parts) < 2:
        return parts[0] if parts else None
    kinds = {part.geom_type for part in parts if part is not None}
    return shapely.MultiPolygon(parts) if kinds == {"Polygon"} else shapely.GeometryCollection([part for part in parts if part is not None])


def _made(make: Callable[[Any], Any], given: Any) -> Any:
    """The geometry that `make` returns, or why it failed."""
    try:
        return make(given)
    except (ValueError, TypeError, shapely.errors.GEOSException) as error:
        return Message("The geometry cannot be read: {error}.", error=error)


# -- archives -------------------------------------------------------------------------------------------------------------------------


def _unpacked(data: bytes) -> tuple[str, bytes]:
    """An archive's one content: the KML of a KMZ, or `shp` for the archive itself when it holds a Shapefile."""
    with _archive(data) as archive:
        names = [entry.filename for entry in archive.infolist()]
        if any(_suffix(name) == ".shp" for name in names):
            return "shp", data
        documents = [entry for entry in archive.infolist() if _suffix(entry.filename) == ".kml"]
        if not documents:
            raise refuse("/file", Message("The archive holds neither a KML document (KMZ) nor a Shapefile."))
        return "xml", _content(archive, documents[0])


def _archive(data: bytes) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, EOFError) as error:
        raise refuse("/file", Message("The archive cannot be read: {error}", error=error)) from error
    entries = archive.infolist()
    if len(entries) > ARCHIVE_FILES:
        raise refuse("/file", Message("The archive has more than {most} files.", most=ARCHIVE_FILES))
    for entry in entries:
        path = PurePosixPath(entry.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise refuse("/file", Message("A file of the archive has a name that leads out of it."))
        if entry.file_size > max(ARCHIVE_RATIO * entry.compress_size, 10_000):
            raise refuse("/file", Message("A file of the archive unpacks to more than {most} times its size.", most=ARCHIVE_RATIO))
    if sum(entry.file_size for entry in entries) > ARCHIVE_BYTES:
        raise refuse("/file", Message("The archive unpacks to more than {most} MB.", most=ARCHIVE_BYTES // 1_000_000))
    return archive


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A file of the archive, never more bytes than the archive says that it has."""
    try:
        with archive.open(entry) as opened:
            return opened.read(entry.file_size)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, ValueError, struct.error, EOFError) as error:
        raise refuse("/file", Message("The archive cannot be read: {error}", error=error)) from error


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _shapefile(data: bytes) -> Shapes:
    with _archive(data) as archive:
        entries = {entry.filename.lower(): entry for entry in archive.infolist()}
        for name in [name for name in entries if _suffix(name) == ".shp" and not name.startswith("__macosx/")]:
            parts = {part: _content(archive, entries[name[:-4] + "." + part]) for part in ("shp", "dbf", "cpg") if name[:-4] + "." + part in entries}
            yield from _layer(parts)


def _layer(parts: Mapping[str, bytes]) -> Shapes:
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
                    yield both.record.as_dict(), _made(_of_shape, both.shape)
            else:
                for shape in reader.iterShapes():
                    yield {}, _made(_of_shape, shape)
    except (shapefile.ShapefileException, ValueError, TypeError, KeyError, IndexError, struct.error, OverflowError, AttributeError) as error:
        raise refuse("/file", Message("The Shapefile cannot be read: {error}", error=error)) from error


def _of_shape(shape: Any) -> Any:
    return None if shape.shapeType == shapefile.NULL else shapely.geometry.shape(shape.__geo_interface__)


# -- GeoPackage -----------------------------------------------------------------------------------------------------------------------

_ENVELOPES = (0, 32, 48, 48, 64)


def _geopackage(data: bytes) -> Shapes:
    """Rows of plain tables: views, triggers and virtual tables of the file are never executed."""
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(data)
            _guard(database)
            plain = {
                name: sql
                for name, kind, sql in database.execute("SELECT name, type, sql FROM sqlite_master")
                if kind == "table" and not str(sql).lower().startswith("create virtual")
            }
            if not {"gpkg_contents", "gpkg_geometry_columns"} <= set(plain):
                raise refuse("/file", Message("This database is not a GeoPackage: it needs gpkg_contents and gpkg_geometry_columns, as tables."))
            layers = database.execute(
                "SELECT c.table_name, g.column_name FROM gpkg_contents AS c, gpkg_geometry_columns AS g "
                "WHERE c.data_type = 'features' AND g.table_name = c.table_name"
            ).fetchmany(ARCHIVE_FILES)
            if not layers:
                raise refuse("/file", Message("There are no features in the GeoPackage."))
            for table, column in layers:
                if table not in plain:
                    raise refuse("/file", Message("A layer of the GeoPackage is not a plain table: views are not read."))
                yield from _rows(database, table, column)
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise refuse("/file", Message("The GeoPackage cannot be read: {error}", error=error)) from error


def _guard(database: sqlite3.Connection) -> None:
    """Only reading of tables from here on, for a bounded number of steps."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.text_factory = lambda text: text.decode(errors="replace")
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
    steps = 0

    def authorize(action: int, first: str | None, *_: str | None) -> int:
        is_reading = action in allowed or (action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo")
        return sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY

    def count() -> int:
        nonlocal steps
        steps += 1_000
        return int(steps > DATABASE_STEPS)

    database.set_authorizer(authorize)
    database.set_progress_handler(count, 1_000)


def _rows(database: sqlite3.Connection, table: str, column: str) -> Shapes:
    # Columns that are hidden or computed are left out: their values come from expressions of the file.
    names = [row[1] for row in database.execute(f"PRAGMA table_xinfo({_quoted(table)})") if row[6] == 0]
    if column not in names:
        raise refuse("/file", Message("A layer of the GeoPackage has no column of geometries."))
    for values in database.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"):  # noqa: S608  Names of the file, quoted.
        properties = dict(zip(names, values, strict=True))
        yield properties, _made(_of_blob, properties.pop(column))


def _quoted(name: str) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _of_blob(blob: Any) -> Any:
    """A geometry in GeoPackage's binary form: a header with an envelope, then well-known binary."""
    if blob is None:
        return None
    if not isinstance(blob, bytes) or not blob.startswith(b"GP") or len(blob) < 8:
        raise ValueError(Message("no geometry of a GeoPackage"))
    envelope = blob[3] >> 1 & 7
    if envelope >= len(_ENVELOPES):
        raise ValueError(Message("no geometry of a GeoPackage"))
    return shapely.from_wkb(blob[8 + _ENVELOPES[envelope] :])


# -- what all have in common ----------------------------------------------------------------------------------------------------------


def _from_shape(row: int, name: str, geometry: Any) -> Feature:
    """A polygon as it is, a closed line as the ring that it draws."""
    if isinstance(geometry, Message):
        return Feature(row, name, None, geometry)
    if geometry is None or geometry.is_empty:
        return Feature(row, name, None, Message("There is no geometry."))
    geometry = shapely.force_2d(geometry)
    if geometry.geom_type == "GeometryCollection" and len(geometry.geoms) == 1:
        geometry = geometry.geoms[0]
    if geometry.geom_type == "MultiLineString" and len(geometry.geoms) == 1:
        geometry = geometry.geoms[0]
    if geometry.geom_type == "LineString" and len(geometry.coords) >= 4 and geometry.is_closed:
        geometry = shapely.Polygon(geometry)
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        return Feature(row, name, None, Message("A {kind} is not a region: only polygons and closed lines are.", kind=geometry.geom_type))
    return Feature(row, name, json.loads(shapely.to_geojson(geometry)))


def _name(properties: Properties, name_field: str | None) -> str:
    fields = (name_field,) if name_field else NAME_FIELDS
    found = next((properties[key] for key in fields if properties.get(key) not in (None, "")), "")
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return "".join(c for c in str(found).strip() if c.isprintable())[:100]


_READERS: Mapping[str, Callable[[bytes], Shapes]] = {"csv": _csv, "xml": _xml, "shp": _shapefile, "gpkg": _geopackage}
