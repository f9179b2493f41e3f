"""What is asked of a single event: a **class** is a set of conditions that some primitive has; primitives with equal conditions share it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.complex_events.specification import PrimitiveFilter
from engine.model.conditions import Condition, Conditions
from engine.model.feed import Feed
from engine.model.region import Region


@dataclass(frozen=True)
class Atom:
    """One thing that is asked of an event: a condition, the beginning of a column's text, or a region it lies in or outside of."""

    condition: Condition | None = None
    type: str = ""
    prefix: tuple[str, str] | None = None
    region: Region | None = None
    outside: bool = False

    @property
    def column(self) -> str | None:
        """The one column it looks at; null for regions."""
        if self.condition is not None:
            return self.condition.column
        return None if self.prefix is None else self.prefix[0]


Class = frozenset[Atom]


def atoms(where: Conditions, primitive: PrimitiveFilter, feed: Feed) -> Class:
    """What an event must satisfy to match a primitive. Constants of different types may be equal in Python (1 and True): the type tells them
    apart."""
    conditions = [*where.items, *primitive.where.items]
    found = [Atom(condition=one, type=f"{type(one.constant).__name__} {feed.types[one.column]}") for one in conditions]
    found += [Atom(prefix=one) for one in primitive.prefixes]
    found += [Atom(region=one) for one in primitive.regions]
    return frozenset([*found, *(Atom(region=one, outside=True) for one in primitive.outside)])
