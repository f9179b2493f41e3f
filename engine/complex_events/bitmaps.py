"""Occurrence bitmaps: in which of the last 64 slots of time a primitive, a node, the whole pattern may have been completed.

Each (class, width of slots) that a query looks at has a row: a word whose bit k stands for the slot k before its last one. Words are aligned by a
shift when they are looked at; each operator is a few operations on whole words ([RFID] 3.2). What they give is never too little: times are known to
the slot, negations and entities are not looked at, a node is known by its ends alone. So a pattern whose bit is not set is not completed now, and one
whose bit is set is searched exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from engine.complex_events import pattern as tree
from engine.complex_events.pattern import Pattern
from engine.complex_events.search import ABSENCE, BOTH, EITHER, PRIMITIVE, SEQUENCE, Ints, Whole, kernel

Words = npt.NDArray[np.uint64]
MOST_SLOTS = 62
"""Slots that `within` may span: with those it begins and ends in, all lie in one word."""
STEP_OP, STEP_FROM, STEP_MORE = STEP_COLUMNS = range(3)
"""Columns of steps: operator; the row of a primitive, or how many slots before at least; how many more at most."""


def width_of(within: int) -> int:
    """Slots of queries with this `within` are 2 ** width long.

    >>> width_of(62), width_of(63), width_of(1000)
    (0, 1, 4)
    """
    width = 0
    while within >> width > MOST_SLOTS:
        width += 1
    return width


def steps(pattern: Pattern, rows: Mapping[str, int], longest: Mapping[Pattern, int], width: int) -> Iterator[tuple[int, int, int]]:
    """The pattern as steps, operands first; `rows` of its primitives, `longest` e - s of its nodes."""
    match pattern:
        case tree.Primitive(name):
            yield PRIMITIVE, rows[name], 0
            return
        case tree.Absence(first, _, span):
            yield from steps(first, rows, longest, width)
            yield ABSENCE, min(span >> width, 64), 1
            return
        case tree.Either(first, second) | tree.Both(first, second, _) | tree.Sequence(first, second, _, _, _):
            yield from steps(first, rows, longest, width)
            yield from steps(second, rows, longest, width)
    match pattern:
        case tree.Either():
            yield EITHER, 0, 0
        case tree.Both(_, _, length):
            yield BOTH, 0, 64 if length is None else min((length >> width) + 1, 64)
        case tree.Sequence(_, second, low, high, _):
            first_slot = min(low >> width, 64)
            last_slot = 64 if high is None else min(((high + longest[second]) >> width) + 1, 64)
            yield SEQUENCE, first_slot, max(0, last_slot - first_slot)


def places(pattern: Pattern, begin: int) -> dict[Pattern, tuple[int, int]]:
    """Of each node that has steps the first of them and the one after the last; equal nodes have equal steps."""
    found: dict[Pattern, tuple[int, int]] = {}

    def enter(node: Pattern, at: int) -> int:
        end = at
        for part in node.parts[:1] if isinstance(node, tree.Absence) else (node.parts if len(node.parts) < 3 else (node.parts[0], node.parts[2])):
            end = enter(part, end)
        found[node] = (at, end + 1)
        return end + 1

    enter(pattern, begin)
    return found


@kernel()
def note(bits: Ints, row: Whole, slot: Whole) -> None:
    """An event of the row's class in `slot`, which is not before the row's last."""
    apart = slot - bits[row, 1]
    if apart:
        word = np.uint64(bits[row, 0]) << np.uint64(apart) if 0 < apart < 64 else np.uint64(0)
        bits[row, 0], bits[row, 1] = np.int64(word), slot
    bits[row, 0] |= 1


@kernel()
def _before(word: np.uint64, least: Whole, more: Whole) -> np.uint64:
    """Slots with one of the word's `least` to `least + more` slots before them."""
    if least > 63:
        return np.uint64(0)
    found = word >> np.uint64(least)
    reached = 0
    while reached < more and found:
        step = min(reached + 1, more - reached)
        if step > 63:
            break
        found |= found >> np.uint64(step)
        reached += step
    return found


@kernel()
def ends(program: Ints, begin: Whole, end: Whole, bits: Ints, now: Whole, stack: Words) -> np.uint64:
    """The slots before `now` in which the pattern of the steps [begin, end) may be completed."""
    top = 0
    for i in range(begin, end):
        op, least, more = program[i, STEP_OP], program[i, STEP_FROM], program[i, STEP_MORE]
        if op == PRIMITIVE:
            apart = now - bits[least, 1]
            stack[top] = np.uint64(bits[least, 0]) << np.uint64(apart) if apart < 64 else np.uint64(0)
            top += 1
        elif op == ABSENCE:
            stack[top - 1] = _before(stack[top - 1], least, more)
        else:
            first, second = stack[top - 2], stack[top - 1]
            top -= 1
            if op == EITHER:
                stack[top - 1] = first | second
            elif op == SEQUENCE:
                stack[top - 1] = second & _before(first, least, more)
            else:
                stack[top - 1] = (second & _before(first, 0, more)) | (first & _before(second, 0, more))
    return np.uint64(stack[0])


@kernel()
def may_end(program: Ints, begin: Whole, end: Whole, bits: Ints, now: Whole, stack: Words) -> bool:
    """Whether the pattern of the steps [begin, end) may be completed in slot `now`."""
    return bool(ends(program, begin, end, bits, now, stack) & np.uint64(1))


@kernel()
def beside(checks: Ints, begin: Whole, end: Whole, program: Ints, bits: Ints, now: Whole, stack: Words) -> Whole:
    """Whether each part of the checks [begin, end) may have been completed as much before slot `now` as it asks: the steps done, negative if not."""
    done = np.int64(0)
    for i in range(begin, end):
        done += checks[i, 1] - checks[i, 0]
        word = ends(program, checks[i, 0], checks[i, 1], bits, now, stack)
        if not _before(word, checks[i, 2], checks[i, 3]) & np.uint64(1):
            return -done
    return done
