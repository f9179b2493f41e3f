"""Intervals that cross a window's edge: their true starts are restored in the window, and those
that cross the next edge are remembered."""

from __future__ import annotations

import numpy as np

from engine.event_calculus.answers import NEVER
from engine.event_calculus.intervals import Bools, Intervals, Ints, empty, gather
from engine.event_calculus.keys import find_rows, take_rows
from engine.event_calculus.memory import Bounds, EndedSources, Floats, Memory, OpenStarts
from engine.event_calculus.tables import FluentTable, union_tables


class Crossing:
    """True starts by the name of a fluent, an input or a list of a rule.

    `ends_at_edge`: an interval that ends with the tick before the window has
    its end event in the window.
    """

    def __init__(self, memory: Memory, bounds: Bounds, *, ends_at_edge: bool) -> None:
        self.bounds = bounds
        self.ends_at_edge = ends_at_edge
        self.kept: dict[str, OpenStarts] = {}
        self.ended: dict[str, EndedSources] = {}
        self._held = memory.held
        self._ended = memory.ended

    def join_earlier(self, name: str, table: FluentTable) -> FluentTable:
        """The table with the true starts of intervals that continue from before the window;
        remembers them for the next one."""
        lists = self.true_starts(name, table.keys, table.lists)
        if lists is not table.lists:
            table = FluentTable(table.keys, lists)
        return self.add_ended(name, table) if self.ends_at_edge else table

    def add_ended(self, name: str, table: FluentTable) -> FluentTable:
        """Adds the intervals that held before the window's first tick and do not
        continue: they end at that tick."""
        held = self._held.get(name)
        if held is None or not len(held.start):
            return table
        low = self.bounds.low
        going_on = np.unique(table.lists.owners()[(table.lists.s <= low) & (table.lists.e > low)])
        ended = np.flatnonzero(find_rows(take_rows(table.keys, going_on), held.keys) < 0)
        if not len(ended):
            return table
        before = Intervals(np.arange(len(ended) + 1), held.start[ended], np.full(len(ended), self.bounds.first))
        return union_tables([table, FluentTable(take_rows(held.keys, ended), before)], len(table.keys))

    def true_starts(self, name: str, keys: Ints, lists: Intervals) -> Intervals:
        """The lists with the true starts of intervals that continue from before the window;
        remembers those that cross the next edge."""
        lists, _ = self.restore(name, keys, lists)
        self.keep(name, keys, lists)
        return lists

    def restore(self, name: str, keys: Ints, lists: Intervals) -> tuple[Intervals, OpenStarts | None]:
        """The lists with true starts; and, if there are any, all intervals
        remembered under this name."""
        held = self._held.get(name)
        if held is None or not len(held.start) or not len(lists.s):
            return lists, None
        at = find_rows(held.keys, keys)[lists.owners()]
        return Intervals(lists.ptr, np.where((at >= 0) & (lists.s == self.bounds.first), held.start[at], lists.s), lists.e), held

    def keep(self, name: str, keys: Ints, lists: Intervals, places: Floats | None = None, edge: int | None = None) -> None:
        """Remembers the intervals that cross the next window's edge (or `edge`), with
        their `places` (2, intervals)."""
        self.kept.pop(name, None)
        edge = self.bounds.next_low if edge is None else edge
        crossing = np.flatnonzero((lists.s <= edge) & (lists.e > edge))
        if len(crossing):
            where = None if places is None else np.ascontiguousarray(places[:, crossing])
            self.kept[name] = OpenStarts(take_rows(keys, lists.owners()[crossing]), lists.s[crossing], where)

    def new_groundings(self, name: str, keys: Ints) -> Bools:
        """Which of these groundings the window before did not have;
        remembers all for the next one."""
        held = self._held.get(name)
        new: Bools = np.ones(keys.shape[1], np.bool_) if held is None else find_rows(held.keys, keys) < 0
        self.kept[name] = OpenStarts(keys, np.zeros(keys.shape[1], np.int64))
        return new

    def saved_sources(self, name: str) -> EndedSources | None:
        """The sources remembered for the result list of an Allen relation."""
        return self._ended.get(name)

    def saved_source_lists(self, name: str, keys: Ints) -> Intervals:
        """For each key the remembered source that has ended, if any."""
        ended = self._ended.get(name)
        if ended is None:
            return empty(keys.shape[1])
        lists = Intervals(np.arange(len(ended.start) + 1), ended.start, ended.end)
        return gather(lists, find_rows(ended.keys, keys), NEVER)

    def save_sources(self, name: str, keys: Ints, owner: Ints, start: Ints, end: Ints) -> None:
        """Remembers sources that end before the next window: at most one for each key."""
        self.ended.pop(name, None)
        if len(owner):
            self.ended[name] = EndedSources(take_rows(keys, owner), start, end)
