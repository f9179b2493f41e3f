"""A damaged log made whole again: readable rows are kept; the others are replaced by rows that
are no events, and counted.

A damaged file is moved to `<feed>/damaged/`, never deleted. In its place comes a segment of the
same numbers, so that numbers stay dense and the clock of the rows after it stays what it was. Each
page of a file has a checksum: row groups whose pages are as they were written are kept, even where
the file as a whole is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.model.columns import CLOCK, ENTITY, EVENT, SEQ, TIME
from engine.model.events import HEARTBEAT
from engine.model.messages import Message
from engine.sources.appends import ENTRIES, AppendEntry, entries_of, notes_of
from engine.sources.buckets import groups_of, rows_of
from engine.sources.compaction import LOCK
from engine.sources.eventlog import EventLog
from engine.sources.segments import LogDamaged, Segment, publish
from engine.sources.shared_log import LIVE, SharedLog

LOST = "$lost"
"""The entity of rows that replace lost ones. Their event is a heartbeat,
which only moves the clock."""


@dataclass(frozen=True)
class Repaired:
    """The result for one damaged or missing file: `kept` of its rows `[first_seq, next_seq)`;
    `lost` are the numbers of the others.

    `counted`: the file still shows which deliveries it holds, so its rows will be counted as
    received if they were not yet.
    """

    file: str
    reason: str
    first_seq: int
    next_seq: int
    lost: Sequence[int]
    counted: bool

    @property
    def kept(self) -> int:
        return self.next_seq - self.first_seq - len(self.lost)


@dataclass(frozen=True)
class LogExtent:
    """How far a log is known to have grown: its next number, the greatest `t`, and the first
    number that is still needed."""

    next_seq: int = 0
    max_t: int | None = None
    needed_from: int = 0


def repair(log: EventLog, schema: pa.Schema, reach: LogExtent) -> list[Repaired]:
    """Repairs the log; returns what was done. Holds both locks, so nothing is appended or compacted
    meanwhile. `schema` is that of a stamped row.

    Every file is read. Repairs files that differ from what was written, gaps between files,
    and an end before `reach`.
    """
    with log.locked(LOCK), log.locked():
        whole: list[Segment] = []
        broken: list[tuple[Segment, LogDamaged]] = []
        for segment, fault in _checked(log):
            if fault is None:
                whole.append(segment)
            else:
                broken.append((segment, fault))
        done = [_repair_segment(log, segment, fault, schema, whole) for segment, fault in broken]
        whole = [segment for segment, _ in _checked(log)]
        done += [_fill(log, first, stop, schema, whole, reach) for first, stop in _holes(whole, reach)]
        return done


def replace_damaged(log: SharedLog, schema: pa.Schema) -> list[Repaired]:
    """The same for a log on shared storage: replaces each damaged or missing file by one with the
    readable rows and placeholders for the others; returns what was done. The order of such a log
    has no holes. Appends wait only while files are replaced."""
    broken = [(segment, fault) for segment in log.segments() if (fault := _fault_of(segment)) is not None]
    done: list[Repaired] = []
    with log.alone():
        known = {str(segment.path) for segment in log.segments()}
        for segment, fault in broken:
            if str(segment.path) in known:
                rows, entries, repaired = _repaired_rows(segment, fault, schema, log.segments())
                is_live = segment.path.parent.name == LIVE
                log.replace_damaged(segment, partial(_write_rows, rows, _notes(rows, entries) if is_live else None))
                done.append(repaired)
    return done


def _fault_of(segment: Segment) -> LogDamaged | None:
    try:
        segment.verify()
    except LogDamaged as fault:
        return fault
    except FileNotFoundError:
        # It was compacted meanwhile.
        return None
    return None


def _checked(log: EventLog) -> Iterator[tuple[Segment, LogDamaged | None]]:
    """Each file and its damage. Files that are not named like segments are moved away immediately:
    their contents are unknown."""
    for folder in (log.history, log.live):
        for path in sorted(folder.glob("*.parquet")):
            try:
                segment = Segment.parse(path)
            except LogDamaged:
                _take_away(log, path)
                continue
            try:
                with segment.opened() as file:
                    if segment.crc is None:
                        # Nothing but reading shows whether an older release's file is whole.
                        file.read()
            except LogDamaged as fault:
                yield segment, fault
            else:
                yield segment, None


def _holes(segments: Sequence[Segment], reach: LogExtent) -> Iterator[tuple[int, int]]:
    """The rows between the files, and from their end to where the log is known to have been."""
    ordered = sorted(segments, key=lambda s: (s.first_seq, -s.rows))
    position = ordered[0].first_seq if ordered else min(reach.needed_from, max(0, reach.next_seq - 1))
    for segment in ordered:
        if segment.first_seq > position:
            yield position, segment.first_seq
        position = max(position, segment.next_seq)
    if reach.next_seq > position:
        yield position, reach.next_seq


def _repair_segment(log: EventLog, segment: Segment, fault: LogDamaged, schema: pa.Schema, whole: Sequence[Segment]) -> Repaired:
    """A segment to replace a damaged one; none if other files have all its rows."""
    name = f"{segment.path.parent.name}/{segment.path.name}"
    if any(other.first_seq <= segment.first_seq and segment.next_seq <= other.next_seq for other in whole):
        _take_away(log, segment.path)
        return Repaired(name, fault.reason, segment.first_seq, segment.next_seq, (), counted=True)
    rows, entries, repaired = _repaired_rows(segment, fault, schema, whole)
    mtime_ns = segment.path.stat().st_mtime_ns
    _take_away(log, segment.path)
    _write(log, segment.path.parent, rows, entries, segment.max_t, mtime_ns)
    return repaired


def _repaired_rows(
    segment: Segment, fault: LogDamaged, schema: pa.Schema, others: Sequence[Segment]
) -> tuple[pa.Table, list[AppendEntry] | None, Repaired]:
    """The readable rows of a damaged segment, with placeholder rows for the lost ones;
    and its recorded deliveries."""
    pieces, entries = _readable(segment)
    kept = dict(sorted((piece.column(SEQ)[0].as_py(), piece) for piece in pieces if piece.num_rows))
    clock = _clock_before(segment.first_seq, others)
    rows, lost = _with_lost(segment.first_seq, segment.next_seq, kept, clock, segment.max_t, schema)
    name = f"{segment.path.parent.name}/{segment.path.name}"
    return rows, entries, Repaired(name, fault.reason, segment.first_seq, segment.next_seq, lost, counted=entries is not None)


def _fill(log: EventLog, first: int, stop: int, schema: pa.Schema, whole: Sequence[Segment], reach: LogExtent) -> Repaired:
    """A segment of lost rows where there is no file."""
    clock = _clock_before(first, whole)
    # The row after the gap shows how far the clock had advanced; after the
    # log's end only `reach` does.
    come = (clock, _clock_at(stop, whole), reach.max_t if stop == reach.next_seq else None)
    max_t = max((t for t in come if t is not None), default=0)
    rows, lost = _with_lost(first, stop, {}, clock, max_t, schema)
    before = [segment for segment in whole if segment.next_seq <= first]
    mtime_ns = max((segment.path.stat().st_mtime_ns for segment in before), default=0) + 1_000_000
    # In the folder of its neighbours: compaction never goes back behind the end of history.
    is_history = any(segment.first_seq >= stop and segment.path.parent == log.history for segment in whole)
    _write(log, log.history if is_history else log.live, rows, None, max_t, mtime_ns)
    return Repaired(
        Message("a missing file"), Message("rows {first} to {last} are in no file", first=first, last=stop - 1), first, stop, lost, counted=False
    )


def _readable(segment: Segment) -> tuple[list[pa.Table], list[AppendEntry] | None]:
    """The intact row groups of a damaged file, and the deliveries that it
    lists (null: unreadable)."""
    try:
        file = pq.ParquetFile(segment.unverified(), page_checksum_verification=True)
    except (pa.ArrowException, OSError, LogDamaged):
        return [], None
    pieces: list[pa.Table] = []
    with file:
        if groups_of(file) > 1:
            # Rows of neighbouring numbers are in different groups: the numbers of what
            # is left would be no runs.
            whole = _in_order(file)
            kept = whole is not None and _is_numbered(whole, segment.first_seq, segment.rows)
            return [whole] if whole is not None and kept else [], _entries(file, segment)
        first = segment.first_seq
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            piece = _group(file, group)
            if piece is not None and _is_numbered(piece, first, rows) and first + rows <= segment.next_seq:
                pieces.append(piece)
            first += rows
        return pieces, _entries(file, segment)


def _in_order(file: pq.ParquetFile) -> pa.Table | None:
    try:
        return rows_of(file).replace_schema_metadata(None)
    except (pa.ArrowException, OSError, KeyError):
        return None


def _group(file: pq.ParquetFile, group: int) -> pa.Table | None:
    try:
        return file.read_row_group(group).replace_schema_metadata(None)
    except (pa.ArrowException, OSError):
        return None


def _is_numbered(piece: pa.Table, first: int, rows: int) -> bool:
    """Whether the rows are the expected ones."""
    if piece.num_rows != rows or not {SEQ, CLOCK, TIME, EVENT, ENTITY} <= set(piece.column_names):
        return False
    return bool(np.array_equal(piece.column(SEQ).to_numpy(), np.arange(first, first + rows)))


def _entries(file: pq.ParquetFile, segment: Segment) -> list[AppendEntry] | None:
    try:
        entries = list(entries_of(file.schema_arrow.metadata or {}))
        dense = all(a.first_seq + a.rows == b.first_seq for a, b in pairwise(entries))
        whole = bool(entries) and entries[0].first_seq == segment.first_seq and sum(entry.rows for entry in entries) == segment.rows
    except (ValueError, TypeError, KeyError):
        return None
    return entries if dense and whole else None


def _clock_before(first: int, whole: Sequence[Segment]) -> int | None:
    """The greatest `t` of the rows before `first`, from names."""
    return max((segment.max_t for segment in whole if segment.next_seq <= first), default=None)


def _clock_at(seq: int, whole: Sequence[Segment]) -> int | None:
    """The clock that row `seq` met, if it can be read: it shows how far
    the rows before it had come."""
    for segment in whole:
        if segment.first_seq == seq:
            with segment.opened() as file:
                clock: int | None = rows_of(file, [CLOCK]).column(CLOCK)[0].as_py()
                return clock
    return None


def _with_lost(first: int, stop: int, kept: dict[int, pa.Table], clock: int | None, max_t: int, schema: pa.Schema) -> tuple[pa.Table, list[int]]:
    """Rows `[first, stop)`: those in `kept` (tables by their first number) and placeholders for the
    others, with their numbers.

    `clock` is the greatest `t` before them. The last row that replaces a lost one reaches `max_t`
    unless a kept one does.
    """
    reached = max((pc.max(table.column(TIME)).as_py() for table in kept.values()), default=None)
    tables: list[pa.Table] = []
    lost: list[int] = []
    position = first
    while position < stop:
        if position in kept:
            table = kept[position]
            clock = max(t for t in (clock, pc.max(table.column(TIME)).as_py()) if t is not None)
        else:
            end = min((begin for begin in kept if begin > position), default=stop)
            is_last = end == stop and (reached is None or reached < max_t)
            table = _placeholders(position, end, clock, max_t if is_last else None, schema)
            clock = pc.max(table.column(TIME)).as_py()
            lost += range(position, end)
        tables.append(table)
        position += table.num_rows
    return pa.concat_tables(tables, promote_options="permissive"), lost


def _placeholders(first: int, stop: int, clock: int | None, last_t: int | None, schema: pa.Schema) -> pa.Table:
    """Placeholders for lost rows: the clock does not move until the last of them,
    which sets it to `last_t`."""
    n = stop - first
    still = clock if clock is not None else last_t if last_t is not None else 0
    t = np.full(n, still, np.int64)
    if last_t is not None:
        t[-1] = max(still, last_t)
    columns = {
        EVENT: pa.array([HEARTBEAT] * n, pa.string()),
        ENTITY: pa.array([LOST] * n, pa.string()),
        TIME: pa.array(t),
        SEQ: pa.array(np.arange(first, stop), pa.int64()),
        CLOCK: pa.array([clock] + [still] * (n - 1), pa.int64()),
    }
    return pa.table([columns.get(f.name, pa.nulls(n, f.type)) for f in schema], schema=schema)


def _write(log: EventLog, folder: Path, rows: pa.Table, entries: list[AppendEntry] | None, max_t: int, mtime_ns: int) -> None:
    first = rows.column(SEQ)[0].as_py()
    notes = _notes(rows, entries) if folder == log.live else None
    name = Segment.name(first, rows.num_rows, max_t)
    publish(partial(_write_rows, rows, notes), log.tmp / f"append-{name}", folder / name, mtime_ns=mtime_ns)


def _notes(rows: pa.Table, entries: list[AppendEntry] | None) -> dict[bytes, bytes]:
    """The deliveries recorded in a live segment."""
    return {ENTRIES: notes_of(entries or [AppendEntry(rows.column(SEQ)[0].as_py(), rows.num_rows, None, {"source": "repair"})])}


def _write_rows(rows: pa.Table, notes: dict[bytes, bytes] | None, where: Path | BinaryIO) -> None:
    stamped = rows.replace_schema_metadata(notes)
    pq.write_table(stamped, where, compression="snappy", use_dictionary=[EVENT, ENTITY], write_page_checksum=True)


def _take_away(log: EventLog, path: Path) -> None:
    """Moves a damaged file to where it is not read."""
    folder = log.folder / "damaged"
    folder.mkdir(exist_ok=True)
    path.replace(folder / path.name)
