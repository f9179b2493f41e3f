"""All occurrences of a pattern in a period of time together, from the leaves up.

If several events in a part of the stream may complete a query, a search for each would
visit the same nodes repeatedly. Here each node gets a **list** of its occurrences, merged
from the lists of its parts, in the order of their ends. The contents of a list depend on
the node's place in the pattern:

- mostly the greatest s of each end is enough: one entry for each end;
- below the second part of a sequence with an upper bound every start counts: the entries of one end
  are contiguous, the latest start first.

A list extends as far back as it may be read (BACK). The root's entries are the detections; `trace`
finds their witnesses from the top down, with the choices of `search.pick`. If lists get too long
(TOO_LONG) or do not decide (UNSURE: the choice is for a start that is not the greatest of its end),
the caller searches. Both methods have the same results, so an answer does not depend on the method.

For patterns without negation, over all entities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.complex_events.search import (
    BEGIN,
    BOTH,
    EITHER,
    END,
    FAR,
    FIRST,
    HIGH,
    KIND,
    LAST,
    LOW,
    NODE,
    NONE,
    OP,
    PRIMITIVE,
    SECOND,
    SEQ,
    SEQUENCE,
    Int,
    Ints,
    Memory,
    T,
    last_at,
)  # fmt: skip
from engine.index.compiled import kernel

BACK, EVERY, NEEDED, ORDER = range(4)
REQUIREMENT = 4
"""Columns of `requirements`, one row for each row of `nodes`. BACK: how much earlier than the
pattern a node may end. EVERY: whether every start counts. NEEDED: whether every occurrence of the
pattern contains the node. ORDER: the node, counted from the root, whose list is made at this
position: parts before the whole, the rarer part first, because no further list is made once a
needed node has no entry."""
S, E, ARRIVAL = range(3)
ENTRY = 3
"""Columns of entries: an occurrence's first and last time, and the seq of the event it ends
with."""
FROM, UNTIL, POSITION = range(3)
LIST = 3
"""Columns of `Lists.ends`: a node's entries [FROM, UNTIL); for a leaf, the index of
its first event in the pool."""
EXACT, EARLIEST, LATEST, START = range(4)
WANT = 4
"""Columns of `Lists.wanted`. EXACT: 1 if the occurrence must end with the completing event, 0 if at
or before it, NOTHING if none is wanted; bounds of its end; its start."""
NOTHING = -1
ROOM = 8_192
"""The greatest number of entries in all lists of a query."""
TOO_LONG, UNSURE = -1, -2


class NodeLists(NamedTuple):
    """`items`: entries. For each node of one query, counted from its root: `ends`, the range of its
    list, and `wanted`, the search of `trace`."""

    items: Ints
    ends: Ints
    wanted: Ints


class PatternTree(NamedTuple):
    """A query's pattern from node `root` on, and the lists of its nodes: `items` and
    `own`, the `ends` of Lists."""

    nodes: Memory
    requirements: Memory
    items: Memory
    own: Memory
    root: Int


class ListInput(NamedTuple):
    """The input of lists: the stored events (`slots` of classes) after (`since`, `since_seq`), for
    ends of the pattern in [begin, last], not longer than `within`."""

    slots: Memory
    pool: Memory
    begin: Int
    last: Int
    within: Int
    since: Int
    since_seq: Int


class EndBounds(NamedTuple):
    """The end of a wanted occurrence: in [earliest, latest], at or before the event (now,
    arrival), or (exact) with it."""

    exact: Int
    earliest: Int
    latest: Int
    now: Int
    arrival: Int


def lists(most_nodes: int) -> NodeLists:
    """Room for the lists of one query at a time."""
    return NodeLists(np.zeros((ROOM, ENTRY), np.int64), np.zeros((most_nodes, LIST), np.int64), np.zeros((most_nodes, WANT), np.int64))


@kernel(inline=True)
def _gather(tree: PatternTree, given: ListInput, i: Int, top: Int, capacity: Int) -> Int:
    """Writes the events of node i's class that may be needed. Returns the end of the list."""
    items, own, slots, pool, since, since_seq = tree.items, tree.own, given.slots, given.pool, given.since, given.since_seq
    node = tree.root + i
    kind, earliest, last = tree.nodes[node * NODE + KIND], given.begin - tree.requirements[node * REQUIREMENT + BACK], given.last
    begin = slots[kind * 4 + BEGIN]
    end = last_at(pool, begin, slots[kind * 4 + END], last) + 1
    at = end
    while at > begin and pool[(at - 1) * 2 + T] >= earliest:
        at -= 1
        if end - at > capacity - top:
            return TOO_LONG
    while at < end and (pool[at * 2 + T] < since or (pool[at * 2 + T] == since and pool[at * 2 + SEQ] <= since_seq)):
        at += 1
    own[i * LIST + POSITION] = at
    while at < end:
        t = pool[at * 2 + T]
        items[top * ENTRY + S], items[top * ENTRY + E], items[top * ENTRY + ARRIVAL] = t, t, pool[at * 2 + SEQ]
        top += 1
        at += 1
    return top


@kernel(inline=True)
def _insert_start(items: Memory, group: Int, top: Int, s: Int, e: Int, arrival: Int) -> Int:
    """Inserts a start among those of one end, entries [group, top), latest first, without
    duplicates. Returns the end of the list."""
    at = top
    while at > group and items[(at - 1) * ENTRY + S] < s:
        at -= 1
    if at > group and items[(at - 1) * ENTRY + S] == s:
        return top
    for i in range(top, at, -1):
        items[i * ENTRY + S] = items[(i - 1) * ENTRY + S]
    items[at * ENTRY + S], items[top * ENTRY + E], items[top * ENTRY + ARRIVAL] = s, e, arrival
    return top + 1


@kernel(inline=True)
def _before(items: Memory, a: Int, b: Int) -> bool:
    """Whether entry a ends before entry b."""
    e, other = items[a * ENTRY + E], items[b * ENTRY + E]
    return bool(e < other or (e == other and items[a * ENTRY + ARRIVAL] < items[b * ENTRY + ARRIVAL]))


@kernel(inline=True)
def _write_or(items: Memory, top: Int, capacity: Int, p: Int, p_end: Int, q: Int, q_end: Int, every: Int) -> Int:
    """Writes the list of p OR q from the lists of p and q. Returns its end."""
    i, j, group = p, q, top
    if top + (p_end - p) + (q_end - q) > capacity:
        return TOO_LONG
    while i < p_end or j < q_end:
        if j == q_end or (i < p_end and not _before(items, j, i)):
            at = i
            i += 1
        else:
            at = j
            j += 1
        s, e, arrival = items[at * ENTRY + S], items[at * ENTRY + E], items[at * ENTRY + ARRIVAL]
        if top > group and (items[group * ENTRY + E] != e or items[group * ENTRY + ARRIVAL] != arrival):
            group = top
        if every or top == group:
            top = _insert_start(items, group, top, s, e, arrival)
        else:
            items[group * ENTRY + S] = max(items[group * ENTRY + S], s)
    return top


@kernel(inline=True)
def _write_sequence(
    items: Memory, top: Int, capacity: Int, p: Int, p_end: Int, q: Int, q_end: Int, low: Int, high: Int, within: Int, every: Int
) -> Int:  # fmt: skip
    """Writes the list of p :[low,high] q from the lists of p and q. Returns its end."""
    group, after = top, p
    for a in range(q, q_end):
        start, e, arrival = items[a * ENTRY + S], items[a * ENTRY + E], items[a * ENTRY + ARRIVAL]
        if top > group and (items[group * ENTRY + E] != e or items[group * ENTRY + ARRIVAL] != arrival):
            group = top
        # Starts mostly ascend, so the first entry that ends too late is near
        # that for the start before.
        while after < p_end and items[after * ENTRY + E] <= start - low:
            after += 1
        while after > p and items[(after - 1) * ENTRY + E] > start - low:
            after -= 1
        b = after - 1
        best = np.int64(NONE)
        # An occurrence starts at or before its end, so earlier ends cannot have a
        # greater start than the best.
        while b >= p and items[b * ENTRY + E] >= max(start - high, best):
            s = items[b * ENTRY + S]
            if e - s <= within and not every:
                best = max(best, s)
            elif e - s <= within:
                if top == capacity:
                    return TOO_LONG
                top = _insert_start(items, group, top, s, e, arrival)
            b -= 1
        if best == NONE:
            continue
        if top > group:
            items[group * ENTRY + S] = max(items[group * ENTRY + S], best)
        elif top == capacity:
            return TOO_LONG
        else:
            top = _insert_start(items, group, top, best, e, arrival)
    return top


@kernel(inline=True)
def _with_each(
    items: Memory, group: Int, top: Int, capacity: Int, a: Int, a_end: Int, b: Int, b_end: Int, greatest: Int, span: Int
) -> Int:  # fmt: skip
    """All starts for one part that ends now, entries [a, a_end), and the other at or before now,
    entries [b, b_end) with `greatest` start."""
    e, arrival = items[a * ENTRY + E], items[a * ENTRY + ARRIVAL]
    if top + (a_end - a) + (b_end - b) > capacity:
        return TOO_LONG
    for i in range(a, a_end):
        s = items[i * ENTRY + S]
        if s <= greatest and e - s <= span:
            top = _insert_start(items, group, top, s, e, arrival)
    most = items[a * ENTRY + S]
    for i in range(b_end - 1, b - 1, -1):
        if items[i * ENTRY + E] < e - span:
            break
        s = items[i * ENTRY + S]
        if s <= most and e - s <= span:
            top = _insert_start(items, group, top, s, e, arrival)
    return top


@kernel(inline=True)
def _after_group(items: Memory, at: Int, end: Int) -> Int:
    """The first entry after those with the same end."""
    after = at + 1
    while after < end and items[after * ENTRY + E] == items[at * ENTRY + E] and items[after * ENTRY + ARRIVAL] == items[at * ENTRY + ARRIVAL]:
        after += 1
    return after


@kernel(inline=True)
def _write_and(items: Memory, top: Int, capacity: Int, p: Int, p_end: Int, q: Int, q_end: Int, span: Int) -> Int:
    """Writes the list of p AND q, or p ;[span] q, from the lists of p and q. Returns its end. The
    parts' entries are read in the order of their ends.

    There is no branch on which part comes next, because it would be unpredictable: an entry is
    written in any case, and counted if it is valid.
    """
    i, j, never = p, q, np.int64(NONE)
    first, second = never, never  # The greatest starts so far.
    if top + (p_end - p) + (q_end - q) > capacity:
        return TOO_LONG
    while i < p_end and j < q_end:
        s, e, arrival = items[i * ENTRY + S], items[i * ENTRY + E], items[i * ENTRY + ARRIVAL]
        other, other_e, other_arrival = items[j * ENTRY + S], items[j * ENTRY + E], items[j * ENTRY + ARRIVAL]
        of_first = (e < other_e) | ((e == other_e) & (arrival <= other_arrival))
        of_second = (other_e < e) | ((e == other_e) & (other_arrival <= arrival))
        first, second = max(first, s if of_first else never), max(second, other if of_second else never)
        best = max(min(s, second) if of_first else never, min(other, first) if of_second else never)
        end = e if of_first else other_e
        items[top * ENTRY + S], items[top * ENTRY + E], items[top * ENTRY + ARRIVAL] = best, end, arrival if of_first else other_arrival
        top += (best != never) & (end - best <= span)
        i += of_first
        j += of_second
    top = _with_greatest(items, top, i, p_end, second, span)
    return _with_greatest(items, top, j, q_end, first, span)


@kernel(inline=True)
def _with_greatest(items: Memory, top: Int, a: Int, a_end: Int, greatest: Int, span: Int) -> Int:
    """Writes entries [a, a_end) of one part if the other has `greatest` start and no more entries.
    Returns the end of the list."""
    for at in range(a, a_end if greatest != NONE else a):
        best, end = min(items[at * ENTRY + S], greatest), items[at * ENTRY + E]
        items[top * ENTRY + S], items[top * ENTRY + E], items[top * ENTRY + ARRIVAL] = best, end, items[at * ENTRY + ARRIVAL]
        top += end - best <= span
    return top


@kernel(inline=True)
def _write_and_all_starts(items: Memory, top: Int, capacity: Int, p: Int, p_end: Int, q: Int, q_end: Int, span: Int) -> Int:
    """Like `_write_and`, with all starts of each end."""
    i, j = p, q
    first, second = np.int64(NONE), np.int64(NONE)  # The greatest starts so far.
    while i < p_end or j < q_end:
        of_first = j == q_end or (i < p_end and not _before(items, j, i))
        of_second = i == p_end or (j < q_end and not _before(items, i, j))
        from_i, from_j, group = i, j, top
        if of_first:
            first = max(first, items[i * ENTRY + S])
            i = _after_group(items, i, p_end)
        if of_second:
            second = max(second, items[j * ENTRY + S])
            j = _after_group(items, j, q_end)
        if of_first:
            top = _with_each(items, group, top, capacity, from_i, i, q, j, second, span)
        if of_second and top >= 0:
            top = _with_each(items, group, top, capacity, from_j, j, p, i, first, span)
        if top < 0:
            return TOO_LONG
    return top


@kernel()
def fill(tree: PatternTree, given: ListInput, capacity: Int) -> Int:
    """Makes the lists of all nodes, with `capacity` for entries. Returns the number of all entries,
    0 if the root has none, or TOO_LONG."""
    nodes, requirements, items, own, root = tree
    within, top = given.within, np.int64(0)
    for place in range(root, nodes[root * NODE + LAST] + 1):
        i, start = requirements[place * REQUIREMENT + ORDER], top
        node = root + i
        op, every = nodes[node * NODE + OP], requirements[node * REQUIREMENT + EVERY]
        if op == PRIMITIVE:
            top = _gather(tree, given, i, top, capacity)
        else:
            first, second, high = (nodes[node * NODE + FIRST] - root) * LIST, (nodes[node * NODE + SECOND] - root) * LIST, nodes[node * NODE + HIGH]
            p, p_end, q, q_end = own[first + FROM], own[first + UNTIL], own[second + FROM], own[second + UNTIL]
            if op == EITHER:
                top = _write_or(items, top, capacity, p, p_end, q, q_end, every)
            elif p < p_end and q < q_end:
                if op == BOTH and every:
                    top = _write_and_all_starts(items, top, capacity, p, p_end, q, q_end, min(high, within))
                elif op == BOTH:
                    top = _write_and(items, top, capacity, p, p_end, q, q_end, min(high, within))
                else:
                    top = _write_sequence(items, top, capacity, p, p_end, q, q_end, nodes[node * NODE + LOW], high, within, every)
        if top < 0:
            return TOO_LONG
        own[i * LIST + FROM], own[i * LIST + UNTIL] = start, top
        if top == start and requirements[node * REQUIREMENT + NEEDED]:
            return np.int64(0)
    return top


# -- witnesses -------------------------------------------------------------------------------------


@kernel(inline=True)
def _last_seen(tree: PatternTree, i: Int, latest: Int, now: Int, arrival: Int) -> Int:
    """The last entry of node i's list that ends at or before `latest` (at most `now`) and the event
    (now, arrival); if none, the index before the first."""
    items, own = tree.items, tree.own
    at = own[i * LIST + UNTIL] - 1
    while at >= own[i * LIST + FROM] and (items[at * ENTRY + E] > latest or (items[at * ENTRY + E] == now and items[at * ENTRY + ARRIVAL] > arrival)):
        at -= 1
    return at


@kernel(inline=True)
def _greatest(tree: PatternTree, i: Int, ending: EndBounds, below: Int) -> Int:
    """The greatest start below `below` of node i's entries with that ending; else NONE."""
    items, own, (exact, earliest, latest, now, arrival) = tree.items, tree.own, ending
    best, floor = np.int64(NONE), now if exact else earliest
    at = _last_seen(tree, i, now if exact else latest, now, arrival)
    while at >= own[i * LIST + FROM] and items[at * ENTRY + E] >= max(floor, best):
        if exact and items[at * ENTRY + ARRIVAL] != arrival:
            break
        s = items[at * ENTRY + S]
        if best < s and s < below:
            best = s
        at -= 1
    return best


@kernel(inline=True)
def _has(tree: PatternTree, node: Int, ending: EndBounds, s: Int) -> Int:
    """Whether an occurrence of a node that starts at `s` has that ending: 1, 0, or UNSURE."""
    (nodes, requirements, items, own, root), (exact, earliest, latest, now, arrival) = tree, ending
    i, later, floor = node - root, False, now if exact else earliest
    at = _last_seen(tree, i, now if exact else latest, now, arrival)
    while at >= own[i * LIST + FROM] and items[at * ENTRY + E] >= max(floor, s):
        if exact and items[at * ENTRY + ARRIVAL] != arrival:
            break
        if items[at * ENTRY + S] >= s:
            if items[at * ENTRY + S] == s:
                return 1
            later = True
        at -= 1
    if not later or requirements[node * REQUIREMENT + EVERY]:
        return 0
    # An end with a later start may also have this one, but only if some event has this time.
    for leaf in range(i, nodes[node * NODE + LAST] - root + 1):
        if nodes[(root + leaf) * NODE + OP] == PRIMITIVE:
            at = own[leaf * LIST + UNTIL] - 1
            while at >= own[leaf * LIST + FROM] and items[at * ENTRY + S] >= s:
                if items[at * ENTRY + S] == s:
                    return UNSURE
                at -= 1
    return 0


@kernel(inline=True)
def _request(wanted: Memory, i: Int, exact: Int, earliest: Int, latest: Int, start: Int) -> None:
    wanted[i * WANT + EXACT], wanted[i * WANT + EARLIEST], wanted[i * WANT + LATEST], wanted[i * WANT + START] = exact, earliest, latest, start


@kernel(inline=True)
def _request_sequence(tree: PatternTree, wanted: Memory, node: Int, ending: EndBounds, s: Int) -> Int:
    """Finds the latest start of the second part for which the first part
    starts at `s`: 1 or UNSURE."""
    nodes, root, (exact, earliest, latest, now, arrival) = tree.nodes, tree.root, ending
    first, second, none = nodes[node * NODE + FIRST], nodes[node * NODE + SECOND], np.int64(0)
    start = np.int64(FAR)
    while True:
        start = _greatest(tree, second - root, ending, start)
        if start == NONE:
            return UNSURE
        after, end = start - nodes[node * NODE + HIGH], start - nodes[node * NODE + LOW]
        has = _has(tree, first, EndBounds(none, after, end, now, arrival), s)
        if has == UNSURE:
            return UNSURE
        if has:
            _request(wanted, first - root, none, after, end, s)
            _request(wanted, second - root, exact, earliest, latest, start)
            return 1


@kernel(inline=True)
def _request_and(tree: PatternTree, wanted: Memory, node: Int, ending: EndBounds, s: Int) -> Int:
    """Finds which part has the ending, and which starts at `s`, in the
    order of `pick`: 1 or UNSURE."""
    nodes, root, (exact, earliest, latest, now, arrival) = tree.nodes, tree.root, ending
    never = np.int64(NONE)
    end = latest if nodes[node * NODE + HIGH] == FAR else min(latest, s + nodes[node * NODE + HIGH])
    for choice in range(4):
        which, limited = choice // 2, choice % 2
        part, other = nodes[node * NODE + FIRST + limited], nodes[node * NODE + FIRST + 1 - limited]
        exact_part, from_part = (exact, earliest) if which == limited else (np.int64(0), never)
        exact_other, from_other = (exact, earliest) if which != limited else (np.int64(0), never)
        greatest = _greatest(tree, other - root, EndBounds(exact_other, from_other, end, now, arrival), np.int64(FAR))
        if greatest < s:
            continue
        has = _has(tree, part, EndBounds(exact_part, from_part, end, now, arrival), s)
        if has == UNSURE:
            return UNSURE
        if has:
            _request(wanted, part - root, exact_part, from_part, end, s)
            _request(wanted, other - root, exact_other, from_other, end, greatest)
            return 1
    return UNSURE


@kernel()
def trace(tree: PatternTree, wanted: Memory, picked: Memory, start: Int, now: Int, arrival: Int) -> Int:
    """Writes the events of the occurrence that `search.pick` chooses, in the same form.
    Returns their number, or UNSURE."""
    nodes, own, root = tree.nodes, tree.own, tree.root
    count, last = np.int64(0), nodes[root * NODE + LAST]
    for i in range(last - root + 1):
        wanted[i * WANT + EXACT] = NOTHING
    _request(wanted, np.int64(0), np.int64(1), np.int64(NONE), now, start)
    for node in range(root, last + 1):
        i, op = node - root, nodes[node * NODE + OP]
        exact, earliest, latest, s = wanted[i * WANT + EXACT], wanted[i * WANT + EARLIEST], wanted[i * WANT + LATEST], wanted[i * WANT + START]
        found, ending = np.int64(1), EndBounds(exact, earliest, latest, now, arrival)
        if exact == NOTHING:
            continue
        if op == PRIMITIVE:
            at = _last_seen(tree, i, s, now, arrival)
            picked[count * 2], picked[count * 2 + 1] = node, own[i * LIST + POSITION] + at - own[i * LIST + FROM]
            count += 1
        elif op == EITHER:
            first, second = nodes[node * NODE + FIRST], nodes[node * NODE + SECOND]
            found = _has(tree, first, ending, s)
            _request(wanted, (first if found else second) - root, exact, earliest, latest, s)
        elif op == SEQUENCE:
            found = _request_sequence(tree, wanted, node, ending, s)
        else:
            found = _request_and(tree, wanted, node, ending, s)
        if found == UNSURE:
            return UNSURE
    return count
