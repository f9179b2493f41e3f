"""JSON lines: each line an object. Blocks go through Arrow's parser where that gives what reading
line by line gives, at a tenth of the time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from engine.model.events import ARROW_TYPES, CheckedRows, DeadLetter
from engine.model.feed import ColumnType
from engine.model.messages import Message, message_of
from engine.sources.files import JOINT, PLUS, CheckedChunk, Columns, UnreadableFile, malformed
from engine.sources.lines import LINE_BYTES, TOO_LONG, UTF8_MARK, has_longer_line, parts_of
from engine.sources.values import Cell, column_of, value_or_text

PLAIN_BYTES, PLAIN_DEPTH = 4_000, 100
"""Longer and deeper lines are read by themselves: Python refuses integers of more than 4,300
digits, and a thousand levels."""
_MINUS_ZERO = re.compile(rb"-0[,}\]\s]")
"""An integer: as a float it has no sign."""
_LIST = re.compile(rb"[ \t]*\[[ \t]*(\{[^\n]*|\r?)(\Z|\n(?![ \t]*\{[^\n]*\}[ \t]*\r?(\n|\Z)))")
"""The first line of a list of objects; if an object of its own is in the next line, it
is only a malformed line."""
_INFINITY = re.compile(rb"[:\s,\[-]Inf")
"""Arrow knows more names for it than Python."""


def read_json_lines(pieces: Iterator[bytes], columns: Columns) -> Iterator[CheckedChunk]:
    """The rows of a text that comes in pieces of whole lines, a CheckedChunk for each. Keys the
    feed does not declare are ignored.

    Raises UnreadableFile for one list of objects: as lines, all of it would be dead letters.
    """
    reader, line = _Reader(columns), 1
    for block in _without_mark(pieces):
        if line == 1 and _LIST.match(block):
            raise UnreadableFile(Message("this is a JSON list; write one object per line, as jq -c '.[]' does"))
        yield reader.read(block, line)
        line += block.count(b"\n")


def _without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same text; the first piece has two lines, if there are two."""
    first = next(pieces, b"")
    if first.count(b"\n") < 2:
        first += next(pieces, b"")
    return chain([first.removeprefix(UTF8_MARK)] if first else [], pieces)


class _Reader:
    """Reads blocks of one text."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.feed = columns, columns.feed
        self.kinds = {source: self.feed.types[name] for name, source in reversed(columns.sources.items())}
        # The type of the column of arrival is the file's own affair.
        self.is_plain = (columns.extra is None or columns.extra in self.kinds) and not any(PLUS in source for source in self.kinds)

    def read(self, block: bytes, line: int) -> CheckedChunk:
        if piece := self._at_once(block, line):
            return piece
        parts = list(parts_of(block, np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1))
        if len(parts) == 1:
            return self._by_line(block, line)
        lines = accumulate((part.count(b"\n") for part in parts), initial=line)
        return CheckedChunk.joined([self.read(part, first) for part, first in zip(parts, lines, strict=False)], self.feed)

    def _at_once(self, block: bytes, line: int) -> CheckedChunk | None:
        table = self._typed(block) if self.is_plain and _is_plain(block) else None
        if table is None:
            return None
        names = {name: source for name, source in self.columns.sources.items() if source in table.column_names}
        checked = CheckedRows(table.select(list(names.values())).rename_columns(list(names)), self.feed)

        def dead() -> list[DeadLetter]:
            lines = block.split(b"\n")
            return [checked.letter(at, json.loads(lines[at]), line + at) for at in checked.positions]

        return CheckedChunk.of(checked, dead, None if self.columns.extra is None else table.column(self.columns.extra))

    def _typed(self, block: bytes) -> pa.Table | None:
        """The block's rows, one for each line; null when they have to be read one by one."""
        texts = self._numbers_as_texts(block)
        fields = {source: ARROW_TYPES[ColumnType.INT if source in texts else kind] for source, kind in self.kinds.items()}
        options = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
        try:
            # Arrow accepts bytes as text without a check.
            if not block.isascii():
                block.decode()
            table = pj.read_json(pa.BufferReader(block), pj.ReadOptions(use_threads=False, block_size=len(block) + 1), options)
        except (pa.ArrowException, OverflowError, UnicodeDecodeError):
            return None
        return table if table.num_rows == _count_lines(block) and not _has_infinity(table) else None

    def _numbers_as_texts(self, block: bytes) -> set[str]:
        """The columns of text that are numbers in the first row, as ids often are."""
        try:
            first = json.loads(block[: block.find(b"\n") + 1] or block)
        except (ValueError, RecursionError):
            return set()
        return {source for source, kind in self.kinds.items() if kind is ColumnType.STRING and type(first.get(source)) is int}

    def _by_line(self, block: bytes, first: int) -> CheckedChunk:
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        letters: list[DeadLetter] = []
        for number, line in enumerate(block.split(b"\n"), first):
            record = _object(line) if line.strip() else None
            if isinstance(record, dict):
                rows.append(record)
                lines.append(number)
            elif record is not None:
                letters.append(malformed(record, line.decode(errors="replace"), number))
        checked = _checked(rows, self.columns)
        extra = _extra_column([row.get(self.columns.extra) for row in rows]) if self.columns.extra is not None else None

        def dead() -> list[DeadLetter]:
            refused = [checked.letter(at, rows[at], lines[at]) for at in checked.positions]
            return sorted([*letters, *refused], key=lambda letter: letter.line or 0)

        return CheckedChunk.of(checked, dead, extra, broken=len(letters))


def piece_of_objects(rows: Sequence[Mapping[str, Any]], columns: Columns) -> CheckedChunk:
    """Rows that were objects of JSON, or of another form whose values are Cells."""
    checked = _checked(rows, columns)
    kinds = columns.feed.types

    def shown(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value_or_text(value, kinds[name]) if type(value) is Cell and name in kinds else value for name, value in row.items()}

    return CheckedChunk.of(checked, lambda: [checked.letter(at, shown(rows[at])) for at in checked.positions])


def _checked(rows: Sequence[Mapping[str, Any]], columns: Columns) -> CheckedRows:
    read = {name: column_of([_value(row, source) for row in rows], columns.feed.types[name], text=False) for name, source in columns.sources.items()}
    unread = {name: wrong for name, (_, wrong) in read.items() if wrong is not None}
    return CheckedRows(pa.table({name: column for name, (column, _) in read.items()}), columns.feed, unread)


def _is_plain(block: bytes) -> bool:
    """Whether each line is one object, as far as its characters show, of values
    that Arrow takes as we do.

    A line break inside an object is an error for Arrow too: then a line would begin
    or end with another sign.
    """
    lines = _count_lines(block)
    return (
        block.startswith(b"{")
        and block.endswith((b"}", b"}\n", b"}\r\n"))
        and block.count(b"}\n{") + (block.count(b"}\r\n{") if b"\r" in block else 0) == lines - 1
        and not has_longer_line(block, PLAIN_BYTES)
        and ((b"[" not in block and block.count(b"{") == lines) or not _is_deep(block))
        and _MINUS_ZERO.search(block) is None
        and not (b"N" in block and b"-NaN" in block)
        and not (b"I" in block and b"Inf" in block and _INFINITY.search(block))
    )


def _is_deep(block: bytes) -> bool:
    """Whether a line may have more than PLAIN_DEPTH levels."""
    signs = np.frombuffer(block, np.uint8)
    begins = np.append(0, np.flatnonzero(signs[:-1] == ord("\n")) + 1)
    return bool(np.add.reduceat((signs == ord("[")) | (signs == ord("{")), begins, dtype=np.int64).max() > PLAIN_DEPTH)


def _count_lines(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))


def _has_infinity(table: pa.Table) -> bool:
    """Whether a number has more digits than a float holds."""
    return any(pc.any(pc.is_inf(column)).as_py() for column in table.columns if pa.types.is_floating(column.type))


def _object(line: bytes) -> dict[str, Any] | Message:
    """The JSON object on a line, or what is wrong with it."""
    if len(line) > LINE_BYTES:
        return TOO_LONG
    try:
        value = json.loads(line)
    except RecursionError:
        return Message("nested too deeply")
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data" and error.doc[error.pos] == "{":
            return Message("several JSON objects on a line: write one per line, and with curl use --data-binary, which keeps line breaks")
        return Message("not a JSON object: {error}", error=message_of(error))
    return value if isinstance(value, dict) else Message("not a JSON object")


def _value(row: Mapping[str, Any], source: str) -> Any:
    """The value under a key, or those of several joined."""
    if source in row or PLUS not in source:
        return row.get(source)
    parts = [row.get(part) for part in source.split(PLUS)]
    return None if any(part is None for part in parts) else JOINT.join(map(str, parts))


def _extra_column(values: list[Any]) -> pa.ChunkedArray:
    """Values of the column of arrival: numbers if all are, else text."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in present):
        return pa.chunked_array([pa.array([None if value is None else str(value) for value in values], pa.string())])
    if all(isinstance(value, int) and abs(value) < 2**63 for value in present):
        return pa.chunked_array([pa.array(values, pa.int64())])
    return pa.chunked_array([pa.array([None if value is None else _nearest_double(value) for value in values], pa.float64())])


def _nearest_double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
