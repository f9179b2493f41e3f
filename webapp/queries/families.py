"""The families that can be registered, in the words of pages, and the kinds of answers that each query gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from engine.model.kinds import KINDS

TITLES = {
    "border": "Entering and leaving",
    "transition": "Passing, returning, staying",
    "motion": "Motion pattern",
    "occupancy": "How many are there",
    "encounter": "Who meets whom",
    "arrival": "Who is about to arrive",
    "constraint": "Readings close together",
    "composite": "Composite event",
    "calculus": "Event calculus",
}


def families() -> dict[str, dict[str, Any]]:
    """What this server can register: family name to title and kinds."""
    from engine.families import FAMILIES

    return {name: {"title": TITLES.get(name, name), "kinds": list(KINDS.get(name, ()))} for name in FAMILIES}


def kinds_of(specification: Mapping[str, Any]) -> list[str]:
    """The kinds of answers that a query of this checked specification can give."""
    family = specification.get("family", "")
    if family == "transition":
        return [kind for kind in KINDS["transition"] if kind in specification.get("types", KINDS["transition"])]
    if family == "calculus":
        outputs = specification["outputs"] if "outputs" in specification else _outputs_of(json.dumps(specification))
        return sorted({str(output).split("/")[0].split("(")[0] for output in outputs})
    return list(KINDS.get(family, ()))


def notices_of(specification: Mapping[str, Any]) -> list[str]:
    """What of a checked specification changes no answer, in sentences."""
    if specification.get("family") != "calculus":
        return []
    from engine.event_calculus.specification import notices_of as of_program

    return of_program(specification)


@lru_cache(maxsize=500)
def _outputs_of(document: str) -> tuple[str, ...]:
    """What a program that names no outputs gives; reading one takes milliseconds, and a list shows many."""
    from engine.event_calculus.specification import outputs_spoken_of

    return tuple(outputs_spoken_of(json.loads(document)))
