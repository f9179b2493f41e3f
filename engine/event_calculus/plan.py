"""A checked program in the order and form in which it is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from engine.event_calculus.candidates import Needs, alternatives
from engine.event_calculus.levels import Hierarchy, Node
from engine.event_calculus.ordering import order_body
from engine.event_calculus.program import Program
from engine.event_calculus.syntax import Deadline, FluentPattern, Grounding, IntervalRule, Literal, PointRule, Retrieve
from engine.event_calculus.terms import Variable


class Plan:
    """Levels of a program, the rules of each, and for each holdsFor rule where its groundings come from."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._hierarchy = Hierarchy(program)
        self.alternatives: dict[int, list[Needs]] = {}
        self.conditions: dict[int, tuple[Literal, ...]] = {}
        for rule in program.interval_rules:
            self.alternatives[rule.number] = alternatives(rule, grounded="=" + rule.head.name in program.groundings)
            bound = {term.name for part in rule.intervals if isinstance(part, Retrieve) for term in part.fluent.terms if isinstance(term, Variable)}
            bound |= {term.name for term in rule.head.terms if isinstance(term, Variable)}
            self.conditions[rule.number] = order_body(rule.conditions, bound)
        self._sources: dict[FluentPattern, list[Node]] = {}

    @cached_property
    def components(self) -> Sequence[tuple[Sequence[Node], bool]]:
        """Nodes in order of evaluation; true where the nodes of a component need each other."""
        inner = {(d.target, d.source) for d in self._hierarchy.dependencies}
        return [(component, len(component) > 1 or (component[0], component[0]) in inner) for component in self._hierarchy.components]

    @cached_property
    def nodes(self) -> list[Node]:
        return [node for component, _ in self.components for node in component]

    def sources(self, pattern: FluentPattern) -> list[Node]:
        found = self._sources.get(pattern)
        if found is None:
            found = self._sources[pattern] = self._hierarchy.sources(pattern)
        return found

    def point_rules(self, node: Node) -> list[PointRule]:
        return [rule for rule in self._hierarchy.rules[node] if isinstance(rule, PointRule)]

    def interval_rules(self, node: Node) -> list[IntervalRule]:
        return [rule for rule in self._hierarchy.rules[node] if isinstance(rule, IntervalRule)]

    @cached_property
    def deadlines(self) -> dict[Node, tuple[Deadline, ...]]:
        found: dict[Node, list[Deadline]] = {}
        for deadline in self.program.deadlines:
            found.setdefault(Node("simple", *deadline.fluent, ""), []).append(deadline)
        return {node: tuple(deadlines) for node, deadlines in found.items()}

    @cached_property
    def domain_groundings(self) -> list[Grounding]:
        """Groundings that use a dynamic domain."""
        return [rule for rules in self.program.groundings.values() for rule in rules]
