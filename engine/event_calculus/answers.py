"""Stored answers: their revision by a window, and the changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import Intervals, Ints, amalgamated, gather, subtract
from engine.event_calculus.keys import find_rows, number_rows, take_rows
from engine.event_calculus.shapes import base_name, entity_template, is_shape
from engine.event_calculus.tables import FluentTable, Symbols, stack

NEVER = -(1 << 62)
"""Earlier than every time."""


@dataclass(frozen=True)
class Change:
    """Facts asserted (+1) or retracted (-1) of one output at a query time; e is null for events (s
    is their time). `keys`: (columns, facts)."""

    name: str
    keys: Ints
    s: Ints
    e: Ints | None
    weight: Ints

    def as_reported(self, symbols: Symbols) -> Change:
        """The change in reported form: a fluent with a shape has its own name, and the functors of
        the shape among its arguments."""
        if not is_shape(self.name):
            return self
        return replace(self, name=base_name(self.name), keys=reported_keys(self.name, self.keys, symbols))


def reported_keys(name: str, keys: Ints, symbols: Symbols) -> Ints:
    """The keys (arguments, then value) of a relation, with the functors of its shape if it has
    one."""
    functors = entity_template(name)
    if not functors:
        return keys
    left = iter(keys)
    rows = [next(left) if functor is None else np.full(keys.shape[1], symbols.code(functor)) for functor in functors]
    return stack([*rows, *left], keys.shape[1])


def revise(
    name: str,
    before: FluentTable,
    now: FluentTable,
    low: int,
    first: int,
    retracted: FluentTable | None = None,
    undecided: FluentTable | None = None,
) -> tuple[FluentTable, list[Change]]:
    """The answer after a window, and its changes: before the window's first tick the answer is
    unchanged, from there on it is the window's result. Intervals that ended at `low` or before can
    no longer change and are dropped. `retracted`: facts before the window that proved to be wrong.
    `undecided`: intervals from before the window that may still become answers; what ended since
    they began would be part of them, so it is kept.
    """
    if before.n == now.n == 0:
        return now, []
    stays = before.lists
    if retracted is not None:
        stays = subtract(stays, gather(retracted.lists, find_rows(retracted.keys, before.keys), NEVER))
    keys, lists, rows, weight = _revise(before.keys, before.lists, stays, now.keys, now.lists, _kept_after(before, low, undecided), low, first)
    return FluentTable(keys, Intervals(*lists)), [Change(name, rows[:-2], rows[-2], rows[-1], weight)] if len(weight) else []


def _kept_after(before: FluentTable, low: int, undecided: FluentTable | None) -> Ints:
    """For each list of an answer the time after which an interval must end to be kept."""
    after = np.full(before.n, low)
    if undecided is not None:
        at = find_rows(undecided.keys, before.keys)
        found = np.flatnonzero(at >= 0)
        after[found] = np.minimum(low, undecided.lists.s[undecided.lists.ptr[at[found]]] - 1)
    return after


@jit
def _revise(before_keys: Ints, before: Intervals, stays: Intervals, now_keys: Ints, now: Intervals, after: Ints, low: int, first: int) -> Any:
    """Keys and lists of the answer, the intervals that are removed or new, and their weights: in
    one call, because most answers are small. `after`: for each list the time after which an
    interval must end to be kept."""
    earlier = _interval_rows(before_keys, stays, after)
    earlier = take_rows(earlier, np.flatnonzero(earlier[-2] < first))
    earlier[-1] = np.minimum(earlier[-1], first)
    both = np.concatenate((_interval_rows(now_keys, now, np.full(now_keys.shape[1], low)), earlier), axis=1)
    keys = np.ascontiguousarray(both[:-2])
    number, firsts = number_rows(keys)
    keys = take_rows(keys, firsts)
    ptr, s, e = amalgamated(number, both[-2], both[-1], len(firsts))
    rows, weight = difference(_interval_rows(before_keys, before, after), _interval_rows(keys, Intervals(ptr, s, e), np.full(len(firsts), NEVER)))
    return keys, (ptr, s, e), rows, weight


@jit
def _interval_rows(keys: Ints, lists: Intervals, after: Ints) -> Ints:
    """Key, start and end of the intervals that end after the time of their list."""
    owner = np.repeat(np.arange(keys.shape[1]), lists.ptr[1:] - lists.ptr[:-1])
    late = np.flatnonzero(lists.e > after[owner])
    rows = np.empty((keys.shape[0] + 2, len(late)), np.int64)
    rows[:-2] = take_rows(keys, owner[late])
    rows[-2], rows[-1] = lists.s[late], lists.e[late]
    return rows


@jit
def difference(before: Ints, now: Ints) -> tuple[Ints, Ints]:
    """The rows (columns, rows) that are only in one of two sets, with their weights: -1 where a row
    is removed, +1 where it is new."""
    gone = take_rows(before, np.flatnonzero(find_rows(now, before) < 0))
    come = take_rows(now, np.flatnonzero(find_rows(before, now) < 0))
    return np.concatenate((gone, come), axis=1), np.repeat(np.array([-1, 1]), np.array([gone.shape[1], come.shape[1]]))
