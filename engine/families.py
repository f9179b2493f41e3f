"""The one table from a family's name to what checks its specifications and what evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.context import Context
    from engine.operator import Operator


@dataclass(frozen=True)
class Family:
    """A family's package, imported when it is first needed: start-up loads only what the queries ask for.

    The package has `specification.py` with `check(document, context)` and the types it gives, and `operator.py` with the
    class `operator_class`.
    """

    package: str
    operator_class: str

    @property
    def name(self) -> str:
        """The operator's name in statistics: its package's."""
        return self.package.rpartition(".")[2]

    def check(self, document: Mapping[str, Any], context: Context) -> Any:
        """The specification, of a type defined in the package. Faults are noted in `context`."""
        return import_module(f"{self.package}.specification").check(document, context)

    def operator(self) -> Operator[Any]:
        """The package's one operator object: the same for all its families."""
        return _operator(self)


FAMILIES: dict[str, Family] = {
    "border": Family("engine.border_monitoring", "BorderOperator"),
    "transition": Family("engine.border_monitoring", "BorderOperator"),
    "constraint": Family("engine.constraint_queries", "ConstraintOperator"),
    "composite": Family("engine.complex_events", "CompositeOperator"),
    "motion": Family("engine.motion_patterns", "MotionOperator"),
    "occupancy": Family("engine.occupancy", "OccupancyOperator"),
    "encounter": Family("engine.encounter", "EncounterOperator"),
    "arrival": Family("engine.arrival", "ArrivalOperator"),
    "calculus": Family("engine.event_calculus", "CalculusOperator"),
}


def family_of(specification: Any) -> Family:
    """The family whose package defines the specification's type. Raises LookupError."""
    package = type(specification).__module__.rpartition(".")[0]
    for family in FAMILIES.values():
        if family.package == package:
            return family
    raise LookupError(f"{type(specification).__qualname__} is no specification of a known family")


@cache
def _operator(family: Family) -> Operator[Any]:
    operator: Operator[Any] = getattr(import_module(f"{family.package}.operator"), family.operator_class)()
    return operator
