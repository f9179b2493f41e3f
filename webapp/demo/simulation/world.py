"""The interface of demo worlds: rows to send, places to watch, and the ground truth to compare
answers with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa


@dataclass(frozen=True)
class Place:
    """A region of the world: a GeoJSON polygon, and what it is."""

    name: str
    geometry: dict[str, Any]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class TruthEvent:
    """A ground-truth event from `start` to `end` (milliseconds), independent of reports."""

    kind: str
    entities: tuple[str, ...]
    place: str | None
    start: int
    end: int


def again(one: TruthEvent, period: int, start: int, end: int) -> Iterator[TruthEvent]:
    """Of an event that comes again every `period` ms, before and after as well, the times
    that overlap `[start, end)`."""
    first = (start - one.end) // period + 1
    for shift in range(first * period, end - one.start, period):
        yield replace(one, start=one.start + shift, end=one.end + shift)


class World(Protocol):
    """A demo world of one seed."""

    feed: str

    def rows(self, start: int, end: int, *, rate: float = 1.0) -> pa.Table:
        """All reports with start <= t < end in order of time."""
        ...

    def snapshot(self, t: int, *, rate: float = 1.0) -> pa.Table:
        """One report of everything at `t`; empty in a world that reports only events."""
        ...

    def truth(self, start: int, end: int) -> list[TruthEvent]:
        """The ground-truth events that overlap [start, end)."""
        ...

    def places(self) -> list[Place]:
        """The regions of this world."""
        ...


@runtime_checkable
class WithHistory(Protocol):
    """A world whose queries look back over days."""

    feed: str

    def history(self, end: int) -> pa.Table:
        """Reports of the days before `end`, in order of time."""
        ...
