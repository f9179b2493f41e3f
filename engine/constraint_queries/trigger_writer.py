"""Writes a constraint query as text, which `trigger.py` reads back as an equal specification."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from engine.constraint_queries.constraints import ConstraintSpecification
from engine.constraint_queries.sums import text_of
from engine.model.conditions import Condition, Constant
from engine.model.region import Region

STREAM = "E"
_WORDS = ("distance", "inside", "true", "false")
"""Names that a variable cannot have in the text."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def trigger_text(specification: ConstraintSpecification, stored: Mapping[Region, str] | None = None) -> str:
    """The text that is read back as an equal specification; regions of
    `stored` are written by name.

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
    """The conditions on the stream, on each variable and on each pair, in this order."""
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
