"""`where`: conditions on columns that an event must satisfy to count at all (CONTRACT 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import Batch
from engine.model.documents import Node
from engine.model.faults import unknown_name
from engine.model.feed import ColumnType, Feed

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")
_COMPARE = {"=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_ARROW = {ColumnType.STRING: pa.string(), ColumnType.INT: pa.int64(), ColumnType.FLOAT: pa.float64(), ColumnType.BOOL: pa.bool_()}
_WANTED = {ColumnType.STRING: "a string", ColumnType.INT: "a number", ColumnType.FLOAT: "a number", ColumnType.BOOL: "true or false"}

Constant = str | int | float | bool
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """One condition; `constants` has one item, or those of `in`."""

    column: str
    type: ColumnType
    op: str
    constants: tuple[Constant, ...]

    def mask(self, batch: Batch) -> Mask:
        """Which rows satisfy it: a missing value satisfies nothing, not even `!=`."""
        column = batch.column(self.column)
        if pa.types.is_null(column.type):
            return np.zeros(len(batch), np.bool_)
        if self.op == "in":
            held = np.zeros(len(batch), np.bool_)
            for constant in self.constants:
                held |= _compare(column, self.type, "=", constant)
            return held
        return _compare(column, self.type, self.op, self.constants[0])


@dataclass(frozen=True)
class Conditions:
    """A conjunction; equal ones are equal values. The empty one holds for every row.

    `types` of equal columns are equal because all conditions of one feed are read against its schema.
    """

    items: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(item.column for item in self.items)

    def mask(self, batch: Batch) -> Mask:
        """Which rows satisfy all conditions, `(n,)` bool."""
        held = np.ones(len(batch), np.bool_)
        for item in self.items:
            held &= item.mask(batch)
        return held


def _compare(column: pa.Array, kind: ColumnType, op: str, constant: Constant) -> Mask:
    if kind is ColumnType.INT and isinstance(constant, float):
        if not constant.is_integer():
            return _between_integers(column, op, constant)
        constant = int(constant)
    if kind is ColumnType.INT and abs(int(constant)) >= 2**63:
        return _between_integers(column, op, math.copysign(2.0**63, int(constant)))
    held = _COMPARE[op](column, pa.scalar(constant, _ARROW[kind]))
    return pc.fill_null(held, False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _between_integers(column: pa.Array, op: str, constant: float) -> Mask:
    """Compare integers with a number that is none, without rounding them to doubles."""
    there: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    if op in ("=", "!="):
        return there & (op == "!=")
    above = op in (">", ">=")
    if abs(constant) >= 2**63:
        return there & (above == (constant < 0))
    bound = math.ceil(constant) if above else math.floor(constant)
    return _compare(column, ColumnType.INT, ">=" if above else "<=", bound)


def read_conditions(node: Node, feed: Feed) -> Conditions:
    """The conditions of a `where` list; faults are noted at the condition's part that is wrong."""
    if not node.present or node.null:
        return Conditions()
    found = [_read_condition(item, feed) for item in node.items(what="conditions")]
    return Conditions(tuple(condition for condition in found if condition))


def _read_condition(node: Node, feed: Feed) -> Condition | None:
    parts = node.items(least=3, most=3, what="parts: column, operator, constant")
    if len(parts) != 3:
        return None
    column, op = parts[0].value, parts[1].choice(OPERATORS, required=True)
    kind = feed.schema.get(column) if isinstance(column, str) else None
    if kind is None:
        parts[0].fault(unknown_name(column, feed.schema, what="column"))
        return None
    if op is None:
        return None
    if kind is ColumnType.BOOL and op not in ("=", "!=", "in"):
        parts[1].fault(f"{column!r} is true or false: only =, != and in compare it")
        return None
    constants = parts[2].items(least=1, what="constants") if op == "in" else [parts[2]]
    read = [_constant(constant, kind) for constant in constants]
    if not read or any(value is None for value in read):
        return None
    return Condition(column, kind, op, tuple(value for value in read if value is not None))


def _constant(node: Node, kind: ColumnType) -> Constant | None:
    value: Any = node.value
    if kind is ColumnType.STRING:
        fits = isinstance(value, str)
    elif kind is ColumnType.BOOL:
        fits = isinstance(value, bool)
    else:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not fits:
        node.fault(f"must be {_WANTED[kind]} like the column, not {value!r}")
        return None
    if kind is ColumnType.FLOAT:
        return float(value)
    return value  # type: ignore[no-any-return]
