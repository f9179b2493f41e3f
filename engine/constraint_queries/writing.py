"""A constraint query as text and as JSON: both are read back as an equal specification. `trigger.py` reads the text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from engine.constraint_queries.constraints import ConstraintSpecification, Limit
from engine.constraint_queries.sums import Sum, text_of
from engine.model.conditions import Condition, Constant
from engine.model.region import Region

STREAM = "E"
_WORDS = ("distance", "inside", "true", "false")
"""Names that a variable cannot have in the text."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def trigger_text(specification: ConstraintSpecification, stored: Mapping[Region, str] | None = None) -> str:
    """The text that is read back as an equal specification; regions of `stored` are written by name.

    Raises ValueError for a variable with a name that the text cannot hold.
    """
    names = [variable.name for variable in specification.variables]
    for name in names:
        if name.lower() in _WORDS:
            raise ValueError(f"a variable called {name!r} cannot be written as text: it is a word of the language")
    stream = STREAM
    while stream in names:
        stream += STREAM
    name, conditions = specification.name, _conditions(specification, stream, stored or {})
    lines = [f"CREATE TRIGGER {name if _NAME.fullmatch(name) and name.lower() != 'for' else _literal(name)}"]
    lines.append("FOR " + ", ".join(f"{stream} AS {one}" for one in names))
    lines += [f"{'WHEN' if i == 0 else ' AND'} {one}" for i, one in enumerate(conditions)]
    if specification.symmetric:
        lines.append("SYMMETRIC " + ", ".join("(" + ", ".join(names[i] for i in group) + ")" for group in specification.symmetric))
    return "\n".join([*lines, f"REPORT {specification.report.upper()}", f"EXPIRATION {specification.expiration.upper()}"])


def _conditions(specification: ConstraintSpecification, stream: str, stored: Mapping[Region, str]) -> list[str]:
    """What is asked of the stream, of each variable and of each pair, in this order."""
    found = [_condition_text(stream, one) for one in specification.where.items]
    for variable in specification.variables:
        found += [_condition_text(variable.name, one) for one in variable.where.items]
        found += [f"{variable.name}.{one.left} {one.op} {variable.name}.{one.right}" for one in variable.comparisons]
        found += [f"INSIDE({variable.name}.r, {_region_text(region, stored)})" for region in variable.regions]
    for pair in specification.pairs:
        first, second = (specification.variables[i].name for i in (pair.first, pair.second))
        if (pair.earliest, pair.latest) != (None, None):
            bounds = ", ".join("NULL" if bound is None else str(bound) for bound in (pair.earliest, pair.latest))
            found.append(f"{second}.t - {first}.t IN [{bounds}]")
        for limit, op in ((pair.least, ">"), (pair.greatest, "<")):
            if limit is not None:
                found.append(f"DISTANCE({first}.r, {second}.r) {op}{'' if limit.open else '='} {_literal(limit.value)}")
        found += [f"{first}.{one.left} {one.op} {second}.{one.right}" for one in pair.comparisons]
    names = [variable.name for variable in specification.variables]
    return found + [f"{text_of(one.left, names)} {one.op} {text_of(one.right, names)}" for one in specification.sums]


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
    """A sum; a constant alone is a number."""
    return terms[0].constant if len(terms) == 1 and terms[0].variable < 0 else text_of(terms, names)


def _distances(least: Limit | None, greatest: Limit | None) -> list[dict[str, Any]]:
    return [{key: limit.value, "open": limit.open} for key, limit in (("min", least), ("max", greatest)) if limit is not None]


def _condition_json(condition: Condition) -> list[Any]:
    constant = condition.constant
    return [condition.column, condition.op, list(constant) if isinstance(constant, tuple) else constant]


def _condition_text(name: str, condition: Condition) -> str:
    if isinstance(condition.constant, tuple):
        return f"{name}.{condition.column} IN ({', '.join(map(_literal, condition.constant))})"
    return f"{name}.{condition.column} {condition.op} {_literal(condition.constant)}"


def _literal(value: Constant) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _region_text(region: Region, stored: Mapping[Region, str]) -> str:
    if region in stored:
        return _literal(stored[region])
    document = region.to_json()
    if "center" in document:
        x, y = document["center"]
        return f"CIRCLE({x!r}, {y!r}, {document['radius']!r})"
    return f"GEOJSON {_literal(json.dumps(document))}"
