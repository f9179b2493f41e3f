"""The exact search over stored events: whether an event or a timer completes a pattern now.

The central function is `latest`: the greatest s of the occurrences of a node with e in a span, s at
most a limit and at least `env[LEAST]`. It is computed for each node from its parts:

- a sequence needs the *latest* start of its second part, then the latest start of a first part that
  ends before it. Without an upper bound and without negation the latest start of the second part is
  always best; with them all its starts are tried, the latest first;
- a negation only moves the lower end of the span in which the first part must end, to the latest
  start of a negated occurrence that ends in time;
- a negation before or around a part (BEFORE, AROUND) extends further back than an occurrence: only
  for it `env[LEAST]` is lowered;
- an interval tries starts from the latest down, each with the ends that its span allows.

The order of events of equal time matters only for "completed now" (`exact`): the stored events are
those up to the completing one, so that is the last of its slot. Timers that are due now come after
all events of now, so an event's search does not see them.

References: specification 5.5; [RFID] 3.2 (from the trigger node to its siblings and up). The search
replaces the candidate sets of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from engine.index.compiled import kernel, part

Ints = npt.NDArray[np.int64]
Int = Any
"""A whole number inside kernels: int64 to numba, int to Python."""

Memory = Any
"""The beginning of an array of whole numbers inside kernels."""

# Columns of `nodes`.
OP, FIRST, SECOND, WITHOUT, LOW, HIGH, LAST = range(7)
NODE = 8
"""Numbers of a row: one cache line. LAST: the last of the nodes below, which are numbered from the
node's own number on. LOW of BEFORE and AROUND: the greatest length of the negated part."""
LEAF, KIND = FIRST, SECOND
"""Columns of a primitive: the number of its leaf in the query, and its class."""
PRIMITIVE, BOTH, EITHER, SEQUENCE, ABSENCE, BEFORE, AROUND = range(7)
# Columns of `slots`: a slot owns pool[BASE:LIMIT]; its events are pool[BEGIN:END] in (t, seq).
BASE, BEGIN, END, LIMIT = range(4)
# Columns of `pool`.
T, SEQ = range(2)
# Indexes in `env`; from LEAVES on the slot of each leaf of the query, -1 if nothing is stored; from
# MEMO on cached results of this search.
LEAST, SINCE, SINCE_SEQ, NOW, COMPLETER, DUE, OPERATIONS, PICKED, TRIGGER, LAST_TRIGGER, SEARCH, DIRECT = range(12)
MEMO = 12
"""DIRECT: slots have the numbers of classes, and those from LEAVES on are not used."""
_KEPT, _WIDTH = 256, 6
LEAVES = MEMO + _KEPT * _WIDTH

NONE = -(2**62)
"""No occurrence; less than every time."""
FAR = 2**62
"""Greater than every time."""
MOST_OPERATIONS = 10_000_000
"""The greatest number of nodes that one search may visit. The result of a
longer search is not used."""
BY_TIMER = -1
"""`env[COMPLETER]` in the search of a timer; else the seq of the completing event."""

_intrinsic = cast(Callable[[Any], Callable[[Any], Any]], intrinsic)


INT64: Any = types.int64
MEMORY: Any = cast(Any, types.CPointer)(INT64)
"""The type of Memory in signatures of kernels; INT64 is that of numbers."""


@_intrinsic
def memory(context: Any, array: Any) -> Any:
    """A pointer to the data of a contiguous integer array. The search passes pointers, because an
    array argument consists of seven or nine numbers, and passing these would cost more than the
    work. The width of rows is given by the columns here. The array must outlive the call."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cast(Any, arrayobj).make_array(signature.args[0])(context, builder, arguments[0]).data

    return MEMORY(array), generate


@kernel(inline=True)
def last_at(pool: Memory, begin: Int, end: Int, t: Int) -> Int:
    """The last position in [begin, end) with time <= t, else begin - 1.
    Recent events are tried first."""
    high = end - 1
    step = 1
    while high >= begin and pool[high * 2 + T] > t:
        high -= step
        step *= 2
    if high < begin:
        high = begin - 1
    low, above = high, min(end, high + step // 2 + 1)
    # pool[low] <= t (or low is begin - 1) and pool[above] > t (or above is end).
    while above - low > 1:
        middle = (low + above) // 2
        if pool[middle * 2 + T] <= t:
            low = middle
        else:
            above = middle
    return low


@kernel(inline=True)
def event_at(node: Int, nodes: Memory, env: Memory, slots: Memory, pool: Memory, earliest: Int, most: Int, exact: Int) -> Int:
    """The pool's position of the last event of a leaf with earliest <= t <= most (exact: the one
    that completes now), else -1."""
    slot = nodes[node * NODE + KIND] if env[DIRECT] else env[LEAVES + nodes[node * NODE + LEAF]]
    if slot < 0:
        return -1
    begin, end = slots[slot * 4 + BEGIN], slots[slot * 4 + END]
    if begin == end:
        return -1
    if exact:
        last = end - 1
        if env[COMPLETER] == BY_TIMER or pool[last * 2 + SEQ] != env[COMPLETER] or pool[last * 2 + T] > most:
            return -1
        return last
    found = last_at(pool, begin, end, most)
    if found < begin or pool[found * 2 + T] < max(earliest, env[LEAST]):
        return -1
    if pool[found * 2 + T] == env[SINCE] and pool[found * 2 + SEQ] <= env[SINCE_SEQ]:
        return -1  # Before the query's first event.
    return found


# Parts of `latest`, which call it. Numba does not compile functions that call each other; so these
# are inlined before types are inferred. Constants are made int64 before they are passed: numba
# would compile `latest` again for each literal.


@part
def _latest_of_sequence(nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, earliest: Int, last: Int, most: Int, exact: Int) -> Int:
    """`latest` of a sequence: its first part starts before the second."""
    never, far, no = np.int64(NONE), np.int64(FAR), np.int64(0)
    first, second, without = nodes[node * NODE + FIRST], nodes[node * NODE + SECOND], nodes[node * NODE + WITHOUT]
    low, high = nodes[node * NODE + LOW], nodes[node * NODE + HIGH]
    best, start = never, far
    while True:
        start = latest(nodes, env, slots, pool, second, earliest, last, start, exact)
        if start == NONE or start - low <= best:
            break  # No first part that ends earlier can start later than the best.
        end = start - low
        excluded = latest(nodes, env, slots, pool, without, never, start - 1, far, no) if without >= 0 else never
        after = max(start - high, excluded)
        # If the first part is a primitive, its latest event before is more informative than
        # whether one is in the span.
        alone = nodes[first * NODE + OP] == PRIMITIVE
        if alone or after <= end:
            one = latest(nodes, env, slots, pool, first, never if alone else after, end, most, no)
            if not alone or one >= after:
                best = max(best, one)
            if alone and (one == NONE or one >= after):
                break  # For earlier starts there is no first part, or no later one.
            if alone and one < start - high:
                start = min(start, one + high + 1)
        if high == FAR and excluded == NONE:
            break  # Earlier starts leave less room.
        start -= 1
        if without >= 0 and nodes[without * NODE + OP] == PRIMITIVE and excluded >= start + 1 - high:
            # For all starts after it the same event excludes the same.
            start = min(start, excluded)
    return best


@part
def _latest_of_both(nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, earliest: Int, last: Int, most: Int, exact: Int) -> Int:
    """`latest` of two parts that occur within a span, in any order."""
    never = np.int64(NONE)
    span, start = nodes[node * NODE + HIGH], most
    while True:
        best = never
        end = last if span == FAR or start == FAR else min(last, start + span)
        if exact and env[NOW] > end:
            break
        # Which part ends in the span (or now), and which part starts in time: both choices
        # only if they are a condition.
        for which in range(2 if exact or earliest > env[LEAST] else 1):
            for limited in range(2 if start < end else 1):
                best = max(best, _latest_common_start(nodes, env, slots, pool, node, earliest, end, start, exact, which, limited, best))
        # Done if even the greatest e is near the start, or if a lower limit
        # did not change the start.
        if best in (NONE, start) or span == FAR or end - best <= span:
            break
        if exact:
            best = never  # It ends now, and earlier starts are even farther.
            break
        start = best
    return best


@part
def _latest_common_start(
    nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, earliest: Int, end: Int, start: Int, exact: Int, which: Int,
    limited: Int, floor: Int
) -> Int:  # fmt: skip
    """The latest start of two parts together, if it is above `floor`: part `which` ends in the span
    (or now), part `limited` starts at or before `start`."""
    never, far, no = np.int64(NONE), np.int64(FAR), np.int64(0)
    found = far
    for i in range(2):
        after, now = (earliest, exact) if i == which else (never, no)
        found = min(found, latest(nodes, env, slots, pool, nodes[node * NODE + FIRST + i], after, end, start if i == limited else far, now))
        if found <= floor:
            break
    return found


@part
def _latest_after_absence(nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, earliest: Int, last: Int, most: Int, exact: Int) -> Int:
    """`latest` of a part with no negated occurrence in a span before it."""
    high, low, without = nodes[node * NODE + HIGH], nodes[node * NODE + LOW], nodes[node * NODE + WITHOUT]
    start = most
    while True:
        start = latest(nodes, env, slots, pool, nodes[node * NODE + FIRST], earliest, last, start, exact)
        if start == NONE or not _is_ruled_out(nodes, env, slots, pool, without, start - high, start - 1, low):
            break
        start -= 1
    return start


@part
def _latest_before_absence(
    nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, earliest: Int, last: Int, most: Int, exact: Int
) -> Int:
    """`latest` of a part with no negated occurrence in a span after it (ABSENCE), or before and
    after it (AROUND). It ends with the span."""
    never, far, no = np.int64(NONE), np.int64(FAR), np.int64(0)
    first, without, span = nodes[node * NODE + FIRST], nodes[node * NODE + WITHOUT], nodes[node * NODE + HIGH]
    from_, until = (env[NOW], env[NOW]) if exact else (earliest, last)
    possible = not exact or (env[COMPLETER] == BY_TIMER and env[NOW] <= last)
    end = min(until, env[DUE]) - span if possible else never
    best = never
    while True:
        end = _last_end(nodes, env, slots, pool, first, end)
        if end == NONE or end < from_ - span or end <= best:
            break
        if nodes[node * NODE + OP] == AROUND:
            # Of occurrences with the same end the one with the latest start excludes least.
            start = latest(nodes, env, slots, pool, first, end, end, most, no)
            if start > best and not _is_ruled_out(nodes, env, slots, pool, without, start - span, end + span, nodes[node * NODE + LOW]):
                best = start
        elif latest(nodes, env, slots, pool, without, never, end + span, far, no) <= end:
            best = max(best, latest(nodes, env, slots, pool, first, end, end, most, no))
        end -= 1
    return best


@part
def _last_end(nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, last: Int) -> Int:
    """The greatest e <= last at which `node` occurs, else NONE."""
    never, far, no = np.int64(NONE), np.int64(FAR), np.int64(0)
    low = latest(nodes, env, slots, pool, node, never, last, far, no)
    # There is an occurrence with e in [low, high], and none with e above high; a
    # primitive ends where it starts.
    high = low if low == NONE or nodes[node * NODE + OP] == PRIMITIVE else last
    while low < high:
        middle = (low + high + 1) // 2
        if latest(nodes, env, slots, pool, node, middle, last, far, no) != NONE:
            low = middle
        else:
            high = middle - 1
    return low


@part
def _is_ruled_out(nodes: Memory, env: Memory, slots: Memory, pool: Memory, without: Int, from_: Int, last: Int, within: Int) -> bool:
    """Whether an occurrence of `without`, no longer than `within`, starts at or after `from_` and
    ends at or before `last`."""
    never, no, least = np.int64(NONE), np.int64(0), env[LEAST]
    # Results cached with another limit are not used.
    env[LEAST], env[SEARCH] = max(from_, env[SINCE]), env[SEARCH] + 1
    negated = np.int64(FAR)
    while True:
        negated = latest(nodes, env, slots, pool, without, never, last, negated, no)
        if negated == NONE or latest(nodes, env, slots, pool, without, never, min(last, negated + within), negated, no) == negated:
            break
        negated -= 1
    env[LEAST], env[SEARCH] = least, env[SEARCH] + 1
    return bool(negated != NONE)


@kernel(INT64(MEMORY, MEMORY, MEMORY, MEMORY, INT64, INT64, INT64, INT64, INT64))
def latest(nodes: Memory, env: Memory, slots: Memory, pool: Memory, node: Int, earliest: Int, last: Int, most: Int, exact: Int) -> Int:
    """The greatest s of the occurrences of `node` with earliest <= e <= last and
    env[LEAST] <= s <= most, else NONE.

    `exact`: only occurrences that are completed by the present event or the timers of now.
    """
    env[OPERATIONS] += 1
    if most < env[LEAST] or last < env[LEAST] or env[OPERATIONS] > MOST_OPERATIONS:
        return NONE
    if exact and (node > env[LAST_TRIGGER] or nodes[node * NODE + LAST] < env[TRIGGER]):
        return NONE
    op = nodes[node * NODE + OP]
    if op == PRIMITIVE:
        at = event_at(node, nodes, env, slots, pool, earliest, min(last, most), exact)
        return pool[at * 2 + T] if at >= 0 else NONE
    if op == EITHER:
        return max(
            latest(nodes, env, slots, pool, nodes[node * NODE + FIRST], earliest, last, most, exact),
            latest(nodes, env, slots, pool, nodes[node * NODE + SECOND], earliest, last, most, exact),
        )
    at = MEMO + _WIDTH * (((node * 31 + earliest) * 131 + last * 17 + most * 7 + exact) & (_KEPT - 1))
    if env[at] == env[SEARCH] and env[at + 1] == node << 1 | exact and env[at + 2] == earliest and env[at + 3] == last and env[at + 4] == most:
        return env[at + 5]
    if op == SEQUENCE:
        best = _latest_of_sequence(nodes, env, slots, pool, node, earliest, last, most, exact)
    elif op == BEFORE:
        best = _latest_after_absence(nodes, env, slots, pool, node, earliest, last, most, exact)
    elif op == BOTH:
        best = _latest_of_both(nodes, env, slots, pool, node, earliest, last, most, exact)
    else:
        best = _latest_before_absence(nodes, env, slots, pool, node, earliest, last, most, exact)
    env[at], env[at + 1], env[at + 2], env[at + 3], env[at + 4], env[at + 5] = env[SEARCH], node << 1 | exact, earliest, last, most, best
    return best


@kernel(INT64(MEMORY, MEMORY, MEMORY, MEMORY, MEMORY, INT64, INT64, INT64, INT64, INT64))
def pick(
    nodes: Memory, env: Memory, slots: Memory, pool: Memory, picked: Memory, node: Int, earliest: Int, last: Int, most: Int, exact: Int
) -> Int:  # fmt: skip
    """Writes the events of the occurrence that `latest` finds with the same arguments: rows (leaf's
    node, pool's position) of `picked`.

    Returns its s. Every choice is that of `latest`, so the witness depends only on
    the events of the window.
    """
    op = nodes[node * NODE + OP]
    if op == PRIMITIVE:
        at = event_at(node, nodes, env, slots, pool, earliest, min(last, most), exact)
        picked[env[PICKED] * 2], picked[env[PICKED] * 2 + 1] = node, at
        env[PICKED] += 1
        return pool[at * 2 + T]
    never, far, no = np.int64(NONE), np.int64(FAR), np.int64(0)
    best = latest(nodes, env, slots, pool, node, earliest, last, most, exact)
    first, second = nodes[node * NODE + FIRST], nodes[node * NODE + SECOND]
    without = nodes[node * NODE + WITHOUT]
    if op == EITHER:
        chosen = first if latest(nodes, env, slots, pool, first, earliest, last, most, exact) == best else second
        return pick(nodes, env, slots, pool, picked, chosen, earliest, last, most, exact)
    if op == SEQUENCE:
        low, high = nodes[node * NODE + LOW], nodes[node * NODE + HIGH]
        start = far
        while True:
            start = latest(nodes, env, slots, pool, second, earliest, last, start, exact)
            after = start - high
            if without >= 0:
                after = max(after, latest(nodes, env, slots, pool, without, never, start - 1, far, no))
            if after <= start - low and latest(nodes, env, slots, pool, first, after, start - low, most, no) == best:
                break
            start -= 1
        pick(nodes, env, slots, pool, picked, first, after, start - low, most, no)
        pick(nodes, env, slots, pool, picked, second, earliest, last, start, exact)
        return best
    if op == BEFORE:
        return pick(nodes, env, slots, pool, picked, first, earliest, last, best, exact)
    if op in (ABSENCE, AROUND):
        span = nodes[node * NODE + HIGH]
        end = (env[NOW] if exact else min(last, env[DUE])) - span
        while True:
            end = _last_end(nodes, env, slots, pool, first, end)
            if op == AROUND:
                alone = not _is_ruled_out(nodes, env, slots, pool, without, best - span, end + span, nodes[node * NODE + LOW])
            else:
                alone = latest(nodes, env, slots, pool, without, never, end + span, far, no) <= end
            if alone and latest(nodes, env, slots, pool, first, end, end, most, no) == best:
                break
            end -= 1
        return pick(nodes, env, slots, pool, picked, first, end, end, most, no)
    end = last if nodes[node * NODE + HIGH] == FAR else min(last, best + nodes[node * NODE + HIGH])
    for choice in range(4):
        which, limited = np.int64(choice // 2), np.int64(choice % 2)
        if _latest_common_start(nodes, env, slots, pool, node, earliest, end, best, exact, which, limited, never) == best:
            for i in range(2):
                after, now = (earliest, exact) if i == which else (never, no)
                pick(nodes, env, slots, pool, picked, nodes[node * NODE + FIRST + i], after, end, best if i == limited else far, now)
            return best
    return best
