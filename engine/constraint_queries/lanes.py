"""Compares eight numbers at a time, with the results as bits: compilers do not vectorise loops that set bits.

Written as LLVM's vectors, which every processor has code for; each lane computes exactly what the same line of Python does. Reads eight numbers:
the caller makes sure that they are there and drops the bits that it did not ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

LANES = 8
_DOUBLES, _BITS = ir.VectorType(ir.DoubleType(), LANES), ir.IntType(LANES)
_INT64 = ir.IntType(64)


def primitive(generator: Callable[..., Any]) -> Callable[..., Any]:
    """What compiled functions may call, by the code that `generator` writes for it."""
    found: Callable[..., Any] = intrinsic(generator)
    return found


@primitive
def in_range(typing: Any, values: Any, row: Any, at: Any, low: Any, high: Any) -> Any:
    """Bit k: whether `low <= values[row, at + k] <= high`; `values` (rows, columns) in C's order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = _eight(context, builder, signature.args[0], arguments[0], arguments[1], arguments[2])
        least, most = (_spread(builder, one) for one in arguments[3:])
        return _word(builder, builder.and_(builder.fcmp_ordered(">=", numbers, least), builder.fcmp_ordered("<=", numbers, most)))

    return types.int64(values, types.int64, types.int64, types.float64, types.float64), generate


@primitive
def in_reach(typing: Any, place: Any, at: Any, x: Any, y: Any, z: Any, reach: Any, near: Any, apart: Any) -> Any:
    """Bit k: whether the squared chord from (x, y, z) to `place[:, at + k]` is at most `reach`; and whether at most `near` and more than `apart`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = [_spread(builder, one) for one in arguments[2:]]
        squares = []
        for row in range(3):
            away = builder.fsub(_eight(context, builder, signature.args[0], arguments[0], _INT64(row), arguments[1]), own[row])
            squares.append(builder.fmul(away, away))
        chord = builder.fadd(builder.fadd(squares[0], squares[1]), squares[2])
        reached = builder.fcmp_ordered("<=", chord, own[3])
        sure = builder.and_(builder.fcmp_ordered("<=", chord, own[4]), builder.fcmp_ordered(">", chord, own[5]))
        return context.make_tuple(builder, signature.return_type, [_word(builder, reached), _word(builder, sure)])

    pair: Any = types.UniTuple
    return pair(types.int64, 2)(place, types.int64, *[types.float64] * 6), generate


def _eight(context: Any, builder: Any, kind: Any, array: Any, row: Any, at: Any) -> Any:
    """The numbers in `row` from `at` on."""
    whole = context.make_array(kind)(context, builder, array)
    columns = builder.extract_value(whole.shape, 1)
    first = builder.gep(whole.data, [builder.add(builder.mul(row, columns), at)])
    return builder.load(builder.bitcast(first, _DOUBLES.as_pointer()), align=8)


def _spread(builder: Any, number: Any) -> Any:
    single = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(single, ir.Constant(_DOUBLES, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _word(builder: Any, answers: Any) -> Any:
    return builder.zext(builder.bitcast(answers, _BITS), _INT64)
