"""Which one or two columns have the time, and in which form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.sources.guessing.names import CLOCK, DAY, WHEN, WHO, named_column, plain
from engine.sources.guessing.values import TRIED_ROWS, is_text
from engine.sources.numbers import numbers_of
from engine.sources.reading import DATED, ISO, TICKS, Reading, joined_times, times_of

EPOCH_BOUNDS = (("epoch_s", 1e8, 1e10), ("epoch_ms", 1e11, 1e13), ("epoch_us", 1e14, 1e16), ("epoch_ns", 1e17, 1e19))
"""Numbers between 1973 and 2286 in each unit."""
YEAR = r"(\p{Nd}\P{Nd}*){4}"
"""No text with fewer than four digits is a time: each format has a whole year. Twenty formats
need not be tried on names."""


def with_time(columns: Mapping[str, pa.Array], reading: Reading, *, fixed: bool) -> Reading:
    """The column, or the two, with the time (unless these are `fixed`), and how it is written."""
    if fixed:
        time_columns = [columns[name] for name in reading.time if name in columns]
        if not time_columns:
            return reading
        column = time_columns[0] if len(time_columns) == 1 else joined_times(time_columns)
        return replace(reading, time_format=format_of(column, reading)[0])
    day, clock = named_column(columns, DAY), named_column(columns, CLOCK)
    if (
        day
        and clock
        and day != clock
        and (is_text(columns[clock]) or pa.types.is_time(columns[clock].type))
        and pc.any(pc.match_substring_regex(texts_of(columns[clock]), r"^\s*\d{1,2}:\d\d")).as_py()
    ):
        both = replace(reading, time=(day, clock))
        joined = joined_times((columns[day].slice(0, TRIED_ROWS), columns[clock].slice(0, TRIED_ROWS)))
        form, share = format_of(joined, both)
        if share > 0.5:
            return replace(both, time_format=form)
    named = [
        column
        for column in columns
        if column not in (reading.x, reading.y) and (plain(column) in WHEN or "time" in plain(column) or "date" in plain(column))
    ]
    named.sort(key=lambda column: WHEN.index(plain(column)) if plain(column) in WHEN else len(WHEN))
    # A number of a vessel looks like seconds since 1970.
    others = [column for column in columns if column not in (*named, reading.x, reading.y) and plain(column) not in WHO]
    tried = [*named, *(column for column in others if is_text(columns[column]))]
    best: tuple[float, str, str] = (0.0, "", ISO)
    for column in tried[:20]:
        form, share = format_of(columns[column], reading)
        # Small whole numbers, such as speeds, are no ticks where a column is named like a time.
        if share > best[0] + 0.2 and not (form == TICKS and named and column not in named):
            best = (share, column, form)
    # A column named like a time in an unknown form has its faults shown.
    column = best[1] or next(iter(named), "")
    return replace(reading, time=(column,) if column else (), time_format=best[2])


def texts_of(column: pa.Array) -> pa.Array:
    return column.slice(0, TRIED_ROWS).cast(pa.string())


def format_of(column: pa.Array, reading: Reading) -> tuple[str, float]:
    """The format of times that fits most of the values, and the share that it fits."""
    head = column.slice(0, TRIED_ROWS).drop_null()
    if len(head) == 0 or pa.types.is_boolean(head.type):
        return ISO, 0.0
    if pa.types.is_timestamp(head.type) or pa.types.is_date(head.type):
        return ISO, 1.0
    values, wrong = numbers_of(head, reading.decimal)
    if np.mean(~wrong & np.isfinite(values)) > 0.5:
        return _of_numbers(values[np.isfinite(values)], head, reading)
    if is_text(head) and not pc.any(pc.match_substring_regex(head, YEAR)).as_py():
        return ISO, 0.0
    shares: list[tuple[float, str]] = []
    for form in (ISO, *DATED):
        times, wrong = times_of(head, replace(reading, time_format=form))
        # Of two forms that fit, the one under which time advances in smaller steps: 3/4 and 4/4
        # are a day apart or a month.
        right = times[~wrong]
        steps = float(np.abs(np.diff(right)).mean()) if len(right) > 1 else 0.0
        shares.append((round(float(np.mean(~wrong)), 2), form))
        if shares[-1][0] == 1.0 and form == ISO:
            return ISO, 1.0
        shares[-1] = (shares[-1][0] - min(steps, 1e14) / 1e18, form)
    share, form = max(shares, key=lambda one: one[0])
    return form, share


def _of_numbers(values: npt.NDArray[np.float64], head: pa.Array, reading: Reading) -> tuple[str, float]:
    middle = float(np.median(np.abs(values)))
    digits = len(str(int(middle))) if middle < 1e15 else 0
    if digits in (8, 12, 14) and _looks_like_a_day(middle, digits):
        form = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}[digits]
        _, wrong = times_of(
            pc.cast(pc.cast(head, pa.int64(), safe=False), pa.string()) if not is_text(head) else head, replace(reading, time_format=form)
        )
        if not wrong.any() and is_text(head):
            return form, 1.0
    for form, low, high in EPOCH_BOUNDS:
        if low <= middle < high:
            return form, 1.0
    return TICKS, 0.6 if np.all(values == np.floor(values)) else 0.0


def _looks_like_a_day(number: float, digits: int) -> bool:
    return 1900 <= int(number / 10 ** (digits - 4)) <= 2100
