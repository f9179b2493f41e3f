"""Bits of words in kernels."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _lowest(_context: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), generate


def _how_many(_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


lowest: Any = intrinsic(_lowest)
"""`lowest(word)` in a kernel: the number of the lowest bit of a word of 64 that is set; 64 if there is none."""
how_many: Any = intrinsic(_how_many)
"""`how_many(word)` in a kernel: how many bits of a word of 64 are set."""
