"""`where`: conditions that an event must satisfy to count for a query."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import Batch

Constant = str | int | float | bool
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The same comparison with its sides exchanged."""
WITHOUT_CONDITIONS = ("region", "inside", "outside", "distance")
"""Keys of documents whose values may be regions with very many corners."""
BY_ARROW: Mapping[str, Callable[..., pa.Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_PYTHON: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """One condition `[column, op, constant]`; for `in` the constant is a tuple.

    The constant's type fits the column's (checked): numbers compare by value, strings by code
    points, a missing value satisfies nothing.
    """

    column: str
    op: str
    constant: Constant | tuple[Constant, ...]

    def __str__(self) -> str:
        written = list(self.constant) if isinstance(self.constant, tuple) else self.constant
        return f"{self.column} {self.op} {json.dumps(written, ensure_ascii=False)}"

    def mask(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Which rows of `batch` satisfy it."""
        column = batch.column(self.column)
        if pa.types.is_null(column.type):
            return np.zeros(len(batch), np.bool_)
        if isinstance(self.constant, tuple):
            return _any_equal(column, self.constant)
        return _compare(column, self.op, self.constant)

    def holds(self, value: Constant | None) -> bool:
        """Whether one value (null: missing) satisfies it."""
        if value is None or value != value:
            return False
        if isinstance(self.constant, tuple):
            return value in self.constant
        return bool(_PYTHON[self.op](value, self.constant))


@dataclass(frozen=True)
class Conditions:
    """A conjunction of conditions; empty means every event."""

    items: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(item.column for item in self.items)

    def values_of(self, column: str) -> set[str]:
        """The constants that a column is compared with by `=` or `in`, as texts."""
        asked = [item.constant for item in self.items if item.column == column and item.op in ("=", "in")]
        return {str(one) for constant in asked for one in (constant if isinstance(constant, tuple) else (constant,))}

    def mask(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Which rows of `batch` satisfy all of them."""
        mask = np.ones(len(batch), np.bool_)
        for item in self.items:
            mask &= item.mask(batch)
        return mask

    def holds(self, row: Mapping[str, Constant | None]) -> bool:
        """Whether one event satisfies all of them."""
        return all(item.holds(row.get(item.column)) for item in self.items)


def read_where(where: Iterable[Sequence[Any]]) -> list[Condition]:
    """The conditions of a checked `where`."""
    return [Condition(column, op, tuple(constant) if isinstance(constant, list) else constant) for column, op, constant in where]


def conditions_within(document: Any) -> Iterator[list[Condition]]:
    """Those of each `where` within a checked document or a part of it."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key == "where":
                yield read_where(value)
            elif key not in WITHOUT_CONDITIONS:
                yield from conditions_within(value)
    elif isinstance(document, list | tuple):
        for value in document:
            yield from conditions_within(value)


def _any_equal(column: pa.Array, values: tuple[Constant, ...]) -> npt.NDArray[np.bool_]:
    """Texts are looked up together; numbers are compared one by one,
    because their types need care."""
    if values and isinstance(values[0], str):
        return _bools(pc.is_in(column, value_set=pa.array(values, pa.string())))
    is_equal = np.zeros(len(column), np.bool_)
    for value in values:
        is_equal |= _compare(column, "=", value)
    return is_equal


def _compare(column: pa.Array, op: str, constant: Constant) -> npt.NDArray[np.bool_]:
    """Compares numbers by their exact values: neither side is rounded to the other's type."""
    if isinstance(constant, int | float) and not isinstance(constant, bool):
        op, constant = _in_type_of(column, op, constant)
        if op in ("always", "never"):
            # A missing value satisfies no condition, not even one that always holds.
            return _bools(pc.is_valid(column)) if op == "always" else np.zeros(len(column), np.bool_)
    return _bools(BY_ARROW[op](column, pa.scalar(constant, column.type)))


def _bools(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.bool_)


def _in_type_of(column: pa.Array, op: str, constant: float) -> tuple[str, float]:
    """An equivalent comparison whose constant has the column's type, or `always` or `never`."""
    below: float
    least: float
    greatest: float
    if pa.types.is_integer(column.type):
        # An integer may be larger than any double, so it is not asked whether it is finite.
        is_infinite = isinstance(constant, float) and math.isinf(constant)
        below, least, greatest = constant if is_infinite else math.floor(constant), -(2**63), 2**63 - 1
        exact = below == constant
    else:
        below, least, greatest = _double_at_most(constant), -math.inf, math.inf
        exact = below == constant
    if op in ("=", "!="):
        if exact and least <= below <= greatest:
            return op, below
        return ("never" if op == "=" else "always"), 0
    if below < least:
        return ("always" if op in (">", ">=") else "never"), 0
    if below > greatest:
        return ("always" if op in ("<", "<=") else "never"), 0
    if exact:
        return op, below
    # No value is strictly between `below` and the constant.
    return ("<=" if op in ("<", "<=") else ">"), below


def _double_at_most(constant: float) -> float:
    """The greatest double that is not above `constant`."""
    try:
        nearest = float(constant)
    except OverflowError:
        return math.nextafter(math.inf, 0) if constant > 0 else -math.inf
    return nearest if nearest <= constant else math.nextafter(nearest, -math.inf)
