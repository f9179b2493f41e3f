"""Relations with compound terms as arguments, as in pow(vote(V, M)) = true: each
shape is a separate relation.

Such a relation is named by its shape, `pow(vote(_, _))`, and its arguments are those in the
holes, from left to right. Only reading and showing treat it differently from other
relations. A variable is bound to a name or a number, never to a compound term. In answers
the fluent is `pow` and the entities are `vote, V, M`: the term read from left to right, so
that two shapes of one fluent differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from engine.event_calculus.parser import ProgramRefused, parse_term
from engine.event_calculus.terms import Compound, SourceLocation, Term, Variable

_HOLE = "(_"
"""The beginning of the innermost arguments of every shape."""
_PLAIN = re.compile(r"[a-z][A-Za-z0-9_]*")
_NOWHERE = SourceLocation(0, 0)


def is_shape(name: str) -> bool:
    """Whether a relation's name is a shape; for a name in a text or a row: whether it
    could be mistaken for one."""
    return _HOLE in name and _known(name) is not None


def flatten(term: Compound) -> tuple[str, tuple[Term, ...]]:
    """The name of a relation and its arguments."""
    if not any(isinstance(argument, Compound) for argument in term.arguments):
        return term.name, term.arguments
    return _shape(term), tuple(_leaves(term))


def base_name(name: str) -> str:
    """The fluent's or event's own name."""
    return _term(name).name if is_shape(name) else name


def entity_template(name: str) -> list[str | None]:
    """The entities of an answer, in order: a functor of the shape, or null for the next argument.
    Empty for a relation without a shape."""
    return list(_prefix(_term(name)))[1:] if is_shape(name) else []


def entities_of(name: str, arguments: Sequence[str]) -> list[str]:
    """The entities of an answer."""
    left = iter(arguments)
    return [next(left) if functor is None else functor for functor in entity_template(name)] or list(arguments)


def may_coincide(one: str, arity: int, other: str, other_arity: int) -> bool:
    """Whether answers of two relations could have the same entities under one name;
    `one` or `other` is a shape."""
    own, others = entity_template(one) or [None] * arity, entity_template(other) or [None] * other_arity
    return len(own) == len(others) and all(a is None or b is None or a == b for a, b in zip(own, others, strict=True))


def format_relation(name: str, arguments: Sequence[str]) -> str:
    """A relation with its arguments, in the notation of programs."""
    if not is_shape(name):
        return f"{name}({', '.join(arguments)})" if arguments else name
    left = iter(arguments)
    return _fill_text(_term(name), left)


def variable_at_term(name: str, arguments: Sequence[Term], other: str) -> Variable | None:
    """A variable of `name(arguments)` at the position of a compound term in relation `other`,
    if the two match otherwise."""
    term = _fill_terms(_term(name), iter(arguments)) if is_shape(name) else Compound(name, tuple(arguments), _NOWHERE)
    found: list[Variable] = []
    return found[0] if _meets(term, _term(other), found) and found else None


def _meets(term: Term, other: Term, found: list[Variable]) -> bool:
    if isinstance(other, Variable):
        return not isinstance(term, Compound)
    assert isinstance(other, Compound)
    if isinstance(term, Variable):
        found.append(term)
        return True
    if not isinstance(term, Compound) or term.indicator != other.indicator:
        return False
    return all(_meets(one, two, found) for one, two in zip(term.arguments, other.arguments, strict=True))


def _term(shape: str) -> Compound:
    term = _known(shape)
    assert term is not None
    return term


@lru_cache(maxsize=10_000)
def _known(name: str) -> Compound | None:
    """The term of a shape; null for any other name."""
    try:
        term = parse_term(name)
    except ProgramRefused:
        return None
    nested = isinstance(term, Compound) and any(isinstance(argument, Compound) for argument in term.arguments)
    return term if isinstance(term, Compound) and nested and _shape(term) == name else None


def _quote(functor: str) -> str:
    if _PLAIN.fullmatch(functor):
        return functor
    return "'" + functor.replace("\\", "\\\\").replace("'", "''") + "'"


def _shape(term: Term) -> str:
    return f"{_quote(term.name)}({', '.join(map(_shape, term.arguments))})" if isinstance(term, Compound) else "_"


def _leaves(term: Term) -> Iterator[Term]:
    if isinstance(term, Compound):
        for argument in term.arguments:
            yield from _leaves(argument)
    else:
        yield term


def _prefix(term: Term) -> Iterator[str | None]:
    if isinstance(term, Compound):
        yield term.name
        for argument in term.arguments:
            yield from _prefix(argument)
    else:
        yield None


def _fill_text(term: Term, arguments: Iterator[str]) -> str:
    if isinstance(term, Compound):
        return f"{term.name}({', '.join([_fill_text(argument, arguments) for argument in term.arguments])})"
    return next(arguments)


def _fill_terms(term: Term, arguments: Iterator[Term]) -> Term:
    if isinstance(term, Compound):
        return Compound(term.name, tuple([_fill_terms(argument, arguments) for argument in term.arguments]), term.location)
    return next(arguments)
