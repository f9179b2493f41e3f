"""A checked program in the order and form in which it is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.event_calculus.candidates import Needs, alternatives, essential
from engine.event_calculus.fused import FusedRule, fused_rule
from engine.event_calculus.intervals import Ints
from engine.event_calculus.levels import Hierarchy, Node, evaluation_order
from engine.event_calculus.ordering import bound_by, order_body
from engine.event_calculus.program import Program
from engine.event_calculus.syntax import (
    Comparison,
    Construct,
    Deadline,
    Declared,
    Fact,
    FluentPattern,
    Grounding,
    Indicator,
    Initially,
    Initiated,
    IntervalRule,
    Literal,
    Negation,
    PointRule,
    Retrieve,
    literal_variables,
    timed,
)  # fmt: skip
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import Atom, Number, Term, Variable, variable_names


class Plan:
    """The levels of a program, the rules of each, and the source of the
    groundings of each holdsFor rule."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._hierarchy = Hierarchy(program)
        self._matching: dict[tuple[str, tuple[str | None, ...]], tuple[Grounding, ...] | None] = {}
        self.alternatives: dict[int, list[Needs]] = {}
        self.conditions: dict[int, tuple[Literal, ...]] = {}
        self.essential: dict[int, list[str]] = {}
        self.fused: dict[int, FusedRule | None] = {}
        self.relations: dict[int, list[Construct]] = {}
        """The constructs of a rule that are Allen relations."""
        self.grounded_first: dict[int, bool] = {}
        """Whether a rule's declared groundings bind variables of its head before its
        conditions are evaluated."""
        for rule in program.interval_rules:
            grounded = "=" + rule.head.name in program.groundings
            self.alternatives[rule.number] = alternatives(rule, grounded=grounded)
            self.relations[rule.number] = [part for part in rule.intervals if isinstance(part, Construct) and part.operator == "allen"]
            bound = variable_names(term for part in rule.intervals if isinstance(part, Retrieve) for term in part.fluent.terms)
            bound |= variable_names(rule.head.terms)
            self.conditions[rule.number] = order_body(rule.conditions, bound)
            declared = self.groundings_of(rule.head.terms, "=" + rule.head.name)
            self.grounded_first[rule.number] = all(_binds_all(one) for one in declared or ())
            self.essential[rule.number] = essential(rule)
            self.fused[rule.number] = fused_rule(rule, self.essential[rule.number], self.alternatives[rule.number], grounded=grounded)
        rules = self._hierarchy.rules
        self._point_rules = {node: [rule for rule in own if isinstance(rule, PointRule)] for node, own in rules.items()}
        self._interval_rules = {node: [rule for rule in own if isinstance(rule, IntervalRule)] for node, own in rules.items()}
        self._sources: dict[int, tuple[FluentPattern, list[Node], bool]] = {}
        self._grounding_keys: dict[int, str | None] = {}
        self._listable: dict[tuple[str, int], list[tuple[Grounding, str]] | None] = {}
        self.grounds_heads = any(isinstance(literal, Declared) for rule in program.point_rules for literal in rule.body)
        """Whether groundings bind variables for the conditions of some rule."""
        read = (literal.fluent for literal in _initiation_conditions(program))
        self.initiations_read: frozenset[Node] = frozenset(node for fluent in read for node in self._hierarchy.initiating(fluent))
        """Simple fluents whose initiations some condition reads."""

    @cached_property
    def components(self) -> Sequence[tuple[Sequence[Node], bool]]:
        """Nodes in order of evaluation; true where the nodes of a component need each other."""
        inner = {(d.target, d.source) for d in self._hierarchy.dependencies}
        found: list[tuple[Sequence[Node], bool]] = []
        for component in self._hierarchy.components:
            if len(component) > 1:
                found.append((evaluation_order(component, self._hierarchy.dependencies), True))
            else:
                found.append((component, (component[0], component[0]) in inner))
        return found

    @cached_property
    def nodes(self) -> list[Node]:
        return [node for component, _ in self.components for node in component]

    @cached_property
    def levels(self) -> dict[Node, int]:
        """One more than the greatest level that a node reads, inputs being 0; nodes that need each
        other have the same level ([dRTEC] 2)."""
        found: dict[Node, int] = {}
        for component, _ in self.components:
            reads = [d.source for d in self._hierarchy.dependencies if d.target in component and d.source in found]
            found.update(dict.fromkeys(component, 1 + max((found[source] for source in reads), default=0)))
        return found

    def sources(self, pattern: FluentPattern) -> tuple[list[Node], bool]:
        """The computed nodes with intervals of a pattern, and whether an input may have some."""
        # By identity: hashing a pattern with all its terms costs more than the look-up
        # (measured: 5 % of a small window).
        found = self._sources.get(id(pattern))
        if found is None:
            found = self._sources[id(pattern)] = (pattern, self._hierarchy.sources(pattern), self._may_be_input(pattern))
        return found[1], found[2]

    def initiating(self, pattern: FluentPattern) -> list[Node]:
        """The nodes whose initiations a condition on the pattern reads."""
        return self._hierarchy.initiating(pattern)

    def _may_be_input(self, pattern: FluentPattern) -> bool:
        """Whether an input fluent has the pattern's name and, if values are declared, its value."""
        values = [declared.fluent.value for declared in self.program.spatial if declared.fluent.indicator == pattern.indicator]
        known = pattern.indicator in self.program.inputs or isinstance(pattern.value, Variable)
        return known or not values or any(may_match([value], [pattern.value]) for value in values)

    def point_rules(self, node: Node) -> list[PointRule]:
        return self._point_rules[node]

    def interval_rules(self, node: Node) -> list[IntervalRule]:
        return self._interval_rules[node]

    def has_other_rules(self, rule: IntervalRule) -> bool:
        """Whether other rules may derive intervals of the same fluent-value."""
        return any(len(self._interval_rules[node]) > 1 for node in self._hierarchy.sources(rule.head))

    def starts(self, node: Node) -> list[Initially]:
        """The `initially` clauses of this node."""
        return [start for start in self.program.initially if node in self._hierarchy.sources(start.fluent)]

    @cached_property
    def deadlines(self) -> dict[Node, tuple[Deadline, ...]]:
        found: dict[Node, list[Deadline]] = {}
        for deadline in self.program.deadlines:
            for node in self._hierarchy.simple(deadline.fluent):
                found.setdefault(node, []).append(deadline)
        return {node: tuple(deadlines) for node, deadlines in found.items()}

    @cached_property
    def domains(self) -> frozenset[Indicator]:
        return frozenset(self.program.domains)

    def groundings_of(self, terms: Sequence[Term], name: str) -> tuple[Grounding, ...] | None:
        """The groundings declared for a fluent ("=" and its name) or an event that match `terms`;
        null if none is declared."""
        key = name, tuple(symbol_name(term) if isinstance(term, Atom | Number) else None for term in terms)
        if key not in self._matching:
            rules = self.program.groundings.get(name)
            self._matching[key] = None if rules is None else tuple(rule for rule in rules if may_match(terms, rule.terms))
        return self._matching[key]

    def listable(self, name: str, width: int) -> list[tuple[Grounding, str]] | None:
        """The groundings declared for a fluent ("=" and its name; `width`: arguments and value) or
        an event, each with its key; null if one cannot be listed."""
        key = name, width
        if key not in self._listable:
            rules = [rule for rule in self.program.groundings[name] if len(rule.terms) == width]
            found = [(rule, body) for rule in rules if (body := self.grounding_key(rule)) is not None]
            self._listable[key] = found if len(found) == len(rules) else None
        return self._listable[key]

    def grounding_key(self, rule: Grounding) -> str | None:
        """A text that is equal for groundings that declare the same rows; null if these cannot be
        listed from facts and domains."""
        if id(rule) not in self._grounding_keys:
            listed = {name for literal in rule.body if isinstance(literal, Fact) for name in literal_variables(literal)}
            names = [term.name for term in rule.terms if isinstance(term, Variable)]
            order = {name: f"V{place}" for place, name in enumerate(dict.fromkeys([*names, *sorted(listed)]))}
            whole = set(names) <= listed and not any(isinstance(literal, Negation) for literal in rule.body)
            self._grounding_keys[id(rule)] = _canonical(rule, order) if whole else None
        return self._grounding_keys[id(rule)]

    @cached_property
    def domain_sources(self) -> dict[Indicator, list[Naming]]:
        """The events and fluents that name the members of each dynamic domain."""
        found: dict[Indicator, dict[tuple[str, int, bool], dict[tuple[int, ...], None]]] = {domain: {} for domain in self.program.domains}
        for rules in self.program.groundings.values():
            for rule in rules:
                places = {term.name: place for place, term in enumerate(rule.terms) if isinstance(term, Variable)}
                fluent = rule.name.startswith("=")
                for literal in rule.body:
                    if not isinstance(literal, Fact) or literal.indicator not in found:
                        continue
                    wanted = [term.name for term in literal.arguments if isinstance(term, Variable)]
                    if len(wanted) == len(literal.arguments) and all(name in places for name in wanted):
                        columns = tuple(places[name] for name in wanted)
                        found[literal.indicator].setdefault((rule.name.lstrip("="), len(rule.terms) - fluent, fluent), {})[columns] = None
        return {domain: [Naming(*own, np.array(list(columns)).T) for own, columns in sources.items()] for domain, sources in found.items()}


@dataclass(frozen=True)
class Naming:
    """An event or a fluent whose arguments are members of a domain; each column of `places`
    (members' arguments, ways) has the positions of a member."""

    name: str
    arity: int
    fluent: bool
    places: Ints


def may_match(terms: Sequence[Term], declared: Sequence[Term]) -> bool:
    """Whether no constant of one is at the position of a different constant of the other."""
    return len(terms) == len(declared) and all(
        not isinstance(a, Atom | Number) or not isinstance(b, Atom | Number) or symbol_name(a) == symbol_name(b)
        for a, b in zip(terms, declared, strict=True)
    )


def _initiation_conditions(program: Program) -> Iterator[Initiated]:
    return (literal for rule in program.point_rules for literal in timed(rule.body) if isinstance(literal, Initiated))


def _binds_all(grounding: Grounding) -> bool:
    bound = bound_by(grounding.body)
    return all(term.name in bound for term in grounding.terms if isinstance(term, Variable))


def _canonical(rule: Grounding, order: dict[str, str]) -> str:
    """The text of a grounding with numbered variables, equal for two that differ only in names."""

    def show(term: Term) -> str:
        return order.get(term.name, term.name) if isinstance(term, Variable) else f"{type(term).__name__} {term}"

    parts = [", ".join(show(term) for term in rule.terms)]
    for literal in rule.body:
        if isinstance(literal, Fact):
            parts.append(f"{literal.name}({', '.join(show(term) for term in literal.arguments)})")
        elif isinstance(literal, Comparison):
            parts.append(f"{show(literal.left)} {literal.operator} {show(literal.right)}")
        else:
            parts.append(repr(literal))
    return " | ".join(parts)
