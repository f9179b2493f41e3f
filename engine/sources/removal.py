"""Removes rows from a log that should never have been accepted: placeholders that are no events
keep their places, and the clocks are stamped again. The caller makes sure that no job reads the log
meanwhile. Numbers do not change, so receipts and evidence still refer to their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.model.columns import CLOCK, ENTITY, EVENT, SEQ, TIME
from engine.model.events import HEARTBEAT, Stamper
from engine.model.feed import LARGEST_TIME
from engine.sources.eventlog import EventLog
from engine.sources.segments import Segment

LEAST = 1 - LARGEST_TIME
"""Before any row: the clock of a feed that has none yet."""


def without_later(tables: Iterable[pa.Table], to: int) -> Iterator[pa.Table]:
    """Stamped rows from the oldest on, those with `t` beyond `to` turned into heartbeats that move
    no clock, the others stamped again."""
    stamper: Stamper | None = None
    for table in tables:
        if stamper is None and table.num_rows:
            stamper = Stamper(table.column(SEQ)[0].as_py(), table.column(CLOCK)[0].as_py())
        if stamper is not None and table.num_rows:
            yield stamper.stamp(_emptied(table.drop_columns([SEQ, CLOCK]), to, stamper.max_t))


def _emptied(rows: pa.Table, to: int, clock: int | None) -> pa.Table:
    later = pc.greater(rows.column(TIME), to)
    if not pc.any(later).as_py():
        return rows
    # A row with exactly the clock's time neither moves the clock nor is late.
    times = pc.if_else(later, LEAST if clock is None else clock, rows.column(TIME)).to_numpy()
    met = np.maximum.accumulate(np.concatenate([[LEAST if clock is None else clock], times[:-1]]))
    values = {EVENT: pa.scalar(HEARTBEAT), ENTITY: pa.scalar(HEARTBEAT), TIME: pa.array(met)}
    columns = [pc.if_else(later, values.get(field.name, pa.scalar(None, field.type)), rows.column(field.name)) for field in rows.schema]
    return pa.table(columns, schema=rows.schema)


def later_rows(log: EventLog, to: int) -> Iterator[pa.Table]:
    """The events with `t` beyond `to`, as they are in the log."""
    for table in log.read(log.start):
        later = table.filter(pc.and_(pc.greater(table.column(TIME), to), pc.not_equal(table.column(EVENT), HEARTBEAT)))
        if later.num_rows:
            yield later


def remove_later(log: EventLog, to: int) -> None:
    """Replaces the log's end, from the first file with a row beyond `to`, by one file without such
    rows: atomically."""
    with log.alone():
        segments = log.segments()
        begin = next((i for i, segment in enumerate(segments) if _reaches(segment, to)), None)
        if begin is None:
            return
        old, first = segments[begin:], segments[begin].first_seq
        remaining = (table for table in without_later(log.read(log.start), to) if table.column(SEQ)[-1].as_py() >= first)
        log.replace_end(old, lambda file: _write(remaining, first, file))


def _reaches(segment: Segment, to: int) -> bool:
    if segment.max_t <= to:
        return False
    with segment.opened() as file:
        return bool(pc.any(pc.greater(file.read(columns=[TIME]).column(TIME), to)).as_py())


def _write(tables: Iterable[pa.Table], first: int, file: BinaryIO) -> tuple[int, int]:
    """Writes the rows from `first` on; how many, and the clock after them."""
    writer: pq.ParquetWriter | None = None
    rows, clock = 0, None
    try:
        for table in tables:
            kept = table.filter(pc.greater_equal(table.column(SEQ), first))
            writer = writer or pq.ParquetWriter(file, kept.schema, compression="snappy", use_dictionary=["event", "entity"], write_page_checksum=True)
            writer.write_table(kept.cast(writer.schema))
            rows += kept.num_rows
            reached = [time for time in (pc.max(kept.column(TIME)).as_py(), pc.max(kept.column(CLOCK)).as_py(), clock) if time is not None]
            clock = max(reached)
    finally:
        if writer is not None:
            writer.close()
    assert clock is not None, "a file is never empty"
    return rows, clock
