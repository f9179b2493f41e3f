"""Memory that a kernel will need soon: asked for while it works on something else, so that it does not wait for it later."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic


def _prefetch(_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(fetch, [pointer, number(0), number(3), number(1)])  # To be read, kept in all caches, data.
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Any = intrinsic(_prefetch)
"""`prefetch(array, place)` in a kernel: the cache line of an entry of a contiguous array of one dimension. Never fails, changes nothing."""
