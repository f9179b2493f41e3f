"""Timers: a binary heap of (due time, query, entity)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.complex_events.search import Int, Ints, kernel

WHO_SHIFT = 32
"""`who` is the program's query << WHO_SHIFT | entity."""


class Timers(NamedTuple):
    """`due[0]`, `who[0]` is the first timer; the heap has `size[0]` timers. A timer may be in it more than once."""

    due: Ints
    who: Ints
    size: Ints


def timers(due: Ints, who: Ints, room: int) -> Timers:
    """A heap of these timers with room for `room` more."""
    order = np.lexsort((who, due))  # A sorted list is a heap.
    more = np.zeros(len(due) // 2 + room, np.int64)
    return Timers(np.append(due[order], more), np.append(who[order], more), np.array([len(due)], np.int64))


@kernel()
def push(heap: Timers, due: Int, who: Int) -> None:
    at = heap.size[0]
    heap.size[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if heap.due[above] < due or (heap.due[above] == due and heap.who[above] <= who):
            break
        heap.due[at], heap.who[at] = heap.due[above], heap.who[above]
        at = above
    heap.due[at], heap.who[at] = due, who


@kernel()
def pop(heap: Timers) -> None:
    """Removes the first timer."""
    heap.size[0] -= 1
    size = heap.size[0]
    due, who = heap.due[size], heap.who[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and (
            heap.due[below + 1] < heap.due[below] or (heap.due[below + 1] == heap.due[below] and heap.who[below + 1] < heap.who[below])
        ):
            below += 1
        if due < heap.due[below] or (due == heap.due[below] and who <= heap.who[below]):
            break
        heap.due[at], heap.who[at] = heap.due[below], heap.who[below]
        at = below
    if size:
        heap.due[at], heap.who[at] = due, who
