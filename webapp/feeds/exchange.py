"""Regions from and to files: GeoJSON, KML, GPX, GeoPackage, CSV with a column of WKT.

What a file is, is told from its content, and GDAL sees only formats on the list: it would otherwise open whatever it recognises,
among it formats that read other files or the network.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio
import shapely
import shapely.geometry
from pyproj import Geod

from engine.model.faults import refuse

FILE_BYTES = 20_000_000
FEATURES = 5_000
CIRCLE_CORNERS = 96
WGS84 = Geod(ellps="WGS84")
NAME_FIELDS = ("name", "Name", "NAME", "title", "id")
MEDIA = {
    "geojson": "application/geo+json",
    "kml": "application/vnd.google-earth.kml+xml",
    "gpkg": "application/geopackage+sqlite3",
    "csv": "text/csv",
}
_ROOT = re.compile(rb"<(?![?!])(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s>/]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Feature:
    """One region of a file: its place in it (1 is the first), a name if it has one, and its region document or why there is none."""

    row: int
    name: str
    geometry: Any
    fault: str = ""
    tags: Sequence[str] = field(default_factory=tuple)


# -- reading ----------------------------------------------------------------------------------------------------------------------


def read_features(data: bytes, *, name_field: str | None = None) -> list[Feature]:
    """The regions in a file. Raises Refused when the file as a whole cannot be read."""
    if len(data) > FILE_BYTES:
        raise refuse("/file", f"The file has more than {FILE_BYTES // 1_000_000} MB.")
    kind = format_of(data)
    reader = {"geojson": _geojson, "csv": _csv, "kml": _gdal, "gpx": _gdal, "gpkg": _gdal}[kind]
    features: list[Feature] = []
    for feature in reader(data, kind, name_field):
        if len(features) == FEATURES:
            raise refuse("/file", f"The file has more than {FEATURES} regions.")
        features.append(feature)
    if not features:
        raise refuse("/file", "There are no regions in the file.")
    return features


def format_of(data: bytes) -> str:
    """geojson, kml, gpx, gpkg or csv, from the content alone. Raises Refused."""
    if data.startswith(b"SQLite format 3\x00"):
        return "gpkg"
    head = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith((b"{", b"[")):
        return "geojson"
    if head.startswith(b"<"):
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            raise refuse("/file", "XML with a document type is not read.")
        root = _ROOT.search(re.sub(rb"<!--.*?-->", b"", head[:65_536], flags=re.S))
        if root is not None and root[1].lower() in (b"kml", b"gpx"):
            return root[1].lower().decode()
        raise refuse("/file", "This XML is neither KML nor GPX.")
    if head.startswith(b"PK"):
        raise refuse("/file", "Archives are not read: unpack it first (a KMZ holds a KML).")
    return "csv"


def _geojson(data: bytes, kind: str, name_field: str | None) -> Iterator[Feature]:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise refuse("/file", f"This is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise refuse("/file", "GeoJSON is an object: a FeatureCollection, a Feature or a geometry.")
    if document.get("type") == "FeatureCollection":
        items = document.get("features")
    else:
        items = [document if document.get("type") == "Feature" else {"type": "Feature", "geometry": document}]
    if not isinstance(items, list):
        raise refuse("/file", "The FeatureCollection has no list of features.")
    for row, item in enumerate(items, start=1):
        given = item.get("properties") if isinstance(item, dict) else None
        properties: dict[str, Any] = given if isinstance(given, dict) else {}
        geometry = item.get("geometry") if isinstance(item, dict) else None
        circle = properties.get("circle")
        tags = [str(tag) for tag in properties.get("tags", [])] if isinstance(properties.get("tags"), list) else []
        yield Feature(row, _name(properties, name_field), circle if isinstance(circle, dict) else _without_height(geometry), tags=tags)


def _csv(data: bytes, kind: str, name_field: str | None) -> Iterator[Feature]:
    try:
        text = data.decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), restkey="", restval=""))
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse("/file", f"This is no table of text (UTF-8): {error}") from error
    columns = list(rows[0]) if rows else []
    wkt = next((column for column in columns if str(column).lower() in ("wkt", "geometry", "geom")), None)
    if wkt is None:
        raise refuse("/file", "The table needs a column wkt with polygons as well-known text.")
    for row, values in enumerate(rows, start=1):
        try:
            geometry = shapely.from_wkt(values[wkt])
        except shapely.errors.GEOSException as error:
            yield Feature(row, _name(values, name_field), None, f"No well-known text: {error}")
            continue
        yield _from_shape(row, _name(values, name_field), geometry)


def _gdal(data: bytes, kind: str, name_field: str | None) -> Iterator[Feature]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"regions.{kind}"
        path.write_bytes(data)
        if kind == "gpkg":
            _check_geopackage(path)
        row = 0
        for layer in _layers(path, kind):
            try:
                meta, _, shapes, columns = pyogrio.raw.read(path, layer=layer, force_2d=True, max_features=FEATURES + 1)
            except Exception as error:
                raise refuse("/file", f"The file cannot be read: {error}") from error
            names = list(meta["fields"])
            for position, geometry in enumerate(shapely.from_wkb(shapes)):
                row += 1
                properties = {name: column[position] for name, column in zip(names, columns, strict=True)}
                yield _from_shape(row, _name(properties, name_field), geometry)


def _layers(path: Path, kind: str) -> list[str]:
    try:
        layers = [str(name) for name, geometry in pyogrio.list_layers(path) if geometry is not None]
    except Exception as error:
        raise refuse("/file", f"The file cannot be read: {error}") from error
    # The points of a GPX track are layers of their own and no regions.
    return [name for name in layers if name in ("tracks", "routes")] if kind == "gpx" else layers


def _check_geopackage(path: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
            tables = [name for (name,) in database.execute("SELECT table_name FROM gpkg_contents WHERE data_type = 'features'")]
    except sqlite3.Error as error:
        raise refuse("/file", "This database is no GeoPackage.") from error
    if not tables:
        raise refuse("/file", "There are no features in the GeoPackage.")


def _from_shape(row: int, name: str, geometry: Any) -> Feature:
    """A polygon as it is, a closed line as the ring that it draws."""
    if geometry is None or geometry.is_empty:
        return Feature(row, name, None, "There is no geometry.")
    geometry = shapely.force_2d(geometry)
    if geometry.geom_type == "GeometryCollection" and len(geometry.geoms) == 1:
        geometry = geometry.geoms[0]
    if geometry.geom_type == "MultiLineString" and len(geometry.geoms) == 1:
        geometry = geometry.geoms[0]
    if geometry.geom_type == "LineString" and len(geometry.coords) >= 4 and geometry.is_closed:
        geometry = shapely.Polygon(geometry)
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        return Feature(row, name, None, f"A {geometry.geom_type} is no region: only polygons and closed lines are.")
    return Feature(row, name, json.loads(shapely.to_geojson(geometry)))


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
            raise refuse("/file", "The coordinates are nested too deeply.") from error
    return geometry


def _name(properties: Mapping[str, Any], name_field: str | None) -> str:
    fields = (name_field,) if name_field else NAME_FIELDS
    found = next((properties[key] for key in fields if properties.get(key) not in (None, "")), "")
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return "".join(c for c in str(found).strip() if c.isprintable())[:100]


# -- writing ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exported:
    """A stored region on its way out."""

    name: str
    document: Any
    tags: Sequence[str]


def write_features(regions: Sequence[Exported], kind: str, *, geographic: bool) -> bytes:
    """A file of the regions in one of MEDIA's formats. Circles become polygons; GeoJSON keeps them beside.

    Raises Refused for an unknown format, and for KML of a plane that is not the earth.
    """
    if kind not in MEDIA:
        raise refuse("/format", f"One of {', '.join(MEDIA)}.")
    if kind == "kml" and not geographic:
        raise refuse("/format", "KML is for places on the earth; this feed is a plane.")
    if kind == "geojson":
        return _to_geojson(regions, geographic)
    if kind == "csv":
        return _to_csv(regions, geographic)
    return _to_gdal(regions, kind, geographic)


def polygon_of(document: Any, *, geographic: bool) -> Any:
    """The region as a shapely geometry; a circle as a polygon of CIRCLE_CORNERS corners on it."""
    if "radius" not in document:
        return shapely.geometry.shape(document)
    x, y = document["center"]
    turns = np.linspace(0, 360, CIRCLE_CORNERS, endpoint=False)
    if geographic:
        lon, lat, _ = WGS84.fwd(np.full_like(turns, x), np.full_like(turns, y), -turns, np.full_like(turns, document["radius"]))
        return shapely.Polygon(np.column_stack([lon, lat]))
    angles = np.radians(turns)
    return shapely.Polygon(np.column_stack([x + document["radius"] * np.cos(angles), y + document["radius"] * np.sin(angles)]))


def _to_geojson(regions: Sequence[Exported], geographic: bool) -> bytes:
    features = []
    for region in regions:
        properties: dict[str, Any] = {"name": region.name, "tags": list(region.tags)}
        if "radius" in region.document:
            properties["circle"] = region.document
        geometry = json.loads(shapely.to_geojson(polygon_of(region.document, geographic=geographic)))
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def _to_csv(regions: Sequence[Exported], geographic: bool) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["name", "tags", "wkt"])
    for region in regions:
        shape = polygon_of(region.document, geographic=geographic)
        writer.writerow([harmless(region.name), harmless(" ".join(region.tags)), shapely.to_wkt(shape, rounding_precision=-1)])
    return text.getvalue().encode()


def _to_gdal(regions: Sequence[Exported], kind: str, geographic: bool) -> bytes:
    shapes = shapely.to_wkb(np.array([polygon_of(region.document, geographic=geographic) for region in regions], dtype=object))
    multi = any(region.document.get("type") == "MultiPolygon" for region in regions)
    names = np.array([region.name for region in regions], dtype=object)
    tags = np.array([" ".join(region.tags) for region in regions], dtype=object)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"regions.{kind}"
        pyogrio.raw.write(
            path,
            shapes,
            [names, tags],
            ["Name" if kind == "kml" else "name", "tags"],
            driver="KML" if kind == "kml" else "GPKG",
            geometry_type="MultiPolygon" if multi else "Polygon",
            promote_to_multi=multi,
            crs="EPSG:4326" if geographic else 'ENGCRS["plane",EDATUM["plane"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["unit",1]]',
        )
        return path.read_bytes()


def harmless(text: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    >>> harmless("=1+1")
    "'=1+1"
    """
    return "'" + text if text.startswith(FORMULA) else text
