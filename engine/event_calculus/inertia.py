"""Simple fluents: from initiations and terminations to maximal intervals, deadlines included, in
one pass over sorted points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, Ints, counting_order, grow
from engine.event_calculus.keys import find_rows, number_rows, take_rows
from engine.index.compiled import kernel

ANY_VALUE = -(1 << 40)
"""Code of a point that terminates any value."""
ANY_ARGUMENT = -2
"""Argument of a point that applies to every grounding."""
INITIATE, OPEN_INITIATE, TERMINATE, TERMINATE_ANY = 0, 1, 2, 3
"""The kinds of points: initiates the value of one grounding; of groundings that are open;
terminates the value; terminates any value."""


class InertiaInput(NamedTuple):
    """The input from which one fluent is computed up to `query_time`, and the state of its
    groundings after all points <= `snapshot`.

    `points` (3 + arguments, points): time, kind, value, arguments (ANY_ARGUMENT: any grounding), in
    `parts` that leave the same arguments open. The carry is the state after all earlier points, by
    grounding (`keys`): the value that holds (-1: none), its `start`, and when each deadline fires
    (`due`; INF: not set). `deadlines` is (3, rules): value before, value after, 1 if a new
    initiation extends; `delay` (begun groundings, rules) is their duration, 0 if a deadline does
    not apply to the grounding. `limit`: the greatest number of pairs of point and grounding.
    """

    points: Ints
    parts: Ints
    keys: Ints
    value: Ints
    start: Ints
    due: Ints
    deadlines: Ints
    delay: Ints
    tick: int
    query_time: int
    snapshot: int
    limit: int


@jit
def _inertia(inputs: InertiaInput, ptr: Ints, t: Ints, code: Ints, run_value: Ints, run_start: Ints, run_due: Ints, capacity: int) -> Any:
    """The runs of `simple_fluent` and the deadlines that fire, as far as `capacity` allows, and
    their numbers: arrays that grow in the loop make it far slower."""
    before, after, extends, delay = inputs.deadlines[0], inputs.deadlines[1], inputs.deadlines[2], inputs.delay
    tick, query_time, snapshot = inputs.tick, inputs.query_time, inputs.snapshot
    n, rules = len(ptr) - 1, len(before)
    out_group, out_value = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    out_s, out_e = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    kept_value, kept_start = np.empty(n, np.int64), np.empty(n, np.int64)
    kept_due = np.empty((n, rules), np.int64)
    fires = capacity if rules else 0
    fired_group, fired_value, fired_t = np.empty(fires, np.int64), np.empty(fires, np.int64), np.empty(fires, np.int64)
    f = 0
    due = np.empty(rules, np.int64)
    fired = np.zeros(rules, np.bool_)
    k = 0
    for g in range(n):
        value, start = run_value[g], run_start[g]
        due[:] = run_due[g]
        i, last = ptr[g], ptr[g + 1]
        saved = False
        while True:
            now = min(t[i] if i < last else INF, _earliest(due))
            if not saved and now > snapshot:
                kept_value[g], kept_start[g] = value, start
                kept_due[g] = due
                saved = True
            if now > query_time:
                break
            j, initiated, several = _initiations(t, code, i, last, now)
            for r in range(rules):
                fired[r] = False
                if due[r] != now or (extends[r] == 1 and _initiates(code, i, j, before[r])):
                    continue
                several = several or (initiated >= 0 and initiated != after[r])
                initiated = after[r]
                due[r] = INF
                fired[r] = True
                if f < capacity:
                    fired_group[f], fired_value[f], fired_t[f] = g, after[r], now
                f += 1
            if value >= 0 and _ends(code, i, j, value, initiated, several):
                # What was carried may begin right after this point: then nothing of it is left.
                left = start <= now
                if left and k < capacity:
                    out_group[k], out_value[k], out_s[k], out_e[k] = g, value, start, now + tick
                k += left
                value = -1
            if initiated >= 0 and not several and value < 0 and not _terminates(code, i, j, initiated):
                value, start = initiated, now + tick
            for r in range(rules):
                # A deadline whose value is terminated strictly before its time lapses; an
                # initiation at the same moment sets a new one.
                if due[r] != INF and due[r] > now and _ends(code, i, j, before[r], initiated, several):
                    due[r] = INF
                if delay[g, r] > 0 and (extends[r] == 1 or due[r] == INF) and _begins(code, i, j, before[r], fired, after):
                    due[r] = now + delay[g, r]
            i = j
        if value >= 0:
            if k < capacity:
                out_group[k], out_value[k], out_s[k], out_e[k] = g, value, start, INF
            k += 1
    return (
        k, out_group[:k], out_value[:k], out_s[:k], out_e[:k], kept_value, kept_start, kept_due,
        f, fired_group[:f], fired_value[:f], fired_t[:f],
    )  # fmt: skip


@kernel(inline=True)
def _earliest(due: Ints) -> int:
    earliest = INF
    for time in due:
        earliest = min(earliest, time)
    return earliest


@kernel(inline=True)
def _initiations(t: Ints, code: Ints, i: int, last: int, now: int) -> Any:
    """Where the points of `now`, from i on, end; the value that they initiate (-1: none), and
    whether they initiate several."""
    initiated, several = -1, False
    while i < last and t[i] == now:
        if code[i] >= 0:
            several = several or (initiated >= 0 and initiated != code[i])
            initiated = code[i]
        i += 1
    return i, initiated, several


@kernel(inline=True)
def _ends(code: Ints, i: int, j: int, value: int, initiated: int, several: bool) -> bool:
    """Whether the points from i to j terminate a value, or initiate another one."""
    return _terminates(code, i, j, value) or (initiated >= 0 and (several or initiated != value))


@kernel(inline=True)
def _begins(code: Ints, i: int, j: int, value: int, fired: Any, after: Ints) -> bool:
    """Whether the points from i to j initiate a value, or a deadline that fires does."""
    began = _initiates(code, i, j, value)
    for other in range(len(fired)):
        began = began or (fired[other] and after[other] == value)
    return began


@kernel(inline=True)
def _initiates(code: Ints, i: int, j: int, value: int) -> bool:
    for k in range(i, j):  # noqa: SIM110 -- compiled: a generator would not be
        if code[k] == value:
            return True
    return False


@kernel(inline=True)
def _terminates(code: Ints, i: int, j: int, value: int) -> bool:
    for k in range(i, j):  # noqa: SIM110 -- compiled: a generator would not be
        if code[k] == -1 - value or code[k] == ANY_VALUE:
            return True
    return False


@jit
def _assign_groups(points: Ints, low: int, high: int, keys: Ints, count: int, capacity: int, limit: int) -> Any:
    """(group, point) pairs of a part whose points leave arguments open, or have all one argument
    list; count < 0: too many."""
    width = keys.shape[0]
    bound = np.empty(width, np.int64)
    b = 0
    for j in range(width):
        if points[3 + j, low] != ANY_ARGUMENT:
            bound[b] = j
            b += 1
    n, m = keys.shape[1], high - low
    # Groups and points are numbered together by the arguments that the part binds.
    both = np.empty((b, n + m), np.int64)
    for j in range(b):
        for i in range(n):
            both[j, i] = keys[bound[j], i]
        for i in range(m):
            both[j, n + i] = points[3 + bound[j], low + i]
    number, first = number_rows(both)
    order, ptr = counting_order(number[:n], len(first))
    group, point = np.empty(m, np.int64), np.empty(m, np.int64)
    k = 0
    for i in range(m):
        for j in range(ptr[number[n + i]], ptr[number[n + i] + 1]):
            if k == len(group):
                if k > limit:
                    return group, point, -1
                group, point = grow(group), grow(point)
            group[k], point[k] = order[j], low + i
            k += 1
    return group, point, k


@jit
def begun(points: Ints, carry: Ints) -> Ints:
    """Arguments of all groundings with an initiation or a carried state, in the
    order of `simple_fluent`."""
    width, n = carry.shape[0], carry.shape[1]
    for i in range(points.shape[1]):
        n += points[1, i] == INITIATE
    known = np.empty((width, n), np.int64)
    n = carry.shape[1]
    for j in range(width):
        for i in range(n):
            known[j, i] = carry[j, i]
    for i in range(points.shape[1]):
        if points[1, i] == INITIATE:
            for j in range(width):
                known[j, n] = points[3 + j, i]
            n += 1
    return take_rows(known, number_rows(known)[1])


@jit
def _encode(kind: int, value: int) -> int:
    if kind == TERMINATE_ANY:
        return ANY_VALUE
    return -1 - value if kind == TERMINATE else value


@jit
def _group_points(points: Ints, parts: Ints, keys: Ints, limit: int) -> Any:
    """Group, time and code of every point, sorted by (group, time), and where each
    group begins; false: too many."""
    capacity = points.shape[1]
    owner, at = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    k = 0
    for p in range(len(parts) - 1):
        if parts[p] == parts[p + 1]:
            continue
        group, point, n = _assign_groups(points, parts[p], parts[p + 1], keys, k, capacity, limit)
        if n < 0 or k + n > limit:
            return False, owner, owner, owner
        while k + n > len(owner):
            owner, at = grow(owner), grow(at)
        for i in range(n):
            # A missing value asserts nothing.
            if points[2, point[i]] >= 0:
                owner[k], at[k] = group[i], point[i]
                k += 1
    order, ptr = counting_order(owner[:k], keys.shape[1])
    t, code = np.empty(k, np.int64), np.empty(k, np.int64)
    for g in range(keys.shape[1]):
        low, high = ptr[g], ptr[g + 1]
        ordered = True
        for i in range(low, high):
            t[i] = points[0, at[order[i]]]
            ordered = ordered and (i == low or t[i - 1] <= t[i])
        if not ordered:
            rank = np.argsort(t[low:high], kind="mergesort")
            order[low:high] = order[low:high][rank]
            t[low:high] = t[low:high][rank]
        for i in range(low, high):
            one = at[order[i]]
            code[i] = _encode(points[1, one], points[2, one])
    return True, ptr, t, code


@jit
def _interval_lists(keys: Ints, group: Ints, value: Ints, s: Ints, e: Ints) -> Any:
    """Runs, which are in order of group, as lists by (group, value)."""
    width, n = keys.shape[0], len(group)
    out, ptr = np.empty((width + 1, n), np.int64), np.zeros(n + 1, np.int64)
    out_s, out_e = np.empty(n, np.int64), np.empty(n, np.int64)
    taken = np.zeros(n, np.bool_)
    lists = k = 0
    for i in range(n):
        if taken[i]:
            continue
        # The first run of a value that is not in a list yet: all runs of that value, in order.
        for j in range(width):
            out[j, lists] = keys[j, group[i]]
        out[width, lists] = value[i]
        j = i
        while j < n and group[j] == group[i]:
            if value[j] == value[i]:
                taken[j] = True
                out_s[k], out_e[k] = s[j], e[j]
                k += 1
            j += 1
        lists += 1
        ptr[lists] = k
    return np.ascontiguousarray(out[:, :lists]), ptr[: lists + 1].copy(), out_s, out_e


@jit
def _apply_inertia(inputs: InertiaInput) -> Any:
    """Whether the points are within the limit; then the groundings, their
    points, and the resulting runs."""
    rules = inputs.deadlines.shape[1]
    keys = begun(inputs.points, inputs.keys)
    n = keys.shape[1]
    fits, ptr, t, code = _group_points(inputs.points, inputs.parts, keys, inputs.limit)
    value, start, due = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.full((n, rules), INF, np.int64)
    at = find_rows(keys, inputs.keys)
    for i in range(len(at)):
        value[at[i]], start[at[i]] = inputs.value[i], inputs.start[i]
        due[at[i]] = inputs.due[i]
    if not fits:
        ptr, t, code = np.zeros(n + 1, np.int64), t[:0], t[:0]
    capacity = len(t) + n
    while True:
        runs = _inertia(inputs, ptr, t, code, value, start, due, capacity)
        if runs[0] <= capacity and runs[8] <= capacity:
            break
        # Deadlines made more runs than there are points, or more of them fired.
        capacity = max(runs[0], runs[8])
    return fits, keys, ptr, t, code, runs


@jit
def simple_fluent(inputs: InertiaInput) -> Any:
    """Lists of one fluent up to `query_time` and the state of its groundings after
    all points <= `snapshot`.

    INITIATE opens a grounding; the other kinds apply to groundings that are open. An initiation at
    T holds from T + tick, a termination at T ends it at T + tick; values exclude each other; an
    initiation with a termination at the same T has no effect.

    Returns false for more than `limit` pairs of point and grounding, else true, keys (arguments and
    value), ptr, s, e, and the new carry.

    References: specification 5.6; CAVIAR definitions 1, rules 4, 5, 12. An initiation whose value
    is terminated at the same moment still sets its deadline (rule 12, read literally).
    """
    fits, keys, _, _, _, runs = _apply_inertia(inputs)
    _, group, held, s, e, value, start, due, _, _, _, _ = runs
    out, out_ptr, out_s, out_e = _interval_lists(keys, group, held, s, e)
    n, rules = keys.shape[1], inputs.deadlines.shape[1]
    alive = np.empty(n, np.int64)
    m = 0
    for i in range(n):
        goes_on = value[i] >= 0
        for r in range(rules):
            goes_on = goes_on or due[i, r] < INF
        if goes_on:
            alive[m] = i
            m += 1
    alive = alive[:m]
    return fits, out, out_ptr, out_s, out_e, take_rows(keys, alive), value[alive], start[alive], due[alive]


@jit
def initiations(inputs: InertiaInput, begin: int) -> Any:
    """The moments >= `begin` at which rules or deadlines initiate values: keys (arguments and
    value) and times; there may be duplicates."""
    _, keys, ptr, t, code, runs = _apply_inertia(inputs)
    _, _, _, _, _, _, _, _, fired, group, value, moment = runs
    width = keys.shape[0]
    out, times = np.empty((width + 1, len(t) + fired), np.int64), np.empty(len(t) + fired, np.int64)
    m = 0
    for g in range(keys.shape[1]):
        for i in range(ptr[g], ptr[g + 1]):
            if code[i] >= 0 and t[i] >= begin:
                out[:width, m], out[width, m], times[m] = keys[:, g], code[i], t[i]
                m += 1
    for i in range(fired):
        if moment[i] >= begin:
            out[:width, m], out[width, m], times[m] = keys[:, group[i]], value[i], moment[i]
            m += 1
    return np.ascontiguousarray(out[:, :m]), times[:m]
