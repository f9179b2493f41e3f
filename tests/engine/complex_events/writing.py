"""Composite queries as JSON."""

from __future__ import annotations

from typing import Any

from engine.complex_events.pattern import Absence, And, Around, Before, Or, Pattern, Primitive, Sequence
from engine.complex_events.specification import CompositeSpecification, PrimitiveFilter
from engine.model.conditions import Condition


def document_of(specification: CompositeSpecification, *, as_tree: bool = False) -> dict[str, Any]:
    """The JSON document that is read back as an equal specification, its
    pattern as text or as a tree."""
    return {
        "family": "composite",
        **({"name": specification.name} if specification.name else {}),
        "where": [_condition_json(one) for one in specification.where.items],
        "pattern": pattern_tree(specification.pattern) if as_tree else specification.text(),
        "primitives": {one.name: _primitive_json(one) for one in specification.primitives},
        "per": "entity" if specification.per_entity else None,
        "within": specification.within,
    }


def _primitive_json(one: PrimitiveFilter) -> dict[str, Any]:
    found: dict[str, Any] = {"where": [_condition_json(item) for item in one.where.items]}
    if one.prefixes:
        found["prefix"] = dict(one.prefixes)
    for key, regions in (("inside", one.regions), ("outside", one.outside)):
        if regions:
            found[key] = regions[0].to_json()
    return found


def _condition_json(condition: Condition) -> list[Any]:
    constant = condition.constant
    return [condition.column, condition.op, list(constant) if isinstance(constant, tuple) else constant]


def pattern_tree(pattern: Pattern) -> Any:
    """The JSON tree that is read back as an equal pattern: a primitive is its name, an operator an
    object with its operands.

    >>> pattern_tree(Absence(Primitive("A"), Primitive("B"), 9))
    {'absence': ['A', 'B'], 'span': 9}
    """
    match pattern:
        case Primitive(name):
            return name
        case Or(first, second):
            return {"or": [pattern_tree(first), pattern_tree(second)]}
        case And(first, second, None):
            return {"and": [pattern_tree(first), pattern_tree(second)]}
        case And(first, second, span):
            return {"interval": [pattern_tree(first), pattern_tree(second)], "span": span}
        case Absence(first, without, span):
            return {"absence": [pattern_tree(first), pattern_tree(without)], "span": span}
        case Before(without, second, span):
            return {"before": [pattern_tree(without), pattern_tree(second)], "span": span}
        case Around(first, without, span):
            return {"around": [pattern_tree(first), pattern_tree(without)], "span": span}
        case Sequence(first, second, low, high, without):
            tree: dict[str, Any] = {"sequence": [pattern_tree(first), pattern_tree(second)]}
            if without is not None:
                tree["without"] = pattern_tree(without)
            return tree if (low, high) == (0, None) else tree | {"bounds": [low, high]}
    raise TypeError(f"{pattern!r} is no pattern")
