"""The rows of files and other texts of events, checked, in bounded memory: the one way in for
`backtest`, folders and bodies of requests.

Rows come in file order, files of a folder in name order. A line that cannot be read becomes a dead
letter; what cannot be read as a whole raises UnreadableFile. A format has one contract,
`Iterator[bytes] -> Iterator[CheckedChunk]` for texts, and a source one: an iterator of whole lines.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from engine.model.events import CheckedRows, DeadLetter
from engine.model.messages import Message
from engine.sources.files import COMPRESSIONS, JSON_LINES, PARQUET, TSV, CheckedChunk, Columns, UnreadableFile, format_of, with_joined, zstd_stream
from engine.sources.lines import blocks, blocks_of_lines

PARQUET_ROWS = 131_072
EMPTY = Message("the file is empty (zero bytes); a file without events still has a header or a first line")


def read_files(paths: Sequence[Path], columns: Columns) -> Iterator[CheckedChunk]:
    """The rows of all files. Raises UnreadableFile with the file's name."""
    for path in paths:
        try:
            for piece in read_file(path, columns):
                yield replace(piece, dead=partial(_dead_of, path, piece))
        except UnreadableFile as error:
            raise UnreadableFile(f"{path}: {error}") from error
        except OSError as error:
            raise UnreadableFile(f"{path}: {error}") from error


def _dead_of(path: Path, piece: CheckedChunk) -> list[DeadLetter]:
    return [replace(letter, source=path.name) for letter in piece.dead()]


def read_file(path: Path, columns: Columns, rows: int | None = None) -> Iterator[CheckedChunk]:
    """The rows of a file in pieces; with `rows`, each has exactly this many rows, or lines after
    the header. Raises UnreadableFile, OSError."""
    if path.stat().st_size == 0:
        raise UnreadableFile(EMPTY)
    kind = format_of(path)
    try:
        if kind == PARQUET:
            yield from _read_parquet(path, columns, rows)
            return
        found = False
        with open_text(path) as stream:
            for piece in read_text(stream, kind, columns, rows):
                found = True
                yield piece
    except (EOFError, zlib.error, pa.ArrowException, OSError) as error:
        # Errors of a disk have a number, errors of a library about a file have none.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise UnreadableFile(Message("the file cannot be read to its end: {error}", error=first)) from error
    if kind == JSON_LINES and not found:
        raise UnreadableFile(EMPTY)


def read_text(stream: BinaryIO, kind: str, columns: Columns, rows: int | None = None) -> Iterator[CheckedChunk]:
    """The rows of a text in one of the formats CSV, TSV and JSON_LINES. Raises UnreadableFile,
    and what the stream raises."""
    if kind == JSON_LINES:
        from engine.sources.jsonlines import read_json_lines

        return read_json_lines(blocks(stream) if rows is None else blocks_of_lines(stream, rows), columns)
    from engine.sources.delimited import read_delimited

    pieces = blocks(stream) if rows is None else chain(islice(blocks_of_lines(stream, 1), 1), blocks_of_lines(stream, rows))
    return read_delimited(pieces, columns, "\t" if kind == TSV else ",")


def open_text(path: Path) -> BinaryIO:
    """The decompressed bytes of a file."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix in (".zst", ".zstd"):
        return zstd_stream(path)
    return path.open("rb")


def _read_parquet(path: Path, columns: Columns, rows: int | None) -> Iterator[CheckedChunk]:
    import pyarrow.parquet as pq

    with _opened(path, mapped=rows is None) as raw, pq.ParquetFile(raw, pre_buffer=False) as file:
        names = file.schema_arrow.names
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise UnreadableFile(Message("Two columns have the same name: {names}.", names=", ".join(map(repr, twice))[:200]))
        present = columns.present(names)
        for batch in file.iter_batches(rows or PARQUET_ROWS, columns=columns.needed(present, names)):
            table = with_joined(pa.Table.from_batches([batch]), present.values())
            checked = CheckedRows(table.select(list(present.values())).rename_columns(list(present)), columns.feed)
            yield CheckedChunk.of(checked, checked.dead, None if columns.extra is None else table.column(columns.extra))


def _opened(path: Path, *, mapped: bool) -> pa.NativeFile:
    if path.suffix.lower() in COMPRESSIONS:
        # Parquet is read from its end: a compressed file has to be unpacked first.
        with open_text(path) as stream:
            return pa.BufferReader(stream.read())
    # Row groups are read on demand; a memory map lets the system free what was read. Truncating a
    # mapped file ends the process.
    return pa.memory_map(str(path)) if mapped else pa.OSFile(str(path))
