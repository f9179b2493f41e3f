"""Memory that a kernel will need soon: asked for while it works on something else, so that it
does not wait for it later."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_READ, _WRITE = 0, 1
_ALL_CACHES = 3


def _fetching(use: int) -> Any:
    """A function that kernels call with a contiguous one-dimensional array and an index:
    never fails, changes nothing."""

    def typed(_context: Any, array: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            number = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
            # The last: data, not code.
            builder.call(fetch, [pointer, number(use), number(_ALL_CACHES), number(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return intrinsic(typed)


prefetch: Any = _fetching(_READ)
"""`prefetch(array, place)`: the cache line of an entry that will be read."""
prefetch_to_write: Any = _fetching(_WRITE)
"""`prefetch_to_write(array, place)`: the cache line of an entry that will be written."""
