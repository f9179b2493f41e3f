"""The one table of families: what their answers are, what checks their
specifications, what evaluates them.

It imports no other module of the engine, so every module may import it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Family:
    """What other packages know of a family.

    Its package has `specification.py` with `check(document, context)` and the types it gives, and
    `operator.py` with the class `operator_class`. `specification.py` also has `uses_places` and may
    have more: `kinds_of`, `notices_of`, `is_text`, `region_names_in_text`, `with_regions`,
    `late_option`, `known_at` and `event_names` (see the methods of these names). The package is
    imported when it is first needed: start-up loads only what the queries ask for.

    `kinds`: the kinds of answers it gives, if its documents do not name them (the calculus').
    `ends`: kind -> the kind of answer that ends what this one began; alerts end by it.
    `ends_later`: an answer made of events may be an interval that is open at first: its end is no
    part of its identity. `is_revised`: its intervals' values and evidence change while they hold:
    query, entities and start alone identify it. `takes_answers`: its queries may take answers of
    other queries as events. `revises`: it takes answers that are known only after their times, too:
    its own are revised then. `known_at_end`: its answers are known only at their ends.
    `has_region`: a specification has one region, under the key `region`, unless it has `ranges`.
    `text`: the key of a text in which stored regions may be named, if its specifications can have
    one.
    """

    package: str
    operator_class: str
    kinds: tuple[str, ...] = ()
    ends: Mapping[str, str] = field(default_factory=dict)
    ends_later: bool = False
    is_revised: bool = False
    takes_answers: bool = False
    revises: bool = False
    known_at_end: bool = False
    has_region: bool = False
    text: str | None = None

    @property
    def name(self) -> str:
        """The operator's name in statistics: its package's."""
        return self.package.rpartition(".")[2]

    def check(self, document: Mapping[str, Any], context: Any) -> Any:
        """The specification, of a type defined in the package. Faults are noted in `context`
        (`engine.context.Context`)."""
        return self._specification().check(document, context)

    def operator(self) -> Any:
        """The package's one `engine.operator.Operator`: the same for all its families."""
        return _operator(self.package, self.operator_class)

    def kinds_of(self, document: Mapping[str, Any]) -> list[str]:
        """The kinds of answers that a query of this checked specification can give, where not all
        of the family give the same."""
        chosen = self._own("kinds_of")
        return list(self.kinds) if chosen is None else list(chosen(document))

    def notices_of(self, document: Mapping[str, Any], feed: Any) -> list[str]:
        """What of a checked specification changes no answer on this feed, or may not mean what
        it seems to, in sentences."""
        notices = self._own("notices_of")
        return [] if notices is None else list(notices(document, feed))

    def uses_places(self, specification: Any) -> bool:
        """Whether a query of this checked specification can find nothing without places (x, y)."""
        return bool(self._specification().uses_places(specification))

    def event_names(self, specification: Any) -> set[str] | None:
        """The events that a checked specification asks for by name, if the family knows more than
        its conditions show; else null."""
        names = self._own("event_names")
        return None if names is None else set(names(specification))

    def is_text(self, text: str) -> bool:
        """Whether this is the family's text, where the text alone is a specification."""
        own = self._own("is_text")
        return own is not None and bool(own(text))

    def region_names_in_text(self, document: Mapping[str, Any]) -> set[str]:
        """The regions that the text of an unchecked specification names, if it has a text."""
        return set(self._own("region_names_in_text")(document)) if self.text in document else set()

    def with_regions(self, document: Mapping[str, Any], regions: Mapping[str, Any]) -> dict[str, Any]:
        """An equal document with these regions, which its text names: outside of the text, or, if
        all are references, under their new names in it."""
        return dict(self._own("with_regions")(document, regions))

    def late_option(self, document: Mapping[str, Any]) -> str | None:
        """The option of a checked specification by which its answers are known only after
        their times, as it is written."""
        option = self._own("late_option")
        return None if option is None else option(document)

    def known_at(self, specification: Any, at: str) -> Callable[[Any], Any] | None:
        """What gives the times when answers are known, of a table of them (see
        `engine.derive.known_at`), if the family has its own rule."""
        rule = self._own("known_at")
        return None if rule is None else rule(specification, at)

    def _specification(self) -> Any:
        return import_module(f"{self.package}.specification")

    def _own(self, name: str) -> Any:
        return getattr(self._specification(), name, None)


FAMILIES: dict[str, Family] = {
    "border": Family("engine.border_monitoring", "BorderOperator", ("in", "out"), {"in": "out", "out": "in"}, has_region=True),
    "transition": Family(
        "engine.border_monitoring", "BorderOperator", ("passed", "returned", "stayed_in", "stayed_out"), known_at_end=True, has_region=True
    ),
    "motion": Family("engine.motion_patterns", "MotionOperator", ("match",), ends_later=True),
    "occupancy": Family("engine.occupancy", "OccupancyOperator", ("occupied",), is_revised=True),
    "encounter": Family("engine.encounter", "EncounterOperator", ("met",), is_revised=True),
    "arrival": Family("engine.arrival", "ArrivalOperator", ("arriving",), is_revised=True),
    "constraint": Family("engine.constraint_queries", "ConstraintOperator", ("match",), takes_answers=True, known_at_end=True, text="trigger"),
    "composite": Family("engine.complex_events", "CompositeOperator", ("detection",), takes_answers=True, known_at_end=True),
    "calculus": Family("engine.event_calculus", "CalculusOperator", takes_answers=True, revises=True, text="program"),
}


def family_named(name: object) -> Family | None:
    """The family of an unchecked specification's `family`; null: there is none of this name."""
    return FAMILIES.get(name) if isinstance(name, str) else None


def _kinds(families: Iterable[Family]) -> frozenset[str]:
    return frozenset(kind for family in families for kind in family.kinds)


REVISED = _kinds(family for family in FAMILIES.values() if family.is_revised)
"""Kinds of answers whose value and evidence are revised while they hold."""
ENDS_LATER = _kinds(family for family in FAMILIES.values() if family.ends_later)
"""Kinds of answers made of events; their end may come later."""


def family_of(specification: Any) -> Family:
    """The family whose package defines the specification's type. Raises LookupError."""
    package = type(specification).__module__.rpartition(".")[0]
    for family in FAMILIES.values():
        if family.package == package:
            return family
    raise LookupError(f"{type(specification).__qualname__} is no specification of a known family")


@cache
def _operator(package: str, operator_class: str) -> Any:
    return getattr(import_module(f"{package}.operator"), operator_class)()
