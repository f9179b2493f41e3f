"""Conditions on a row's attributes by their definition: a comparison with
a missing value is false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
}


def compared(left: Any, op: str, right: Any) -> bool:
    """Whether `left op right` holds and both are there."""
    return left is not None and right is not None and COMPARE[op](left, right)


def hold(row: Mapping[str, Any], conditions: Iterable[tuple[str, str, Any]]) -> bool:
    """Whether all of `[column, op, constant]` hold for the row."""
    return all(compared(row.get(column), op, constant) for column, op, constant in conditions)
