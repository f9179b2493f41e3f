"""Queries that are evaluated by lists: their candidates are deferred, and evaluated together.

An event that may complete such a query does not start a search at once. It is recorded as a
candidate, and after the step's events are stored, the query's lists are made once for all its
candidates. So a query's nodes are merged once for each part of the stream, not once for each event.
Queries whose lists get too long are searched, for these candidates and from then on.
"""

from __future__ import annotations

import numpy as np

from engine.complex_events.fragments import LAST_NODE, TRIGGER_NODE
from engine.complex_events.history import History
from engine.complex_events.lists import ARRIVAL, ENTRY, FROM, REQUIREMENT, ROOM, TOO_LONG, UNSURE, UNTIL, E, ListInput, PatternTree, S, fill, trace
from engine.complex_events.plan import Tables
from engine.complex_events.query_search import (
    ASSERTED,
    BY_LISTS,
    C_BEFORE,
    C_SEQ,
    C_TIME,
    C_TRIGGER,
    COUNT,
    ENTRIES,
    GIVEN_UP,
    LISTED,
    MOST_WAITING,
    NEWEST,
    OLDEST,
    DeferredEvents,
    Detections,
    SearchBuffers,
    search_past,
    write_detection,
)
from engine.complex_events.search import BEGIN, END, FAR, KIND, LAST, LAST_TRIGGER, NODE, TRIGGER, Int, Ints, memory
from engine.index.compiled import kernel
from engine.index.prefetch import prefetch

_SOON = 2
"""Events are prefetched for the query this many positions ahead."""
_NEAR, _LINE = 24, 4
"""The number of events of a leaf that are prefetched, and of those in one cache line."""
_NODE_ROOM, _CANDIDATE_ROOM = 16, 4
"""Entries for each node of a query, and for each pair of its nodes and candidates: with more, lists
are more work than searches."""


@kernel(inline=True)
def add_waiting(waiting: DeferredEvents, query: Int, t: Int, seq: Int, trigger: Int) -> None:
    """Records that an event may complete a query."""
    number = waiting.size[0]
    waiting.size[0] += 1
    waiting.candidates[number, C_TIME], waiting.candidates[number, C_SEQ] = t, seq
    waiting.candidates[number, C_TRIGGER], waiting.candidates[number, C_BEFORE] = trigger, waiting.queries[query, NEWEST]
    # Used without a branch, because the cache line may still be loading.
    first = waiting.queries[query, COUNT] == 0
    waiting.touched[waiting.size[1]] = query
    waiting.size[1] += first
    waiting.queries[query, OLDEST] = number if first else waiting.queries[query, OLDEST]
    waiting.queries[query, NEWEST] = number
    waiting.queries[query, COUNT] += 1
    if waiting.queries[query, COUNT] == MOST_WAITING:
        waiting.size[2] = 1


@kernel(inline=True)
def oldest(waiting: DeferredEvents, now: Int) -> Int:
    """The time of the earliest deferred event, `now` if there is none."""
    return waiting.candidates[0, C_TIME] if waiting.size[0] else now


@kernel(inline=True)
def _fetch_nodes(tables: Tables, query: Int) -> None:
    """Prefetches the pattern of a query that is evaluated soon."""
    end = tables.root[query + 1] if query + 1 < len(tables.root) else len(tables.nodes)
    for node in range(tables.root[query], end):
        prefetch(tables.nodes, node * NODE)
        prefetch(tables.requirements, node * REQUIREMENT)
    prefetch(tables.leaves, tables.leaf_ends[query])


@kernel(inline=True)
def _fetch_events(tables: Tables, history: History, query: Int) -> None:
    """Prefetches the events that a query's leaves may need soon."""
    for i in range(tables.leaf_ends[query], tables.leaf_ends[query + 1]):
        slot = tables.nodes[tables.leaves[i], KIND]
        end = history.slots[slot, END]
        for at in range(max(history.slots[slot, BEGIN], end - _NEAR), end, _LINE):
            prefetch(history.pool, 2 * at)


@kernel()
def evaluate_waiting(tables: Tables, history: History, work: SearchBuffers, out: Detections, most_items: Int, counters: Ints) -> bool:
    """Evaluates the deferred candidates, from query ASSERTED of the touched ones on. Returns
    whether all are done; else `out` is full."""
    waiting, cursor = work.waiting, work.cursor
    while cursor[ASSERTED] < waiting.size[1]:
        query = waiting.touched[cursor[ASSERTED]]
        if cursor[ASSERTED] + 2 * _SOON < waiting.size[1]:
            _fetch_nodes(tables, waiting.touched[cursor[ASSERTED] + 2 * _SOON])
            _fetch_events(tables, history, waiting.touched[cursor[ASSERTED] + _SOON])
        count = waiting.queries[query, COUNT]
        if out.size[0] + count > len(out.rows) or out.size[1] + count * most_items > len(out.events):
            return False
        if waiting.queries[query, BY_LISTS] == 0 or not _evaluate_lists(tables, history, work, out, query, counters):
            waiting.queries[query, BY_LISTS] = 0
            _evaluate_searches(tables, history, work, out, query, counters)
        waiting.queries[query, COUNT] = 0
        cursor[ASSERTED] += 1
    waiting.size[:] = 0
    return True


@kernel()
def _evaluate_lists(tables: Tables, history: History, work: SearchBuffers, out: Detections, query: Int, counters: Ints) -> bool:
    """Asserts a query's detections from its lists. Returns false, without detections,
    if the lists get too long."""
    root, within, waiting = tables.root[query], tables.within[query], work.waiting
    count, first, last = waiting.queries[query, COUNT], waiting.queries[query, OLDEST], waiting.queries[query, NEWEST]
    begin, begin_seq, end = waiting.candidates[first, C_TIME], waiting.candidates[first, C_SEQ], waiting.candidates[last, C_TIME]
    tree = PatternTree(memory(tables.nodes), memory(tables.requirements), memory(work.lists.items), memory(work.lists.ends), root)
    given = ListInput(memory(history.slots), memory(history.pool), begin, end, within, work.since[query], work.since_seq[query])
    capacity = min(ROOM, (tables.nodes[root, LAST] - root + 1) * (_NODE_ROOM + _CANDIDATE_ROOM * count))
    entries, items, own = fill(tree, given, capacity), tree.items, tree.own
    counters[LISTED] += 1
    if entries <= 0:
        return bool(entries != TOO_LONG)
    counters[ENTRIES] += entries
    for at in range(own[FROM], own[UNTIL]):
        start, now, seq = items[at * ENTRY + S], items[at * ENTRY + E], items[at * ENTRY + ARRIVAL]
        if now - start > within or now < begin or (now == begin and seq < begin_seq):
            continue
        picked = trace(tree, memory(work.lists.wanted), memory(work.picked), start, now, seq)
        if picked == UNSURE:
            work.env[TRIGGER], work.env[LAST_TRIGGER] = 0, FAR
            search_past(tables, history, work, out, query, now, seq, counters)
        else:
            write_detection(history, work, out, query, 0, start, now, picked, counters)
    return True


@kernel()
def _evaluate_searches(tables: Tables, history: History, work: SearchBuffers, out: Detections, query: Int, counters: Ints) -> None:
    """Searches a query for each of its candidates."""
    candidates, number, after = work.waiting.candidates, work.waiting.queries[query, NEWEST], np.int64(-1)
    # Reverses the chain, so that it leads to the newest.
    for _ in range(work.waiting.queries[query, COUNT]):
        before = candidates[number, C_BEFORE]
        candidates[number, C_BEFORE] = after
        number, after = before, number
    number = after
    while number >= 0 and work.cursor[GIVEN_UP] < 0:
        trigger = candidates[number, C_TRIGGER]
        work.env[TRIGGER] = tables.triggers[trigger, TRIGGER_NODE] if trigger >= 0 else 0
        work.env[LAST_TRIGGER] = tables.triggers[trigger, LAST_NODE] if trigger >= 0 else FAR
        search_past(tables, history, work, out, query, candidates[number, C_TIME], candidates[number, C_SEQ], counters)
        number = candidates[number, C_BEFORE]
