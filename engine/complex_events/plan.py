"""The index over all composite queries of a feed: kinds of events asked for once for all queries, pattern trees and triggers as arrays.

A **class** is a set of conditions that some primitive has; primitives with equal conditions share it. A program's **instance** is a class as one
group of queries keeps it: queries that look at single entities are evaluated in the keyed stage and share all instances; the others are spread over
GROUPS groups, each the work of one relational partition.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.complex_events import pattern as tree
from engine.complex_events.pattern import Pattern
from engine.complex_events.search import ABSENCE, BOTH, EITHER, FAR, FIRST, HIGH, INSTANCE, LEAF, LOW, OP, PRIMITIVE, SECOND, SEQUENCE, WITHOUT, Ints
from engine.complex_events.specification import CompositeSpecification, PrimitiveFilter
from engine.model.conditions import Condition, Conditions
from engine.model.feed import Feed
from engine.model.region import Region
from engine.operator import RegisteredQuery

GROUPS = 4
"""Groups of queries over all entities: an event is sent on once for each group that asks for it. At most so many partitions share the work."""

AT_ONCE = -1
"""Offset of a trigger whose event itself completes the pattern."""


@dataclass(frozen=True)
class Atom:
    """One thing that is asked of an event: a condition, the beginning of a column's text, or a region it lies in or outside of."""

    condition: Condition | None = None
    type: str = ""
    prefix: tuple[str, str] | None = None
    region: Region | None = None
    outside: bool = False

    @property
    def column(self) -> str | None:
        """The one column it looks at; null for regions."""
        if self.condition is not None:
            return self.condition.column
        return None if self.prefix is None else self.prefix[0]


Class = frozenset[Atom]


class Tables(NamedTuple):
    """Pattern trees and triggers of a program; queries, leaves and triggers in CSR form.

    `nodes`: see the columns in `search`. `root`, `within`: of each query. Leaves of query q are nodes `leaves[leaf_ends[q]:leaf_ends[q + 1]]`,
    those that every occurrence holds are marked in `needed`. An event of instance i is a trigger of `trigger_query[trigger_ends[i]:...]`: completes
    it itself (`trigger_offset` AT_ONCE), or starts, when it completes `trigger_node`, a timer that is due `trigger_offset` later.
    """

    nodes: Ints
    root: Ints
    within: Ints
    leaf_ends: Ints
    leaves: Ints
    needed: Ints
    trigger_ends: Ints
    trigger_query: Ints
    trigger_offset: Ints
    trigger_node: Ints
    horizon: Ints
    shared: Ints


@dataclass(frozen=True)
class Program:
    """Queries that are evaluated together: `positions` of them in the index, `instances` as (group, class).

    `names`: of the primitive of each leaf node, else empty. `per_entity`: slots are kept for each entity.
    """

    positions: tuple[int, ...]
    keys: tuple[tuple[str, int], ...]
    instances: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    tables: Tables
    per_entity: bool


@dataclass(frozen=True)
class CompositeIndex:
    """All queries of a feed. `relational_ends`, `relational`: the instances of the relational program for each class, CSR."""

    feed: Feed
    queries: tuple[RegisteredQuery, ...]
    classes: tuple[Class, ...]
    keyed: Program
    relational: Program
    keyed_ends: Ints
    keyed_instances: Ints
    relational_ends: Ints
    relational_instances: Ints


def compile_index(queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
    classes: dict[Class, int] = {}
    keyed, relational = _Builder(feed, classes, True), _Builder(feed, classes, False)
    for position, query in enumerate(queries):
        specification: CompositeSpecification = query.specification
        (keyed if specification.per_entity else relational).add(position, query, specification)
    programs = keyed.program(), relational.program()
    ends, instances = zip(*(_instances_of_classes(program, len(classes)) for program in programs), strict=True)
    return CompositeIndex(feed, tuple(queries), tuple(classes), *programs, ends[0], instances[0], ends[1], instances[1])


def _instances_of_classes(program: Program, classes: int) -> tuple[Ints, Ints]:
    lists: list[list[int]] = [[] for _ in range(classes)]
    for instance, (_, number) in enumerate(program.instances):
        lists[number].append(instance)
    return _csr(lists)


def _csr(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    ends = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=ends[1:])
    return ends, np.array([item for one in lists for item in one], np.int64)


def atoms(where: Conditions, primitive: PrimitiveFilter, feed: Feed) -> Class:
    """What an event must satisfy to match a primitive. Constants of different types may be equal in Python (1 and True): the type tells them
    apart."""
    conditions = [*where.items, *primitive.where.items]
    found = [Atom(condition=one, type=f"{type(one.constant).__name__} {feed.types[one.column]}") for one in conditions]
    found += [Atom(prefix=one) for one in primitive.prefixes]
    found += [Atom(region=one) for one in primitive.regions]
    return frozenset([*found, *(Atom(region=one, outside=True) for one in primitive.outside)])


class _Trigger(NamedTuple):
    """A leaf of class instance `instance` completes `node` itself, and the pattern `offset` later (AT_ONCE: itself)."""

    instance: int
    offset: int
    node: int


class _Builder:
    """Collects the tables of one program."""

    def __init__(self, feed: Feed, classes: dict[Class, int], per_entity: bool) -> None:
        self.feed, self.classes, self.per_entity = feed, classes, per_entity
        self.instances: dict[tuple[int, int], int] = {}
        self.nodes: list[list[int]] = []
        self.names: list[str] = []
        self.positions: list[int] = []
        self.keys: list[tuple[str, int]] = []
        self.root: list[int] = []
        self.within: list[int] = []
        self.leaves: list[list[int]] = []
        self.needed: list[list[int]] = []
        self.triggers: list[list[tuple[int, int, int]]] = []
        self.horizon: list[int] = []
        self.own: dict[str, int] = {}

    def add(self, position: int, query: RegisteredQuery, specification: CompositeSpecification) -> None:
        group = 0 if self.per_entity else zlib.crc32(f"{query.id} {query.version}".encode()) % GROUPS
        self.own = {}
        for primitive in specification.primitives:
            number = self.classes.setdefault(atoms(specification.where, primitive, self.feed), len(self.classes))
            instance = self.instances.setdefault((group, number), len(self.instances))
            self.own[primitive.name] = instance
            if instance == len(self.horizon):
                self.horizon.append(0)
                self.triggers.append([])
            self.horizon[instance] = max(self.horizon[instance], specification.within)
        self.leaves.append([])
        root, triggers = self.node(specification.pattern)
        number = len(self.root)
        for one in sorted(set(triggers)):
            self.triggers[one.instance].append((number, one.offset, one.node))
        self.positions.append(position)
        self.keys.append(query.key)
        self.root.append(root)
        self.within.append(specification.within)
        needed = held(specification.pattern)
        marks: dict[str, int] = {}
        # Leaves with equal names have equal classes: one mark for each is enough.
        for leaf in self.leaves[-1]:
            marks.setdefault(self.names[leaf], leaf)
        self.needed.append([int(self.names[leaf] in needed and marks[self.names[leaf]] == leaf) for leaf in self.leaves[-1]])

    def node(self, pattern: Pattern) -> tuple[int, list[_Trigger]]:
        """Adds a node and those below; gives its number and its triggers."""
        number = len(self.nodes)
        row = [-1] * 8
        self.nodes.append(row)
        self.names.append("")
        match pattern:
            case tree.Primitive(name):
                self.names[number] = name
                row[OP], row[LEAF], row[INSTANCE] = PRIMITIVE, len(self.leaves[-1]), self.own[name]
                self.leaves[-1].append(number)
                return number, [_Trigger(self.own[name], AT_ONCE, number)]
            case tree.Sequence(first, second, low, high, without):
                row[OP], row[LOW], row[HIGH] = SEQUENCE, max(low, 1), FAR if high is None else high
                row[FIRST], _ = self.node(first)
                row[SECOND], triggers = self.node(second)
                if without is not None:
                    row[WITHOUT], _ = self.node(without)
                return number, triggers
            case tree.Absence(first, without, span):
                row[OP], row[HIGH] = ABSENCE, span
                row[FIRST], triggers = self.node(first)
                row[WITHOUT], _ = self.node(without)
                return number, [_Trigger(one.instance, max(one.offset, 0) + span, one.node if one.offset >= 0 else row[FIRST]) for one in triggers]
            case tree.Both(first, second, length):
                row[OP], row[HIGH] = BOTH, FAR if length is None else length
            case tree.Either(first, second):
                row[OP] = EITHER
            case _:
                raise TypeError(f"{pattern!r} is no pattern")
        row[FIRST], triggers = self.node(first)
        row[SECOND], others = self.node(second)
        return number, triggers + others

    def program(self) -> Program:
        leaf_ends, leaves = _csr(self.leaves)
        trigger_ends, query = _csr([[one[0] for one in some] for some in self.triggers])
        offset, node = (_csr([[one[i] for one in some] for some in self.triggers])[1] for i in (1, 2))
        _, needed = _csr(self.needed)
        tables = Tables(
            np.array(self.nodes, np.int64).reshape(-1, 8), np.array(self.root, np.int64), np.array(self.within, np.int64), leaf_ends, leaves, needed,
            trigger_ends, query, offset, node, np.array(self.horizon, np.int64), np.array([0 if self.per_entity else 1], np.int64),
        )  # fmt: skip
        return Program(tuple(self.positions), tuple(self.keys), tuple(self.instances), tuple(self.names), tables, self.per_entity)


def held(pattern: Pattern) -> frozenset[str]:
    """Primitives that every occurrence holds: the minimum condition.

    >>> sorted(held(tree.Sequence(tree.Either(tree.Primitive("A"), tree.Primitive("B")), tree.Primitive("C"))))
    ['C']
    """
    match pattern:
        case tree.Primitive(name):
            return frozenset([name])
        case tree.Either(first, second):
            return held(first) & held(second)
        case tree.Absence(first, _, _):
            return held(first)
        case tree.Both(first, second, _) | tree.Sequence(first, second, _, _, _):
            return held(first) | held(second)
    raise TypeError(f"{pattern!r} is no pattern")
