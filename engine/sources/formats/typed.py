"""Files whose columns have types: Parquet, Arrow (file, stream, Feather) and Excel."""

from __future__ import annotations

import json
import mmap
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.model.messages import Message
from engine.sources.files import UnreadableFile
from engine.sources.formats.chunks import CHUNK_ROWS, Chunk, FileFormat, Layout, chunks_of, text_of
from engine.sources.formats.delimited_text import column_names
from engine.sources.places import WKB

BUFFER_BYTES = 1 << 20
"""The part of a column that is read at once: a row group may be as large as the file."""
UNPACKED_BYTES = 500_000_000
"""The maximum decompressed size of a workbook."""
TITLE_ROWS = 10
"""The maximum number of rows of titles above the names."""
LIST_VALUES = 4
"""Lists of more numbers are no places."""
NESTED_BYTES = 16_000_000
"""About the size of the lists and maps that are read at once."""
YEARS = (-62_135_596_800, 253_402_300_799)
"""The years 1 to 9999, as seconds: those of Python's calendar."""


def read_parquet(path: Path, layout: Layout) -> Iterator[Chunk]:
    """Row groups as they are needed. Raises UnreadableFile."""
    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
            yield from _numbered(file.iter_batches(CHUNK_ROWS, use_threads=False))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFile(
            Message("The Parquet file cannot be read: {error}", error=(str(error) or type(error).__name__).splitlines()[0])
        ) from error


def read_arrow(path: Path, layout: Layout) -> Iterator[Chunk]:
    """Record batches in their order. Raises UnreadableFile."""
    try:
        with path.open("rb") as raw:
            # A record batch may be as large as the file: of a mapped file only the rows that
            # are read come into memory.
            mapped = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
        reader = pa.BufferReader(pa.py_buffer(mapped))
        if mapped[:6] == b"ARROW1":
            file = pa.ipc.open_file(reader)
            batches: Any = (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            batches = pa.ipc.open_stream(reader)
        for chunk in _numbered(batches):
            yield chunk
            # Pages that were read would stay with the process until its end.
            mapped.madvise(mmap.MADV_DONTNEED)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise UnreadableFile(Message("The Arrow file cannot be read: {error}", error=(str(error) or type(error).__name__).splitlines()[0])) from error


def geometry_of(path: Path, kind: FileFormat) -> dict[str, Any]:
    """The column of places that the metadata of a GeoParquet file (or of an Arrow file) names, as
    keys of a reading; empty without one.

    References: geoparquet.org, version 1.1.0; a system without a number of EPSG stays open.
    """
    try:
        if kind is FileFormat.PARQUET:
            schema = pq.read_schema(path)
        else:
            with pa.OSFile(str(path)) as raw:
                schema = (pa.ipc.open_file if raw.read(6) == b"ARROW1" else _stream_from_start)(raw).schema
        geo = json.loads((schema.metadata or {}).get(b"geo", b"{}"))
        name = geo["primary_column"]
        column = geo["columns"][name]
        reading = {"x": name, "y": "", "place_format": WKB} if column["encoding"] == "WKB" else {"x": f"{name}.x", "y": f"{name}.y"}
        # Without one it is OGC:CRS84, longitude and latitude; null means that it is unknown.
        crs = "EPSG:4326" if "crs" not in column else _number_of(column["crs"])
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    if column["encoding"] not in ("WKB", "point") or name not in schema.names or not isinstance(name, str):
        return {}
    return reading | ({"crs": crs} if crs else {})


def _stream_from_start(raw: Any) -> Any:
    raw.seek(0)
    return pa.ipc.open_stream(raw)


def _number_of(crs: Any) -> str:
    """The number of EPSG of a system that is written as PROJJSON; "" where it has none."""
    import pyproj

    if not isinstance(crs, dict):
        return ""
    try:
        system = pyproj.CRS.from_json_dict(crs)
    except pyproj.exceptions.CRSError:
        return ""
    if system.to_authority() == ("OGC", "CRS84"):
        return "EPSG:4326"
    number = system.to_epsg()
    return f"EPSG:{number}" if number else ""


def _numbered(batches: Any) -> Iterator[Chunk]:
    row = 1
    for batch in batches:
        rows = _rows_together(batch)
        for begin in range(0, batch.num_rows, rows):
            part = batch.slice(begin, rows)
            # The library would follow offsets that point outside the file.
            part.validate(full=True)
            table = _flat(pa.Table.from_batches([part]))
            yield Chunk(table, np.arange(row, row + table.num_rows))
            row += table.num_rows


def _rows_together(batch: pa.RecordBatch) -> int:
    """The rows of a piece: fewer where lists and maps are long, which become texts."""
    nested: int = sum(column.nbytes for column in batch.columns if pa.types.is_nested(column.type))
    return max(1, min(CHUNK_ROWS, int(batch.num_rows) * NESTED_BYTES // max(nested, 1)))


def _flat(table: pa.Table) -> pa.Table:
    """Structures as columns of their parts, short lists of numbers as texts (a place may be written
    so), other lists and maps as JSON."""
    for _ in range(4):
        if not any(pa.types.is_struct(field.type) for field in table.schema):
            break
        table = table.flatten()
    table = pa.table([_plain(column) for column in table.columns], table.column_names)
    return table.rename_columns(column_names(table.column_names))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of every kind that Arrow has as texts, dictionaries as their values, times
    that no calendar has as none."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([one.storage for one in column.chunks], column.type.storage_type)
    if _is_list_of_numbers(column.type) and not pc.any(pc.greater(pc.list_value_length(column), LIST_VALUES)).as_py():
        return _as_texts(column)
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array(_json_texts(column), pa.string())])
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    kind = pa.string() if pa.types.is_string_view(kind) else pa.binary() if pa.types.is_binary_view(kind) else kind
    column = column if kind == column.type else column.cast(kind)
    if not pa.types.is_timestamp(kind):
        return column
    seconds = column.cast(pa.timestamp("s", kind.tz), safe=False).cast(pa.int64())
    known = pc.and_(pc.greater_equal(seconds, YEARS[0]), pc.less_equal(seconds, YEARS[1]))
    return pc.if_else(known, column, pa.scalar(None, kind))


def _is_list_of_numbers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of a few numbers as "[13.4, 52.5]"."""
    return pc.binary_join_element_wise("[", pc.binary_join(column.cast(pa.list_(pa.string())), ", "), "]", "")


def _json_texts(column: pa.ChunkedArray) -> list[str | None]:
    """Maps as objects if their keys are texts and none is there twice, else as lists of pairs."""
    for maps in ("strict", None):
        try:
            return [None if value is None else text_of(value) for value in column.to_pylist(maps_as_pydicts=maps)]
        except (KeyError, TypeError):
            continue
        except (ValueError, OverflowError):
            break
    return [_json_text(value) for value in column]


def _json_text(value: pa.Scalar) -> str | None:
    try:
        return text_of(value.as_py()) if value.is_valid else None
    except (ValueError, OverflowError):
        # With a time that no calendar has.
        return None


def read_excel(path: Path, layout: Layout) -> Iterator[Chunk]:
    """The rows of a sheet, the first with rows unless one is named, below its line of
    names. Raises UnreadableFile."""
    import openpyxl

    _check_archive(path)
    try:
        # The library would choose the format by the name, which an uploaded file lacks.
        with path.open("rb") as raw:
            book = openpyxl.load_workbook(raw, read_only=True, data_only=True, keep_links=False)
            sheet = book[layout.sheet] if layout.sheet in book.sheetnames else _first_filled(book.worksheets)
            rows = _below_titles(enumerate(sheet.iter_rows(values_only=True), 1))
            names = column_names(["" if cell is None else str(cell) for cell in next(rows, (1, ()))[1]])
            filled = ((number, row) for number, row in rows if any(cell is not None for cell in row))
            yield from chunks_of((number, dict(zip(names, map(_value, row), strict=False))) for number, row in filled)
    except UnreadableFile:
        raise
    except Exception as error:
        # The library raises the errors of its parts.
        raise UnreadableFile(Message("The workbook cannot be read: {error}", error=str(error).partition(chr(10))[0])) from error


def _first_filled(sheets: list[Any]) -> Any:
    """The first sheet with a row below its names; the first where none has one."""
    for sheet in sheets:
        filled = (row for row in sheet.iter_rows(values_only=True) if _cells(row) > 1)
        if next(filled, None) and next(filled, None):
            return sheet
    return sheets[0]


def filled_sheet(path: Path) -> str:
    """The name of the sheet that is read where none is named; "" where it is the
    first, or cannot be read."""
    import openpyxl

    _check_archive(path)
    try:
        with path.open("rb") as raw:
            sheets = openpyxl.load_workbook(raw, read_only=True, data_only=True, keep_links=False).worksheets
            sheet = _first_filled(sheets)
            return "" if sheet is sheets[0] else str(sheet.title)
    except Exception:
        # Reading it reports why.
        return ""


def _below_titles(rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """The rows without those of one cell above the names: titles of a report."""
    above = list(islice(rows, TITLE_ROWS))
    begin = next((at for at, (_, row) in enumerate(above) if _cells(row) > 1), 0)
    return chain(above[begin:], rows)


def _cells(row: Any) -> int:
    return sum(cell is not None for cell in row)


def sheets_of(path: Path) -> list[str]:
    """The names of a workbook's sheets; none where it cannot be read."""
    import openpyxl

    _check_archive(path)
    try:
        with path.open("rb") as raw:
            return list(openpyxl.load_workbook(raw, read_only=True).sheetnames)
    except Exception:
        return []


def _check_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UnreadableFile(Message("The workbook cannot be opened: {error}", error=error)) from error
    if sum(entry.file_size for entry in entries) > UNPACKED_BYTES:
        raise UnreadableFile(Message("The workbook unpacks to more than {most} MB: save it as CSV.", most=UNPACKED_BYTES // 1_000_000))
    if not any(entry.filename == "xl/workbook.xml" for entry in entries):
        raise UnreadableFile(Message("The archive is not an Excel workbook: unpack it, and choose the file in it."))


def _value(cell: Any) -> Any:
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else cell
