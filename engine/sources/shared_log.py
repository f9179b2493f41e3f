"""An event log on shared storage: any number of processes on any machines append to it
and read it (decision 26).

A database keeps the order: a row for each segment, and one for each feed with the end of its log.
Files are in a local folder, or in a store of S3's protocol; no folder is listed to read, and no
file is renamed or locked.

    <store>/<feed>/live/      segments as they were appended
    <store>/<feed>/history/   the same rows in fewer, larger files
    <store>/<feed>/damaged/   files that were damaged, after a repair
    <store>/<feed>/state/     snapshots of its evaluation's states (engine/runtime/snapshots.py)

A writer puts a file that is stamped for the place where the log ends when it looks; then, in
one short transaction that locks the feed's row, takes that place if it is still free. If
another was faster, it judges and stamps its rows again, and puts them while it holds the lock.
A file that no row names was left behind by a writer that lost its place, or died: it is not
read, and is deleted after a day.
"""

from __future__ import annotations

import io
import time
import uuid
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from engine.failpoints import failpoint
from engine.model.messages import Message
from engine.sources.appends import AdmittedAppends, AppendEntry, AppendPoint, PendingAppend
from engine.sources.buckets import write_rows
from engine.sources.compaction import common_schema, joinable, runs, write_joined
from engine.sources.eventlog import Address, EventLog, Span
from engine.sources.segments import WHOLE_BYTES, LogDamaged, Segment
from engine.sources.store import Files, StoreUnavailable, files_of

LIVE, HISTORY, DAMAGED = "live", "history", "damaged"
REPLACED_S = 3_600
"""A file that a larger one replaced, or that retention took, is kept for this long: a reader that
has just listed it can still read it; the longest batch is much shorter."""
ORPHANED_S = 86_400
"""A file that has been without a row for this long will not get one."""
TAKEN_S = ORPHANED_S / 4
"""A writer that was stopped for longer than this between its file and its
place puts the file again."""
REMEMBERED = 1_000
"""A process keeps the entries of this many segments that it wrote, and need not read them back."""


@dataclass(frozen=True)
class LogEnd:
    """The end of a log: the next row's number, the clock, and for how many milliseconds it has been
    there."""

    next_seq: int = 0
    max_t: int | None = None
    silent_ms: int = field(default=0, compare=False)


@dataclass(frozen=True)
class OrderedSegment:
    """A segment in its place: rows from `first_seq` on, the clock after them, the file that
    has them, with its checksum."""

    first_seq: int
    rows: int
    max_t: int
    file: str
    crc: int | None


class AppendLock(Protocol):
    """The log's end, while no other process can move it."""

    end: LogEnd

    def add(self, segment: OrderedSegment) -> None:
        """The segment is listed at `end` when the lock is released."""


class Listing(Protocol):
    """One feed's segments in order."""

    def end(self) -> LogEnd:
        """Where the log ends."""

    def beyond(self, seq: int) -> Sequence[OrderedSegment]:
        """The segments that end beyond row `seq`, in order."""

    def names(self, file: str) -> bool:
        """Whether the file is one of the segments."""


class SegmentOrder(Listing, Protocol):
    """The same in a database, where it grows."""

    def append_lock(self) -> AbstractContextManager[AppendLock]:
        """One transaction. A failure leaves nothing behind."""

    def waiting_since(self, seq: int) -> float | None:
        """When the first segment beyond row `seq` took its place, in seconds since the epoch."""

    def grown_since(self, look_ns: int) -> bool:
        """Whether rows may have been appended since then. Called a hundred times a second."""

    def replace(self, parts: Sequence[str], by: Sequence[OrderedSegment]) -> bool:
        """Exchanges neighbouring segments, named by their files, in one transaction; false, and
        nothing done, when some are no more."""

    def alone(self) -> AbstractContextManager[None]:
        """No other process moves the end or replaces segments: a transaction, or part
        of one that is under way."""

    def exchange(self, parts: Sequence[str], by: OrderedSegment) -> None:
        """Exchanges neighbouring segments, named by their files. The clock at the log's end is that
        of `by` if it is the last. Held `alone`."""

    def replaced(self, seconds: float) -> Sequence[str]:
        """Files that were replaced or dropped at least this long ago."""

    def known(self) -> Collection[str]:
        """All files of the feed that are or were segments and have not been forgotten."""

    def forget(self, files: Sequence[str]) -> None:
        """The files have been deleted."""


@dataclass(frozen=True)
class SharedSegment(Segment):
    """A segment in `files`."""

    files: Files | None = None
    listing: Listing | None = None

    def unverified(self) -> pa.NativeFile:
        return self.content()

    def content(self) -> pa.NativeFile:
        """Opens the file. Raises LogDamaged when it is missing, FileNotFoundError when it was
        compacted: readers look again; StoreUnavailable."""
        assert self.files is not None and self.listing is not None
        try:
            return self.files.open(str(self.path))
        except FileNotFoundError:
            if self.listing.names(str(self.path)):
                self.files.check_reachable()
                raise self.damaged(Message("the file is missing")) from None
            raise

    def verify(self) -> None:
        """As Segment.verify. Raises StoreUnavailable too."""
        with self._reading(), self.content() as file:
            self.expect(zlib.crc32(file.read_buffer()))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """An error is damage if the file's bytes are not those that were stored; else
        the store is unavailable."""
        try:
            yield
        except (FileNotFoundError, StoreUnavailable):
            raise
        except (pa.ArrowException, OSError) as error:
            with self.content() as file:
                self.expect(zlib.crc32(file.read_buffer()))
            raise StoreUnavailable(f"{self.path} could not be read: {error}") from error

    def _verified(self) -> Any:
        """Small files are read at once and compared with their checksum; in larger ones
        each page has a checksum."""
        file = self.content()
        if file.size() > WHOLE_BYTES:
            return file
        with file:
            content = file.read_buffer()
        self.expect(zlib.crc32(content))
        return pa.BufferReader(content)


class SharedReader(EventLog):
    """The segments of a listing, read like any log."""

    def __init__(self, listing: Listing, files: Files, feed: str) -> None:
        super().__init__(Path(), feed)
        self.listing, self.files = listing, files

    @property
    def end(self) -> tuple[int, int | None]:
        end = self.listing.end()
        return end.next_seq, end.max_t

    def segments(self) -> list[Segment]:
        return self._beyond(-1)

    def _beyond(self, seq: int) -> list[Segment]:
        return [self._segment(one) for one in self.listing.beyond(seq)]

    def _live_beyond(self, seq: int) -> list[Segment]:
        return [segment for segment in self._beyond(seq) if _is_live(segment)]

    def _segment(self, one: OrderedSegment) -> SharedSegment:
        return SharedSegment(one.first_seq, one.rows, one.max_t, Path(one.file), one.crc, self.files, self.listing)


class SharedLog(SharedReader):
    """One feed's log. Written and read like any other; one object may be shared by threads."""

    def __init__(self, order: SegmentOrder, files: Files, feed: str) -> None:
        super().__init__(order, files, feed)
        self.order = order
        self._own: dict[str, list[AppendEntry]] = {}
        self._sweep_at = 0.0

    # -- writing -----------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        yield

    def _commit(self, group: Sequence[PendingAppend]) -> None:
        end, began = self.order.end(), time.time()
        admitted, segment = self._put(group, end)
        failpoint("log.before_order")
        # The transaction failed: its row may be there or not, so the file stays. A repetition
        # with the same key learns it.
        with self.order.append_lock() as lock:
            if lock.end != end or time.time() - began > TAKEN_S:
                self._discard(segment)
                admitted, segment = self._put(group, lock.end)
            if segment is not None:
                lock.add(segment)
            failpoint("log.before_order_commit")
        failpoint("log.after_order")
        if segment is not None:
            self._remember(segment.file, admitted.entries)
        admitted.answer(group)

    def _put(self, group: Sequence[PendingAppend], end: LogEnd) -> tuple[AdmittedAppends, OrderedSegment | None]:
        """The group's rows in a file stamped for `end`; no file if none are left."""
        admitted = self._admitted(group, end.next_seq, AppendPoint(end.max_t, end.silent_ms))
        if not admitted.entries:
            return admitted, None
        stamped, max_t = admitted.stamped(end.max_t)
        buffer = io.BytesIO()
        write_rows(buffer, stamped)
        return admitted, self._put_file(LIVE, end.next_seq, stamped.num_rows, max_t, buffer)

    def _put_file(self, folder: str, first_seq: int, rows: int, max_t: int, written: io.BytesIO) -> OrderedSegment:
        content = pa.py_buffer(written.getbuffer())
        crc = zlib.crc32(content)
        # A name that no other writer has, also not with the same rows for the same place.
        facts = Segment.name(first_seq, rows, max_t, crc).removesuffix(".parquet")
        name = f"{self.folder.name}/{folder}/{facts}.{uuid.uuid4().hex}.parquet"
        self.files.put(name, content)
        return OrderedSegment(first_seq, rows, max_t, name, crc)

    def _discard(self, segment: OrderedSegment | None) -> None:
        if segment is not None:
            self.files.remove(segment.file)

    def _remember(self, file: str, entries: list[AppendEntry]) -> None:
        while len(self._own) >= REMEMBERED:
            self._own.pop(next(iter(self._own)), None)
        self._own[file] = entries

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self.order.alone():
            yield

    def replace_end(self, old: Sequence[Segment], write: Callable[[BinaryIO], tuple[int, int]]) -> None:
        buffer = io.BytesIO()
        rows, clock = write(buffer)
        # Should the transaction be broken off, the file is one that no row names.
        self.order.exchange([str(segment.path) for segment in old], self._put_file(LIVE, old[0].first_seq, rows, clock, buffer))

    def replace_damaged(self, old: Segment, write: Callable[[BinaryIO], None]) -> None:
        """Another file for the same rows; the remains of the old one stay
        in damaged/. Held `alone`."""
        assert isinstance(old, SharedSegment)
        with suppress(LogDamaged), old.content() as file:
            self.files.put(f"{self.folder.name}/{DAMAGED}/{old.path.name}", file.read_buffer())
        buffer = io.BytesIO()
        write(buffer)
        self.order.exchange([str(old.path)], self._put_file(old.path.parent.name, old.first_seq, old.rows, old.max_t, buffer))

    # -- what is there -----------------------------------------------------------------------------

    def grown_since(self, look_ns: int) -> bool:
        return self.order.grown_since(look_ns)

    def newest(self, rows: int) -> list[SharedSegment]:
        """The segments that hold the last `rows`."""
        return [self._segment(one) for one in self.order.beyond(self.end[0] - rows)]

    def waiting_since(self, seq: int) -> float | None:
        return self.order.waiting_since(seq + 1)

    def entries(self, from_seq: int = 0) -> Iterator[AppendEntry]:
        for segment in self._live_beyond(from_seq):
            own = self._own.get(str(segment.path))
            yield from self._entries_of(segment) if own is None else own

    def address(self, spans: Sequence[Span]) -> Address:
        """Names the files: readers of it need no database."""
        first, stop = min((span.first for span in spans), default=0), max((span.stop for span in spans), default=0)
        # A segment that is no longer asked for costs a few bytes.
        segments = [one for one in self.order.beyond(first) if one.first_seq < stop] if spans else []
        return ListedLog(self.files.url, self.folder.name, tuple(segments))

    # -- maintenance -------------------------------------------------------------------------------

    def compact(self, up_to_seq: int) -> int:
        ready = [s for s in self.segments() if _is_live(s) and s.next_seq <= up_to_seq + 1]
        for run in runs(ready):
            self._join(run)
        before: list[Segment] = []
        while (tail := joinable([s for s in self.segments() if not _is_live(s)])) and tail != before:
            self._join(tail)
            before = tail
        self._sweep_files()
        return len(ready)

    def drop_before(self, t: int) -> int:
        dropped = []
        for segment in [s for s in self.segments() if not _is_live(s)][:-1]:
            if segment.max_t >= t:
                break
            dropped.append(segment)
        taken = self.order.replace([str(segment.path) for segment in dropped], []) if dropped else False
        return sum(segment.rows for segment in dropped) if taken else 0

    def _join(self, parts: Sequence[Segment]) -> None:
        """One file in history for `parts`. Parts with other column types get separate files."""
        schema = common_schema(parts)
        if schema is None:
            middle = len(parts) // 2
            self._join(parts[:middle])
            self._join(parts[middle:])
            return
        if len(parts) == 1 and not _is_live(parts[0]):
            return
        assert all(a.next_seq == b.first_seq for a, b in pairwise(parts))
        buffer = io.BytesIO()
        write_joined(buffer, schema, parts)
        whole = self._put_file(HISTORY, parts[0].first_seq, sum(s.rows for s in parts), parts[-1].max_t, buffer)
        failpoint("log.before_delete")
        if not self.order.replace([str(part.path) for part in parts], [whole]):
            # Another process was faster.
            self.files.remove(whole.file)

    def _sweep_files(self) -> None:
        """Removes the files of former segments, and from time to time
        files that never became one."""
        gone = self.order.replaced(REPLACED_S)
        for file in gone:
            self.files.remove(file)
        self.order.forget(gone)
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + REPLACED_S
            self.remove_orphans(ORPHANED_S)

    def remove_orphans(self, age_s: float) -> int:
        """Removes files without a row that are older than `age_s`; how many. The one
        time that folders are listed."""
        # Files first: a row appended meanwhile is in a listed file, or in a newer one.
        listed = [file for folder in (LIVE, HISTORY) for file in self.files.older_than(f"{self.folder.name}/{folder}", age_s)]
        known = self.order.known() if listed else ()
        orphans = [file for file in listed if file not in known]
        for file in orphans:
            self.files.remove(file)
        return len(orphans)

    def remove_all(self) -> None:
        """Removes the files of a feed that was removed."""
        self.files.remove_folder(self.folder.name)


@dataclass(frozen=True)
class ListedLog(Address):
    """Some segments of a log in the store at `url`."""

    url: str
    feed: str
    segments: tuple[OrderedSegment, ...]

    def open(self) -> EventLog:
        return SharedReader(_Listed(self.segments), files_of(self.url), self.feed)


@dataclass(frozen=True)
class _Listed:
    """Implements `Listing`: what does not change."""

    segments: Sequence[OrderedSegment]

    def end(self) -> LogEnd:
        last = self.segments[-1] if self.segments else None
        return LogEnd() if last is None else LogEnd(last.first_seq + last.rows, last.max_t)

    def beyond(self, seq: int) -> Sequence[OrderedSegment]:
        return [one for one in self.segments if one.first_seq + one.rows > seq]

    def names(self, file: str) -> bool:
        return True


def _is_live(segment: Segment) -> bool:
    return segment.path.parent.name == LIVE


def moved_in(order: SegmentOrder, files: Files, old: EventLog) -> int:
    """Copies a log's files from a folder into a store, and registers them in order; returns the
    number of rows. No appends meanwhile."""
    segments = old.segments()
    shared = SharedLog(order, files, old.folder.name)
    if order.end() != LogEnd():
        raise ValueError(f"{old.folder.name}: there is a log in {files.title} already")
    moved: list[OrderedSegment] = []
    for segment in segments:
        segment.verify()
        content = pa.py_buffer(segment.path.read_bytes())
        name = f"{old.folder.name}/{segment.path.parent.name}/{segment.path.stem}.{uuid.uuid4().hex}.parquet"
        shared.files.put(name, content)
        moved.append(OrderedSegment(segment.first_seq, segment.rows, segment.max_t, name, zlib.crc32(content)))
    with order.append_lock() as lock:
        for one in moved:
            lock.add(one)
    return sum(one.rows for one in moved)
