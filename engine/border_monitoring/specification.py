"""Specifications of the families `border` and `transition` (specification 5.1, 5.2),
and the options beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.border_monitoring.options import KEYS, NO_OPTIONS, Options, check_options
from engine.border_monitoring.transitions import NAMES
from engine.context import COMMON_KEYS, Context, Range
from engine.model.conditions import Conditions
from engine.model.messages import Message
from engine.model.region import Region


@dataclass(frozen=True)
class BorderSpecification:
    """Watches one region or one box of ranges: exactly one of `region` and `ranges` is given.

    `ranges` are ordered by column, so that equal boxes are equal values. `segments`: also the moves
    that pass between two samples.
    """

    name: str
    where: Conditions
    region: Region | None = None
    ranges: tuple[Range, ...] = ()
    segments: bool = False
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class TransitionSpecification(BorderSpecification):
    """Pairs the in and out events of the region or ranges: `types` (of transitions.NAMES)
    within `within` (unit of `t`)."""

    within: int = 0
    types: tuple[str, ...] = NAMES


def check(document: Mapping[str, Any], context: Context) -> BorderSpecification:
    """The specification of a document of either family. Faults are noted in `context`; then
    the result must not be used."""
    transition = document["family"] == "transition"
    own = ("within", "types") if transition else ("segments",)
    required = ("family", "within") if transition else ("family",)
    context.object(document, required=required, optional=(*COMMON_KEYS, "region", "ranges", *KEYS, *own))
    where = context.at("where").where(document.get("where", []))
    region, ranges = context.watched(document)
    options = check_options(document, context)
    name = document.get("name", "")
    if not transition:
        return BorderSpecification(name, where, region, ranges, _segments(document, context), options)
    within = context.at("within").duration(document["within"]) if "within" in document else None
    return TransitionSpecification(name, where, region, ranges, options=options, within=within or 0, types=_types(document, context))


def uses_places(specification: BorderSpecification) -> bool:
    return specification.region is not None


def kinds_of(document: Mapping[str, Any]) -> list[str]:
    """The kinds of answers that a query of this checked document gives."""
    if document["family"] == "border":
        return ["in", "out"]
    return [name for name in NAMES if name in document.get("types", NAMES)]


def late_option(document: Mapping[str, Any]) -> str | None:
    """A move between two samples is known with the later one."""
    return '"segments": true' if document.get("segments") else None


def known_at(specification: BorderSpecification, at: str) -> Callable[[pa.Table], pa.Array] | None:
    """The contacts of a move are known with the sample that ends it, the last of their evidence."""
    return _last_evidence if specification.segments else None


def _last_evidence(answers: pa.Table) -> pa.Array:
    evidence = answers.column("evidence").combine_chunks()
    ends = np.cumsum(pc.list_value_length(evidence).to_numpy(zero_copy_only=False))
    return evidence.flatten().field("t").take(pa.array(ends - 1, pa.int64()))


def _segments(document: Mapping[str, Any], context: Context) -> bool:
    here = context.at("segments")
    segments = here.boolean(document.get("segments", False))
    if segments and "ranges" in document:
        here.fault(Message("needs a region: a move through ranges is not a straight line in x, y; leave the key out"))
    return segments


def _types(document: Mapping[str, Any], context: Context) -> tuple[str, ...]:
    """The asked types, each once, in the order of `NAMES`."""
    here = context.at("types")
    given = here.items(document.get("types", NAMES), least=1, what=Message("types"))
    asked = [here.at(i).choice(name, NAMES) for i, name in enumerate(given)]
    return tuple(name for name in NAMES if name in asked)
