"""What a source sends: NDJSON, CSV or an Arrow stream, plain or gzipped, read to checked rows and dead letters.

A malformed line is a dead letter and the others go on; a body that cannot be read as a whole raises Unreadable. Texts are read in
chunks of rows, so that files of any size (webapp/feeds/folders.py) go the same way as requests. Blocks of lines are read by Arrow where
that gives the same (webapp/feeds/columnar.py), else line by line.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, compress, islice
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from engine.model.columns import ENTITY, TIME
from engine.model.events import ARROW_TYPES, check_rows
from engine.model.feed import ColumnType, Feed
from engine.model.messages import Message, as_it_is, message_of
from engine.sources.values import column_of
from webapp.feeds.arrow_streams import Limits, StreamRefused, StreamTooLarge, read_stream
from webapp.feeds.columnar import csv_rows, json_rows

NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
BODY_BYTES = 5_000_000
"""A body may have so many bytes as it is sent."""
INFLATED_BYTES = 25_000_000
"""And so many when it is unpacked."""
BODY_ROWS = 100_000
"""A body may have so many rows: one that holds almost nothing costs a few bytes to send, but half a kilobyte as a dead letter."""
BODY_VALUES = 1_000_000
"""And so many values: commas, lines and brackets of a text, cells of an Arrow stream. A value of a byte takes up to 200 as an object."""
GZIP_MEMBERS = 100
LINE_BYTES = 1_000_000
"""A longer line is malformed, and not kept in memory."""
BLOCK_BYTES = 500_000
"""Lines of about so many bytes are read at once or, when one of them is odd, one by one."""
SHOWN_CHARACTERS = 200
MALFORMED, WRONG_TYPE = "malformed", "wrong_type"


class Unreadable(ValueError):
    """The body as a whole is not what its content type says."""


class TooLarge(ValueError):
    """The body, or what it unpacks to, is larger than ingest takes at once."""


class Unsupported(ValueError):
    """A content type or encoding that ingest does not read."""


@dataclass(frozen=True)
class Refusal:
    """A row that is no event: the reason's name, a sentence, the row as it came, and the line of a text it stood on (from 1)."""

    reason: str
    detail: str
    row: Mapping[str, Any] | None = None
    line: int | None = None


@dataclass(frozen=True)
class Checked:
    """Rows ready for the log, and what was wrong with the others."""

    good: pa.Table
    dead: list[Refusal] = field(default_factory=list)


@dataclass(frozen=True)
class _Lines:
    """Typed rows of a text with the number of the line each stands on, and what could not be read."""

    rows: pa.Table
    numbers: Sequence[int]
    dead: list[Refusal]


_Block = tuple[int, bytes]
"""Whole lines, and the number of the first."""


class _Text(Protocol):
    """A text whose header, if it has one, has been read from its stream; `first_line` is the number of the line after it."""

    feed: Feed
    first_line: int

    def read(self, number: int, block: bytes) -> _Lines:
        """What stands on the block's lines, the first of which has this number."""


def check(rows: pa.Table, feed: Feed, numbers: Sequence[int] | None = None) -> Checked:
    """Typed rows sorted into good and dead ones; `numbers` are their lines."""
    good, letters = check_rows(rows, feed)
    dead = [Refusal(str(one.reason), one.detail, one.row, numbers[one.position or 0] if numbers is not None else None) for one in letters]
    return Checked(good, dead)


def inflate(body: bytes, encoding: str, limit: int = INFLATED_BYTES) -> bytes:
    """The body without its content encoding (none or gzip); never unpacks more than `limit` bytes. Raises Unreadable, TooLarge, Unsupported."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise Unsupported(Message("The content encoding {encoding} is not read; send gzip or none.", encoding=repr(encoding[:40])))
    parts: list[bytes] = []
    left, size = body, 0
    while left:
        # Each member takes a copy of what follows it.
        if len(parts) == GZIP_MEMBERS:
            raise TooLarge(Message("The body has more than {most} gzip members; send it as one.", most=GZIP_MEMBERS))
        unpacker = zlib.decompressobj(wbits=31)
        try:
            part = unpacker.decompress(left, limit + 1 - size)
        except zlib.error as error:
            raise Unreadable(Message("The body is not gzip: {error}", error=error)) from error
        size += len(part)
        if size > limit:
            raise TooLarge(Message("The body unpacks to more than {limit} bytes; send smaller parts.", limit=limit))
        if not unpacker.eof:
            raise Unreadable(Message("The gzip body ends in the middle."))
        parts.append(part)
        left = unpacker.unused_data
    return b"".join(parts)


def read_body(body: bytes, content_type: str, feed: Feed) -> Checked:
    """Good rows and dead letters (with their lines) of a body without content encoding. Raises Unreadable, TooLarge, Unsupported."""
    kind = content_type.split(";")[0].strip().lower()
    if kind == ARROW:
        return check(_arrow(body, feed), feed)
    if kind not in TEXTS:
        raise Unsupported(
            Message(
                "The content type {kind} is not read; send {ndjson}, {csv} or {arrow}.", kind=repr(kind[:80]), ndjson=NDJSON, csv=CSV, arrow=ARROW
            )
        )
    _count_text(body)
    stream = io.BytesIO(body)
    text = TEXTS[kind](feed, stream)
    return _checked(text, list(_blocks(stream, text.first_line)))


def read_text(stream: BinaryIO, kind: str, feed: Feed, rows: int) -> Iterator[Checked]:
    """The text in chunks that come from `rows` lines each (the last from fewer), at least one; dead letters in the order of their lines.

    `kind` is one of TEXTS. Raises Unreadable.
    """
    text = TEXTS[kind](feed, stream)
    number, first = text.first_line, True
    while (chunk := list(islice(_lines(stream), rows))) or first:
        first = False
        yield _checked(text, [(number, b"".join(chunk))])
        number += len(chunk)


def _checked(text: _Text, blocks: Sequence[_Block]) -> Checked:
    """The blocks' rows together: checking has its price for each table, not for each row."""
    read = [text.read(number, block) for number, block in blocks] or [text.read(text.first_line, b"")]
    numbers = read[0].numbers if len(read) == 1 else list(chain.from_iterable(lines.numbers for lines in read))
    checked = check(pa.concat_tables([lines.rows for lines in read]), text.feed, numbers)
    dead = [refusal for lines in read for refusal in lines.dead]
    return Checked(checked.good, sorted([*dead, *checked.dead], key=lambda one: one.line or 0))


def _blocks(stream: BinaryIO, number: int) -> Iterator[_Block]:
    """Whole lines of a text in memory, with the number of the first."""
    while block := stream.read(BLOCK_BYTES):
        block += stream.readline() if not block.endswith(b"\n") else b""
        yield number, block
        number += block.count(b"\n")


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines of a text of any size; of one that is too long only the beginning."""
    while line := stream.readline(LINE_BYTES + 1):
        if len(line) > LINE_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            line += b"\n"
        yield line


def _numbered(number: int, block: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a block with their numbers."""
    return enumerate(io.BytesIO(block), number)


def _count_text(body: bytes) -> None:
    """Raises TooLarge for what would be many objects, before any is made."""
    lines = body.count(b"\n")
    # A line of column names, and the last line's end.
    if lines > BODY_ROWS + 1:
        raise TooLarge(Message("The body has more than {most:,} rows; send smaller parts.", most=BODY_ROWS))
    if lines + sum(body.count(sign) for sign in (b",", b"[", b"{")) > BODY_VALUES:
        raise TooLarge(Message("The body has more than {most:,} values; send smaller parts.", most=BODY_VALUES))


NEEDED = (ENTITY, TIME)
SEPARATORS = {",": Message("commas"), ";": Message("semicolons"), "\t": Message("tabs"), "|": Message("bars")}
SHOWN_COLUMNS = 20


def check_columns(names: Sequence[str], feed: Feed, *, separator: str | None = None) -> None:
    """Raises Unreadable when no row can be an event because there is no column for its entity or its time: says what was seen instead."""
    missing = [name for name in NEEDED if name not in names]
    if not missing:
        return
    seen = ", ".join(repr(name[:SHOWN_CHARACTERS]) for name in names[:SHOWN_COLUMNS]) + (", ..." if len(names) > SHOWN_COLUMNS else "")
    between = Message(" (taken as separated by {separator})", separator=SEPARATORS[separator]) if separator else ""
    other = _other_separator(names, separator)
    if other:
        remedy = Message("It seems to be separated by {separator}: send commas.", separator=SEPARATORS[other])
    else:
        remedy = Message("Name the columns as the feed does: {known}.", known=", ".join(feed.types))
    raise Unreadable(
        Message(
            "There is no column {names}. The header reads {seen}{between}. {remedy}",
            names=reduce(lambda first, last: Message("{first} and no column {last}", first=first, last=last), map(as_it_is, missing)),
            seen=seen,
            between=between,
            remedy=remedy,
        )
    )


def _other_separator(names: Sequence[str], separator: str | None) -> str | None:
    """What separates a header that was read as a single name."""
    if separator is None or len(names) != 1:
        return None
    return max((one for one in SEPARATORS if one in names[0]), key=names[0].count, default=None)


def _arrow(body: bytes, feed: Feed) -> pa.Table:
    try:
        table = read_stream(body, Limits(BODY_ROWS, BODY_VALUES, INFLATED_BYTES), feed.types)
    except StreamRefused as error:
        raise Unreadable(message_of(error)) from error
    except StreamTooLarge as error:
        raise TooLarge(message_of(error)) from error
    check_columns(table.column_names, feed)
    return table


# -- lines of JSON ----------------------------------------------------------------------------------------------------------------


class _Json:
    """Lines of JSON objects."""

    first_line = 1

    def __init__(self, feed: Feed, stream: BinaryIO) -> None:
        self.feed = feed

    def read(self, number: int, block: bytes) -> _Lines:
        rows = json_rows(block, self.feed)
        return self._one_by_one(number, block) if rows is None else _Lines(rows, range(number, number + rows.num_rows), [])

    def _one_by_one(self, first: int, block: bytes) -> _Lines:
        records: list[dict[str, Any]] = []
        numbers: list[int] = []
        dead: list[Refusal] = []
        for number, line in _numbered(first, block):
            record = _record(line) if line.strip() else None
            if isinstance(record, dict):
                records.append(record)
                numbers.append(number)
            elif record is not None:
                dead.append(_malformed(number, record, line))
        columns = {name: [record.get(name) for record in records] for name in self.feed.types}
        return _typed(columns, records, numbers, dead, self.feed, text=False)


def _record(line: bytes) -> dict[str, Any] | str:
    """The JSON object on a line, or what is wrong with it."""
    if len(line) > LINE_BYTES:
        return Message("longer than {most} bytes", most=LINE_BYTES)
    try:
        record = json.loads(line, parse_constant=_no_constant)
    except RecursionError:
        return Message("nested too deeply")
    except ValueError as error:
        return message_of(error)
    return record if isinstance(record, dict) else Message("not a JSON object")


def _no_constant(name: str) -> float:
    raise ValueError(Message("{name} is no JSON value", name=name))


def _malformed(number: int, detail: str, line: bytes) -> Refusal:
    return Refusal(MALFORMED, detail, {"line": line[:SHOWN_CHARACTERS].decode("utf-8", "replace")}, number)


def _typed(
    columns: Mapping[str, Sequence[Any]], records: Sequence[Mapping[str, Any]], numbers: Sequence[int], dead: list[Refusal], feed: Feed, *, text: bool
) -> _Lines:
    """Columns in the feed's types. A value that does not fit makes its own row a dead letter, not a fault of the whole column."""
    arrays: dict[str, pa.Array] = {}
    wrong: dict[int, Message] = {}
    for name, kind in feed.types.items():
        if name in columns:
            arrays[name], misfits = _column(columns[name], kind, text=text)
            for position in np.flatnonzero(misfits).tolist() if misfits is not None else ():
                wrong.setdefault(position, Message("{name} must be {needed}", name=name, needed=_WANTED[kind]))
    rows = pa.table(arrays)
    if not wrong:
        return _Lines(rows, numbers, dead)
    dead = dead + [Refusal(WRONG_TYPE, detail, records[n], numbers[n]) for n, detail in wrong.items()]
    keep = [n not in wrong for n in range(len(records))]
    return _Lines(rows.filter(pa.array(keep)), list(compress(numbers, keep)), dead)


_WANTED = {
    ColumnType.STRING: Message("a string"),
    ColumnType.INT: Message("an integer"),
    ColumnType.FLOAT: Message("a number"),
    ColumnType.BOOL: Message("true or false"),
}


def _column(values: Sequence[Any], kind: ColumnType, *, text: bool) -> tuple[pa.Array, Any]:
    """The values in the Arrow type of `kind` and which do not fit, by the engine's own rules for files."""
    try:
        array = pa.array(values)
    except (pa.ArrowException, UnicodeError, OverflowError):
        return column_of(values, kind, text=text)
    # Most columns are all of their type already: reading them value by value takes ten times as long.
    return (array, None) if array.type == ARROW_TYPES[kind] else column_of(values, kind, text=text)


# -- CSV --------------------------------------------------------------------------------------------------------------------------


class _Csv:
    """Lines of cells under a line of column names. Raises Unreadable."""

    first_line = 2

    def __init__(self, feed: Feed, stream: BinaryIO) -> None:
        self.feed = feed
        self.header = _header(next(_lines(stream), b""))
        check_columns(self.header, feed, separator=",")

    def read(self, number: int, block: bytes) -> _Lines:
        rows = csv_rows(block, self.header, self.feed)
        return self._one_by_one(number, block) if rows is None else _Lines(rows, range(number, number + rows.num_rows), [])

    def _one_by_one(self, first: int, block: bytes) -> _Lines:
        cells: list[list[str]] = []
        numbers: list[int] = []
        dead: list[Refusal] = []
        for number, line in _numbered(first, block):
            row = _cells(line, len(self.header))
            if isinstance(row, str):
                dead.append(_malformed(number, row, line))
            elif row:
                cells.append(row)
                numbers.append(number)
        # An empty cell is no value.
        columns = {name: [row[n] or None for row in cells] for n, name in enumerate(self.header)}
        return _typed(columns, [dict(zip(self.header, row, strict=True)) for row in cells], numbers, dead, self.feed, text=True)


def _cells(line: bytes, width: int) -> list[str] | str:
    """The cells of a line, none for an empty one, or what is wrong with it.

    Each line stands for itself: a quote that is not closed spoils one row and not all that follow, so a cell cannot hold a line break.
    """
    if len(line) > LINE_BYTES:
        return Message("longer than {most} bytes", most=LINE_BYTES)
    try:
        text = line.decode().rstrip("\r\n")
        # Most lines have no quotes, and splitting is several times faster than the general way.
        row = next(csv.reader([text], strict=True), []) if '"' in text else text.split(",") if text else []
    except (UnicodeDecodeError, csv.Error) as error:
        return "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
    return row if not row or len(row) == width else f"{len(row)} cells under {width} column names"


def _header(line: bytes) -> list[str]:
    """The column names. Raises Unreadable."""
    line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        text = line.decode().rstrip("\r\n")
        header = [name.strip() for name in next(csv.reader([text], strict=True), [])]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(Message("The line of column names cannot be read: {error}", error=error)) from error
    if not header:
        raise Unreadable(Message("CSV begins with a line of column names."))
    if len(set(header)) < len(header):
        raise Unreadable(Message("Two columns have the same name."))
    return header


TEXTS: Mapping[str, Callable[[Feed, BinaryIO], _Text]] = {
    NDJSON: _Json,
    "application/ndjson": _Json,
    "application/jsonl": _Json,
    "application/json": _Json,
    CSV: _Csv,
}
"""Readers by content type."""
