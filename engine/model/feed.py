"""A feed: one named stream with one schema and one clock (CONTRACT 1 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from engine.model.batch import CLOCK, CORE_COLUMNS, ENTITY, EVENT, SEQ, TIME, TIME_END, X, Y
from engine.model.documents import Faults, Node
from engine.model.durations import read_duration


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


CORE_TYPES: Mapping[str, ColumnType] = MappingProxyType(
    {
        EVENT: ColumnType.STRING,
        ENTITY: ColumnType.STRING,
        TIME: ColumnType.INT,
        TIME_END: ColumnType.INT,
        X: ColumnType.FLOAT,
        Y: ColumnType.FLOAT,
    }
)
_KEYS = ("name", "crs", "time", "tick", "lateness", "dedupe", "columns")


@dataclass(frozen=True)
class Feed:
    """Schema and clock of a stream.

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

    @property
    def schema(self) -> Mapping[str, ColumnType]:
        """Every column a row can have, with its type: the core ones, then the declared ones."""
        return {**CORE_TYPES, **self.columns}

    @classmethod
    def from_json(cls, document: Any) -> Feed:
        """The feed a document describes.

        Raises Refused with all its faults.
        """
        faults = Faults()
        node = Node(document, "", faults)
        feed = _read_feed(node)
        faults.raise_if_any()
        assert feed is not None
        return feed

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "crs": self.crs.value,
            "time": self.time.value,
            "tick": self.tick,
            "lateness": self.lateness,
            "dedupe": self.dedupe,
            "columns": {name: kind.value for name, kind in self.columns.items()},
        }


def _read_feed(node: Node) -> Feed | None:
    if not node.expect_object(_KEYS):
        return None
    name = node.get("name").text(required=True)
    crs = node.get("crs").choice([kind.value for kind in Crs], required=True)
    time = node.get("time").choice([unit.value for unit in TimeUnit], default=TimeUnit.MS.value)
    tick = node.get("tick").integer(default=1, least=1)
    dedupe = node.get("dedupe").boolean(default=True)
    unit = TimeUnit(time) if time else TimeUnit.MS
    lateness = read_duration(node.get("lateness"), milliseconds=unit is TimeUnit.MS, default=0)
    columns = _read_columns(node.get("columns"))
    if node.faults or name is None or crs is None or tick is None or lateness is None or dedupe is None:
        return None
    return Feed(name, Crs(crs), unit, tick, lateness, dedupe, columns)


def _read_columns(node: Node) -> dict[str, ColumnType]:
    if not node.present:
        return {}
    columns = {}
    for name, child in node.members():
        if name in CORE_COLUMNS:
            # A feed may repeat a core column's type, as exports of other tools do; it may not change it.
            given = child.choice([kind.value for kind in ColumnType])
            if given and given != CORE_TYPES[name].value:
                child.fault(f"{name!r} is a core column of type {CORE_TYPES[name].value}; leave it out of 'columns'")
        elif name in (SEQ, CLOCK) or not name or name.startswith("$"):
            child.fault(f"{name!r} is a reserved name; rename the column")
        elif kind := child.choice([kind.value for kind in ColumnType]):
            columns[name] = ColumnType(kind)
    return columns
