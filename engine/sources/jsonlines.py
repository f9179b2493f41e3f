"""JSON lines: each line an object. Blocks go through Arrow's parser; one in which something is unexpected is read line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from engine.model.events import ARROW_TYPES, CheckedRows, DeadLetter, Reason
from engine.model.feed import ColumnType, Feed
from engine.model.messages import Message
from engine.sources.files import JOINT, PLUS, Columns, Piece, Unreadable, alive, blocks, located
from engine.sources.values import Bools, column_of

SHOWN = 1000
"""Characters of an unreadable line that its dead letter shows."""


def read_json_lines(path: Path, stream: BinaryIO, columns: Columns) -> Iterator[Piece]:
    """Pieces of the file in order. Keys the feed does not declare are ignored."""
    reader, line, empty = _Reader(path, columns), 1, True
    for block in blocks(stream):
        empty = False
        if line == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        yield reader.read(block, line)
        line += block.count(b"\n")
    if empty:
        raise Unreadable(f"{path}: the file is empty (zero bytes)")


class _Reader:
    """Reads blocks of one file; `numbers_as_text` are text columns that were seen to hold whole numbers."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.feed = columns.feed
        self.numbers_as_text: frozenset[str] = frozenset()

    def read(self, block: bytes, first_line: int) -> Piece:
        table = self._fast(block)
        if table is None:
            return self._slow(block, first_line)
        names = {ours: theirs for ours, theirs in self.columns.sources.items() if theirs in table.column_names}
        extra = table.column(self.columns.extra) if self.columns.extra is not None else None
        rows = table.select(list(names.values())).rename_columns(list(names))
        checked = CheckedRows(rows, self.feed)
        lines = range(first_line, first_line + rows.num_rows)
        return Piece(checked.good(), rows.num_rows, lambda: located(checked.dead(), self.path, lines), alive(checked, extra))

    def _fast(self, block: bytes) -> pa.Table | None:
        """The block's rows, one for each line; null when it is not that simple."""
        # The type of the column of arrival is the file's own affair.
        if self.columns.extra is not None and self.columns.extra not in self.columns.sources.values():
            return None
        if any(PLUS in theirs for theirs in self.columns.renamed.values()):
            return None
        fields = {theirs: ARROW_TYPES[self._kind(ours)] for ours, theirs in self.columns.sources.items()}
        options = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
        try:
            # Arrow takes bytes for text without looking.
            if not block.isascii():
                block.decode()
            table = pj.read_json(pa.BufferReader(block), pj.ReadOptions(use_threads=False, block_size=len(block) + 1), options)
        except (pa.ArrowException, OverflowError, UnicodeDecodeError):
            return None
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        return table if table.num_rows == lines else None

    def _kind(self, name: str) -> ColumnType:
        return ColumnType.INT if name in self.numbers_as_text else self.feed.types[name]

    def _slow(self, block: bytes, first_line: int) -> Piece:
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        letters: list[DeadLetter] = []
        for number, line in enumerate(block.split(b"\n"), first_line):
            if line.strip():
                try:
                    rows.append(_object(line))
                    lines.append(number)
                except ValueError as error:
                    text = line.decode(errors="replace").rstrip("\r")[:SHOWN]
                    letters.append(
                        DeadLetter(Reason.MALFORMED, Message("no JSON object: {error}", error=error), {"text": text}, None, number, self.path.name)
                    )
        checked = self._checked(rows)
        extra = _extra_column([row.get(self.columns.extra) for row in rows]) if self.columns.extra is not None else None

        def dead() -> list[DeadLetter]:
            return sorted([*letters, *located(checked.dead(), self.path, lines)], key=lambda letter: letter.line or 0)

        return Piece(checked.good(), len(rows) + len(letters), dead, alive(checked, extra))

    def _checked(self, rows: list[dict[str, Any]]) -> CheckedRows:
        unread: dict[str, Bools] = {}
        arrays = {}
        for ours, theirs in self.columns.sources.items():
            values = [_value(row, theirs) for row in rows]
            kind = self.feed.types[ours]
            arrays[ours], wrong = column_of(values, kind, text=False)
            if wrong is not None:
                unread[ours] = wrong
            if kind is ColumnType.STRING and values and all(isinstance(value, int) and not isinstance(value, bool) for value in values):
                self.numbers_as_text |= {ours}
        return _JsonRows(pa.table(arrays), self.feed, unread, rows)


class _JsonRows(CheckedRows):
    """Checked rows that show their objects as they stood in the file."""

    def __init__(self, table: pa.Table, feed: Feed, unread: dict[str, Bools], objects: list[dict[str, Any]]) -> None:
        super().__init__(table, feed, unread)
        self.objects = objects

    def dead(self) -> list[DeadLetter]:
        return [self.letter(position, self.objects[position]) for position in np.flatnonzero(self.fault).tolist()]


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except RecursionError:
        raise ValueError(Message("nested too deeply")) from None
    if not isinstance(found, dict):
        raise ValueError(Message("the line holds another kind of value"))
    return found


def _value(row: dict[str, Any], source: str) -> Any:
    """The value under a key, or those of several joined."""
    if source in row or PLUS not in source:
        return row.get(source)
    parts = [row.get(part) for part in source.split(PLUS)]
    return None if any(part is None for part in parts) else JOINT.join(map(str, parts))


def _extra_column(values: list[Any]) -> pa.ChunkedArray:
    """Values of the column of arrival: numbers if all are, else text."""
    given = [value for value in values if value is not None]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in given):
        return pa.chunked_array([pa.array([None if value is None else str(value) for value in values], pa.string())])
    kind = pa.int64() if all(isinstance(value, int) and abs(value) < 2**63 for value in given) else pa.float64()
    return pa.chunked_array([pa.array(values, kind)])
