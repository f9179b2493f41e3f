"""The possible types of a column's values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.feed import ColumnType
from engine.sources.numbers import numbers_of

TRIED_ROWS = 500
"""The number of values on which formats of times are tried."""
NEARLY_ALL = 0.9


def is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def is_name(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_integer(column.type) or _is_whole(column))


def _is_whole(column: pa.Array) -> bool:
    if not pa.types.is_floating(column.type):
        return False
    values = column.drop_null().to_numpy(zero_copy_only=False)
    return bool(len(values) and np.all(values == np.floor(values)))


def has_decimal_commas(columns: Iterable[pa.Array]) -> bool:
    """Whether texts such as 12,5 are the usual numbers."""
    commas = points = 0
    for column in columns:
        if pa.types.is_string(column.type):
            head = column.slice(0, TRIED_ROWS)
            commas += pc.sum(pc.match_substring_regex(head, r"^\s*-?\d+,\d+\s*$")).as_py() or 0
            points += pc.sum(pc.match_substring_regex(head, r"^\s*-?\d+\.\d+\s*$")).as_py() or 0
    return commas > points


def odd_text(column: pa.Array, decimal: str) -> str:
    """The first value that is no number where nearly all are, so that the column is of texts; else
    empty."""
    if not is_text(column) or _has_leading_zeros(column):
        return ""
    values, wrong = numbers_of(column, decimal)
    numbers, texts = np.count_nonzero(np.isfinite(values)), np.count_nonzero(wrong)
    if not texts or numbers < NEARLY_ALL * (numbers + texts):
        return ""
    return str(column[int(np.argmax(wrong))])


def _has_leading_zeros(column: pa.Array) -> bool:
    """Some value is a number such as 007: an id, whose zeros count."""
    return bool(pc.any(pc.match_substring_regex(column, r"^\s*0[0-9]+\s*$")).as_py())


def type_of(column: pa.Array, decimal: str) -> ColumnType:
    if pa.types.is_boolean(column.type):
        return ColumnType.BOOL
    if pa.types.is_null(column.type):
        return ColumnType.STRING
    if is_text(column):
        if _has_leading_zeros(column):
            return ColumnType.STRING
        texts = pd.Series(column.to_pandas()).dropna().str.strip()
        if len(texts) and set(texts.str.lower()) <= {"true", "false"}:
            return ColumnType.BOOL
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)):
        return ColumnType.STRING
    values, wrong = numbers_of(column, decimal)
    finite = values[np.isfinite(values)]
    if wrong.any() or not len(finite):
        return ColumnType.STRING
    # Later rows may have decimals where the first have none: only what was written
    # as a whole number is one.
    if pa.types.is_floating(column.type) or not np.all(finite == np.floor(finite)) or not _without_point(column):
        return ColumnType.FLOAT
    # Longer ones are ids.
    return ColumnType.INT if np.all(np.abs(finite) < 2**63) else ColumnType.STRING


def _without_point(column: pa.Array) -> bool:
    return not is_text(column) or not pc.any(pc.match_substring_regex(column, r"[.,eE]")).as_py()
