"""Specifications of the family `arrival` (decision 27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.context import COMMON_KEYS, Context
from engine.model.conditions import Conditions
from engine.model.region import Region

SPANS = ("within", "over", "gap")


@dataclass(frozen=True)
class ArrivalSpecification:
    """Who will be in `region` within the next `within`, by the course and speed made good `over`
    the time before; a report is valid for `gap`."""

    name: str
    where: Conditions
    region: Region
    within: int
    over: int
    gap: int


def check(document: Mapping[str, Any], context: Context) -> ArrivalSpecification:
    """The specification of a document. Faults are noted in `context`; then
    the result must not be used."""
    context.object(document, required=("family", "region", *SPANS), optional=COMMON_KEYS)
    where = context.at("where").where(document.get("where", []))
    region = context.at("region").region(document["region"]) if "region" in document else None
    within, over, gap = ((context.at(key).duration(document[key], least=1) if key in document else None) or 1 for key in SPANS)
    return ArrivalSpecification(document.get("name", ""), where, region, within, over, gap)  # type: ignore[arg-type]  # none where it is refused


def uses_places(specification: ArrivalSpecification) -> bool:
    return True
