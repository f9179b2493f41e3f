"""The body of a request: NDJSON, CSV or an Arrow stream, plain or gzipped, within its limits, read
to checked rows and dead letters.

Texts are read as files are (`engine/sources/file_rows.py`): a malformed line is a dead letter and
the others continue; a body that cannot be read as a whole raises UnreadableFile.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa

from engine.model.columns import ENTITY, TIME
from engine.model.events import CheckedRows
from engine.model.feed import Feed
from engine.model.messages import Message, message_of, untranslated
from engine.sources.file_rows import read_text
from engine.sources.files import CSV as CSV_TEXT
from engine.sources.files import JSON_LINES, CheckedChunk, Columns, UnreadableFile
from engine.sources.lines import UTF8_MARK
from webapp.feeds.arrow_streams import Limits, StreamRefused, StreamTooLarge, read_stream

NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
TEXTS: Mapping[str, str] = {
    NDJSON: JSON_LINES, "application/ndjson": JSON_LINES, "application/jsonl": JSON_LINES, "application/json": JSON_LINES, CSV: CSV_TEXT,
}  # fmt: skip
"""Formats of texts by content type."""
BODY_BYTES = 5_000_000
"""The largest body, as it is sent, in bytes."""
INFLATED_BYTES = 25_000_000
"""The largest body after decompression, in bytes."""
BODY_ROWS = 100_000
"""The maximum number of rows of a body: an almost empty row costs a few bytes to send, but half a
kilobyte as a dead letter."""
BODY_VALUES = 1_000_000
"""The maximum number of values: commas, lines and brackets of a text, cells of an Arrow stream. A
value of a byte takes up to 200 as an object."""
GZIP_MEMBERS = 100
SEPARATORS = {",": Message("commas"), ";": Message("semicolons"), "\t": Message("tabs"), "|": Message("bars")}
WITHOUT_LINE_BREAKS = Message(
    "The body is one line and no header of this feed: its line breaks are lost. With curl send it by --data-binary: --data removes them."
)
SHOWN_COLUMNS, SHOWN_CHARACTERS = 20, 200


class TooLarge(ValueError):
    """The body, or its decompressed size, exceeds a limit of ingest."""


class Unsupported(ValueError):
    """A content type or encoding that ingest does not read."""


def inflate(body: bytes, encoding: str, limit: int = INFLATED_BYTES) -> bytes:
    """The body without its content encoding (none or gzip); never unpacks more than `limit` bytes.
    Raises UnreadableFile, TooLarge, Unsupported."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise Unsupported(Message("The content encoding {encoding} is not supported; send gzip or none.", encoding=repr(encoding[:40])))
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
            raise UnreadableFile(Message("The body is not gzip: {error}", error=error)) from error
        size += len(part)
        if size > limit:
            raise TooLarge(Message("The body decompresses to more than {limit} bytes; send smaller parts.", limit=limit))
        if not unpacker.eof:
            raise UnreadableFile(Message("The gzip body ends in the middle."))
        parts.append(part)
        left = unpacker.unused_data
    return b"".join(parts)


def read_body(body: bytes, content_type: str, feed: Feed) -> CheckedChunk:
    """The rows and dead letters (with their lines) of a body without content encoding. Raises
    UnreadableFile, TooLarge, Unsupported."""
    kind = content_type.split(";")[0].strip().lower()
    if kind == ARROW:
        checked = CheckedRows(_arrow(body, feed), feed)
        return CheckedChunk.of(checked, checked.dead)
    if kind not in TEXTS:
        raise Unsupported(
            Message(
                "The content type {kind} is not supported; send {ndjson}, {csv} or {arrow}.",
                kind=repr(kind[:80]),
                ndjson=NDJSON,
                csv=CSV,
                arrow=ARROW,
            )
        )
    _count_text(body, header=TEXTS[kind] == CSV_TEXT)
    if TEXTS[kind] == CSV_TEXT and _lost_line_breaks(body, feed):
        raise UnreadableFile(WITHOUT_LINE_BREAKS)
    return CheckedChunk.joined(list(read_text(io.BytesIO(body), TEXTS[kind], NamedAsTheFeed(feed))), feed)


def _lost_line_breaks(body: bytes, feed: Feed) -> bool:
    """Whether a CSV looks like several lines in one, as `curl --data @FILE` sends a file: all of it
    would be its header, and no row in it.

    A header alone is a file without rows, as long as it names nothing but columns of the feed.
    """
    if not body.strip() or b"\n" in body or b"\r" in body:
        return False
    names = body.removeprefix(UTF8_MARK).decode(errors="replace").split(",")
    return any(name.strip(' "') not in feed.types for name in names)


def _count_text(body: bytes, *, header: bool) -> None:
    """Raises TooLarge before any object is made."""
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    if lines > BODY_ROWS + header:
        raise TooLarge(Message("The body has more than {most:,} rows; send smaller parts.", most=BODY_ROWS))
    if lines + sum(body.count(sign) for sign in (b",", b"[", b"{")) > BODY_VALUES:
        raise TooLarge(Message("The body has more than {most:,} values; send smaller parts.", most=BODY_VALUES))


class NamedAsTheFeed(Columns):
    """Senders cannot configure a mapping of columns: their names are those of the feed."""

    def present(self, names: Sequence[str], separator: str | None = None) -> dict[str, str]:
        """Raises UnreadableFile if no row can be an event because there is no column for its entity
        or its time; names the columns found instead."""
        missing = [name for name in (ENTITY, TIME) if name not in names]
        if not missing:
            return super().present(names, separator)
        seen = ", ".join(repr(name[:SHOWN_CHARACTERS]) for name in names[:SHOWN_COLUMNS]) + (", ..." if len(names) > SHOWN_COLUMNS else "")
        between = Message(" (taken as separated by {separator})", separator=SEPARATORS[separator]) if separator else ""
        other = _other_separator(names, separator)
        if other:
            remedy = Message("It seems to be separated by {separator}: send commas.", separator=SEPARATORS[other])
        else:
            remedy = Message("Name the columns as the feed does: {known}.", known=", ".join(self.feed.types))
        raise UnreadableFile(
            Message(
                "There is no column {names}. The header reads {seen}{between}. {remedy}",
                names=reduce(lambda first, last: Message("{first} and no column {last}", first=first, last=last), map(untranslated, missing)),
                seen=seen,
                between=between,
                remedy=remedy,
            )
        )


def _other_separator(names: Sequence[str], separator: str | None) -> str | None:
    """The separator of a header that was read as a single name."""
    if separator is None or len(names) != 1:
        return None
    return max((one for one in SEPARATORS if one in names[0]), key=names[0].count, default=None)


def _arrow(body: bytes, feed: Feed) -> pa.Table:
    try:
        table = read_stream(body, Limits(BODY_ROWS, BODY_VALUES, INFLATED_BYTES), feed.types)
    except StreamRefused as error:
        raise UnreadableFile(message_of(error)) from error
    except StreamTooLarge as error:
        raise TooLarge(message_of(error)) from error
    NamedAsTheFeed(feed).present(table.column_names)
    return table
