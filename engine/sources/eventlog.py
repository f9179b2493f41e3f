"""The event log of one feed: stamped Parquet segments, written once, in order, read by everyone.

    <root>/<feed>/live/      committed segments, as appended; Spark's file source reads here
    <root>/<feed>/history/   the same rows in fewer, larger files (engine/sources/compaction.py)
    <root>/<feed>/tmp/       segments being written; the next writer removes those of a dead one
    <root>/<feed>/lock       held (flock) while rows get their numbers and until they are on disk

Appends that wait for each other in one process are committed as one segment. A row is in the
log when `append` has returned, and stays: a crash at any moment leaves whole segments
without gaps in their numbers.
"""

from __future__ import annotations

import fcntl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from engine.failpoints import failpoint
from engine.model.columns import CLOCK, SEQ, TIME
from engine.model.messages import Message
from engine.sources import compaction
from engine.sources.appends import Admit, AdmittedAppends, Appended, AppendEntry, AppendPoint, PendingAppend, entries_of, group_size, later
from engine.sources.buckets import write_rows
from engine.sources.segment_rows import joined, segment_parts, segment_rows
from engine.sources.segment_times import LEAST_T, TailRequest, first_t_of, matching, parts_in_order, reaching
from engine.sources.segments import LogDamaged, Segment, SegmentGap, list_segments, newest_segment, publish, segments_beyond, without_overlaps

TICK_NS = 50_000_000
LISTINGS = 50
"""How often a listing is retried when files changed meanwhile."""


class RowsDropped(RuntimeError):
    """Rows were deleted (retention) before they could be read."""


class MissingRows(LogDamaged):
    """Rows after the last stored one are in no file any more: continuing would lose them."""


@dataclass(frozen=True)
class Span:
    """Rows `[first, stop)` of a log; `max_t` is the feed's clock after them."""

    first: int
    stop: int
    max_t: int

    @property
    def rows(self) -> int:
        return self.stop - self.first


class Address(ABC):
    """Where a log is, in a message to another process."""

    @abstractmethod
    def open(self) -> EventLog:
        """The log, for reading."""


class EventLog:
    """One feed's log. Any number of processes may write and read at the same time; one object
    may be shared by threads."""

    def __init__(self, root: Path | str, feed: str) -> None:
        self.folder = Path(root) / feed
        self.live, self.history, self.tmp = (self.folder / name for name in ("live", "history", "tmp"))
        self._queue: list[PendingAppend] = []
        self._queue_lock = threading.Lock()
        self._commit_lock = threading.Lock()

    # -- writing -----------------------------------------------------------------------------------

    def append(
        self, rows: pa.Table, *, key: str | None = None, note: Mapping[str, Any] | None = None, admit: Admit | None = None, since: int = 0
    ) -> Appended:
        """Puts checked, unstamped `rows` at the end of the log; they are on disk when this returns.

        With a `key`, an append at or beyond `since` with the same key is returned instead of
        writing again. `note` (JSON) is stored with the rows until they are compacted. `admit`
        (instead of a note) decides at the rows' place in the log which of them are appended: only
        there is their clock known. Raises OSError: then the rows may be in the log or not; a retry
        with the same key is safe.
        """
        waiting = PendingAppend(rows, key, admit or (lambda rows, end: (rows, note or {})), since)
        with self._queue_lock:
            self._queue.append(waiting)
        with self._commit_lock:
            # The previous leader may have committed these rows together with its own.
            if not waiting.settled:
                self._commit_queue()
        if waiting.error is not None:
            raise waiting.error
        assert waiting.result is not None
        return waiting.result

    def _commit_queue(self) -> None:
        with self._queue_lock:
            queue, self._queue = self._queue, []
        try:
            with self._writing():
                while queue:
                    size = group_size(queue)
                    self._commit(queue[:size])
                    queue = queue[size:]
        except BaseException as error:
            for waiting in queue:
                waiting.error = waiting.error or error
            if not isinstance(error, Exception):
                raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Around commits of this process that follow each other."""
        with self.locked():
            self._sweep()
            yield

    def _commit(self, group: Sequence[PendingAppend]) -> None:
        """One segment of the group's rows."""
        newest = self._newest()
        next_seq, max_t = _end(newest)
        mtime_ns = _later_than(newest)
        end = AppendPoint(max_t, 0 if newest is None else max(0, (time.time_ns() - _mtime_ns(newest)) // 1_000_000))
        admitted = self._admitted(group, next_seq, end)
        if admitted.entries:
            self._write(admitted, max_t, mtime_ns)
        admitted.answer(group)

    def _admitted(self, group: Sequence[PendingAppend], next_seq: int, end: AppendPoint) -> AdmittedAppends:
        """The result of the group at row `next_seq`; nothing is written yet."""
        known: dict[str, Appended] = {}
        if any(waiting.key is not None for waiting in group):
            since = min(waiting.since for waiting in group if waiting.key is not None)
            known = {entry.key: entry.appended for entry in self.entries(since) if entry.key is not None}
        entries: list[AppendEntry] = []
        answers: list[Appended] = []
        fresh: list[pa.Table] = []
        for waiting in group:
            before = known.get(waiting.key) if waiting.key is not None else None
            if before is not None:
                answers.append(replace(before, repeated=True))
                continue
            rows, note = waiting.admit(waiting.rows, end)
            entry = AppendEntry(next_seq, rows.num_rows, waiting.key, note)
            answers.append(entry.appended)
            if entry.rows:
                entries.append(entry)
                fresh.append(rows.replace_schema_metadata(None))
                next_seq += entry.rows
                end = AppendPoint(later(end.clock, rows), 0)
                if waiting.key is not None:
                    known[waiting.key] = entry.appended
        return AdmittedAppends(entries, fresh, answers)

    def _write(self, admitted: AdmittedAppends, max_t: int | None, mtime_ns: int) -> None:
        stamped, reached = admitted.stamped(max_t)
        name = Segment.name(admitted.entries[0].first_seq, stamped.num_rows, reached)

        def write(path: Path) -> None:
            write_rows(path, stamped)
            failpoint("log.before_rename")

        publish(write, self.tmp / f"append-{name}", self.live / name, mtime_ns=mtime_ns)
        failpoint("log.after_rename")

    @contextmanager
    def locked(self, name: str = "lock") -> Iterator[None]:
        """Holds a lock of this log against all other processes and threads."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.folder.stat().st_mode & 0o077:
            # Only the owner may read rows, also in logs made by earlier releases.
            self.folder.chmod(0o700)
        for folder in (self.live, self.history, self.tmp):
            folder.mkdir(exist_ok=True)
        with (self.folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While it is held, nothing is appended to this log, and nothing compacted."""
        with self.locked(compaction.LOCK), self.locked():
            yield

    def replace_end(self, old: Sequence[Segment], write: Callable[[BinaryIO], tuple[int, int]]) -> None:
        """Replaces the last segments `old` by one, atomically. `write` gives its rows and the clock
        after them. Held `alone`."""
        target = self.tmp / f"append-replaced-{old[0].first_seq}"
        with target.open("wb") as file:
            rows, clock = write(file)
        newest = max(segment.path.stat().st_mtime_ns for segment in old)
        # Spark sorts files by the time of their modification.
        name = Segment.name(old[0].first_seq, rows, clock)
        made = publish(lambda path: None, target, self.live / name, mtime_ns=newest + 1_000_000)
        # Oldest first: until the last is removed the log ends where it did.
        for segment in old:
            if segment.path != made:
                segment.path.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Removes what a dead writer left. Caller holds the lock: no append is under way."""
        for leftover in self.tmp.glob("append-*"):
            leftover.unlink(missing_ok=True)

    # -- the end -----------------------------------------------------------------------------------

    @property
    def end(self) -> tuple[int, int | None]:
        """The next row's number and the greatest `t` (null: empty log), from file names."""
        return _end(self._newest())

    def grown_since(self, look_ns: int) -> bool:
        """Whether rows may have been appended since a look at the log that began at `look_ns`
        (nanoseconds since the epoch). One system call."""
        try:
            # A file system's clock ticks some hundred times a second.
            return self.live.stat().st_mtime_ns + TICK_NS > look_ns
        except FileNotFoundError:
            return False

    @property
    def start(self) -> int:
        """The number of the oldest row kept; that of the next row if the log is empty."""
        kept = self.segments()
        return kept[0].first_seq if kept else 0

    @property
    def first_t(self) -> int | None:
        """The time of the oldest row still there; null in an empty log."""
        for _ in range(LISTINGS):
            kept = self.segments()
            try:
                return first_t_of(kept[0]) if kept else None
            except FileNotFoundError:
                continue
        raise RowsDropped("the log was reorganised faster than it could be read")

    def _newest(self) -> Segment | None:
        # Live before history, as in `segments`: segments that compaction moves meanwhile are then
        # found in their new place.
        segments = [newest_segment(self.live), *list_segments(self.history)]
        return max((segment for segment in segments if segment is not None), key=lambda s: s.next_seq, default=None)

    def ahead(self, position: int, most_rows: int, stop: int | None = None) -> Span | None:
        """The rows after `position`: whole segments with up to `most_rows`, at least one;
        only those before `stop`.

        Null if there are none. Raises MissingRows if they are in no file any more. Reads only file
        names, unless `stop` is inside a segment.
        """
        segments = [segment for segment in self._beyond(position + 1) if stop is None or segment.first_seq < stop]
        if not segments:
            if stop is not None and position + 1 < stop:
                raise self.missing(position + 1, stop)
            return None
        if segments[0].first_seq > position + 1:
            raise self.missing(position + 1, segments[0].first_seq)
        last = segments[0]
        for segment in segments[1:]:
            if segment.next_seq - position - 1 > most_rows:
                break
            last = segment
        if stop is None or last.next_seq <= stop:
            return Span(position + 1, last.next_seq, last.max_t)
        clocks = [pc.max(rows.column(name)).as_py() for rows in self.read(position + 1, stop, [TIME, CLOCK]) for name in (TIME, CLOCK)]
        return Span(position + 1, stop, max(clock for clock in clocks if clock is not None))

    def missing(self, first: int, stop: int) -> MissingRows:
        """The exception for rows `[first, stop)` that cannot be found."""
        return MissingRows(self.folder.name, Message("rows {first} to {last} are in no file of the log", first=first, last=stop - 1))

    def _beyond(self, seq: int) -> list[Segment]:
        """The segments that end beyond row `seq`, in order, without gaps."""
        with suppress(SegmentGap):
            live = without_overlaps(segments_beyond(self.live, seq))
            # The usual answers are in the names of live segments; history is listed only when
            # something is not among them.
            if (live and live[0].first_seq <= seq) or (not live and self.end[0] <= seq):
                return live
        return [segment for segment in self.segments() if segment.next_seq > seq]

    def _live_beyond(self, seq: int) -> list[Segment]:
        """The segments that were not compacted yet and end beyond row `seq`, in order."""
        return segments_beyond(self.live, seq)

    def waiting_since(self, seq: int) -> float | None:
        """When the first row after `seq` arrived, in seconds since the epoch, or null."""
        for segment in segments_beyond(self.live, seq + 1):
            with suppress(FileNotFoundError):
                return segment.path.stat().st_mtime
        return None

    def segments(self) -> list[Segment]:
        """The files that hold the log, without gaps or overlaps, in order.

        A file may be compacted away before it is opened: `read` and `tail` then look again. Raises
        SegmentGap if rows are lost for good.
        """
        for attempt in range(LISTINGS):
            try:
                # A live file that is missing here because it was compacted is already in history
                # there. Never the other way round.
                live = list_segments(self.live)
                return without_overlaps([*live, *list_segments(self.history)])
            except SegmentGap:
                if attempt == LISTINGS - 1:
                    raise
                time.sleep(0.01)
        raise AssertionError("unreachable")

    # -- reading -----------------------------------------------------------------------------------

    def read(self, from_seq: int = 0, to_seq: int | None = None, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Stamped rows with `from_seq <= seq < to_seq` (null: up to the end as it is now), in
        order, in tables of bounded size.

        Starts at the oldest row kept when `from_seq` is removed already. Columns that a segment
        does not have are missing from its tables. Raises LogDamaged, and RowsDropped if rows go
        (retention) before they are read.
        """
        stop = self.end[0] if to_seq is None else to_seq
        return joined(self._pieces(from_seq, stop, columns))

    def all_between(self, first: int, stop: int) -> Iterator[pa.Table]:
        """Rows `[first, stop)` in order, as `read` gives them. Raises MissingRows."""
        for rows in self.read(first, stop) if first < stop else ():
            if rows.num_rows:
                seq = rows.column(SEQ)[0].as_py()
                if seq != first:
                    raise self.missing(first, seq)
                yield rows
                first += rows.num_rows
        if first < stop:
            raise self.missing(first, stop)

    def parts_between(self, first: int, stop: int, buckets_of_parts: Sequence[Collection[int]]) -> Iterator[tuple[pa.Table, Sequence[int]]]:
        """The rows of sets of buckets (`engine/sources/buckets.py`) among `[first, stop)`: tables
        of rows in order, each with which sets have all their rows of a segment in it. Segments come
        in order, each opened once. Raises MissingRows, LogDamaged."""
        while first < stop:
            try:
                for segment in self._beyond(first):
                    if segment.first_seq > first:
                        raise self.missing(first, segment.first_seq)
                    yield from segment_parts(segment, first, stop, buckets_of_parts)
                    first = segment.next_seq
                    if first >= stop:
                        return
            except FileNotFoundError:
                # It was compacted.
                continue
            raise self.missing(first, stop)

    def _pieces(self, position: int, stop: int, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        started = False
        while position < stop:
            segments = [s for s in self.segments() if s.next_seq > position and s.first_seq < stop]
            if not segments:
                return
            if started and segments[0].first_seq > position:
                raise RowsDropped(f"rows {position} to {segments[0].first_seq - 1} were dropped while they were being read")
            try:
                for segment in segments:
                    for piece in segment_rows(segment, max(position, segment.first_seq), stop, columns):
                        yield piece
                        started, position = True, max(position, segment.first_seq) + piece.num_rows
            except FileNotFoundError:
                continue
            return

    def tail(
        self,
        from_t: int,
        to_t: int | None = None,
        *,
        lateness: int | None = None,
        columns: Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows with `from_t <= t < to_t`, in order of arrival: of all entities or of those named.
        Opens no segment that ended before.

        With the feed's `lateness`, without the rows that came too late; then no segment is opened,
        either, that began when whatever is of the span would have been late. Needs the memory of
        the answer and of one row group. The table has no columns when the log is empty.
        """
        wanted = TailRequest(from_t, to_t, lateness, columns, None if entities is None else pa.array(entities, pa.string()))
        for _ in range(LISTINGS):
            segments = self.segments()
            try:
                # Without any match the newest segment gives an empty table its columns.
                parts = [matching(s, wanted) for s in reaching(segments, wanted) or segments[-1:]]
            except FileNotFoundError:
                continue
            full = [table for table in parts if table.num_rows] or parts[:1]
            return pa.concat_tables(full, promote_options="permissive") if full else pa.table({})
        raise RowsDropped("the log was reorganised faster than it could be read")

    def numbers_of(self, from_t: int, to_t: int, lateness: int) -> Span:
        """Rows among which are all that are on time and in `[from_t, to_t)`: `max_t` is the clock
        after them, or the least time when there are none.

        From the names of segments and the statistics of the first and the last one's row groups: no
        row is read. Rows between the oldest row and the span's first are outside.
        """
        segments = self.segments()
        next_seq, max_t = (segments[-1].next_seq, segments[-1].max_t) if segments else (0, LEAST_T)
        opening = next((segment for segment in segments if segment.max_t >= from_t), None)
        closing = next((segment for segment in segments if segment.max_t >= to_t + lateness), None)
        first = next_seq if opening is None else next((p.first_seq for p in parts_in_order(opening) if p.greatest_t >= from_t), opening.next_seq)
        if closing is None:
            return Span(first, next_seq, max_t)
        # The clock never goes back: after a row beyond it all of the span are late.
        inside = [p.next_seq for p in parts_in_order(closing) if p.clock < to_t + lateness]
        return Span(first, max(first, inside[-1] if inside else closing.first_seq), closing.max_t)

    def entries(self, from_seq: int = 0) -> Iterator[AppendEntry]:
        """The appends of live segments that end beyond `from_seq`, in order, with heartbeats.

        Raises LogDamaged, and FileNotFoundError for compacted ones (the caller prevents that).
        """
        for segment in self._live_beyond(from_seq):
            yield from self._entries_of(segment)

    def _entries_of(self, segment: Segment) -> list[AppendEntry]:
        with segment.opened() as file:
            return list(entries_of(file.schema_arrow.metadata or {}))

    def verify(self, from_seq: int, to_seq: int) -> None:
        """Raises LogDamaged if a live segment of these rows is not as it was written."""
        for segment in self._live_beyond(from_seq):
            if segment.first_seq < to_seq:
                # Compaction has verified the segments that it removed.
                with suppress(FileNotFoundError):
                    segment.verify()

    def address(self, spans: Sequence[Span]) -> Address:
        """A serialisable handle by which another process opens the log to read `spans`."""
        return FolderLog(str(self.folder.parent), self.folder.name)

    # -- maintenance -------------------------------------------------------------------------------

    def compact(self, up_to_seq: int) -> int:
        """Moves live segments up to `up_to_seq` into larger files in history; returns how many.

        Readers are not disturbed. The caller sees to it that Spark needs the segments no more and
        that their entries are settled.
        """
        return compaction.compact(self, up_to_seq)

    def drop_before(self, t: int) -> int:
        """Deletes the oldest history segments whose rows all have times < `t`; returns how many
        rows went. The newest file stays."""
        return compaction.drop_before(self, t)


@dataclass(frozen=True)
class FolderLog(Address):
    """A folder that is reached under the same name."""

    root: str
    feed: str

    def open(self) -> EventLog:
        return EventLog(self.root, self.feed)


def _end(newest: Segment | None) -> tuple[int, int | None]:
    return (0, None) if newest is None else (newest.next_seq, newest.max_t)


def _later_than(newest: Segment | None) -> int:
    """Now, or a millisecond after the newest segment's modification time if the clock is behind it:
    Spark sorts by it, in ms."""
    now = time.time_ns() // 1_000_000
    if newest is not None:
        now = max(now, _mtime_ns(newest) // 1_000_000 + 1)
    return now * 1_000_000


def _mtime_ns(segment: Segment) -> int:
    """The modification time; of the history file if it was compacted."""
    try:
        return segment.path.stat().st_mtime_ns
    except FileNotFoundError:
        history = list_segments(segment.path.parent.parent / "history")
        return max((s.path.stat().st_mtime_ns for s in history), default=0)
