"""JSON: an object a line, a list of objects, or GeoJSON with points and with lines that
have a time for each corner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from engine.model.messages import Message, message_of
from engine.sources.files import UnreadableFile
from engine.sources.formats.chunks import SHOWN, Chunk, InvalidLine, chunks_of

DOCUMENT_BYTES = 64_000_000
"""A document that is not an object a line is read as a whole."""
LINE_BYTES = 1_000_000
TIMES = ("times", "coordTimes", "timestamps", "coordinateProperties.times")
"""Where a line's times are kept: by its corners."""
Records = Iterator[tuple[int, dict[str, Any] | InvalidLine]]


def read_json(stream: BinaryIO) -> Iterator[Chunk]:
    """Records in the file's order. Raises UnreadableFile."""
    first = stream.readline(LINE_BYTES + 1)
    while first and not first.strip(b"\xef\xbb\xbf \t\r\n"):
        first = stream.readline(LINE_BYTES + 1)
    head, lines = [first], _lines(stream)
    record = _object_in(first)
    if record is not None and _holds_records(record):
        # A whole document, or one of several lines.
        head += _through_next_text(lines)
        record = _object_in(head[-1]) if len(head) > 1 else None
    if record is not None:
        yield from chunks_of(_of_lines(chain(head, lines)))
    else:
        begin = b"".join(head)
        yield from chunks_of(_of_document(begin + stream.read(max(DOCUMENT_BYTES - len(begin), 0) + 1)))


def _object_in(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _holds_records(value: dict[str, Any]) -> bool:
    return any(isinstance(member, list) and member and isinstance(member[0], dict) for member in value.values())


def _through_next_text(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines up to the next that is not blank."""
    for line in lines:
        yield line
        if line.strip():
            return


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(LINE_BYTES + 1):
        yield line
        while len(line) > LINE_BYTES and not line.endswith(b"\n") and (line := stream.readline(LINE_BYTES + 1)):
            continue


def _of_lines(lines: Iterator[bytes]) -> Records:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8-sig") if number == 1 else line)
            if not isinstance(value, dict):
                raise ValueError(Message("the line is not a JSON object"))
        except (ValueError, RecursionError) as error:
            yield (
                number,
                InvalidLine(
                    number, Message("{error}: correct the line, or leave it out", error=message_of(error)), line[:SHOWN].decode("utf-8", "replace")
                ),
            )
            continue
        for record in _records(value, number):
            yield number, record


def _of_document(data: bytes) -> Records:
    if len(data) > DOCUMENT_BYTES:
        raise UnreadableFile(
            Message("A JSON document has at most {most} MB: write longer ones with an object on each line.", most=DOCUMENT_BYTES // 1_000_000)
        )
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(Message("This is not JSON, neither as a whole nor with an object on each line: {error}", error=error)) from error
    yield from _entries(document)


def records_of(document: Any) -> Iterator[dict[str, Any] | InvalidLine]:
    """The records of a JSON document that was read: those of the list in
    it, else the object itself."""
    if not isinstance(document, dict | list):
        yield InvalidLine(1, Message("this is neither an object nor a list of objects"), str(document)[:SHOWN])
    for _, record in _entries(document):
        yield record


def _entries(document: Any) -> Records:
    if isinstance(document, dict):
        lists = [document.get("features"), *document.values()]
        document = next((one for one in lists if isinstance(one, list) and one and isinstance(one[0], dict)), [document])
    for number, entry in enumerate(document if isinstance(document, list) else [], 1):
        if isinstance(entry, dict):
            for record in _records(entry, number):
                yield number, record
        else:
            yield number, InvalidLine(number, Message("the entry is not an object"), str(entry)[:SHOWN])


def _records(entry: dict[str, Any], number: int) -> Iterator[dict[str, Any] | InvalidLine]:
    """The rows of a feature of GeoJSON; any other object is one row."""
    geometry = entry.get("geometry")
    if entry.get("type") != "Feature" or not isinstance(geometry, dict | None):
        yield entry
        return
    own_properties = entry.get("properties")
    properties = dict(own_properties) if isinstance(own_properties, dict) else {}
    properties.setdefault("feature", str(entry.get("id", number)))
    if geometry is None:
        yield _timed(properties)
        return
    kind, places = geometry.get("type"), geometry.get("coordinates")
    try:
        if kind == "Point":
            yield {**_timed(properties), **_place(places)}
        elif kind in ("LineString", "MultiPoint", "MultiLineString"):
            yield from _corners(properties, places if kind == "MultiLineString" else [places], kind == "MultiLineString", number)
        elif kind in ("Polygon", "MultiPolygon"):
            yield InvalidLine(number, Message("a {kind} is a region, not a position: import regions on the page Regions", kind=kind), "")
        else:
            yield InvalidLine(number, Message("a {kind} is not a position: points, and lines with times, are read", kind=kind), "")
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
        yield InvalidLine(number, Message("its coordinates cannot be read: {error}", error=error), str(places)[:SHOWN])


def _timed(properties: dict[str, Any]) -> dict[str, Any]:
    """With the time of a feature that has a list of one, as our own files of answers do."""
    name, times = _times(properties)
    if name != TIMES[0] or len(times) != 1:
        return properties
    return {key: value for key, value in properties.items() if key != name} | {"time": times[0]}


def _place(place: Any) -> dict[str, Any]:
    position = {"lon": float(place[0]), "lat": float(place[1])}
    return position if len(place) < 3 else {**position, "z": place[2]}


def _corners(properties: dict[str, Any], lines: Any, nested: bool, number: int) -> Iterator[dict[str, Any] | InvalidLine]:
    name, times = _times(properties)
    rest = {key: value for key, value in properties.items() if key != name and not isinstance(value, list)}
    if times is None and any(len(place) < 4 for line in lines for place in line):
        yield InvalidLine(number, Message("the line has no times: give one for each corner, in its property {name}", name=repr(TIMES[0])), "")
        return
    for at, line in enumerate(lines):
        own = None if times is None else times[at] if nested and times and isinstance(times[0], list) else times
        if own is not None and len(own) != len(line):
            yield InvalidLine(
                number, Message("the line has not as many times ({times}) as corners ({corners})", corners=len(line), times=len(own)), ""
            )
            continue
        for corner, place in enumerate(line):
            yield {**rest, **_place(place), "time": place[3] if own is None else own[corner]}


def _times(properties: dict[str, Any]) -> tuple[str, Any]:
    for name in TIMES:
        outer, _, inner = name.partition(".")
        value = properties.get(outer)
        value = value.get(inner) if inner and isinstance(value, dict) else value
        if isinstance(value, list):
            return outer, value
    return "", None
