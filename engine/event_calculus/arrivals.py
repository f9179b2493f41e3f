"""Rows of a query's inputs: those that have arrived, those of a window, and those
still needed by later windows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, Bools, Ints
from engine.event_calculus.tables import Column


@dataclass(slots=True)
class InputRows:
    """Rows of one input. `arrived`: the feed's clock after the row had arrived, so the row
    counts at Q if arrived <= Q.

    `columns` are the arguments (and for fluents the value last); positions also have x and y.
    `ordered`: known to be in order of arrival.
    """

    columns: tuple[Column, ...]
    t: Ints
    end: Ints
    arrived: Ints
    x: Column
    y: Column
    ordered: bool = field(default=False, kw_only=True)

    def take(self, picked: Ints | Bools | slice) -> InputRows:
        return InputRows(
            tuple(column[picked] for column in self.columns), self.t[picked], self.end[picked], self.arrived[picked], self.x[picked], self.y[picked]
        )

    @staticmethod
    def concat(parts: list[InputRows]) -> InputRows:
        if len(parts) == 1:
            return parts[0]
        columns = tuple(np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True))
        return InputRows(columns, *(np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "end", "arrived", "x", "y")))

    def after(self, low: int) -> InputRows:
        """The rows with a time after `low`; without a copy if these are all."""
        return self if not len(self.t) or int(self.t.min()) > low else self.take(self.t > low)

    def __len__(self) -> int:
        return len(self.t)

    def span(self, low: int, high: int) -> InputRows:
        """Rows low to high, without a copy."""
        return self if low == 0 and high == len(self.t) else self.take(slice(low, high))

    def split_by_arrival(self, query_time: int) -> tuple[InputRows, InputRows]:
        """The rows that have arrived by `query_time`, and the later ones, in order of arrival."""
        rows = self
        if self.ordered:
            split = int(np.searchsorted(self.arrived, query_time, "right"))
        else:
            ordered, split = _count_arrived(self.arrived, query_time)
            rows = self if ordered else self.take(np.argsort(self.arrived, kind="stable"))
        come, to_come = rows.span(0, split), rows.span(split, len(rows))
        to_come.ordered = True
        return come, to_come

    def in_window(self, when: Ints, low: int, high: int, latest: int, begin: int, known: int) -> InputRows:
        """Rows with low < when <= high and arrived <= latest, and when >
        begin or arrived <= known."""
        n, first, last, picked = _in_window(when, self.arrived, low, high, latest, begin, known)
        return self.span(first, last) if n == last - first else self.take(picked)

    def keep_after(self, when: Ints, low: int) -> InputRows:
        """The rows that a window after `low` may read."""
        return self.in_window(when, low, INF, INF, low, INF)


@jit
def _count_arrived(arrived: Ints, query_time: int) -> tuple[bool, int]:
    ordered, n = True, 0
    for i in range(len(arrived)):
        ordered = ordered and (i == 0 or arrived[i - 1] <= arrived[i])
        n += arrived[i] <= query_time
    return ordered, n


@jit
def _in_window(when: Ints, arrived: Ints, low: int, high: int, latest: int, begin: int, known: int) -> tuple[int, int, int, Bools]:
    """The number of rows that count, the index of the first, the index
    after the last, and a mask."""
    picked = np.empty(len(when), np.bool_)
    n = first = last = 0
    for i in range(len(when)):
        picked[i] = low < when[i] and when[i] <= high and arrived[i] <= latest and (when[i] > begin or arrived[i] <= known)
        if picked[i]:
            if n == 0:
                first = i
            last = i + 1
            n += 1
    return n, first, last, picked
