"""The parts of a checked program: rules, literals, declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal as Choice

from engine.event_calculus.terms import Atom, Number, SourceLocation, Term, Variable, variables

Indicator = tuple[str, int]
"""Name and number of arguments."""


@dataclass(frozen=True)
class FluentPattern:
    """`name(arguments) = value`; arguments and value are variables, atoms or numbers."""

    name: str
    arguments: tuple[Term, ...]
    value: Term
    location: SourceLocation = field(compare=False)

    @cached_property
    def indicator(self) -> Indicator:
        return (self.name, len(self.arguments))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Arguments, then the value: the key columns of the fluent's table."""
        return (*self.arguments, self.value)

    def __str__(self) -> str:
        inner = f"({', '.join(map(str, self.arguments))})" if self.arguments else ""
        return f"{self.name}{inner}={self.value}"


@dataclass(frozen=True)
class Happens:
    """happensAt(name(arguments), time)."""

    name: str
    arguments: tuple[Term, ...]
    time: str
    location: SourceLocation = field(compare=False)

    @cached_property
    def indicator(self) -> Indicator:
        return (self.name, len(self.arguments))


@dataclass(frozen=True)
class Edge:
    """happensAt(start(F=V), time) or happensAt(end(F=V), time)."""

    kind: Choice["start", "end"]
    fluent: FluentPattern
    time: str
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class HoldsAt:
    fluent: FluentPattern
    time: str
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Fact:
    name: str
    arguments: tuple[Term, ...]
    location: SourceLocation = field(compare=False)

    @cached_property
    def indicator(self) -> Indicator:
        return (self.name, len(self.arguments))


@dataclass(frozen=True)
class Comparison:
    """`left operator right` over numbers, or over terms for =, \\=, ==, \\==, @<, @>, @=<, @>=."""

    operator: str
    left: Term
    right: Term
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Assignment:
    """`variable is expression`."""

    variable: str
    expression: Term
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Negation:
    """Negation as failure: `body` cannot be satisfied; variables that occur
    nowhere else are local to it."""

    body: tuple[Literal, ...]
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Initiated:
    """initiatedAt(F=V, _, time, _): a rule or a deadline initiates F=V at that time,
    even if it holds already."""

    fluent: FluentPattern
    time: str
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Count:
    """findall(variable, body, L), length(L, number): the number of values of the
    variable that satisfy the body.

    Variables that occur nowhere else are local.
    """

    variable: str
    body: tuple[Literal, ...]
    number: Term
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Declared:
    """Binds the variables that a head leaves open to its groundings: declared ones, or, if none is
    declared, those that have begun.

    `name` is the key of the groundings; the key of a fluent begins with '='.
    """

    name: str
    terms: tuple[Term, ...]
    location: SourceLocation = field(compare=False)


Literal = Happens | Edge | HoldsAt | Fact | Comparison | Assignment | Negation | Initiated | Count | Declared


@dataclass(frozen=True)
class Retrieve:
    """holdsFor(F=V, out)."""

    fluent: FluentPattern
    out: str
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Construct:
    """An interval construct: `operator(inputs..., out)`.

    union_all, intersect_all: `inputs`. relative_complement_all: inputs[0] minus the rest.
    complement_all: complement of the union of inputs. longer_than (intDurGreater): `amount` is the
    duration. allen: `relation`, two inputs and `mode`. slower_than (impliedSpeedBelow): `position`
    names the event with positions, `amount` is in metres per unit of t. `satisfied`: by allen's
    sixth argument some pair must (or none may) be in the relation; null: this is not checked.
    """

    operator: str
    inputs: tuple[str, ...]
    out: str
    location: SourceLocation = field(compare=False)
    amount: Term | None = None
    relation: str = ""
    mode: str = ""
    position: Happens | None = None
    satisfied: bool | None = None


@dataclass(frozen=True)
class NonEmpty:
    """The list must not be empty (`negated`: must be empty)."""

    list: str
    negated: bool
    location: SourceLocation = field(compare=False)


IntervalLiteral = Retrieve | Construct | NonEmpty


@dataclass(frozen=True)
class PointRule:
    """initiatedAt, terminatedAt or happensAt: `body` in an order in which every
    literal can be evaluated."""

    kind: Choice["initiate", "terminate", "event"]
    name: str
    terms: tuple[Term, ...]
    time: str
    body: tuple[Literal, ...]
    location: SourceLocation = field(compare=False)
    number: int = 0

    @cached_property
    def indicator(self) -> Indicator:
        return (self.name, len(self.terms) - (self.kind != "event"))


@dataclass(frozen=True)
class Initially:
    """initially(F=V): holds from the beginning of time; `body`: facts, comparisons and arithmetic,
    in an order in which it can be evaluated."""

    fluent: FluentPattern
    body: tuple[Literal, ...]
    location: SourceLocation = field(compare=False)

    @property
    def indicator(self) -> Indicator:
        return self.fluent.indicator


@dataclass(frozen=True)
class IntervalRule:
    """holdsFor: `intervals` in order, `conditions` over the arguments; `out` names
    the list that is the answer."""

    head: FluentPattern
    intervals: tuple[IntervalLiteral, ...]
    conditions: tuple[Literal, ...]
    out: str
    location: SourceLocation = field(compare=False)
    number: int = 0


@dataclass(frozen=True)
class Grounding:
    """grounding(pattern) :- body: the possible arguments of the pattern; body consists of
    domains, facts and comparisons."""

    name: str
    terms: tuple[Term, ...]
    body: tuple[Literal, ...]
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True)
class Deadline:
    """fi(F=before, F=after, D) of some groundings: `rows` are the constants of their arguments (in
    the same places in all rows; null elsewhere: any) and their D in the unit of t; no two rows have
    the same constants. `extends`: p(F=before).
    """

    fluent: Indicator
    before: Term
    after: Term
    rows: tuple[tuple[tuple[Atom | Number | None, ...], int], ...]
    extends: bool
    location: SourceLocation = field(compare=False)

    @cached_property
    def bound(self) -> tuple[int, ...]:
        """The places of the arguments that are constants."""
        return tuple(location for location, term in enumerate(self.rows[0][0]) if term is not None)

    @cached_property
    def constants(self) -> tuple[Atom | Number, ...]:
        """The constants of all rows, concatenated."""
        return tuple(term for row, _ in self.rows for term in row if term is not None)


@dataclass(frozen=True)
class SpatialFluent:
    """An input fluent that the engine computes from positions.

    distance: `amount` is the greatest distance, pairs at one tick. proximity: the same by time
    slots of `slot` ticks. inside: `region` names a stored region, or a table of (name, region)
    facts; a sample counts for at most `slot` ticks.
    """

    fluent: FluentPattern
    relation: Choice["distance", "proximity", "inside"]
    position: str
    amount: float
    slot: int
    region: str
    location: SourceLocation = field(compare=False)


def literal_terms(literal: Literal) -> Iterator[Term]:
    """The terms of a literal outside nested negations, without the time variable."""
    if isinstance(literal, Happens | Fact):
        yield from literal.arguments
    elif isinstance(literal, Edge | HoldsAt | Initiated):
        yield from literal.fluent.terms
    elif isinstance(literal, Declared):
        yield from literal.terms
    elif isinstance(literal, Count):
        yield literal.number
    elif isinstance(literal, Comparison):
        yield literal.left
        yield literal.right
    elif isinstance(literal, Assignment):
        yield Variable(literal.variable, literal.location)
        yield literal.expression


def timed(body: Iterable[Literal]) -> Iterator[Happens | Edge | HoldsAt | Initiated]:
    """The conditions of a body that have a time, including those in negations."""
    for literal in body:
        if isinstance(literal, Negation | Count):
            yield from timed(literal.body)
        elif isinstance(literal, Happens | Edge | HoldsAt | Initiated):
            yield literal


def literal_variables(literal: Literal) -> set[str]:
    """Names of all variables of a literal, its time and nested negations included."""
    names = {variable.name for term in literal_terms(literal) for variable in variables(term)}
    if isinstance(literal, Negation | Count):
        names |= set().union(*(literal_variables(inner) for inner in literal.body))
    if isinstance(literal, Happens | Edge | HoldsAt | Initiated):
        names.add(literal.time)
    return names
