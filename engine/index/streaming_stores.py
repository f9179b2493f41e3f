"""Stores that bypass the caches, for memory that a kernel writes now and reads much later."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic


def _write(_context: Any, array: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        entry = context.cast(builder, arguments[2], value, array.dtype)
        store = builder.store(entry, builder.gep(data, [arguments[1]]))
        store.align = context.get_abi_sizeof(entry.type)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate


write_past_caches: Any = intrinsic(_write)
"""`write_past_caches(array, place, value)`: an entry of a contiguous array of one dimension; fast
where its neighbours are written soon after.

Threads may see it out of order until one of them takes or gives a lock.
"""
