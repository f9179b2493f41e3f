"""Rows of a feed: from raw input to checked, stamped rows.

`check_rows` is the one place that decides which rows are events; ingest and files send their rows
through it. Whole columns are checked at once; only refused rows are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import CLOCK, ENTITY, EVENT, SEQ, TIME, TIME_END, X, Y
from engine.model.feed import LARGEST_TIME, ColumnType, Crs, Feed, TimeUnit
from engine.model.messages import Message

HEARTBEAT = "$heartbeat"
"""`event` of rows that move the clock and are no events."""
POSITION = "position"
"""`event` of rows without an event name."""
ARROW_TYPES: Mapping[ColumnType, pa.DataType] = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.BOOL: pa.bool_(),
}
Bools = npt.NDArray[np.bool_]


class Reason(StrEnum):
    """Why a row is no event: the closed list."""

    MALFORMED = "malformed"
    MISSING_ENTITY = "missing_entity"
    MISSING_TIME = "missing_t"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE_TIME = "t_out_of_range"
    NOT_FINITE = "not_finite"
    OUT_OF_RANGE = "out_of_range"
    HALF_POSITION = "half_position"
    ENDS_BEFORE_START = "ends_before_start"
    RESERVED_EVENT = "reserved_event"
    FUTURE = "future"
    LATE = "late"


@dataclass(frozen=True)
class DeadLetter:
    """A refused row: `reason` from the closed list, `detail` a sentence, `row` the original
    values (null: unreadable).

    `line` (from 1, the header counts) and `source` are its place in a file.
    """

    reason: Reason
    detail: Message
    row: Mapping[str, Any] | None = None
    line: int | None = None
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"reason": str(self.reason), "detail": self.detail, "row": self.row, "line": self.line, "source": self.source}


def row_schema(feed: Feed) -> pa.Schema:
    """The columns of a checked row in their order: the core ones, then the feed's."""
    return pa.schema([pa.field(name, ARROW_TYPES[kind]) for name, kind in feed.types.items()])


def stamped_schema(feed: Feed) -> pa.Schema:
    """The columns of a stamped row: `row_schema`, then `seq` and `clock`."""
    return row_schema(feed).append(pa.field(SEQ, pa.int64())).append(pa.field(CLOCK, pa.int64()))


def check_rows(table: pa.Table, feed: Feed) -> tuple[pa.Table, list[DeadLetter]]:
    """(the rows that are events, in `row_schema(feed)` and their order; the others,
    each with its first fault).

    Columns the feed does not declare are left out, declared ones that are missing become null.
    Whole numbers are accepted as text (ids) and as floats, whole floats as integers, timestamps as
    `t` on an `ms` feed. NaN is a missing value, except in `x` and `y`.
    """
    checked = CheckedRows(table, feed)
    return checked.good(), checked.dead()


class CheckedRows:
    """A table of rows and the faults of each.

    `unread[column]` marks values that the caller could not bring into the column's type (they are
    null in `table`); `raw` are the rows as dead letters show them, by default those of `table`.
    `fault[i]` is the position in `found` of row i's first fault, 0 for none.
    """

    def __init__(self, table: pa.Table, feed: Feed, unread: Mapping[str, Bools] | None = None, raw: pa.Table | None = None) -> None:
        self.table, self.feed = table, feed
        self.raw = table if raw is None else raw
        self.fault = np.zeros(table.num_rows, np.int32)
        self.found: list[tuple[Reason, str]] = [(Reason.MALFORMED, "")]
        for name, rows in (unread or {}).items():
            self.mark(rows, Reason.WRONG_TYPE, self._wrong_type(name))
        self.columns = {name: self._column(name, kind) for name, kind in feed.types.items()}
        self._check()

    def good(self) -> pa.Table:
        """The rows that are events."""
        rows = pa.table(list(self.columns.values()), schema=row_schema(self.feed))
        return rows if not self.dead_count else rows.filter(pa.array(self.fault == 0))

    @cached_property
    def dead_count(self) -> int:
        return int(np.count_nonzero(self.fault))

    @cached_property
    def positions(self) -> list[int]:
        """The indices of the other rows."""
        positions: list[int] = np.flatnonzero(self.fault).tolist()
        return positions

    def dead(self, lines: npt.NDArray[np.int64] | None = None) -> list[DeadLetter]:
        """The other rows, in their order; `lines` are those of all rows."""
        # Without columns Arrow does not count the rows that it takes.
        rows = _values(self.raw.take(pa.array(self.positions, pa.int64()))) if self.dead_count and self.raw.num_columns else [{}] * self.dead_count
        numbers = [None if lines is None else int(lines[position]) for position in self.positions]
        return [self.letter(*each) for each in zip(self.positions, rows, numbers, strict=True)]

    def letter(self, position: int, row: Mapping[str, Any], line: int | None = None) -> DeadLetter:
        """The dead letter of a refused row, with its original values."""
        reason, detail = self.found[self.fault[position]]
        return DeadLetter(reason, detail, plain_row(row), line)

    def mark(self, rows: Bools, reason: Reason, detail: Message) -> None:
        """Notes a fault for `rows` that have none yet."""
        if rows.any():
            self.found.append((reason, detail))
            self.fault[rows & (self.fault == 0)] = len(self.found) - 1

    def _wrong_type(self, name: str) -> Message:
        if name in (TIME, TIME_END) and self.feed.time is TimeUnit.MS:
            return Message("column {name} must be a whole number of milliseconds since 1970", name=repr(name))
        return Message("column {name} must be of type {type}", name=repr(name), type=self.feed.types[name])

    def _column(self, name: str, kind: ColumnType) -> pa.Array:
        if name not in self.table.column_names:
            default = POSITION if name == EVENT else None
            return pa.array([default] * 1, ARROW_TYPES[kind]).take(pa.array(np.zeros(self.table.num_rows, np.int64)))
        values = self.table.column(name).combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
        if name in (TIME, TIME_END) and self.feed.time is TimeUnit.MS and pa.types.is_timestamp(values.type):
            values = _milliseconds(values)
        column, wrong = _as_type(values, kind, nan_is_missing=name not in (X, Y))
        if wrong is not None:
            self.mark(wrong, Reason.WRONG_TYPE, self._wrong_type(name))
        if name == EVENT:
            column = pc.if_else(pc.equal(pc.fill_null(column, ""), ""), POSITION, column)
        return column

    def _check(self) -> None:
        entity, t, x, y = (self.columns[name] for name in (ENTITY, TIME, X, Y))
        self.mark(_bools(pc.is_null(entity)) | _bools(pc.equal(entity, "")), Reason.MISSING_ENTITY, Message("the row has no entity"))
        self.mark(_bools(pc.is_null(t)), Reason.MISSING_TIME, Message("the row has no t"))
        times = pc.fill_null(t, 0).to_numpy(zero_copy_only=False)
        self.mark((times >= LARGEST_TIME) | (times <= -LARGEST_TIME), Reason.OUT_OF_RANGE_TIME, Message("t must lie between -2^61 and 2^61"))
        self._check_end(times)
        self._check_position(x, y)
        if HEARTBEAT in (names := self.columns[EVENT].dictionary_encode().dictionary.to_pylist()) and names:
            self.mark(
                _bools(pc.equal(self.columns[EVENT], HEARTBEAT)),
                Reason.RESERVED_EVENT,
                Message("the event name {heartbeat} is reserved", heartbeat=repr(HEARTBEAT)),
            )

    def _check_end(self, times: npt.NDArray[np.int64]) -> None:
        end = self.columns[TIME_END]
        if end.null_count < len(end):
            ends = pc.fill_null(end, 0).to_numpy(zero_copy_only=False)
            has_end = _bools(pc.is_valid(end))
            self.mark(has_end & (abs(ends) >= LARGEST_TIME), Reason.OUT_OF_RANGE_TIME, Message("t_end must lie between -2^61 and 2^61"))
            self.mark(has_end & (ends < times), Reason.ENDS_BEFORE_START, Message("t_end is less than t"))

    def _check_position(self, x: pa.Array, y: pa.Array) -> None:
        has_x, has_y = _bools(pc.is_valid(x)), _bools(pc.is_valid(y))
        self.mark(has_x != has_y, Reason.HALF_POSITION, Message("only one of x, y is given"))
        both = has_x & has_y
        xs, ys = (pc.fill_null(one, 0.0).to_numpy(zero_copy_only=False) for one in (x, y))
        self.mark(both & ~(np.isfinite(xs) & np.isfinite(ys)), Reason.NOT_FINITE, Message("x and y must be finite numbers"))
        if self.feed.crs is Crs.GEOGRAPHIC:
            self.mark(
                both & ~((np.abs(xs) <= 180) & (np.abs(ys) <= 90)),
                Reason.OUT_OF_RANGE,
                Message("longitude x must lie in [-180, 180] and latitude y in [-90, 90]"),
            )


def _as_type(column: pa.Array, kind: ColumnType, *, nan_is_missing: bool) -> tuple[pa.Array, Bools | None]:
    """(`column` in the Arrow type of `kind`, null where it cannot be; where it
    cannot be, null for nowhere)."""
    arrow_type = ARROW_TYPES[kind]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), arrow_type), None
    if kind is ColumnType.STRING and _is_text(column.type):
        return _utf8(column)
    if column.type == arrow_type and kind is not ColumnType.FLOAT:
        return column, None
    if kind is ColumnType.STRING and pa.types.is_integer(column.type):
        return column.cast(arrow_type), None
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if kind is ColumnType.FLOAT and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return _floats(column, nan_is_missing=nan_is_missing), None
    if kind is ColumnType.INT and pa.types.is_integer(column.type):
        return _integers(column)
    if kind is ColumnType.INT and pa.types.is_floating(column.type):
        return _whole(column)
    return pa.nulls(len(column), arrow_type), _bools(pc.is_valid(column))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _utf8(column: pa.Array) -> tuple[pa.Array, Bools | None]:
    """Text unchanged; null where the bytes are not UTF-8, which Arrow does not check."""
    text = column.cast(pa.string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        raw = text.cast(pa.binary()).to_pylist()
        wrong = np.array([one is not None and not _decodes(one) for one in raw], np.bool_)
        return pc.if_else(pa.array(wrong), pa.scalar(None, pa.string()), text), wrong
    return text, None


def _decodes(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _floats(column: pa.Array, *, nan_is_missing: bool) -> pa.Array:
    floats = column.cast(pa.float64(), safe=False)
    if not nan_is_missing or pa.types.is_integer(column.type):
        return floats
    nan = pc.is_nan(floats)
    return pc.if_else(nan, pa.scalar(None, pa.float64()), floats) if pc.any(nan).as_py() else floats


def _integers(column: pa.Array) -> tuple[pa.Array, Bools | None]:
    """Of any width; an unsigned one may be too large."""
    if column.type == pa.uint64():
        large = _bools(pc.greater(column, 2**63 - 1))
        if large.any():
            return pc.if_else(pa.array(large), pa.scalar(None, pa.uint64()), column).cast(pa.int64()), large
    return column.cast(pa.int64()), None


def _whole(column: pa.Array) -> tuple[pa.Array, Bools | None]:
    """Floats that are whole numbers as integers; NaN is a missing value."""
    floats = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
    missing = np.isnan(floats)
    whole = ~missing & (np.abs(floats) < 2.0**63) & (np.floor(floats) == floats)
    numbers = np.where(whole, floats, 0.0).astype(np.int64)
    wrong = ~missing & ~whole
    return pa.array(numbers, pa.int64(), mask=~whole), wrong if wrong.any() else None


def _milliseconds(column: pa.Array) -> pa.Array:
    """Timestamps as milliseconds since the epoch; finer ones are rounded down."""
    per_unit = {"s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000}[column.type.unit]
    raw = column.cast(pa.int64())
    numbers = pc.fill_null(raw, 0).to_numpy(zero_copy_only=False)
    scaled = numbers * per_unit if per_unit > 0 else numbers // -per_unit
    return pa.array(scaled, pa.int64(), mask=_bools(pc.is_null(raw)))


def _bools(array: pa.Array) -> Bools:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.bool_)


def _values(table: pa.Table) -> list[dict[str, Any]]:
    """The original rows; bytes that are not UTF-8 are replaced."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except UnicodeDecodeError:
        texts = [name for name, kind in zip(table.column_names, table.schema.types, strict=True) if _is_text(kind)]
        for name in texts:
            raw = table.column(name).cast(pa.string()).cast(pa.binary()).to_pylist()
            shown = pa.array([None if one is None else one.decode(errors="replace") for one in raw], pa.string())
            table = table.set_column(table.column_names.index(name), name, shown)
        rows = table.to_pylist()
    return rows


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's values in JSON: other types than numbers, text, bools and null become text (bytes
    hexadecimal), and so do NaN and the infinities."""
    return {name: value if _fits_json(value) else value.hex() if isinstance(value, bytes) else str(value) for name, value in row.items()}


def _fits_json(value: Any) -> bool:
    if isinstance(value, float):
        return bool(np.isfinite(value))
    return value is None or isinstance(value, str | int | bool)


class Stamper:
    """Numbers checked rows in arrival order and notes the clock that each one met.

    `max_t` is the greatest `t` before the next row, null before any.
    """

    def __init__(self, next_seq: int = 0, max_t: int | None = None) -> None:
        self.next_seq, self.max_t = next_seq, max_t

    def stamp(self, table: pa.Table) -> pa.Table:
        """`table` with `seq` and `clock`, the greatest `t` of all rows before
        (null for the very first)."""
        n = table.num_rows
        seq = pa.array(np.arange(self.next_seq, self.next_seq + n), pa.int64())
        t = table.column(TIME).to_numpy()
        reached = np.maximum.accumulate(t if self.max_t is None or not n else np.concatenate([[self.max_t], t]))
        if self.max_t is None and n:
            clock = pa.array(np.concatenate([t[:1], reached[:-1]]), pa.int64(), mask=np.arange(n) == 0)
        else:
            clock = pa.array(reached[:-1] if n else t, pa.int64())
        self.next_seq += n
        if n:
            self.max_t = int(reached[-1])
        return table.append_column(SEQ, seq).append_column(CLOCK, clock)
