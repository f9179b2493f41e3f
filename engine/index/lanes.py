"""Four comparisons of doubles in one instruction, for kernels that compare a point with many
boxes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic


def _box_holds(_context: Any, boxes: Any, box: Any, x: Any, y: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = context.make_array(boxes)(context, builder, arguments[0]).data
        number, four, px, py = ir.IntType(32), ir.VectorType(ir.DoubleType(), 4), arguments[2], arguments[3]
        place = builder.gep(data, [builder.shl(arguments[1], arguments[1].type(2))])
        ends = builder.load(builder.bitcast(place, four.as_pointer()))
        ends.align = 8
        point = ir.Constant(four, ir.Undefined)
        for lane, value in enumerate((px, py, builder.fneg(px), builder.fneg(py))):
            point = builder.insert_element(point, value, number(lane))
        held = builder.bitcast(builder.fcmp_ordered("<=", ends, point), ir.IntType(4))
        return builder.icmp_unsigned("==", held, ir.IntType(4)(-1))

    return types.boolean(boxes, types.int64, types.float64, types.float64), generate


box_holds: Any = intrinsic(_box_holds)
"""`box_holds(boxes, k, x, y)` in a kernel: whether the closed box k holds the point; `boxes` (n,
4), contiguous, are (west, south, -east, -north)."""


def _lanes_of(write: Any) -> Any:
    """A function that kernels call with (array, offset, value); `write` compares eight entries from
    the offset on and gives one bit each."""

    def typed(_context: Any, array: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            lanes = ir.VectorType(data.type.pointee, LANES)
            entries = builder.load(builder.bitcast(builder.gep(data, [arguments[1]]), lanes.as_pointer()))
            entries.align = array.dtype.bitwidth // 8
            same = builder.insert_element(ir.Constant(lanes, ir.Undefined), arguments[2], ir.IntType(32)(0))
            same = builder.shuffle_vector(same, ir.Constant(lanes, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
            held = builder.bitcast(write(builder, entries, same), ir.IntType(LANES))
            return builder.zext(held, ir.IntType(64))

        return types.int64(array, types.int64, array.dtype), generate

    return intrinsic(typed)


LANES = 8
"""Entries that are compared at once; arrays have room for this many more at their ends."""


def _at_most(builder: Any, entries: Any, values: Any) -> Any:
    return builder.fcmp_ordered("<=", entries, values)


def _below(builder: Any, entries: Any, values: Any) -> Any:
    return builder.icmp_signed("<", entries, values)


at_most: Any = _lanes_of(_at_most)
"""`at_most(array, place, value)`: bit k is 1 iff `array[place + k] <= value`; doubles."""
below: Any = _lanes_of(_below)
"""`below(array, place, value)`: bit k is 1 iff `array[place + k] < value`; integers."""
