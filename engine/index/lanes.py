"""Four comparisons of doubles in one instruction, for kernels that ask where a point lies against many boxes."""

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
"""`box_holds(boxes, k, x, y)` in a kernel: whether the closed box k holds the point; `boxes` (n, 4), contiguous, are (west, south, -east, -north)."""
