"""Which groundings of a holdsFor rule can have a non-empty answer.

RTEC tries every declared grounding. Here they are joined from the lists the rule reads: an
intersection needs all of its operands, a union any of them, a relative complement its first. So a
rule over pairs costs what its pairs cost, not all pairs.
"""

from __future__ import annotations

from engine.event_calculus.syntax import Construct, Fact, IntervalRule, Retrieve, literal_variables
from engine.event_calculus.terms import Variable, variable_names

MAX_ALTERNATIVES = 16

Needs = frozenset[int]
"""Positions in `rule.intervals` of the Retrieve literals that must all be non-empty."""


class NotCovered(Exception):
    """A variable of the head that no alternative binds and no grounding declares."""

    def __init__(self, variable: str) -> None:
        super().__init__(variable)
        self.variable = variable


def alternatives(rule: IntervalRule, *, grounded: bool) -> list[Needs]:
    """Sets of lists: an answer needs one set whose lists are all non-empty; an empty set:
    the grounding alone decides.

    With `grounded`, variables that an alternative leaves open come from the rule's grounding;
    otherwise raises NotCovered.
    """
    choices: dict[str, set[Needs]] = {}
    for position, literal in enumerate(rule.intervals):
        if isinstance(literal, Retrieve):
            choices[literal.out] = {frozenset([position])}
        elif isinstance(literal, Construct):
            choices[literal.out] = _construct_needs(literal, choices)
    wanted = set(choices[rule.out])
    result = _minimal(wanted)
    fixed = {term.name for literal in rule.conditions if isinstance(literal, Fact) for term in literal.arguments if isinstance(term, Variable)}
    if grounded:
        fixed |= variable_names(rule.head.terms)
    for needs in result:
        if missing := _missing(rule, needs, fixed):
            raise NotCovered(missing)
    for literal in rule.intervals:
        # Intervals that cross the window's edge are remembered even if the rest of the
        # rule is empty in this window.
        if isinstance(literal, Construct) and literal.operator in REMEMBERED:
            wanted |= {needs for name in literal.inputs for needs in choices[name] if not _missing(rule, needs, fixed)}
    return _minimal(wanted)


REMEMBERED = ("longer_than", "allen")
"""Constructs whose operands keep their true starts across the window's edge."""


def essential(rule: IntervalRule) -> list[str]:
    """Variables that a candidate must bind: those of the head and those that several conditions
    share; others are local to their list.

    Their order is that of the text, also in another process: columns of a
    stored state are in this order.
    """
    counts: dict[str, int] = {}
    for literal in rule.intervals:
        if isinstance(literal, Retrieve):
            for name in dict.fromkeys(term.name for term in literal.fluent.terms if isinstance(term, Variable)):
                counts[name] = counts.get(name, 0) + 1
        elif isinstance(literal, Construct) and literal.position is not None:
            for term in literal.position.arguments[:1]:
                if isinstance(term, Variable):
                    counts[term.name] = counts.get(term.name, 0) + 1
    from_lists = set(counts)
    for condition in rule.conditions:
        for name in literal_variables(condition) & from_lists:
            counts[name] += 1
    head = [term.name for term in rule.head.terms if isinstance(term, Variable)]
    return list(dict.fromkeys(head + [name for name, count in counts.items() if count > 1]))


def _missing(rule: IntervalRule, needs: Needs, fixed: set[str]) -> str:
    """An essential variable that the lists of `needs` leave open, or ""."""
    covered = fixed.union(*(_variables(rule, position) for position in needs))
    return next((name for name in essential(rule) if name not in covered), "")


def _variables(rule: IntervalRule, position: int) -> set[str]:
    literal = rule.intervals[position]
    assert isinstance(literal, Retrieve)
    return variable_names(literal.fluent.terms)


def _construct_needs(construct: Construct, choices: dict[str, set[Needs]]) -> set[Needs]:
    inputs = [choices[name] for name in construct.inputs]
    if construct.operator == "complement_all":
        return {frozenset()}
    if construct.operator == "union_all" or (construct.operator == "allen" and construct.mode == "union"):
        return set().union(*inputs)
    if construct.operator == "intersect_all" or construct.operator == "allen":
        return _cross_product(inputs)
    return inputs[0]


def _cross_product(inputs: list[set[Needs]]) -> set[Needs]:
    """Alternatives of a conjunction; if they would be too many, some operands are left out,
    which only adds candidates."""
    result: set[Needs] = {frozenset()}
    for operand in sorted(inputs, key=len):
        if len(result) * len(operand) <= MAX_ALTERNATIVES:
            result = {left | right for left in result for right in operand}
    return result


def _minimal(found: set[Needs]) -> list[Needs]:
    """The alternatives that are not supersets of another."""
    return sorted((needs for needs in found if not any(other < needs for other in found)), key=sorted)
