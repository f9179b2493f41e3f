"""Events and timers in their order, and what they complete.

Events are taken a slot of time at a time: first the occurrence bitmaps get all events of the slot, then each event in its order is stored once for
each of its classes and asks only the queries of which it is a trigger. A query is searched only if each primitive that the occurrence needs has come
recently enough ([RFID] 3.2, the minimum condition) and its bitmaps agree. How recently follows from the spans of the operators between it and the
trigger; the last times of all classes, side by side, answer most questions, for queries of single entities the slots the rest. Words are evaluated
at most once a trigger and slot: since they hold all events of the slot, what they refute is refuted for every event of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.complex_events.bitmaps import Words, beside, may_end, note
from engine.complex_events.history import DIRECT as BY_CLASS
from engine.complex_events.history import SHIFT, Floats, History, find, slot_with_room
from engine.complex_events.plan import AT_ONCE, CHECKS, CHECKS_END, FIRST_GUARDS, GUARDS, GUARDS_END, LAST_NODE, OFFSET, QUERY, TRIGGER_NODE, Tables
from engine.complex_events.search import (
    BEGIN,
    BY_TIMER,
    COMPLETER,
    DIRECT,
    DUE,
    END,
    FAR,
    KIND,
    LAST_TRIGGER,
    LEAST,
    LEAVES,
    MOST_OPERATIONS,
    NONE,
    NOW,
    OPERATIONS,
    PICKED,
    SEARCH,
    SEQ,
    SINCE,
    SINCE_SEQ,
    TRIGGER,
    Ints,
    T,
    Whole,
    kernel,
    latest,
    memory,
    pick,
)  # fmt: skip
from engine.complex_events.timers import WHO_SHIFT, Timers, pop, push

DONE, POOL_FULL, HEAP_FULL, OUTPUT_FULL, TOO_MUCH_WORK = range(5)
# Places in counters.
ACCESSED, CONDITIONS, WORK, DETECTED, EVENTS, SEARCHED, EVALUATED, STEPS = range(8)
COUNTERS = 8
# Places in cursor: next event; the timer that fired last; a query whose search was given up, and when; the first event that the bitmaps do not hold
# yet; running numbers of slots and of events.
NEXT, _LAST_DUE, _LAST_WHO, GIVEN_UP, GIVEN_UP_AT, _AHEAD, _SLOT, EVENT = range(8)


class Events(NamedTuple):
    """Events in (t, seq) with their instances, `instances[ends[i]:ends[i + 1]]`."""

    t: Ints
    seq: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    ends: Ints
    instances: Ints


class Scratch(NamedTuple):
    """`env`: see `search`. `seen[q]`: the event that asked query q last. `refuted[i]`: the slot in which the bitmaps refuted trigger i last.

    `since`, `since_seq`: a query knows the events after this one. `last[c]`: the time of the last event of class c, of whatever entity; one more
    place counts as now. `bits`: occurrence bitmaps, `stack`: room for words.
    """

    env: Ints
    picked: Ints
    seen: Ints
    refuted: Ints
    since: Ints
    since_seq: Ints
    last: Ints
    bits: Ints
    stack: Words
    cursor: Ints


class Found(NamedTuple):
    """Room for detections: `rows` (query, entity, s, e, end of its evidence) and evidence as `events` (leaf's node, t, seq), `entity`, `x`, `y`."""

    rows: Ints
    events: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    size: Ints


def scratch(tables: Tables, since: Ints, since_seq: Ints, last: Ints, bits: Ints) -> Scratch:
    """Room to work in; `begin` before each step."""
    leaves = int(np.diff(tables.leaf_ends).max(initial=0))
    return Scratch(
        np.zeros(LEAVES + leaves, np.int64), np.zeros((leaves, 2), np.int64), np.full(len(tables.root), -1, np.int64),
        np.full(len(tables.triggers), -1, np.int64), since, since_seq, last, bits, np.zeros(leaves + 1, np.uint64), np.zeros(8, np.int64),
    )  # fmt: skip


def begin(work: Scratch) -> None:
    """Before the first event of a step."""
    work.cursor[[NEXT, _LAST_DUE, _LAST_WHO, GIVEN_UP, _AHEAD]] = 0, NONE, -1, -1, 0


@kernel()
def note_all(tables: Tables, key: Ints, t: Ints, order: Ints, last: Ints, bits: Ints) -> None:
    """Enters stored events, in the order of their times, in last times and bitmaps."""
    for at in order:
        kind = key[at] >> SHIFT
        last[kind] = t[at]
        for i in range(tables.bit_ends[kind], tables.bit_ends[kind + 1]):
            note(bits, tables.bit_rows[i, 0], t[at] >> tables.bit_rows[i, 1])


def found(rows: int, items: int) -> Found:
    return Found(
        np.zeros((rows, 5), np.int64), np.zeros((items, 3), np.int64), np.zeros(items, np.int32), np.zeros(items), np.zeros(items), np.zeros(2,
        np.int64)
    )  # fmt: skip


@kernel()
def advance(
    tables: Tables, history: History, heap: Timers, events: Events, work: Scratch, out: Found, watermark: Whole, most_items: Whole, counters: Ints
) -> Whole:  # fmt: skip
    """Takes events from the cursor on and fires timers below `watermark`. Stops where room is lacking: call again after making some."""
    cursor = work.cursor
    while True:
        if cursor[GIVEN_UP] >= 0:
            return TOO_MUCH_WORK
        at = cursor[NEXT]
        more = at < len(events.t)
        until = events.t[at] if more else watermark
        while heap.size[0] > 0 and heap.due[0] < until:
            if out.size[0] == len(out.rows) or out.size[1] + most_items > len(out.events):
                return OUTPUT_FULL
            _fire(tables, history, heap, work, out, counters)
        if not more:
            return DONE
        if at == cursor[_AHEAD]:
            note_slot(tables, events, work)
        t, entity = events.t[at], np.int64(events.entity[at])
        slot_entity = entity if tables.shared[0] == 0 else np.int64(0)
        first, end = events.ends[at], events.ends[at + 1]
        kind = tables.kind[events.instances[first]]
        own = slot_with_room(history, kind << SHIFT | slot_entity, t - tables.horizon[kind])
        if own < 0:
            return POOL_FULL
        asked, alone = tables.trigger_ends[events.instances[first] + 1] - tables.trigger_ends[events.instances[first]], True
        for k in range(first + 1, end):
            instance = events.instances[k]
            asked += tables.trigger_ends[instance + 1] - tables.trigger_ends[instance]
            if tables.kind[instance] != kind:
                alone = False
                if slot_with_room(history, tables.kind[instance] << SHIFT | slot_entity, t - tables.horizon[tables.kind[instance]]) < 0:
                    return POOL_FULL
        if out.size[0] + asked > len(out.rows) or out.size[1] + asked * most_items > len(out.events):
            return OUTPUT_FULL
        if heap.size[0] + asked > len(heap.due):
            return HEAP_FULL
        _store(history, events, at, own)
        work.last[kind] = t
        if not alone:
            for k in range(first + 1, end):
                _store(history, events, at, find(history, tables.kind[events.instances[k]] << SHIFT | slot_entity))
                work.last[tables.kind[events.instances[k]]] = t
        cursor[EVENT] += 1
        counters[ACCESSED] += asked
        for k in range(first, end):
            instance = events.instances[k]
            for i in range(tables.trigger_ends[instance], tables.trigger_ends[instance + 1]):
                if _lately(tables, work, i, t):
                    counters[CONDITIONS] += 1
                    if work.refuted[i] != cursor[_SLOT]:
                        _ask(tables, history, heap, work, out, i, slot_entity, t, events.seq[at], alone, counters)
        counters[EVENTS] += 1
        cursor[NEXT] += 1


@kernel(inline=True)
def _lately(tables: Tables, work: Scratch, trigger: Whole, now: Whole) -> bool:
    """Whether the first guards of a trigger have come recently enough, of whatever entity."""
    for i in range(FIRST_GUARDS):  # noqa: SIM110 - a kernel has no generators
        if work.last[tables.nearest[trigger, 2 * i]] < now - tables.nearest[trigger, 2 * i + 1]:
            return False
    return True


@kernel(inline=True)
def note_slot(tables: Tables, events: Events, work: Scratch) -> None:
    """Enters all events from the next one on that lie in its slot, the narrowest there is, in the bitmaps."""
    at = work.cursor[_AHEAD] if len(tables.bit_rows) else len(events.t)
    slot = events.t[work.cursor[_AHEAD]] >> tables.narrowest[0]
    while at < len(events.t) and events.t[at] >> tables.narrowest[0] == slot:
        before = np.int64(-1)
        for k in range(events.ends[at], events.ends[at + 1]):
            kind = tables.kind[events.instances[k]]
            if kind != before:
                for i in range(tables.bit_ends[kind], tables.bit_ends[kind + 1]):
                    note(work.bits, tables.bit_rows[i, 0], events.t[at] >> tables.bit_rows[i, 1])
            before = kind
        at += 1
    work.cursor[_AHEAD] = at
    work.cursor[_SLOT] += 1


@kernel(inline=True)
def _store(history: History, events: Events, at: Whole, slot: Whole) -> None:
    """Appends an event to a slot with room, unless it is there already."""
    end = history.slots[slot, END]
    if end > history.slots[slot, BEGIN] and history.pool[end - 1, SEQ] == events.seq[at]:
        return
    history.pool[end, T], history.pool[end, SEQ], history.entity[end] = events.t[at], events.seq[at], events.entity[at]
    history.x[end], history.y[end] = events.x[at], events.y[at]
    history.slots[slot, END] = end + 1


@kernel()
def _fire(tables: Tables, history: History, heap: Timers, work: Scratch, out: Found, counters: Ints) -> None:
    """Takes the first timer and searches its query; one of several equal timers."""
    cursor, due, who = work.cursor, heap.due[0], heap.who[0]
    pop(heap)
    if due == cursor[_LAST_DUE] and who == cursor[_LAST_WHO]:
        return
    cursor[_LAST_DUE], cursor[_LAST_WHO] = due, who
    query, of = who >> WHO_SHIFT, who & ((1 << WHO_SHIFT) - 1)
    counters[ACCESSED] += 1
    if _guarded(history, tables.timer_guards, tables.timer_guard_ends[query], tables.timer_guard_ends[query + 1], of, due, counters):
        work.env[TRIGGER], work.env[LAST_TRIGGER] = 0, FAR
        search_query(tables, history, work, out, query, of, due, np.int64(BY_TIMER), counters)


@kernel(inline=True)
def _ask(
    tables: Tables, history: History, heap: Timers, work: Scratch, out: Found, trigger: Whole, entity: Whole, t: Whole, seq: Whole, alone: bool,
    counters: Ints
) -> None:  # fmt: skip
    """An event asks the query of a trigger whose nearest guards have come: a search, or a timer. `alone`: it belongs to a single class."""
    query, offset = tables.triggers[trigger, QUERY], tables.triggers[trigger, OFFSET]
    if offset != AT_ONCE:
        if _starts(tables, history, work, query, entity, t, seq, offset, tables.triggers[trigger, TRIGGER_NODE], counters):
            push(heap, t + offset, query << WHO_SHIFT | entity)
    elif work.seen[query] != work.cursor[EVENT] and _may_complete(tables, history, work, trigger, entity, t, counters):
        work.seen[query] = work.cursor[EVENT]
        # Events of several classes may be triggers in several places.
        work.env[TRIGGER] = tables.triggers[trigger, TRIGGER_NODE] if alone else 0
        work.env[LAST_TRIGGER] = tables.triggers[trigger, LAST_NODE] if alone else FAR
        search_query(tables, history, work, out, query, entity, t, seq, counters)


@kernel(inline=True)
def _may_complete(tables: Tables, history: History, work: Scratch, trigger: Whole, entity: Whole, now: Whole, counters: Ints) -> bool:
    """Whether the other guards of a trigger have come recently enough, of whatever entity, then all of this one, and the bitmaps agree."""
    first, last = tables.triggers[trigger, GUARDS], tables.triggers[trigger, GUARDS_END]
    for i in range(first + FIRST_GUARDS, last):
        counters[CONDITIONS] += 1
        if work.last[tables.guards[i, 0]] < now - tables.guards[i, 1]:
            return False
    query = tables.triggers[trigger, QUERY]
    check, checks_end = tables.triggers[trigger, CHECKS], tables.triggers[trigger, CHECKS_END]
    if check < checks_end:
        counters[EVALUATED] += 1
        begin = now >> tables.narrowest[0] << tables.narrowest[0]
        end = begin + (np.int64(1) << tables.narrowest[0]) - 1
        done = beside(tables.checks, check, checks_end, tables.steps, work.bits, begin, end, tables.within[query], work.stack)
        counters[STEPS] += abs(done)
        agree = done > 0
    elif tables.whole[query, 0] < tables.whole[query, 1]:
        counters[EVALUATED] += 1
        counters[STEPS] += tables.whole[query, 1] - tables.whole[query, 0]
        agree = may_end(tables.steps, tables.whole[query, 0], tables.whole[query, 1], work.bits, now >> tables.whole[query, 2], work.stack)
    else:
        agree = True
    if not agree:
        work.refuted[trigger] = work.cursor[_SLOT]
        return False
    return tables.shared[0] == 1 or _guarded(history, tables.guards, first, last, entity, now, counters)


@kernel()
def _guarded(history: History, guards: Ints, begin: Whole, end: Whole, entity: Whole, now: Whole, counters: Ints) -> bool:
    """Whether the slots of guards [begin, end) hold recent enough events."""
    for i in range(begin, end):
        counters[CONDITIONS] += 1
        slot = find(history, guards[i, 0] << SHIFT | entity)
        if slot < 0 or history.slots[slot, BEGIN] == history.slots[slot, END] or history.pool[history.slots[slot, END] - 1, T] < now - guards[i, 1]:
            return False
    return True


@kernel(inline=True)
def _prepare(
    tables: Tables, history: History, work: Scratch, query: Whole, entity: Whole, now: Whole, completer: Whole, least: Whole
) -> None:  # fmt: skip
    """Sets up a search of a query."""
    env = work.env
    env[LEAST], env[SINCE], env[SINCE_SEQ] = max(least, work.since[query]), work.since[query], work.since_seq[query]
    env[NOW], env[COMPLETER], env[DUE] = now, completer, now if completer == BY_TIMER else now - 1
    env[OPERATIONS], env[SEARCH] = 0, env[SEARCH] + 1
    env[DIRECT] = history.used[BY_CLASS]
    if env[DIRECT]:
        return
    first = tables.leaf_ends[query]
    for i in range(first, tables.leaf_ends[query + 1]):
        env[LEAVES + i - first] = find(history, tables.nodes[tables.leaves[i], KIND] << SHIFT | entity)


@kernel(inline=True)
def _account(work: Scratch, query: Whole, now: Whole, counters: Ints) -> None:
    """Counts the work of a search; remembers a query that needed too much."""
    counters[WORK] += work.env[OPERATIONS]
    if work.env[OPERATIONS] > MOST_OPERATIONS:
        work.cursor[GIVEN_UP], work.cursor[GIVEN_UP_AT] = query, now


@kernel()
def _starts(
    tables: Tables, history: History, work: Scratch, query: Whole, entity: Whole, now: Whole, seq: Whole, offset: Whole, node: Whole, counters: Ints
) -> bool:  # fmt: skip
    """Whether the event completes `node`, so that the query has a timer `offset` later. What may prevent it is asked when it is due."""
    env = work.env
    _prepare(tables, history, work, query, entity, now, seq, now + offset - tables.within[query])
    env[TRIGGER], env[LAST_TRIGGER] = 0, FAR
    nodes, own, slots, pool = memory(tables.nodes), memory(env), memory(history.slots), memory(history.pool)
    completes = latest(nodes, own, slots, pool, node, np.int64(NONE), now, np.int64(FAR), np.int64(1)) != NONE
    _account(work, query, now, counters)
    return bool(completes)


@kernel(inline=True)
def search_query(
    tables: Tables, history: History, work: Scratch, out: Found, query: Whole, entity: Whole, now: Whole, completer: Whole, counters: Ints
) -> None:  # fmt: skip
    """Searches one query; writes the detection with its evidence if something is completed now."""
    env, root = work.env, tables.root[query]
    counters[SEARCHED] += 1
    _prepare(tables, history, work, query, entity, now, completer, now - tables.within[query])
    never, far, yes = np.int64(NONE), np.int64(FAR), np.int64(1)
    nodes, own, slots, pool = memory(tables.nodes), memory(env), memory(history.slots), memory(history.pool)
    start = latest(nodes, own, slots, pool, root, never, now, far, yes)
    _account(work, query, now, counters)
    if start == NONE or work.cursor[GIVEN_UP] >= 0:
        return
    env[PICKED], env[OPERATIONS] = 0, -FAR  # What has been found once is found again, without counting.
    pick(nodes, own, slots, pool, memory(work.picked), root, never, now, far, yes)
    row, item = out.size[0], out.size[1]
    for i in range(env[PICKED]):
        at = work.picked[i, 1]
        out.events[item, 0], out.events[item, 1], out.events[item, 2] = work.picked[i, 0], history.pool[at, T], history.pool[at, SEQ]
        out.entity[item], out.x[item], out.y[item] = history.entity[at], history.x[at], history.y[at]
        item += 1
    out.rows[row, 0], out.rows[row, 1], out.rows[row, 2], out.rows[row, 3], out.rows[row, 4] = query, entity, start, now, item
    out.size[0], out.size[1] = row + 1, item
    counters[DETECTED] += 1
