"""RCEDA's way, compiled: each primitive event evaluates every query that has it at any leaf.

As good as that idea allows: the evaluation is that of the engine, words of 64 slots with the operators on whole words, and only a tree whose root is
completed in the slot of now is searched for exact times. What it lacks are trigger leaves and minimum conditions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.complex_events.bitmaps import Words, may_end, note, steps, width_of
from engine.complex_events.history import SHIFT, History, append, slot_with_room
from engine.complex_events.needs import longest
from engine.complex_events.pattern import nodes
from engine.complex_events.plan import CompositeIndex
from engine.complex_events.search import FAR, KIND, LAST_TRIGGER, NONE, TRIGGER, Ints, kernel
from engine.complex_events.searching import DETECTED, EVENT, GIVEN_UP, SEARCHED, Events, Found, Scratch, search_query

EVALUATED_LEAVES = 0


class EveryLeaf(NamedTuple):
    """Queries of each class, CSR, and the steps of each query; `bits` of each class in slots 2 ** `width` long."""

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
def advance_every_leaf(tables, history: History, events: Events, work: Scratch, leaves: EveryLeaf, out: Found, counters: Ints) -> int:  # type: ignore[no-untyped-def]
    """Takes all events; the number of those that were evaluated. `history` and `out` must have room."""
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
