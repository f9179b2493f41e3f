"""Segments of an event log: their names, and how one becomes visible as a whole.

A segment is a Parquet file of rows with dense sequence numbers in order. Its name gives these
numbers and the feed's clock: `<first seq, 20 digits>-<rows>-<greatest t up to its last row>.<CRC-32
of the file, 8 hexadecimal digits>.parquet`. The checksum is verified when a segment is opened; of a
large one once in a process, as long as the file system reports that the file is the same. The pages
that are read have separate checksums. Segments of older releases have none in their names and are
read without verification.
"""

from __future__ import annotations

import errno
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.model.messages import Message, untranslated

SUFFIX = ".parquet"
WHOLE_BYTES = 4_000_000
"""Files up to this size are read at once; of larger ones the checksum is computed first, and then
the row groups that are needed."""
SUMMED_BYTES = 1 << 20
KNOWN_FILES = 2_000
"""How many large files' verified checksums, and how many parsed names, a process remembers."""
_OUR_OWN = {errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}
"""Errors of reading that are unrelated to the file."""


_whole: OrderedDict[Path, tuple[int, ...]] = OrderedDict()
"""Files whose checksums were right, as the file system described them then."""
_whole_lock = threading.Lock()


class LogDamaged(RuntimeError):
    """Rows of a feed's log cannot be read any more. `file` is the segment in the log's
    folder; null when it is missing."""

    def __init__(self, feed: str, reason: Message, file: Path | None = None) -> None:
        super().__init__(f"{feed}: {'' if file is None else f'{file.parent.name}/{file.name}: '}{reason}")
        self.feed, self.reason, self.file = feed, reason, file


class SegmentGap(LogDamaged):
    """Rows are missing inside a listing: files changed while it was read, or files were removed."""


@dataclass(frozen=True)
class Segment:
    """Rows `[first_seq, next_seq)` of a log; `max_t` is the greatest `t` of all rows below
    `next_seq`, not of these alone."""

    first_seq: int
    rows: int
    max_t: int
    path: Path
    crc: int | None = None
    """The checksum of the whole file; null in segments of older releases."""

    @property
    def feed(self) -> str:
        """The name of the log's folder."""
        return self.path.parent.parent.name

    @property
    def next_seq(self) -> int:
        return self.first_seq + self.rows

    @staticmethod
    def name(first_seq: int, rows: int, max_t: int, crc: int | None = None) -> str:
        """The file name.

        >>> Segment.name(12, 3, -5, 0xBEE)
        '00000000000000000012-3--5.00000bee.parquet'
        """
        return f"{first_seq:020d}-{rows}-{max_t}{'' if crc is None else f'.{crc:08x}'}{SUFFIX}"

    @classmethod
    def parse(cls, path: Path) -> Segment:
        """The segment that a file name states. Raises LogDamaged for any other name."""
        facts, _, crc = path.name.removesuffix(SUFFIX).partition(".")
        try:
            first, rows, max_t = facts.split("-", 2)
            return cls(int(first), int(rows), int(max_t), path, int(crc, 16) if crc else None)
        except ValueError:
            raise LogDamaged(path.parent.parent.name, Message("it does not have the name of a segment"), path) from None

    def damaged(self, reason: Message) -> LogDamaged:
        """The exception for a file that differs from its name."""
        return LogDamaged(self.feed, reason, self.path)

    @contextmanager
    def opened(self) -> Iterator[pq.ParquetFile]:
        """Opens the file. Raises LogDamaged when it differs from what was written,
        FileNotFoundError when it was removed."""
        with self._reading(), pq.ParquetFile(self._verified(), page_checksum_verification=True) as file:
            if file.metadata.num_rows != self.rows:
                raise self.damaged(Message("rows in the file: {count}", count=file.metadata.num_rows))
            yield file

    def unverified(self) -> Any:
        """The file to read without verifying its checksum. Raises LogDamaged, OSError."""
        return self.path

    def verify(self) -> None:
        """Raises LogDamaged when the file's bytes are not those that were written; an older
        release's is not looked into. Reads all of it."""
        with _whole_lock:
            _whole.pop(self.path, None)
        with self._reading():
            self._verified()

    def expect(self, crc: int) -> None:
        """Raises LogDamaged when `crc`, that of the file as it was read, is not the one
        that it was written with."""
        if self.crc not in (None, crc):
            raise self.damaged(Message("its checksum is {found}", found=f"{crc:08x}"))

    def _verified(self) -> pa.BufferReader | Path:
        with self.path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_size <= WHOLE_BYTES:
                content = file.read()
                if self.crc is not None:
                    self.expect(zlib.crc32(content))
                return pa.BufferReader(content)
            seen = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
            if self.crc is not None and _whole.get(self.path) != seen:
                self.expect(crc_of(file))
                _remember(self.path, seen)
        return self.path

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Errors of reading are damage of this file."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, MemoryError) or getattr(error, "errno", None) in _OUR_OWN:
                raise
            raise self.damaged(untranslated(error)) from error


def _remember(path: Path, seen: tuple[int, ...]) -> None:
    with _whole_lock:
        _whole[path] = seen
        while len(_whole) > KNOWN_FILES:
            _whole.popitem(last=False)


def list_segments(folder: Path) -> list[Segment]:
    """The segments in `folder` sorted by (first_seq, longest first); none if it does not exist.
    Files with other names are ignored."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  no object for each name - strings: a Path for each of thousands of files is ten times slower
    except FileNotFoundError:
        return []
    segments = (_in_folder(folder, name) for name in names if name.endswith(SUFFIX) and not name.startswith("."))
    return sorted(segments, key=lambda segment: (segment.first_seq, -segment.rows))


@lru_cache(maxsize=KNOWN_FILES)
def _in_folder(folder: Path, name: str) -> Segment:
    """Readers list a folder several times for each answer, and the names
    are nearly always the same."""
    return Segment.parse(folder / name)


def segments_beyond(folder: Path, seq: int) -> list[Segment]:
    """The segments in `folder` that end beyond `seq`, sorted, where none overlap. Costs little
    when that is few of many."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]  # noqa: PTH208  no object for each name
    except FileNotFoundError:
        return []
    # Numbers are padded, so names compare like them.
    bound = f"{max(0, seq):020d}"
    later = sorted(name for name in names if name >= bound)
    before = max((name for name in names if name < bound), default=None)
    segments = [Segment.parse(folder / name) for name in ([before] if before else []) + later]
    return [segment for segment in segments if segment.next_seq > seq]


def newest_segment(folder: Path) -> Segment | None:
    """The segment with the greatest name in `folder`: in a folder that is
    only appended to, its end."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]  # noqa: PTH208  no object for each name
    except FileNotFoundError:
        return None
    return Segment.parse(folder / max(names)) if names else None


def without_overlaps(segments: Iterable[Segment]) -> list[Segment]:
    """The fewest of `segments` that hold all their rows: those covered by longer ones left
    out. Sorted by first_seq.

    Raises SegmentGap when rows are missing between two of them.
    """
    chosen: list[Segment] = []
    for segment in sorted(segments, key=lambda s: (s.first_seq, -s.rows)):
        position = chosen[-1].next_seq if chosen else segment.first_seq
        if segment.first_seq > position:
            raise SegmentGap(segment.feed, Message("rows {first} to {last} are missing", first=position, last=segment.first_seq - 1))
        if segment.next_seq > position:
            chosen.append(segment)
    return chosen


def publish(write: Callable[[Path], None], tmp: Path, target: Path, *, mtime_ns: int | None = None) -> Path:
    """Lets `write` fill the file `tmp`, then makes it `target` with its checksum in its name: on
    disk and whole when this returns its path, absent when it raises before.

    `mtime_ns` becomes the file's modification time. Raises OSError; the temporary file is then
    gone, if the disk allows it.
    """
    try:
        write(tmp)
        with tmp.open("rb") as file:
            crc = crc_of(file)
        if mtime_ns is not None:
            os.utime(tmp, ns=(mtime_ns, mtime_ns))
        sync(tmp)
        named = target.with_name(f"{target.name.removesuffix(SUFFIX)}.{crc:08x}{SUFFIX}")
        tmp.rename(named)
    except BaseException:
        tmp.unlink(missing_ok=True)
        raise
    sync(target.parent)
    return named


def crc_of(file: BufferedIOBase) -> int:
    """The CRC-32 of the rest of a file. Into one small buffer: new ones cost as much again as the
    sum (20 MB: 4 ms instead of 8)."""
    crc, buffer = 0, memoryview(bytearray(SUMMED_BYTES))
    while count := file.readinto(buffer):
        crc = zlib.crc32(buffer[:count], crc)
    return crc


def sync(path: Path) -> None:
    """Puts a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
