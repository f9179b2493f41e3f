"""Terms of the oracle of the event calculus: matched, compared and counted with, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.event_calculus.terms import Atom, Compound, ListTerm, Number, Term, Variable

Key = tuple[str, tuple[str, ...], str]
"""Fluent, arguments, value. An argument that is a term is its functor and its
arguments, one after the other."""
Binding = dict[str, Any]
COMPARISONS = ("<", ">", "=<", ">=", "=:=", "=\\=", "=", "\\=", "==", "\\==", "@<", "@>", "@=<", "@>=", "is")


@dataclass
class Rule:
    """`time` and `body` of a rule whose head is `name(arguments) = value`, or an event."""

    name: str
    arguments: tuple[Term, ...]
    value: Term | None
    time: str
    body: tuple[Term, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.arguments if self.value is None else (*self.arguments, self.value)


def rule_of(head: Term, time: str, body: tuple[Term, ...]) -> Rule:
    fluent, value = (head.arguments[0], head.arguments[1]) if isinstance(head, Compound) and head.name == "=" else (head, None)
    assert isinstance(fluent, Compound | Atom)
    return Rule(fluent.name, fluent.arguments if isinstance(fluent, Compound) else (), value, time, body)


def conjuncts(body: Term | None) -> tuple[Term, ...]:
    if body is None:
        return ()
    if isinstance(body, Compound) and body.name == ",":
        return tuple(one for part in body.arguments for one in conjuncts(part))
    return (body,)


def alternatives(body: tuple[Term, ...]) -> list[tuple[Term, ...]]:
    """A body without `;` outside of other conditions: one rule for each way, which may leave other
    variables to a grounding."""
    for place, one in enumerate(body):
        if isinstance(one, Compound) and one.name == ";":
            return [more for side in one.arguments for more in alternatives((*body[:place], *conjuncts(side), *body[place + 1 :]))]
    return [body]


def names_of(term: Term | None) -> set[str]:
    if isinstance(term, Variable):
        return {term.name}
    parts = term.arguments if isinstance(term, Compound) else term.items if isinstance(term, ListTerm) else ()
    return set[str]().union(*(names_of(part) for part in parts))


def names_of_all(terms: Iterable[Term]) -> set[str]:
    return set[str]().union(*map(names_of, terms))


def binds(literal: Term) -> set[str]:
    """Variables that a condition can bind."""
    if not isinstance(literal, Compound) or literal.name == "\\+" or (literal.name in COMPARISONS and literal.name not in ("=", "is")):
        return set()
    if literal.name == "is":
        return names_of(literal.arguments[0])
    if literal.name == "length":
        return names_of(literal.arguments[1])
    return names_of(literal.arguments[2]) if literal.name == "findall" else names_of(literal)


def binds_all(literals: Iterable[Term]) -> set[str]:
    return set[str]().union(*map(binds, literals))


def negated(body: Iterable[Term]) -> set[str]:
    """Variables that conditions read without binding them."""
    return set[str]().union(*(names_of(one) - binds(one) for one in body))


def text(term: Term) -> str:
    if isinstance(term, Number):
        return str(int(term.value)) if term.value == int(term.value) else repr(term.value)
    return str(term)


def value_of(term: Term | None, binding: Binding) -> Any:
    """The value of a term: a name, a time, or a tuple of a functor and arguments; null for a
    variable that is not bound."""
    if isinstance(term, Variable):
        return binding.get(term.name)
    if isinstance(term, Compound):
        return (term.name, *(value_of(one, binding) for one in term.arguments))
    return None if term is None else text(term)


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield str(value)


def flat(arguments: Iterable[Term], binding: Binding) -> tuple[str, ...]:
    return tuple(leaf for argument in arguments for leaf in leaves(value_of(argument, binding)))


def spelt(term: Term | None, binding: Binding) -> str:
    return str(value_of(term, binding))


def match(term: Term | None, value: Any, binding: Binding) -> Iterator[Binding]:
    """`binding` extended so that a term without arguments has the value."""
    if isinstance(term, Variable):
        known = binding.get(term.name)
        if known is None:
            yield {**binding, term.name: value}
        elif str(known) == str(value):
            yield binding
    elif term is not None and text(term) == str(value):
        yield binding


def match_term(term: Term, value: Any, binding: Binding) -> Iterator[Binding]:
    if value is None:
        yield binding
    elif isinstance(value, tuple):
        if isinstance(term, Compound) and len(term.arguments) == len(value) - 1 and term.name == value[0]:
            yield from match_each(term.arguments, value[1:], binding)
    elif not isinstance(term, Compound):
        yield from match(term, value, binding)


def match_each(terms: Sequence[Term], values: Sequence[Any], binding: Binding) -> Iterator[Binding]:
    if not terms:
        yield binding
        return
    for extended in match_term(terms[0], values[0], binding):
        yield from match_each(terms[1:], values[1:], extended)


def match_flat(arguments: Sequence[Term], names: Sequence[str], binding: Binding) -> Iterator[Binding]:
    """Arguments against names that are read from left to right."""
    wanted = [leaf for argument in arguments for leaf in open_leaves(argument)]
    if len(wanted) != len(names):
        return
    found = [binding]
    for term, name in zip(wanted, names, strict=True):
        found = [more for one in found for more in ([one] if term == name else [] if isinstance(term, str) else match(term, name, one))]
    yield from found


def open_leaves(term: Term) -> Iterator[Any]:
    """A term from left to right: functors as texts, the rest as terms."""
    if isinstance(term, Compound):
        yield term.name
        for argument in term.arguments:
            yield from open_leaves(argument)
    else:
        yield term


def match_all(event: Term, given: Sequence[str], binding: Binding) -> Iterator[Binding]:
    name, arguments = (event.name, event.arguments) if isinstance(event, Compound) else (str(event), ())
    if name == given[0]:
        yield from match_flat(arguments, given[1:], binding)


def match_fluent(pattern: Term, key: Key, binding: Binding) -> Iterator[Binding]:
    assert isinstance(pattern, Compound) and pattern.name == "="
    for extended in match_all(pattern.arguments[0], (key[0], *key[1]), binding):
        yield from match(pattern.arguments[1], key[2], extended)


def match_fluent_terms(arguments: Sequence[Term], value: Term | None, key: Key) -> Iterator[Binding]:
    for extended in match_flat(arguments, key[1], {}):
        yield from match(value, key[2], extended)


def unify(one: Sequence[Term], other: Sequence[Term]) -> bool:
    """Whether two heads can be the same."""
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if isinstance(a, Variable) or isinstance(b, Variable):
            continue
        if isinstance(a, Compound) and isinstance(b, Compound):
            if a.name != b.name or not unify(a.arguments, b.arguments):
                return False
        elif isinstance(a, Compound) or isinstance(b, Compound) or text(a) != text(b):
            return False
    return True


def compared(name: str, sides: Sequence[Term], binding: Binding) -> Iterator[Binding]:
    left, right = sides
    if name == "=" or name == "is":
        value = value_of(right, binding) if name == "=" else arithmetic(right, binding)
        if value is None:
            left, value = right, value_of(left, binding)
        shown = text(Number(value, "", left.location)) if isinstance(value, float) else value
        yield from match(left, shown, binding)
        return
    if name in ("==", "\\=", "\\==", "@<", "@>", "@=<", "@>="):
        a, b = (order(spelt(side, binding)) for side in sides)
        holds = {"==": a == b, "\\=": a != b, "\\==": a != b, "@<": a < b, "@>": a > b, "@=<": a <= b, "@>=": a >= b}[name]
    else:
        x, y = arithmetic(left, binding), arithmetic(right, binding)
        holds = {"<": x < y, ">": x > y, "=<": x <= y, ">=": x >= y, "=:=": x == y, "=\\=": x < y or x > y}[name]
    if holds:
        yield binding


def order(name: str) -> tuple[int, float, str]:
    """The standard order: numbers before names."""
    try:
        return (0, float(name), "")
    except ValueError:
        return (1, 0.0, name)


def arithmetic(term: Term | None, binding: Binding) -> float:
    if isinstance(term, Compound):
        operands = [arithmetic(argument, binding) for argument in term.arguments]
        a, b = operands[0], operands[-1]
        if term.name == "mod":
            return a % b
        return {"abs": abs(a), "+": a + b if len(operands) > 1 else a, "-": a - b if len(operands) > 1 else -a, "*": a * b}[term.name]
    try:
        return float(spelt(term, binding))
    except ValueError:
        return float("nan")


def assignments(names: Sequence[str], values: Sequence[str], binding: Binding) -> Iterator[Binding]:
    if not names:
        yield binding
        return
    for value in values:
        yield from assignments(names[1:], values, {**binding, names[0]: value})


def unique(found: Iterable[Binding]) -> list[Binding]:
    kept: list[Binding] = []
    for one in found:
        if one not in kept:
            kept.append(one)
    return kept
