"""The rows of files of events, in bounded memory.

Rows come in file order, files of a folder in name order. A line that cannot be read becomes a dead letter; a file that cannot be read as a whole
raises Unreadable.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from engine.model.events import CheckedRows
from engine.sources.files import COMPRESSIONS, JSON_LINES, PARQUET, TSV, Columns, Piece, Unreadable, alive, format_of, located, with_joined

PARQUET_ROWS = 131_072


def read_files(paths: Sequence[Path], columns: Columns) -> Iterator[Piece]:
    """The rows of all files, checked. Raises Unreadable."""
    for path in paths:
        try:
            yield from _read(path, columns)
        except Unreadable:
            raise
        except (OSError, EOFError, pa.ArrowException) as error:
            raise Unreadable(f"{path}: {str(error).splitlines()[0]}") from error


def _read(path: Path, columns: Columns) -> Iterator[Piece]:
    if path.stat().st_size == 0:
        raise Unreadable(f"{path}: the file is empty (zero bytes); a file without events still has a header or a first line")
    kind = format_of(path)
    if kind == PARQUET:
        yield from _read_parquet(path, columns)
        return
    with open_text(path) as stream:
        if kind == JSON_LINES:
            from engine.sources.jsonlines import read_json_lines

            yield from read_json_lines(path, stream, columns)
        else:
            from engine.sources.delimited import read_delimited

            yield from read_delimited(path, stream, columns, "\t" if kind == TSV else ",")


def open_text(path: Path) -> BinaryIO:
    """The decompressed bytes of a file."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix in (".zst", ".zstd"):
        return cast(BinaryIO, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    return path.open("rb")


def _read_parquet(path: Path, columns: Columns) -> Iterator[Piece]:
    import pyarrow.parquet as pq

    with _opened(path) as raw, pq.ParquetFile(raw, pre_buffer=False) as file:
        names = columns.present(path, file.schema_arrow.names)
        for batch in file.iter_batches(PARQUET_ROWS, columns=columns.needed(names, file.schema_arrow.names)):
            table = with_joined(pa.Table.from_batches([batch]), names.values())
            yield checked_piece(path, table.select(list(names.values())).rename_columns(list(names)), columns, extra=_extra(table, columns))


def _opened(path: Path) -> pa.NativeFile:
    if path.suffix.lower() in COMPRESSIONS:
        # Parquet is read from its end: a compressed file has to be unpacked first.
        with open_text(path) as stream:
            return pa.BufferReader(stream.read())
    # Row groups are read as they are needed; a memory map lets the system drop what was read.
    return pa.memory_map(str(path))


def _extra(table: pa.Table, columns: Columns) -> pa.ChunkedArray | None:
    return None if columns.extra is None else table.column(columns.extra)


def checked_piece(path: Path, table: pa.Table, columns: Columns, *, extra: pa.ChunkedArray | None = None) -> Piece:
    """Rows that have no line numbers, checked."""
    checked = CheckedRows(table, columns.feed)
    return Piece(checked.good(), table.num_rows, lambda: located(checked.dead(), path), alive(checked, extra))
