"""Files in the forms in which people have recordings, read as tables with the file's own columns, a bounded piece at a time.

What the columns mean is said by a `Reading` (engine/sources/reading.py). These readers run libraries on files of strangers: in the web
application they run in a caged process (webapp/imports/reader.py).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.sources.files import Unreadable

Ints = npt.NDArray[np.int64]
CHUNK_ROWS = 20_000
"""A piece of a file has about so many rows."""
HEAD_BYTES = 262_144
"""What a file is, and how its text is written, is told from so many bytes."""
SHOWN = 200
"""Characters of an unreadable line that are shown."""


class Kind(StrEnum):
    """What a file is."""

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
    """How a file is to be taken apart: `kind`, and for texts how they are written. `header`: the first line names the columns."""

    kind: Kind
    encoding: str = "utf-8"
    delimiter: str = ","
    header: bool = True
    sheet: str = ""


@dataclass(frozen=True)
class Broken:
    """A line that is no row: where it stands, what is wrong, and how it begins."""

    line: int
    problem: str
    text: str


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file. `lines`: where each begins in a text, else the number of the row; both from 1."""

    table: pa.Table
    lines: Ints
    broken: Sequence[Broken] = field(default=())


def kind_of(head: bytes, name: str) -> Kind:
    """What a file is, from its unpacked first bytes; its name decides between texts."""
    if head.startswith(b"PAR1"):
        return Kind.PARQUET
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Kind.ARROW
    if head.startswith(b"PK"):
        return Kind.EXCEL
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<"):
        return Kind.KML if b"<kml" in head[:5_000].lower() or name.lower().endswith(".kml") else Kind.GPX
    if text.startswith((b"{", b"[")):
        return Kind.JSON
    return Kind.NMEA if any(sign in head for sign in (b"VDM,", b"VDO,")) else Kind.CSV


def open_bytes(path: Path) -> BinaryIO:
    """The unpacked bytes of a file."""
    stream = path.open("rb")
    packed = stream.read(4)
    stream.seek(0)
    if packed.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if packed == b"\x28\xb5\x2f\xfd":
        stream.close()
        return cast(BinaryIO, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    return stream


def head_of(path: Path) -> bytes:
    """The first unpacked bytes of a file. Raises Unreadable."""
    try:
        with open_bytes(path) as stream:
            head = stream.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"The file cannot be unpacked: {error}") from error
    if not head:
        raise Unreadable("The file has no bytes.")
    return head


def read_chunks(path: Path, layout: Layout) -> Iterator[Chunk]:
    """The rows of a file in its order. Raises Unreadable; what came before the fault has been given out."""
    # Each reader brings its libraries along.
    if layout.kind in (Kind.PARQUET, Kind.ARROW, Kind.EXCEL):
        from engine.sources.formats.typed import read_arrow, read_excel, read_parquet

        typed: dict[Kind, Any] = {Kind.PARQUET: read_parquet, Kind.ARROW: read_arrow, Kind.EXCEL: read_excel}
        yield from typed[layout.kind](path, layout)
        return
    try:
        with open_bytes(path) as stream:
            yield from _texts(stream, layout)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"The file cannot be read to its end: {error}") from error


def _texts(stream: BinaryIO, layout: Layout) -> Iterator[Chunk]:
    if layout.kind is Kind.CSV:
        from engine.sources.formats.delimited_text import read_delimited_text

        return read_delimited_text(stream, layout)
    if layout.kind is Kind.JSON:
        from engine.sources.formats.json_text import read_json

        return read_json(stream)
    if layout.kind is Kind.NMEA:
        from engine.sources.formats.nmea import read_nmea

        return read_nmea(stream)
    from engine.sources.formats.xml_tracks import read_gpx, read_kml

    return read_gpx(stream) if layout.kind is Kind.GPX else read_kml(stream)


def chunks_of(records: Iterator[tuple[int, dict[str, Any] | Broken]]) -> Iterator[Chunk]:
    """Numbered records as chunks; what is broken goes along with the rows before it."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    broken: list[Broken] = []
    for line, record in records:
        if isinstance(record, Broken):
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
    """Records as a table: objects within them as columns `outer.inner`, mixed columns as text. Raises Unreadable for too many columns."""
    flat = [record if not any(isinstance(value, dict) for value in record.values()) else flattened(record) for record in records]
    names = dict.fromkeys(name for record in flat for name in record)
    if len(names) > MOST_COLUMNS:
        raise Unreadable(f"The file has more than {MOST_COLUMNS} columns.")
    columns = {name: column_from([record.get(name) for record in flat]) for name in names}
    return pa.table(columns) if columns else pa.table({"$none": pa.nulls(len(records))}).drop_columns(["$none"])


def flattened(record: dict[str, Any], prefix: str = "", depth: int = 4) -> dict[str, Any]:
    """An object without objects in it."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and depth:
            found |= flattened(value, f"{prefix}{name}.", depth - 1)
        else:
            found[prefix + name] = value
    return found


def column_from(values: list[Any]) -> pa.Array:
    """Values of one kind as they are, others as text."""
    try:
        found = pa.array(values)
        if not pa.types.is_nested(found.type):
            return found
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()
