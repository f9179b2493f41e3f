"""The query index: which events each variable of each query may take. Each distinct condition that
is not a range is evaluated once a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from engine.constraint_queries.constraints import Comparison
from engine.constraint_queries.pairs import OPS, Floats, Ints, holds, sign_of, sign_of_mixed
from engine.constraint_queries.plan import ConstraintIndex
from engine.constraint_queries.ranges import passing_events
from engine.model.batch import Batch
from engine.model.conditions import BY_ARROW, Condition

Mask = npt.NDArray[np.bool_]


def passing_rows(index: ConstraintIndex, batch: Batch) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Ints]:
    """Row, query and variables (bits) of the events that some variable of a query may take."""
    ranges = index.ranges
    values = np.empty((len(ranges.names), len(batch)))
    for k, name in enumerate(ranges.names):
        values[k] = batch.numbers(name)
    ready = np.empty((len(ranges.ready), len(batch)), np.bool_)
    for k, (kind, which) in enumerate(ranges.ready):
        ready[k] = _mask(index, batch, kind, which)
    found: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Ints] = passing_events(*ranges[2:], values, ready, len(batch))
    return found


def _mask(index: ConstraintIndex, batch: Batch, kind: str, which: Any) -> Mask:
    """The events that satisfy one condition."""
    if kind == "condition":
        condition: Condition = index.conditions[which]
        return condition.mask(batch)
    if kind == "comparison":
        return _compare(batch, index.comparisons[which])
    if kind == "present":
        return _present(batch, str(which))
    located = np.asarray(~(np.isnan(batch.x) | np.isnan(batch.y)), np.bool_)
    # A missing position is in no region.
    if kind == "located":
        return located
    inside: Mask = index.regions[which].contains(batch.x, batch.y)
    return located & inside


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
        found = pc.fill_null(BY_ARROW[comparison.op](left, right), False)
        return both & np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
    doubles = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    return both & _numbers(OPS[comparison.op], *doubles, as_int64(left), double(left), as_int64(right), double(right))


def as_int64(column: pa.Array) -> Ints:
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
