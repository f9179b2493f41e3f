"""Reads uploaded files in a caged process: the server itself parses only the Arrow data that it
returns, after counting and checking it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from engine.model.events import DeadLetter, Reason
from engine.model.faults import Refused, fault_from_json, refuse
from engine.model.messages import Message, untranslated
from engine.sources.files import CheckedChunk
from engine.sources.reading import Reading
from webapp.cage.warm_pool import INSPECTIONS, CageRequest, TookTooLong, WarmPool
from webapp.config.openapi import Length, TimeRangeRead
from webapp.feeds.arrow_streams import Limits, read_stream

INSPECT_S, PIECE_S = 20.0, 120.0
"""For inspecting a file; for reading a piece, after finding it again from the beginning of a large
file."""
MEMORY_BYTES = 3 << 30
"""Of addresses, most of them of libraries and of mapped files."""
PIECE = Limits(rows=4_000_000, values=40_000_000, unpacked=200_000_000)


class ColumnSample(TypedDict):
    """A column of a file; `empty`: how many rows of the sample have no value in it; `odd`: the
    first value that is no number where nearly all are, else empty."""

    name: str
    examples: list[str]
    empty: int
    odd: str


class RowFault(TypedDict):
    """A row that is refused, by its line."""

    line: int
    problem: str
    row: Any


class IntervalCount(TypedDict):
    """How many intervals between rows of an entity are up to so many seconds long;
    null: longer than all others."""

    up_to: float | None
    count: int


_Since = TypedDict("_Since", {"from": int | None})


class Comparison(_Since):
    """A feed that the file is loaded into. `remembered`: files before it were read; rows before
    `from` are late; `missing` columns are the feed's."""

    feed: str
    title: str
    wall_clock: bool
    remembered: bool
    ahead: int | None
    missing: list[str]
    left_out: list[str]


class AttributeDocument(TypedDict):
    """A column of a file that the feed gets as `name`."""

    source: str
    name: str
    type: Literal["string", "int", "float", "bool"]


class ReadingDocument(TypedDict):
    """How a file is read: `engine.sources.reading.Reading`."""

    kind: str
    encoding: str
    delimiter: str
    header: bool
    sheet: str
    time: list[str]
    entity: list[str]
    x: str
    y: str
    event: str
    attributes: list[AttributeDocument]
    thing: str
    decimal: str
    time_format: str
    zone: str
    place_format: str
    crs: str


class _Inspection(TimeRangeRead):
    reading: ReadingDocument
    sheets: list[str]
    columns: list[ColumnSample]
    rows: list[dict[str, Any]]
    lines: list[int]
    read: list[dict[str, Any]]
    count: int
    good: int
    faults: list[RowFault]
    fault_count: int
    places: list[Annotated[list[float], Length(2)]]
    bounds: Annotated[list[float], Length(4)] | None
    entities: int
    intervals: list[IntervalCount]
    lateness: int
    tick: int
    ordered: bool


class Inspection(_Inspection, total=False):
    """The content of a file, read by `reading`: a sample of its rows as they are written (`rows`,
    with `lines`) and as they are read."""

    into: Comparison


def inspect(path: Path, name: str, chosen: Mapping[str, Any]) -> Inspection:
    """The contents of the file at `path`, read by `chosen`, with guesses for the rest. Raises
    Refused."""
    answer = _ask(INSPECTIONS, {"do": "inspect", "path": str(path), "name": name, "chosen": chosen}, path, INSPECT_S)
    inspected: Inspection = answer["found"]
    return inspected


def pieces(path: Path, reading: Reading) -> Iterator[CheckedChunk]:
    """All rows of a file, read by a process that is kept for it. Raises Refused."""
    process = WarmPool("recordings")
    try:
        number = 0
        while True:
            request = {"do": "read", "path": str(path), "reading": reading.to_json(), "piece": number}
            answer = _ask(process, request, path, PIECE_S)
            if answer["rows"] is None:
                return
            yield _read(answer, reading)
            number += 1
    finally:
        process.retire()


def _ask(process: WarmPool, request: Mapping[str, Any], path: Path, seconds: float) -> dict[str, Any]:
    work = CageRequest("webapp.feeds.uploads.reader", request, seconds, MEMORY_BYTES, read=[str(path.parent)])
    try:
        status, written = process.ask(work)
    except TookTooLong as error:
        raise refuse(
            "/file", Message("Reading the file took more than {seconds} seconds: write it as CSV or Parquet, or in parts.", seconds=f"{seconds:g}")
        ) from error
    if status != 0 or not written.endswith(b"\n"):
        raise refuse(
            "/file",
            Message(
                "Reading the file failed or took more than {most} GB of memory: it is damaged, or must be sent in parts.", most=MEMORY_BYTES >> 30
            ),
        )
    answer: dict[str, Any] = json.loads(written)
    if "faults" in answer:
        raise Refused(map(fault_from_json, answer["faults"]))
    return answer


def _read(answer: Mapping[str, Any], reading: Reading) -> CheckedChunk:
    try:
        rows = read_stream(base64.b64decode(answer["rows"]), PIECE, reading.feed("upload").types)
        dead = [DeadLetter(Reason(one["reason"]), untranslated(one["detail"]), one["row"], one["line"]) for one in answer["dead"]]
        for reason, count in answer["more"].items():
            dead += [DeadLetter(Reason(reason), Message("one of many rows of the file"))] * count
    except ValueError as error:
        raise refuse("/file", Message("A part of the file cannot be stored: {error}", error=error)) from error
    return CheckedChunk(rows, answer["read"], lambda: dead)
