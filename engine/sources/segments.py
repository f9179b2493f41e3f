"""Segments of an event log: their names, and how one becomes visible whole or not at all.

A segment is a Parquet file of rows with dense sequence numbers in order. Its name says which, and how far the feed's clock had come:
`<first seq, 20 digits>-<rows>-<greatest t up to its last row>.parquet`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".parquet"


@dataclass(frozen=True)
class Segment:
    """Rows `[first_seq, next_seq)` of a log; `max_t` is the greatest `t` of all rows below `next_seq`, not of these alone."""

    first_seq: int
    rows: int
    max_t: int
    path: Path

    @property
    def next_seq(self) -> int:
        return self.first_seq + self.rows

    @staticmethod
    def name(first_seq: int, rows: int, max_t: int) -> str:
        """The file name.

        >>> Segment.name(12, 3, -5)
        '00000000000000000012-3--5.parquet'
        """
        return f"{first_seq:020d}-{rows}-{max_t}{SUFFIX}"

    @classmethod
    def parse(cls, path: Path) -> Segment:
        """The segment that a file name states. Raises ValueError for any other name."""
        first, rows, max_t = path.name.removesuffix(SUFFIX).split("-", 2)
        return cls(int(first), int(rows), int(max_t), path)


def list_segments(folder: Path) -> list[Segment]:
    """The segments in `folder` sorted by (first_seq, longest first); none when it does not exist. Files with other names are none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - strings: a Path for each of thousands of files is ten times slower
    except FileNotFoundError:
        return []
    found = (Segment.parse(folder / name) for name in names if name.endswith(SUFFIX) and not name.startswith("."))
    return sorted(found, key=lambda segment: (segment.first_seq, -segment.rows))


def segments_beyond(folder: Path, seq: int) -> list[Segment]:
    """The segments in `folder` that end beyond `seq`, sorted, where none overlap. Costs little when that is few of many."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]  # noqa: PTH208
    except FileNotFoundError:
        return []
    # Numbers are padded, so names compare like them.
    bound = f"{max(0, seq):020d}"
    later = sorted(name for name in names if name >= bound)
    before = max((name for name in names if name < bound), default=None)
    found = [Segment.parse(folder / name) for name in ([before] if before else []) + later]
    return [segment for segment in found if segment.next_seq > seq]


def newest_segment(folder: Path) -> Segment | None:
    """The segment with the greatest name in `folder`: in a folder that is only appended to, its end."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]  # noqa: PTH208
    except FileNotFoundError:
        return None
    return Segment.parse(folder / max(names)) if names else None


def without_overlaps(segments: Iterable[Segment]) -> list[Segment]:
    """The fewest of `segments` that hold all their rows: those covered by longer ones left out. Sorted by first_seq.

    Raises Gap when rows are missing between two of them.
    """
    chosen: list[Segment] = []
    for segment in sorted(segments, key=lambda s: (s.first_seq, -s.rows)):
        position = chosen[-1].next_seq if chosen else segment.first_seq
        if segment.first_seq > position:
            raise Gap(f"rows {position} to {segment.first_seq - 1} are missing")
        if segment.next_seq > position:
            chosen.append(segment)
    return chosen


class Gap(RuntimeError):
    """Rows are missing inside a listing: it was read while files came and went, or files were taken away."""


def publish(write: Callable[[Path], None], tmp: Path, target: Path, *, mtime_ns: int | None = None) -> None:
    """Lets `write` fill the file `tmp`, then makes it `target`: on disk and whole when this returns, absent when it raises before.

    `mtime_ns` becomes the file's modification time. Raises OSError; the temporary file is then gone, if the disk allows it.
    """
    try:
        write(tmp)
        if mtime_ns is not None:
            os.utime(tmp, ns=(mtime_ns, mtime_ns))
        sync(tmp)
        tmp.rename(target)
    except BaseException:
        tmp.unlink(missing_ok=True)
        raise
    sync(target.parent)


def sync(path: Path) -> None:
    """Puts a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
