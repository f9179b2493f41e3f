"""Which parts of a query several partitions share, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webapp.queries.sentences.words import listed

SHOWN = 4
"""Fluents and events that are named; the others are counted."""


def placement(parts: Mapping[str, Any]) -> str | None:
    """What `Operator.parts` says; null for a query without parts.

    >>> placement({"by_entity": ["pace"], "by_pair": ["near", "rendezVous"], "in_each_partition": [], "in_one_partition": {"any": "any: it joins"}})
    'Several partitions share its work: pace by entity; near and rendezVous by pair. In one partition stays any (any: it joins).'
    >>> placement({"by_entity": [], "by_pair": [], "in_each_partition": [], "in_one_partition": {"a": "b: why", "b": "b: why"}})
    'All of it is in one partition (b: why).'
    """
    if not parts:
        return None
    whole: Mapping[str, str] = parts["in_one_partition"]
    # A reason that several have is given for the first of them.
    reasons = f" ({'; '.join({reason.rpartition(': ')[2]: reason for reason in reversed([*whole.values()])}.values())})"
    places = [("by_entity", "by entity"), ("by_pair", "by pair"), ("in_each_partition", "in each of them")]
    spread = [f"{_some(parts[place])} {words}" for place, words in places if parts[place]]
    if not spread:
        return f"All of it is in one partition{reasons}." if whole else None
    stays = f" In one partition stay{'s' * (len(whole) == 1)} {_some([*whole])}{reasons}." if whole else ""
    return f"Several partitions share its work: {'; '.join(spread)}.{stays}"


def _some(names: Sequence[str]) -> str:
    return listed(names if len(names) <= SHOWN else [*names[: SHOWN - 1], f"{len(names) - SHOWN + 1} more"], "and")
