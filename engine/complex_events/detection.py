"""Events and timers in their order, and what they complete.

An event is stored in the slots of all its instances, then asks only the queries of which it is a trigger; a query is searched only if each
primitive that every occurrence needs has come recently enough ([RFID] 3.2, the minimum condition: here the last event of its slot says so).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.complex_events.history import SHIFT, Floats, History, find, slot_with_room
from engine.complex_events.plan import AT_ONCE, Tables
from engine.complex_events.search import (
    BEGIN,
    BY_TIMER,
    COMPLETER,
    DUE,
    END,
    FAR,
    INSTANCE,
    LEAST,
    LEAVES,
    MOST_OPERATIONS,
    NONE,
    NOW,
    OPERATIONS,
    PICKED,
    SEQ,
    SINCE,
    SINCE_SEQ,
    Ints,
    T,
    Whole,
    latest,
    pick,
)  # fmt: skip
from engine.complex_events.timers import WHO_SHIFT, Timers, pop, push

DONE, POOL_FULL, HEAP_FULL, OUTPUT_FULL, TOO_MUCH_WORK = range(5)
# Places in counters.
ACCESSED, CHECKS, WORK, DETECTED, EVENTS = range(5)
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
    """`env`: see `search`. `seen[q]`: the event that asked query q last. `since`, `since_seq`: a query knows the events after this one."""

    env: Ints
    picked: Ints
    seen: Ints
    since: Ints
    since_seq: Ints
    cursor: Ints


class Found(NamedTuple):
    """Room for detections: `rows` (query, entity, s, e, end of its evidence) and evidence as `events` (leaf's node, t, seq), `entity`, `x`, `y`."""

    rows: Ints
    events: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    size: Ints


def scratch(tables: Tables, since: Ints, since_seq: Ints) -> Scratch:
    """Room to work in, for one step."""
    leaves = int(np.diff(tables.leaf_ends).max(initial=0))
    cursor = np.array([0, NONE, -1, -1, 0], np.int64)
    return Scratch(
        np.zeros(LEAVES + leaves, np.int64), np.zeros((leaves, 2), np.int64), np.full(len(tables.root), -1, np.int64), since, since_seq, cursor
    )  # fmt: skip


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
                _ask(tables, history, work, out, who >> WHO_SHIFT, who & ((1 << WHO_SHIFT) - 1), due, np.int64(BY_TIMER), counters)
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
            slot = find(history, events.instances[k] << SHIFT | slot_entity)
            end = history.slots[slot, END]
            history.pool[end, T], history.pool[end, SEQ], history.entity[end] = t, seq, entity
            history.x[end], history.y[end] = events.x[at], events.y[at]
            history.slots[slot, END] = end + 1
        for k in range(events.ends[at], events.ends[at + 1]):
            instance = events.instances[k]
            for i in range(tables.trigger_ends[instance], tables.trigger_ends[instance + 1]):
                query, offset = tables.trigger_query[i], tables.trigger_offset[i]
                if offset != AT_ONCE:
                    if _starts(tables, history, work, query, slot_entity, t, seq, offset, tables.trigger_node[i], counters):
                        push(heap, t + offset, query << WHO_SHIFT | slot_entity)
                elif work.seen[query] != at:
                    work.seen[query] = at
                    _ask(tables, history, work, out, query, slot_entity, t, seq, counters)
        counters[EVENTS] += 1
        cursor[_NEXT] += 1


@njit(cache=True, nogil=True)
def _prepared(
    tables: Tables, history: History, work: Scratch, query: Whole, entity: Whole, now: Whole, completer: Whole,
    least: Whole, all_needed: Whole, counters: Ints
) -> bool:  # fmt: skip
    """Sets up the search of a query; false when the minimum condition does not hold."""
    env, slots = work.env, history.slots
    env[LEAST], env[SINCE], env[SINCE_SEQ] = max(least, work.since[query]), work.since[query], work.since_seq[query]
    env[NOW], env[COMPLETER], env[DUE] = now, completer, now if completer == BY_TIMER else now - 1
    first = tables.leaf_ends[query]
    for i in range(first, tables.leaf_ends[query + 1]):
        slot = find(history, tables.nodes[tables.leaves[i], INSTANCE] << SHIFT | entity)
        env[LEAVES + i - first] = slot
        if all_needed and tables.needed[i]:
            counters[CHECKS] += 1
            if slot < 0 or slots[slot, BEGIN] == slots[slot, END] or history.pool[slots[slot, END] - 1, T] < env[LEAST]:
                return False
    return True


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
    _prepared(tables, history, work, query, entity, now, seq, now + offset - tables.within[query], np.int64(0), counters)
    env[OPERATIONS] = 0
    completes = latest(tables.nodes, env, history.slots, history.pool, node, np.int64(NONE), now, np.int64(FAR), np.int64(1)) != NONE
    _account(work, query, now, counters)
    return bool(completes)


@njit(cache=True, nogil=True)
def _ask(
    tables: Tables, history: History, work: Scratch, out: Found, query: Whole, entity: Whole, now: Whole, completer: Whole, counters: Ints
) -> None:  # fmt: skip
    """Searches one query; writes the detection with its evidence if something is completed now."""
    env, root = work.env, tables.root[query]
    counters[ACCESSED] += 1
    if not _prepared(tables, history, work, query, entity, now, completer, now - tables.within[query], np.int64(1), counters):
        return
    env[OPERATIONS] = 0
    start = latest(tables.nodes, env, history.slots, history.pool, root, np.int64(NONE), now, np.int64(FAR), np.int64(1))
    _account(work, query, now, counters)
    if start == NONE:
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
