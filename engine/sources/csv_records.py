"""CSV taken apart into records: lines, except that a cell in quotes may hold line breaks.

Blocks whose quotes follow RFC 4180 are left whole, for Arrow to read. In others Python's reader
takes one record after the other: a line that is no record costs none of those after it. Where a
record ends does not depend on how the text is divided into blocks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from engine.model.messages import Message
from engine.sources.lines import LINE_BYTES, TOO_LONG, has_longer_line, is_utf8, parts_of

Ints = npt.NDArray[np.int64]
MAX_LINES = 1000
"""The maximum number of lines of a record, in addition to LINE_BYTES bytes: after a stray quote the
rest of the file is not lost."""
MAX_UNCLOSED_QUOTES = 100
"""The number of unclosed quotes that are looked up in the following lines; after them, cells of the
text end with their line."""
NOT_UTF8 = Message("the line is not UTF-8")
OPEN_QUOTE = Message("a quote is opened and not closed")
csv.field_size_limit(1 << 20)


@dataclass(frozen=True)
class Record:
    """A record: the line where it begins, its text (if unreadable, only its first
    line), its cells or its fault."""

    line: int
    text: str
    cells: list[str] = field(default_factory=list)
    problem: Message | None = None


@dataclass(frozen=True)
class Block:
    """Whole records and the number of their first line. `records` are given where Arrow would not
    take the block apart in the same way."""

    data: bytes
    line: int
    records: Sequence[Record] | None = None


def blocks_of_records(pieces: Iterable[bytes], delimiter: str, line: int) -> Iterator[Block]:
    """The text that comes in `pieces` of whole lines, the first of which has the number `line`."""
    reader, held = _Reader(delimiter), b""
    for piece, is_last in _with_last(pieces):
        held += piece
        end = _plain_end(held, delimiter, reader.most_lines)
        # A record that is open at the end is read to its end, or to where it is too long to be one.
        if end is None or (is_last and end < len(held)) or _is_longer(held[end:]):
            records, end = reader.read(held, line, is_last)
            block = Block(held[:end], line, records)
        else:
            block = Block(held[:end], line)
        yield block
        line += block.data.count(b"\n")
        held = held[end:]


def _with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    each = iter(pieces)
    piece = next(each, None)
    while piece is not None:
        following = next(each, None)
        yield piece, following is None
        piece = following


def _is_longer(data: bytes) -> bool:
    """Whether a record that `data` is the beginning of is longer than one may be."""
    return len(data) > LINE_BYTES or data.count(b"\n") >= MAX_LINES


def _plain_end(block: bytes, delimiter: str, most_lines: int) -> int | None:
    """How much of the block are whole records that Arrow reads as Python
    does; null when some are not."""
    if (
        not delimiter.isascii()
        or (b"\r" in block and block.count(b"\r") != block.count(b"\r\n"))
        or has_longer_line(block)
        or not (block.isascii() or is_utf8(block))
    ):
        return None
    if b'"' not in block:
        return len(block)
    signs = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(signs == ord('"'))
    end = len(block)
    if len(quotes) % 2:
        end = _begin_of_last(block, quotes)
        signs, quotes = signs[:end], quotes[: np.searchsorted(quotes, end)]
    return end if _are_plain(signs, quotes, ord(delimiter), most_lines) else None


def _begin_of_last(block: bytes, quotes: Ints) -> int:
    """Where the record begins that the last of an odd number of quotes leaves open."""
    for at in range(len(quotes) - 1, -1, -2):
        begin = block.rfind(b"\n", int(quotes[at - 1]) if at else 0, int(quotes[at])) + 1
        if begin:
            return begin
    return 0


def _are_plain(signs: npt.NDArray[np.uint8], quotes: Ints, delimiter: int, most_lines: int) -> bool:
    """Whether quotes enclose whole cells and are doubled within them, and no record is too long."""
    opening, closing = quotes[::2], quotes[1::2]
    is_doubled = opening[1:] == closing[:-1] + 1
    opening, closing = opening[np.append(True, ~is_doubled)[: len(opening)]], closing[np.append(~is_doubled, True)[: len(closing)]]
    before = signs[opening[opening > 0] - 1]
    after = signs[closing[closing < len(signs) - 1] + 1]
    newlines = np.flatnonzero(signs == ord("\n"))
    ends = np.flatnonzero(np.searchsorted(quotes, newlines) % 2 == 0)
    return bool(
        ((before == delimiter) | (before == ord("\n"))).all()
        and ((after == delimiter) | (after == ord("\n")) | (after == ord("\r"))).all()
        and np.diff(newlines[ends], prepend=-1, append=len(signs)).max() <= LINE_BYTES + 1
        and np.diff(ends, prepend=-1, append=len(newlines)).max() <= most_lines
    )


def records_of(block: Block, delimiter: str) -> Sequence[Record]:
    """All records of a block, by Python's reader."""
    return _Reader(delimiter).read(block.data, block.line, True)[0] if block.records is None else block.records


def records_at(block: Block, positions: Sequence[int], delimiter: str) -> list[Record]:
    """Some records of a block that Arrow has read; empty lines are none."""
    begins, ends, lines = (each[positions] for each in _places(block))
    texts = [block.data[begin:end].decode().rstrip("\r") for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    return [Record(line, text, next(csv.reader([text], delimiter=delimiter))) for line, text in zip(lines.tolist(), texts, strict=True)]


def parts_of_block(block: Block) -> list[Block]:
    """A block of plain records as smaller ones."""
    parts = list(parts_of(block.data, _places(block)[0]))
    lines = accumulate((part.count(b"\n") for part in parts), initial=block.line)
    return [Block(part, line) for part, line in zip(parts, lines, strict=False)]


def lines_of(block: Block) -> Ints:
    """The line of each record of a block that Arrow has read."""
    return _places(block)[2]


def _places(block: Block) -> tuple[Ints, Ints, Ints]:
    """Where each record begins and ends, and its line."""
    signs = np.frombuffer(block.data, np.uint8)
    newlines = np.flatnonzero(signs == ord("\n"))
    ends = np.append(newlines[np.searchsorted(np.flatnonzero(signs == ord('"')), newlines) % 2 == 0], len(signs))
    begins = np.append(0, ends[:-1] + 1)
    filled = ends > begins
    filled[filled] = (ends[filled] > begins[filled] + 1) | (signs[begins[filled]] != ord("\r"))
    begins, ends = begins[filled], ends[filled]
    return begins, ends, block.line + np.searchsorted(newlines, begins)


class _Reader:
    """Reads the records of one text by Python's reader."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.unclosed_quotes = 0

    @property
    def most_lines(self) -> int:
        """The maximum number of lines of a record."""
        return MAX_LINES if self.unclosed_quotes < MAX_UNCLOSED_QUOTES else 1

    def read(self, block: bytes, first_line: int, is_last: bool) -> tuple[list[Record], int]:
        """The block's records, and the start of a record that continues after the block;
        empty lines are no records."""
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        records: list[Record] = []
        at = position = 0
        while at < len(lines):
            taken = 1
            if lines[at].strip(b"\r"):
                record, taken = self._record(lines, at, first_line)
                if not taken:
                    if not is_last:
                        return records, position
                    self.unclosed_quotes += 1
                records.append(record)
            position += sum(len(line) + 1 for line in lines[at : at + max(taken, 1)])
            at += max(taken, 1)
        return records, len(block)

    def _record(self, lines: Sequence[bytes], at: int, first_line: int) -> tuple[Record, int]:
        """(the record that begins here, its number of lines: none if it
        continues after the last)."""
        line = first_line + at
        shown = lines[at][:LINE_BYTES].decode(errors="replace").rstrip("\r")
        if len(lines[at]) > LINE_BYTES:
            return Record(line, shown, problem=TOO_LONG), 1
        if b'"' not in lines[at]:
            # Splitting is several times faster than the general way.
            return (Record(line, shown, shown.split(self.delimiter)) if is_utf8(lines[at]) else Record(line, shown, problem=NOT_UTF8)), 1
        texts = _Texts(lines, at, self.most_lines)
        reader = csv.reader(texts, delimiter=self.delimiter, strict=True)
        try:
            cells = next(reader)
            taken = reader.line_num
            return Record(line, b"\n".join(lines[at : at + taken]).decode().rstrip("\r"), cells), taken
        except UnicodeDecodeError:
            problem = OPEN_QUOTE if texts.taken else NOT_UTF8
        except csv.Error as error:
            is_open = "unexpected end" in str(error)
            if is_open and at + texts.taken == len(lines) and texts.taken < texts.most:
                return Record(line, shown, problem=OPEN_QUOTE), 0
            problem = OPEN_QUOTE if is_open else Message("the line cannot be read: {error}", error=error)
        self.unclosed_quotes += texts.taken > 1
        return Record(line, shown, problem=problem), 1


class _Texts:
    """The texts of lines, as many as a record may have; `taken` were given out."""

    def __init__(self, lines: Sequence[bytes], at: int, most: int) -> None:
        self.lines, self.at, self.most = lines, at, most
        self.taken = self.size = 0

    def __iter__(self) -> Iterator[str]:
        while self.taken < self.most and self.at + self.taken < len(self.lines):
            line = self.lines[self.at + self.taken]
            self.size += len(line) + 1
            if self.size > LINE_BYTES + 1:
                return
            text = line.decode() + "\n"
            self.taken += 1
            yield text
