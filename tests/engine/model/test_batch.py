"""Columns of a batch as arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch, EntityDictionary

LARGE = st.sampled_from([2**53, 2**63 - 1, -(2**63), 2**63 - 1024]).flatmap(
    lambda near: st.integers(max(near - 3, -(2**63)), min(near + 3, 2**63 - 1))
)
WHOLE = st.one_of(st.none(), st.integers(-3, 3), LARGE, LARGE.map(lambda value: max(-value, -(2**63)) if value > -(2**63) else value))
BOUNDS = st.one_of(WHOLE.filter(lambda value: value is not None).map(float), st.sampled_from([0.5, 2.0**63, -(2.0**63), 2.0**53 + 2]))


@given(st.lists(WHOLE, max_size=6), BOUNDS)
def test_whole_numbers_lie_to_a_double_as_they_do_exactly(values: list[int | None], bound: float) -> None:
    """Python compares a whole number with a double by their exact values."""
    batch = Batch(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["n"]), EntityDictionary())
    found: list[Any] = [number >= bound if number == number else None for number in batch.numbers("n").tolist()]
    assert found == [None if value is None else value >= bound for value in values]
