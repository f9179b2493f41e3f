"""Columns of a batch as arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch, EntityDictionary

_NEAR = [end + step for end in (2**53, -(2**53), 2**60, -(2**62)) for step in range(-3, 4)]
WHOLE = st.sampled_from([*range(-3, 4), *_NEAR, 2**63 - 1, 2**63 - 513, 2**63 - 1024, -(2**63), -(2**63) + 1])
BOUNDS = st.one_of(WHOLE.map(float), st.just(0.5))


@given(st.lists(st.one_of(st.none(), WHOLE), max_size=6), BOUNDS)
def test_integers_are_compared_with_doubles_exactly(values: list[int | None], bound: float) -> None:
    """Python compares integers with doubles exactly."""
    batch = Batch(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["n"]), EntityDictionary())
    found: list[Any] = [number >= bound if number == number else None for number in batch.numbers("n").tolist()]
    assert found == [None if value is None else value >= bound for value in values]
