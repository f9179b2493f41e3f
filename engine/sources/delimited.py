"""CSV with a header line. Three ways, from fast to patient: typed by Arrow; as text by Arrow and each column brought into its type; line by line.

A field in quotes may hold delimiters, doubled quotes and line breaks. An empty field is a missing value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pv

from engine.model.events import ARROW_TYPES, CheckedRows, DeadLetter, Reason
from engine.model.feed import ColumnType
from engine.model.messages import Message
from engine.sources.files import Columns, Piece, Unreadable, alive, blocks, located, with_joined
from engine.sources.values import Bools, column_of

Ints = npt.NDArray[np.int64]
SHOWN = 1000
"""Characters of an unreadable line that its dead letter shows."""
MAX_LINES = 1000
"""A field in quotes spans at most this many lines: after a stray quote the rest of the file is not lost."""
NOT_UTF8 = Message("the line is not UTF-8")
csv.field_size_limit(1 << 20)


def read_delimited(path: Path, stream: BinaryIO, columns: Columns, delimiter: str) -> Iterator[Piece]:
    """Pieces of the file in order. Raises Unreadable when there is no header or a needed column is missing."""
    reader: _Reader | None = None
    line = 1
    for block in whole_records(blocks(stream)):
        if reader is None:
            block = block.removeprefix(b"\xef\xbb\xbf")
            header, newline, block = block.partition(b"\n")
            reader = _Reader(path, _names(path, header, delimiter), columns, delimiter)
            line += 1 if newline else 0
        if block.strip(b"\r\n"):
            yield reader.read(block, line)
        line += block.count(b"\n")
    if reader is None:
        raise Unreadable(f"{path}: the file is empty (zero bytes)")


def _names(path: Path, header: bytes, delimiter: str) -> list[str]:
    try:
        names = next(csv.reader([header.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(f"{path}: the header line cannot be read: {error}") from error
    names = [name.strip() for name in names]
    if not any(names):
        raise Unreadable(f"{path}: the first line is no header of column names")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise Unreadable(f"{path}: the header names a column twice: {', '.join(twice)}")
    return names


def whole_records(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that do not end inside a field in quotes, as far as counting quotes shows."""
    held = b""
    for piece in pieces:
        held += piece
        if held.count(b'"') % 2 == 0:
            yield held
            held = b""
            continue
        cut = _last_even_line(held)
        if cut:
            yield held[:cut]
            held = held[cut:]
        elif held.count(b"\n") > MAX_LINES:
            yield held
            held = b""
    if held:
        yield held


def _last_even_line(block: bytes) -> int:
    """Where the last line begins before which the number of quotes is even; 0 if that is far from the end."""
    quotes = block.count(b'"')
    end = len(block)
    for _ in range(MAX_LINES):
        begin = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', begin, end)
        if begin == 0 or quotes % 2 == 0:
            return begin if quotes % 2 == 0 else 0
        end = begin
    return 0


class _Reader:
    """Reads blocks of one file whose header has been read."""

    def __init__(self, path: Path, names: list[str], columns: Columns, delimiter: str) -> None:
        self.path, self.names, self.columns, self.delimiter = path, names, columns, delimiter
        self.feed = columns.feed
        self.present = columns.present(path, names)
        self.wanted = columns.needed(self.present, names)

    def read(self, block: bytes, first_line: int) -> Piece:
        # Only a block without quotes and without empty lines has its rows where its lines are.
        if b'"' not in block and not _has_blank_line(block):
            parsed = self._parsed(block, first_line, self._types(), np.arange(first_line, first_line + block.count(b"\n") + 1))
            if parsed is not None:
                return parsed
            return self._as_text(block, first_line)
        # Line numbers are asked for only where rows are refused.
        parsed = self._parsed(block, first_line, self._types(), None)
        return parsed if parsed is not None and not parsed.dead_count else self._by_line(block, first_line)

    def _types(self) -> dict[str, pa.DataType]:
        # What is joined is joined as text.
        texts = dict.fromkeys(self.wanted, pa.string())
        return texts | {theirs: ARROW_TYPES[self.feed.types[ours]] for ours, theirs in self.present.items() if theirs in texts}

    def _table(self, block: bytes, types: dict[str, pa.DataType]) -> tuple[pa.Table, list[pv.InvalidRow]]:
        """The wanted columns, and the rows with a wrong number of fields. Raises ArrowException."""
        invalid: list[pv.InvalidRow] = []

        def skip(row: pv.InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        table = pv.read_csv(
            pa.BufferReader(block),
            pv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.names),
            pv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip),
            pv.ConvertOptions(
                include_columns=self.wanted,
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                true_values=["true", "True", "TRUE", "1"],
                false_values=["false", "False", "FALSE", "0"],
            ),
        )
        return with_joined(table, self.present.values()), invalid

    def _parsed(self, block: bytes, first_line: int, types: dict[str, pa.DataType], lines: Ints | None) -> Piece | None:
        """The block by Arrow's types; null when a value does not fit its type or a line has a wrong number of fields where lines are unknown."""
        try:
            table, invalid = self._table(block, types)
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if invalid and lines is None:
            return None
        return self._piece(table, invalid, first_line, {}, lines)

    def _as_text(self, block: bytes, first_line: int) -> Piece:
        """The block as text, each column brought into its type value by value where the quick way fails."""
        try:
            table, invalid = self._table(block, dict.fromkeys(self.wanted, pa.string()))
        except (pa.ArrowException, UnicodeDecodeError):
            return self._by_line(block, first_line)
        return self._piece(table, invalid, first_line, self._typed(table), np.arange(first_line, first_line + block.count(b"\n") + 1))

    def _typed(self, table: pa.Table) -> dict[str, tuple[pa.Array, Bools | None]]:
        return {ours: column_of(table.column(theirs).to_pylist(), self.feed.types[ours], text=True) for ours, theirs in self.present.items()}

    def _piece(
        self,
        table: pa.Table,
        invalid: Sequence[pv.InvalidRow],
        first_line: int,
        typed: dict[str, tuple[pa.Array, Bools | None]],
        lines: Ints | None,
    ) -> Piece:
        raw = table.select(list(self.present.values())).rename_columns(list(self.present))
        rows = pa.table({ours: column for ours, (column, _) in typed.items()}) if typed else raw
        unread = {ours: wrong for ours, (_, wrong) in typed.items() if wrong is not None}
        checked = CheckedRows(rows, self.feed, unread, raw)
        extra = self._ordered(table)
        # Rows with a wrong number of fields are in no table: the lines after them move up.
        broken = [first_line + row.number - 1 for row in invalid]
        kept = np.setdiff1d(lines, broken) if lines is not None else None

        def dead() -> list[DeadLetter]:
            letters = [
                self._malformed(_fields(row.actual_columns, row.expected_columns), row.text, line) for row, line in zip(invalid, broken, strict=True)
            ]
            found = [*letters, *located(checked.dead(), self.path, None if kept is None else kept.tolist())]
            return sorted(found, key=lambda letter: letter.line or 0)

        return Piece(checked.good(), table.num_rows + len(invalid), dead, alive(checked, extra))

    def _ordered(self, table: pa.Table) -> pa.ChunkedArray | None:
        """The column of arrival: numbers when it is a number of the feed, else as text; texts of whole numbers are numbers."""
        if self.columns.extra is None:
            return None
        column = table.column(self.columns.extra)
        if pa.types.is_string(column.type):
            values = column.to_pylist()
            numbers, wrong = column_of(values, ColumnType.INT, text=True)
            if wrong is None:
                return pa.chunked_array([numbers])
            numbers, wrong = column_of(values, ColumnType.FLOAT, text=True)
            if wrong is None:
                return pa.chunked_array([numbers])
        return column

    def _malformed(self, problem: Message, text: str, line: int) -> DeadLetter:
        return DeadLetter(Reason.MALFORMED, problem, {"text": text[:SHOWN]}, None, line, self.path.name)

    def _by_line(self, block: bytes, first_line: int) -> Piece:
        """The block by Python's reader, one record at a time, each with the line where it begins."""
        records: list[list[str]] = []
        lines: list[int] = []
        letters: list[DeadLetter] = []
        for number, text, fields, problem in csv_records(block, first_line, self.delimiter):
            if problem is None and len(fields) != len(self.names):
                problem = _fields(len(fields), len(self.names))
            if problem is None:
                records.append(fields)
                lines.append(number)
            else:
                letters.append(self._malformed(problem, text, number))
        at = {name: i for i, name in enumerate(self.names)}
        cells = {name: pa.array([record[at[name]] or None for record in records], pa.string()) for name in self.wanted}
        table = with_joined(pa.table(cells), self.present.values())
        piece = self._piece(table, [], first_line, self._typed(table), np.array(lines, np.int64))

        def dead() -> list[DeadLetter]:
            return sorted([*letters, *piece.dead()], key=lambda letter: letter.line or 0)

        return Piece(piece.rows, piece.read + len(letters), dead, piece.extra)


def _has_blank_line(block: bytes) -> bool:
    return block.startswith((b"\n", b"\r\n")) or b"\n\n" in block or b"\n\r\n" in block


def _fields(actual: int | None, expected: int) -> Message:
    return Message("the line has {count} fields, the header {expected}", count=actual, expected=expected)


def csv_records(block: bytes, first_line: int, delimiter: str) -> Iterator[tuple[int, str, list[str], Message | None]]:
    """(line, text, fields, null or why they cannot be read) of each record; a field that stays open is the fault of its first line alone."""
    raw = block.split(b"\n")
    if raw and not raw[-1]:
        raw.pop()
    position = 0
    while position < len(raw):
        number, taken, problem = first_line + position, 1, None
        text, fields = "", list[str]()
        if raw[position].strip(b"\r"):
            text, fields, taken, problem = _record(raw, position, delimiter)
            yield number, text, fields, problem
        position += taken


def _record(raw: Sequence[bytes], position: int, delimiter: str) -> tuple[str, list[str], int, Message | None]:
    first = raw[position].decode(errors="replace").rstrip("\r")
    for taken in range(1, min(MAX_LINES, len(raw) - position) + 1):
        joined = b"\n".join(raw[position : position + taken])
        if taken > 1 and joined.count(b'"') % 2:
            continue
        try:
            text = joined.decode().removesuffix("\r")
            return text, next(csv.reader([text], delimiter=delimiter, strict=True)), taken, None
        except UnicodeDecodeError:
            return first, [], 1, NOT_UTF8
        except csv.Error as error:
            if "unexpected end" not in str(error):
                return first, [], 1, Message("the line cannot be read: {error}", error=error)
    return first, [], 1, Message("a quote is opened and not closed")
