"""Pieces of a file as tables with the file's columns, and the layout of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.messages import Message
from engine.sources.files import UnreadableFile

Ints = npt.NDArray[np.int64]
CHUNK_ROWS = 20_000
"""About the number of rows of a piece."""
HEAD_BYTES = 262_144
"""The format and encoding of a file are guessed from this many bytes."""
SHOWN = 200
"""Characters of an unreadable line that are shown."""


class FileFormat(StrEnum):
    """The layout of a file."""

    CSV = "csv"
    JSON = "json"
    GPX = "gpx"
    KML = "kml"
    PARQUET = "parquet"
    ARROW = "arrow"
    NMEA = "nmea"
    EXCEL = "excel"


@dataclass(frozen=True)
class Layout:
    """How a file is to be taken apart: `kind`, and for texts how they are written. `header`: the
    first line names the columns."""

    kind: FileFormat
    encoding: str = "utf-8"
    delimiter: str = ","
    header: bool = True
    sheet: str = ""


@dataclass(frozen=True)
class InvalidLine:
    """An invalid line: its position, its fault, and how it begins."""

    line: int
    problem: Message
    text: str


def excerpt(document: Any) -> str:
    """How the JSON text of a document begins: at most SHOWN characters."""
    try:
        return json.dumps(document, ensure_ascii=False, default=str)[:SHOWN]
    except (RecursionError, ValueError, TypeError):
        return "a document with too many levels"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file. `lines`: where each begins in a text, else the
    number of the row; both from 1."""

    table: pa.Table
    lines: Ints
    broken: Sequence[InvalidLine] = field(default=())


def chunks_of(records: Iterator[tuple[int, dict[str, Any] | InvalidLine]]) -> Iterator[Chunk]:
    """Numbered records as chunks; what is broken goes along with the rows before it."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    broken: list[InvalidLine] = []
    for line, record in records:
        if isinstance(record, InvalidLine):
            broken.append(record)
        else:
            rows.append(record)
            lines.append(line)
        if len(rows) + len(broken) == CHUNK_ROWS:
            yield Chunk(table_of(rows), np.array(lines, np.int64), tuple(broken))
            rows, lines, broken = [], [], []
    if rows or broken:
        yield Chunk(table_of(rows), np.array(lines, np.int64), tuple(broken))


MOST_COLUMNS = 500


def table_of(records: Sequence[dict[str, Any]]) -> pa.Table:
    """Records as a table: objects within them as columns `outer.inner`, mixed columns as text.
    Raises UnreadableFile for too many columns."""
    flat = [record if not any(isinstance(value, dict) for value in record.values()) else flattened(record) for record in records]
    names = dict.fromkeys(name for record in flat for name in record)
    if len(names) > MOST_COLUMNS:
        raise UnreadableFile(Message("The file has more than {most} columns.", most=MOST_COLUMNS))
    columns = {name: column_from([record.get(name) for record in flat]) for name in names}
    return pa.table(columns) if columns else pa.table({"$none": pa.nulls(len(records))}).drop_columns(["$none"])


def flattened(record: dict[str, Any], prefix: str = "", depth: int = 4) -> dict[str, Any]:
    """An object without objects in it."""
    members: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and depth:
            members |= flattened(value, f"{prefix}{name}.", depth - 1)
        else:
            members[prefix + name] = value
    return members


def column_from(values: list[Any]) -> pa.Array:
    """Values of one kind as they are, others as text."""
    try:
        column = pa.array(values)
        if not pa.types.is_nested(column.type):
            return column
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    return pa.array([None if value is None else text_of(value) for value in values], pa.string())


def text_of(value: Any) -> str:
    """Lists, objects and truth values as JSON."""
    text = json.dumps(value, ensure_ascii=False, default=_member_text) if isinstance(value, list | dict | bool) else str(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _member_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
