"""Recordings in common file formats, read as tables with the file's own columns,
a bounded piece at a time.

A `Reading` (engine/sources/reading.py) defines what the columns mean. These readers run libraries
on untrusted files: in the web application they run in a caged process
(webapp/feeds/uploads/reader.py).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from engine.model.messages import Message
from engine.sources.files import UnreadableFile, zstd_stream
from engine.sources.formats.chunks import (
    CHUNK_ROWS,
    HEAD_BYTES,
    SHOWN,
    Chunk,
    FileFormat,
    InvalidLine,
    Layout,
    chunks_of,
    column_from,
    excerpt,
    flattened,
    table_of,
)  # fmt: skip

__all__ = [
    "CHUNK_ROWS", "HEAD_BYTES", "SHOWN", "Chunk", "FileFormat", "InvalidLine", "Layout", "chunks_of", "column_from", "excerpt", "flattened",
    "head_of", "kind_of", "open_bytes", "read_chunks", "table_of",
]  # fmt: skip


def kind_of(head: bytes, name: str) -> FileFormat:
    """The format of a file, from its decompressed first bytes; its name
    decides between text formats."""
    if head.startswith(b"PAR1"):
        return FileFormat.PARQUET
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return FileFormat.ARROW
    if head.startswith(b"PK"):
        return FileFormat.EXCEL
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<"):
        return FileFormat.KML if b"<kml" in head[:5_000].lower() or name.lower().endswith(".kml") else FileFormat.GPX
    if text.startswith((b"{", b"[")):
        return FileFormat.JSON
    return FileFormat.NMEA if any(sign in head for sign in (b"VDM,", b"VDO,")) else FileFormat.CSV


def open_bytes(path: Path) -> BinaryIO:
    """The unpacked bytes of a file."""
    stream = path.open("rb")
    packed = stream.read(4)
    stream.seek(0)
    if packed.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if packed == b"\x28\xb5\x2f\xfd":
        stream.close()
        return zstd_stream(path)
    return stream


def head_of(path: Path) -> bytes:
    """The first unpacked bytes of a file. Raises UnreadableFile."""
    try:
        with open_bytes(path) as stream:
            head = stream.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(Message("The file cannot be unpacked: {error}", error=error)) from error
    if not head:
        raise UnreadableFile(Message("The file has no bytes."))
    return head


def read_chunks(path: Path, layout: Layout) -> Iterator[Chunk]:
    """The rows of a file in its order. Raises UnreadableFile; rows before the fault have been
    yielded."""
    # Each reader imports its libraries.
    if layout.kind in (FileFormat.PARQUET, FileFormat.ARROW, FileFormat.EXCEL):
        from engine.sources.formats.typed import read_arrow, read_excel, read_parquet

        typed: dict[FileFormat, Any] = {FileFormat.PARQUET: read_parquet, FileFormat.ARROW: read_arrow, FileFormat.EXCEL: read_excel}
        yield from typed[layout.kind](path, layout)
        return
    try:
        with open_bytes(path) as stream:
            yield from _texts(stream, layout)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(Message("The file cannot be read to its end: {error}", error=error)) from error


def _texts(stream: BinaryIO, layout: Layout) -> Iterator[Chunk]:
    if layout.kind is FileFormat.CSV:
        from engine.sources.formats.delimited_text import read_delimited_text

        return read_delimited_text(stream, layout)
    if layout.kind is FileFormat.JSON:
        from engine.sources.formats.json_text import read_json

        return read_json(stream)
    if layout.kind is FileFormat.NMEA:
        from engine.sources.formats.nmea import read_nmea

        return read_nmea(stream)
    from engine.sources.formats.xml_tracks import read_gpx, read_kml

    return read_gpx(stream) if layout.kind is FileFormat.GPX else read_kml(stream)
