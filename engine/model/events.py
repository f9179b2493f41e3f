"""Rows from outside: cast and checked against the feed's schema, refused with a reason, stamped with their place in the log (CONTRACT 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import CLOCK, ENTITY, EVENT, SEQ, TIME, TIME_END, X, Y
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit

HEARTBEAT = "$heartbeat"
"""Event name of rows that only move the clock; written by ingest itself, refused from outside."""
DEFAULT_EVENT = "position"
MAX_NAME = 1024
"""Characters of an entity id or event name at most."""
MAX_TIME = 2**60
"""Greatest magnitude of a time: adding a bound to it stays inside int64."""
NEVER = -(2**62)
"""The clock before any row."""

Mask = npt.NDArray[np.bool_]


class Reason(StrEnum):
    """Why a row is refused; the list is closed."""

    MALFORMED = "malformed"
    WRONG_TYPE = "wrong_type"
    MISSING_ENTITY = "missing_entity"
    MISSING_TIME = "missing_time"
    TIME_RANGE = "time_range"
    TIME_ORDER = "time_order"
    COORDINATE = "coordinate"
    HALF_POSITION = "half_position"
    NAME = "name"
    LATE = "late"
    FUTURE = "future"


@dataclass(frozen=True)
class DeadLetter:
    """A refused row: its position in the checked table, or its line in a text, the reason, what exactly is wrong, and the row as it came."""

    reason: Reason
    detail: str
    row: dict[str, Any] | None
    position: int | None = None
    line: int | None = None


@dataclass(frozen=True)
class Checked:
    """`good` has all columns of the feed's schema in its order and types; `dead` are in input order."""

    good: pa.Table
    dead: list[DeadLetter] = field(default_factory=list)


_ARROW = {ColumnType.STRING: pa.string(), ColumnType.INT: pa.int64(), ColumnType.FLOAT: pa.float64(), ColumnType.BOOL: pa.bool_()}


def arrow_schema(feed: Feed) -> pa.Schema:
    """The feed's rows without their stamps."""
    return pa.schema([pa.field(name, _ARROW[kind]) for name, kind in feed.schema.items()])


def stamped_schema(feed: Feed) -> pa.Schema:
    """The feed's rows as the log holds them."""
    return arrow_schema(feed).append(pa.field(SEQ, pa.int64())).append(pa.field(CLOCK, pa.int64()))


def check_rows(rows: pa.Table, feed: Feed, *, text: bool = False) -> Checked:
    """Sort rows into good and dead.

    Columns that the feed does not declare are left out; declared ones that are not there are null. With `text` every column holds
    the text of cells (CSV): numbers and truth values are read from it, an empty cell is null. Otherwise types must fit: whole
    floats pass as integers, integers as floats and as names, timestamps as `t` of an `ms` feed; nothing else is converted.
    """
    refusal = _Refusal(len(rows))
    columns = [_column(rows, name, kind, feed, text, refusal) for name, kind in feed.schema.items()]
    table = pa.Table.from_arrays(columns, schema=arrow_schema(feed))
    _check_values(table, feed, refusal)
    if not refusal.any:
        return Checked(_with_event(table))
    good = table.filter(pa.array(~refusal.mask))
    return Checked(_with_event(good), refusal.letters(rows))


class _Refusal:
    """The first reason against each row."""

    def __init__(self, rows: int) -> None:
        self.mask: Mask = np.zeros(rows, np.bool_)
        self.why: list[tuple[npt.NDArray[np.int64], Reason, str]] = []

    @property
    def any(self) -> bool:
        return bool(self.why)

    def add(self, bad: Mask, reason: Reason, detail: str) -> None:
        fresh = np.flatnonzero(bad & ~self.mask)
        if len(fresh):
            self.mask[fresh] = True
            self.why.append((fresh, reason, detail))

    def letters(self, rows: pa.Table) -> list[DeadLetter]:
        at = np.flatnonzero(self.mask)
        values = dict(zip(at.tolist(), rows.take(pa.array(at)).to_pylist(), strict=True))
        found = [
            DeadLetter(reason, detail, values[n], position=n) for positions, reason, detail in self.why for n in positions.tolist()
        ]
        return sorted(found, key=lambda letter: letter.position or 0)


def _column(rows: pa.Table, name: str, kind: ColumnType, feed: Feed, text: bool, refusal: _Refusal) -> pa.ChunkedArray | pa.Array:
    if name not in rows.schema.names:
        return pa.nulls(len(rows), _ARROW[kind])
    column = rows.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    cast = _from_text if text else _from_value
    try:
        done, bad = cast(column, kind, is_time=name in (TIME, TIME_END) and feed.time is TimeUnit.MS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        done, bad = pa.nulls(len(rows), _ARROW[kind]), column.is_valid()
    refusal.add(_array(bad), Reason.WRONG_TYPE, f"{name} must be {_WANTED[kind]}")
    return done


_WANTED = {ColumnType.STRING: "a string", ColumnType.INT: "an integer", ColumnType.FLOAT: "a number", ColumnType.BOOL: "true or false"}
_INTEGER = r"^\s*[+-]?[0-9]+(\.0*)?\s*$"
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_NOT_FINITE = r"(?i)^\s*[+-]?(nan|inf|infinity)\s*$"


def _from_text(column: pa.ChunkedArray, kind: ColumnType, *, is_time: bool) -> tuple[Any, Any]:
    """(values, which cells are wrong) of a column of cell texts."""
    column = column.cast(pa.string())
    empty = pc.equal(pc.fill_null(column, ""), "")
    column = pc.if_else(empty, pa.scalar(None, pa.string()), column)
    if kind is ColumnType.STRING:
        return column, pc.and_(column.is_valid(), False)
    if kind is ColumnType.BOOL:
        low = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        true, false = (pc.is_in(low, pa.array(words)) for words in (["true", "1", "t"], ["false", "0", "f"]))
        return pc.if_else(pc.or_(true, false), true, None), pc.and_(column.is_valid(), pc.invert(pc.or_(true, false)))
    if kind is ColumnType.INT:
        fits = pc.fill_null(pc.match_substring_regex(column, _INTEGER), False)
        plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(pc.if_else(fits, column, None)), r"^\+|\.0*$", "")
        small = pc.less_equal(pc.utf8_length(plain), 18)
        values = pc.if_else(pc.fill_null(small, False), plain, None).cast(pa.int64())
        return values, pc.and_(column.is_valid(), pc.invert(pc.and_(fits, pc.fill_null(small, False))))
    fits = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
    odd = pc.fill_null(pc.match_substring_regex(column, _NOT_FINITE), False)
    numbers = pc.replace_substring_regex(pc.utf8_trim_whitespace(pc.if_else(fits, column, None)), r"^\+", "").cast(pa.float64())
    values = pc.if_else(odd, pa.scalar(float("nan")), numbers)
    return values, pc.and_(column.is_valid(), pc.invert(pc.or_(fits, odd)))


def _from_value(column: pa.ChunkedArray, kind: ColumnType, *, is_time: bool) -> tuple[Any, Any]:
    """(values, which cells are wrong) of a typed column."""
    given, wanted = column.type, _ARROW[kind]
    none = pc.and_(column.is_valid(), False)
    if pa.types.is_null(given) or given.equals(wanted):
        return column.cast(wanted), none
    if kind is ColumnType.STRING:
        if pa.types.is_floating(given):
            whole = _whole(column)
            return pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string()), _else(column, whole)
        fits = pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given) or pa.types.is_integer(given)
        return (column.cast(wanted), none) if fits else _all_wrong(column, wanted)
    if kind is ColumnType.INT:
        if is_time and pa.types.is_timestamp(given):
            return column.cast(pa.timestamp("ms", given.tz), safe=False).cast(pa.int64()), none
        if pa.types.is_floating(given):
            whole = _whole(column)
            return pc.if_else(whole, column, None).cast(pa.int64()), _else(column, whole)
        return (column.cast(wanted), none) if pa.types.is_integer(given) else _all_wrong(column, wanted)
    if kind is ColumnType.FLOAT:
        fits = pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_decimal(given)
        return (column.cast(wanted, safe=False), none) if fits else _all_wrong(column, wanted)
    return _all_wrong(column, wanted)


def _whole(column: pa.ChunkedArray) -> Any:
    """Which floats are integers (NaN, infinite and null are none)."""
    near = pc.less(pc.abs(column), 2.0**62)
    return pc.fill_null(pc.and_(near, pc.equal(pc.floor(column), column)), False)


def _else(column: pa.ChunkedArray, fits: Any) -> Any:
    """Which values are there, are not NaN (pandas' null) and do not fit."""
    there = pc.and_(column.is_valid(), pc.invert(pc.fill_null(pc.is_nan(column), False)))
    return pc.and_(there, pc.invert(fits))


def _all_wrong(column: pa.ChunkedArray, wanted: pa.DataType) -> tuple[Any, Any]:
    return pa.nulls(len(column), wanted), column.is_valid()


def _array(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _check_values(table: pa.Table, feed: Feed, refusal: _Refusal) -> None:
    """Everything about values and not types, in the order in which reasons are told."""
    name = table.column(ENTITY)
    refusal.add(_array(pc.equal(pc.fill_null(name, ""), "")), Reason.MISSING_ENTITY, "entity is missing")
    refusal.add(_array(table.column(TIME).is_null()), Reason.MISSING_TIME, "t is missing")
    for column in (ENTITY, EVENT):
        long = pc.fill_null(pc.greater(pc.utf8_length(table.column(column)), MAX_NAME), False)
        refusal.add(_array(long), Reason.NAME, f"{column} is longer than {MAX_NAME} characters")
    reserved = pc.fill_null(pc.starts_with(table.column(EVENT), "$"), False)
    refusal.add(_array(reserved), Reason.NAME, "event names that begin with $ are reserved")
    _check_times(table, refusal)
    _check_position(table, feed, refusal)


def _check_times(table: pa.Table, refusal: _Refusal) -> None:
    t, end = table.column(TIME), table.column(TIME_END)
    for column, label in ((t, TIME), (end, TIME_END)):
        far = pc.or_(pc.greater(column, MAX_TIME), pc.less(column, -MAX_TIME))
        refusal.add(_array(pc.fill_null(far, False)), Reason.TIME_RANGE, f"{label} is beyond 2^60")
    refusal.add(_array(pc.fill_null(pc.less(end, t), False)), Reason.TIME_ORDER, "t_end is before t")


def _check_position(table: pa.Table, feed: Feed, refusal: _Refusal) -> None:
    x, y = table.column(X), table.column(Y)
    limits = ((x, X, 180.0), (y, Y, 90.0)) if feed.crs is Crs.GEOGRAPHIC else ((x, X, np.inf), (y, Y, np.inf))
    for column, label, limit in limits:
        value = _array(pc.fill_null(column, 0.0))
        refusal.add(~np.isfinite(value), Reason.COORDINATE, f"{label} is not finite")
        if np.isfinite(limit):
            refusal.add(np.abs(value) > limit, Reason.COORDINATE, f"{label} is outside -{limit:g} to {limit:g}")
    half = pc.xor(x.is_null(), y.is_null())
    refusal.add(_array(half), Reason.HALF_POSITION, "only one of x and y is given")


def _with_event(table: pa.Table) -> pa.Table:
    """`event` filled in, and NaN attributes, which say nothing, made null."""
    for n, column in enumerate(table.columns):
        name = table.schema.field(n).name
        if name == EVENT:
            filled: Callable[[Any], Any] = lambda c: pc.fill_null(c, DEFAULT_EVENT)  # noqa: E731
        elif pa.types.is_floating(column.type) and name not in (X, Y) and pc.any(pc.is_nan(column)).as_py():
            filled = lambda c: pc.if_else(pc.is_nan(c), None, c)  # noqa: E731
        else:
            continue
        table = table.set_column(n, table.schema.field(n), filled(column))
    return table


@dataclass
class Stamper:
    """Gives rows their place in the log: `next_seq` is the next row's, `max_t` the greatest `t` so far (NEVER before any)."""

    next_seq: int = 0
    max_t: int = NEVER

    def stamp(self, rows: pa.Table) -> pa.Table:
        """The rows, in arrival order, with `seq` and `clock` (the greatest `t` before each)."""
        n = len(rows)
        t = _array(rows.column(TIME))
        clock = np.maximum.accumulate(np.concatenate([[self.max_t], t])) if n else np.array([self.max_t])
        seq = np.arange(self.next_seq, self.next_seq + n)
        self.next_seq += n
        self.max_t = int(clock[-1])
        stamps = {SEQ: seq, CLOCK: clock[:-1] if n else np.empty(0, np.int64)}
        for name, values in stamps.items():
            rows = rows.append_column(pa.field(name, pa.int64()), pa.array(values, pa.int64()))
        return rows
