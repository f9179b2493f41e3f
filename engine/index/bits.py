"""Bits of a word of 64, signed or not, in kernels: one instruction each."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic


def _of_word(write: Any) -> Any:
    """A function that kernels call with a word; `write` builds the code. The
    result has the word's type."""

    def typed(_context: Any, word: Any) -> Any:
        if word not in (types.int64, types.uint64):
            raise TypingError(f"a word has 64 bits; this is {word}")
        return word(word), lambda context, builder, _signature, arguments: write(context, builder, arguments[0])

    return intrinsic(typed)


def _lowest(context: Any, builder: Any, word: Any) -> Any:
    return builder.cttz(word, context.get_constant(types.boolean, False))


def _highest(context: Any, builder: Any, word: Any) -> Any:
    return builder.sub(word.type(63), builder.ctlz(word, context.get_constant(types.boolean, False)))


def _how_many(_context: Any, builder: Any, word: Any) -> Any:
    return builder.ctpop(word)


lowest_bit: Any = _of_word(_lowest)
"""`lowest_bit(word)`: the number of the lowest bit that is 1; 64 when none is."""
highest_bit: Any = _of_word(_highest)
"""`highest_bit(word)`: the number of the highest bit that is 1; -1 when none is, in an unsigned
word what wraps around to that."""
how_many: Any = _of_word(_how_many)
"""`how_many(word)`: how many bits are 1."""
