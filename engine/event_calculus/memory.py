"""What one window leaves to the next, and a window's bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.event_calculus.intervals import Ints
from engine.event_calculus.levels import Node
from engine.event_calculus.tables import Table

Groundings = dict[str, tuple[list[Table], tuple[Ints, ...]]]
"""Rows of listed groundings by their canonical text, with the domains they were listed from."""


@dataclass(frozen=True)
class SimpleCarry:
    """State of a simple fluent over a window's edge: for each grounding the value that runs (-1: none), its start, and the deadlines set."""

    keys: tuple[Ints, ...]
    value: Ints
    start: Ints
    due: Ints


@dataclass(frozen=True)
class Held:
    """True starts of the intervals that hold at a window's edge."""

    keys: tuple[Ints, ...]
    start: Ints


@dataclass
class Memory:
    """What one window leaves to the next: simple fluents by node, true starts by node, input or list of a rule."""

    simple: dict[Node, SimpleCarry] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)


@dataclass(frozen=True)
class Bounds:
    """Times of a window: ticks > `low` and <= `query_time` count; `next_low` is where the next window's `low` will be.

    `first` is low + tick. `initial`: `initially` applies here, because the window starts at or before 0.
    """

    query_time: int
    low: int
    first: int
    next_low: int
    initial: bool
