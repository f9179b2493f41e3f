"""Terms of the rule language, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SourceLocation:
    """Line and column of a character, both from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True)
class Atom:
    name: str
    location: SourceLocation = field(compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Number:
    """`text` is the number as written: it is the symbol's name if the number
    is used as an identifier."""

    value: float
    text: str
    location: SourceLocation = field(compare=False)

    def __str__(self) -> str:
        return self.text


def is_span(value: float) -> bool:
    """Whether a number can be a span of time: whole, positive, and so small that
    times plus it do not overflow."""
    return 0 < value < 1 << 60 and value == int(value)


@dataclass(frozen=True)
class Variable:
    name: str
    location: SourceLocation = field(compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Compound:
    name: str
    arguments: tuple[Term, ...]
    location: SourceLocation = field(compare=False)

    @property
    def indicator(self) -> tuple[str, int]:
        return (self.name, len(self.arguments))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class ListTerm:
    items: tuple[Term, ...]
    location: SourceLocation = field(compare=False)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


ANONYMOUS = "_#"
"""Prefix of the names given to anonymous variables; `#` cannot be written in a variable."""


def written_name(variable: str) -> str:
    """A variable's name as the program has it."""
    return "_" if variable.startswith(ANONYMOUS) else variable


Term = Atom | Number | Variable | Compound | ListTerm

CONJUNCTION, DISJUNCTION, NEGATION, CUT = ",", ";", "\\+", "!"
"""Names of the compounds that join literals; no text can write them as a functor."""


@dataclass(frozen=True)
class Clause:
    """`head :- body.`; `head` is null for a directive, `body` is null for a fact. `end` is
    the place of its full stop."""

    head: Term | None
    body: Term | None
    location: SourceLocation = field(compare=False)
    end: SourceLocation = field(compare=False)


def variables(term: Term | None) -> Iterator[Variable]:
    """Variables of `term` in reading order, repeated as often as they occur."""
    if isinstance(term, Variable):
        yield term
    elif isinstance(term, Compound):
        for argument in term.arguments:
            yield from variables(argument)
    elif isinstance(term, ListTerm):
        for item in term.items:
            yield from variables(item)


def variable_names(terms: Iterable[Term]) -> set[str]:
    """The names of the variables among `terms`; compound terms are not searched."""
    return {term.name for term in terms if isinstance(term, Variable)}


def conjuncts(body: Term | None) -> tuple[Term, ...]:
    """The literals of a conjunction, left to right.

    Nested conjunctions are flattened; anything else is one literal.
    """
    if body is None:
        return ()
    if isinstance(body, Compound) and body.name == CONJUNCTION:
        return tuple(literal for part in body.arguments for literal in conjuncts(part))
    return (body,)
