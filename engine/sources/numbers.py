"""Numbers and texts of the columns of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.sources.places import is_bytes, texts_of

Bools = npt.NDArray[np.bool_]
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"


def numbers_of(column: pa.Array, decimal: str = ".") -> tuple[npt.NDArray[np.float64], Bools]:
    """(numbers, NaN without a value; where there is something else)."""
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return values, np.zeros(len(values), np.bool_)
    texts = _number_texts(column, decimal)
    is_present = bools(pc.not_equal(pc.fill_null(texts, ""), "")) & ~bools(
        pc.is_in(pc.utf8_lower(texts), pa.array(["nan", "null", "na", "n/a", "none", "-"]))
    )
    values = np.full(len(texts), np.nan)
    is_number = bools(pc.match_substring_regex(texts, _NUMBER))
    # Not by pandas: its parser breaks the whole process at `11e999700000000000`.
    values[is_number] = texts.filter(pa.array(is_number)).cast(pa.float64()).to_numpy(zero_copy_only=False)
    values[np.isinf(values)] = np.nan
    return values, is_present & np.isnan(values)


def _number_texts(column: pa.Array, decimal: str) -> pa.Array:
    """As numbers are written with a decimal point and without marks between thousands."""
    texts = pc.utf8_trim_whitespace(as_text(column))
    if decimal == ",":
        # Points divide thousands, or are the decimal sign of a file that
        # has both: 1.234,5 and 52.5.
        grouped = pc.match_substring_regex(texts, r"^[+-]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]*)?$")
        texts = pc.replace_substring(pc.if_else(pc.fill_null(grouped, False), pc.replace_substring(texts, ".", ""), texts), ",", ".")
    return texts


def whole_of(column: pa.Array, values: npt.NDArray[np.float64], empty: Bools, decimal: str) -> npt.NDArray[np.int64]:
    """The values as whole numbers; those that a double would round are read from their texts."""
    whole = np.where(empty, 0, values).astype(np.int64)
    large = ~empty & (np.abs(values) >= 2**53)
    if large.any() and not pa.types.is_floating(column.type):
        texts = pc.utf8_ltrim(_number_texts(column.filter(pa.array(large)), decimal), "+")
        is_plain = bools(pc.match_substring_regex(texts, r"^-?[0-9]+$"))
        whole[np.flatnonzero(large)[is_plain]] = texts.filter(pa.array(is_plain)).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return whole


def as_text(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if is_bytes(kind):
        return texts_of(column)
    if pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        # An id that a library took for a number.
        whole = pc.equal(pc.floor(column), column)
        texts = column.cast(pa.string())
        return pc.if_else(pc.fill_null(whole, False), pc.replace_substring_regex(texts, r"\.0$", ""), texts)
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def valid(column: pa.Array) -> Bools:
    return bools(pc.is_valid(column))


def bools(array: Any) -> Bools:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.bool_)
