"""Specifications of the family `occupancy` (specification 5.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.context import COMMON_KEYS, Context, Range
from engine.model.conditions import Conditions
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.model.region import Region

AT_LEAST, AT_MOST = ">=", "<="
MOST_ENTITIES = 1_000_000_000
"""A greater number is a mistake: no feed has as many entities."""


@dataclass(frozen=True)
class OccupancySpecification:
    """Counts the entities in one region or one box of ranges: exactly one of
    `region` and `ranges` is given.

    `op` (AT_LEAST or AT_MOST) compares the count with `n`. A tuple counts for `stale` after
    its time (None: forever).
    """

    name: str
    where: Conditions
    region: Region | None
    ranges: tuple[Range, ...]
    op: str
    n: int
    stale: int | None = None
    lasting: int = 0


def check(document: Mapping[str, Any], context: Context) -> OccupancySpecification:
    """The specification of a document. Faults are noted in `context`; then
    the result must not be used."""
    context.object(document, required=("family", "count"), optional=(*COMMON_KEYS, "region", "ranges", "stale", "lasting"))
    where = context.at("where").where(document.get("where", []))
    region, ranges = context.watched(document)
    op, n = _count(document["count"], context.at("count")) if "count" in document else (AT_LEAST, 1)
    stale, lasting = (None if document.get(key) is None else context.at(key).duration(document[key]) for key in ("stale", "lasting"))
    return OccupancySpecification(document.get("name", ""), where, region, ranges, op, n, stale, lasting or 0)


def uses_places(specification: OccupancySpecification) -> bool:
    return specification.region is not None


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """Tuples that never count: the count is always 0."""
    if document.get("stale") is None or Context(feed).duration(document["stale"]) != 0:
        return []
    return [str(Message("the count is always 0: a tuple counts for less than the time in stale after it, which is 0"))]


def _count(value: Any, context: Context) -> tuple[str, int]:
    pair = context.items(value, least=2, most=2, what=Message('parts: ">=" or "<=", and a number of entities'))
    if not pair:
        return AT_LEAST, 1
    op, n = context.at(0).choice(pair[0], (AT_LEAST, AT_MOST)), context.at(1).integer(pair[1], least=0, most=MOST_ENTITIES)
    if op == AT_LEAST and n == 0:
        context.at(1).fault(Message('must be at least 1 with ">=": a count is never below 0'))
    return op or AT_LEAST, n or 0
