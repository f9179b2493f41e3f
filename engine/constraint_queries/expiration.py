"""How long an event is useful, and the table that says whose time is over.

An event e as V_i can matter to an event that comes at e.t + latest[i][j] for some V_j that may come after it (`latest[i][j] >= 0`: equal times count,
because arrival decides between them). `loose` and `domains` keep it until the greatest of these; `tight` until the least one over those
variables for which no consistent event is stored, and renews it when one comes. Keeping less or more never changes an answer.

References: [CCQ] Algorithm 1 and 2, corrected (docs/papers/ccq.md); 3.3, Expiration Time Array: here a binary heap with lazy renewal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from engine.constraint_queries.pairs import Graph, Ints

FORMS = {"loose": 0, "tight": 1, "domains": 2}
LOOSE, TIGHT, DOMAINS = range(3)
NEVER = np.int64(-(2**63))


@njit(cache=True, nogil=True)
def longest(graph: Graph, i: int) -> Any:
    """How long after an event as V_i another variable's event can come; NEVER if none can."""
    found = NEVER
    for j in range(len(graph.latest)):
        if j != i and graph.latest[i, j] >= 0:
            found = max(found, graph.latest[i, j])
    return found


@njit(cache=True, nogil=True)
def awaited(graph: Graph, i: int, sizes: Ints) -> Any:
    """How long an event as V_i is useful at least, given the sizes of the other variables' domains: until what is missing can no more come."""
    found = NEVER
    for j in range(len(graph.latest)):
        if j != i and graph.latest[i, j] >= 0 and sizes[j] == 0 and (found == NEVER or graph.latest[i, j] < found):
            found = graph.latest[i, j]
    return longest(graph, i) if found == NEVER else found


@njit(cache=True, nogil=True)
def push(times: Ints, events: Ints, size: Any, time: Any, event: int) -> None:
    """Puts an entry into the heap of `size` entries, which has room."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if times[above] <= time:
            break
        times[at], events[at] = times[above], events[above]
        at = above
    times[at], events[at] = time, event


@njit(cache=True, nogil=True)
def drop_first(times: Ints, events: Ints, size: int) -> None:
    """Takes the entry with the least time out of the heap of `size` entries."""
    last = size - 1
    time, event = times[last], events[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if time <= times[below]:
            break
        times[at], events[at] = times[below], events[below]
        at = below
    times[at], events[at] = time, event


@njit(cache=True, nogil=True)
def expire(expires: Ints, gone: Any, times: Ints, events: Ints, size: Any, now: int) -> Any:
    """Marks the events whose time is over at `now` as gone. Gives the heap's new size and how many went."""
    went = 0
    while size > 0 and times[0] < now:
        event = events[0]
        drop_first(times, events, size)
        size -= 1
        if expires[event] >= now:
            # Renewed since it was entered: it comes back with its new time.
            push(times, events, size, expires[event], event)
            size += 1
        else:
            gone[event] = True
            went += 1
    return size, went
