"""Specifications of the family `encounter` (specification 5.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.context import COMMON_KEYS, Context
from engine.model.conditions import Conditions
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.model.region import Region

LAST, INTERPOLATED = "last", "interpolated"


@dataclass(frozen=True)
class EncounterSpecification:
    """Pairs of entities of the roles `a` and `b` whose places at a multiple of `every` are
    at most `distance` apart.

    A tuple determines its entity's place for less than `gap`; `position` (LAST or INTERPOLATED)
    defines how.
    """

    name: str
    where: Conditions
    a: Conditions
    b: Conditions
    distance: float
    every: int
    gap: int
    position: str = LAST
    inside: Region | None = None
    lasting: int = 0

    @property
    def symmetric(self) -> bool:
        """Whether both roles are the same, so that a pair has no order."""
        return self.a == self.b

    @property
    def interpolated(self) -> bool:
        return self.position == INTERPOLATED


def check(document: Mapping[str, Any], context: Context) -> EncounterSpecification:
    """The specification of a document. Faults are noted in `context`; the result is then
    invalid."""
    required = ("family", "distance", "every", "gap")
    context.object(document, required=required, optional=(*COMMON_KEYS, "a", "b", "position", "inside", "lasting"))
    distance = context.at("distance").number(document["distance"], least=0) if "distance" in document else None
    every = context.at("every").duration(document["every"], least=1) if "every" in document else None
    gap = context.at("gap").duration(document["gap"]) if "gap" in document else None
    lasting = None if document.get("lasting") is None else context.at("lasting").duration(document["lasting"])
    return EncounterSpecification(
        name=document.get("name", ""),
        where=context.at("where").where(document.get("where", [])),
        a=_role(document, "a", context),
        b=_role(document, "b", context),
        distance=float(distance or 0),
        every=every or 1,
        gap=gap or 0,
        position=context.at("position").choice(document.get("position", LAST), (LAST, INTERPOLATED)) or LAST,
        inside=None if document.get("inside") is None else context.at("inside").region(document["inside"]),
        lasting=lasting or 0,
    )


def uses_places(specification: EncounterSpecification) -> bool:
    return True


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """A place that is never valid: such a query has no answers."""
    if Context(feed).duration(document["gap"]) != 0:
        return []
    return [str(Message("no answers: a place is valid for less than the gap after its row, which is 0"))]


def late_option(document: Mapping[str, Any]) -> str | None:
    """Places between two samples are known with the later one."""
    return '"position": "interpolated"' if document.get("position") == INTERPOLATED else None


def known_at(specification: EncounterSpecification, at: str) -> Callable[[pa.Table], pa.Array | pa.ChunkedArray]:
    """Pairs are looked at at the multiples of `every` alone. When interpolated places were decided
    is not in an answer: `gap` later they are."""
    lasting = specification.lasting if at == "start" else 0
    later = -(-lasting // specification.every) * specification.every + (specification.gap if specification.interpolated else 0)
    return lambda answers: pc.add(answers.column(at), later)


def _role(document: Mapping[str, Any], name: str, context: Context) -> Conditions:
    here = context.at(name)
    role = here.object(document.get(name, {}), optional=("where",))
    return here.at("where").where(role.get("where", []))
