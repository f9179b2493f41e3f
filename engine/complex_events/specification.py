"""Specifications of the family `composite` (specification 5.5).

A pattern is written as text or as a JSON tree; both result in the same `Pattern`. A primitive
matches events by conditions on columns, by the beginning of a text (an EPC prefix), or by a region.
The last two are additions to the specification's form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.complex_events import pattern as tree
from engine.complex_events.pattern import Pattern, pattern_text
from engine.complex_events.pattern_text import MAX_PRIMITIVES, PatternRefused, translate
from engine.complex_events.requirements import lookback, total
from engine.context import COMMON_KEYS, Context
from engine.model.conditions import Conditions
from engine.model.faults import unknown_name
from engine.model.feed import ColumnType, Feed
from engine.model.messages import Message, message_of
from engine.model.region import Region

MAX_DEPTH = 256
MAX_PREFIX = 1_000
WORDS = ("and", "or", "null")
"""Names that a primitive cannot have: words of the text form."""
_NAME = re.compile(r"[^\W\d]\w{0,99}")
_KEYS = ("and", "or", "interval", "absence", "before", "around", "sequence")


@dataclass(frozen=True)
class PrimitiveFilter:
    """The conditions on an event that matches a primitive; all must hold.

    `prefixes`: (column, beginning of its text), sorted. `regions`: the event is in all of them;
    `outside`: it has a position and is in none of these.
    """

    name: str
    where: Conditions = field(default_factory=Conditions)
    prefixes: tuple[tuple[str, str], ...] = ()
    regions: tuple[Region, ...] = ()
    outside: tuple[Region, ...] = ()


@dataclass(frozen=True)
class CompositeSpecification:
    """`primitives` are those that the pattern names, in the order of their first appearance. A
    pattern that can never occur has no answers."""

    name: str
    where: Conditions
    pattern: Pattern
    primitives: tuple[PrimitiveFilter, ...]
    per_entity: bool
    within: int

    @property
    def retention(self) -> int:
        """How long an event is needed: for an occurrence, or to rule one out."""
        return total(self.within, lookback(self.pattern))

    def text(self) -> str:
        """The pattern as text."""
        return pattern_text(self.pattern)


def check(document: Mapping[str, Any], context: Context) -> CompositeSpecification | None:
    """The specification of a document; faults are noted in `context`."""
    context.object(document, required=("family", "pattern", "primitives", "within"), optional=(*COMMON_KEYS, "per"))
    before = len(context.faults)
    where = context.at("where").where(document.get("where", []))
    filters = _read_primitives(document.get("primitives"), context.at("primitives")) if "primitives" in document else {}
    reader = _PatternReader(list(filters))
    found = reader.read(document["pattern"], context.at("pattern")) if "pattern" in document else None
    within = context.at("within").duration(document["within"]) if "within" in document else None
    per = document.get("per")
    if per not in (None, "entity"):
        context.at("per").fault(Message('must be "entity" (all events of an occurrence share it) or null'))
    if len(context.faults) > before or found is None or within is None:
        return None
    used = tuple(filters[name] for name in tree.primitives(found))
    return CompositeSpecification(document.get("name", ""), where, found, used, per == "entity", within)


def uses_places(specification: CompositeSpecification) -> bool:
    return any(one.regions or one.outside for one in specification.primitives)


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """Whether the pattern can never occur, because it takes too long."""
    context = Context(feed, {})
    found = _PatternReader(list(document["primitives"])).read(document["pattern"], context.at("pattern"))
    within = context.at("within").duration(document["within"])
    if found is None or within is None:
        return []
    least = tree.shortest(found)
    if least is None:
        return [str(Message("no answers: the spans of the pattern contradict each other, so that it cannot occur"))]
    if least > within:
        notice = Message(
            "no answers: an occurrence takes at least {least}, but 'within' is {within}",
            least=context.span_text(least), within=context.span_text(within),
        )  # fmt: skip
        return [str(notice)]
    return []


# -- primitives ------------------------------------------------------------------------------------


def _read_primitives(value: Any, context: Context) -> dict[str, PrimitiveFilter]:
    if not isinstance(value, Mapping) or not value:
        context.fault(Message('must be an object from primitive to what it matches, for example {"A": {"where": [["reader", "=", "dock-1"]]}}'))
        return {}
    if len(value) > MAX_PRIMITIVES:
        context.fault(Message("must have at most {most} primitives, not {count}", most=MAX_PRIMITIVES, count=len(value)))
        return {}
    return {str(name): _read_primitive(name, entry, context.at(name)) for name, entry in value.items()}


def _read_primitive(name: Any, entry: Any, context: Context) -> PrimitiveFilter:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in WORDS:
        context.fault(
            Message(
                "{name} is not a name of a primitive: letters, digits and _, not beginning with a digit, at most 100, and no keyword",
                name=repr(name),
            )
        )
    given = context.object(entry, optional=("where", "prefix", "inside", "outside"))
    where = context.at("where").where(given.get("where", []))
    prefixes = _read_prefixes(given["prefix"], context.at("prefix")) if "prefix" in given else ()
    regions: dict[str, tuple[Region, ...]] = {}
    for key in ("inside", "outside"):
        region = context.at(key).region(given[key]) if key in given else None
        regions[key] = () if region is None else (region,)
    return PrimitiveFilter(str(name), where, prefixes, regions["inside"], regions["outside"])


def _read_prefixes(value: Any, context: Context) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not value:
        context.fault(Message('must be an object from column to the beginning of its text, for example {"entity": "urn:epc:id:sgtin:0614141."}'))
        return ()
    found = []
    for name, beginning in value.items():
        column = context.at(name).column(name, kinds=(ColumnType.STRING,))
        text = context.at(name).string(beginning, most=MAX_PREFIX)
        if column is not None and text is not None:
            found.append((column, text))
    return tuple(sorted(found))


# -- patterns --------------------------------------------------------------------------------------


class _PatternReader:
    """Reads a pattern over known primitives."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.count = 0

    def read(self, value: Any, context: Context) -> Pattern | None:
        """The pattern of a text or a tree; faults of a text name line and column."""
        if not isinstance(value, str):
            if not isinstance(value, Mapping):
                context.fault(Message('must be a text such as "A : !B : C", or a tree such as {"sequence": ["A", "C"], "without": "B"}'))
                return None
            return self.node(value, context, 0)
        try:
            translated = translate(value)
        except PatternRefused as refused:
            context.fault(message_of(refused))
            return None
        inner = Context(context.feed, context.regions)
        found = self.node(translated.tree, inner, 0)
        for fault in inner.faults:
            line, column = translated.location(fault.pointer)
            context.fault(Message("line {line}, column {column}: {message}", line=line, column=column, message=fault.message))
        return found

    def node(self, value: Any, context: Context, depth: int) -> Pattern | None:
        """One node of a tree; null after a fault."""
        if depth > MAX_DEPTH:
            context.fault(Message("the tree is more than {most} levels deep", most=MAX_DEPTH))
            return None
        if isinstance(value, str):
            return self.primitive(value, context)
        key = next((one for one in _KEYS if one in value), None) if isinstance(value, Mapping) else None
        if key is None:
            context.fault(Message("must be the name of a primitive or an object with one of the keys: {known}", known=", ".join(_KEYS)))
            return None
        given = context.object(value, required=(key, *_REQUIRED[key]), optional=_OPTIONAL[key])
        most = 2 if key in ("interval", "absence", "before", "around") or set(given) - {key} else MAX_PRIMITIVES
        here = context.at(key)
        parts = [
            self.node(part, here.at(i), depth + 1) for i, part in enumerate(here.items(given[key], least=2, most=most, what=Message("patterns")))
        ]
        before = len(context.faults)
        low, high = self.bounds(given["bounds"], context.at("bounds")) if "bounds" in given else (0, None)
        span = context.at("span").duration(given["span"]) if "span" in given else None
        without = self.node(given["without"], context.at("without"), depth + 1) if "without" in given else None
        if len(context.faults) > before or not parts or None in parts or ("span" in _REQUIRED[key] and span is None):
            return None
        return _fold(key, [part for part in parts if part is not None], low, high, span, without)

    def primitive(self, name: str, context: Context) -> Pattern | None:
        self.count += 1
        if self.count == MAX_PRIMITIVES + 1:
            context.fault(Message("the pattern names more than {most} primitives", most=MAX_PRIMITIVES))
        if name not in self.names:
            context.fault(unknown_name(name, self.names, what=Message("primitive")))
            return None
        return tree.Primitive(name)

    def bounds(self, value: Any, context: Context) -> tuple[int, int | None]:
        """[lo, hi] of a sequence, hi may be null."""
        pair = context.items(value, least=2, most=2, what=Message("spans of time [lo, hi], null = unbounded"))
        if not pair:
            return 0, None
        low, high = (None if one is None else context.at(i).duration(one) for i, one in enumerate(pair))
        if low is not None and high is not None and low > high:
            context.fault(Message("[{low}, {high}] holds nothing: the first number must not be greater than the second", low=low, high=high))
        return low or 0, high


_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "and": (),
    "or": (),
    "interval": ("span",),
    "absence": ("span",),
    "before": ("span",),
    "around": ("span",),
    "sequence": (),
}
_OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "and": (),
    "or": (),
    "interval": (),
    "absence": (),
    "before": (),
    "around": (),
    "sequence": ("bounds", "without"),
}


def _fold(key: str, parts: list[Pattern], low: int, high: int | None, span: int | None, without: Pattern | None) -> Pattern:
    """The operator over its operands; more than two associate to the left."""
    found = parts[0]
    for part in parts[1:]:
        match key:
            case "and":
                found = tree.And(found, part)
            case "or":
                found = tree.Or(found, part)
            case "interval":
                found = tree.And(found, part, span)
            case "absence" | "before" | "around":
                assert span is not None
                found = {"absence": tree.Absence, "before": tree.Before, "around": tree.Around}[key](found, part, span)
            case _:
                found = tree.Sequence(found, part, low, high, without)
    return found
