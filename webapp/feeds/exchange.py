"""Regions from and to files. Files are read in a separate process (`region_files.py`);
written files are our own."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyogrio
import shapely
import shapely.geometry
from pyproj import Geod

from engine.model.faults import Refused, fault_from_json, refuse
from engine.model.messages import Message, message_from_json
from webapp.cage.warm_pool import PARSERS, CageRequest, TookTooLong
from webapp.config.tables import harmless
from webapp.feeds.region_files import FILE_BYTES, Feature

SECONDS = 10.0
"""For reading a file; one of the greatest size and the most corners takes an eighth of it on an
idle machine."""
MEMORY_BYTES = 1 << 30
CIRCLE_CORNERS = 96
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
WGS84 = Geod(ellps="WGS84")
MEDIA = {
    "geojson": "application/geo+json",
    "kml": "application/vnd.google-earth.kml+xml",
    "gpkg": "application/geopackage+sqlite3",
    "csv": "text/csv",
}


# -- reading ---------------------------------------------------------------------------------------


def read_features(data: bytes, *, geographic: bool, name_field: str | None = None) -> list[Feature]:
    """The regions in a file for a feed, read by a caged process. Raises Refused when the file
    as a whole cannot be read."""
    if len(data) > FILE_BYTES:
        raise refuse("/file", Message("The file has more than {most} MB.", most=FILE_BYTES // 1_000_000))
    work = CageRequest("webapp.feeds.region_files", {"name_field": name_field, "geographic": geographic}, SECONDS, MEMORY_BYTES, data)
    try:
        status, written = PARSERS.ask(work)
    except TookTooLong as error:
        raise refuse("/file", Message("Reading the file took more than {seconds} seconds: send it in parts.", seconds=f"{SECONDS:g}")) from error
    if status != 0 or not written.endswith(b"\n"):
        raise refuse(
            "/file",
            Message(
                "Reading the file failed or took more than {most} MB of memory: it is damaged, or must be sent in parts.", most=MEMORY_BYTES >> 20
            ),
        )
    answer = json.loads(written)
    if "faults" in answer:
        raise Refused(map(fault_from_json, answer["faults"]))
    return [Feature(**{**feature, "fault": feature["fault"] and message_from_json(feature["fault"])}) for feature in answer["features"]]


# -- writing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exported:
    """A stored region to be written."""

    name: str
    document: Any
    tags: Sequence[str]


def write_features(regions: Sequence[Exported], kind: str, *, geographic: bool) -> bytes:
    """A file of the regions in one of MEDIA's formats. A circle is a polygon in each, with the
    circle itself in the attribute `circle`, which the import reads: an object in GeoJSON, its text
    in the others.

    Raises Refused for an unknown format, and for KML of a plane that is not the earth.
    """
    if kind not in MEDIA:
        raise refuse("/format", Message("One of {known}.", known=", ".join(MEDIA)))
    if kind == "kml" and not geographic:
        raise refuse("/format", Message("KML needs positions on the earth; this feed is on a plane."))
    if kind == "geojson":
        return _to_geojson(regions, geographic)
    if kind == "csv":
        return _to_csv(regions, geographic)
    return _to_kml(regions) if kind == "kml" else _to_geopackage(regions, geographic)


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
    writer.writerow(["name", "tags", "circle", "wkt"])
    for region in regions:
        shape = _well_known_text(polygon_of(region.document, geographic=geographic))
        writer.writerow([harmless(region.name), harmless(",".join(region.tags)), _circle_text(region), shape])
    return text.getvalue().encode()


def _well_known_text(shape: Any) -> str:
    """With all digits: GEOS writes no more than 16."""
    parts = shape.geoms if shape.geom_type == "MultiPolygon" else [shape]
    polygons = []
    for part in parts:
        rings = [", ".join(f"{x!r} {y!r}" for x, y in ring.coords) for ring in (part.exterior, *part.interiors)]
        polygons.append(f"({', '.join(f'({ring})' for ring in rings)})")
    return f"MULTIPOLYGON ({', '.join(polygons)})" if shape.geom_type == "MultiPolygon" else f"POLYGON {polygons[0]}"


def _circle_text(region: Exported) -> str:
    return json.dumps(region.document) if "radius" in region.document else ""


def _to_kml(regions: Sequence[Exported]) -> bytes:
    """GDAL rounds corners in KML, so that its rings would be others when they are read."""
    root = ElementTree.Element("kml", xmlns="http://www.opengis.net/kml/2.2")
    document = ElementTree.SubElement(root, "Document")
    for region in regions:
        placemark = ElementTree.SubElement(document, "Placemark")
        ElementTree.SubElement(placemark, "name").text = _xml_text(region.name)
        attributes = ElementTree.SubElement(placemark, "ExtendedData")
        for name, text in (("tags", ",".join(region.tags)), ("circle", _circle_text(region))):
            if text:
                ElementTree.SubElement(ElementTree.SubElement(attributes, "Data", name=name), "value").text = _xml_text(text)
        _add_kml_geometry(placemark, polygon_of(region.document, geographic=True))
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _xml_text(text: str) -> str:
    """Without characters that no XML can have."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _add_kml_geometry(parent: ElementTree.Element, shape: Any) -> None:
    if shape.geom_type == "MultiPolygon":
        several = ElementTree.SubElement(parent, "MultiGeometry")
        for part in shape.geoms:
            _add_kml_geometry(several, part)
        return
    polygon = ElementTree.SubElement(parent, "Polygon")
    for side, rings in (("outerBoundaryIs", [shape.exterior]), ("innerBoundaryIs", shape.interiors)):
        for ring in rings:
            drawn = ElementTree.SubElement(ElementTree.SubElement(polygon, side), "LinearRing")
            ElementTree.SubElement(drawn, "coordinates").text = " ".join(f"{x!r},{y!r}" for x, y in ring.coords)


def _to_geopackage(regions: Sequence[Exported], geographic: bool) -> bytes:
    shapes = shapely.to_wkb(np.array([polygon_of(region.document, geographic=geographic) for region in regions], dtype=object))
    multi = any(region.document.get("type") == "MultiPolygon" for region in regions)
    names = np.array([region.name for region in regions], dtype=object)
    tags = np.array([",".join(region.tags) for region in regions], dtype=object)
    circles = np.array([_circle_text(region) for region in regions], dtype=object)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "regions.gpkg"
        pyogrio.raw.write(
            path,
            shapes,
            [names, tags, circles],
            ["name", "tags", "circle"],
            driver="GPKG",
            geometry_type="MultiPolygon" if multi else "Polygon",
            promote_to_multi=multi,
            crs="EPSG:4326" if geographic else 'ENGCRS["plane",EDATUM["plane"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["unit",1]]',
        )
        return path.read_bytes()
