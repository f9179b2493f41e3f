"""Values that no rule gives a fluent: what reads or ends one never applies. Mostly a name or value
is misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.event_calculus.levels import simple_values
from engine.event_calculus.literals import restore_anonymous
from engine.event_calculus.parser import Problem
from engine.event_calculus.program import Program
from engine.event_calculus.shapes import base_name, format_relation
from engine.event_calculus.syntax import FluentPattern, Indicator, PointRule
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import Atom, Number, SourceLocation, Term, Variable
from engine.model.messages import Message

Values = frozenset[str] | None
"""The values that rules give a fluent; None if they follow from conditions."""


def unreachable_values(program: Program, reads: Iterable[tuple[FluentPattern, SourceLocation]]) -> Iterator[Problem]:
    """A notice for each terminatedAt, deadline and condition whose fluent never has the value;
    `reads`: the fluents that conditions read, with their places."""
    simple = simple_values(program, with_sources=False)
    for rule in program.point_rules:
        if rule.kind == "terminate" and not _may_be(rule.terms[-1], simple.get(rule.indicator)):
            yield Problem(rule.location, Message("ignored: terminatedAt({fluent}); no rule initiates it", fluent=_written(rule)))
    for deadline in program.deadlines:
        values = simple[deadline.fluent]
        if not _may_be(deadline.before, values):
            yield Problem(deadline.location, _never(deadline.fluent[0], deadline.before, values or frozenset()))
    given = _with_intervals(simple, program)
    for pattern, location in reads:
        values = given.get(pattern.indicator)
        if pattern.indicator not in program.inputs and not _may_be(pattern.value, values):
            yield Problem(location, _never(pattern.name, pattern.value, values or frozenset()))


def _with_intervals(simple: Mapping[Indicator, Values], program: Program) -> dict[Indicator, Values]:
    """The values of fluents of all kinds."""
    given = dict(simple)
    for fluent in [rule.head for rule in program.interval_rules] + [spatial.fluent for spatial in program.spatial]:
        known, value = given.get(fluent.indicator, frozenset()), fluent.value
        is_constant = isinstance(value, Atom | Number)
        given[fluent.indicator] = known | {symbol_name(value)} if known is not None and is_constant else None  # type: ignore[arg-type]
    return given


def _may_be(value: Term, values: Values) -> bool:
    if values is None:
        return True
    return symbol_name(value) in values if isinstance(value, Atom | Number) else bool(values) or not isinstance(value, Variable)


def _written(rule: PointRule) -> str:
    *arguments, value = (restore_anonymous(str(term)) for term in rule.terms)
    return f"{format_relation(rule.name, arguments)}={value}"


def _never(fluent: str, term: Term, values: frozenset[str]) -> Message:
    name, value = base_name(fluent), restore_anonymous(str(term))
    if not values:
        return Message("{name} never holds: no rule initiates it", name=name)
    return Message("{name} is never {value}; rules give it {values}", name=name, value=value, values=", ".join(sorted(values)))
