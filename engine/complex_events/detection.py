"""Processes events and timers in order, and finds the queries that they complete.

Each event, in order, is stored once for each of its classes and visits only the queries of which it
is a trigger. A query is searched only if each primitive that an occurrence needs has come recently
enough ([RFID] 3.2, the minimum condition, without negations). How recently follows from the spans
of the operators between the primitive and the trigger. The last times of all classes, a contiguous
array, decide most cases; for queries of single entities the slots decide the rest. If a query is
evaluated by lists, the event is deferred once the primitives have come (see `deferred`).
"""

from __future__ import annotations

import numpy as np

from engine.complex_events.deferred import add_waiting, evaluate_waiting, oldest
from engine.complex_events.fragments import AT_ONCE, GUARDS, GUARDS_END, LAST_NODE, OFFSET, QUERY, TRIGGER_NODE
from engine.complex_events.history import PLACE, SHIFT, History, append, find, slot_with_room
from engine.complex_events.plan import FIRST_GUARDS, Tables
from engine.complex_events.plan import Short as Guards
from engine.complex_events.query_search import (
    ACCESSED,
    ASSERTED,
    BY_LISTS,
    CONDITIONS,
    COUNT,
    EVENT,
    EVENTS,
    GIVEN_UP,
    LAST_DUE,
    LAST_KEY,
    MOST_WAITING,
    NEXT,
    REASON,
    Detections,
    InstanceEvents,
    SearchBuffers,
    count_work,
    prepare,
    search_query,
)
from engine.complex_events.search import BEGIN, BY_TIMER, END, FAR, LAST_TRIGGER, NONE, SEQ, TRIGGER, Int, Ints, T, latest, memory
from engine.complex_events.timers import QUERY_SHIFT, Timers, pop, push
from engine.index.bits import lowest_bit
from engine.index.compiled import kernel
from engine.index.prefetch import prefetch

_SOON = 4
"""Triggers are prefetched for the event this many positions ahead."""
_MOST_FETCHED, _LINE = 32, 2
"""The greatest number of its triggers that are prefetched, and of those whose nearest
guards are in one cache line."""
_WORD = 64
"""Triggers that are tested together: bits of a word."""
_MANY = 3 * MOST_WAITING // 4
"""From this many deferred events of a query on, another one is deferred only if its
whole minimum condition holds."""
DONE, POOL_FULL, HEAP_FULL, OUTPUT_FULL, TOO_MUCH_WORK, _CHUNK_FULL = range(6)


@kernel()
def advance(
    tables: Tables, history: History, heap: Timers, events: InstanceEvents, work: SearchBuffers, out: Detections,
    watermark: Int, most_items: Int, counters: Ints,
) -> Int:  # fmt: skip
    """Processes events from the cursor on and fires timers below `watermark`. Stops if memory is
    short: call again after allocating more. Then no candidates are deferred, unless `out` is full.
    """
    cursor = work.cursor
    while True:
        if cursor[ASSERTED] < 0:
            cursor[REASON] = _take(tables, history, heap, events, work, out, watermark, most_items, counters)
            cursor[ASSERTED] = 0
        if not evaluate_waiting(tables, history, work, out, most_items, counters):
            return OUTPUT_FULL
        cursor[ASSERTED] = -1
        if cursor[GIVEN_UP] >= 0:
            return TOO_MUCH_WORK
        if cursor[REASON] != _CHUNK_FULL:
            return cursor[REASON]


@kernel()
def _take(
    tables: Tables, history: History, heap: Timers, events: InstanceEvents, work: SearchBuffers, out: Detections,
    watermark: Int, most_items: Int, counters: Ints,
) -> Int:  # fmt: skip
    """Processes events and timers in order, as far as there is room; candidates of queries
    evaluated by lists are deferred."""
    cursor = work.cursor
    while cursor[GIVEN_UP] < 0:
        at = cursor[NEXT]
        more = at < len(events.t)
        until = events.t[at] if more else watermark
        while heap.size[0] > 0 and heap.due[0] < until:
            if out.size[0] == len(out.rows) or out.size[1] + most_items > len(out.events):
                return OUTPUT_FULL
            _fire(tables, history, heap, work, out, counters)
        if not more:
            return DONE
        if at + _SOON < len(events.t):
            _fetch_triggers(tables, history, events, at + _SOON)
        lacking = _store_next(tables, history, heap, events, work, out, most_items, counters)
        if lacking != DONE:
            return lacking
        cursor[EVENT] += 1
        _visit_triggers(tables, history, heap, events, work, out, counters)
        counters[EVENTS] += 1
        cursor[NEXT] += 1
    return TOO_MUCH_WORK


@kernel(inline=True)
def _fetch_triggers(tables: Tables, history: History, events: InstanceEvents, at: Int) -> None:
    """Prefetches the nearest guards of an event's triggers and the memory in which it will be
    stored; mostly only for the first of its classes."""
    first, last = events.instances[events.ends[at]], events.instances[events.ends[at + 1] - 1]
    begin, end = tables.trigger_ends[first], tables.trigger_ends[last + 1]
    prefetch(tables.trigger_query, begin)
    for i in range(begin, min(end, begin + _MOST_FETCHED), _LINE):
        prefetch(tables.nearest, i * 2 * FIRST_GUARDS)
    kind = tables.kind[first]
    if tables.shared[0]:
        prefetch(history.pool, 2 * history.slots[kind, END])
        prefetch(history.entity_xy, PLACE * history.slots[kind, END])


@kernel(inline=True)
def _store_next(
    tables: Tables, history: History, heap: Timers, events: InstanceEvents, work: SearchBuffers, out: Detections, most_items: Int, counters: Ints
) -> Int:  # fmt: skip
    """Stores the next event once for each of its classes, if there is room for it and for its
    possible results; else returns what is full."""
    at = work.cursor[NEXT]
    t, entity = events.t[at], np.int64(events.entity[at]) if tables.shared[0] == 0 else np.int64(0)
    needed, asked = oldest(work.waiting, t), np.int64(0)
    for k in range(events.ends[at], events.ends[at + 1]):
        instance = events.instances[k]
        kind = tables.kind[instance]
        asked += tables.trigger_ends[instance + 1] - tables.trigger_ends[instance]
        if slot_with_room(history, kind << SHIFT | entity, needed - tables.horizon[kind]) < 0:
            return POOL_FULL
    if out.size[0] + asked > len(out.rows) or out.size[1] + asked * most_items > len(out.events):
        return OUTPUT_FULL
    if heap.size[0] + asked > len(heap.due):
        return HEAP_FULL
    if work.waiting.size[2] or (len(work.waiting.candidates) and work.waiting.size[0] + asked > len(work.waiting.candidates)):
        return _CHUNK_FULL
    for k in range(events.ends[at], events.ends[at + 1]):
        kind = tables.kind[events.instances[k]]
        _store(history, events, at, find(history, kind << SHIFT | entity))
        work.last[kind] = t
    counters[ACCESSED] += asked
    return DONE


@kernel(inline=True)
def _visit_triggers(
    tables: Tables, history: History, heap: Timers, events: InstanceEvents, work: SearchBuffers, out: Detections, counters: Ints
) -> None:
    """Visits all queries of which the next event is a trigger."""
    at = work.cursor[NEXT]
    t, entity = events.t[at], np.int64(events.entity[at]) if tables.shared[0] == 0 else np.int64(0)
    first, end = events.ends[at], events.ends[at + 1]
    alone = first + 1 == end
    k = first
    while k < end:
        # The triggers of consecutive instances are contiguous.
        begin = tables.trigger_ends[events.instances[k]]
        k += 1
        while k < end and events.instances[k] == events.instances[k - 1] + 1:
            k += 1
        end_of_triggers = tables.trigger_ends[events.instances[k - 1] + 1]
        for word in range(begin, end_of_triggers, _WORD):
            candidates = _strictest_guard_bits(tables.nearest, work, word, min(word + _WORD, end_of_triggers), t)
            while candidates:
                i = word + np.int64(lowest_bit(candidates))
                candidates &= candidates - np.uint64(1)
                if _near_hold(tables.nearest, work, i, t):
                    _visit(tables, history, heap, work, out, i, entity, t, events.seq[at], alone, counters)


@kernel(inline=True)
def _strictest_guard_bits(guards: Guards, work: SearchBuffers, begin: Int, end: Int, now: Int) -> np.uint64:
    """Which of the triggers [begin, end), at most a word of them, satisfy their
    strictest guard, as bits.

    Most do not, unpredictably, so a branch for each would cost more than the test.
    """
    found = np.uint64(0)
    for i in range(begin, end):
        # Unsigned indexes, so that numba does not handle negative ones.
        came = work.last[np.uint32(guards[np.uint64(i), 0])] >= now - guards[np.uint64(i), 1]
        found |= np.uint64(came) << np.uint64(i - begin)
    return found


@kernel(inline=True)
def _visit(
    tables: Tables, history: History, heap: Timers, work: SearchBuffers, out: Detections, trigger: Int, entity: Int, t: Int, seq: Int, alone: bool,
    counters: Ints
) -> None:  # fmt: skip
    """Processes a trigger whose nearest guards have come: searches its query, or defers the event.
    `alone`: the event is of a single class."""
    counters[CONDITIONS] += 1
    query = np.int64(tables.trigger_query[trigger] >> 1)
    if work.waiting.queries[query, BY_LISTS] == 0:
        _evaluate_trigger(tables, history, heap, work, out, trigger, entity, t, seq, alone, counters)
    # A class is a trigger of a query only once, unless it starts timers: then there are no lists.
    elif (alone or work.seen[query] != work.cursor[EVENT]) and _may_wait(tables, work, trigger, query, t, counters):
        if not alone:
            work.seen[query] = work.cursor[EVENT]
        add_waiting(work.waiting, query, t, seq, trigger if alone else -1)


@kernel(inline=True)
def _near_hold(guards: Guards, work: SearchBuffers, trigger: Int, now: Int) -> bool:
    """Whether the guards in a trigger's row have come recently enough, for any entity."""
    for i in range(FIRST_GUARDS):  # noqa: SIM110 - a kernel has no generators
        if work.last[guards[trigger, 2 * i]] < now - guards[trigger, 2 * i + 1]:
            return False
    return True


@kernel(inline=True)
def _may_wait(tables: Tables, work: SearchBuffers, trigger: Int, query: Int, now: Int, counters: Ints) -> bool:
    """Whether all other guards of a trigger have come recently enough; the trigger's own row is
    read only if they are many.

    They are not tested if some event of the query is deferred already: its lists are made in any
    case, and decide at a lower cost. They are tested if many are deferred, so that events that
    complete nothing do not use up the room.
    """
    if 0 < work.waiting.queries[query, COUNT] < _MANY:
        return True
    has_more = tables.trigger_query[trigger] & 1 != 0
    return _near_hold(tables.further, work, trigger, now) and (not has_more or _far_hold(tables, work, trigger, now, counters))


@kernel(inline=True)
def _far_hold(tables: Tables, work: SearchBuffers, trigger: Int, now: Int, counters: Ints) -> bool:
    """Whether the other guards of a trigger have come recently enough, for any entity."""
    for i in range(tables.triggers[trigger, GUARDS] + FIRST_GUARDS, tables.triggers[trigger, GUARDS_END]):
        counters[CONDITIONS] += 1
        if work.last[tables.guards[i, 0]] < now - tables.guards[i, 1]:
            return False
    return True


@kernel(inline=True)
def _store(history: History, events: InstanceEvents, at: Int, slot: Int) -> None:
    """Appends an event to a slot with room, unless it is there already."""
    end = history.slots[slot, END]
    if end > history.slots[slot, BEGIN] and history.pool[end - 1, SEQ] == events.seq[at]:
        return
    append(history, slot, events.t[at], events.seq[at], np.int64(events.entity[at]), events.x[at], events.y[at])


@kernel()
def _fire(tables: Tables, history: History, heap: Timers, work: SearchBuffers, out: Detections, counters: Ints) -> None:
    """Removes the first timer and searches its query; equal timers are searched once."""
    cursor, due, key = work.cursor, heap.due[0], heap.key[0]
    pop(heap)
    if due == cursor[LAST_DUE] and key == cursor[LAST_KEY]:
        return
    cursor[LAST_DUE], cursor[LAST_KEY] = due, key
    query, entity = key >> QUERY_SHIFT, key & ((1 << QUERY_SHIFT) - 1)
    counters[ACCESSED] += 1
    if _slots_are_recent(history, tables.timer_guards, tables.timer_guard_ends[query], tables.timer_guard_ends[query + 1], entity, due, counters):
        work.env[TRIGGER], work.env[LAST_TRIGGER] = 0, FAR
        search_query(tables, history, work, out, query, entity, due, BY_TIMER, counters)


@kernel(inline=True)
def _evaluate_trigger(
    tables: Tables, history: History, heap: Timers, work: SearchBuffers, out: Detections, trigger: Int, entity: Int, t: Int, seq: Int, alone: bool,
    counters: Ints
) -> None:  # fmt: skip
    """Searches the query of a trigger whose nearest guards have come, or sets its timer. `alone`:
    the event is of a single class."""
    query, offset = tables.triggers[trigger, QUERY], tables.triggers[trigger, OFFSET]
    if offset != AT_ONCE:
        if _starts(tables, history, work, query, entity, t, seq, offset, tables.triggers[trigger, TRIGGER_NODE], counters):
            push(heap, t + offset, query << QUERY_SHIFT | entity)
    elif work.seen[query] == work.cursor[EVENT]:
        return
    elif _may_complete(tables, history, work, trigger, entity, t, counters):
        work.seen[query] = work.cursor[EVENT]
        # An event of several classes may be a trigger in several places of a pattern.
        work.env[TRIGGER] = tables.triggers[trigger, TRIGGER_NODE] if alone else 0
        work.env[LAST_TRIGGER] = tables.triggers[trigger, LAST_NODE] if alone else FAR
        search_query(tables, history, work, out, query, entity, t, seq, counters)


@kernel(inline=True)
def _may_complete(tables: Tables, history: History, work: SearchBuffers, trigger: Int, entity: Int, now: Int, counters: Ints) -> bool:
    """Whether the other guards of a trigger have come recently enough for any
    entity, then for this one."""
    if not _far_hold(tables, work, trigger, now, counters):
        return False
    first, last = tables.triggers[trigger, GUARDS], tables.triggers[trigger, GUARDS_END]
    return tables.shared[0] == 1 or _slots_are_recent(history, tables.guards, first, last, entity, now, counters)


@kernel()
def _slots_are_recent(history: History, guards: Ints, begin: Int, end: Int, entity: Int, now: Int, counters: Ints) -> bool:
    """Whether the slots of guards [begin, end) have events that are recent enough."""
    for i in range(begin, end):
        counters[CONDITIONS] += 1
        slot = find(history, guards[i, 0] << SHIFT | entity)
        if slot < 0 or history.slots[slot, BEGIN] == history.slots[slot, END] or history.pool[history.slots[slot, END] - 1, T] < now - guards[i, 1]:
            return False
    return True


@kernel()
def _starts(
    tables: Tables, history: History, work: SearchBuffers, query: Int, entity: Int, now: Int, seq: Int, offset: Int, node: Int, counters: Ints
) -> bool:  # fmt: skip
    """Whether the event completes `node`, so that the query gets a timer `offset` later. Negations
    are checked when it is due."""
    env = work.env
    prepare(tables, history, work, query, entity, now, seq, now + offset - tables.within[query])
    env[TRIGGER], env[LAST_TRIGGER] = 0, FAR
    nodes, own, slots, pool = memory(tables.nodes), memory(env), memory(history.slots), memory(history.pool)
    completes = latest(nodes, own, slots, pool, node, NONE, now, FAR, 1) != NONE
    count_work(work, query, now, counters)
    return bool(completes)
