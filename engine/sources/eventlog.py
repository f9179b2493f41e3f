"""The event log of one feed: stamped Parquet segments that are written once, in order, and read by everyone.

    <root>/<feed>/live/      committed segments, as they were appended; Spark's file source reads here
    <root>/<feed>/history/   the same rows in fewer, larger files (engine/sources/compaction.py)
    <root>/<feed>/tmp/       segments being written; whatever a dead writer left here is removed by the next one
    <root>/<feed>/lock       held (flock) while rows get their numbers and until they are on disk

Appends that wait for each other in one process are committed as one segment. A row is in the log when `append` has returned,
and stays: a crash at any moment leaves whole segments without gaps in their numbers.
"""

from __future__ import annotations

import fcntl
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.failpoints import failpoint
from engine.model.clock import in_time
from engine.model.columns import CLOCK, ENTITY, SEQ, TIME
from engine.model.events import Stamper
from engine.sources import compaction
from engine.sources.buckets import groups_of, rows_of, write_rows
from engine.sources.segments import Gap, LogDamaged, Segment, list_segments, newest_segment, publish, segments_beyond, without_overlaps

ENTRIES = b"vedette.entries"
"""Key of a segment's metadata: the appends it was made of, as JSON."""
GROUP_ROWS = 250_000
"""Waiting appends are committed together up to this many rows."""
TABLE_ROWS = 65_536
"""`read` joins small segments to tables of about this size: a thousand tables of a hundred rows cost readers more than the rows do."""
TICK_NS = 50_000_000
KNOWN_SEGMENTS = 2_000
"""Of so many segments the row groups' times are remembered: a file is never written again."""
LEAST_T = -(2**63)
LISTINGS = 50
"""So often a listing that was disturbed by files coming and going is tried again."""


@dataclass(frozen=True)
class Appended:
    """Rows `first_seq` to `last_seq` (inclusive) of the log; `last_seq = first_seq - 1` when there were none.

    `repeated`: an earlier append with the same key stands there; nothing was written now. `note` is what is kept beside the rows.
    """

    first_seq: int
    last_seq: int
    repeated: bool = False
    note: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class End:
    """Where an append begins: the feed's clock there (null in an empty log), and for how many milliseconds nothing has been appended."""

    clock: int | None
    silent_ms: int


Judge = Callable[[pa.Table, End], tuple[pa.Table, Mapping[str, Any]]]
"""(rows, where they would stand) -> those of them that are appended, and the note that is kept beside them."""


@dataclass(frozen=True)
class Entry:
    """One append as its segment remembers it: whose rows `[first_seq, first_seq + rows)` are, and the caller's own note."""

    first_seq: int
    rows: int
    key: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def appended(self) -> Appended:
        return Appended(self.first_seq, self.first_seq + self.rows - 1, note=self.note)


@dataclass
class _Waiting:
    """An append that has not been committed yet."""

    rows: pa.Table
    key: str | None
    judge: Judge
    since: int
    result: Appended | None = None
    error: BaseException | None = None

    @property
    def settled(self) -> bool:
        return self.result is not None or self.error is not None


@dataclass(frozen=True)
class _Judged:
    """What is to be written of a group of appends, and what each of them is answered."""

    entries: list[Entry]
    rows: list[pa.Table]
    answers: list[Appended]

    def stamped(self, max_t: int | None) -> tuple[pa.Table, int]:
        """The rows as they stand in the log behind one whose clock is `max_t`, and the clock after them."""
        rows = self.rows[0] if len(self.rows) == 1 else pa.concat_tables(self.rows)
        first_seq = self.entries[0].first_seq
        stamper = Stamper(first_seq) if max_t is None else Stamper(first_seq, max_t)
        return stamper.stamp(rows).replace_schema_metadata({ENTRIES: notes_of(self.entries)}), _later(max_t, rows)

    def answer(self, group: Sequence[_Waiting]) -> None:
        for waiting, answer in zip(group, self.answers, strict=True):
            waiting.result = answer


class Dropped(RuntimeError):
    """Rows went (retention) before they could be read."""


class MissingRows(LogDamaged):
    """Rows beyond the last stored one are in no file of the log any more: going on would lose them silently."""


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
    """One feed's log. Any number of processes may write and read at once; one object may be shared by threads."""

    def __init__(self, root: Path | str, feed: str) -> None:
        self.folder = Path(root) / feed
        self.live, self.history, self.tmp = (self.folder / name for name in ("live", "history", "tmp"))
        self._queue: list[_Waiting] = []
        self._queue_lock = threading.Lock()
        self._turn = threading.Lock()

    # -- writing ------------------------------------------------------------------------------------------------------------------

    def append(
        self, rows: pa.Table, *, key: str | None = None, note: Mapping[str, Any] | None = None, judge: Judge | None = None, since: int = 0
    ) -> Appended:
        """Puts checked, unstamped `rows` at the end of the log; they are on disk when this returns.

        With a `key`, an append that stands at or beyond `since` under the same key is returned instead of writing again. `note`
        (JSON) is kept beside the rows until they are compacted. `judge` (instead of a note) decides at the rows' place in the log which of
        them are appended: nobody else knows the clock that they meet. Raises OSError: then the rows may be in the log or not, and a
        repetition with the same key tells.
        """
        waiting = _Waiting(rows, key, judge or (lambda rows, end: (rows, note or {})), since)
        with self._queue_lock:
            self._queue.append(waiting)
        with self._turn:
            # Whoever held the turn before may have committed these rows together with its own.
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
                    size = _group_size(queue)
                    self._commit(queue[:size])
                    queue = queue[size:]
        except BaseException as error:
            for waiting in queue:
                waiting.error = waiting.error or error
            if not isinstance(error, Exception):
                raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Around the commits of one turn of this process."""
        with self.locked():
            self._sweep()
            yield

    def _commit(self, group: Sequence[_Waiting]) -> None:
        """One segment of the group's rows."""
        newest = self._newest()
        next_seq, max_t = _end(newest)
        mtime_ns = _later_than(newest)
        end = End(max_t, 0 if newest is None else max(0, (time.time_ns() - _mtime_ns(newest)) // 1_000_000))
        judged = self._judged(group, next_seq, end)
        if judged.entries:
            self._write(judged, max_t, mtime_ns)
        judged.answer(group)

    def _judged(self, group: Sequence[_Waiting], next_seq: int, end: End) -> _Judged:
        """What the group comes to when it stands at row `next_seq`: nothing of it is written yet."""
        known: dict[str, Appended] = {}
        if any(waiting.key is not None for waiting in group):
            since = min(waiting.since for waiting in group if waiting.key is not None)
            known = {entry.key: entry.appended for entry in self.entries(since) if entry.key is not None}
        entries: list[Entry] = []
        answers: list[Appended] = []
        fresh: list[pa.Table] = []
        for waiting in group:
            before = known.get(waiting.key) if waiting.key is not None else None
            if before is not None:
                answers.append(replace(before, repeated=True))
                continue
            rows, note = waiting.judge(waiting.rows, end)
            entry = Entry(next_seq, rows.num_rows, waiting.key, note)
            answers.append(entry.appended)
            if entry.rows:
                entries.append(entry)
                fresh.append(rows.replace_schema_metadata(None))
                next_seq += entry.rows
                end = End(_later(end.clock, rows), 0)
                if waiting.key is not None:
                    known[waiting.key] = entry.appended
        return _Judged(entries, fresh, answers)

    def _write(self, judged: _Judged, max_t: int | None, mtime_ns: int) -> None:
        stamped, reached = judged.stamped(max_t)
        name = Segment.name(judged.entries[0].first_seq, stamped.num_rows, reached)

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
            # Rows are nobody else's to read, also those of a log that was made before this was so.
            self.folder.chmod(0o700)
        for folder in (self.live, self.history, self.tmp):
            folder.mkdir(exist_ok=True)
        with (self.folder / name).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else appends to this log, or puts its files in others, while it is held."""
        with self.locked(compaction.LOCK), self.locked():
            yield

    def replace_end(self, old: Sequence[Segment], write: Callable[[BinaryIO], tuple[int, int]]) -> None:
        """One segment in place of `old`, the last ones, whole or not at all. `write` gives its rows and the clock after them. Held `alone`."""
        target = self.tmp / f"append-amended-{old[0].first_seq}"
        with target.open("wb") as file:
            rows, clock = write(file)
        newest = max(segment.path.stat().st_mtime_ns for segment in old)
        # A folder that was written to keeps its order: Spark sorts files by the time of their modification.
        name = Segment.name(old[0].first_seq, rows, clock)
        made = publish(lambda path: None, target, self.live / name, mtime_ns=newest + 1_000_000)
        # Oldest first: until the last has gone the log ends where it did.
        for segment in old:
            if segment.path != made:
                segment.path.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Removes what a writer that died left behind. Caller holds the lock, so no other append is under way."""
        for leftover in self.tmp.glob("append-*"):
            leftover.unlink(missing_ok=True)

    # -- the end ------------------------------------------------------------------------------------------------------------------

    @property
    def end(self) -> tuple[int, int | None]:
        """The next row's number and the greatest `t` so far (null in an empty log), from file names alone."""
        return _end(self._newest())

    def grown_since(self, look_ns: int) -> bool:
        """Whether rows may have come since a look at the log that began at `look_ns` (nanoseconds since the epoch). Costs one call of the system."""
        try:
            # A file system's clock ticks some hundred times a second.
            return self.live.stat().st_mtime_ns + TICK_NS > look_ns
        except FileNotFoundError:
            return False

    @property
    def start(self) -> int:
        """The number of the oldest row still there; that of the next row when there is none."""
        kept = self.segments()
        return kept[0].first_seq if kept else 0

    @property
    def first_t(self) -> int | None:
        """The time of the oldest row still there; null in an empty log."""
        for _ in range(LISTINGS):
            kept = self.segments()
            try:
                return _first_t(kept[0]) if kept else None
            except FileNotFoundError:
                continue
        raise Dropped("the log was reorganised faster than it could be read")

    def _newest(self) -> Segment | None:
        # Live before history, as in `segments`: what compaction moves meanwhile is then found in its new place.
        found = [newest_segment(self.live), *list_segments(self.history)]
        return max((segment for segment in found if segment is not None), key=lambda s: s.next_seq, default=None)

    def ahead(self, position: int, most_rows: int, stop: int | None = None) -> Span | None:
        """The rows that come after `position`: whole segments, as many as hold up to `most_rows`, at least one; those before `stop` alone.

        Null when there are none. Raises MissingRows when they are in no file any more. From file names alone, unless `stop` is inside a segment.
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
        """What to raise when rows `[first, stop)` cannot be found."""
        return MissingRows(self.folder.name, f"rows {first} to {stop - 1} are in no file of the log")

    def _beyond(self, seq: int) -> list[Segment]:
        """The segments that end beyond row `seq`, in order, without gaps."""
        with suppress(Gap):
            live = without_overlaps(segments_beyond(self.live, seq))
            # The usual answers are in the names of live segments; history is listed only when something is not among them.
            if (live and live[0].first_seq <= seq) or (not live and self.end[0] <= seq):
                return live
        return [segment for segment in self.segments() if segment.next_seq > seq]

    def _live_beyond(self, seq: int) -> list[Segment]:
        """The segments that were not compacted yet and end beyond row `seq`, in order."""
        return segments_beyond(self.live, seq)

    def waiting_since(self, seq: int) -> float | None:
        """When the first of the rows after `seq` came, in seconds since the epoch; null when there is none."""
        for segment in segments_beyond(self.live, seq + 1):
            with suppress(FileNotFoundError):
                return segment.path.stat().st_mtime
        return None

    def segments(self) -> list[Segment]:
        """The files that hold the log, without gaps or overlaps, in order.

        A file may be compacted away before it is opened: `read` and `tail` then look again. Raises Gap if rows are lost for good.
        """
        for attempt in range(LISTINGS):
            try:
                # A live file that is missing here because it was compacted is already in history there. Never the other way round.
                live = list_segments(self.live)
                return without_overlaps([*live, *list_segments(self.history)])
            except Gap:
                if attempt == LISTINGS - 1:
                    raise
                time.sleep(0.01)
        raise AssertionError("unreachable")

    # -- reading ------------------------------------------------------------------------------------------------------------------

    def read(self, from_seq: int = 0, to_seq: int | None = None, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Stamped rows with `from_seq <= seq < to_seq` (null: up to the end as it is now), in order, in tables of bounded size.

        Starts at the oldest row kept when `from_seq` is gone already. Columns that a segment does not have are missing from its
        tables. Raises LogDamaged, and Dropped if rows go (retention) before they are read.
        """
        stop = self.end[0] if to_seq is None else to_seq
        return _joined(self._pieces(from_seq, stop, columns))

    def all_between(self, first: int, stop: int) -> Iterator[pa.Table]:
        """Rows `[first, stop)` in order, as `read` gives them. Raises MissingRows when they are not all there."""
        for rows in self.read(first, stop) if first < stop else ():
            if rows.num_rows:
                found = rows.column(SEQ)[0].as_py()
                if found != first:
                    raise self.missing(first, found)
                yield rows
                first += rows.num_rows
        if first < stop:
            raise self.missing(first, stop)

    def parts_between(self, first: int, stop: int, wanted: Sequence[Collection[int]]) -> Iterator[tuple[pa.Table, Sequence[int]]]:
        """The rows of sets of buckets (`engine/sources/buckets.py`) among `[first, stop)`: tables of rows in order, each with which sets have all
        their rows of a segment in it. Segments come in order, each opened once. Raises MissingRows, LogDamaged."""
        while first < stop:
            try:
                for segment in self._beyond(first):
                    if segment.first_seq > first:
                        raise self.missing(first, segment.first_seq)
                    yield from _segment_parts(segment, first, stop, wanted)
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
                raise Dropped(f"rows {position} to {segments[0].first_seq - 1} were dropped while they were being read")
            try:
                for segment in segments:
                    for piece in _segment_rows(segment, max(position, segment.first_seq), stop, columns):
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
        """Rows with `from_t <= t < to_t`, in order of arrival: of all entities or of those named. Opens no segment that ended before.

        With the feed's `lateness`, without the rows that came too late; then no segment is opened, either, that began when whatever is of the
        span would have been late. Needs the memory of the answer and of one row group. The table has no columns when the log is empty.
        """
        wanted = _Wanted(from_t, to_t, lateness, columns, None if entities is None else pa.array(entities, pa.string()))
        for _ in range(LISTINGS):
            segments = self.segments()
            try:
                # Without any match the newest segment gives an empty table its columns.
                found = [_matching(s, wanted) for s in _reaching(segments, wanted) or segments[-1:]]
            except FileNotFoundError:
                continue
            full = [table for table in found if table.num_rows] or found[:1]
            return pa.concat_tables(full, promote_options="permissive") if full else pa.table({})
        raise Dropped("the log was reorganised faster than it could be read")

    def numbers_of(self, from_t: int, to_t: int, lateness: int) -> Span:
        """Rows among which are all that are on time and in `[from_t, to_t)`: `max_t` is the clock after them, or the least time when there are none.

        From the names of segments and the statistics of the first and the last one's row groups: no row is read. Rows that stand between
        the oldest row and the span's first are outside.
        """
        segments = self.segments()
        next_seq, max_t = (segments[-1].next_seq, segments[-1].max_t) if segments else (0, LEAST_T)
        opening = next((segment for segment in segments if segment.max_t >= from_t), None)
        closing = next((segment for segment in segments if segment.max_t >= to_t + lateness), None)
        first = next_seq if opening is None else next((p.first_seq for p in _parts(opening) if p.greatest_t >= from_t), opening.next_seq)
        if closing is None:
            return Span(first, next_seq, max_t)
        # The clock never goes back: after a row that meets a later one whatever is of the span is late.
        inside = [p.next_seq for p in _parts(closing) if p.clock < to_t + lateness]
        return Span(first, max(first, inside[-1] if inside else closing.first_seq), closing.max_t)

    def entries(self, from_seq: int = 0) -> Iterator[Entry]:
        """The appends of live segments that end beyond `from_seq`, in order; heartbeats and other writers' included.

        Raises FileNotFoundError when one of them is compacted meanwhile (nobody is to compact what is still asked for), and LogDamaged.
        """
        for segment in self._live_beyond(from_seq):
            yield from self._entries_of(segment)

    def _entries_of(self, segment: Segment) -> list[Entry]:
        with segment.opened() as file:
            return list(entries_of(file.schema_arrow.metadata or {}))

    def verify(self, from_seq: int, to_seq: int) -> None:
        """Raises LogDamaged when a live segment of these rows is not as it was written: whoever read it otherwise is to ask before it believes."""
        for segment in self._live_beyond(from_seq):
            if segment.first_seq < to_seq:
                # Compaction has verified what it took away.
                with suppress(FileNotFoundError):
                    segment.verify()

    def address(self, spans: Sequence[Span]) -> Address:
        """By what a process elsewhere opens the log to read the rows of `spans`."""
        return FolderLog(str(self.folder.parent), self.folder.name)

    # -- upkeep -------------------------------------------------------------------------------------------------------------------

    def compact(self, up_to_seq: int) -> int:
        """Moves live segments with all rows <= `up_to_seq` into larger files in history; returns how many were moved.

        Readers are not disturbed. The caller sees to it that Spark needs the segments no more and that their entries are settled.
        """
        return compaction.compact(self, up_to_seq)

    def drop_before(self, t: int) -> int:
        """Deletes the oldest history segments whose rows all have times < `t`; returns how many rows went. The newest file stays."""
        return compaction.drop_before(self, t)


@dataclass(frozen=True)
class FolderLog(Address):
    """A folder that is reached under the same name."""

    root: str
    feed: str

    def open(self) -> EventLog:
        return EventLog(self.root, self.feed)


def entries_of(metadata: Mapping[bytes, bytes]) -> Iterator[Entry]:
    """The appends that a segment's metadata tells of."""
    for first_seq, rows, key, note in json.loads(metadata.get(ENTRIES, b"[]")):
        yield Entry(first_seq, rows, key, note)


def notes_of(entries: Sequence[Entry]) -> bytes:
    """The same as metadata."""
    return json.dumps([[e.first_seq, e.rows, e.key, e.note] for e in entries], separators=(",", ":")).encode()


def _group_size(queue: Sequence[_Waiting]) -> int:
    """How many of the first waiting appends go into one segment: at least one, all of one schema."""
    rows = 0
    for position, waiting in enumerate(queue):
        rows += waiting.rows.num_rows
        if position and (rows > GROUP_ROWS or not waiting.rows.schema.equals(queue[0].rows.schema)):
            return position
    return len(queue)


def _end(newest: Segment | None) -> tuple[int, int | None]:
    return (0, None) if newest is None else (newest.next_seq, newest.max_t)


def _later(clock: int | None, rows: pa.Table) -> int:
    """The clock after `rows`, at least one."""
    newest: int = pc.max(rows.column(TIME)).as_py()
    return newest if clock is None else max(clock, newest)


def _later_than(newest: Segment | None) -> int:
    """Now, or a millisecond after the newest segment's modification time if the clock has not come so far: Spark sorts by it, in ms."""
    now = time.time_ns() // 1_000_000
    if newest is not None:
        now = max(now, _mtime_ns(newest) // 1_000_000 + 1)
    return now * 1_000_000


def _mtime_ns(segment: Segment) -> int:
    """The modification time; that of the history file, which keeps it, if the segment was compacted a moment ago."""
    try:
        return segment.path.stat().st_mtime_ns
    except FileNotFoundError:
        history = list_segments(segment.path.parent.parent / "history")
        return max((s.path.stat().st_mtime_ns for s in history), default=0)


def _segment_rows(segment: Segment, from_seq: int, to_seq: int, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """Rows `[from_seq, to_seq)` of one file, in order; a row group at a time where they are not grouped by entity. Numbers are dense, so positions
    are differences."""
    with segment.opened() as file:
        names = file.schema_arrow.names
        wanted = None if columns is None else [name for name in columns if name in names]
        first = segment.first_seq
        if groups_of(file) > 1:
            rows = rows_of(file, wanted).slice(from_seq - first, to_seq - from_seq).replace_schema_metadata(None)
            yield rows if wanted is None else rows.select(wanted)
            return
        for group in range(file.num_row_groups):
            after = first + file.metadata.row_group(group).num_rows
            if first < to_seq and after > from_seq:
                begin = max(from_seq, first)
                table = file.read_row_group(group, columns=wanted).replace_schema_metadata(None)
                yield table.slice(begin - first, min(to_seq, after) - begin)
            first = after


def _segment_parts(segment: Segment, from_seq: int, to_seq: int, wanted: Sequence[Collection[int]]) -> list[tuple[pa.Table, Sequence[int]]]:
    """Of one file's rows with `from_seq <= seq < to_seq` the parts that sets of buckets need."""
    with segment.opened() as file:
        if groups_of(file) == 1:
            found: list[tuple[pa.Table, Sequence[int]]] = [(rows_of(file), range(len(wanted)))]
        else:
            found = [(rows_of(file, buckets=buckets), [i]) for i, buckets in enumerate(wanted)]
    whole = from_seq <= segment.first_seq and segment.next_seq <= to_seq
    return [((rows if whole else _cut(rows, from_seq, to_seq)).replace_schema_metadata(None), whose) for rows, whose in found]


def _cut(rows: pa.Table, from_seq: int, to_seq: int) -> pa.Table:
    begin, end = np.searchsorted(rows.column(SEQ).to_numpy(), [from_seq, to_seq])
    return rows.slice(begin, end - begin)


@dataclass(frozen=True)
class _Part:
    """Neighbouring rows of a segment: the greatest `t` among them, and a clock that all of them meet."""

    first_seq: int
    next_seq: int
    greatest_t: int
    clock: int


@lru_cache(maxsize=KNOWN_SEGMENTS)
def _first_t(segment: Segment) -> int | None:
    rows = next(_segment_rows(segment, segment.first_seq, segment.first_seq + 1, [TIME]), None)
    return None if rows is None else int(rows.column(TIME)[0].as_py())


@lru_cache(maxsize=KNOWN_SEGMENTS)
def _parts(segment: Segment) -> tuple[_Part, ...]:
    """The segment's row groups where they stand in order of seq; one part where they do not. What is compacted meanwhile is one part too."""
    whole = (_Part(segment.first_seq, segment.next_seq, segment.max_t, LEAST_T),)
    try:
        with segment.opened() as file:
            return whole if groups_of(file) > 1 else tuple(_parts_of(segment, file))
    except FileNotFoundError:
        return whole


def _parts_of(segment: Segment, file: pq.ParquetFile) -> Iterator[_Part]:
    names, first = file.schema_arrow.names, segment.first_seq
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        times, clocks = (group.column(names.index(name)).statistics for name in (TIME, CLOCK))
        greatest = times.max if times is not None and times.has_min_max else segment.max_t
        # The log's first row meets no clock.
        clock = clocks.min if clocks is not None and clocks.has_min_max and not clocks.null_count else LEAST_T
        yield _Part(first, first + group.num_rows, greatest, clock)
        first += group.num_rows


@dataclass(frozen=True)
class _Wanted:
    """What `tail` was asked for."""

    from_t: int
    to_t: int | None
    lateness: int | None
    columns: Sequence[str] | None
    entities: pa.Array | None

    def among(self, rows: pa.Table) -> pa.Table:
        """Those of `rows` that are wanted, in the wanted columns."""
        t = rows.column(TIME)
        keep = pc.greater_equal(t, self.from_t)
        if self.to_t is not None:
            keep = pc.and_(keep, pc.less(t, self.to_t))
        if self.lateness is not None:
            keep = pc.and_(keep, in_time(rows, self.lateness))
        if self.entities is not None:
            keep = pc.and_(keep, pc.is_in(rows.column(ENTITY), self.entities))
        rows = rows.filter(keep)
        return rows if self.columns is None else rows.select([name for name in self.columns if name in rows.column_names])


def _reaching(segments: Sequence[Segment], wanted: _Wanted) -> list[Segment]:
    """Those of neighbours that may hold a wanted row, by their names alone.

    The clock of a segment's rows is at least the greatest `t` before it: once that less the lateness is past the span, so is every row on time.
    """
    kept = [segment for segment in segments if segment.max_t >= wanted.from_t]
    if wanted.to_t is None or wanted.lateness is None:
        return kept
    closed = wanted.to_t + wanted.lateness
    begins = {segment.first_seq: before.max_t for before, segment in pairwise(segments)}
    return [segment for segment in kept if begins.get(segment.first_seq, closed - 1) < closed]


def _matching(segment: Segment, wanted: _Wanted) -> pa.Table:
    """The wanted rows of one file, read a row group at a time."""
    with segment.opened() as file:
        names = file.schema_arrow.names
        looked_at = {TIME, ENTITY} if wanted.lateness is None else {TIME, ENTITY, CLOCK}
        needed = None if wanted.columns is None else [name for name in names if name in {*wanted.columns, *looked_at}]
        if groups_of(file) > 1:
            # Each group has rows of all the file's times.
            return wanted.among(rows_of(file, needed).replace_schema_metadata(None))
        groups = [g for g in range(file.num_row_groups) if _may_hold(file, g, wanted.from_t, wanted.to_t)]
        # No group at all is still a table with the columns.
        read = (file.read_row_groups(some, columns=needed) for some in [[g] for g in groups] or [[]])
        return pa.concat_tables([wanted.among(rows.replace_schema_metadata(None)) for rows in read])


def _may_hold(file: pq.ParquetFile, group: int, from_t: int, to_t: int | None) -> bool:
    """Whether the row group's statistics leave room for a row in the time span."""
    statistics = file.metadata.row_group(group).column(file.schema_arrow.names.index(TIME)).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.max >= from_t and (to_t is None or statistics.min < to_t))


def _joined(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows with small neighbours of one schema put together."""
    held: list[pa.Table] = []
    for piece in pieces:
        if held and (piece.schema != held[0].schema or sum(p.num_rows for p in held) >= TABLE_ROWS):
            yield pa.concat_tables(held)
            held = []
        held.append(piece)
    if held:
        yield pa.concat_tables(held)
