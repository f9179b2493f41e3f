"""Regions in KML and GPX. XML with a document type is refused: it may name
entities and other files."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from typing import Any

import shapely

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.feeds.region_formats.shapes import Shapes, collection_of, geometry_or_fault


class _Builder(ElementTree.TreeBuilder):
    """A document without a document type: a document type may name entities and other files."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise refuse("/file", Message("XML with a document type is not read."))


def shapes_of(data: bytes) -> Shapes:
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
            yield _kml_properties(placemark), geometry_or_fault(_kml_geometry, placemark)


def _kml_properties(placemark: ElementTree.Element) -> dict[str, str]:
    properties = {_local(child): (child.text or "").strip() for child in placemark if not len(child)}
    for one in placemark.iter():
        if _local(one) == "SimpleData":
            properties.setdefault(one.get("name", ""), (one.text or "").strip())
        elif _local(one) == "Data":
            properties.setdefault(one.get("name", ""), next((child.text or "" for child in one if _local(child) == "value"), "").strip())
    return properties


def _kml_geometry(placemark: ElementTree.Element) -> Any:
    return collection_of([_kml_shape(one) for one in placemark if _is_shape(one)])


def _is_shape(element: ElementTree.Element) -> bool:
    return _local(element) in ("Polygon", "LineString", "LinearRing", "Point", "MultiGeometry")


def _kml_shape(element: ElementTree.Element, depth: int = 0) -> Any:
    """A geometry of KML. Raises ValueError, GEOSException."""
    kind = _local(element)
    if kind == "MultiGeometry":
        if depth == 10:
            raise ValueError(Message("the geometries are nested too deeply"))
        return collection_of([_kml_shape(one, depth + 1) for one in element if _is_shape(one)])
    if kind == "Polygon":
        outer = [ring for side in element if _local(side) == "outerBoundaryIs" for ring in _rings(side)]
        inner = [ring for side in element if _local(side) == "innerBoundaryIs" for ring in _rings(side)]
        if len(outer) != 1:
            raise ValueError(Message("a polygon has one outer ring"))
        return shapely.Polygon(outer[0], inner)
    positions = _positions(element)
    return shapely.Point(positions[0]) if kind == "Point" else shapely.LineString(positions)


def _rings(side: ElementTree.Element) -> Iterator[list[tuple[float, float]]]:
    return (_positions(ring) for ring in side if _local(ring) == "LinearRing")


def _positions(element: ElementTree.Element) -> list[tuple[float, float]]:
    text = next((child.text or "" for child in element if _local(child) == "coordinates"), "")
    positions = [position.split(",") for position in text.split()]
    if not positions or any(len(position) < 2 for position in positions):
        raise ValueError(Message("coordinates are written as longitude,latitude"))
    return [(float(position[0]), float(position[1])) for position in positions]


def _gpx(root: ElementTree.Element) -> Shapes:
    """Tracks and routes; waypoints are no regions."""
    for element in root:
        parts = {"trk": [one for one in element if _local(one) == "trkseg"], "rte": [element]}.get(_local(element))
        if parts is not None:
            properties = {_local(child): (child.text or "").strip() for child in element if not len(child)}
            yield properties, geometry_or_fault(_gpx_geometry, parts)


def _gpx_geometry(parts: Sequence[ElementTree.Element]) -> Any:
    return collection_of([_track(part) for part in parts])


def _track(part: ElementTree.Element) -> Any:
    points = [one for one in part if _local(one) in ("trkpt", "rtept")]
    return shapely.LineString([(float(one.get("lon", "")), float(one.get("lat", ""))) for one in points])


def _local(element: ElementTree.Element) -> str:
    """The name without its namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
