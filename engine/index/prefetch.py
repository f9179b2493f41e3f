"""Memory that a kernel will need soon: asked for while it works on something else, so that it does not wait for it later."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

_READ, _WRITE = 0, 1
_SECOND_CACHE, _ALL_CACHES = 2, 3
_LINE = 64
"""Bytes that come together."""


def _fetching(use: int, caches: int) -> Any:
    """What kernels call with a contiguous array of one dimension and a place in it: never fails, changes nothing."""

    def typed(_context: Any, array: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            number = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
            builder.call(fetch, [pointer, number(use), number(caches), number(1)])  # The last: data, not code.
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return intrinsic(typed)


prefetch: Any = _fetching(_READ, _ALL_CACHES)
"""`prefetch(array, place)`: the cache line of an entry that will be read."""
prefetch_to_write: Any = _fetching(_WRITE, _ALL_CACHES)
"""`prefetch_to_write(array, place)`: the cache line of an entry that will be written."""
_prefetch_later: Any = _fetching(_READ, _SECOND_CACHE)


@njit(cache=True, nogil=True)
def prefetch_span(array, first, stop):  # type: ignore[no-untyped-def]
    """All lines of the entries `first` to `stop`, as far as there are entries: to be read later, in the second cache until then."""
    for place in range(first, min(stop, len(array)), _LINE // array.itemsize):
        _prefetch_later(array, place)
