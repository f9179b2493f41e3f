"""Stored answers: how a window revises them, and what changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.event_calculus.intervals import INF, Intervals, Ints, amalgamate, gather, keep, union
from engine.event_calculus.keys import among, locate, packed
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


def difference(name: str, before: FluentTable, after: FluentTable) -> list[Change]:
    """Intervals withdrawn and stated."""
    if before.n == 0 and after.n == 0:
        return []
    old_owner, new_owner = before.lists.owners(), after.lists.owners()
    a, b = packed(
        [*(key[old_owner] for key in before.keys), before.lists.s, np.where(before.lists.e == INF, -1, before.lists.e)],
        [*(key[new_owner] for key in after.keys), after.lists.s, np.where(after.lists.e == INF, -1, after.lists.e)],
    )
    gone, come = ~among(b, a), ~among(a, b)
    if not (gone.any() or come.any()):
        return []
    keys = tuple(np.concatenate((x[old_owner[gone]], y[new_owner[come]])) for x, y in zip(before.keys, after.keys, strict=True))
    s = np.concatenate((before.lists.s[gone], after.lists.s[come]))
    e = np.concatenate((before.lists.e[gone], after.lists.e[come]))
    return [Change(name, keys, s, e, np.concatenate((np.full(int(gone.sum()), -1), np.full(int(come.sum()), 1))))]
