"""Occurrence bitmaps: the slots of time, among the last 64, in which a primitive, a node or the whole pattern may have been completed.

Each (class, width of slots) that a query reads has a row: a word whose bit k is the slot k before its last one. Words are aligned by a shift when
they are read; each operator is a few operations on whole words ([RFID] 3.2). Bitmaps have no false negatives: times are rounded to slots, negations
and entities are ignored, and of a node only the ends are known. So a pattern whose bit is not set is not completed now, and a pattern whose bit is
set is searched exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from engine.complex_events import pattern as tree
from engine.complex_events.pattern import Pattern
from engine.complex_events.search import ABSENCE, BOTH, EITHER, PRIMITIVE, SEQUENCE, Ints, Whole, kernel
from engine.index.bits import highest_bit, lowest_bit

Words = npt.NDArray[np.uint64]
MOST_SLOTS = 62
"""The greatest number of slots of a span: together with its first and last slot it fits into one word."""
STEP_OP, STEP_FROM, STEP_MORE = STEP_COLUMNS = range(3)
"""Columns of steps: operator; the row of a primitive, or the least number of slots before; the number of further slots."""


CHECK_BEGIN, CHECK_END, CHECK_ORDERED, CHECK_LOW, CHECK_HIGH, CHECK_LONGEST, CHECK_WIDTH, _ = CHECK_COLUMNS = range(8)
"""Columns of checks, each for another part of the occurrence beside the part completed so far: its steps; whether it ends before that starts, LOW to
HIGH earlier (else both are within HIGH together); its greatest e - s; the width of its slots."""


def width_of(span: int) -> int:
    """The width for a span to fit into one word; slots are 2 ** width long. Only every second width is used, so that a class needs fewer rows.

    >>> width_of(62), width_of(63), width_of(1000)
    (0, 2, 4)
    """
    width = 0
    while span >> width > MOST_SLOTS:
        width += 2
    return width


def slots(span: int | None, width: int) -> int:
    """The greatest number of slots by which an event that comes at most `span` later may be later.

    >>> slots(0, 2), slots(1, 2), slots(4, 2), slots(None, 2)
    (0, 1, 1, 64)
    """
    return 64 if span is None else min(-(-span >> width), 64)


def steps(pattern: Pattern, rows: Mapping[str, int], longest: Mapping[Pattern, int], width: int) -> Iterator[tuple[int, int, int]]:
    """The pattern as steps, operands first; `rows`: those of its primitives; `longest`: the greatest e - s of its nodes."""
    match pattern:
        case tree.Primitive(name):
            yield PRIMITIVE, rows[name], 0
            return
        case tree.Before(_, second, _):
            yield from steps(second, rows, longest, width)
            yield ABSENCE, 0, 0
            return
        case tree.Absence(first, _, span) | tree.Around(first, _, span):
            yield from steps(first, rows, longest, width)
            least = min(span >> width, 64)
            yield ABSENCE, least, slots(span, width) - least
            return
        case tree.Either(first, second) | tree.Both(first, second, _) | tree.Sequence(first, second, _, _, _):
            yield from steps(first, rows, longest, width)
            yield from steps(second, rows, longest, width)
    match pattern:
        case tree.Either():
            yield EITHER, 0, 0
        case tree.Both(_, _, length):
            yield BOTH, 0, slots(length, width)
        case tree.Sequence(_, second, low, high, _):
            least = min(max(low, 1) >> width, 64)
            yield SEQUENCE, least, max(0, slots(None if high is None else high + longest[second], width) - least)


def places(pattern: Pattern, begin: int) -> dict[Pattern, tuple[int, int]]:
    """For each node with steps the first of them and the one after the last; equal nodes have equal steps."""
    found: dict[Pattern, tuple[int, int]] = {}

    def enter(node: Pattern, at: int) -> int:
        end = at
        for part in _positive_parts(node):
            end = enter(part, end)
        found[node] = (at, end + 1)
        return end + 1

    enter(pattern, begin)
    return found


def _positive_parts(node: Pattern) -> tuple[Pattern, ...]:
    """The parts that are not negated."""
    match node:
        case tree.Absence(first, _, _) | tree.Around(first, _, _) | tree.Before(_, first, _):
            return (first,)
        case tree.Sequence(first, second, _, _, _):
            return first, second
    return node.parts


@kernel()
def note(bits: Ints, row: Whole, slot: Whole) -> None:
    """Records an event of the row's class in `slot`, which is not before the row's last one."""
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
def beside(checks: Ints, begin: Whole, end: Whole, program: Ints, bits: Ints, first: Whole, last: Whole, within: Whole, stack: Words) -> Whole:
    """Whether the parts of the checks [begin, end), from a trigger up, may all have occurred. Returns the number of steps, negative if they have not.

    The trigger's event is in [first, last], one slot of the narrowest width: a refutation holds for all events of the slot. Going up, `least` and
    `most` bound how much earlier than the event the part completed so far may have started: the window for the next part ([RFID] 3.2).
    """
    done, least, most = np.int64(0), np.int64(0), np.int64(0)
    for i in range(begin, end):
        high, width = checks[i, CHECK_HIGH], checks[i, CHECK_WIDTH]
        done += checks[i, CHECK_END] - checks[i, CHECK_BEGIN]
        if checks[i, CHECK_ORDERED]:
            from_, until = least + checks[i, CHECK_LOW], min(most + high, within)
        else:
            from_, until = np.int64(0), min(high, within)
        if from_ > until or least > until:
            return -done
        slot = last >> width
        nearest, farthest = max(0, slot - ((last - from_) >> width)), min(63, slot - ((first - until) >> width))
        if nearest > farthest:
            return -done
        word = ends(program, checks[i, CHECK_BEGIN], checks[i, CHECK_END], bits, slot, stack)
        word = word >> np.uint64(nearest) << np.uint64(nearest) & ~np.uint64(0) >> np.uint64(63 - farthest)
        if not word:
            return -done
        ended_least = first - (((slot - np.int64(lowest_bit(word)) + 1) << width) - 1)
        ended_most = last - ((slot - np.int64(highest_bit(word))) << width)
        started = min(ended_most, until) + checks[i, CHECK_LONGEST]
        if checks[i, CHECK_ORDERED]:
            least, most = max(ended_least, from_), min(started, within)
        else:
            least, most = max(ended_least, least), min(max(started, most), until)
    return done
