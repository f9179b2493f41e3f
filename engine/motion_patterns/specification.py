"""Specifications of the family `motion` (specification 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.context import COMMON_KEYS, Context
from engine.model.conditions import Conditions
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed
from engine.model.messages import Message
from engine.model.region import Region

MAX_PREDICATES = 64
MAX_K = 1_000_000
RELATIONS = ("inside", "outside", "distance")
TOTAL_KEYS = ("at_least", "at_most", "gap")
OPS = ("<=", ">=", "min", "max", "top")


@dataclass(frozen=True)
class TargetPoint:
    """A point: longitude, latitude in degrees on a geographic feed
    (`geodesic`), else plane coordinates."""

    x: float
    y: float
    geodesic: bool


@dataclass(frozen=True)
class Total:
    """The quantifier `total`: the time is at least `span` (`at_most`: at most); a position is held
    until the next sample, at most for `gap` (null: without limit)."""

    span: int
    at_most: bool
    gap: int | None


@dataclass(frozen=True)
class Predicate:
    """One spatial predicate of a motion pattern.

    `relation` is one of RELATIONS; for `distance` (numerical) `target` may be a TargetPoint.
    `window` is (from, to), spans in the unit of `t`: samples with T - from < t <= T - to; null: the
    predicate holds in order. `total`: the time spent counts, not single samples.
    """

    relation: str
    target: Region | TargetPoint
    window: tuple[int, int] | None
    forall: bool = False
    total: Total | None = None

    @property
    def numerical(self) -> bool:
        return self.relation == "distance"

    @property
    def in_order(self) -> bool:
        """Whether the predicate is in the order, or would be without a window."""
        return not self.numerical and self.total is None


@dataclass(frozen=True)
class Theta:
    """Which scores satisfy: `op` is one of OPS; `value` for comparisons; `k` and `descending`
    (greatest first) for `top`."""

    op: str
    value: float = 0.0
    k: int = 0
    descending: bool = False

    @property
    def ranks(self) -> bool:
        """Whether entities are compared with each other."""
        return self.op in ("min", "max", "top")


@dataclass(frozen=True)
class MotionSpecification:
    """A motion pattern, evaluated at the multiples of `every`; `horizon` bounds the
    predicates without a window."""

    name: str
    where: Conditions
    predicates: tuple[Predicate, ...]
    theta: Theta | None
    every: int
    horizon: int | None = None


def check(document: Mapping[str, Any], context: Context) -> MotionSpecification:
    """The specification of a document. Faults are noted in `context`; the result is then
    invalid."""
    context.object(document, required=("family", "predicates", "every"), optional=(*COMMON_KEYS, "theta", "horizon"))
    where = context.at("where").where(document.get("where", []))
    here = context.at("predicates")
    items = here.items(document["predicates"], least=1, most=MAX_PREDICATES, what=Message("predicates")) if "predicates" in document else ()
    read = [_predicate(item, here.at(i)) for i, item in enumerate(items)]
    predicates = tuple(one for one in read if one is not None)
    every = context.at("every").duration(document["every"], least=1) if "every" in document else None
    return MotionSpecification(
        name=document.get("name", ""),
        where=where,
        predicates=predicates,
        theta=_theta(document, context, items),
        every=every or 1,
        horizon=_horizon(document, context, items),
    )


def uses_places(specification: MotionSpecification) -> bool:
    return True


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """Totals that can never be reached: such a query has no answers."""
    context = Context(feed, {})
    predicates = enumerate(document["predicates"], start=1)
    return [str(notice) for number, members in predicates if (notice := _unreachable_total(number, members, context)) is not None]


def _unreachable_total(number: int, members: Mapping[str, Any], context: Context) -> Message | None:
    window, total = _window(members.get("window"), context), _total(members, members.get("quantifier"), context)
    if total is None or total.at_most or window is None:
        return None
    length, least = (context.span_text(span) for span in (window[0] - window[1], total.span))
    if total.span > window[0] - window[1]:
        return Message(
            "no answers: the window of predicate {number} is {length} long and cannot hold a total of {least}",
            number=number, length=length, least=least,
        )  # fmt: skip
    if total.gap == 0:
        return Message("no answers: predicate {number} holds a position for the gap after its sample, which is 0", number=number)
    return None


def _predicate(item: Any, context: Context) -> Predicate | None:
    before = len(context.faults)
    members = context.object(item, optional=(*RELATIONS, "window", "quantifier", *TOTAL_KEYS))
    relations = [relation for relation in RELATIONS if relation in members]
    if len(relations) != 1:
        if isinstance(item, Mapping):
            context.fault(
                Message("must have exactly one of the keys 'inside', 'outside' and 'distance', not {count}", count=len(relations))
                if relations
                else Message("must have exactly one of the keys 'inside', 'outside' and 'distance'")
            )
        return None
    relation = relations[0]
    target = _target(members[relation], context.at(relation)) if relation == "distance" else context.at(relation).region(members[relation])
    window = _window(members.get("window"), context.at("window"))
    quantifier = context.at("quantifier").choice(members.get("quantifier", "exists"), ("exists", "forall", "total"))
    forall, total = quantifier == "forall", _total(members, quantifier, context)
    if members.get("window") is None:
        if relation == "distance":
            context.at("window").fault(Message("a distance needs a window [from, to]: it takes no part in the order"))
        elif quantifier == "total":
            context.at("quantifier").fault(Message('"total" needs a window [from, to]: the time in which it adds up'))
        elif forall:
            context.at("quantifier").fault(Message('"forall" needs a window [from, to]; a predicate without one takes only "exists"'))
    return None if len(context.faults) > before or target is None else Predicate(relation, target, window, forall, total)


def _total(members: Mapping[str, Any], quantifier: str | None, context: Context) -> Total | None:
    keys = [key for key in TOTAL_KEYS if key in members]
    if quantifier != "total":
        for key in keys if quantifier is not None else ():
            context.at(key).fault(Message('belongs to the quantifier "total": write "quantifier": "total", or leave the key out'))
        return None
    if "distance" in members:
        context.at("quantifier").fault(Message('"total" adds up the time inside or outside of a region; a distance takes "exists" or "forall"'))
    bounds = [key for key in ("at_least", "at_most") if members.get(key) is not None]
    if len(bounds) != 1:
        context.fault(
            Message("\"total\" needs either 'at_least' or 'at_most', not both")
            if bounds
            else Message("\"total\" needs either 'at_least' or 'at_most'")
        )
        return None
    span = context.at(bounds[0]).duration(members[bounds[0]], least=1 if bounds == ["at_least"] else 0)
    gap = None if members.get("gap") is None else context.at("gap").duration(members["gap"])
    return None if span is None else Total(span, bounds == ["at_most"], gap)


def _window(value: Any, context: Context) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = context.items(value, least=2, most=2, what=Message("spans of time [from, to], counted back from the evaluation time"))
    if not pair:
        return None
    start, end = context.at(0).duration(pair[0]), context.at(1).duration(pair[1])
    if start is None or end is None:
        return None
    if not start > end:
        context.fault(
            Message("[{start}, {end}] holds nothing: it counts back from now, so that the first number is the greater one", start=start, end=end)
        )
        return None
    return start, end


def _target(value: Any, context: Context) -> Region | TargetPoint | None:
    """A point `[x, y]` or GeoJSON Point, or a region."""
    if isinstance(value, Mapping) and value.get("type") == "Point":
        context.object(value, required=("type", "coordinates"), optional=("bbox",))
        return _place(value["coordinates"], context.at("coordinates")) if "coordinates" in value else None
    if isinstance(value, list | tuple):
        return _place(value, context)
    if not isinstance(value, Mapping):
        context.fault(Message("must be a point [x, y], a GeoJSON Point or a region"))
        return None
    return context.region(value)


def _place(value: Any, context: Context) -> TargetPoint | None:
    from engine.model.region import read_region

    if not isinstance(value, list | tuple) or len(value) != 2:
        context.fault(Message("must be a point [x, y] of two numbers"))
        return None
    try:
        # A point obeys the same rules as a circle's centre: finite, on the globe, longitude
        # normalized to [-180, 180].
        circle = read_region({"center": list(value), "radius": 1.0}, context.feed.crs)
    except Refused as refused:
        for fault in refused.faults:
            context.at(*fault.pointer.split("/")[2:]).fault(fault.message)
        return None
    x, y = circle.to_json()["center"]
    return TargetPoint(x, y, context.feed.crs is Crs.GEOGRAPHIC)


def _horizon(document: Mapping[str, Any], context: Context, items: Any) -> int | None:
    value = document.get("horizon")
    if value is not None:
        return context.at("horizon").duration(value, least=1)
    for i, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("window") is None and "distance" not in item:
            context.at("horizon").fault(Message("predicate {number} has no window: the key 'horizon' must say how far back it may lie", number=i + 1))
            break
    return None


def _theta(document: Mapping[str, Any], context: Context, items: Any) -> Theta | None:
    value, here = document.get("theta"), context.at("theta")
    numerical = any(isinstance(item, Mapping) and "distance" in item for item in items)
    if value is None:
        if numerical:
            here.fault(
                Message(
                    'a query with distances needs a theta: {"op": "<=" or ">=", "value": v}, {"op": "min" or "max"} or '
                    '{"op": "top", "k": k, "order": "min" or "max"}'
                )
            )
        return None
    op = value.get("op") if isinstance(value, Mapping) else None
    operands: tuple[str, ...] = {"<=": ("value",), ">=": ("value",), "top": ("k", "order")}.get(op, ()) if isinstance(op, str) else ()
    known = isinstance(op, str) and op in OPS
    members = here.object(value, required=("op", *operands), optional=() if known else ("value", "k", "order"))
    if items and not numerical:
        here.fault(Message("needs a predicate with 'distance': there is no score without one; leave the key out"))
    if "op" not in members or here.at("op").choice(op, OPS) is None:
        return None
    bound = here.at("value").number(members["value"]) if "value" in operands and "value" in members else None
    k = here.at("k").integer(members["k"], least=1, most=MAX_K) if "k" in operands and "k" in members else None
    order = here.at("order").choice(members["order"], ("min", "max")) if "order" in operands and "order" in members else None
    return Theta(str(op), float(bound or 0), k or 0, order == "max")
