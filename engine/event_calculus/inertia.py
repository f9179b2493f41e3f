"""Simple fluents: from initiations and terminations to maximal intervals, deadlines included, in one pass over sorted points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, Ints

ANY_VALUE = -(1 << 40)
"""Code of a point that terminates whatever value holds."""


class Carry(NamedTuple):
    """What a grounding takes over a window's edge.

    `value` that runs (-1: none), its `start`, and `due` (groundings, deadlines): when each deadline fires (INF: not set).
    """

    value: Ints
    start: Ints
    due: Ints


class Runs(NamedTuple):
    """Intervals in the order in which they end, group by group, and the state of every group at the snapshot."""

    group: Ints
    value: Ints
    s: Ints
    e: Ints
    carry: Carry


@jit
def _inertia(
    ptr: Ints, t: Ints, code: Ints, run_value: Ints, run_start: Ints, run_due: Ints,
    before: Ints, after: Ints, delay: Ints, extends: Ints, tick: int, query_time: int, snapshot: int,
) -> Any:  # fmt: skip
    n, rules = len(ptr) - 1, len(before)
    capacity = len(t) + n + 16
    out_group, out_value = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    out_s, out_e = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    kept_value, kept_start = np.empty(n, np.int64), np.empty(n, np.int64)
    kept_due = np.empty((n, rules), np.int64)
    due = np.empty(rules, np.int64)
    fired = np.zeros(rules, np.bool_)
    k = 0
    for g in range(n):
        value, start = run_value[g], run_start[g]
        due[:] = run_due[g]
        i, last = ptr[g], ptr[g + 1]
        saved = False
        while True:
            now = t[i] if i < last else INF
            for r in range(rules):
                now = min(now, due[r])
            if not saved and now > snapshot:
                kept_value[g], kept_start[g] = value, start
                kept_due[g] = due
                saved = True
            if now > query_time:
                break
            # All points of `now`: which values are initiated, and whether by more than one value at once.
            j = i
            initiated, several = -1, False
            while j < last and t[j] == now:
                if code[j] >= 0:
                    several = several or (initiated >= 0 and initiated != code[j])
                    initiated = code[j]
                j += 1
            for r in range(rules):
                fired[r] = False
                if due[r] == now:
                    renewed = extends[r] == 1 and _initiates(code, i, j, before[r])
                    if not renewed:
                        several = several or (initiated >= 0 and initiated != after[r])
                        initiated = after[r]
                        due[r] = INF
                        fired[r] = True
            ends_value = value >= 0 and (_terminates(code, i, j, value) or (initiated >= 0 and (several or initiated != value)))
            if ends_value:
                if k == len(out_s):
                    out_group, out_value, out_s, out_e = _grown(out_group), _grown(out_value), _grown(out_s), _grown(out_e)
                out_group[k], out_value[k], out_s[k], out_e[k] = g, value, start, now + tick
                k += 1
                value = -1
            if initiated >= 0 and not several and value < 0 and not _terminates(code, i, j, initiated):
                value, start = initiated, now + tick
            for r in range(rules):
                v = before[r]
                # Broken strictly before its time, a deadline lapses; an initiation of the same moment sets a new one.
                if due[r] != INF and due[r] > now and (_terminates(code, i, j, v) or (initiated >= 0 and (several or initiated != v))):
                    due[r] = INF
                began = _initiates(code, i, j, v)
                for other in range(rules):
                    began = began or (fired[other] and after[other] == v)
                if began and (extends[r] == 1 or due[r] == INF):
                    due[r] = now + delay[r]
            i = j
        if value >= 0:
            if k == len(out_s):
                out_group, out_value, out_s, out_e = _grown(out_group), _grown(out_value), _grown(out_s), _grown(out_e)
            out_group[k], out_value[k], out_s[k], out_e[k] = g, value, start, INF
            k += 1
    return out_group[:k], out_value[:k], out_s[:k], out_e[:k], kept_value, kept_start, kept_due


@jit
def _initiates(code: Ints, i: int, j: int, value: int) -> bool:
    for k in range(i, j):  # noqa: SIM110 -- compiled: a generator would not be
        if code[k] == value:
            return True
    return False


@jit
def _terminates(code: Ints, i: int, j: int, value: int) -> bool:
    for k in range(i, j):  # noqa: SIM110 -- compiled: a generator would not be
        if code[k] == -1 - value or code[k] == ANY_VALUE:
            return True
    return False


@jit
def _grown(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


def inertia(ptr: Ints, t: Ints, code: Ints, carry: Carry, deadlines: Ints, *, tick: int, query_time: int, snapshot: int) -> Runs:
    """Maximal intervals of one fluent's groundings up to `query_time`.

    Group g has the points t[ptr[g]:ptr[g + 1]], sorted; code v >= 0 initiates value v, -1 - v terminates value v,
    ANY_VALUE terminates all. An initiation at T holds from T + tick, a termination at T ends it at T + tick; values exclude
    each other; initiation and termination at one T leave nothing new. `deadlines` is (4, rules): value before, value after,
    delay, 1 if a new initiation extends. `carry` is the state after all earlier points; the result's is after all points
    <= `snapshot`.

    References: CONTRACT 2.6; CAVIAR definitions 1, rules 4, 5, 12. An initiation whose value is broken at the same moment
    still sets its deadline (rule 12, read literally).
    """
    before, after, delay, extends = deadlines
    out = _inertia(ptr, t, code, carry.value, carry.start, carry.due, before, after, delay, extends, tick, query_time, snapshot)
    return Runs(out[0], out[1], out[2], out[3], Carry(out[4], out[5], out[6]))
