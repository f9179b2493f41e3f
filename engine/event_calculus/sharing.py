"""Distributes the relations about pairs: each relational partition computes them for
its own share of their keys.

A **key** of a relation is a set of one or two of its arguments. A relation has a key if every rule
that defines it reads other relations with keys only for the same entities in the key. Then all
tuples about one pair depend only on its own share. Results of the keyed stage, input rows and facts
are known to all shares. Relations that read each other are either all distributed or all not. Those
that are not distributed are computed by the first share only; fluents of one entity that the keyed
stage does not compute are computed by each share.

Open answers about pairs make entities members of dynamic domains, and these answers are in
several shares. So a rule that reads members is distributed only if all shares know the members in
another way (`members.py`).

References: [dRTEC] 3.3 (pairing and relational processing).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.event_calculus.intervals import Bools, Ints
from engine.event_calculus.members import lasting_domains, made_by_two
from engine.event_calculus.partitioning import Partitioning, Relation, Rule, conditions_of, facts_of, head_of, reads_of, relation_of
from engine.event_calculus.plan import Plan
from engine.event_calculus.spatial import Sides
from engine.event_calculus.syntax import Construct, Indicator, IntervalRule
from engine.event_calculus.tables import FluentTable, Symbols, Table
from engine.event_calculus.terms import Variable
from engine.model.messages import Message

Key = tuple[int, ...]


@dataclass(frozen=True)
class Sharing:
    """`keys` of distributed relations (none: the program is in one partition); `undistributed`:
    relations that only the first share computes, with the reason.

    `lasting`: dynamic domains whose members all shares know, each with the number of members from
    which on members are never removed (`members.py`).
    """

    keys: Mapping[Relation, Key] = field(default_factory=dict)
    undistributed: Mapping[Relation, str] = field(default_factory=dict)
    lasting: Mapping[Indicator, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """One of `count` equal shares of all keys."""

    sharing: Sharing
    number: int
    count: int

    def computes(self, relation: Relation) -> bool:
        return self.number == 0 or relation not in self.sharing.undistributed

    def asserts(self, relation: Relation) -> bool:
        """Whether this share asserts answers of the relation; those that every share knows
        are asserted by the first."""
        return self.number == 0 or relation in self.sharing.keys

    def remembers(self, relation: Relation) -> bool:
        """Whether this share keeps answers of the relation, because it asserts them or because
        they make entities members."""
        return self.asserts(relation) or (relation.fluent and bool(self.sharing.lasting))

    def own_rows(self, relation: Relation, columns: Ints | Sequence[Ints], symbols: Symbols) -> Bools | None:
        """Which rows are in this share; null: the relation is not distributed.
        `columns` are its arguments."""
        key = self.sharing.keys.get(relation)
        return None if key is None else self.own_keys([columns[index] for index in key], symbols)

    def own_keys(self, key: Sequence[Ints], symbols: Symbols) -> Bools:
        """Which keys are in this share, by the hashes of the names in
        them; a missing name counts 0."""
        total = np.zeros(len(key[0]), np.int64)
        for column in key:
            total += self._hash_remainders(column, symbols)
        found: Bools = total % self.count == self.number
        return found

    def _hash_remainders(self, entities: Ints, symbols: Symbols) -> Ints:
        found: Ints = np.append(symbols.hashes, 0)[np.maximum(entities, -1)] % self.count
        return found

    def sides(self, relation: Relation, entities: Ints, symbols: Symbols) -> Sides | None:
        """For a relation of two entities: which entities form pairs that are in this share,
        in either order; null: all."""
        key = self.sharing.keys.get(relation)
        if key is None:
            return None
        rest = self._hash_remainders(entities, symbols)
        if len(key) == 1:
            return Sides((rest == self.number).astype(np.int64), np.array([[False, True], [True, True]]))
        groups = np.arange(self.count)
        return Sides(rest, (groups[:, None] + groups) % self.count == self.number)

    def filter_fluent(self, relation: Relation, table: FluentTable, symbols: Symbols) -> FluentTable:
        own = self.own_rows(relation, table.keys, symbols)
        return table if own is None or own.all() else table.take_lists(own.nonzero()[0])

    def filter_events(self, relation: Relation, table: Table, symbols: Symbols) -> Table:
        """The events of this share; for events that rules define, whose arguments are names."""
        own = self.own_rows(relation, table.columns, symbols)
        if own is None or own.all():
            return table
        assert table.t is not None
        return Table(tuple(column[own] for column in table.columns), table.kinds, int(own.sum()), table.t[own])


def sharing_of(plan: Plan, partitioning: Partitioning | None, outputs: Sequence[str], *, computed: bool) -> Sharing:
    """How a program's relations are distributed; `computed`: the keyed stage has computed
    its part of `partitioning`."""
    lasting = lasting_domains(plan, outputs)
    while True:
        sharing = _KeySearch(plan, partitioning, computed, lasting).sharing
        fluents = [(relation.name, relation.arity) for relation in {**sharing.keys, **sharing.undistributed} if relation.fluent]
        known = {domain: least for domain, least in lasting.items() if least == 1 or made_by_two(plan, domain, fluents)}
        if known == lasting:
            return sharing
        lasting = known


class _KeySearch:
    """Finds the keys, on the assumption that all shares know the members
    of the domains `lasting`."""

    def __init__(self, plan: Plan, partitioning: Partitioning | None, computed: bool, lasting: Mapping[Indicator, int]) -> None:
        self.lasting = lasting
        self.plan = plan
        self.of_one = frozenset[Relation]() if partitioning is None else frozenset(map(relation_of, partitioning.keyed.nodes))
        before = self.of_one if computed else frozenset[Relation]()
        inputs = plan.program.inputs if partitioning is None or not computed else partitioning.lists
        self.listed = before | {Relation(True, *indicator) for indicator in inputs}
        self.rules: dict[Relation, list[Rule]] = {}
        for point in plan.program.point_rules:
            self._add(Relation(point.kind != "event", *point.indicator), point, before)
        for derived in plan.program.interval_rules:
            self._add(Relation(True, *derived.head.indicator), derived, before)
        for start in plan.program.initially:
            self.rules.setdefault(Relation(True, *start.indicator), [])
        self.reads = {relation: [(rule, list(reads_of(rule))) for rule in rules] for relation, rules in self.rules.items()}
        spatial = {Relation(True, *one.fluent.indicator): one.relation for one in plan.program.spatial}
        self.reasons = {relation: reason for relation in [*self.rules, *spatial] if (reason := self._reason(relation))}
        # Fluents about areas have one entity.
        self.spatial = {relation for relation, kind in spatial.items() if kind != "inside" or relation in self.reasons}

    def _add(self, relation: Relation, rule: Rule, before: frozenset[Relation]) -> None:
        if relation not in before:
            self.rules.setdefault(relation, []).append(rule)

    def _reason(self, relation: Relation) -> str:
        """Why a relation can neither be distributed nor computed by
        several shares; "" if it can."""
        declared = self.plan.program.groundings.get("=" + relation.name if relation.fluent else relation.name, ())
        bodies = [one.body for one in declared if len(one.terms) == relation.arity + relation.fluent]
        bodies += [conditions_of(rule) for rule in self.rules.get(relation, ())]
        bodies += [start.body for start in self.plan.program.initially if relation == Relation(True, *start.indicator)]
        domains = sorted({fact.name for body in bodies for fact in facts_of(body) if fact.indicator in self.plan.domains - self.lasting.keys()})
        if domains:
            return Message("it asks for all members of {domain}, and any pair's answer may make one", domain=domains[0])
        parts = [part for rule in self.rules.get(relation, ()) if isinstance(rule, IntervalRule) for part in rule.intervals]
        if any(isinstance(part, Construct) and part.position is not None for part in parts):
            return Message("it withdraws answers by speeds")
        return ""

    @cached_property
    def sharing(self) -> Sharing:
        known = self._known_to_all()
        keys: dict[Relation, Key] = {}
        undistributed: dict[Relation, str] = {}
        for component in self._components({*self.rules, *self.spatial} - known):
            reason = next((f"{relation.name}: {self.reasons[relation]}" for relation in sorted(component) if relation in self.reasons), "")
            component_keys = None if reason else self._keys(component)
            if component_keys is None:
                undistributed.update(dict.fromkeys(component, reason or Message("its rules join pairs that are in several shares")))
            else:
                keys.update(component_keys)
        return Sharing(keys | self._input_keys(keys), undistributed, self.lasting)

    def _known_to_all(self) -> set[Relation]:
        """Fluents and events of one entity that read nothing about pairs: each
        share computes all of them."""
        known = {one for one in self.rules if (one.arity < 2 or one in self.of_one) and one not in self.spatial and one not in self.reasons}
        while unknown := {relation for relation in known if any(one in self.spatial or self._later(one, known) for one in self._read_by(relation))}:
            known -= unknown
        return known

    def _later(self, relation: Relation, known: set[Relation]) -> bool:
        return relation in self.rules and relation not in known

    def _read_by(self, relation: Relation) -> Iterator[Relation]:
        return (read.relation for _, reads in self.reads[relation] for read in reads)

    def _components(self, relations: set[Relation]) -> Iterator[set[Relation]]:
        """The groups of relations that are connected by reading each other."""
        linked: dict[Relation, set[Relation]] = {relation: set() for relation in relations}
        for relation in relations & self.rules.keys():
            for other in self._read_by(relation):
                if other in relations:
                    linked[relation].add(other)
                    linked[other].add(relation)
        left = sorted(relations)
        while left:
            component, new = set[Relation](), {left[0]}
            while new:
                component |= new
                new = {other for relation in new for other in linked[relation]} - component
            left = [relation for relation in left if relation not in component]
            yield component

    # -- keys --------------------------------------------------------------------------------------

    def _keys(self, component: set[Relation]) -> dict[Relation, Key] | None:
        """A key for each relation of a component; null if there is none."""
        first = max(sorted(component), key=lambda relation: relation.arity)
        for key in [*itertools.combinations(range(first.arity), 2), *((index,) for index in range(first.arity))]:
            keys = {first: key}
            if self._propagated(component, keys) and len(keys) == len(component):
                return keys
        return None

    def _propagated(self, component: set[Relation], keys: dict[Relation, Key]) -> bool:
        """Derives the keys of the other relations; false if two contradict each other."""
        pairs = [(rule, relation, read) for relation in component & self.rules.keys() for rule, reads in self.reads[relation] for read in reads]
        pairs = [one for one in pairs if one[2].relation in component]
        while True:
            before = len(keys)
            for rule, relation, read in pairs:
                head = head_of(rule)
                for (one, terms), (other, others) in itertools.permutations([(relation, head), (read.relation, read.arguments)]):
                    if one in keys:
                        positions = _positions(_names(terms, keys[one]), others[: other.arity])
                        if positions is None or (other in keys and _names(others, keys[other]) != _names(terms, keys[one])):
                            return False
                        keys.setdefault(other, positions)
            if len(keys) == before:
                return all(
                    _names(head_of(rule), keys[relation]) is not None for relation in keys.keys() & self.rules.keys() for rule in self.rules[relation]
                )

    def _input_keys(self, keys: Mapping[Relation, Key]) -> dict[Relation, Key]:
        """Keys of lists of pairs that all shares get: a share needs only its own lists if all
        distributed relations read them by the same key."""
        if self.plan.program.domains:
            return {}
        list_keys: dict[Relation, Key | None] = {}
        for relation, rules in self.reads.items():
            for rule, read in ((rule, read) for rule, reads in rules for read in reads):
                listed = read.relation
                if listed not in self.listed or listed in self.rules or listed in self.spatial or not listed.fluent or listed.arity < 2:
                    continue
                names = _names(head_of(rule), keys[relation]) if relation in keys else None
                positions = _positions(names, read.arguments[: listed.arity])
                list_keys[listed] = positions if list_keys.setdefault(listed, positions) == positions else None
        return {relation: key for relation, key in list_keys.items() if key is not None}


def _names(terms: Sequence[object], key: Key) -> frozenset[str] | None:
    """The variables in the key's arguments; null if one is not a variable, or one occurs twice."""
    names = [term.name for index in key if isinstance(term := terms[index], Variable)]
    return frozenset(names) if len(set(names)) == len(key) else None


def _positions(names: frozenset[str] | None, terms: Sequence[object]) -> Key | None:
    """The positions of these variables among the arguments; null if one is missing."""
    if names is None:
        return None
    at = {term.name: index for index, term in reversed(list(enumerate(terms))) if isinstance(term, Variable)}
    return tuple(sorted(at[name] for name in names)) if names <= at.keys() else None
