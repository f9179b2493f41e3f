"""Dynamic domains whose members every share of a program knows, although each share has only the
answers about its own pairs.

Members at a query time are the entities named by rows of the window, and those in open answers. All
shares know the rows, and the answers about one entity. An answer about a pair is in one share. But
if a program derives both a fluent of pairs and its complement, each pair of members has an open
answer at each query time, one or the other:

    close(A, B)=true     |-----|        |----->      one of the two is open,
    close(A, B)=false          |--------|            so A and B are members at the next query time

So members are never removed as soon as there are two of them, and each share knows the members
without the answers of other shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.event_calculus.plan import Plan
from engine.event_calculus.program import Program
from engine.event_calculus.shapes import base_name
from engine.event_calculus.syntax import Comparison, Construct, Fact, FluentPattern, Grounding, Indicator, IntervalRule, Retrieve
from engine.event_calculus.terms import Variable, variable_names

_APART = frozenset({"@<", "@>", "\\=", "\\=="})
"""Comparisons that are false for an entity with itself, and true for two different
entities in at least one order."""


def lasting_domains(plan: Plan, outputs: Sequence[str]) -> Mapping[Indicator, int]:
    """The domains whose members are never removed, each with the number of members needed: one, if
    pairs of an entity with itself count, else two."""
    found: dict[Indicator, int] = {}
    for rule in plan.program.interval_rules:
        for domain, least in _paired_domains(plan, rule):
            if _always_open(plan, outputs, rule, domain):
                found[domain] = min(least, found.get(domain, least))
    return found


def made_by_two(plan: Plan, domain: Indicator, relations: Sequence[Indicator]) -> bool:
    """Whether each answer about these relations that makes members of the domain is
    about two of its members.

    All groundings count: an answer makes a member of each argument at which
    one of them has a member.
    """
    naming = {(source.name, source.arity) for source in plan.domain_sources[domain] if source.fluent}
    declared = [rule for name, arity in naming.intersection(relations) for rule in _groundings(plan, name, arity)]
    return all(_requires_distinct(rule, domain) for rule in declared)


def _always_open(plan: Plan, outputs: Sequence[str], rule: IntervalRule, domain: Indicator) -> bool:
    """Whether a rule derives the complement of some lists that are also answers and make the
    same two entities members."""
    *lists, last = rule.intervals
    if not isinstance(last, Construct) or last.operator != "complement_all" or last.out != rule.out or rule.conditions:
        return False
    return _is_output(plan.program, outputs, rule.head) and all(
        isinstance(part, Retrieve)
        and variable_names(part.fluent.terms) == variable_names(rule.head.terms)
        and _is_output(plan.program, outputs, part.fluent)
        and _makes_members(plan, part.fluent, domain)
        for part in lists
    )


def _is_output(program: Program, outputs: Sequence[str], fluent: FluentPattern) -> bool:
    """Whether all intervals of a fluent's value are among the answers."""
    if base_name(fluent.name) not in outputs or not program.outputs:
        return base_name(fluent.name) in outputs
    declared = [one.terms for one in program.outputs if one.fluent and (one.name, len(one.terms)) == (fluent.name, len(fluent.terms))]
    return any(
        all(isinstance(term, Variable) for term in terms[:-1]) and (isinstance(terms[-1], Variable) or terms[-1] == fluent.value)
        for terms in declared
    )


def _makes_members(plan: Plan, fluent: FluentPattern, domain: Indicator) -> bool:
    """Whether all arguments of an open answer become members."""
    sources = [one for one in plan.domain_sources[domain] if one.fluent and (one.name, one.arity) == fluent.indicator]
    places = {place for one in sources for place in one.places[0].tolist()}
    return variable_names(fluent.terms) == variable_names([fluent.arguments[place] for place in sorted(places)])


def _paired_domains(plan: Plan, rule: IntervalRule) -> Iterator[tuple[Indicator, int]]:
    """The domains for which a rule's groundings are all pairs of members, with the number of
    members from which on each is in a pair."""
    for declared in plan.groundings_of(rule.head.terms, "=" + rule.head.name) or ():
        facts = [literal for literal in declared.body if isinstance(literal, Fact)]
        others = [literal for literal in declared.body if not isinstance(literal, Fact)]
        pair = variable_names(declared.terms)
        if len(pair) != 2 or len(declared.terms) != 3 or len(variable_names(rule.head.terms)) != 2 or len(facts) != 2 or len(others) > 1:
            continue
        domain = facts[0].indicator
        if domain in plan.domains and _member_variables(declared, domain) == pair and all(_compares(one, pair) for one in others):
            yield domain, 1 + len(others)


def _requires_distinct(rule: Grounding, domain: Indicator) -> bool:
    return any(_compares(literal, _member_variables(rule, domain)) for literal in rule.body)


def _member_variables(rule: Grounding, domain: Indicator) -> set[str]:
    """The variables that are members of the domain."""
    return {name for literal in rule.body if isinstance(literal, Fact) and literal.indicator == domain for name in variable_names(literal.arguments)}


def _compares(literal: object, names: set[str]) -> bool:
    """Whether a literal compares two of the variables, so that they cannot be the same."""
    if not isinstance(literal, Comparison) or literal.operator not in _APART:
        return False
    sides = variable_names((literal.left, literal.right))
    return len(sides) == 2 and sides <= names


def _groundings(plan: Plan, name: str, arity: int) -> list[Grounding]:
    return [rule for rule in plan.program.groundings.get("=" + name, ()) if len(rule.terms) == arity + 1]
