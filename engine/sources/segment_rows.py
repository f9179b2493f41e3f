"""Rows of segments by their numbers: of one file those of a span, and small tables put together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa

from engine.model.columns import SEQ
from engine.sources.buckets import groups_of, rows_of
from engine.sources.segments import Segment

TABLE_ROWS = 65_536
"""`read` joins small segments to tables of about this size: a thousand tables of a hundred rows
cost readers more than the rows do."""


def segment_rows(segment: Segment, from_seq: int, to_seq: int, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """Rows `[from_seq, to_seq)` of one file, in order; a row group at a time where they are not
    grouped by entity. Numbers are dense, so positions are differences."""
    with segment.opened() as file:
        names = file.schema_arrow.names
        present = None if columns is None else [name for name in columns if name in names]
        first = segment.first_seq
        if groups_of(file) > 1:
            rows = rows_of(file, present).slice(from_seq - first, to_seq - from_seq).replace_schema_metadata(None)
            yield rows if present is None else rows.select(present)
            return
        for group in range(file.num_row_groups):
            after = first + file.metadata.row_group(group).num_rows
            if first < to_seq and after > from_seq:
                begin = max(from_seq, first)
                table = file.read_row_group(group, columns=present).replace_schema_metadata(None)
                yield table.slice(begin - first, min(to_seq, after) - begin)
            first = after


def segment_parts(segment: Segment, from_seq: int, to_seq: int, buckets_of_parts: Sequence[Collection[int]]) -> list[tuple[pa.Table, Sequence[int]]]:
    """The parts of one file's rows with `from_seq <= seq < to_seq` that sets of buckets need."""
    with segment.opened() as file:
        if groups_of(file) == 1:
            parts: list[tuple[pa.Table, Sequence[int]]] = [(rows_of(file), range(len(buckets_of_parts)))]
        else:
            parts = [(rows_of(file, buckets=buckets), [i]) for i, buckets in enumerate(buckets_of_parts)]
    whole = from_seq <= segment.first_seq and segment.next_seq <= to_seq
    return [((rows if whole else _cut(rows, from_seq, to_seq)).replace_schema_metadata(None), whose) for rows, whose in parts]


def _cut(rows: pa.Table, from_seq: int, to_seq: int) -> pa.Table:
    begin, end = np.searchsorted(rows.column(SEQ).to_numpy(), [from_seq, to_seq])
    return rows.slice(begin, end - begin)


def joined(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows with small neighbours of one schema put together."""
    held: list[pa.Table] = []
    for piece in pieces:
        if held and (piece.schema != held[0].schema or sum(p.num_rows for p in held) >= TABLE_ROWS):
            yield pa.concat_tables(held)
            held = []
        held.append(piece)
    if held:
        yield pa.concat_tables(held)
