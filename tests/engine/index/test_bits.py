"""Bits of words compared with Python's numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import TypingError

from engine.index.bits import highest_bit, how_many, lowest_bit


@njit
def all_three(word):  # type: ignore[no-untyped-def]
    return lowest_bit(word), highest_bit(word), how_many(word)


@given(st.integers(0, 2**64 - 1))
@example(0)
@example(1 << 63)
@example(2**64 - 1)
def test_bits_of_signed_and_unsigned_words_are_found(number: int) -> None:
    lowest = (number & -number).bit_length() - 1 if number else 64
    expected = (lowest, number.bit_length() - 1, number.bit_count())
    unsigned: Any = np.uint64(number)
    assert tuple(int(one) for one in all_three(unsigned.astype(np.int64))) == expected
    assert tuple(int(np.uint64(one).astype(np.int64)) for one in all_three(unsigned)) == expected


def test_other_widths_are_refused() -> None:
    with pytest.raises(TypingError, match="64 bits"):
        all_three(np.int32(1))
