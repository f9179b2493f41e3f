"""Compaction of the settled part of an event log, and its retention.

Order makes it safe during writes and reads: the larger file is complete and visible before any of
its parts is removed, and parts are removed oldest first. A crash between leaves overlaps, which
readers ignore and the next run removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from engine.failpoints import failpoint
from engine.sources.buckets import rows_of
from engine.sources.segments import Segment, list_segments, publish, without_overlaps

LOCK = "compact.lock"
SEGMENT_ROWS = 1_000_000
"""A history file is no larger than this (unless a single segment is)."""
GROUP_ROWS = 65_536
"""Row groups: readers skip whole ones by their times."""
FAN_IN = 8
"""This many small neighbours in history are joined to one: each row is rewritten a handful of
times, not with every run."""


class Folders(Protocol):
    """Where a log's segments are, and its locks."""

    live: Path
    history: Path
    tmp: Path

    def locked(self, name: str) -> AbstractContextManager[None]: ...


def compact(log: Folders, up_to_seq: int) -> int:
    """See `EventLog.compact`."""
    with log.locked(LOCK):
        for leftover in log.tmp.glob("compact-*"):
            leftover.unlink(missing_ok=True)
        _remove_covered(log)
        reached = max((s.next_seq for s in list_segments(log.history)), default=0)
        ready = [s for s in without_overlaps(list_segments(log.live)) if reached <= s.first_seq and s.next_seq <= up_to_seq + 1]
        for run in runs(ready):
            _merge(log, run)
        _join_history(log)
        return len(ready)


def drop_before(log: Folders, t: int) -> int:
    """See `EventLog.drop_before`."""
    dropped = 0
    with log.locked(LOCK):
        _remove_covered(log)
        # The last file keeps the log's end when nothing is live.
        for segment in without_overlaps(list_segments(log.history))[:-1]:
            if segment.max_t >= t:
                break
            segment.path.unlink()
            dropped += segment.rows
    return dropped


def _remove_covered(log: Folders) -> None:
    """Deletes files whose rows are all in a history file, left by a crash."""
    history = list_segments(log.history)
    kept = without_overlaps(history)
    for segment in [*history, *list_segments(log.live)]:
        if segment not in kept and any(k.first_seq <= segment.first_seq and segment.next_seq <= k.next_seq for k in kept):
            segment.path.unlink(missing_ok=True)


def _join_history(log: Folders) -> None:
    """Joins the newest small history files, once there are FAN_IN of about one size."""
    before: list[Segment] | None = None
    while (tail := joinable(without_overlaps(list_segments(log.history)))) and tail != before:
        before = tail
        _merge(log, tail)


def joinable(history: Sequence[Segment]) -> list[Segment]:
    """The newest small ones, once there are FAN_IN of about one size; else none."""
    tail = list(history[-FAN_IN:])
    # Much larger ones stay as they are until the small ones have grown to their size.
    alike = max(s.rows for s in tail) <= FAN_IN * tail[-1].rows if tail else False
    return tail if len(tail) == FAN_IN and alike and sum(s.rows for s in tail) <= SEGMENT_ROWS else []


def runs(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Neighbours that fit into one file."""
    run: list[Segment] = []
    for segment in segments:
        if run and sum(s.rows for s in run) + segment.rows > SEGMENT_ROWS:
            yield run
            run = []
        run.append(segment)
    if run:
        yield run


def _merge(log: Folders, parts: Sequence[Segment]) -> None:
    """One history file for `parts`, which are then removed. Parts with other column
    types get separate files."""
    assert all(a.next_seq == b.first_seq for a, b in pairwise(parts))
    schema = common_schema(parts)
    if schema is None:
        middle = len(parts) // 2
        _merge(log, parts[:middle])
        _merge(log, parts[middle:])
        return
    name = Segment.name(parts[0].first_seq, sum(s.rows for s in parts), parts[-1].max_t)
    target = log.history / name
    # A part with other columns, in history already, is not joined.
    if len(parts) > 1 or parts[0].path.parent != log.history:
        mtime_ns = parts[-1].path.stat().st_mtime_ns
        publish(lambda path: write_joined(path, schema, parts), log.tmp / f"compact-{name}", target, mtime_ns=mtime_ns)
        failpoint("log.before_delete")
        for part in parts:
            part.path.unlink()
            failpoint("log.in_delete")


def common_schema(parts: Sequence[Segment]) -> pa.Schema | None:
    """All columns of the parts; null when one of them has types that do not go together."""
    schemas = [_schema(part) for part in parts]
    if all(schema.equals(schemas[0]) for schema in schemas):
        return schemas[0]
    try:
        return pa.unify_schemas(schemas) if len(parts) > 1 else schemas[0]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _schema(part: Segment) -> pa.Schema:
    with part.opened() as file:
        return file.schema_arrow.remove_metadata()


def write_joined(where: Path | BytesIO, schema: pa.Schema, parts: Sequence[Segment]) -> None:
    """One file with the rows of `parts`, without their metadata."""
    with pq.ParquetWriter(where, schema, compression="zstd", use_dictionary=["event", "entity"], write_page_checksum=True) as writer:
        held: list[pa.Table] = []
        for part in parts:
            with part.opened() as file:
                held.append(_with_columns(rows_of(file), schema))
            if sum(table.num_rows for table in held) >= GROUP_ROWS:
                writer.write_table(pa.concat_tables(held), row_group_size=GROUP_ROWS)
                held = []
        if held:
            writer.write_table(pa.concat_tables(held), row_group_size=GROUP_ROWS)


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with null columns where `schema` has more."""
    columns = [table.column(f.name) if f.name in table.column_names else pa.nulls(table.num_rows, f.type) for f in schema]
    return pa.table(columns, schema=schema)
