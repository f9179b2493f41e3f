"""CSV as found in practice: any delimiter, encoding and header, all columns as text."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from charset_normalizer import from_bytes

from engine.model.messages import Message
from engine.sources.csv_records import NOT_UTF8, Block, Record, blocks_of_records, lines_of, records_of
from engine.sources.files import UnreadableFile
from engine.sources.formats.chunks import HEAD_BYTES, SHOWN, Chunk, FileFormat, InvalidLine, Layout
from engine.sources.lines import UTF8_MARK, blocks, is_utf8

DELIMITERS = (",", ";", "\t", "|", " ")
MOST_COLUMNS = 500
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
BY_HAND = ("utf-8", "windows-1252", "iso-8859-15", "utf-16", "windows-1250", "windows-1251", "windows-1253", "shift_jis", "gb18030")
"""Encodings that the page offers."""
OTHER_ENCODING = Message("the line is not UTF-8 like those before it: choose another encoding, or correct the line")
_SEP = re.compile(rb'"?sep=."?\r?')
"""The line that names the delimiter for Excel."""


def guess_layout(head: bytes) -> Layout:
    """How the text that begins with `head` is written."""
    encoding = encoding_of(head)
    text = head.decode(encoding, "replace")
    lines = [line for line in _joined(text.splitlines()[:200]) if line.strip()]
    lines = lines[1:] if lines and _SEP.fullmatch(lines[0].encode()) else lines
    # The last line may be incomplete.
    lines = lines[:-1] if len(head) == HEAD_BYTES and len(lines) > 1 else lines
    delimiter = delimiter_of(lines)
    return Layout(FileFormat.CSV, encoding, delimiter, has_header(lines, delimiter))


def _joined(lines: list[str]) -> Iterator[str]:
    """Joins lines in which a quoted cell continues."""
    held = ""
    for line in lines:
        held = f"{held}\n{line}" if held else line
        if held.count('"') % 2 == 0:
            yield held
            held = ""
    # An unclosed quote joins no lines.
    yield from held.splitlines()


def encoding_of(head: bytes) -> str:
    """The encoding of a text: by its mark, UTF-8 where it is or where half of the lines with such
    signs are, else the likeliest."""
    for mark, name in MARKS.items():
        if head.startswith(mark):
            return name
    try:
        # A character may be cut off at the end.
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8"
    except UnicodeDecodeError:
        if _is_mostly_utf8(head):
            return "utf-8"
        start = head[:65_536]
        best = from_bytes(start, cp_isolation=list(BY_HAND[1:])).best()
        # Others may read the same text: the most usual of them is the likeliest.
        return next((name for name in BY_HAND if best is not None and start.decode(name, "replace") == str(best)), "windows-1252")


def _is_mostly_utf8(head: bytes) -> bool:
    """Whether most of the lines with non-ASCII characters are UTF-8: in other
    encodings hardly any is by chance."""
    lines = [line for line in head.split(b"\n") if not line.isascii()]
    return 2 * sum(is_utf8(line) for line in lines) >= len(lines)


def lines_not_utf8(stream: BinaryIO, most_bytes: int) -> Iterator[InvalidLine]:
    """The lines of a text's first bytes that are no UTF-8."""
    line = 1
    for block in blocks(stream):
        if not is_utf8(block):
            for at, one in enumerate(block.split(b"\n"), line):
                if not is_utf8(one):
                    yield InvalidLine(at, OTHER_ENCODING, one.decode("utf-8", "replace").rstrip("\r")[:SHOWN])
        line += block.count(b"\n")
        most_bytes -= len(block)
        if most_bytes <= 0:
            return


def delimiter_of(lines: list[str]) -> str:
    """The character that divides most lines into the same number of cells, the more the better."""

    def worth(delimiter: str) -> tuple[float, int]:
        widths = [len(cells(line, delimiter)) for line in lines] or [1]
        usual = max(set(widths), key=widths.count)
        return (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)

    # A decimal comma divides lines as regularly as the real delimiter.
    delimiter = max(DELIMITERS, key=lambda one: (round(worth(one)[0], 1), one != " ", one not in (",", " "), worth(one)[1]))
    return delimiter if worth(delimiter)[0] > 0.5 else ","


def cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line; one cell when its quotes are odd."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return [line]


def has_header(lines: list[str], delimiter: str) -> bool:
    """Whether the first line names columns: no cell of it is a number."""
    first = cells(lines[0], delimiter) if lines else []
    return not any(_is_number(cell) for cell in first)


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def read_delimited_text(stream: BinaryIO, layout: Layout) -> Iterator[Chunk]:
    """All columns as text, empty cells null. Raises UnreadableFile."""
    pieces = blocks(_as_utf8(stream, layout.encoding))
    rest, line = next(pieces, b"").removeprefix(UTF8_MARK), 1
    first, _, behind = rest.partition(b"\n")
    if _SEP.fullmatch(first):
        rest, line = behind, 2
        first, _, behind = rest.partition(b"\n")
    while layout.header and first.count(b'"') % 2 and behind:
        more, _, behind = behind.partition(b"\n")
        first += b"\n" + more
    found = cells(first.decode(errors="replace").rstrip("\r"), layout.delimiter)
    names = column_names(found if layout.header else [""] * len(found))
    if layout.header:
        rest, line = behind, line + 1 + first.count(b"\n")
    for block in blocks_of_records(chain([rest] if rest else [], pieces), layout.delimiter, line):
        if block.data.strip(b"\r\n"):
            yield _chunk(block, names, layout.delimiter)


def column_names(header: list[str]) -> list[str]:
    """Each column's name: `column 3` where there is none, `name 2` for a second of its name.
    Raises UnreadableFile for too many."""
    if len(header) > MOST_COLUMNS:
        raise UnreadableFile(Message("The file has more than {most} columns.", most=MOST_COLUMNS))
    names: list[str] = []
    for number, name in enumerate(header, 1):
        plain = name.strip()[:100] or f"column {number}"
        free, more = plain, 2
        while free in names:
            free, more = f"{plain} {more}", more + 1
        names.append(free)
    return names


def _as_utf8(stream: BinaryIO, encoding: str) -> BinaryIO:
    if encoding.lower() in ("utf-8", "utf-8-sig", "ascii"):
        return stream
    try:
        return _Recoded(stream, encoding)  # type: ignore[return-value]
    except LookupError as error:
        raise UnreadableFile(Message("There is no encoding {encoding}.", encoding=repr(encoding[:40]))) from error


class _Recoded:
    """A stream of bytes in another encoding, read as UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self.stream = stream
        self.decoder: Any = codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int) -> bytes:
        while data := self.stream.read(size):
            if text := self.decoder.decode(data):
                return bytes(text.encode("utf-8", "replace"))
        return bytes(self.decoder.decode(b"", final=True).encode("utf-8", "replace"))


def _chunk(block: Block, names: list[str], delimiter: str) -> Chunk:
    table = _table(block.data, names, delimiter) if block.records is None else None
    if table is None:
        return _by_record(records_of(block, delimiter), names)
    return Chunk(table, lines_of(block)[: table.num_rows])


def _table(data: bytes, names: list[str], delimiter: str) -> pa.Table | None:
    """Plain records as text; null when one of them has another number of cells."""
    try:
        return pv.read_csv(
            pa.BufferReader(data),
            pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            pv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]),
        )
    except pa.ArrowException:
        return None


def _cells(actual: int, expected: int) -> Message:
    return Message("cells in the line: {count}, in the first: {expected}", count=actual, expected=expected)


def _remedy(problem: Message) -> Message:
    return Message("{problem}: correct it, or choose another delimiter", problem=problem)


def _by_record(records: Sequence[Record], names: list[str]) -> Chunk:
    rows: list[list[str]] = []
    lines: list[int] = []
    broken: list[InvalidLine] = []
    for one in records:
        problem = one.problem
        if problem is None and len(one.cells) != len(names):
            problem = _cells(len(one.cells), len(names))
        if problem is None:
            rows.append(one.cells)
            lines.append(one.line)
        else:
            sentence = OTHER_ENCODING if problem == NOT_UTF8 else _remedy(problem)
            broken.append(InvalidLine(one.line, sentence, one.text[:SHOWN]))
    columns = {name: pa.array([row[at] or None for row in rows], pa.string()) for at, name in enumerate(names)}
    return Chunk(pa.table(columns), np.array(lines, np.int64), tuple(broken))
