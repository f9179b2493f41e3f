"""Divides a program into two stages: a keyed stage, in which each partition computes the fluents
and events of its own entities, and a relational stage for the rest.

A **key position** of a relation (an input, a fluent, an event) is the index of an argument that is
always the entity of the rows from which the tuple was derived. The key positions of an input are
the arguments read from the column `entity`. An argument of a rule's head is at a key position if it
is a variable that is also at a key position of every relation that the rule reads. A relation with
a key position is non-relational: its tuples about an entity depend on that entity's rows only.

References: [dRTEC] 3.2 (non-relational processing), 3.3 (pairing and relational processing).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.event_calculus.inputs import InputSpec
from engine.event_calculus.levels import Node, simple_values
from engine.event_calculus.plan import Plan
from engine.event_calculus.program import EVENT, Program
from engine.event_calculus.shapes import base_name
from engine.event_calculus.syntax import (
    Construct,
    Count,
    Edge,
    Fact,
    Grounding,
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
from engine.event_calculus.terms import Atom, Number, Term, Variable
from engine.model.batch import ENTITY


class Relation(NamedTuple):
    """An event, or a fluent with all its values."""

    fluent: bool
    name: str
    arity: int


@dataclass(frozen=True)
class StagePart:
    """The nodes that one stage evaluates, over the rows of these inputs; `pairs`:
    also the spatial fluents."""

    nodes: frozenset[Node]
    inputs: frozenset[Indicator]
    pairs: bool


@dataclass(frozen=True)
class Partitioning:
    """A program's two stages. The first sends the tables of the nodes `sent`, those of the inputs
    `lists`, and the domains to the second."""

    keyed: StagePart
    relational: StagePart
    sent: tuple[Node, ...]
    lists: tuple[Indicator, ...]


def partitioning_of(plan: Plan, inputs: Sequence[InputSpec], outputs: Sequence[str], dialect: str) -> Partitioning | None:
    """The partitioning of a program; null if all that it computes is relational."""
    return _Partitioner(plan, inputs, outputs, dialect).build()


@dataclass(frozen=True)
class RelationRead:
    """A relation that a rule reads, and the arguments of the condition. `trigger`: the rule derives
    nothing without a tuple of it."""

    relation: Relation
    arguments: tuple[Term, ...]
    trigger: bool

    def has_variable(self, positions: Iterable[int], name: str) -> bool:
        """Whether the argument at one of these positions is the variable `name`."""
        return any(isinstance(term := self.arguments[position], Variable) and term.name == name for position in positions)


Rule = PointRule | IntervalRule


class _Partitioner:
    def __init__(self, plan: Plan, inputs: Sequence[InputSpec], outputs: Sequence[str], dialect: str) -> None:
        self.plan, self.inputs, self.outputs, self.dialect = plan, inputs, outputs, dialect
        self.program: Program = plan.program
        self.input_key_positions: dict[Relation, set[int]] = {
            Relation(spec.kind != EVENT, *spec.indicator): {position for position, column in enumerate(spec.columns) if column == ENTITY}
            for spec in inputs
        }
        self.rules: dict[Relation, list[Rule]] = {}
        for rule in self.program.point_rules:
            self.rules.setdefault(Relation(rule.kind != "event", *rule.indicator), []).append(rule)
        for derived in self.program.interval_rules:
            self.rules.setdefault(Relation(True, *derived.head.indicator), []).append(derived)
        self.key_positions = self._find_key_positions()

    def build(self) -> Partitioning | None:
        own = frozenset(node for node in self.plan.nodes if self.key_positions.get(relation_of(node)))
        if not own:
            return None
        first, second = set[Relation](), set[Relation]()
        for relation, rules in self.rules.items():
            (first if self.key_positions[relation] else second).update(read.relation for rule in rules for read in reads_of(rule))
        asserted = {relation for relation in [*self.rules, *self.input_key_positions] if base_name(relation.name) in self.outputs}
        naming = {Relation(source.fluent, source.name, source.arity) for sources in self.plan.domain_sources.values() for source in sources}
        positions = {spatial.position for spatial in self.program.spatial}
        keyed, relational, lists = set[Indicator](), set[Indicator](), list[Indicator]()
        for relation, key_positions in self.input_key_positions.items():
            indicator = (relation.name, relation.arity)
            if not key_positions or relation.name in positions or (not relation.fluent and relation in second):
                relational.add(indicator)
            elif relation.fluent and relation in second | asserted:
                lists.append(indicator)
            if key_positions and (relation in first | naming or indicator in lists):
                keyed.add(indicator)
        sent = tuple(node for node in self.plan.nodes if node in own and relation_of(node) in second | asserted)
        others = frozenset(self.plan.nodes) - own
        return Partitioning(StagePart(own, frozenset(keyed), pairs=False), StagePart(others, frozenset(relational), pairs=True), sent, tuple(lists))

    # -- key positions -----------------------------------------------------------------------------

    def _find_key_positions(self) -> dict[Relation, set[int]]:
        """The key positions of all relations, as a greatest fixpoint: starts with all arguments of
        computed relations, and removes those that some rule does not keep."""
        key_positions = dict(self.input_key_positions)
        for relation in self.rules:
            key_positions[relation] = key_positions.get(relation, set(range(relation.arity))) & set(range(relation.arity))
        for start in self.program.initially:
            key_positions[Relation(True, *start.indicator)] = set()
        for spatial in self.program.spatial:
            key_positions[Relation(True, *spatial.fluent.indicator)] = set()
        self.key_positions = key_positions
        changed = True
        while changed:
            changed = False
            for relation, rules in self.rules.items():
                kept = {position for position in key_positions[relation] if self._keeps(relation, position, rules)}
                changed = changed or kept != key_positions[relation]
                key_positions[relation] = kept
                if not kept:
                    # Lists and events are sent, but not initiations: a fluent is in one stage with
                    # the rules that read its initiations.
                    for fluent in {fluent for rule in rules for fluent in _with_initiations_read(conditions_of(rule)) if key_positions.get(fluent)}:
                        key_positions[fluent] = set()
                        changed = True
        return key_positions

    def _keeps(self, relation: Relation, position: int, rules: Sequence[Rule]) -> bool:
        domains = self._domains(relation, position)
        if domains is None or (domains and not self._always_known(relation)):
            return False
        return all(self._rule_keeps(rule, position, domains) for rule in rules)

    def _rule_keeps(self, rule: Rule, position: int, domains: set[Indicator]) -> bool:
        term = head_of(rule)[position]
        if not isinstance(term, Variable):
            return False
        reads = list(reads_of(rule))
        if any(not read.has_variable(self.key_positions.get(read.relation, ()), term.name) for read in reads):
            return False
        if any(fact.indicator in self.plan.domains for fact in facts_of(conditions_of(rule))):
            return False
        if isinstance(rule, PointRule):
            needed = [[read for read in reads if read.trigger]]
        else:
            # Rules of speeds read positions at starts and retract answers, so they are evaluated in
            # the stage that keeps the answers.
            if any(isinstance(part, Construct) and part.position is not None for part in rule.intervals):
                return False
            needed = [[_retrieve_read(part) for k in needs if isinstance(part := rule.intervals[k], Retrieve)] for needs in self._alternatives(rule)]
        # The rule must derive nothing without a row of the entity, because only
        # one partition has its rows.
        return all(reads and all(any(self._names(domain, read, term.name) for read in reads) for domain in domains) for reads in needed)

    def _alternatives(self, rule: IntervalRule) -> list[frozenset[int]]:
        return self.plan.alternatives[rule.number]

    # -- dynamic domains ---------------------------------------------------------------------------

    # A fluent with a declared grounding over a domain holds only for members of the domain. An
    # answer about a pair, from rows of other partitions, may make an entity a member. So such a
    # fluent is non-relational only if its entity is a member in any case: each point and each list
    # comes from a row in the window that names the entity, and each interval from before the window
    # is itself an open answer that does.

    def _domains(self, relation: Relation, position: int) -> set[Indicator] | None:
        """The dynamic domains that the relation's declared groundings read; null if they read one
        for another term than the argument at `position`."""
        domains: set[Indicator] = set()
        for rule in self._groundings(relation):
            for fact in facts_of(rule.body):
                if fact.indicator not in self.plan.domains:
                    continue
                member = rule.terms[position]
                if fact not in rule.body or fact.arguments != (member,) or not isinstance(member, Variable):
                    return None
                domains.add(fact.indicator)
        return domains

    def _always_known(self, relation: Relation) -> bool:
        """Whether each interval of a fluent that crosses a window's edge is an open answer.
        Deadlines may end such an interval without a row."""
        simple = any(isinstance(rule, PointRule) for rule in self.rules[relation])
        timed = any(deadline.fluent == (relation.name, relation.arity) for deadline in self.program.deadlines)
        return self.dialect == "rtec" and not (simple and (timed or not self._asserted_whole(relation)))

    def _asserted_whole(self, relation: Relation) -> bool:
        """Whether all intervals of a simple fluent are among the answers."""
        if base_name(relation.name) not in self.outputs or not self.program.outputs:
            return base_name(relation.name) in self.outputs
        declared = [one.terms for one in self.program.outputs if (one.name, len(one.terms)) == (relation.name, relation.arity + 1) and one.fluent]
        declared = [terms for terms in declared if all(isinstance(term, Variable) for term in terms[:-1])]
        values = simple_values(self.program).get((relation.name, relation.arity))
        known = {symbol_name(terms[-1]) for terms in declared if isinstance(terms[-1], Atom | Number)}
        return any(isinstance(terms[-1], Variable) for terms in declared) or (values is not None and values <= known)

    def _groundings(self, relation: Relation) -> list[Grounding]:
        """The declared groundings of a relation that rules define."""
        key = "=" + relation.name if relation.fluent else relation.name
        return [rule for rule in self.program.groundings.get(key, ()) if len(rule.terms) == relation.arity + relation.fluent]

    def _names(self, domain: Indicator, read: RelationRead, name: str) -> bool:
        """Whether each tuple read makes the entity in variable `name` a member of the domain."""
        if read.relation not in self.input_key_positions:
            rules = self._groundings(read.relation)
            return bool(rules) and all(any(fact.indicator == domain for fact in facts_of(rule.body)) for rule in rules)
        sources = [one for one in self.plan.domain_sources[domain] if Relation(one.fluent, one.name, one.arity) == read.relation]
        return any(read.has_variable(self.input_key_positions[read.relation] & set(source.places[0].tolist()), name) for source in sources)


def relation_of(node: Node) -> Relation:
    return Relation(node.kind != "event", node.name, node.arity)


def head_of(rule: Rule) -> tuple[Term, ...]:
    return rule.terms if isinstance(rule, PointRule) else rule.head.terms


def conditions_of(rule: Rule) -> tuple[Literal, ...]:
    return rule.body if isinstance(rule, PointRule) else rule.conditions


def reads_of(rule: Rule) -> Iterator[RelationRead]:
    """All relations that a rule reads, except facts."""
    if isinstance(rule, IntervalRule):
        for part in rule.intervals:
            if isinstance(part, Retrieve):
                yield _retrieve_read(part)
            elif isinstance(part, Construct) and part.position is not None:
                yield RelationRead(Relation(False, *part.position.indicator), part.position.arguments, trigger=False)
    yield from _literal_reads(conditions_of(rule), outer=True)


def _retrieve_read(part: Retrieve) -> RelationRead:
    return RelationRead(Relation(True, *part.fluent.indicator), part.fluent.arguments, trigger=True)


def _literal_reads(literals: Iterable[Literal], *, outer: bool) -> Iterator[RelationRead]:
    for literal in literals:
        if isinstance(literal, Negation | Count):
            yield from _literal_reads(literal.body, outer=False)
        elif isinstance(literal, Happens):
            yield RelationRead(Relation(False, *literal.indicator), literal.arguments, trigger=outer)
        elif isinstance(literal, Edge | HoldsAt | Initiated):
            yield RelationRead(
                Relation(True, *literal.fluent.indicator), literal.fluent.arguments, trigger=outer and not isinstance(literal, HoldsAt)
            )


def _with_initiations_read(literals: Iterable[Literal]) -> Iterator[Relation]:
    """The fluents whose initiations are read."""
    for literal in literals:
        if isinstance(literal, Negation | Count):
            yield from _with_initiations_read(literal.body)
        elif isinstance(literal, Initiated):
            yield Relation(True, *literal.fluent.indicator)


def facts_of(literals: Iterable[Literal]) -> Iterator[Fact]:
    """All facts, also those in negations."""
    for literal in literals:
        if isinstance(literal, Negation | Count):
            yield from facts_of(literal.body)
        elif isinstance(literal, Fact):
            yield literal
