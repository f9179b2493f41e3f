"""Specifications of the family `occupancy` (specification 5.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.context import COMMON_KEYS, Context
from engine.model.conditions import Conditions
from engine.model.messages import Message
from engine.model.region import Region

AT_LEAST, AT_MOST = ">=", "<="
Range = tuple[str, float | None, float | None]
"""One dimension of a box of ranges: column, low, high of `[low, high)`; None = unbounded."""


@dataclass(frozen=True)
class OccupancySpecification:
    """Counts the entities in one region or one box of ranges: exactly one of `region` and `ranges` is given.

    `op` (AT_LEAST or AT_MOST) compares the count with `n`. A tuple counts for `stale` after its time (None: for ever).
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
    """The specification of a document. What is wrong is noted in `context`; the result is then of no use."""
    context.object(document, required=("family", "count"), optional=(*COMMON_KEYS, "region", "ranges", "stale", "lasting"))
    where = context.at("where").where(document.get("where", []))
    region, ranges = _watched(document, context)
    op, n = _count(document["count"], context.at("count")) if "count" in document else (AT_LEAST, 1)
    stale, lasting = (None if document.get(key) is None else context.at(key).duration(document[key]) for key in ("stale", "lasting"))
    return OccupancySpecification(document.get("name", ""), where, region, ranges, op, n, stale, lasting or 0)


def _watched(document: Mapping[str, Any], context: Context) -> tuple[Region | None, tuple[Range, ...]]:
    if ("region" in document) == ("ranges" in document):
        both = "region" in document
        context.fault(Message("must have either 'region' or 'ranges', not both") if both else Message("must have either 'region' or 'ranges'"))
        return None, ()
    if "region" in document:
        return context.at("region").region(document["region"]), ()
    return None, context.at("ranges").ranges(document["ranges"])


def _count(value: Any, context: Context) -> tuple[str, int]:
    pair = context.items(value, least=2, most=2, what=Message('parts: ">=" or "<=", and a number of entities'))
    if not pair:
        return AT_LEAST, 1
    op, n = context.at(0).choice(pair[0], (AT_LEAST, AT_MOST)), context.at(1).integer(pair[1], least=0)
    if op == AT_LEAST and n == 0:
        context.at(1).fault(Message('must be at least 1 with ">=": a count is never below 0'))
    return op or AT_LEAST, n or 0
