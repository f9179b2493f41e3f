"""Working memory of the kernels, and one search: of one query, for one event or timer.

A search reads all stored events, or (`search_past`) only those up to an earlier event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.complex_events.history import DIRECT as BY_CLASS
from engine.complex_events.history import PLACE, SHIFT, Floats, History, find
from engine.complex_events.lists import NodeLists, lists
from engine.complex_events.plan import Tables
from engine.complex_events.search import (
    BEGIN,
    BY_TIMER,
    COMPLETER,
    DIRECT,
    DUE,
    END,
    FAR,
    KIND,
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
    Int,
    Ints,
    Memory,
    T,
    last_at,
    latest,
    memory,
    pick,
)  # fmt: skip
from engine.index.compiled import kernel

# Places in counters.
ACCESSED, CONDITIONS, WORK, DETECTED, EVENTS, SEARCHED, LISTED, ENTRIES = range(8)
COUNTERS = 8
# Indexes in cursor: next event; the timer that fired last; a query whose search was given up, and
# its time; running number of events; the next of the queries with deferred candidates to evaluate,
# and why events are not processed meanwhile.
NEXT, LAST_DUE, LAST_KEY, GIVEN_UP, GIVEN_UP_AT, EVENT, ASSERTED, REASON = range(8)
CANDIDATES = 1_048_576
"""The greatest number of deferred events; an event counts once for every
query that it may complete."""
MOST_WAITING = 256
"""The greatest number of deferred events of a query."""
C_TIME, C_SEQ, C_TRIGGER, C_BEFORE = range(4)
"""Columns of `Waiting.candidates`: the event, its trigger (-1: one of several), and the
query's candidate before it."""
OLDEST, NEWEST, COUNT, BY_LISTS = range(4)
"""Columns of `Waiting.queries`: a query's candidates, and whether it is evaluated by lists."""


class InstanceEvents(NamedTuple):
    """Events in (t, seq) with their instances, `instances[ends[i]:ends[i + 1]]`."""

    t: Ints
    seq: Ints
    entity: npt.NDArray[np.int32]
    x: Floats
    y: Floats
    ends: Ints
    instances: Ints


class DeferredEvents(NamedTuple):
    """Deferred events that may complete queries evaluated by lists: `candidates`, a linked list for
    each of `queries`; `touched`: queries that have some.

    `size`: numbers of candidates and of touched queries, and whether some query has
    the greatest number allowed.
    """

    candidates: Ints
    queries: Ints
    touched: Ints
    size: Ints


class SearchBuffers(NamedTuple):
    """`env`: see `search`. `seen[q]`: the last event that visited query q.

    `since`, `since_seq`: a query reads the events after this one. `last[c]`: the time of the
    last event of class c, of any entity; one more entry counts as now. `past`: a query's
    slots as of an earlier event.
    """

    env: Ints
    picked: Ints
    seen: Ints
    since: Ints
    since_seq: Ints
    last: Ints
    past: Ints
    lists: NodeLists
    waiting: DeferredEvents
    cursor: Ints


class Detections(NamedTuple):
    """Room for detections: `rows` (query, entity, s, e, end of its evidence) and evidence as
    `events` (leaf's node, t, seq, then `History.entity_xy`)."""

    rows: Ints
    events: Ints
    size: Ints


def scratch(tables: Tables, since: Ints, since_seq: Ints, last: Ints) -> SearchBuffers:
    """Working memory; call `reset` before each step."""
    leaves, n = int(np.diff(tables.leaf_ends).max(initial=0)), len(tables.root)
    queries = np.zeros((n, 4), np.int64)
    queries[:, BY_LISTS] = tables.listed
    waiting = DeferredEvents(
        np.zeros((max(CANDIDATES, len(tables.triggers)) if tables.listed.any() else 0, 4), np.int64),
        queries,
        np.zeros(n + 1, np.int64),
        np.zeros(3, np.int64),
    )
    return SearchBuffers(
        np.zeros(LEAVES + leaves, np.int64), np.zeros((leaves, 2), np.int64), np.full(n, -1, np.int64), since, since_seq, last,
        np.zeros((leaves, 4), np.int64), lists(2 * leaves), waiting, np.zeros(8, np.int64),
    )  # fmt: skip


def reset(work: SearchBuffers) -> None:
    """Resets the working memory before a step."""
    waiting = work.waiting
    waiting.queries[waiting.touched[: waiting.size[1]], COUNT] = 0
    waiting.size[:] = 0
    work.cursor[[NEXT, LAST_DUE, LAST_KEY, GIVEN_UP, ASSERTED]] = 0, NONE, -1, -1, -1


def found(rows: int, items: int) -> Detections:
    return Detections(np.zeros((rows, 5), np.int64), np.zeros((items, 3 + PLACE), np.int64), np.zeros(2, np.int64))


@kernel(inline=True)
def prepare(
    tables: Tables, history: History, work: SearchBuffers, query: Int, entity: Int, now: Int, completer: Int, least: Int
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
def count_work(work: SearchBuffers, query: Int, now: Int, counters: Ints) -> None:
    """Counts the work of a search; records a query that exceeded the limit."""
    counters[WORK] += work.env[OPERATIONS]
    if work.env[OPERATIONS] > MOST_OPERATIONS:
        work.cursor[GIVEN_UP], work.cursor[GIVEN_UP_AT] = query, now


@kernel(inline=True)
def write_detection(
    history: History, work: SearchBuffers, out: Detections, query: Int, entity: Int, start: Int, now: Int, count: Int, counters: Ints
) -> None:
    """Writes a detection with the `count` events that are picked."""
    row, item = out.size[0], out.size[1]
    for i in range(count):
        at = work.picked[i, 1]
        out.events[item, 0], out.events[item, 1], out.events[item, 2] = work.picked[i, 0], history.pool[at, T], history.pool[at, SEQ]
        for column in range(PLACE):
            out.events[item, 3 + column] = history.entity_xy[at, column]
        item += 1
    out.rows[row, 0], out.rows[row, 1], out.rows[row, 2], out.rows[row, 3], out.rows[row, 4] = query, entity, start, now, item
    out.size[0], out.size[1] = row + 1, item
    counters[DETECTED] += 1


@kernel(inline=True)
def _search_prepared(
    tables: Tables, history: History, slots: Memory, work: SearchBuffers, out: Detections, query: Int, entity: Int, now: Int, counters: Ints
) -> None:  # fmt: skip
    """Searches the query that was prepared; asserts the detection if an
    occurrence is completed now."""
    env, root = work.env, tables.root[query]
    counters[SEARCHED] += 1
    nodes, own, pool = memory(tables.nodes), memory(env), memory(history.pool)
    start = latest(nodes, own, slots, pool, root, NONE, now, FAR, 1)
    count_work(work, query, now, counters)
    if start == NONE or work.cursor[GIVEN_UP] >= 0:
        return
    env[PICKED], env[OPERATIONS] = 0, -FAR  # The search is repeated, without counting operations.
    pick(nodes, own, slots, pool, memory(work.picked), root, NONE, now, FAR, 1)
    write_detection(history, work, out, query, entity, start, now, env[PICKED], counters)


@kernel(inline=True)
def search_query(
    tables: Tables, history: History, work: SearchBuffers, out: Detections, query: Int, entity: Int, now: Int, completer: Int, counters: Ints
) -> None:  # fmt: skip
    """Searches one query for the present event or timer."""
    prepare(tables, history, work, query, entity, now, completer, now - tables.within[query])
    _search_prepared(tables, history, memory(history.slots), work, out, query, entity, now, counters)


@kernel()
def search_past(tables: Tables, history: History, work: SearchBuffers, out: Detections, query: Int, now: Int, completer: Int, counters: Ints) -> None:
    """Like `search_query`, for an event after which others have been stored; for
    queries over all entities."""
    prepare(tables, history, work, query, 0, now, completer, now - tables.within[query])
    work.env[DIRECT] = 0
    pool, first = memory(history.pool), tables.leaf_ends[query]
    for i in range(first, tables.leaf_ends[query + 1]):
        slot = history.slots[tables.nodes[tables.leaves[i], KIND]]
        last = last_at(pool, slot[BEGIN], slot[END], now)
        while last >= slot[BEGIN] and history.pool[last, T] == now and history.pool[last, SEQ] > completer:
            last -= 1
        work.past[i - first, BEGIN], work.past[i - first, END] = slot[BEGIN], last + 1
        work.env[LEAVES + i - first] = i - first
    _search_prepared(tables, history, memory(work.past), work, out, query, 0, now, counters)
