"""The memory passed from one window to the next, and a window's bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.event_calculus.intervals import Ints
from engine.event_calculus.levels import Node

Floats = npt.NDArray[np.float64]


class IndexedRows(NamedTuple):
    """Distinct rows (columns, rows) of groundings, and their hash table (slots)."""

    keys: Ints
    slots: Ints


Groundings = dict[str, tuple[list[object], IndexedRows]]
"""Listed groundings by their canonical text or by fluent, with the tables
from which they were listed."""


@dataclass(frozen=True)
class SimpleCarry:
    """State of a simple fluent at a window's edge: for each grounding the value that holds (-1:
    none), its start, and the deadlines set."""

    keys: Ints
    value: Ints
    start: Ints
    due: Ints


@dataclass(frozen=True)
class OpenStarts:
    """True starts of the intervals that hold at a window's edge; `places` (2, intervals): their
    entity's position at the start, for lists of speeds."""

    keys: Ints
    start: Ints
    places: Floats | None = None


@dataclass(frozen=True)
class EndedSources:
    """For each grounding of a rule the one source of an Allen relation that has ended and may still
    be in relation with a target."""

    keys: Ints
    start: Ints
    end: Ints


_Part = SimpleCarry | OpenStarts | EndedSources


@dataclass
class Memory:
    """The memory passed from one window to the next: simple fluents by node, true starts by node,
    input or list of a rule, ended sources by list."""

    simple: dict[Node, SimpleCarry] = field(default_factory=dict)
    held: dict[str, OpenStarts] = field(default_factory=dict)
    ended: dict[str, EndedSources] = field(default_factory=dict)

    def equals(self, other: Memory) -> bool:
        """Whether both memories are equal, so that windows without rows change nothing."""
        return _equal(self.simple, other.simple) and _equal(self.held, other.held) and _equal(self.ended, other.ended)


def _equal(one: Mapping[Any, _Part], other: Mapping[Any, _Part]) -> bool:
    return one.keys() == other.keys() and all(_same(part, other[name]) for name, part in one.items())


def _same(one: _Part, other: _Part) -> bool:
    pairs = ((getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
    return all(a is b or (a is not None and b is not None and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")) for a, b in pairs)


@dataclass(frozen=True)
class Bounds:
    """Times of a window: ticks > `low` and <= `query_time` count; `next_low`
    is the next window's `low`.

    `first` is low + tick. `begin` is the beginning of time: no fluent holds before it. `initial`:
    `initially` applies in this window, because it contains the beginning of time or is the first to
    be evaluated. Input rows count from ticks > `rows_after` on: the same as `low`, but in the first
    window `low` lies before the beginning of time where fluents hold from there on, because no
    earlier window has asserted what follows.
    """

    query_time: int
    low: int
    first: int
    next_low: int
    initial: bool
    begin: int
    rows_after: int

    @property
    def first_row(self) -> int:
        """The first tick of the window whose rows count."""
        return self.rows_after + self.first - self.low

    @property
    def earliest(self) -> int:
        """The first tick of the window at which a fluent can hold."""
        return max(self.first, self.begin)
