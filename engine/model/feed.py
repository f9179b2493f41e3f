"""A feed: one named stream with one schema and one clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from engine.model.faults import Faults, Refused, unknown_name
from engine.model.messages import Message, message_of

LARGEST_TIME = 2**61
"""Times and time spans stay below this (exclusive), so that the sum of two is an int64. Nanoseconds
since 1970 fit until 2043."""


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
        "event": ColumnType.STRING,
        "entity": ColumnType.STRING,
        "t": ColumnType.INT,
        "t_end": ColumnType.INT,
        "x": ColumnType.FLOAT,
        "y": ColumnType.FLOAT,
    }
)
COLUMNS = 1_000
"""Attributes of one feed at most: each row is stored and read with all of them, and ten times as
many cost minutes a request."""
RESERVED_COLUMNS = frozenset(["seq", "clock", "route"])
"""Names that the engine adds to rows."""

KEYS = ("name", "crs", "time", "tick", "lateness", "dedupe", "columns", "ahead")
"""The keys of a FEED.json document."""
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Feed:
    """Schema and clock of a stream (specification 1).

    `lateness` and `tick` are in the unit of `t` (milliseconds on an `ms` feed, ticks
    otherwise); `columns` are the attributes beyond the core ones, with their types, in declared
    order. `ahead` (null: without bound) is how far one row may move the clock on; the code that
    reads rows refuses those beyond (engine/model/clock.py), so what a feed has accepted does
    not depend on it any more.
    """

    name: str
    crs: Crs
    time: TimeUnit
    tick: int = 1
    lateness: int = 0
    dedupe: bool = True
    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    ahead: int | None = None

    @classmethod
    def from_json(cls, document: Any) -> Feed:
        """The feed of a FEED.json document. Raises Refused with all faults.

        >>> sea = {"name": "sea", "crs": "geographic", "time": "ms", "lateness": "PT1M"}
        >>> Feed.from_json(sea).lateness
        60000
        """
        return _Reader(document).feed()

    def to_json(self) -> dict[str, Any]:
        """The document that `from_json` reads back."""
        guard = {} if self.ahead is None else {"ahead": self.ahead}
        return {
            "name": self.name,
            "crs": str(self.crs),
            "time": str(self.time),
            "tick": self.tick,
            "lateness": self.lateness,
            "dedupe": self.dedupe,
            "columns": {name: str(kind) for name, kind in self.columns.items()},
            **guard,
        }

    @property
    def types(self) -> dict[str, ColumnType]:
        """Types of all columns: the core ones first."""
        return {**CORE_TYPES, **self.columns}

    def moment(self, t: int) -> str:
        """A time of the feed in readable form.

        >>> sea = Feed.from_json({"name": "sea", "crs": "geographic", "time": "ms"})
        >>> sea.moment(1_700_000_000_500), sea.moment(10**17)
        ('2023-11-14 22:13:20.500 UTC', '100000000000000000')
        """
        if self.time is TimeUnit.TICKS:
            return str(t)
        try:
            return (_EPOCH + timedelta(milliseconds=t)).isoformat(" ", "milliseconds").removesuffix("+00:00") + " UTC"
        except OverflowError:
            return str(t)


class _Reader:
    """Reads one document and collects its faults."""

    def __init__(self, document: Any) -> None:
        self.faults = Faults()
        self.document: Mapping[str, Any] = {}
        if isinstance(document, Mapping):
            self.document = document
        else:
            self.fault("", Message("a feed is a JSON object with {keys}", keys=", ".join(KEYS)))

    def fault(self, pointer: str, message: Message) -> None:
        self.faults.note(pointer, message)

    def feed(self) -> Feed:
        for key in self.document:
            if key not in KEYS:
                self.fault(f"/{escaped(key)}", unknown_name(key, KEYS, what=Message("key")))
        name, crs = self.name(), self.choice("crs", Crs)
        time = self.choice("time", TimeUnit, TimeUnit.MS)
        tick, lateness = self.whole("tick", 1, 1), self.span("lateness", time)
        ahead = None if self.document.get("ahead") is None else self.span("ahead", time)
        dedupe = self.document.get("dedupe", True)
        if not isinstance(dedupe, bool):
            self.fault("/dedupe", Message("must be true or false"))
        columns = self.columns()
        if self.faults:
            raise Refused(self.faults)
        return Feed(name, crs, time, tick, lateness, dedupe, columns, ahead)

    def name(self) -> str:
        name = self.document.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.fault("/name", Message("a feed needs a name: 1 to 100 characters without control characters"))
        return str(name)

    def choice(self, key: str, kind: type[StrEnum], default: StrEnum | None = None) -> Any:
        value = self.document.get(key, default)
        try:
            return kind(value)
        except ValueError:
            self.fault(f"/{key}", Message("must be one of: {known}", known=", ".join(kind)))
            return default

    def whole(self, key: str, default: int, least: int) -> int:
        return self._whole(key, self.document.get(key, default), default, least)

    def _whole(self, key: str, value: Any, default: int, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value in (float("inf"), -float("inf")):
            self.fault(f"/{key}", Message("must be a whole number of at least {least}", least=least))
        elif value != int(value) or not least <= value < LARGEST_TIME // 2:
            self.fault(f"/{key}", Message("must be a whole number from {least} to below 2^60, not {value}", least=least, value=value))
        else:
            return int(value)
        return default

    def span(self, key: str, time: TimeUnit) -> int:
        """A span of time, 0 if missing: a number in the unit of `t`, or a duration."""
        from engine.model.durations import parse_duration

        value = self.document.get(key, 0)
        if isinstance(value, str):
            try:
                if time is not TimeUnit.MS:
                    raise ValueError(Message('durations such as "PT3M" are for feeds whose time is "ms"; give a number of ticks'))
                value = max(-LARGEST_TIME, min(parse_duration(value), LARGEST_TIME))
            except ValueError as error:
                self.fault(f"/{key}", message_of(error))
                return 0
        return self._whole(key, value, 0, 0)

    def columns(self) -> dict[str, ColumnType]:
        types = self.document.get("columns", {})
        if not isinstance(types, Mapping):
            self.fault("/columns", Message('must be an object from column name to type, for example {"sog": "float"}'))
            return {}
        if len(types) > COLUMNS:
            self.fault("/columns", Message("a feed has at most {most:,} columns, not {count:,}", most=COLUMNS, count=len(types)))
            return {}
        columns = {}
        for name, kind in types.items():
            pointer = f"/columns/{escaped(name)}"
            if name in RESERVED_COLUMNS or not _COLUMN.fullmatch(str(name)):
                self.fault(
                    pointer,
                    Message(
                        "{name} is not a column name: letters, digits and _, not one of {known}",
                        name=repr(name),
                        known=", ".join(sorted(RESERVED_COLUMNS)),
                    ),
                )
            elif kind not in list(ColumnType):
                self.fault(pointer, Message("must be one of: {known}", known=", ".join(ColumnType)))
            elif name in CORE_TYPES and kind != CORE_TYPES[name]:
                self.fault(pointer, Message("column {name} of every feed is of type {type}", name=repr(name), type=CORE_TYPES[name]))
            elif name not in CORE_TYPES:
                columns[str(name)] = ColumnType(kind)
        return columns


def escaped(key: object) -> str:
    """A key as one step of a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")
