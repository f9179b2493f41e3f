"""How the parts of a document are read: values of the kinds that all families share, each fault
noted with the pointer to its place."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.model.conditions import OPERATORS, Condition, Conditions, Constant
from engine.model.durations import duration_text, parse_duration
from engine.model.faults import Faults, Refused, unknown_name
from engine.model.feed import LARGEST_TIME, ColumnType, Feed, TimeUnit, escaped
from engine.model.messages import Message, all_of, either, message_of
from engine.model.region import Region, read_region

COMMON_KEYS = ("family", "version", "name", "where")
"""Keys that every family's document may have."""
MAX_NAME = 200
ITEMS = Message("items")
Range = tuple[str, float | None, float | None]
"""One dimension of a box of ranges: column, low, high of `[low, high)`; None = unbounded."""


@dataclass(frozen=True)
class Context:
    """The context of a document that is read, and a cursor: the pointer to the part being read.
    Readers return null (or an empty value) after noting a fault, and later readers must not note it
    again. The result of a family's check counts only if no fault was noted.
    """

    feed: Feed
    regions: Mapping[str, Any] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    pointer: str = ""

    def at(self, *steps: object) -> Context:
        """The cursor moved to a part: keys and positions."""
        return replace(self, pointer=self.pointer + "".join(f"/{escaped(step)}" for step in steps))

    def fault(self, message: Message) -> None:
        """Notes a fault of the part under the cursor. The message names the remedy."""
        self.faults.note(self.pointer, message)

    # -- structure ---------------------------------------------------------------------------------

    def object(self, value: Any, *, required: Sequence[str] = (), optional: Sequence[str] = ()) -> Mapping[str, Any]:
        """`value` if it is an object; faults for missing and for unknown keys.
        Empty when it is no object."""
        if not isinstance(value, Mapping):
            self.fault(Message("must be an object with the keys: {known}", known=", ".join([*required, *optional])))
            return {}
        known = list(dict.fromkeys([*required, *optional]))
        for key in value:
            if key not in known:
                self.at(key).fault(unknown_name(key, known, what=Message("key")))
        for key in required:
            if key not in value:
                self.fault(Message("the key {key} is missing", key=repr(key)))
        return value

    def items(self, value: Any, *, least: int = 0, most: int | None = None, what: Message = ITEMS) -> Sequence[Any]:
        """`value` if it is a list of `least` to `most` items, else empty."""
        if not isinstance(value, list | tuple):
            self.fault(Message("must be a list of {what}", what=what))
            return ()
        count = len(value)
        if most is None and count < least:
            self.fault(Message("must be a list of at least {least} {what}, not {count}", least=least, what=what, count=count))
        elif most is None or least <= count <= most:
            return value
        elif least == most:
            self.fault(Message("must be a list of exactly {least} {what}, not {count}", least=least, what=what, count=count))
        else:
            self.fault(Message("must be a list of {least} to {most} {what}, not {count}", least=least, most=most, what=what, count=count))
        return ()

    # -- plain values ------------------------------------------------------------------------------

    def string(self, value: Any, *, most: int = MAX_NAME) -> str | None:
        """A non-empty text of at most `most` characters."""
        if not isinstance(value, str) or not value.strip():
            self.fault(Message("must be a text that is not empty"))
        elif len(value) > most:
            self.fault(Message("must have at most {most} characters, not {count}", most=most, count=len(value)))
        else:
            return value
        return None

    def choice(self, value: Any, options: Sequence[str]) -> str | None:
        """One of `options`."""
        if isinstance(value, str) and value in options:
            return value
        self.fault(unknown_name(value, options, what=Message("value")))
        return None

    def boolean(self, value: Any) -> bool:
        if not isinstance(value, bool):
            self.fault(Message("must be true or false"))
            return False
        return value

    def number(self, value: Any, *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf) -> float | None:
        """A finite number with `least <= number <= most` and `number > above`, as it
        was written (int or float)."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.fault(Message("must be a number"))
        elif not least <= value <= most or not value > above:
            self.fault(Message("must be {bounds}, not {value}", bounds=_span(least, most, above), value=value))
        else:
            return value
        return None

    def integer(self, value: Any, *, least: float = -math.inf, most: float = math.inf) -> int | None:
        """A whole number; 3.0 is one."""
        number = self.number(value, least=least, most=most)
        if number is None:
            return None
        if number != int(number):
            self.fault(Message("must be a whole number, not {value}", value=value))
            return None
        return int(number)

    def duration(self, value: Any, *, least: float = 0) -> int | None:
        """A span of time in the unit of `t`: a whole number, or an ISO 8601
        duration on an `ms` feed."""
        if isinstance(value, str):
            if self.feed.time is not TimeUnit.MS:
                self.fault(Message('durations such as "PT3M" are for feeds whose time is "ms"; give a number of ticks'))
                return None
            try:
                # Longer ones are refused below like this one; their numbers may be no doubles
                # and too long to be shown.
                value = max(-LARGEST_TIME, min(parse_duration(value), LARGEST_TIME))
            except ValueError as error:
                self.fault(message_of(error))
                return None
        elif isinstance(value, bool) or not isinstance(value, int | float):
            ticks = self.feed.time is TimeUnit.TICKS
            whole, either_form = (
                Message("must be a span of time: a whole number"),
                Message('must be a span of time: a whole number or a duration such as "PT3M"'),
            )
            self.fault(whole if ticks else either_form)
            return None
        span = self.integer(value, least=least)
        if span is not None and abs(span) >= LARGEST_TIME // 2:
            self.fault(Message("must be below 2^60; leave the bound out, or give null where the key allows it, for no bound"))
            return None
        return span

    def span_text(self, span: int) -> str:
        """A span of time as messages show it: with units on an `ms` feed, else in ticks."""
        return duration_text(span) if self.feed.time is TimeUnit.MS else str(span)

    # -- names of the feed -------------------------------------------------------------------------

    def column(self, value: Any, *, kinds: Sequence[ColumnType] | None = None) -> str | None:
        """The name of a column of the feed, of one of `kinds` if given."""
        types = self.feed.types
        if not isinstance(value, str) or value not in types:
            self.fault(unknown_name(value, types, what=Message("column")))
            return None
        if kinds is not None and types[value] not in kinds:
            self.fault(
                Message("column {value} is of type {type}; here it must be {kinds}", value=repr(value), type=types[value], kinds=either(kinds))
            )
            return None
        return value

    def where(self, value: Any) -> Conditions:
        """A list of conditions `[column, op, constant]`."""
        items = self.items(value, what=Message("conditions [column, op, constant]"))
        read = [self.at(i).condition(item) for i, item in enumerate(items)]
        return Conditions(tuple(item for item in read if item is not None))

    def condition(self, value: Any) -> Condition | None:
        """One condition `[column, op, constant]`."""
        parts = self.items(value, least=3, most=3, what=Message("parts: column, op, constant"))
        if not parts:
            return None
        column, op = self.at(0).column(parts[0]), self.at(1).choice(parts[1], OPERATORS)
        if column is None or op is None:
            return None
        kind = self.feed.types[column]
        if kind is ColumnType.BOOL and op not in ("=", "!=", "in"):
            self.at(1).fault(Message("column {column} is of type bool, which has no order: use =, != or in", column=repr(column)))
            return None
        here = self.at(2)
        if op != "in":
            constant = here.constant(parts[2], kind, column)
            return None if constant is None else Condition(column, op, constant)
        items = here.items(parts[2], what=Message("constants"))
        constants = [here.at(i).constant(one, kind, column) for i, one in enumerate(items)]
        if not isinstance(parts[2], list | tuple) or None in constants:
            return None
        return Condition(column, op, tuple(one for one in constants if one is not None))

    def constant(self, value: Any, kind: ColumnType, column: str) -> Constant | None:
        """A constant that values of a column of type `kind` are compared with."""
        if kind is ColumnType.STRING and isinstance(value, str):
            return value
        if kind is ColumnType.BOOL and isinstance(value, bool):
            return value
        if kind in (ColumnType.INT, ColumnType.FLOAT) and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return value
        needed = {ColumnType.STRING: Message("a text"), ColumnType.BOOL: Message("true or false")}.get(kind, Message("a number"))
        self.fault(Message("column {column} is of type {kind}: the constant must be {needed}", column=repr(column), kind=kind, needed=needed))
        return None

    def region(self, value: Any) -> Region | None:
        """A region document, or a reference `{"region": "name"}` to a stored one."""
        if isinstance(value, Mapping) and set(value) == {"region"}:
            name = value["region"]
            if not isinstance(name, str) or name not in self.regions:
                self.at("region").fault(unknown_name(name, self.regions, what=Message("region")))
                return None
            value = self.regions[name]
        elif isinstance(value, str):
            self.fault(Message('a stored region is named by {"region": {name}}', name=json.dumps(value, ensure_ascii=False)))
            return None
        try:
            return read_region(value, self.feed.crs, self.pointer)
        except Refused as refused:
            self.faults.extend(refused.faults)
            return None

    def ranges(self, value: Any, *, most: int = 9) -> tuple[Range, ...]:
        """`{column: [lo, hi]}` as (column, lo, hi) sorted by column: half-open,
        null = unbounded, lo < hi."""
        if not isinstance(value, Mapping) or not value:
            self.fault(Message('must be an object from column to [lo, hi], for example {"price": [10, null]}'))
            return ()
        if len(value) > most:
            self.fault(Message("must have at most {most} columns, not {count}", most=most, count=len(value)))
        read = [self.at(column)._range(column, bounds) for column, bounds in value.items()]
        return tuple(sorted((one for one in read if one is not None), key=lambda one: one[0]))

    def watched(self, document: Mapping[str, Any]) -> tuple[Region | None, tuple[Range, ...]]:
        """The region, or the ranges of columns, that a document names: one of both."""
        if ("region" in document) == ("ranges" in document):
            both = "region" in document
            self.fault(Message("must have either 'region' or 'ranges', not both") if both else Message("must have either 'region' or 'ranges'"))
            return None, ()
        if "region" in document:
            return self.at("region").region(document["region"]), ()
        return None, self.at("ranges").ranges(document["ranges"])

    def _range(self, name: Any, bounds: Any) -> Range | None:
        column = self.column(name, kinds=(ColumnType.INT, ColumnType.FLOAT))
        pair = self.items(bounds, least=2, most=2, what=Message("numbers [lo, hi], null = unbounded"))
        if column is None or not pair:
            return None
        before = len(self.faults)
        low, high = (None if one is None else self.at(i)._bound(one) for i, one in enumerate(pair))
        if len(self.faults) > before:
            return None
        if low is not None and high is not None and not low < high:
            self.fault(Message("[{low}, {high}) holds nothing: the first number must be less than the second", low=low, high=high))
            return None
        return column, low, high

    def _bound(self, value: Any) -> float | None:
        """A number that a double holds: ranges are indexed by doubles."""
        number = self.number(value)
        if number is None or float(number) == number:
            return number
        self.fault(Message("must be a number that a double holds, for example {near}, not {value}", near=int(float(number)), value=number))
        return None


def _span(least: float, most: float, above: float) -> Message:
    words = []
    if least > -math.inf:
        words.append(Message("at least {least}", least=_written(least)))
    if above > -math.inf:
        words.append(Message("greater than {above}", above=_written(above)))
    if most < math.inf:
        words.append(Message("at most {most}", most=_written(most)))
    return all_of(words)


def _written(bound: float) -> str:
    """
    >>> _written(1_000_000_000), _written(0.5)
    ('1000000000', '0.5')
    """
    return str(int(bound)) if float(bound).is_integer() and abs(bound) < 1e15 else f"{bound:g}"
