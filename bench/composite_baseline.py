"""RCEDA's method, compiled: each primitive event evaluates every query that has it at any leaf.

As good as this method allows: occurrence bitmaps are words of 64 slots of time, each operator is a
few operations on whole words, and only a tree whose root is completed in the slot of now is
searched for exact times. What it lacks are trigger leaves and minimum conditions. For trees without
negation.

References: [RFID] 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.complex_events import pattern as tree
from engine.complex_events.history import SHIFT, History, append, slot_with_room
from engine.complex_events.pattern import Pattern, nodes
from engine.complex_events.plan import CompositeIndex
from engine.complex_events.query_search import DETECTED, EVENT, GIVEN_UP, SEARCHED, Detections, InstanceEvents, SearchBuffers, search_query
from engine.complex_events.requirements import longest
from engine.complex_events.search import BOTH, EITHER, FAR, KIND, LAST_TRIGGER, NONE, PRIMITIVE, SEQUENCE, TRIGGER, Int, Ints
from engine.index.compiled import kernel

EVALUATED_LEAVES = 0
Words = npt.NDArray[np.uint64]
MOST_SLOTS = 62
"""The greatest number of slots of a span: together with its first and last
slot it fits into one word."""
STEP_OP, STEP_FROM, STEP_MORE = range(3)
"""Columns of steps: operator; the row of a primitive, or the least number of slots before;
the number of further slots."""


def width_of(span: int) -> int:
    """The width for a span to fit into one word; slots are 2 ** width long."""
    width = 0
    while span >> width > MOST_SLOTS:
        width += 1
    return width


def slots(span: int | None, width: int) -> int:
    """The greatest number of slots by which an event that comes at most
    `span` later may be later."""
    return 64 if span is None else min(-(-span >> width), 64)


def steps(pattern: Pattern, rows: Mapping[str, int], spans: Mapping[Pattern, int], width: int) -> Iterator[tuple[int, int, int]]:
    """The pattern as steps, operands first; `rows`: those of its primitives; `spans`: the
    greatest e - s of its nodes."""
    if isinstance(pattern, tree.Primitive):
        yield PRIMITIVE, rows[pattern.name], 0
        return
    assert isinstance(pattern, tree.Or | tree.And | tree.Sequence)
    yield from steps(pattern.first, rows, spans, width)
    yield from steps(pattern.second, rows, spans, width)
    match pattern:
        case tree.Or():
            yield EITHER, 0, 0
        case tree.And(_, _, span):
            yield BOTH, 0, slots(span, width)
        case tree.Sequence(_, second, low, high, _):
            least = min(max(low, 1) >> width, 64)
            yield SEQUENCE, least, max(0, slots(None if high is None else high + spans[second], width) - least)


@kernel()
def note(bits: Ints, row: Int, slot: Int) -> None:
    """Records an event of the row's class in `slot`, which is not before the row's last one."""
    apart = slot - bits[row, 1]
    if apart:
        word = np.uint64(bits[row, 0]) << np.uint64(apart) if 0 < apart < 64 else np.uint64(0)
        bits[row, 0], bits[row, 1] = np.int64(word), slot
    bits[row, 0] |= 1


@kernel()
def _before(word: np.uint64, least: Int, more: Int) -> np.uint64:
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
def may_end(program: Ints, begin: Int, end: Int, bits: Ints, now: Int, stack: Words) -> bool:
    """Whether the pattern of the steps [begin, end) may be completed in slot `now`."""
    top = 0
    for i in range(begin, end):
        op, least, more = program[i, STEP_OP], program[i, STEP_FROM], program[i, STEP_MORE]
        if op == PRIMITIVE:
            apart = now - bits[least, 1]
            stack[top] = np.uint64(bits[least, 0]) << np.uint64(apart) if apart < 64 else np.uint64(0)
            top += 1
            continue
        first, second = stack[top - 2], stack[top - 1]
        top -= 1
        if op == EITHER:
            stack[top - 1] = first | second
        elif op == SEQUENCE:
            stack[top - 1] = second & _before(first, least, more)
        else:
            stack[top - 1] = (second & _before(first, 0, more)) | (first & _before(second, 0, more))
    return bool(stack[0] & np.uint64(1))


class EveryLeaf(NamedTuple):
    """Queries of each class, CSR, and the steps of each query; `bits` of each class
    in slots 2 ** `width` long."""

    query_ends: Ints
    queries: Ints
    step_ends: Ints
    steps: Ints
    bits: Ints
    width: Ints
    stack: Words


def every_leaf(index: CompositeIndex) -> EveryLeaf:
    """For queries that all have the same `within`."""
    tables, program = index.programs[1].tables, index.programs[1]
    width = width_of(int(tables.within.max(initial=0)))
    of_class: list[list[int]] = [[] for _ in index.classes]
    ends, rows = [0], []
    for number, position in enumerate(program.positions):
        leaves = tables.leaves[tables.leaf_ends[number] : tables.leaf_ends[number + 1]]
        own = {program.names[leaf]: int(tables.nodes[leaf, KIND]) for leaf in leaves.tolist()}
        for kind in sorted(set(own.values())):
            of_class[kind].append(number)
        specification = index.queries[position].specification
        spans = {node: min(longest(node), specification.within) for node in nodes(specification.pattern)}
        rows += list(steps(specification.pattern, own, spans, width))
        ends.append(len(rows))
    query_ends = np.append(0, np.cumsum([len(one) for one in of_class]))
    bits = np.zeros((len(index.classes), 2), np.int64)
    bits[:, 1] = NONE
    return EveryLeaf(
        query_ends.astype(np.int64), np.array([one for some in of_class for one in some], np.int64), np.array(ends, np.int64),
        np.array(rows, np.int64), bits, np.array([width], np.int64), np.zeros(257, np.uint64),
    )  # fmt: skip


@kernel()
def advance_every_leaf(
    tables, history: History, events: InstanceEvents, work: SearchBuffers, leaves: EveryLeaf, out: Detections, counters: Ints
) -> int:  # type: ignore[no-untyped-def]
    """Takes all events; the number of those that were evaluated. `history`
    and `out` must have room."""
    width = leaves.width[0]
    for at in range(len(events.t)):
        t, seq = events.t[at], events.seq[at]
        for k in range(events.ends[at], events.ends[at + 1]):
            kind = tables.kind[events.instances[k]]
            if k > events.ends[at] and kind == tables.kind[events.instances[k - 1]]:
                continue
            slot = slot_with_room(history, kind << SHIFT, t - tables.horizon[kind])
            if slot < 0:
                return -1
            append(history, slot, t, seq, np.int64(events.entity[at]), events.x[at], events.y[at])
            note(leaves.bits, kind, t >> width)
        work.cursor[EVENT] += 1
        for k in range(events.ends[at], events.ends[at + 1]):
            kind = tables.kind[events.instances[k]]
            if k > events.ends[at] and kind == tables.kind[events.instances[k - 1]]:
                continue
            for i in range(leaves.query_ends[kind], leaves.query_ends[kind + 1]):
                query = leaves.queries[i]
                if work.seen[query] == work.cursor[EVENT]:
                    continue
                work.seen[query] = work.cursor[EVENT]
                counters[EVALUATED_LEAVES] += 1
                if may_end(leaves.steps, leaves.step_ends[query], leaves.step_ends[query + 1], leaves.bits, t >> width, leaves.stack):
                    work.env[TRIGGER], work.env[LAST_TRIGGER] = 0, FAR
                    search_query(tables, history, work, out, query, np.int64(0), t, seq, counters)
                    if work.cursor[GIVEN_UP] >= 0 or out.size[0] == len(out.rows):
                        return -2
    return int(counters[DETECTED] + counters[SEARCHED])
