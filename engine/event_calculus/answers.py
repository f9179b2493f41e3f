"""Stored answers: their revision by a window, and the changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import Intervals, Ints, gather, subtract, write_union
from engine.event_calculus.keys import find_rows, take_rows
from engine.event_calculus.shapes import base_name, entity_template, is_shape
from engine.event_calculus.tables import FluentTable, Symbols, stack

NEVER = -(1 << 62)
"""Earlier than every time."""


@dataclass(frozen=True)
class Change:
    """Facts asserted (+1) or retracted (-1) of one output at a query time; e is null for events (s is their time). `keys`: (columns, facts)."""

    name: str
    keys: Ints
    s: Ints
    e: Ints | None
    weight: Ints

    def as_reported(self, symbols: Symbols) -> Change:
        """The change in reported form: a fluent with a shape has its own name, and the functors of the shape among its arguments."""
        if not is_shape(self.name):
            return self
        return replace(self, name=base_name(self.name), keys=reported_keys(self.name, self.keys, symbols))


def reported_keys(name: str, keys: Ints, symbols: Symbols) -> Ints:
    """The keys (arguments, then value) of a relation, with the functors of its shape if it has one."""
    functors = entity_template(name)
    if not functors:
        return keys
    left = iter(keys)
    rows = [next(left) if functor is None else np.full(keys.shape[1], symbols.code(functor)) for functor in functors]
    return stack([*rows, *left], keys.shape[1])


def revise(
    name: str, before: FluentTable, now: FluentTable, low: int, first: int, retracted: FluentTable | None = None
) -> tuple[FluentTable, list[Change]]:
    """The answer after a window, and its changes: before the window's first tick the answer is unchanged, from there on it is the window's result.
    Intervals that ended at `low` or before can no longer change and are dropped. `retracted`: facts before the window that proved to be wrong.
    """
    if before.n == 0:
        if not len(now.lists.s):
            return now, []
        return now, [Change(name, take_rows(now.keys, now.lists.owners()), now.lists.s, now.lists.e, np.ones(len(now.lists.s), np.int64))]
    stays = before.lists
    if retracted is not None:
        stays = subtract(stays, gather(retracted.lists, find_rows(retracted.keys, before.keys), NEVER))
    keys, ptr, s, e, changed, cs, ce, weight = _revise(before.keys, before.lists, stays, now.keys, now.lists, low, first)
    return FluentTable(keys, Intervals(ptr, s, e)), [Change(name, changed, cs, ce, weight)] if len(cs) else []


@jit
def _revise(bk: Ints, before: Intervals, stays: Intervals, nk: Ints, now: Intervals, low: int, first: int) -> Any:
    (sp, ss, se), (np_, ns, ne) = stays, now
    width, old, new = bk.shape[0], bk.shape[1], nk.shape[1]
    at = find_rows(nk, bk)
    partner = np.full(new, -1, np.int64)
    kept_s, kept_e = np.empty(len(ss), np.int64), np.empty(len(ss), np.int64)
    kept_ptr = np.zeros(old + 1, np.int64)
    k = extra = 0
    for i in range(old):
        for j in range(sp[i], sp[i + 1]):
            if ss[j] < first and se[j] > low:
                kept_s[k], kept_e[k] = ss[j], min(se[j], first)
                k += 1
        kept_ptr[i + 1] = k
        if at[i] >= 0:
            partner[at[i]] = i
        elif k > kept_ptr[i]:
            at[i] = new + extra
            extra += 1
    keys, ptr = np.empty((width, new + extra), np.int64), np.zeros(new + extra + 1, np.int64)
    s, e = np.empty(k + len(ns), np.int64), np.empty(k + len(ns), np.int64)
    m = 0
    for i in range(new):
        for j in range(width):
            keys[j, i] = nk[j, i]
        a, b = (kept_ptr[partner[i]], kept_ptr[partner[i] + 1]) if partner[i] >= 0 else (0, 0)
        m = write_union(kept_s, kept_e, a, b, ns, ne, np_[i], np_[i + 1], s, e, m)
        ptr[i + 1] = m
    for i in range(old):
        if at[i] >= new:
            for j in range(width):
                keys[j, at[i]] = bk[j, i]
            for j in range(kept_ptr[i], kept_ptr[i + 1]):
                s[m], e[m] = kept_s[j], kept_e[j]
                m += 1
            ptr[at[i] + 1] = m
    changed, cs, ce, weight = _difference(bk, before, at, keys, ptr, s, e, low)
    return keys, ptr, s[:m].copy(), e[:m].copy(), changed, cs, ce, weight


@jit
def _difference(bk: Ints, before: Intervals, at: Ints, keys: Ints, ptr: Ints, s: Ints, e: Ints, low: int) -> Any:
    """Intervals retracted and asserted; list i became list at[i] (-1: it was removed). Intervals that ended at `low` or before are neither."""
    bp, bs, be = before
    width = bk.shape[0]
    total = ptr[-1]
    come = np.ones(total, np.bool_)
    stays = be <= low
    same = gone = 0
    for k in range(len(be)):
        gone += be[k] > low
    for i in range(len(at)):
        if at[i] < 0:
            continue
        a, b = bp[i], ptr[at[i]]
        while a < bp[i + 1] and b < ptr[at[i] + 1]:
            if bs[a] < s[b] or be[a] <= low:
                a += 1
            elif bs[a] > s[b]:
                b += 1
            else:
                if be[a] == e[b]:
                    stays[a] = True
                    come[b] = False
                    same += 1
                a += 1
                b += 1
    n = gone + total - 2 * same
    changed, cs, ce, weight = np.empty((width, n), np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    k = 0
    for i in range(bk.shape[1]):
        for a in range(bp[i], bp[i + 1]):
            if not stays[a]:
                for j in range(width):
                    changed[j, k] = bk[j, i]
                cs[k], ce[k], weight[k] = bs[a], be[a], -1
                k += 1
    for i in range(keys.shape[1]):
        for b in range(ptr[i], ptr[i + 1]):
            if come[b]:
                for j in range(width):
                    changed[j, k] = keys[j, i]
                cs[k], ce[k], weight[k] = s[b], e[b], 1
                k += 1
    return changed, cs, ce, weight
