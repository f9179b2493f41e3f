"""The order of evaluation: every fluent and event after what it depends on, cycles of simple fluents together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from engine.event_calculus.program import Program
from engine.event_calculus.syntax import Edge, FluentPattern, Happens, HoldsAt, Indicator, IntervalRule, Literal, Negation, PointRule, Retrieve
from engine.event_calculus.terms import Place, Variable


class Node(NamedTuple):
    """A thing to compute: an event, a simple fluent with all its values, or one value of another fluent.

    `value` is "" for events and simple fluents and for a statically determined fluent whose value is a variable.
    """

    kind: str
    name: str
    arity: int
    value: str


@dataclass(frozen=True)
class Dependency:
    """`target` needs `source`; `how` is 'holdsAt', 'event', 'not event', 'edge' or 'intervals'."""

    target: Node
    source: Node
    how: str
    place: Place


class Hierarchy:
    """Dependency graph of a program and its strongly connected components, sources first."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.simple = program.simple_fluents
        self.rules: dict[Node, list[PointRule | IntervalRule]] = {}
        for rule in program.point_rules:
            kind = "event" if rule.kind == "event" else "simple"
            self.rules.setdefault(Node(kind, *rule.indicator, ""), []).append(rule)
        for pattern in program.initially:
            self.rules.setdefault(Node("simple", *pattern.indicator, ""), [])
        for interval_rule in program.interval_rules:
            self.rules.setdefault(derived_node(interval_rule.head), []).append(interval_rule)
        self.nodes_of: dict[Indicator, list[Node]] = {}
        for node in self.rules:
            if node.kind != "event":
                self.nodes_of.setdefault((node.name, node.arity), []).append(node)
        self.dependencies = [dependency for node, rules in self.rules.items() for rule in rules for dependency in self._of(node, rule)]
        self.components = _components(list(self.rules), self.dependencies)

    def sources(self, pattern: FluentPattern) -> list[Node]:
        """The computed nodes that hold intervals of `pattern`; inputs are not among them."""
        wanted = "" if isinstance(pattern.value, Variable) else str(pattern.value)
        return [node for node in self.nodes_of.get(pattern.indicator, []) if not wanted or not node.value or node.value == wanted]

    def _of(self, node: Node, rule: PointRule | IntervalRule) -> Iterator[Dependency]:
        if isinstance(rule, IntervalRule):
            for part in rule.intervals:
                if isinstance(part, Retrieve):
                    for source in self.sources(part.fluent):
                        yield Dependency(node, source, "intervals", part.place)
                elif position := getattr(part, "position", None):
                    yield from self._event(node, position, "event")
            return
        for literal in rule.body:
            yield from self._literal(node, literal, negated=False)

    def _literal(self, node: Node, literal: Literal, *, negated: bool) -> Iterator[Dependency]:
        if isinstance(literal, Negation):
            for inner in literal.body:
                yield from self._literal(node, inner, negated=True)
        elif isinstance(literal, Happens):
            yield from self._event(node, literal, "not event" if negated else "event")
        elif isinstance(literal, Edge | HoldsAt):
            for source in self.sources(literal.fluent):
                yield Dependency(node, source, "edge" if isinstance(literal, Edge) else "holdsAt", literal.place)

    def _event(self, node: Node, literal: Happens, how: str) -> Iterator[Dependency]:
        source = Node("event", *literal.indicator, "")
        if source in self.rules:
            yield Dependency(node, source, how, literal.place)


def derived_node(pattern: FluentPattern) -> Node:
    return Node("derived", *pattern.indicator, "" if isinstance(pattern.value, Variable) else str(pattern.value))


def check_hierarchy(program: Program) -> list[tuple[Place, str]]:
    """Faults of a program that is not hierarchical (CONTRACT 2.6; [dRTEC] 2)."""
    hierarchy = Hierarchy(program)
    faults = []
    for component in hierarchy.components:
        members = set(component)
        inner = [dependency for dependency in hierarchy.dependencies if dependency.target in members and dependency.source in members]
        if inner and (fault := _forbidden(component, inner)):
            faults.append(fault)
    return faults


def _forbidden(component: list[Node], inner: list[Dependency]) -> tuple[Place, str] | None:
    """What is wrong with a cycle: only holdsAt conditions, which look strictly back in time, may close one."""
    names = " -> ".join(sorted({node.name for node in component}))
    for dependency in inner:
        if dependency.target.kind == "derived" or dependency.source.kind == "derived":
            return dependency.place, f"cycle through a statically determined fluent: {names}; cycles are allowed among simple fluents only"
        if dependency.how == "edge":
            return dependency.place, f"cycle through start or end of a fluent: {names}; use holdsAt there"
        if dependency.how == "not event":
            return dependency.place, f"cycle through a negated event: {names}"
    instant = [dependency for dependency in inner if dependency.how == "event"]
    for loop in _components(component, instant):
        looped = [dependency for dependency in instant if dependency.target in loop and dependency.source in loop]
        if looped:
            return looped[0].place, f"events cause each other at the same time: {names}"
    return None


def _components(nodes: list[Node], dependencies: list[Dependency]) -> list[list[Node]]:
    """Strongly connected components, each after those it depends on (Tarjan, without recursion)."""
    sources: dict[Node, list[Node]] = {node: [] for node in nodes}
    for dependency in dependencies:
        if dependency.target in sources and dependency.source in sources:
            sources[dependency.target].append(dependency.source)
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[list[Node]] = []
    for root in nodes:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(sources[root]))]
        while work:
            node, pending = work[-1]
            for source in pending:
                if source not in index:
                    index[source] = low[source] = len(index)
                    stack.append(source)
                    on_stack.add(source)
                    work.append((source, iter(sources[source])))
                    break
                if source in on_stack:
                    low[node] = min(low[node], index[source])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    found.append(component)
    return found
