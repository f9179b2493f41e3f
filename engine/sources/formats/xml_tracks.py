"""GPX and KML: the points of tracks, read incrementally. XML with a document type is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from engine.model.messages import Message
from engine.sources.files import UnreadableFile
from engine.sources.formats.chunks import Chunk, InvalidLine, chunks_of

Record = dict[str, Any] | InvalidLine
MOST_DEPTH = 100
TIMELESS = ("LineString", "Polygon", "Model")
"""KML geometries that are not a position at a time."""


def read_gpx(stream: BinaryIO) -> Iterator[Chunk]:
    """A row for each point of tracks and for each waypoint. Raises UnreadableFile."""
    yield from chunks_of(enumerate(_elements(stream, _Gpx()), 1))


def read_kml(stream: BinaryIO) -> Iterator[Chunk]:
    """A row for each moment of a gx:Track and for each point with a time
    stamp. Raises UnreadableFile."""
    yield from chunks_of(enumerate(_elements(stream, _Kml()), 1))


def _elements(stream: BinaryIO, reader: _Gpx | _Kml) -> Iterator[Record]:
    """The results of `reader` for each element that ends; used elements are freed."""
    above: list[Element] = []
    try:
        for event, element in iterparse(stream, ("start", "end"), forbid_dtd=True):
            if event == "start":
                if len(above) == MOST_DEPTH:
                    raise UnreadableFile(Message("Elements of the file are nested more than {most} levels deep.", most=MOST_DEPTH))
                above.append(element)
                reader.begin(_local(element))
                continue
            above.pop()
            record = reader.end(_local(element), element, _local(above[-1]) if above else "")
            if record is not None:
                yield from record
                element.clear()
                if above:
                    above[-1].remove(element)
    except DefusedXmlException as error:
        raise UnreadableFile(Message("XML with a document type is not read: remove its DOCTYPE.")) from error
    except (ParseError, ValueError, LookupError) as error:
        raise UnreadableFile(Message("The XML cannot be read: {error}", error=error)) from error


def _local(element: Element) -> str:
    """The name without its namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


class _Gpx:
    """Tracks are distinguished by their names and, where these are missing, by their numbers."""

    def __init__(self) -> None:
        self.tracks, self.waypoints, self.name = 0, 0, ""

    def begin(self, tag: str) -> None:
        if tag in ("trk", "rte"):
            self.tracks += 1
            self.name = f"track {self.tracks}"

    def end(self, tag: str, element: Element, parent: str) -> list[Record] | None:
        if tag == "name" and parent in ("trk", "rte"):
            self.name = (element.text or "").strip() or self.name
            return None
        if tag in ("trkpt", "rtept", "wpt"):
            return [{"track": self._waypoint(element) if tag == "wpt" else self.name, **_point(element)}]
        return [] if tag in ("trkseg", "trk", "rte", "metadata") else None

    def _waypoint(self, element: Element) -> str:
        self.waypoints += 1
        return next((child.text or "" for child in element if _local(child) == "name"), "").strip() or f"waypoint {self.waypoints}"


def _point(element: Element) -> dict[str, Any]:
    record: dict[str, Any] = {"lon": element.get("lon"), "lat": element.get("lat"), "time": None}
    # Extensions may have their own names such as `time`: those of the point come first.
    children = list(element)
    for child in (*children, *(one for part in children for one in part.iter() if one is not part)):
        if not len(child) and child.text and child.text.strip() and record.get(_local(child)) is None:
            record[_local(child)] = child.text.strip()
    return record


class _Kml:
    """Things are distinguished by the names of their placemarks."""

    def __init__(self) -> None:
        self.placemarks, self.rows = 0, 0

    def begin(self, tag: str) -> None:
        self.placemarks += tag == "Placemark"

    def end(self, tag: str, element: Element, parent: str) -> list[Record] | None:
        if tag != "Placemark":
            return None
        name = next((child.text or "" for child in element if _local(child) == "name"), "").strip() or f"placemark {self.placemarks}"
        tracks = [one for one in element.iter() if _local(one) == "Track"]
        data = _data([one for one in element.iter() if _local(one) == "ExtendedData" and not any(one in list(track) for track in tracks)])
        rows: list[Record] = [row for track in tracks for row in self._track(name, track, data)]
        if not tracks:
            rows = self._stamped(name, element)
        self.rows += len(rows)
        return rows

    def _track(self, name: str, track: Element, data: dict[str, Any]) -> Iterator[Record]:
        whens = [(child.text or "").strip() for child in track if _local(child) == "when"]
        places = [(child.text or "").split() for child in track if _local(child) == "coord"]
        if len(whens) != len(places):
            yield InvalidLine(
                self.placemarks,
                Message(
                    "the track {name} has not as many times ({times}) as places ({places})",
                    name=repr(name),
                    times=len(whens),
                    places=len(places),
                ),
                name,
            )
            return
        series = _series(track)
        for unfit in [of for of, values in series.items() if len(values) != len(whens)]:
            count = len(series.pop(unfit))
            problem = Message(
                "the track {name} has not as many values of {unfit} ({values}) as times ({times}): these values are left out",
                name=repr(name),
                times=len(whens),
                values=count,
                unfit=repr(unfit),
            )
            yield InvalidLine(self.placemarks, problem, name)
        for at, (when, place) in enumerate(zip(whens, places, strict=True)):
            row = {"name": name, "time": when or None, **_lon_lat(place)}
            yield {**row, **_besides({**data, **{of: values[at] for of, values in series.items()}}, row)}

    def _stamped(self, name: str, placemark: Element) -> list[Record]:
        points = [one for one in placemark.iter() if _local(one) == "Point"]
        when = next((one.text or "" for one in placemark.iter() if _local(one) in ("when", "begin")), "").strip()
        if not points or not when:
            return [
                InvalidLine(
                    self.placemarks, Message("the placemark {name} has no place with a time: tracks and time stamps are read", name=repr(name)), name
                )
            ]
        data = _data([one for one in placemark.iter() if _local(one) == "ExtendedData"])
        rows: list[Record] = []
        for point in points:
            text = next((child.text or "" for child in point if _local(child) == "coordinates"), "")
            row = {"name": name, "time": when, **_lon_lat(text.strip().split(","))}
            rows.append({**row, **_besides(data, row)})
        for other in dict.fromkeys(_local(one) for one in placemark.iter() if _local(one) in TIMELESS):
            problem = Message(
                "the placemark {name} has a {other} beside its points, which has no times: points and tracks are read", name=repr(name), other=other
            )
            rows.append(InvalidLine(self.placemarks, problem, name))
        return rows


def _lon_lat(place: list[str]) -> dict[str, Any]:
    position: dict[str, Any] = {"lon": place[0] if place else None, "lat": place[1] if len(place) > 1 else None}
    return position if len(place) < 3 else {**position, "altitude": place[2]}


def _besides(values: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Values whose names the row does not have: entity, time and place
    have elements of their own."""
    return {name: value for name, value in values.items() if name not in row}


def _data(extended: list[Element]) -> dict[str, Any]:
    """The values of a placemark as a whole."""
    inner = [one for outer in extended for one in outer.iter()]
    values = {one.get("name", ""): (one.text or "").strip() for one in inner if _local(one) == "SimpleData"}
    for one in inner:
        if _local(one) == "Data":
            values[one.get("name", "")] = next((child.text or "" for child in one if _local(child) == "value"), "").strip()
    return {name: text or None for name, text in values.items() if name}


def _series(track: Element) -> dict[str, list[str | None]]:
    """The values that a track has for each of its moments, by name: gx:SimpleArrayData, and
    the heading of gx:angles."""
    series: dict[str, list[str | None]] = {}
    for one in track.iter():
        if _local(one) == "SimpleArrayData" and one.get("name"):
            series[one.get("name", "")] = [(child.text or "").strip() or None for child in one if _local(child) == "value"]
    angles = [(child.text or "").split() for child in track if _local(child) == "angles"]
    return {"heading": [one[0] if one else None for one in angles], **series} if angles else series
