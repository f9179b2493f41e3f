"""Specifications of the families `border` and `transition`, checked completely (CONTRACT 2.1, 2.2)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.border_monitoring.transitions import NAMES
from engine.model.conditions import Conditions
from engine.model.documents import Node
from engine.model.region import Region
from engine.specification import COMMON_KEYS, Context

MOST_DIMENSIONS = 9


@dataclass(frozen=True)
class RangeBound:
    """One dimension of a box of ranges: `[low, high)` over a column, None = unbounded."""

    column: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BorderSpecification:
    """Watches one region or one box of ranges: exactly one of `region` and `ranges` is given.

    `ranges` are ordered by column, so that equal boxes are equal values. `segments`: also the moves that pass between two samples.
    """

    name: str
    where: Conditions
    region: Region | None = None
    ranges: tuple[RangeBound, ...] = ()
    segments: bool = False


@dataclass(frozen=True)
class TransitionSpecification(BorderSpecification):
    """Pairs the in and out events of the region or ranges: `types` (of transitions.NAMES) within `within` (unit of `t`)."""

    within: int = 0
    types: tuple[str, ...] = NAMES


def check_border(node: Node, context: Context) -> BorderSpecification:
    """The checked border query; what is wrong with it is noted in the node's faults and the result is then of no use."""
    node.expect_object((*COMMON_KEYS, "region", "ranges", "segments"))
    where = context.where(node)
    region, ranges = _watched(node, context)
    segments = bool(node.get("segments").boolean(default=False))
    if segments and node.has("ranges"):
        node.get("segments").fault("needs a region: a move through ranges has no straight line; leave it out")
    return BorderSpecification(context.name(node), where, region, ranges, segments)


def check_transition(node: Node, context: Context) -> TransitionSpecification:
    """The checked transition query; faults as for `check_border`."""
    node.expect_object((*COMMON_KEYS, "region", "ranges", "within", "types"))
    where = context.where(node)
    region, ranges = _watched(node, context)
    within = context.duration(node.get("within"), required=True)
    return TransitionSpecification(context.name(node), where, region, ranges, within=within or 0, types=_types(node.get("types")))


def _watched(node: Node, context: Context) -> tuple[Region | None, tuple[RangeBound, ...]]:
    if node.has("region") == node.has("ranges"):
        node.fault("must have either 'region' or 'ranges'" + (", not both" if node.has("region") else ""))
        return None, ()
    if node.has("region"):
        return context.region(node.get("region")), ()
    return None, _ranges(node.get("ranges"), context)


def _ranges(node: Node, context: Context) -> tuple[RangeBound, ...]:
    members = list(node.members())
    if isinstance(node.value, dict) and not 1 <= len(members) <= MOST_DIMENSIONS:
        node.fault(f"must have 1 to {MOST_DIMENSIONS} columns, not {len(members)}")
    bounds = []
    for column, child in members:
        if context.column(child, column, numeric=True):
            low, high = _ends(child)
            bounds.append(RangeBound(column, low, high))
    return tuple(sorted(bounds, key=lambda bound: bound.column))


def _ends(node: Node) -> tuple[float | None, float | None]:
    """Ends of `[low, high)`; null is unbounded."""
    ends = node.items(least=2, most=2, what="ends: low, high (null for unbounded)")
    if len(ends) != 2:
        return None, None
    low, high = (None if end.null else end.number(required=True) for end in ends)
    if low is not None and high is not None and low >= high:
        node.fault(f"holds no value: low {low:g} must be less than high {high:g} (high is not in the range)")
    return low, high


def _types(node: Node) -> tuple[str, ...]:
    """The asked types, each once, in the order of `NAMES`."""
    if not node.present:
        return NAMES
    asked = [item.choice(NAMES) for item in node.items(least=1, what="types")]
    return tuple(name for name in NAMES if name in asked)
