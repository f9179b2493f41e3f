"""Which rows are events, and why others are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.events import HEARTBEAT, Reason, Stamper, check_rows, row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from tests.strategies import COLUMNS

GLOBE = Feed("globe", Crs.GEOGRAPHIC, TimeUnit.MS, columns=COLUMNS)
PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, columns=COLUMNS)


def one(feed: Feed, **values: Any) -> tuple[list[dict[str, Any]], list[Reason]]:
    """(good rows, reasons) of one row with entity, t and `values`."""
    row = {"entity": "a", "t": 1, **values}
    good, dead = check_rows(pa.table({name: [value] for name, value in row.items()}), feed)
    return good.to_pylist(), [letter.reason for letter in dead]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"entity": None}, Reason.MISSING_ENTITY),
        ({"entity": ""}, Reason.MISSING_ENTITY),
        ({"entity": 1.5}, Reason.WRONG_TYPE),
        ({"entity": True}, Reason.WRONG_TYPE),
        ({"t": None}, Reason.MISSING_TIME),
        ({"t": "1"}, Reason.WRONG_TYPE),
        ({"t": 1.5}, Reason.WRONG_TYPE),
        ({"t": True}, Reason.WRONG_TYPE),
        ({"t": 2**61}, Reason.OUT_OF_RANGE_TIME),
        ({"t": -(2**63)}, Reason.OUT_OF_RANGE_TIME),
        ({"t_end": 0}, Reason.ENDS_BEFORE_START),
        ({"t_end": 2**62}, Reason.OUT_OF_RANGE_TIME),
        ({"x": 1.0}, Reason.HALF_POSITION),
        ({"y": 1.0, "x": None}, Reason.HALF_POSITION),
        ({"x": float("nan"), "y": 1.0}, Reason.NOT_FINITE),
        ({"x": 1.0, "y": float("-inf")}, Reason.NOT_FINITE),
        ({"x": 180.5, "y": 1.0}, Reason.OUT_OF_RANGE),
        ({"x": 1.0, "y": -90.001}, Reason.OUT_OF_RANGE),
        ({"x": "1", "y": 1.0}, Reason.WRONG_TYPE),
        ({"n": 2.5}, Reason.WRONG_TYPE),
        ({"n": "2"}, Reason.WRONG_TYPE),
        ({"v": "2"}, Reason.WRONG_TYPE),
        ({"v": True}, Reason.WRONG_TYPE),
        ({"b": 1}, Reason.WRONG_TYPE),
        ({"s": 1.5}, Reason.WRONG_TYPE),
        ({"event": HEARTBEAT}, Reason.RESERVED_EVENT),
    ],
)
def test_a_refused_row_has_its_reason(values: dict[str, Any], reason: Reason) -> None:
    assert one(GLOBE, **values) == ([], [reason])


@pytest.mark.parametrize(
    ("values", "name", "value"),
    [
        ({"entity": 7}, "entity", "7"),
        ({"t": 3.0}, "t", 3),
        ({"t": np.datetime64("1970-01-01T00:00:01.5", "ns")}, "t", 1500),
        ({"t": np.datetime64("1969-12-31T23:59:59.9995", "us")}, "t", -1),
        ({"t_end": 1}, "t_end", 1),
        ({"x": 180, "y": -90}, "x", 180.0),
        ({"n": 4.0}, "n", 4),
        ({"n": float("nan")}, "n", None),
        ({"v": 3}, "v", 3.0),
        ({"v": float("nan")}, "v", None),
        ({"v": float("inf")}, "v", float("inf")),
        ({"event": None}, "event", "position"),
        ({"event": ""}, "event", "position"),
        ({}, "event", "position"),
        ({"colour": "red"}, "s", None),
    ],
)
def test_a_row_is_converted_to_the_types_of_the_feed(values: dict[str, Any], name: str, value: Any) -> None:
    (row,), reasons = one(GLOBE, **values)
    assert (row[name], reasons) == (value, [])
    assert list(row) == row_schema(GLOBE).names


def test_timestamps_are_refused_as_ticks_and_planes_have_wide_coordinates() -> None:
    assert one(PLANE, t=np.datetime64("2020-01-01", "ms"))[1] == [Reason.WRONG_TYPE]
    assert one(PLANE, x=1e6, y=-1e6)[1] == []


def test_valid_rows_stay_in_order_and_dead_letters_keep_the_original_values() -> None:
    table = pa.table(
        {"entity": ["a", None, "b", "c"], "t": [4, 3, 2, 1], "x": [1.0, 2, float("nan"), None], "y": [1.0, 2, 3, None], "more": ["i", "j", "k", "l"]}
    )
    good, dead = check_rows(table, PLANE)
    assert good.column("t").to_pylist() == [4, 1]
    assert [letter.reason for letter in dead] == [Reason.MISSING_ENTITY, Reason.NOT_FINITE]
    assert dead[1].row == {"entity": "b", "t": 2, "x": "nan", "y": 3.0, "more": "k"}


def test_a_column_of_the_wrong_type_refuses_the_rows_that_have_a_value_in_it() -> None:
    good, dead = check_rows(pa.table({"entity": ["a", "b"], "t": [1, 2], "v": ["1", None]}), PLANE)
    assert (good.num_rows, dead[0].detail) == (1, "column 'v' must be of type float")


def test_an_empty_batch_has_the_columns_of_the_feed() -> None:
    good, dead = check_rows(pa.table({"entity": pa.array([], pa.string()), "t": pa.array([], pa.int64())}), PLANE)
    assert (good.schema, dead) == (row_schema(PLANE), [])


@given(st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=6))
def test_rows_are_stamped_with_seq_and_clock(batches: list[list[int]]) -> None:
    stamper, stamped = Stamper(), []
    for times in batches:
        stamped += stamper.stamp(pa.table({"t": pa.array(times, pa.int64())})).to_pylist()
    times = [t for batch in batches for t in batch]
    expected = [{"t": t, "seq": i, "clock": max(times[:i], default=None)} for i, t in enumerate(times)]
    assert stamped == expected
    assert (stamper.next_seq, stamper.max_t) == (len(times), max(times, default=None))


def test_bytes_that_are_not_utf8_have_the_wrong_type() -> None:
    entity = pa.array([b"a", b"\xff", None]).cast(pa.binary()).view(pa.string())
    good, dead = check_rows(pa.table({"entity": entity, "t": [1, 2, 3]}), PLANE)
    assert (good.column("entity").to_pylist(), [letter.reason for letter in dead]) == (["a"], [Reason.WRONG_TYPE, Reason.MISSING_ENTITY])
