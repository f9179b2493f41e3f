"""The order of evaluation: every fluent and event after its dependencies, cycles
of simple fluents together.

A fluent is one node with all its groundings (and, if it is simple, all its values) unless that
closes a forbidden cycle. Then rules whose heads have different constants in some argument are
separate nodes; for example close(A, B, 30), if it is defined by close(A, B, 24).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.event_calculus.program import Program
from engine.event_calculus.syntax import (
    Count,
    Edge,
    FluentPattern,
    Happens,
    HoldsAt,
    Indicator,
    Initiated,
    IntervalRule,
    Literal,
    Negation,
    PointRule,
    Retrieve,
)  # fmt: skip
from engine.event_calculus.tables import symbol_name
from engine.event_calculus.terms import Atom, Number, SourceLocation, Term
from engine.model.messages import Message

MAX_PARTS = 200
"""The greatest number of nodes of a divided relation; a relation that would
have more is not divided."""


class Node(NamedTuple):
    """A unit of computation: an event, a simple fluent with all its values, or
    one value of another fluent.

    `part`: the constants of its heads if the relation is divided, as in "true" or
    "(_, _, 30)=true"; else "".
    """

    kind: str
    name: str
    arity: int
    part: str


Pattern = tuple[str | None, ...]
"""The constants of a head or a condition; null for a variable."""


@dataclass(frozen=True)
class _Part:
    """A node, the patterns of its heads, and their common constants: tuples that do not unify with
    these are not in its table."""

    node: Node
    heads: frozenset[Pattern]
    common: Pattern


@dataclass(frozen=True)
class Dependency:
    """`target` needs `source`; `how` is 'holdsAt', 'event', 'not event', 'edge',
    'initiated' or 'intervals'."""

    target: Node
    source: Node
    how: str
    location: SourceLocation


class Hierarchy:
    """Dependency graph of a program and its strongly connected components, sources first."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._simple_values = simple_values(program)
        self._build(frozenset())
        cyclic = {_relation(node) for component, _ in self.forbidden() for node in component}
        if cyclic:
            self._build(cyclic)

    def _build(self, divided: Collection[_Relation]) -> None:
        """The graph with these relations divided by all constants of their heads."""
        self._parts = _parts(self.program, divided)
        self.rules: dict[Node, list[PointRule | IntervalRule]] = {part.node: [] for parts in self._parts.values() for part in parts}
        for rule in self.program.point_rules:
            head = rule.terms if rule.kind == "event" else rule.terms[:-1]
            relation = _Relation("event" if rule.kind == "event" else "simple", *rule.indicator)
            for node in (self._matching_nodes if rule.kind == "terminate" else self._nodes_of_head)(relation, _pattern(head)):
                self.rules[node].append(rule)
        for interval_rule in self.program.interval_rules:
            for node in self._nodes_of_head(_Relation("derived", *interval_rule.head.indicator), _pattern(interval_rule.head.terms)):
                self.rules[node].append(interval_rule)
        self.dependencies = [dependency for node, rules in self.rules.items() for rule in rules for dependency in self._rule_dependencies(node, rule)]
        self.components = _components(list(self.rules), self.dependencies)

    def sources(self, pattern: FluentPattern) -> list[Node]:
        """The computed nodes that hold intervals of `pattern`; inputs are not among them."""
        derived = self._matching_nodes(_Relation("derived", *pattern.indicator), _pattern(pattern.terms))
        values = self._simple_values.get(pattern.indicator) if derived else None
        if values is not None and isinstance(pattern.value, Atom | Number) and symbol_name(pattern.value) not in values:
            # Some values of one fluent may be simple and others statically determined.
            return derived
        return [*self.initiating(pattern), *derived]

    def initiating(self, pattern: FluentPattern) -> list[Node]:
        """The simple nodes of a pattern's fluent."""
        return self._matching_nodes(_Relation("simple", *pattern.indicator), _pattern(pattern.arguments))

    def simple(self, fluent: Indicator) -> list[Node]:
        """The nodes of a simple fluent."""
        return [part.node for part in self._parts.get(_Relation("simple", *fluent), ())]

    def forbidden(self) -> Iterator[tuple[list[Node], tuple[SourceLocation, Message]]]:
        """The components with a forbidden cycle, and the fault of each."""
        inner: dict[int, list[Dependency]] = {}
        component_of = {node: number for number, component in enumerate(self.components) for node in component}
        for dependency in self.dependencies:
            if component_of[dependency.target] == component_of[dependency.source]:
                inner.setdefault(component_of[dependency.target], []).append(dependency)
        for number, dependencies in sorted(inner.items()):
            if fault := _forbidden(self.components[number], dependencies):
                yield self.components[number], fault

    def _matching_nodes(self, relation: _Relation, pattern: Pattern) -> list[Node]:
        return [part.node for part in self._parts.get(relation, ()) if _unify(part.common, pattern)]

    def _nodes_of_head(self, relation: _Relation, head: Pattern) -> list[Node]:
        return [part.node for part in self._parts[relation] if head in part.heads]

    def _rule_dependencies(self, node: Node, rule: PointRule | IntervalRule) -> Iterator[Dependency]:
        if isinstance(rule, IntervalRule):
            for part in rule.intervals:
                if isinstance(part, Retrieve):
                    for source in self.sources(part.fluent):
                        yield Dependency(node, source, "intervals", part.location)
                elif position := getattr(part, "position", None):
                    yield from self._event_dependencies(node, position, "event")
            return
        for literal in rule.body:
            yield from self._literal_dependencies(node, literal, negated=False)

    def _literal_dependencies(self, node: Node, literal: Literal, *, negated: bool) -> Iterator[Dependency]:
        if isinstance(literal, Negation | Count):
            for inner in literal.body:
                yield from self._literal_dependencies(node, inner, negated=True)
        elif isinstance(literal, Happens):
            yield from self._event_dependencies(node, literal, "not event" if negated else "event")
        elif isinstance(literal, Initiated):
            for source in self.initiating(literal.fluent):
                yield Dependency(node, source, "initiated", literal.location)
        elif isinstance(literal, Edge | HoldsAt):
            for source in self.sources(literal.fluent):
                yield Dependency(node, source, "edge" if isinstance(literal, Edge) else "holdsAt", literal.location)

    def _event_dependencies(self, node: Node, literal: Happens, how: str) -> Iterator[Dependency]:
        for source in self._matching_nodes(_Relation("event", *literal.indicator), _pattern(literal.arguments)):
            yield Dependency(node, source, how, literal.location)


# -- parts -----------------------------------------------------------------------------------------


class _Relation(NamedTuple):
    kind: str
    name: str
    arity: int


def _relation(node: Node) -> _Relation:
    return _Relation(node.kind, node.name, node.arity)


def _pattern(terms: Iterable[Term]) -> Pattern:
    return tuple(symbol_name(term) if isinstance(term, Atom | Number) else None for term in terms)


def _unify(one: Pattern, other: Pattern) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _parts(program: Program, divided: Collection[_Relation]) -> dict[_Relation, list[_Part]]:
    """The nodes of each relation, in the order of the program."""
    heads: dict[_Relation, dict[Pattern, None]] = {}
    for rule in program.point_rules:
        relation = _Relation("event" if rule.kind == "event" else "simple", *rule.indicator)
        found = heads.setdefault(relation, {})
        # A termination creates no grounding: its rule belongs to every part that it unifies with.
        if rule.kind != "terminate":
            found[_pattern(rule.terms if rule.kind == "event" else rule.terms[:-1])] = None
    for start in program.initially:
        heads.setdefault(_Relation("simple", *start.indicator), {})[_pattern(start.fluent.arguments)] = None
    for interval_rule in program.interval_rules:
        heads.setdefault(_Relation("derived", *interval_rule.head.indicator), {})[_pattern(interval_rule.head.terms)] = None
    return {relation: list(_divide(relation, list(patterns), relation in divided)) for relation, patterns in heads.items()}


def _divide(relation: _Relation, heads: list[Pattern], by_arguments: bool) -> Iterator[_Part]:
    if by_arguments and len(classes := list(_classes(heads))) <= MAX_PARTS:
        labels: dict[str, int] = {}
        for own in classes:
            common = _common(own)
            label = _label(relation, common)
            labels[label] = labels.get(label, 0) + 1
            yield _Part(Node(*relation, label if labels[label] == 1 else f"{label} {labels[label]}"), frozenset(own), common)
        return
    if not heads:
        return
    values = {head[-1]: None for head in heads} if relation.kind == "derived" else {}
    if not values or None in values:
        yield _Part(Node(*relation, ""), frozenset(heads), _common(heads))
        return
    for value in values:
        own = [head for head in heads if head[-1] == value]
        yield _Part(Node(*relation, value or ""), frozenset(own), _common(own))


def _common(heads: Sequence[Pattern]) -> Pattern:
    """The constants that all heads have."""
    return tuple(column[0] if len(set(column)) == 1 else None for column in zip(*heads, strict=True))


def _label(relation: _Relation, common: Pattern) -> str:
    if all(one is None for one in common):
        return ""
    shown = ["_" if one is None else one for one in common]
    if relation.kind != "derived":
        return f"({', '.join(shown)})"
    return f"({', '.join(shown[:-1])})={shown[-1]}"


def _classes(heads: list[Pattern]) -> Iterator[list[Pattern]]:
    """The heads in classes: heads that may derive the same fact are in one
    class, so no fact is in two."""
    for column in zip(*heads, strict=True):
        if None not in column and len(set(column)) > 1:
            apart: dict[str | None, list[Pattern]] = {}
            for head, value in zip(heads, column, strict=True):
                apart.setdefault(value, []).append(head)
            for own in apart.values():
                yield from _classes(own)
            return
    left = list(heads)
    while left:
        own, reached = [left.pop(0)], 0
        while reached < len(own):
            own += [head for head in left if _unify(own[reached], head)]
            left = [head for head in left if not _unify(own[reached], head)]
            reached += 1
        yield own


# -- cycles ----------------------------------------------------------------------------------------


def check_hierarchy(program: Program) -> list[tuple[SourceLocation, Message]]:
    """Faults of a program that is not hierarchical (specification 5.6; [dRTEC] 2)."""
    return [fault for _, fault in Hierarchy(program).forbidden()]


def _forbidden(component: list[Node], inner: list[Dependency]) -> tuple[SourceLocation, Message] | None:
    """The fault of a cycle, if any: it must be closed by holdsAt, which refers strictly to the
    past. All other conditions refer to the same moment."""
    for dependency in inner:
        if dependency.target.kind == "derived" or dependency.source.kind == "derived":
            names = " -> ".join(sorted({node.name for node in component}))
            said = Message("cycle through a statically determined fluent: {names}; cycles are allowed among simple fluents only", names=names)
            return dependency.location, said
    instant = [dependency for dependency in inner if dependency.how != "holdsAt"]
    for loop in _components(component, instant):
        looped = {dependency.how: dependency for dependency in instant if dependency.target in loop and dependency.source in loop}
        names = " -> ".join(sorted({node.name for node in loop}))
        same_moment = {
            "edge": Message("cycle through start or end of a fluent: {names}; use holdsAt there", names=names),
            "initiated": Message("cycle through the moment at which a fluent is initiated: {names}; use holdsAt there", names=names),
            "not event": Message("cycle through a negated event: {names}", names=names),
            "event": Message("events cause each other at the same time: {names}", names=names),
        }
        for how, message in same_moment.items():
            if how in looped:
                return looped[how].location, message
    return None


def evaluation_order(component: Sequence[Node], dependencies: Sequence[Dependency]) -> list[Node]:
    """The nodes of a cycle in an order in which each comes after those that it
    needs at the same moment."""
    instant = [one for one in dependencies if one.how != "holdsAt" and one.target in component and one.source in component]
    return [node for alone in _components(list(component), instant) for node in alone]


def simple_values(program: Program, *, with_sources: bool = True) -> dict[Indicator, frozenset[str] | None]:
    """The values that rules assign to each simple fluent; null if a rule has
    a variable for the value. `with_sources`: also those at whose initiation a deadline is set."""
    found: dict[Indicator, set[str | None]] = {}
    for rule in program.point_rules:
        if rule.kind == "initiate":
            found.setdefault(rule.indicator, set()).update(_pattern(rule.terms[-1:]))
        elif rule.kind == "terminate":
            found.setdefault(rule.indicator, set())
    for start in program.initially:
        found.setdefault(start.indicator, set()).update(_pattern([start.fluent.value]))
    for deadline in program.deadlines:
        ends = [deadline.before, deadline.after] if with_sources else [deadline.after]
        found.setdefault(deadline.fluent, set()).update(_pattern(ends))
    return {indicator: None if None in values else frozenset(filter(None, values)) for indicator, values in found.items()}


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
