"""The families that can be registered, and the kinds of answers that each query gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.families import FAMILIES


def families() -> dict[str, dict[str, Any]]:
    """The families of this server: name to kinds."""
    return {name: {"kinds": list(family.kinds)} for name, family in FAMILIES.items()}


def kinds_of(specification: Mapping[str, Any]) -> list[str]:
    """The kinds of answers that a query of this checked specification can give; none of a
    family that is not known."""
    family = FAMILIES.get(specification.get("family", ""))
    return [] if family is None else family.kinds_of(specification)
