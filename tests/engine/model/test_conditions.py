"""Conditions on columns compared with Python's comparisons; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context import Context
from engine.model.batch import Batch, EntityDictionary
from engine.model.conditions import OPERATORS, Condition
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from tests.strategies import COLUMNS

FEED = Feed("f", Crs.PLANAR, TimeUnit.MS, columns=COLUMNS)
INTS = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]))
FLOATS = st.one_of(st.sampled_from([-1.5, 0.0, -0.0, 0.5, 2.0**53, 1e308]), st.floats(allow_nan=False, allow_infinity=False))
CONSTANTS = st.one_of(INTS, FLOATS, st.sampled_from([2**63, 2**64, -(2**70), 1e19, 10**400]))
VALUES = {
    "n": (INTS, pa.int64()),
    "v": (FLOATS, pa.float64()),
    "s": (st.text("ab\u00e9\U0001f600", max_size=2), pa.string()),
    "b": (st.booleans(), pa.bool_()),
}


@given(st.data(), st.sampled_from(OPERATORS), st.sampled_from(sorted(VALUES)))
def test_columns_compare_as_python_compares_values(data: st.DataObject, op: str, name: str) -> None:
    strategy, kind = VALUES[name]
    constants = CONSTANTS if name in "nv" else strategy
    constant = tuple(data.draw(st.lists(constants, max_size=6))) if op == "in" else data.draw(constants)
    values = data.draw(st.lists(st.one_of(st.none(), strategy), max_size=8))
    condition = Condition(name, op, constant)
    batch = Batch(pa.RecordBatch.from_arrays([pa.array(values, kind)], names=[name]), EntityDictionary())
    assert condition.mask(batch).tolist() == [condition.holds(value) for value in values]


def test_a_missing_column_satisfies_no_condition() -> None:
    batch = Batch(pa.RecordBatch.from_arrays([pa.array([1, 2])], names=["t"]), EntityDictionary())
    assert not Condition("v", "!=", 3).mask(batch).any()
    assert np.array_equal(Condition("t", ">", 1).mask(batch), [False, True])


def faults_of(where: Any) -> dict[str, str]:
    context = Context(FEED).at("where")
    context.where(where)
    return {fault.pointer: fault.message for fault in context.faults}


@pytest.mark.parametrize(
    ("where", "pointer"),
    [
        ("s = p", "/where"),
        ([["s", "="]], "/where/0"),
        ([["z", "=", 1]], "/where/0/0"),
        ([["s", "==", "p"]], "/where/0/1"),
        ([["s", "=", 1]], "/where/0/2"),
        ([["n", "=", "1"]], "/where/0/2"),
        ([["n", "=", True]], "/where/0/2"),
        ([["n", "=", None]], "/where/0/2"),
        ([["v", "<", float("nan")]], "/where/0/2"),
        ([["v", "<", float("inf")]], "/where/0/2"),
        ([["b", "=", 1]], "/where/0/2"),
        ([["b", "<", True]], "/where/0/1"),
        ([["s", "in", "p"]], "/where/0/2"),
        ([["s", "in", ["p", 2]]], "/where/0/2/1"),
        ([["s", "=", ["p"]]], "/where/0/2"),
        ([["v", "=", 1], ["n", "in", [1, None]]], "/where/1/2/1"),
    ],
)
def test_a_condition_without_meaning_is_refused(where: Any, pointer: str) -> None:
    assert list(faults_of(where)) == [pointer]


def test_good_conditions_are_kept_in_order() -> None:
    context = Context(FEED)
    where = context.where([["s", ">=", "p"], ["n", "<", 2.5], ["v", "in", []], ["b", "!=", False], ["entity", "=", "a"], ["t", ">", 5]])
    assert not context.faults
    assert [item.column for item in where.items] == ["s", "n", "v", "b", "entity", "t"]
    assert FEED.types["t"] is ColumnType.INT
