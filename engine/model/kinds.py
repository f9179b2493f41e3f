"""The kinds of answers that each family gives; those of the calculus are its program's fluents."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, tuple[str, ...]] = {
    "border": ("in", "out"),
    "transition": ("passed", "returned", "stayed_in", "stayed_out"),
    "motion": ("match",),
    "occupancy": ("occupied",),
    "encounter": ("met",),
    "arrival": ("arriving",),
    "constraint": ("match",),
    "composite": ("detection",),
}

REVISED = frozenset(("occupied", "met", "arriving"))
"""Kinds of intervals whose value and evidence are revised while they hold: query, entities and start say which one it is."""
