"""Events and timers in their order, and what they complete.

An event is stored in the slots of all its instances, then asks only the queries of which it is a trigger; a query is searched only if each
primitive that the occurrence needs has come recently enough ([RFID] 3.2, the minimum condition). How recently follows from the spans of the operators
between it and the trigger; the last times of all instances, side by side, answer most questions, for queries of single entities the slots the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.complex_events.bitmaps import Words, beside, may_end, note
from engine.complex_events.history import SHIFT, Floats, History, find, slot_with_room
from engine.complex_events.plan import AGE, AT_ONCE, CHECKS, CHECKS_END, GUARD, GUARDS, GUARDS_END, LAST_NODE, OFFSET, QUERY, TRIGGER_NODE, Tables
from engine.complex_events.search import (
    BEGIN,
    BY_TIMER,
    COMPLETER,
    DUE,
    END,
    FAR,
    INSTANCE,
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
    latest,
    pick,
)  # fmt: skip
from engine.complex_events.timers import WHO_SHIFT, Timers, pop, push

DONE, POOL_FULL, HEAP_FULL, OUTPUT_FULL, TOO_MUCH_WORK = range(5)
# Places in counters.
ACCESSED, CONDITIONS, WORK, DETECTED, EVENTS, SEARCHED = range(6)
# Places in cursor: next event; the timer that fired last; a query whose search was given up, and when.
_NEXT, _LAST_DUE, _LAST_WHO, GIVEN_UP, GIVEN_UP_AT = range(5)


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
    """`env`: see `search`. `seen[q]`: the event that asked query q last. `since`, `since_seq`: a query knows the events after this one.

    `last[i]`: the time of the last event of instance i, of whatever entity. `bits`: occurrence bitmaps, `stack`: room for words.
    """

    env: Ints
    picked: Ints
    seen: Ints
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
    """Room to work in, for one step."""
    leaves = int(np.diff(tables.leaf_ends).max(initial=0))
    cursor = np.array([0, NONE, -1, -1, 0], np.int64)
    return Scratch(
        np.zeros(LEAVES + leaves, np.int64), np.zeros((leaves, 2), np.int64), np.full(len(tables.root), -1, np.int64), since, since_seq, last,
        bits, np.zeros(leaves + 1, np.uint64), cursor,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def note_all(tables: Tables, key: Ints, t: Ints, order: Ints, last: Ints, bits: Ints) -> None:
    """Enters stored events, in the order of their times, in last times and bitmaps."""
    for at in order:
        instance = key[at] >> SHIFT
        last[instance] = t[at]
        for i in range(tables.bit_ends[instance], tables.bit_ends[instance + 1]):
            note(bits, tables.bit_rows[i, 0], t[at] >> tables.bit_rows[i, 1])


def found(rows: int, items: int) -> Found:
    return Found(
        np.zeros((rows, 5), np.int64), np.zeros((items, 3), np.int64), np.zeros(items, np.int32), np.zeros(items), np.zeros(items), np.zeros(2,
        np.int64)
    )  # fmt: skip


@njit(cache=True, nogil=True)
def advance(
    tables: Tables, history: History, heap: Timers, events: Events, work: Scratch, out: Found, watermark: Whole, most_items: Whole, counters: Ints
) -> Whole:  # fmt: skip
    """Takes events from the cursor on and fires timers below `watermark`. Stops where room is lacking: call again after making some."""
    cursor = work.cursor
    while True:
        if cursor[GIVEN_UP] >= 0:
            return TOO_MUCH_WORK
        at = cursor[_NEXT]
        more = at < len(events.t)
        until = events.t[at] if more else watermark
        while heap.size[0] > 0 and heap.due[0] < until:
            if out.size[0] == len(out.rows) or out.size[1] + most_items > len(out.events):
                return OUTPUT_FULL
            due, who = heap.due[0], heap.who[0]
            pop(heap)
            if due != cursor[_LAST_DUE] or who != cursor[_LAST_WHO]:
                cursor[_LAST_DUE], cursor[_LAST_WHO] = due, who
                query, of = who >> WHO_SHIFT, who & ((1 << WHO_SHIFT) - 1)
                first, last = tables.timer_guard_ends[query], tables.timer_guard_ends[query + 1]
                counters[ACCESSED] += 1
                if _guarded(history, tables.timer_guards, first, last, of, due, counters):
                    work.env[TRIGGER], work.env[LAST_TRIGGER] = 0, FAR
                    search_query(tables, history, work, out, query, of, due, np.int64(BY_TIMER), counters)
        if not more:
            return DONE
        asked = 0
        t, seq, entity = events.t[at], events.seq[at], np.int64(events.entity[at])
        slot_entity = entity if tables.shared[0] == 0 else np.int64(0)
        for k in range(events.ends[at], events.ends[at + 1]):
            instance = events.instances[k]
            asked += tables.trigger_ends[instance + 1] - tables.trigger_ends[instance]
            if slot_with_room(history, instance << SHIFT | slot_entity, t - tables.horizon[instance]) < 0:
                return POOL_FULL
        if out.size[0] + asked > len(out.rows) or out.size[1] + asked * most_items > len(out.events):
            return OUTPUT_FULL
        if heap.size[0] + asked > len(heap.due):
            return HEAP_FULL
        for k in range(events.ends[at], events.ends[at + 1]):
            instance = events.instances[k]
            work.last[instance] = t
            for i in range(tables.bit_ends[instance], tables.bit_ends[instance + 1]):
                note(work.bits, tables.bit_rows[i, 0], t >> tables.bit_rows[i, 1])
            slot = find(history, instance << SHIFT | slot_entity)
            end = history.slots[slot, END]
            history.pool[end, T], history.pool[end, SEQ], history.entity[end] = t, seq, entity
            history.x[end], history.y[end] = events.x[at], events.y[at]
            history.slots[slot, END] = end + 1
        alone = True
        for k in range(events.ends[at] + 1, events.ends[at + 1]):
            alone &= tables.kind[events.instances[k]] == tables.kind[events.instances[events.ends[at]]]
        for k in range(events.ends[at], events.ends[at + 1]):
            instance = events.instances[k]
            for i in range(tables.trigger_ends[instance], tables.trigger_ends[instance + 1]):
                counters[ACCESSED] += 1
                trigger = tables.triggers[i]
                if trigger[GUARD] >= 0 and work.last[trigger[GUARD]] < t - trigger[AGE]:
                    continue
                query = trigger[QUERY]
                if trigger[OFFSET] != AT_ONCE:
                    if _starts(tables, history, work, query, slot_entity, t, seq, trigger[OFFSET], trigger[TRIGGER_NODE], counters):
                        push(heap, t + trigger[OFFSET], query << WHO_SHIFT | slot_entity)
                elif work.seen[query] != at and _may_complete(tables, history, work, trigger, slot_entity, t, counters):
                    work.seen[query] = at
                    # Events of several classes may be triggers in several places.
                    work.env[TRIGGER], work.env[LAST_TRIGGER] = (trigger[TRIGGER_NODE], trigger[LAST_NODE]) if alone else (0, FAR)
                    search_query(tables, history, work, out, query, slot_entity, t, seq, counters)
        counters[EVENTS] += 1
        cursor[_NEXT] += 1


@njit(cache=True, nogil=True)
def _may_complete(tables: Tables, history: History, work: Scratch, trigger: Ints, entity: Whole, now: Whole, counters: Ints) -> bool:
    """Whether the guards of a trigger have come recently enough, of whatever entity, then of this one, and the bitmaps of its query agree."""
    counters[CONDITIONS] += 1
    for i in range(trigger[GUARDS] + 1, trigger[GUARDS_END]):
        counters[CONDITIONS] += 1
        if work.last[tables.guards[i, 0]] < now - tables.guards[i, 1]:
            return False
    if not tables.shared[0] and not _guarded(history, tables.guards, trigger[GUARDS], trigger[GUARDS_END], entity, now, counters):
        return False
    query = trigger[QUERY]
    begin, end = tables.step_ends[query], tables.step_ends[query + 1]
    slot = now >> tables.width[query]
    if trigger[CHECKS] < trigger[CHECKS_END]:
        return beside(tables.checks, trigger[CHECKS], trigger[CHECKS_END], tables.steps, work.bits, slot, work.stack)
    return begin == end or may_end(tables.steps, begin, end, work.bits, slot, work.stack)


@njit(cache=True, nogil=True)
def _guarded(history: History, guards: Ints, begin: Whole, end: Whole, entity: Whole, now: Whole, counters: Ints) -> bool:
    """Whether the slots of guards [begin, end) hold recent enough events."""
    for i in range(begin, end):
        counters[CONDITIONS] += 1
        slot = find(history, guards[i, 0] << SHIFT | entity)
        if slot < 0 or history.slots[slot, BEGIN] == history.slots[slot, END] or history.pool[history.slots[slot, END] - 1, T] < now - guards[i, 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _prepare(
    tables: Tables, history: History, work: Scratch, query: Whole, entity: Whole, now: Whole, completer: Whole, least: Whole
) -> None:  # fmt: skip
    """Sets up a search of a query."""
    env = work.env
    env[LEAST], env[SINCE], env[SINCE_SEQ] = max(least, work.since[query]), work.since[query], work.since_seq[query]
    env[NOW], env[COMPLETER], env[DUE] = now, completer, now if completer == BY_TIMER else now - 1
    env[OPERATIONS], env[SEARCH] = 0, env[SEARCH] + 1
    first = tables.leaf_ends[query]
    for i in range(first, tables.leaf_ends[query + 1]):
        env[LEAVES + i - first] = find(history, tables.nodes[tables.leaves[i], INSTANCE] << SHIFT | entity)


@njit(cache=True, nogil=True)
def _account(work: Scratch, query: Whole, now: Whole, counters: Ints) -> None:
    """Counts the work of a search; remembers a query that needed too much."""
    counters[WORK] += work.env[OPERATIONS]
    if work.env[OPERATIONS] > MOST_OPERATIONS:
        work.cursor[GIVEN_UP], work.cursor[GIVEN_UP_AT] = query, now


@njit(cache=True, nogil=True)
def _starts(
    tables: Tables, history: History, work: Scratch, query: Whole, entity: Whole, now: Whole, seq: Whole, offset: Whole, node: Whole, counters: Ints
) -> bool:  # fmt: skip
    """Whether the event completes `node`, so that the query has a timer `offset` later. What may prevent it is asked when it is due."""
    env = work.env
    _prepare(tables, history, work, query, entity, now, seq, now + offset - tables.within[query])
    env[TRIGGER], env[LAST_TRIGGER] = 0, FAR
    completes = latest(tables.nodes, env, history.slots, history.pool, node, np.int64(NONE), now, np.int64(FAR), np.int64(1)) != NONE
    _account(work, query, now, counters)
    return bool(completes)


@njit(cache=True, nogil=True)
def search_query(
    tables: Tables, history: History, work: Scratch, out: Found, query: Whole, entity: Whole, now: Whole, completer: Whole, counters: Ints
) -> None:  # fmt: skip
    """Searches one query; writes the detection with its evidence if something is completed now."""
    env, root = work.env, tables.root[query]
    counters[SEARCHED] += 1
    _prepare(tables, history, work, query, entity, now, completer, now - tables.within[query])
    start = latest(tables.nodes, env, history.slots, history.pool, root, np.int64(NONE), now, np.int64(FAR), np.int64(1))
    _account(work, query, now, counters)
    if start == NONE or work.cursor[GIVEN_UP] >= 0:
        return
    env[PICKED], env[OPERATIONS] = 0, -FAR  # What has been found once is found again, without counting.
    pick(tables.nodes, env, history.slots, history.pool, work.picked, root, np.int64(NONE), now, np.int64(FAR), np.int64(1))
    row, item = out.size[0], out.size[1]
    for i in range(env[PICKED]):
        at = work.picked[i, 1]
        out.events[item, 0], out.events[item, 1], out.events[item, 2] = work.picked[i, 0], history.pool[at, T], history.pool[at, SEQ]
        out.entity[item], out.x[item], out.y[item] = history.entity[at], history.x[at], history.y[at]
        item += 1
    out.rows[row, 0], out.rows[row, 1], out.rows[row, 2], out.rows[row, 3], out.rows[row, 4] = query, entity, start, now, item
    out.size[0], out.size[1] = row + 1, item
    counters[DETECTED] += 1
