"""Stored answers: how a window revises them, and what changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import Bools, Intervals, Ints, amalgamate, gather, keep, union
from engine.event_calculus.keys import locate
from engine.event_calculus.tables import FluentTable, distinct_rows

NEVER = -(1 << 62)
"""Earlier than every time."""


@dataclass(frozen=True)
class Change:
    """Facts stated (+1) or withdrawn (-1) of one output at a query time; e is null for events (s is their time)."""

    name: str
    keys: tuple[Ints, ...]
    s: Ints
    e: Ints | None
    weight: Ints


def without_empty(table: FluentTable) -> FluentTable:
    filled = np.flatnonzero(table.lists.counts > 0)
    return FluentTable(tuple(key[filled] for key in table.keys), gather(table.lists, filled, NEVER))


def stacked(tables: list[FluentTable]) -> FluentTable:
    """Several tables of one fluent as one; lists of equal keys are united."""
    tables = [table for table in tables if table.n] or tables[:1]
    if len(tables) == 1:
        return tables[0]
    keys = [np.concatenate(column) for column in zip(*(table.keys for table in tables), strict=True)]
    owners = np.concatenate(
        [table.lists.owners() + offset for table, offset in zip(tables, np.cumsum([0, *(t.n for t in tables[:-1])]), strict=True)]
    )
    groups, first, n = distinct_rows(keys, len(keys[0]))
    s, e = (np.concatenate([getattr(table.lists, side) for table in tables]) for side in ("s", "e"))
    return FluentTable(tuple(key[first] for key in keys), amalgamate(groups[owners], s, e, n))


def revised(before: FluentTable, now: FluentTable, first: int) -> FluentTable:
    """The answer after a window: what was decided before its first tick stays, from there on the window decides."""
    if before.n == 0:
        return now
    old = _cut(before, first)
    if old.n == 0:
        return now
    if now.n == 0:
        return old
    at = locate(now.keys, old.keys)
    new_rows = np.flatnonzero(at < 0)
    keys = tuple(np.concatenate((key, extra[new_rows])) for key, extra in zip(now.keys, old.keys, strict=True))
    picked_now = np.concatenate((np.arange(now.n), np.full(len(new_rows), -1)))
    picked_old = np.full(len(picked_now), -1)
    picked_old[at[at >= 0]] = np.flatnonzero(at >= 0)
    picked_old[now.n :] = new_rows
    return FluentTable(keys, union(gather(old.lists, picked_old, NEVER), gather(now.lists, picked_now, NEVER)))


def _cut(table: FluentTable, first: int) -> FluentTable:
    """Only what lies before `first`."""
    kept = table.lists.s < first
    lists = keep(table.lists, kept)
    return without_empty(FluentTable(table.keys, Intervals(lists.ptr, lists.s, np.minimum(lists.e, first))))


@jit
def _changed(at: Ints, old_ptr: Ints, old_s: Ints, old_e: Ints, new_ptr: Ints, new_s: Ints, new_e: Ints) -> tuple[bool, Bools, Bools]:
    """Which old intervals are not among the new ones, and the other way round; list i became list at[i] (-1: it is gone)."""
    gone, come = np.ones(len(old_s), np.bool_), np.ones(len(new_s), np.bool_)
    same = 0
    for i in range(len(at)):
        if at[i] < 0:
            continue
        a, b = old_ptr[i], new_ptr[at[i]]
        while a < old_ptr[i + 1] and b < new_ptr[at[i] + 1]:
            if old_s[a] < new_s[b]:
                a += 1
            elif old_s[a] > new_s[b]:
                b += 1
            else:
                if old_e[a] == new_e[b]:
                    gone[a] = come[b] = False
                    same += 1
                a += 1
                b += 1
    return same < max(len(old_s), len(new_s)), gone, come


def difference(name: str, before: FluentTable, after: FluentTable) -> list[Change]:
    """Intervals withdrawn and stated."""
    if before.n == 0 and after.n == 0:
        return []
    without_arguments = np.full(before.n, 0 if after.n else -1)
    at = locate(after.keys, before.keys) if before.keys else without_arguments
    changed, gone, come = _changed(at, *before.lists, *after.lists)
    if not changed:
        return []
    old_owner, new_owner = before.lists.owners(), after.lists.owners()
    keys = tuple(np.concatenate((x[old_owner[gone]], y[new_owner[come]])) for x, y in zip(before.keys, after.keys, strict=True))
    s = np.concatenate((before.lists.s[gone], after.lists.s[come]))
    e = np.concatenate((before.lists.e[gone], after.lists.e[come]))
    return [Change(name, keys, s, e, np.concatenate((np.full(int(gone.sum()), -1), np.full(int(come.sum()), 1))))]
