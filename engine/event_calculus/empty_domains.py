"""Dynamic domains that can never have a member, so that what is declared
over them holds for nothing."""

from __future__ import annotations

from engine.event_calculus.deadlines import facts_of
from engine.event_calculus.program import Program
from engine.event_calculus.syntax import Grounding, Indicator
from engine.model.messages import Message


def empty_domains(program: Program) -> list[Indicator]:
    """Those over which something computed is declared, but whose members no input names, and
    nothing that can hold or happen without one."""
    computed = program.fluents | program.events
    rules = [(_declared(rule), {fact.indicator for fact in facts_of(rule.body)}) for own in program.groundings.values() for rule in own]
    begun = {initially.indicator for initially in program.initially}
    empty = set(program.domains)
    while filled := _filled(rules, empty, computed - begun):
        empty -= filled
    read = {domain for indicator, domains in rules if indicator in computed for domain in domains}
    return [domain for domain in program.domains if domain in empty & read]


def _filled(rules: list[tuple[Indicator, set[Indicator]]], empty: set[Indicator], computed: set[Indicator]) -> set[Indicator]:
    free = {indicator for indicator, domains in rules if indicator not in computed or not domains & empty}
    return {domain for indicator, domains in rules if indicator in free for domain in domains & empty}


def _declared(rule: Grounding) -> Indicator:
    return rule.name.lstrip("="), len(rule.terms) - rule.name.startswith("=")


def without_members(domain: Indicator) -> str:
    """What the author of a program should know of such a domain."""
    name, arity = domain
    members = "X" if arity == 1 else ", ".join(f"X{place + 1}" for place in range(arity))
    return str(
        Message(
            "no members: no grounding of an input fills the domain {name}/{arity}, so what is declared over it never holds. Add one for each input "
            "whose arguments are its members, as in grounding(arrives({members})) :- {name}({members}).",
            name=name,
            arity=arity,
            members=members,
        )
    )
