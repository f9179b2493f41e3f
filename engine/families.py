"""The one table of query families: who checks a specification, who evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.border_monitoring.operator import BorderOperator
from engine.border_monitoring.specification import check_border, check_transition
from engine.model.documents import Node
from engine.operator import Operator
from engine.specification import Context

Checker = Callable[[Node, Context], Any]

CHECKERS: Mapping[str, Checker] = {
    "border": check_border,
    "transition": check_transition,
}
OPERATORS: tuple[Operator[Any], ...] = (BorderOperator(),)
FAMILIES: tuple[str, ...] = tuple(CHECKERS)
_BY_FAMILY = {family: operator for operator in OPERATORS for family in operator.families}


def operator_of(family: str) -> Operator[Any]:
    """The operator that evaluates `family`."""
    return _BY_FAMILY[family]
