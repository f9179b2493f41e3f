"""Rows of a feed as a file: those that its answers are made from, in order of arrival."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from engine.model.events import row_schema
from engine.model.feed import LARGEST_TIME
from engine.model.feed import Feed as EngineFeed
from engine.sources.eventlog import EventLog
from webapp.cage.slots import Slots
from webapp.config.tables import FORMULA
from webapp.feeds.models import Feed
from webapp.feeds.recent import accepted, log_of

MOST_ROWS = 1_000_000
READS = Slots()
"""A file may have a hundred megabytes: at most this many are made at once. Raises Busy."""
_FORMULA = "^([" + "".join(FORMULA).replace("-", r"\-") + "])"


def rows_parquet(feed: Feed, from_t: int | None, to_t: int | None) -> tuple[bytes, bool]:
    """The rows that are on time, duplicates among them, with a `t` in the period, which is closed;
    null: open on this side. And whether there are more than MOST_ROWS, the first of which these
    are. `backtest` reads them. Raises Busy, LogDamaged."""
    with READS.slot():
        rows, is_cut = rows_between(log_of(feed), feed.engine_feed(), from_t, to_t)
        file = io.BytesIO()
        pq.write_table(rows, file, compression="zstd")
        return file.getvalue(), is_cut


def rows_csv(feed: Feed, from_t: int | None, to_t: int | None) -> tuple[bytes, bool]:
    """The same as CSV, in which a spreadsheet reads no cell as a formula."""
    with READS.slot():
        rows, is_cut = rows_between(log_of(feed), feed.engine_feed(), from_t, to_t)
        for at, field in enumerate(rows.schema):
            if pa.types.is_string(field.type):
                rows = rows.set_column(at, field, pc.replace_substring_regex(rows.column(at), _FORMULA, r"'\1"))
        file = io.BytesIO()
        pa_csv.write_csv(rows, file)
        return file.getvalue(), is_cut


def rows_between(log: EventLog, feed: EngineFeed, from_t: int | None, to_t: int | None) -> tuple[pa.Table, bool]:
    """The first MOST_ROWS of the rows in the period, and whether there are more."""
    low = -LARGEST_TIME if from_t is None else max(from_t, -LARGEST_TIME)
    high = LARGEST_TIME if to_t is None else min(to_t, LARGEST_TIME)
    span = log.numbers_of(low, high + 1, feed.lateness)
    schema = row_schema(feed)
    tables, count = [schema.empty_table()], 0
    for rows in log.read(span.first, span.stop) if span.first < span.stop else ():
        rows = accepted(feed, rows)
        rows = rows.filter(pc.and_(pc.greater_equal(rows.column("t"), low), pc.less_equal(rows.column("t"), high)))
        tables.append(_with_columns(rows, schema).slice(0, MOST_ROWS - count))
        count += rows.num_rows
        if count > MOST_ROWS:
            break
    return pa.concat_tables(tables), count > MOST_ROWS


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The feed's columns; one that was added later is null."""
    there = set(rows.column_names)
    return pa.Table.from_arrays(
        [rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type) for field in schema], schema=schema
    )
