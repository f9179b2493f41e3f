"""The order in which the conditions of a rule are evaluated: as written, but each after the
conditions that bind its variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Count,
    HoldsAt,
    Literal,
    Negation,
    literal_terms,
    literal_variables,
)  # fmt: skip
from engine.event_calculus.terms import SourceLocation, Term, Variable, variables, written_name
from engine.model.messages import Message


class Unsafe(Exception):
    """No condition binds a variable."""

    def __init__(self, location: SourceLocation, variable: str) -> None:
        self.location = location
        self.message = Message("unsafe: no condition binds {name} before it is needed", name=written_name(variable))
        super().__init__(self.message)


def order_body(body: tuple[Literal, ...], bound: set[str]) -> tuple[Literal, ...]:
    """`body` reordered so that the variables of each condition are bound before it;
    `bound` are bound from outside.

    A negation (or a count) comes after the conditions that bind its variables; its other variables
    are local to it. Raises Unsafe.
    """
    bindable = set(bound) | bound_by(body)
    known, waiting, ordered = set(bound), list(body), []
    while waiting:
        position = next((n for n, literal in enumerate(waiting) if _needs(literal, known, bindable) <= known), None)
        if position is None:
            missing = sorted(_needs(waiting[0], known, bindable) - known)[0]
            raise Unsafe(_place_of(waiting[0], missing), missing)
        literal = waiting.pop(position)
        if isinstance(literal, Negation | Count):
            literal = replace(literal, body=order_body(literal.body, known))
        known |= _binds(literal)
        ordered.append(literal)
    return tuple(ordered)


def _binds(literal: Literal) -> set[str]:
    """Variables that are bound after `literal`."""
    if isinstance(literal, Negation):
        return set()
    if isinstance(literal, Count):
        return {literal.number.name} if isinstance(literal.number, Variable) else set()
    if isinstance(literal, Assignment):
        return {literal.variable}
    if isinstance(literal, Comparison):
        return literal_variables(literal) if literal.operator == "=" else set()
    return literal_variables(literal)


def _needs(literal: Literal, known: set[str], bindable: set[str]) -> set[str]:
    """Variables that must be bound before `literal` can be evaluated."""
    if isinstance(literal, HoldsAt):
        return {literal.time}
    if isinstance(literal, Assignment):
        return {variable.name for variable in variables(literal.expression)}
    if isinstance(literal, Negation | Count):
        return (literal_variables(literal) & bindable) - _binds(literal)
    if isinstance(literal, Comparison):
        needed = literal_variables(literal)
        if literal.operator == "=":
            unbound = [side for side in (literal.left, literal.right) if isinstance(side, Variable) and side.name not in known]
            return set() if len(unbound) < 2 else needed
        return needed
    return set()


def _place_of(literal: Literal, name: str) -> SourceLocation:
    terms: list[Term] = list(literal_terms(literal))
    return next((variable.location for term in terms for variable in variables(term) if variable.name == name), literal.location)


def bound_by(body: Iterable[Literal]) -> set[str]:
    """Variables that are bound after all of `body`."""
    return set().union(*(_binds(literal) for literal in body))
