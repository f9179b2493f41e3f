"""`{"family": "echo", "where": [...], "mode": "rows" | "latest" | "silent"}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.context import COMMON_KEYS, Context
from engine.model.conditions import Conditions


@dataclass(frozen=True)
class EchoSpecification:
    """`rows`: each event is asserted; `latest`: an entity's newest event, the one before is
    retracted; `silent`: nothing."""

    where: Conditions
    mode: str


def check(document: Mapping[str, Any], context: Context) -> EchoSpecification:
    context.object(document, required=("family",), optional=(*COMMON_KEYS, "mode"))
    where = context.at("where").where(document.get("where", []))
    mode = context.at("mode").choice(document.get("mode", "rows"), ("rows", "latest", "silent"))
    return EchoSpecification(where, mode or "rows")


def uses_places(specification: EchoSpecification) -> bool:
    return False
