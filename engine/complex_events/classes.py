"""Conditions on a single event: a **class** is the set of conditions of some primitive;
primitives with equal conditions share it. Conditions are grouped by **axes**: those on one column
are together, see `cells`.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.complex_events.specification import PrimitiveFilter
from engine.model.conditions import Condition, Conditions
from engine.model.feed import ColumnType, Feed
from engine.model.region import Region


@dataclass(frozen=True)
class Atom:
    """One condition on an event: a condition on a column, the beginning of a column's text, or a
    region that contains it or does not."""

    condition: Condition | None = None
    type: str = ""
    prefix: tuple[str, str] | None = None
    region: Region | None = None
    outside: bool = False

    @property
    def column(self) -> str | None:
        """The column of the condition; null for regions."""
        if self.condition is not None:
            return self.condition.column
        return None if self.prefix is None else self.prefix[0]


Predicate = frozenset[Atom]
"""What a class requires on one axis: all of the atoms."""
Class = frozenset[tuple[str | None, Predicate]]
"""Predicates with the column whose values decide them; null for those on whole rows."""


def class_of(where: Conditions, primitive: PrimitiveFilter, feed: Feed, known: dict[Predicate, Predicate]) -> Class:
    """The predicates on an event that matches a primitive. Equal predicates of classes made with
    the same `known` share one object to save memory."""
    found: dict[str | None, set[Atom]] = {}
    for atom in _atoms(where, primitive, feed):
        found.setdefault(_axis(atom, feed), set()).add(atom)
    return frozenset((column, known.setdefault(one, one)) for column, one in ((column, frozenset(some)) for column, some in found.items()))


def _axis(atom: Atom, feed: Feed) -> str | None:
    """The column, if the atom is evaluated once for each value: texts, and whole numbers that are
    compared for equality; else null."""
    if atom.condition is not None and feed.types[atom.condition.column] is not ColumnType.STRING:
        equality = feed.types[atom.condition.column] is ColumnType.INT and atom.condition.op in ("=", "in")
        return atom.condition.column if equality else None
    return atom.column


def _atoms(where: Conditions, primitive: PrimitiveFilter, feed: Feed) -> list[Atom]:
    """The atoms of all conditions; they contain constants' types, because constants of different
    types may be equal in Python (1 and True)."""
    conditions = [*where.items, *primitive.where.items]
    found = [Atom(condition=one, type=f"{type(one.constant).__name__} {feed.types[one.column]}") for one in conditions]
    found += [Atom(prefix=one) for one in primitive.prefixes]
    found += [Atom(region=one) for one in primitive.regions]
    return [*found, *(Atom(region=one, outside=True) for one in primitive.outside)]
