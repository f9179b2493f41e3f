"""Expands background rules and disjunctions to alternatives of plain conditions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from engine.event_calculus.terms import CONJUNCTION, DISJUNCTION, NEGATION, Atom, Compound, ListTerm, Number, SourceLocation, Term, Variable
from engine.model.messages import Message

MAX_ALTERNATIVES = 64
MAX_EXPANSION_DEPTH = 12
MAX_CALLS = 20_000
MAX_BODY = 500

Body = tuple[Term, ...]


class Expander:
    """Definitions of background predicates by rules; `alternatives` replaces them in a body.

    A positive call of a predicate with n clauses gives n alternatives; a negative one gives n
    negations. Recursion is refused.
    """

    def __init__(self, fault: Callable[[SourceLocation, Message], None]) -> None:
        self._fault = fault
        self._clauses: dict[tuple[str, int], list[tuple[Compound, Body]]] = {}
        self._fresh = itertools.count()
        self._calls = 0
        self.called: set[tuple[str, int]] = set()
        self.facts: set[tuple[str, int]] = set()
        """Predicates that also have facts; set by the reader before anything is expanded."""

    @property
    def defined(self) -> set[tuple[str, int]]:
        return set(self._clauses)

    @property
    def definitions(self) -> Iterator[tuple[Compound, Body]]:
        """The heads and the bodies of all background rules."""
        return (definition for definitions in self._clauses.values() for definition in definitions)

    def define(self, head: Compound, body: Term | None) -> None:
        for alternative in self._split(body):
            self._clauses.setdefault(head.indicator, []).append((head, alternative))

    def alternatives(self, body: Term | None, location: SourceLocation) -> list[Body]:
        """The bodies whose disjunction is equivalent to `body`; none contains `;` or a
        call of a defined predicate."""
        result: list[Body] = []
        for alternative in self._split(body):
            expanded = self._expand(alternative, 0)
            if len(result) + len(expanded) > MAX_ALTERNATIVES:
                self._fault(location, Message("the rule expands to more than {most} alternatives", most=MAX_ALTERNATIVES))
                return result
            result += expanded
        return result

    def _split(self, body: Term | None) -> list[Body]:
        """Disjunctive normal form over `;` outside negations."""
        if body is None:
            return [()]
        if isinstance(body, Compound) and body.name == DISJUNCTION:
            return [alternative for part in body.arguments for alternative in self._split(part)][: MAX_ALTERNATIVES + 1]
        if isinstance(body, Compound) and body.name == CONJUNCTION:
            result: list[Body] = [()]
            for part in body.arguments:
                result = [left + right for left in result for right in self._split(part)][: MAX_ALTERNATIVES + 1]
            return result
        return [(body,)]

    def _expand(self, body: Body, depth: int) -> list[Body]:
        result: list[Body] = [()]
        for literal in body:
            choices = self._literal(literal, depth)
            result = [left + right for left in result for right in choices]
            if max((len(body) for body in result), default=0) > MAX_BODY:
                if self._calls <= MAX_CALLS:
                    self._fault(literal.location, Message("the rule expands to more than {most} conditions", most=MAX_BODY))
                self._calls = MAX_CALLS + 2
                return [()]
            if len(result) > MAX_ALTERNATIVES:
                self._fault(literal.location, Message("the rule expands to more than {most} alternatives", most=MAX_ALTERNATIVES))
                return result[:1]
        return result

    def _literal(self, literal: Term, depth: int) -> list[Body]:
        if isinstance(literal, Compound) and literal.name == NEGATION:
            inner = [alternative for part in self._split(literal.arguments[0]) for alternative in self._expand(part, depth)]
            return [
                tuple(Compound(NEGATION, (_conjunction(alternative, literal.location),), literal.location) for alternative in inner if alternative)
            ]
        if isinstance(literal, Compound) and literal.indicator == ("findall", 3):
            return [(self._findall(literal, depth),)]
        if isinstance(literal, Compound) and literal.name == "inRange" and len(literal.arguments) == 3:
            value, low, high = literal.arguments
            return [(Compound(">", (value, low), literal.location), Compound("<", (value, high), literal.location))]
        if isinstance(literal, Compound) and literal.indicator in self._clauses:
            if depth >= MAX_EXPANSION_DEPTH:
                self._fault(
                    literal.location,
                    Message(
                        "{name}/{count} calls itself or is nested too deep; background rules cannot recurse",
                        name=literal.name,
                        count=len(literal.arguments),
                    ),
                )
                return [()]
            self.called.add(literal.indicator)
            called: list[Body] = [(literal,)] if literal.indicator in self.facts else []
            for head, body in self._clauses[literal.indicator]:
                called += self._call(literal, head, body, depth)
                if len(called) > MAX_ALTERNATIVES or self._calls > MAX_CALLS:
                    break
            return called
        return [(literal,)]

    def _findall(self, literal: Compound, depth: int) -> Compound:
        template, goal, made = literal.arguments
        inner = [alternative for part in self._split(goal) for alternative in self._expand(part, depth)]
        if len(inner) > 1:
            self._fault(
                literal.location, Message("the conditions of a findall have several alternatives; write a fluent, an event or a fact that has them")
            )
        return Compound("findall", (template, _conjunction(inner[0] if inner else (), literal.location), made), literal.location)

    def _call(self, call: Compound, head: Compound, body: Body, depth: int) -> list[Body]:
        """The `body` of one clause with the call's arguments substituted for the head's."""
        self._calls += 1
        if self._calls > MAX_CALLS:
            if self._calls == MAX_CALLS + 1:
                self._fault(call.location, Message("background rules expand to more than {most:,} calls", most=MAX_CALLS))
            return [()]
        suffix = f"#{next(self._fresh)}"
        names: dict[str, Term] = {}
        equalities = _unify(call, head, names)
        if equalities is None:
            return []
        renamed = tuple(_substitute(literal, names, suffix) for literal in body)
        return [tuple(equalities) + alternative for alternative in self._expand(renamed, depth + 1)]


def _unify(call: Compound, head: Compound, names: dict[str, Term]) -> list[Term] | None:
    """The equalities under which a call unifies with a clause's head, null if it cannot; `names`
    gets the substitution of the head's variables."""
    equalities: list[Term] = []
    for given, formal in zip(call.arguments, head.arguments, strict=True):
        if isinstance(formal, Variable) and formal.name not in names:
            names[formal.name] = given
            continue
        wanted = names.get(formal.name, formal) if isinstance(formal, Variable) else formal
        if isinstance(given, Compound) and isinstance(wanted, Compound):
            within = _unify(given, wanted, names) if given.indicator == wanted.indicator else None
            if within is None:
                return None
            equalities += within
        else:
            equalities.append(Compound("=", (given, wanted), call.location))
    return equalities


def _conjunction(body: Body, location: SourceLocation) -> Term:
    return body[0] if len(body) == 1 else Compound(CONJUNCTION, body, location)


def _substitute(term: Term, names: dict[str, Term], suffix: str) -> Term:
    if isinstance(term, Variable):
        return names.get(term.name, Variable(term.name + suffix, term.location))
    if isinstance(term, Compound):
        return Compound(term.name, tuple(_substitute(argument, names, suffix) for argument in term.arguments), term.location)
    if isinstance(term, ListTerm):
        return ListTerm(tuple(_substitute(item, names, suffix) for item in term.items), term.location)
    assert isinstance(term, Atom | Number)
    return term
