"""CSV with a header line: typed by Arrow where that gives what reading record by record
gives, at a tenth of the time.

A field in quotes may hold delimiters, doubled quotes and line breaks. An empty
field is a missing value.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from engine.model.events import ARROW_TYPES, CheckedRows, DeadLetter
from engine.model.feed import ColumnType
from engine.model.messages import Message
from engine.sources.csv_records import Block, Record, blocks_of_records, parts_of_block, records_at, records_of
from engine.sources.files import CheckedChunk, Columns, UnreadableFile, malformed, with_joined
from engine.sources.lines import UTF8_MARK
from engine.sources.values import column_of, value_or_text


def read_delimited(pieces: Iterator[bytes], columns: Columns, delimiter: str) -> Iterator[CheckedChunk]:
    """The rows of a text that comes in pieces of whole lines, a CheckedChunk for each. Raises
    UnreadableFile when no row of it could be an event."""
    header, _, rest = next(pieces, b"").removeprefix(UTF8_MARK).partition(b"\n")
    names = names_of(header, delimiter)
    reader = _Reader(names, columns.present(names, delimiter), columns, delimiter)
    for block in blocks_of_records(chain([rest] if rest else [], pieces), delimiter, line=2):
        yield reader.read(block)


def names_of(header: bytes, delimiter: str) -> list[str]:
    """The columns that a header names. Raises UnreadableFile."""
    try:
        names = [name.strip() for name in next(csv.reader([header.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(Message("The line of column names cannot be read: {error}", error=error)) from error
    if not any(names):
        raise UnreadableFile(Message("CSV begins with a line of column names."))
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UnreadableFile(Message("Two columns have the same name: {names}.", names=", ".join(map(repr, twice))[:200]))
    return names


class _Reader:
    """Reads blocks of a text whose header has been read."""

    def __init__(self, names: list[str], present: dict[str, str], columns: Columns, delimiter: str) -> None:
        self.names, self.present, self.columns, self.delimiter = names, present, columns, delimiter
        self.feed = columns.feed
        self.wanted = columns.needed(present, names)
        self.kinds = {source: self.feed.types[name] for name, source in reversed(present.items())}

    def read(self, block: Block) -> CheckedChunk:
        if block.records is None:
            if piece := self._at_once(block):
                return piece
            if len(parts := parts_of_block(block)) > 1:
                return CheckedChunk.joined([self.read(part) for part in parts], self.feed)
        return self._by_record(records_of(block, self.delimiter))

    def _at_once(self, block: Block) -> CheckedChunk | None:
        table = self._typed(block.data)
        if table is None:
            return None
        checked = CheckedRows(table.select(list(self.present.values())).rename_columns(list(self.present)), self.feed)
        return CheckedChunk.of(checked, lambda: self._letters(checked, records_at(block, checked.positions, self.delimiter)), self._ordered(table))

    def _typed(self, data: bytes) -> pa.Table | None:
        """The wanted columns of plain records; null when a value does not fit its type, or when
        Arrow may take one that we do not."""
        # To Arrow `0x1f` is an integer and `nan(1)` a number. A single sign is found a
        # hundred times as fast as two.
        if (b"x" in data and b"0x" in data) or (b"X" in data and b"0X" in data):
            return None
        kinds = {name: ARROW_TYPES[self.kinds.get(name, ColumnType.STRING)] for name in self.wanted}
        quoted = b'"' in data
        try:
            table = pv.read_csv(
                pa.BufferReader(data),
                pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names),
                pv.ParseOptions(delimiter=self.delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted),
                pv.ConvertOptions(
                    include_columns=self.wanted,
                    column_types=kinds,
                    null_values=[""],
                    strings_can_be_null=True,
                    true_values=["true", "True", "TRUE", "1"],
                    false_values=["false", "False", "FALSE", "0"],
                ),
            )
        except pa.ArrowException:
            return None
        return None if b"(" in data and _has_nan(table) else with_joined(table, self.present.values())

    def _by_record(self, records: Sequence[Record]) -> CheckedChunk:
        """The records by Python's reader, each value for itself."""
        good = [one for one in records if one.problem is None and len(one.cells) == len(self.names)]
        at = {name: i for i, name in enumerate(self.names)}
        raw = with_joined(
            pa.table({name: pa.array([one.cells[at[name]] or None for one in good], pa.string()) for name in self.wanted}), self.present.values()
        )
        read = {name: column_of(raw.column(source).to_pylist(), self.feed.types[name], text=True) for name, source in self.present.items()}
        unread = {name: wrong for name, (_, wrong) in read.items() if wrong is not None}
        checked = CheckedRows(pa.table({name: column for name, (column, _) in read.items()}), self.feed, unread)
        broken = [one for one in records if one.problem is not None or len(one.cells) != len(self.names)]

        def dead() -> list[DeadLetter]:
            letters = [malformed(one.problem or _fields(len(one.cells), len(self.names)), one.text, one.line) for one in broken]
            return sorted([*letters, *self._letters(checked, [good[at] for at in checked.positions])], key=lambda letter: letter.line or 0)

        return CheckedChunk.of(checked, dead, self._ordered(raw), broken=len(broken))

    def _letters(self, checked: CheckedRows, records: Sequence[Record]) -> list[DeadLetter]:
        """Dead letters of the checked rows that are no events, which came in `records`."""
        return [checked.letter(at, self._shown(one.cells), one.line) for at, one in zip(checked.positions, records, strict=True)]

    def _shown(self, cells: Sequence[str]) -> dict[str, Any]:
        """The original values of a row, those of the feed's columns in their types if possible."""
        return {
            name: value_or_text(cell, self.kinds.get(name, ColumnType.STRING)) if cell else None for name, cell in zip(self.names, cells, strict=True)
        }

    def _ordered(self, table: pa.Table) -> pa.ChunkedArray | None:
        """The column of arrival: numbers when it is a number of the feed, else as text; texts of
        whole numbers are numbers."""
        if self.columns.extra is None:
            return None
        column = table.column(self.columns.extra)
        if pa.types.is_string(column.type):
            values = column.to_pylist()
            for kind in (ColumnType.INT, ColumnType.FLOAT):
                numbers, wrong = column_of(values, kind, text=True)
                if wrong is None:
                    return pa.chunked_array([numbers])
        return column


def _has_nan(table: pa.Table) -> bool:
    return any(pc.any(pc.is_nan(column)).as_py() for column in table.columns if pa.types.is_floating(column.type))


def _fields(actual: int, expected: int) -> Message:
    return Message("fields in the line: {count}, in the header: {expected}", count=actual, expected=expected)
