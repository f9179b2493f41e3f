"""A constraint query as JSON."""

from __future__ import annotations

from typing import Any

from engine.constraint_queries.constraints import ConstraintSpecification, DistanceLimit
from engine.constraint_queries.sums import Sum, text_of
from engine.model.conditions import Condition


def document_of(specification: ConstraintSpecification) -> dict[str, Any]:
    """The JSON document that is read back as an equal specification."""
    names = [variable.name for variable in specification.variables]
    constraints: list[dict[str, Any]] = []
    for variable in specification.variables:
        constraints += [{"between": [variable.name], "inside": region.to_json()} for region in variable.regions]
        compare = [[f"{variable.name}.{one.left}", one.op, f"{variable.name}.{one.right}"] for one in variable.comparisons]
        constraints += [{"between": [variable.name], "compare": compare}] if compare else []
    for pair in specification.pairs:
        between = [names[pair.first], names[pair.second]]
        said: dict[str, Any] = {}
        if (pair.earliest, pair.latest) != (None, None):
            said["dt"] = [pair.earliest, pair.latest]
        if pair.comparisons:
            said["compare"] = [[f"{between[0]}.{one.left}", one.op, f"{between[1]}.{one.right}"] for one in pair.comparisons]
        constraints += [{"between": between, **said}] if said else []
        constraints += [{"between": between, "distance": one} for one in _distances(pair.least, pair.greatest)]
    for one in specification.sums:
        sides = [_side(one.left, names), one.op, _side(one.right, names)]
        constraints.append({"between": [names[i] for i in sorted({variable for variable, _ in one.columns})], "compare": [sides]})
    return {
        "family": "constraint",
        **({"name": specification.name} if specification.name else {}),
        "where": [_condition_json(one) for one in specification.where.items],
        "variables": {one.name: {"where": [_condition_json(item) for item in one.where.items]} for one in specification.variables},
        "constraints": constraints,
        "symmetric": [[names[i] for i in group] for group in specification.symmetric],
        "report": specification.report,
        "expiration": specification.expiration,
    }


def _side(terms: Sum, names: list[str]) -> str | float:
    """A sum as JSON; a constant alone is a number."""
    return terms[0].constant if len(terms) == 1 and terms[0].variable < 0 else text_of(terms, names)


def _distances(least: DistanceLimit | None, greatest: DistanceLimit | None) -> list[dict[str, Any]]:
    return [{key: limit.value, "open": limit.open} for key, limit in (("min", least), ("max", greatest)) if limit is not None]


def _condition_json(condition: Condition) -> list[Any]:
    constant = condition.constant
    return [condition.column, condition.op, list(constant) if isinstance(constant, tuple) else constant]
