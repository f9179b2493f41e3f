"""Timers: a binary heap of (due time, query, entity)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.complex_events.search import Int, Ints
from engine.index.compiled import kernel

QUERY_SHIFT = 32
"""`key` is the program's query << QUERY_SHIFT | entity."""


class Timers(NamedTuple):
    """`due[0]`, `key[0]` is the first timer; the heap has `size[0]` timers. A timer
    may be in it more than once."""

    due: Ints
    key: Ints
    size: Ints


def timers(due: Ints, key: Ints, capacity: int) -> Timers:
    """A heap of these timers with room for `capacity` more."""
    order = np.lexsort((key, due))  # A sorted list is a heap.
    more = np.zeros(len(due) // 2 + capacity, np.int64)
    return Timers(np.append(due[order], more), np.append(key[order], more), np.array([len(due)], np.int64))


@kernel()
def push(heap: Timers, due: Int, key: Int) -> None:
    at = heap.size[0]
    heap.size[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if heap.due[above] < due or (heap.due[above] == due and heap.key[above] <= key):
            break
        heap.due[at], heap.key[at] = heap.due[above], heap.key[above]
        at = above
    heap.due[at], heap.key[at] = due, key


@kernel()
def pop(heap: Timers) -> None:
    """Removes the first timer."""
    heap.size[0] -= 1
    size = heap.size[0]
    due, key = heap.due[size], heap.key[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and (
            heap.due[below + 1] < heap.due[below] or (heap.due[below + 1] == heap.due[below] and heap.key[below + 1] < heap.key[below])
        ):
            below += 1
        if due < heap.due[below] or (due == heap.due[below] and key <= heap.key[below]):
            break
        heap.due[at], heap.key[at] = heap.due[below], heap.key[below]
        at = below
    if size:
        heap.due[at], heap.key[at] = due, key
