"""Converts terms to conditions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from engine.event_calculus import builtins
from engine.event_calculus.shapes import flatten, is_shape
from engine.event_calculus.syntax import (
    Assignment,
    Comparison,
    Count,
    Edge,
    Fact,
    FluentPattern,
    Happens,
    HoldsAt,
    Initiated,
    Literal,
    Negation,
    literal_variables,
)  # fmt: skip
from engine.event_calculus.terms import CUT, NEGATION, Atom, Compound, Number, SourceLocation, Term, Variable, conjuncts, variables
from engine.model.messages import Message, listed

MAX_ARGUMENTS = 8


class InvalidClause(Exception):
    """A fault of the program that stops the reading of its clause."""

    def __init__(self, location: SourceLocation, message: Message) -> None:
        super().__init__(message)
        self.location = location
        self.message = message


def unknown(what: Message, name: str, known: Iterable[str]) -> Message:
    names = sorted(set(known))
    nearest = difflib.get_close_matches(name, names, n=1)
    shown = listed([*names[:40], *(["..."] if len(names) > 40 else [])])
    if nearest:
        near = repr(nearest[0])
        return Message("unknown {what} {name}; did you mean {nearest}? Known: {known}", what=what, name=repr(name), nearest=near, known=shown)
    return Message("unknown {what} {name}. Known: {known}", what=what, name=repr(name), known=shown)


def is_near(name: str, known: Iterable[str]) -> bool:
    """Whether `name` may be a misspelling of one of the `known` ones."""
    return bool(difflib.get_close_matches(name, list(known), n=1))


def simple_term(term: Term, *, what: Message) -> Term:
    if isinstance(term, Variable | Atom | Number):
        return term
    raise InvalidClause(term.location, Message("{what} must be a variable, a name or a number, not {term}", what=what, term=term))


def name_of(term: Term) -> str:
    if isinstance(term, Compound) and term.name == "=":
        term = term.arguments[0]
    if isinstance(term, Compound | Atom):
        return term.name
    raise InvalidClause(term.location, Message("expected a fluent or an event, not {term}", term=term))


def fluent_pattern(term: Term) -> FluentPattern:
    """`name(arguments)=value`; if arguments are compound terms, the name becomes a shape."""
    if not (isinstance(term, Compound) and term.name == "="):
        raise InvalidClause(term.location, Message("expected a fluent with its value, as in near(A, B)=true, not {term}", term=term))
    head, value = term.arguments
    name, arguments = event_pattern(head)
    return FluentPattern(name, arguments, simple_term(value, what=Message("the value of a fluent")), head.location)


def event_pattern(term: Term) -> tuple[str, tuple[Term, ...]]:
    if isinstance(term, Atom):
        return term.name, ()
    if isinstance(term, Compound) and term.name not in builtins.OPERATORS:
        if is_shape(term.name):
            raise InvalidClause(
                term.location, Message("{name} is the form in which a term with arguments is named; choose another name", name=repr(term.name))
            )
        _check_arguments(term)
        name, arguments = flatten(term)
        if len(arguments) > MAX_ARGUMENTS:
            raise InvalidClause(
                term.location,
                Message("{name} has {count} arguments; at most {most} are allowed", name=term.name, count=len(arguments), most=MAX_ARGUMENTS),
            )
        return name, arguments
    raise InvalidClause(term.location, Message("expected a name with arguments, not {term}", term=term))


def _check_arguments(term: Compound) -> None:
    """Checks that each argument is a variable, a name, a number or a compound term of these."""
    for argument in term.arguments:
        if isinstance(argument, Compound) and argument.name not in builtins.OPERATORS | {NEGATION}:
            _check_arguments(argument)
        else:
            simple_term(argument, what=Message("an argument of {name}", name=term.name))


def ground_target(term: Term) -> tuple[str, tuple[Term, ...]]:
    """Key and terms of the fluent or event that a grounding declares; the key of
    a fluent starts with '='."""
    if isinstance(term, Compound) and term.name == "=":
        fluent = fluent_pattern(term)
        return "=" + fluent.name, fluent.terms
    return event_pattern(term)


def time_of(point: Compound) -> Term:
    """The time of initiatedAt(F=V, T) or of RTEC's initiatedAt(F=V, T1, T, T2)."""
    return point.arguments[1 if len(point.arguments) == 2 else 2]


def time_variable(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    raise InvalidClause(term.location, Message("the time must be a variable, not {term}", term=term))


def body_of(terms: Sequence[Term]) -> tuple[Literal, ...]:
    """The conditions of a rule over time points; findall and the length of its list are one
    condition, a cut is left out."""
    terms = [term for term in terms if not is_cut(term)]
    lists = [term for term in terms if isinstance(term, Compound) and term.name == "findall"]
    lengths = [term for term in terms if isinstance(term, Compound) and term.indicator == ("length", 2)]
    counts = {id(term): _count(term, lengths, terms) for term in lists}
    for term in lengths:
        if not any(isinstance(one.arguments[-1], Variable) and one.arguments[-1] == term.arguments[0] for one in lists):
            raise InvalidClause(
                term.location, Message("length counts the list of a findall before it; no findall makes {argument}", argument=term.arguments[0])
            )
    return tuple(counts[id(term)] if id(term) in counts else literal_of(term) for term in terms if term not in lengths)


def restore_anonymous(text: str) -> str:
    """A text with anonymous variables as `_`."""
    return re.sub(r"_#\d+", "_", text)


def term_text(term: Term) -> str:
    """A term as a program writes it."""
    if isinstance(term, Compound) and term.name in ("=", "-", "/") and len(term.arguments) == 2:
        return f"{term_text(term.arguments[0])}{term.name}{term_text(term.arguments[1])}"
    if isinstance(term, Compound):
        return f"{term.name}({', '.join(map(term_text, term.arguments))})"
    return restore_anonymous(str(term))


def cuts(term: Term | None) -> Iterator[Atom]:
    """The cuts of a body."""
    if isinstance(term, Atom) and is_cut(term):
        yield term
    elif isinstance(term, Compound):
        for argument in term.arguments:
            yield from cuts(argument)


def is_cut(term: Term) -> bool:
    return isinstance(term, Atom) and term.name == CUT


def _count(term: Compound, lengths: Sequence[Compound], all_terms: Sequence[Term]) -> Count:
    """findall(V, CONDITIONS, L) with length(L, N)."""
    if len(term.arguments) != 3:
        raise InvalidClause(
            term.location, Message("findall takes 3 arguments, not {count}: findall(V, CONDITIONS, L), length(L, N)", count=len(term.arguments))
        )
    template, goal, made = term.arguments
    if not isinstance(template, Variable) or not isinstance(made, Variable):
        raise InvalidClause(term.location, Message("findall takes a variable, conditions and a variable: findall(V, CONDITIONS, L), length(L, N)"))
    own = [length for length in lengths if length.arguments[0] == made]
    uses = sum(made in list(variables(other)) for other in all_terms)
    if len(own) != 1 or uses != 2:
        raise InvalidClause(made.location, Message("the list {made} can only be counted, once: length({made}, N)", made=made))
    number = simple_term(own[0].arguments[1], what=Message("the length of a list"))
    body = body_of(conjuncts(goal))
    if template.name not in set().union(*(literal_variables(literal) for literal in body if not isinstance(literal, Negation))):
        raise InvalidClause(template.location, Message("no condition of the findall binds {template}", template=template))
    return Count(template.name, body, number, term.location)


def literal_of(term: Term) -> Literal:
    """A condition of a rule over time points."""
    if isinstance(term, Compound):
        if term.name == NEGATION:
            inner = term.arguments[0]
            return Negation(body_of(conjuncts(inner)), term.location)
        if term.name in ("happensAt", "holdsAt"):
            if len(term.arguments) != 2:
                raise InvalidClause(term.location, Message("{name} takes 2 arguments, not {count}", name=term.name, count=len(term.arguments)))
            time = time_variable(term.arguments[1])
            if term.name == "holdsAt":
                return HoldsAt(fluent_pattern(term.arguments[0]), time, term.location)
            event = term.arguments[0]
            if isinstance(event, Compound) and event.name in ("start", "end") and len(event.arguments) == 1:
                return Edge("start" if event.name == "start" else "end", fluent_pattern(event.arguments[0]), time, term.location)
            name, arguments = event_pattern(event)
            return Happens(name, arguments, time, event.location)
        if term.name == "is":
            if not isinstance(term.arguments[0], Variable):
                return Comparison("=:=", expression_of(term.arguments[0]), expression_of(term.arguments[1]), term.location)
            return Assignment(term.arguments[0].name, expression_of(term.arguments[1]), term.location)
        if term.name in builtins.NUMERIC_COMPARISONS:
            return Comparison(term.name, expression_of(term.arguments[0]), expression_of(term.arguments[1]), term.location)
        if term.name in builtins.TERM_COMPARISONS:
            left, right = (simple_term(side, what=Message("a side of a comparison")) for side in term.arguments)
            return Comparison(term.name, left, right, term.location)
        if term.name == "absoluteAngleDiff" and len(term.arguments) == 3:
            angle = Compound("angle_difference", tuple(expression_of(side) for side in term.arguments[:2]), term.location)
            target = term.arguments[2]
            return (
                Assignment(target.name, angle, term.location)
                if isinstance(target, Variable)
                else Comparison("=:=", angle, expression_of(target), term.location)
            )
        if term.name == "initiatedAt" and len(term.arguments) in (2, 4):
            for span in term.arguments[1:4:2] if len(term.arguments) == 4 else ():
                time_variable(span)
            return Initiated(fluent_pattern(term.arguments[0]), time_variable(time_of(term)), term.location)
        if term.name == "findall":
            raise InvalidClause(term.location, Message("findall(V, CONDITIONS, L) needs length(L, N) in the same conditions"))
        if term.name in ("holdsFor", "initiatedAt", "terminatedAt", "initially"):
            raise InvalidClause(term.location, Message("{name} cannot be a condition here", name=term.name))
        return _fact(term)
    raise InvalidClause(term.location, Message("{term} is not a condition", term=term))


def _fact(term: Compound) -> Fact:
    """A term as background knowledge; a fault if it may be a misspelt condition."""
    if not all(isinstance(argument, Variable | Atom | Number) for argument in term.arguments) and is_near(term.name, builtins.CONDITIONS):
        raise InvalidClause(term.location, unknown(Message("condition"), term.name, builtins.CONDITIONS))
    name, arguments = event_pattern(term)
    return Fact(name, arguments, term.location)


def expression_of(term: Term) -> Term:
    """Checks an arithmetic expression."""
    if isinstance(term, Number | Variable):
        return term
    if isinstance(term, Atom) and term.name in builtins.CONSTANTS:
        return term
    if isinstance(term, Compound) and (arity := builtins.FUNCTIONS.get(term.name)) is not None:
        if len(term.arguments) not in arity:
            raise InvalidClause(term.location, Message("{name} does not take {count} arguments", name=term.name, count=len(term.arguments)))
        return Compound(term.name, tuple(expression_of(argument) for argument in term.arguments), term.location)
    known = [name for name in builtins.FUNCTIONS if name.isidentifier()]
    raise InvalidClause(term.location, unknown(Message("arithmetic"), term.name if isinstance(term, Atom | Compound) else str(term), known))
