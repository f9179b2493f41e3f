"""Terms to the conditions they stand for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from engine.event_calculus import builtins
from engine.event_calculus.shapes import flattened, is_shape
from engine.event_calculus.syntax import Assignment, Comparison, Edge, Fact, FluentPattern, Happens, HoldsAt, Literal, Negation
from engine.event_calculus.terms import NEGATION, Atom, Compound, Number, Place, Term, Variable, conjuncts

MAX_ARGUMENTS = 8


class Faulty(Exception):
    """A fault of the program, at the place where reading its clause had to stop."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    shown = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
    return f"unknown {what} {name!r}{hint} Known: {shown or 'none'}"


def is_near(name: str, known: Iterable[str]) -> bool:
    """Whether `name` may be one of the `known` ones, misspelt."""
    return bool(difflib.get_close_matches(name, list(known), n=1))


def simple_term(term: Term, *, what: str) -> Term:
    if isinstance(term, Variable | Atom | Number):
        return term
    raise Faulty(term.place, f"{what} must be a variable, a name or a number, not {term}")


def name_of(term: Term) -> str:
    if isinstance(term, Compound) and term.name == "=":
        term = term.arguments[0]
    if isinstance(term, Compound | Atom):
        return term.name
    raise Faulty(term.place, f"expected a fluent or an event, not {term}")


def fluent_pattern(term: Term) -> FluentPattern:
    """`name(arguments)=value`; arguments that have arguments themselves give the name a shape."""
    if not (isinstance(term, Compound) and term.name == "="):
        raise Faulty(term.place, f"expected a fluent with its value, as in near(A, B)=true, not {term}")
    head, value = term.arguments
    name, arguments = event_pattern(head)
    return FluentPattern(name, arguments, simple_term(value, what="the value of a fluent"), head.place)


def event_pattern(term: Term) -> tuple[str, tuple[Term, ...]]:
    if isinstance(term, Atom):
        return term.name, ()
    if isinstance(term, Compound) and term.name not in builtins.OPERATORS:
        if is_shape(term.name):
            raise Faulty(term.place, f"{term.name!r} is the form in which a term with arguments is named; choose another name")
        _check_arguments(term)
        name, arguments = flattened(term)
        if len(arguments) > MAX_ARGUMENTS:
            raise Faulty(term.place, f"{term.name} has {len(arguments)} arguments; at most {MAX_ARGUMENTS} are allowed")
        return name, arguments
    raise Faulty(term.place, f"expected a name with arguments, not {term}")


def _check_arguments(term: Compound) -> None:
    """An argument is a variable, a name, a number or a term with such arguments."""
    for argument in term.arguments:
        if isinstance(argument, Compound) and argument.name not in builtins.OPERATORS | {NEGATION}:
            _check_arguments(argument)
        else:
            simple_term(argument, what=f"an argument of {term.name}")


def ground_target(term: Term) -> tuple[str, tuple[Term, ...]]:
    """Key and terms of what a grounding is about; the key of a fluent starts with '='."""
    if isinstance(term, Compound) and term.name == "=":
        fluent = fluent_pattern(term)
        return "=" + fluent.name, fluent.terms
    return event_pattern(term)


def time_variable(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    raise Faulty(term.place, f"the time must be a variable, not {term}")


def literal_of(term: Term) -> Literal:
    """A condition of a rule over time points."""
    if isinstance(term, Compound):
        if term.name == NEGATION:
            inner = term.arguments[0]
            return Negation(tuple(literal_of(part) for part in conjuncts(inner)), term.place)
        if term.name in ("happensAt", "holdsAt"):
            if len(term.arguments) != 2:
                raise Faulty(term.place, f"{term.name} takes 2 arguments, not {len(term.arguments)}")
            time = time_variable(term.arguments[1])
            if term.name == "holdsAt":
                return HoldsAt(fluent_pattern(term.arguments[0]), time, term.place)
            event = term.arguments[0]
            if isinstance(event, Compound) and event.name in ("start", "end") and len(event.arguments) == 1:
                return Edge("start" if event.name == "start" else "end", fluent_pattern(event.arguments[0]), time, term.place)
            name, arguments = event_pattern(event)
            return Happens(name, arguments, time, event.place)
        if term.name == "is":
            if not isinstance(term.arguments[0], Variable):
                return Comparison("=:=", expression_of(term.arguments[0]), expression_of(term.arguments[1]), term.place)
            return Assignment(term.arguments[0].name, expression_of(term.arguments[1]), term.place)
        if term.name in builtins.NUMERIC_COMPARISONS:
            return Comparison(term.name, expression_of(term.arguments[0]), expression_of(term.arguments[1]), term.place)
        if term.name in builtins.TERM_COMPARISONS:
            left, right = (simple_term(side, what="a side of a comparison") for side in term.arguments)
            return Comparison(term.name, left, right, term.place)
        if term.name == "absoluteAngleDiff" and len(term.arguments) == 3:
            angle = Compound("angle_difference", tuple(expression_of(side) for side in term.arguments[:2]), term.place)
            target = term.arguments[2]
            return (
                Assignment(target.name, angle, term.place)
                if isinstance(target, Variable)
                else Comparison("=:=", angle, expression_of(target), term.place)
            )
        if term.name in ("holdsFor", "initiatedAt", "terminatedAt", "initially"):
            raise Faulty(term.place, f"{term.name} cannot be a condition here")
        return _fact(term)
    raise Faulty(term.place, f"{term} is not a condition")


def _fact(term: Compound) -> Fact:
    """Background knowledge; what cannot be any may be a misspelt condition."""
    if not all(isinstance(argument, Variable | Atom | Number) for argument in term.arguments) and is_near(term.name, builtins.CONDITIONS):
        raise Faulty(term.place, unknown("condition", term.name, builtins.CONDITIONS))
    name, arguments = event_pattern(term)
    return Fact(name, arguments, term.place)


def expression_of(term: Term) -> Term:
    """Checks an arithmetic expression."""
    if isinstance(term, Number | Variable):
        return term
    if isinstance(term, Atom) and term.name in builtins.CONSTANTS:
        return term
    if isinstance(term, Compound) and (arity := builtins.FUNCTIONS.get(term.name)) is not None:
        if len(term.arguments) not in arity:
            raise Faulty(term.place, f"{term.name} does not take {len(term.arguments)} arguments")
        return Compound(term.name, tuple(expression_of(argument) for argument in term.arguments), term.place)
    known = [name for name in builtins.FUNCTIONS if name.isidentifier()]
    raise Faulty(term.place, unknown("arithmetic", term.name if isinstance(term, Atom | Compound) else str(term), known))
