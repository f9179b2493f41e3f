"""A feed: one named stream with one schema and one clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Crs(StrEnum):
    GEOGRAPHIC = "geographic"
    PLANAR = "planar"


class TimeUnit(StrEnum):
    MS = "ms"
    TICKS = "ticks"


class ColumnType(StrEnum):
    STRING = "string"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"


@dataclass(frozen=True)
class Feed:
    """Schema and clock of a stream (CONTRACT 1 and 4).

    `lateness` and `tick` are in the unit of `t` (milliseconds on an `ms` feed, ticks otherwise); `columns` are the
    attributes beyond the core ones, with their types, in declared order.
    """

    name: str
    crs: Crs
    time: TimeUnit
    tick: int = 1
    lateness: int = 0
    dedupe: bool = True
    columns: Mapping[str, ColumnType] = field(default_factory=dict)
