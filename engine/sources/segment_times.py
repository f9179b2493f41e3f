"""Rows of segments by their times: which segments may hold a span, where it
begins and ends, and its rows.

Names and statistics of files answer first: a file is opened only if it may hold what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.model.clock import in_time
from engine.model.columns import CLOCK, ENTITY, TIME
from engine.sources.buckets import groups_of, rows_of
from engine.sources.segment_rows import segment_rows
from engine.sources.segments import Segment

KNOWN_SEGMENTS = 2_000
"""The number of segments whose row groups' times are cached: a file is never rewritten."""
LEAST_T = -(2**63)


@dataclass(frozen=True)
class RowRange:
    """Neighbouring rows of a segment: the greatest `t` among them, and a
    clock that all of them meet."""

    first_seq: int
    next_seq: int
    greatest_t: int
    clock: int


@lru_cache(maxsize=KNOWN_SEGMENTS)
def first_t_of(segment: Segment) -> int | None:
    rows = next(segment_rows(segment, segment.first_seq, segment.first_seq + 1, [TIME]), None)
    return None if rows is None else int(rows.column(TIME)[0].as_py())


@lru_cache(maxsize=KNOWN_SEGMENTS)
def parts_in_order(segment: Segment) -> tuple[RowRange, ...]:
    """The segment's row groups if they are in order of seq, else one part. A segment that is
    compacted meanwhile is one part too."""
    whole = (RowRange(segment.first_seq, segment.next_seq, segment.max_t, LEAST_T),)
    try:
        with segment.opened() as file:
            return whole if groups_of(file) > 1 else tuple(_parts_of(segment, file))
    except FileNotFoundError:
        return whole


def _parts_of(segment: Segment, file: pq.ParquetFile) -> Iterator[RowRange]:
    names, first = file.schema_arrow.names, segment.first_seq
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        times, clocks = (group.column(names.index(name)).statistics for name in (TIME, CLOCK))
        greatest = times.max if times is not None and times.has_min_max else segment.max_t
        # The log's first row meets no clock.
        clock = clocks.min if clocks is not None and clocks.has_min_max and not clocks.null_count else LEAST_T
        yield RowRange(first, first + group.num_rows, greatest, clock)
        first += group.num_rows


@dataclass(frozen=True)
class TailRequest:
    """A request of `tail`."""

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


def reaching(segments: Sequence[Segment], wanted: TailRequest) -> list[Segment]:
    """Those of neighbours that may hold a wanted row, only by their names.

    The clock of a segment's rows is at least the greatest `t` before it: once that less the
    lateness is past the span, every row on time is past it too.
    """
    kept = [segment for segment in segments if segment.max_t >= wanted.from_t]
    if wanted.to_t is None or wanted.lateness is None:
        return kept
    closed = wanted.to_t + wanted.lateness
    begins = {segment.first_seq: before.max_t for before, segment in pairwise(segments)}
    return [segment for segment in kept if begins.get(segment.first_seq, closed - 1) < closed]


def matching(segment: Segment, wanted: TailRequest) -> pa.Table:
    """The wanted rows of one file, read a row group at a time."""
    with segment.opened() as file:
        names = file.schema_arrow.names
        looked_at = {TIME, ENTITY} if wanted.lateness is None else {TIME, ENTITY, CLOCK}
        needed = None if wanted.columns is None else [name for name in names if name in {*wanted.columns, *looked_at}]
        if groups_of(file) > 1:
            # Each group has rows of all the file's times.
            return wanted.among(rows_of(file, needed).replace_schema_metadata(None))
        groups = [g for g in range(file.num_row_groups) if _may_hold(file, g, wanted.from_t, wanted.to_t)]
        # Without any group it is still a table with the columns.
        read = (file.read_row_groups(some, columns=needed) for some in [[g] for g in groups] or [[]])
        return pa.concat_tables([wanted.among(rows.replace_schema_metadata(None)) for rows in read])


def _may_hold(file: pq.ParquetFile, group: int, from_t: int, to_t: int | None) -> bool:
    """Whether the row group's statistics leave room for a row in the time span."""
    statistics = file.metadata.row_group(group).column(file.schema_arrow.names.index(TIME)).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.max >= from_t and (to_t is None or statistics.min < to_t))
