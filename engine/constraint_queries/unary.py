"""The query index: which events each variable of each query may take. Every different condition, comparison and region is asked once a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from engine.constraint_queries.pairs import OPS, Floats, Ints, holds, sign_of, sign_of_mixed
from engine.constraint_queries.plan import ARROW_TYPES, ConstraintIndex, Filter
from engine.constraint_queries.specification import Comparison
from engine.model.batch import ENTITY, SEQ, TIME, Batch, X, Y
from engine.operator import ROUTE

Mask = npt.NDArray[np.bool_]
QUERY, UNARY = "query", "unary"
_PREFIX = "column "
_ARROW: Mapping[str, Callable[..., pa.Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def emitted_rows(index: ConstraintIndex, batch: Batch) -> pa.RecordBatch | None:
    """The events that some variable may take, once for each query: `query` is the position in the index, bit i of `unary` says V_i may."""
    asked = _Answers(index, batch)
    rows: list[Ints] = []
    unary: list[Ints] = []
    for plan in index.plans:
        bits = np.zeros(len(batch), np.int64)
        for i, one in enumerate(plan.filters):
            bits |= asked.all(one).astype(np.int64) << i
        rows.append(np.flatnonzero(bits))
        unary.append(bits[rows[-1]])
    lengths = [len(one) for one in rows]
    if not sum(lengths):
        return None
    query = np.repeat(np.arange(len(rows)), lengths)
    at = pa.array(np.concatenate(rows))
    routes = np.array([plan.route for plan in index.plans], np.int64)
    columns = {
        TIME: batch.rows.column(TIME).take(at),
        SEQ: batch.rows.column(SEQ).take(at),
        ROUTE: pa.array(routes[query]),
        QUERY: pa.array(query),
        UNARY: pa.array(np.concatenate(unary)),
        ENTITY: batch.rows.column(ENTITY).take(at),
        X: batch.column(X).cast(pa.float64()).take(at),
        Y: batch.column(Y).cast(pa.float64()).take(at),
    }
    for name in index.columns:
        columns[_PREFIX + name] = batch.column(name).cast(ARROW_TYPES[index.feed.types[name]]).take(at)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def carried(batch: Batch, name: str) -> pa.Array:
    """The values of a compared column in emitted rows."""
    return batch.rows.column(_PREFIX + name)


class _Answers:
    """Masks over one batch, each computed when first asked for."""

    def __init__(self, index: ConstraintIndex, batch: Batch) -> None:
        self.index, self.batch = index, batch
        self.conditions: dict[int, Mask] = {}
        self.comparisons: dict[int, Mask] = {}
        self.regions: dict[int, Mask] = {}
        self.columns: dict[str, Mask] = {}

    def all(self, one: Filter) -> Mask:
        mask = np.ones(len(self.batch), np.bool_)
        for number in one.conditions:
            if number not in self.conditions:
                self.conditions[number] = self.index.conditions[number].mask(self.batch)
            mask &= self.conditions[number]
        for number in one.comparisons:
            if number not in self.comparisons:
                self.comparisons[number] = _compare(self.batch, self.index.comparisons[number])
            mask &= self.comparisons[number]
        for column in one.columns:
            if column not in self.columns:
                self.columns[column] = _present(self.batch, column)
            mask &= self.columns[column]
        if one.located or one.regions:
            mask &= self.located
        for number in one.regions:
            if number not in self.regions:
                self.regions[number] = self.index.regions[number].contains(self.batch.x, self.batch.y)
            mask &= self.regions[number]
        return mask

    @cached_property
    def located(self) -> Mask:
        return ~(np.isnan(self.batch.x) | np.isnan(self.batch.y))


def _present(batch: Batch, name: str) -> Mask:
    column = batch.column(name)
    if pa.types.is_floating(column.type):
        return ~np.isnan(double(column))
    return np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), np.bool_)


def _compare(batch: Batch, comparison: Comparison) -> Mask:
    """Compares two columns of each event; a missing value satisfies nothing."""
    left, right = batch.column(comparison.left), batch.column(comparison.right)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return np.zeros(len(batch), np.bool_)
    both = _present(batch, comparison.left) & _present(batch, comparison.right)
    if not (pa.types.is_integer(left.type) or pa.types.is_floating(left.type)):
        found = pc.fill_null(_ARROW[comparison.op](left, right), False)
        return both & np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
    doubles = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    return both & _numbers(OPS[comparison.op], *doubles, whole(left), double(left), whole(right), double(right))


def whole(column: pa.Array) -> Ints:
    """An int or bool column as int64, 0 where it is null; zeros for other types."""
    if not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        return np.zeros(len(column), np.int64)
    found: Ints = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return found


def double(column: pa.Array) -> Floats:
    """A float column as float64, NaN where it is null; zeros for other types."""
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column))
    found: Floats = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False)
    return found


@njit(cache=True, nogil=True)
def _numbers(op: int, left_double: bool, right_double: bool, left_whole: Ints, left: Floats, right_whole: Ints, right: Floats) -> Mask:
    found = np.zeros(len(left), np.bool_)
    for n in range(len(left)):
        if left_double and right_double:
            sign = sign_of(left[n], right[n])
        elif left_double:
            sign = -sign_of_mixed(right_whole[n], left[n])
        elif right_double:
            sign = sign_of_mixed(left_whole[n], right[n])
        else:
            sign = sign_of(left_whole[n], right_whole[n])
        found[n] = holds(op, sign)
    return found
