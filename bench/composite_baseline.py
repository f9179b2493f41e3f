"""RCEDA's way, compiled: each primitive event evaluates every query that has it at any leaf.

As good as that idea allows: the evaluation is that of the engine, words of 64 slots with the operators on whole words, and only a tree whose root is
completed in the slot of now is searched for exact times. What it lacks are trigger leaves and minimum conditions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from engine.complex_events.bitmaps import Words, may_end, note, steps, width_of
from engine.complex_events.detection import DETECTED, GIVEN_UP, SEARCHED, Events, Found, Scratch, search_query
from engine.complex_events.history import SHIFT, History, find, slot_with_room
from engine.complex_events.pattern import nodes
from engine.complex_events.plan import CompositeIndex, longest
from engine.complex_events.search import END, FAR, INSTANCE, LAST_TRIGGER, NONE, SEQ, TRIGGER, Ints, T

EVALUATED = 0


class EveryLeaf(NamedTuple):
    """Queries of each instance, CSR, and the steps of each query; `bits` of each instance in slots 2 ** `width` long."""

    query_ends: Ints
    queries: Ints
    step_ends: Ints
    steps: Ints
    bits: Ints
    width: Ints
    stack: Words


def every_leaf(index: CompositeIndex) -> EveryLeaf:
    """For queries that all have the same `within`."""
    tables, program = index.relational.tables, index.relational
    width = width_of(int(tables.within.max(initial=0)))
    of_instance: list[list[int]] = [[] for _ in program.instances]
    ends, rows = [0], []
    for number, position in enumerate(program.positions):
        leaves = tables.leaves[tables.leaf_ends[number] : tables.leaf_ends[number + 1]]
        own = {program.names[leaf]: int(tables.nodes[leaf, INSTANCE]) for leaf in leaves.tolist()}
        for instance in sorted(set(own.values())):
            of_instance[instance].append(number)
        specification = index.queries[position].specification
        spans = {node: min(longest(node), specification.within) for node in nodes(specification.pattern)}
        rows += list(steps(specification.pattern, own, spans, width))
        ends.append(len(rows))
    query_ends = np.append(0, np.cumsum([len(one) for one in of_instance]))
    bits = np.zeros((len(program.instances), 2), np.int64)
    bits[:, 1] = NONE
    return EveryLeaf(
        query_ends.astype(np.int64), np.array([one for some in of_instance for one in some], np.int64), np.array(ends, np.int64),
        np.array(rows, np.int64), bits, np.array([width], np.int64), np.zeros(257, np.uint64),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def advance_every_leaf(tables, history: History, events: Events, work: Scratch, leaves: EveryLeaf, out: Found, counters: Ints) -> int:  # type: ignore[no-untyped-def]
    """Takes all events; the number of those that were evaluated. `history` and `out` must have room."""
    width = leaves.width[0]
    for at in range(len(events.t)):
        t, seq = events.t[at], events.seq[at]
        for k in range(events.ends[at], events.ends[at + 1]):
            instance = events.instances[k]
            if slot_with_room(history, instance << SHIFT, t - tables.horizon[instance]) < 0:
                return -1
            end = history.slots[find(history, instance << SHIFT), END]
            history.pool[end, T], history.pool[end, SEQ], history.entity[end] = t, seq, events.entity[at]
            history.x[end], history.y[end] = events.x[at], events.y[at]
            history.slots[find(history, instance << SHIFT), END] = end + 1
            note(leaves.bits, instance, t >> width)
        for k in range(events.ends[at], events.ends[at + 1]):
            instance = events.instances[k]
            for i in range(leaves.query_ends[instance], leaves.query_ends[instance + 1]):
                query = leaves.queries[i]
                if work.seen[query] == at:
                    continue
                work.seen[query] = at
                counters[EVALUATED] += 1
                if may_end(leaves.steps, leaves.step_ends[query], leaves.step_ends[query + 1], leaves.bits, t >> width, leaves.stack):
                    work.env[TRIGGER], work.env[LAST_TRIGGER] = 0, FAR
                    search_query(tables, history, work, out, query, np.int64(0), t, seq, counters)
                    if work.cursor[GIVEN_UP] >= 0 or out.size[0] == len(out.rows):
                        return -2
    return int(counters[DETECTED] + counters[SEARCHED])
