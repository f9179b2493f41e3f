"""Single values into columns: the slow, exact way for blocks of text that
hold something unexpected."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.events import ARROW_TYPES
from engine.model.feed import ColumnType

Bools = npt.NDArray[np.bool_]
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_TEXTS_OF_BOOLS = {"true": True, "True": True, "TRUE": True, "1": True, "false": False, "False": False, "FALSE": False, "0": False}


class Cell(str):
    """A text of a format in which everything is text: converted to a number or a truth value if
    the column has that type."""


def column_of(values: Sequence[Any], kind: ColumnType, *, text: bool) -> tuple[pa.Array, Bools | None]:
    """(the values in the Arrow type of `kind`, null where they are null or do not fit; where they
    do not fit, null for nowhere).

    With `text` they are fields of a CSV file (null: the empty one), otherwise
    what JSON gave, and Cells.
    """
    quick = _all_of(values, kind) if not text or kind is ColumnType.STRING else None
    if quick is not None:
        return quick, None
    from_text, from_json = _FROM_TEXT[kind], _FROM_JSON[kind]
    converted: list[Any] = []
    wrong = np.zeros(len(values), np.bool_)
    for i, value in enumerate(values):
        try:
            converted.append(None if value is None else (from_text if text or type(value) is Cell else from_json)(value))
        except (ValueError, OverflowError):
            converted.append(None)
            wrong[i] = True
    return pa.array(converted, ARROW_TYPES[kind]), wrong if wrong.any() else None


def _all_of(values: Sequence[Any], kind: ColumnType) -> pa.Array | None:
    """Values that are of their type already, as most columns are: one by
    one takes ten times as long."""
    if kind is ColumnType.FLOAT and bool in set(map(type, values)):
        # Behind a float Arrow takes a truth value as 0 or 1.
        return None
    try:
        array = pa.array(values)
    except (pa.ArrowException, UnicodeError, OverflowError):
        return None
    return array if array.type == ARROW_TYPES[kind] else None


def value_or_text(text: str, kind: ColumnType) -> Any:
    """The value of a field of a CSV file, or the field itself if it does not fit."""
    try:
        return _FROM_TEXT[kind](text)
    except (ValueError, OverflowError):
        return text


def _int64(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def _text_to_int(text: str) -> int | None:
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return _int64(int(text))
    return _json_to_int(_text_to_float(text))


def _text_to_float(text: str) -> float:
    text = text.strip()
    if not _FLOAT.fullmatch(text):
        raise ValueError
    return float(text)


def _text_to_bool(text: str) -> bool:
    if text not in _TEXTS_OF_BOOLS:
        raise ValueError
    return _TEXTS_OF_BOOLS[text]


def _json_to_string(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError
    text = str(value)
    # A lone surrogate is not text: it could not be encoded again.
    text.encode()
    return text


def _json_to_int(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if not value.is_integer():
            raise ValueError
    return _int64(int(value))


def _json_to_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


def _json_to_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


_FROM_TEXT: Mapping[ColumnType, Callable[[str], Any]] = {
    ColumnType.STRING: str,
    ColumnType.INT: _text_to_int,
    ColumnType.FLOAT: _text_to_float,
    ColumnType.BOOL: _text_to_bool,
}
_FROM_JSON: Mapping[ColumnType, Callable[[Any], Any]] = {
    ColumnType.STRING: _json_to_string,
    ColumnType.INT: _json_to_int,
    ColumnType.FLOAT: _json_to_float,
    ColumnType.BOOL: _json_to_bool,
}
