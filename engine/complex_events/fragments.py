"""The part of the index that each query adds, with local numbers.

A query's **fragment** is its pattern tree, its triggers and guards, as rows in which nodes and
guards are numbered from the query's first ones, and classes among the query's own. So it depends on
the query only, and is kept when other queries are added or removed: `plan` joins fragments by
adding to each number the offset of the query's rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.complex_events import pattern as tree
from engine.complex_events.classes import Class, Predicate, class_of
from engine.complex_events.lists import REQUIREMENT
from engine.complex_events.pattern import Pattern
from engine.complex_events.requirements import Ages, all_of, any_of, longest, negates, reach, required_primitives, requirements, total
from engine.complex_events.search import (
    ABSENCE,
    AROUND,
    BEFORE,
    BOTH,
    EITHER,
    FAR,
    FIRST,
    HIGH,
    KIND,
    LAST,
    LEAF,
    LOW,
    NODE,
    OP,
    PRIMITIVE,
    SECOND,
    SEQUENCE,
    WITHOUT,
    Ints,
)  # fmt: skip
from engine.complex_events.specification import CompositeSpecification
from engine.model.feed import Feed
from engine.operator import RegisteredQuery

AT_ONCE = -1
"""Offset of a trigger whose event itself completes the pattern."""

QUERY, OFFSET, TRIGGER_NODE, LAST_NODE, GUARDS, GUARDS_END = TRIGGER_COLUMNS = range(6)
"""Columns of triggers. In a fragment the column QUERY contains the class."""

PER_ENTITY, LISTED, WITHIN, KEPT = FACTS = range(4)
"""Columns of `Fragments.facts`, one row for each query. KEPT: for how long its events are
needed."""


class Ragged(NamedTuple):
    """Rows of query q: `rows[ends[q]:ends[q + 1]]`."""

    ends: Ints
    rows: npt.NDArray[Any]

    @property
    def owner(self) -> Ints:
        """The query of each row."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    def take(self, queries: Ints) -> Ragged:
        """The rows of some queries, in this order.

        >>> Ragged(np.array([0, 1, 3]), np.array([5, 6, 7])).take(np.array([1, 0, 1])).rows.tolist()
        [6, 7, 5, 6, 7]
        """
        lengths = np.diff(self.ends)[queries]
        ends = np.append(0, np.cumsum(lengths))
        return Ragged(ends, self.rows[np.repeat(self.ends[queries] - ends[:-1], lengths) + np.arange(ends[-1])])

    def concat(self, other: Ragged) -> Ragged:
        return Ragged(np.append(self.ends, self.ends[-1] + other.ends[1:]), np.concatenate([self.rows, other.rows]))


class Fragments(NamedTuple):
    """Fragments of queries: `facts` has one row for each, see FACTS; the other fields are the
    queries' rows of the tables in `plan.Tables`.

    `classes`: those of all queries, in order of first use; `kinds`: the numbers of each query's own
    classes. All other tables refer to a class by its index there. `names`: the name of the
    primitive for each leaf among the nodes, else empty.
    """

    classes: tuple[Class, ...]
    facts: Ints
    kinds: Ragged
    nodes: Ragged
    requirements: Ragged
    names: Ragged
    triggers: Ragged
    guards: Ragged
    timer_guards: Ragged

    @property
    def tables(self) -> tuple[Ragged, ...]:
        return self[2:]

    def take(self, queries: Ints) -> Fragments:
        """The fragments of some queries, in this order, with all classes."""
        return Fragments(self.classes, self.facts[queries], *(table.take(queries) for table in self.tables))

    def concat(self, other: Fragments) -> Fragments:
        """Both, over one list of classes; the classes of `self` come first."""
        numbers = {one: number for number, one in enumerate(self.classes)}
        moved = np.array([numbers.setdefault(one, len(numbers)) for one in other.classes], np.int64)
        other = other._replace(kinds=Ragged(other.kinds.ends, moved[other.kinds.rows]))
        tables = (mine.concat(theirs) for mine, theirs in zip(self.tables, other.tables, strict=True))
        return Fragments(tuple(numbers), np.concatenate([self.facts, other.facts]), *tables)

    def drop_unused_classes(self) -> Fragments:
        """The same with only the classes that some query uses, in order of first use."""
        distinct, first, inverse = np.unique(self.kinds.rows, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        classes = tuple(map(self.classes.__getitem__, distinct[order].tolist()))
        return self._replace(classes=classes, kinds=Ragged(self.kinds.ends, place[inverse.reshape(-1)]))


class _Column:
    """Collects rows of whole numbers, query by query."""

    def __init__(self, width: int) -> None:
        self.width, self.ends, self.numbers = width, array("q", [0]), array("q")

    def add(self, rows: Iterable[Iterable[int]]) -> None:
        self.numbers.extend(chain.from_iterable(rows))
        self.ends.append(len(self.numbers) // self.width)

    def ragged(self) -> Ragged:
        return Ragged(np.array(self.ends, np.int64), np.array(self.numbers, np.int64).reshape(-1, self.width))


def fragments_of(queries: Sequence[RegisteredQuery], feed: Feed) -> Fragments:
    """The fragments of checked composite queries on a feed."""
    classes: dict[Class, int] = {}
    predicates: dict[Predicate, Predicate] = {}
    widths = (1, NODE, REQUIREMENT, len(TRIGGER_COLUMNS), 2, 2)
    kinds, nodes, asked, *others = columns = [_Column(width) for width in widths]
    facts, names = _Column(len(FACTS)), list[str]()
    for query in queries:
        specification: CompositeSpecification = query.specification
        own = [classes.setdefault(class_of(specification.where, one, feed, predicates), len(classes)) for one in specification.primitives]
        one = _Fragment(specification, own)
        facts.add([(int(specification.per_entity), one.listed, specification.within, specification.retention)])
        for column, some in zip(columns, one.tables, strict=True):
            column.add(some)
        names += one.names
    of_nodes, own_kinds = nodes.ragged(), kinds.ragged()
    return Fragments(
        tuple(classes), facts.ragged().rows, Ragged(own_kinds.ends, own_kinds.rows[:, 0]), of_nodes, asked.ragged(),
        Ragged(of_nodes.ends, np.array(names, object)), *(column.ragged() for column in others),
    )  # fmt: skip


class _Trigger(NamedTuple):
    """A leaf of class `kind` completes `node` itself, and the pattern
    `offset` later (AT_ONCE: itself).

    `ages`: (class, age) of the other events of the completed part; ages are relative to the event.
    """

    kind: int
    offset: int
    node: int
    ages: Ages


class _Fragment:
    """The rows of one query, whose primitives belong to the classes `numbers`."""

    def __init__(self, specification: CompositeSpecification, numbers: Sequence[int]) -> None:
        self.pattern, self.within = specification.pattern, specification.within
        self.kinds = list(dict.fromkeys(numbers))
        self.own = {one.name: self.kinds.index(number) for one, number in zip(specification.primitives, numbers, strict=True)}
        self.nodes: list[list[int]] = []
        self.names: list[str] = []
        self.leaves = 0
        self.triggers: list[tuple[int, ...]] = []
        self.guards: list[tuple[int, int]] = []
        _, triggers = self.node(self.pattern)
        self.listed = int(not specification.per_entity and not any(map(negates, tree.nodes(self.pattern))))
        self.requirements = requirements(self.pattern, self.within) if self.listed else [[0] * REQUIREMENT] * len(self.nodes)
        self.timer_guards = [(self.own[name], self.within) for name in sorted(required_primitives(self.pattern))]
        self.add_triggers(triggers)

    @property
    def tables(self) -> tuple[Iterable[Iterable[int]], ...]:
        """The tables of `Fragments` in their order, except the names."""
        kinds = [(number,) for number in self.kinds]
        return kinds, self.nodes, self.requirements, self.triggers, self.guards, self.timer_guards

    def add_triggers(self, triggers: list[_Trigger]) -> None:
        """Adds the triggers: one for all leaves of a class that complete the pattern immediately,
        one for each that starts a timer."""
        for kind, offset, node in sorted({(one.kind, one.offset, one.node) for one in triggers if one.offset != AT_ONCE}):
            self.triggers.append((kind, offset, node, node, 0, 0))
        at_once: dict[int, list[_Trigger]] = {}
        for trigger in triggers:
            if trigger.offset == AT_ONCE:
                at_once.setdefault(trigger.kind, []).append(trigger)
        for kind, some in sorted(at_once.items()):
            ages = any_of(*(one.ages for one in some))
            begin = len(self.guards)
            self.guards += [(one, age) for age, one in sorted((min(age, self.within), one) for one, age in ages.items())]
            nodes = [one.node for one in some]
            self.triggers.append((kind, AT_ONCE, min(nodes), max(nodes), begin, len(self.guards)))

    def node(self, pattern: Pattern) -> tuple[int, list[_Trigger]]:
        """Adds a node and those below. Returns its number and its triggers."""
        number, triggers = self._node(pattern)
        self.nodes[number][LAST] = len(self.nodes) - 1
        return number, triggers

    def _node(self, pattern: Pattern) -> tuple[int, list[_Trigger]]:
        number = len(self.nodes)
        row = [-1] * NODE
        self.nodes.append(row)
        self.names.append("")
        match pattern:
            case tree.Primitive(name):
                self.names[number] = name
                row[OP], row[LEAF], row[KIND] = PRIMITIVE, self.leaves, self.own[name]
                self.leaves += 1
                return number, [_Trigger(self.own[name], AT_ONCE, number, {})]
            case tree.Sequence(first, second, low, high, without):
                row[OP], row[LOW], row[HIGH] = SEQUENCE, max(low, 1), FAR if high is None else high
                row[FIRST], _ = self.node(first)
                row[SECOND], triggers = self.node(second)
                if without is not None:
                    row[WITHOUT], _ = self.node(without)
                before = {self.own[name]: total(age, high, longest(second)) for name, age in reach(first).items()}
                return number, [one._replace(ages=all_of(one.ages, before)) for one in triggers]
            case tree.Absence(first, without, span) | tree.Around(first, without, span):
                row[OP], row[HIGH] = ABSENCE, span
                if isinstance(pattern, tree.Around):
                    row[OP], row[LOW] = AROUND, self.within
                row[FIRST], triggers = self.node(first)
                row[WITHOUT], _ = self.node(without)
                return number, [_Trigger(one.kind, max(one.offset, 0) + span, one.node if one.offset >= 0 else row[FIRST], {}) for one in triggers]
            case tree.Before(without, second, span):
                row[OP], row[LOW], row[HIGH] = BEFORE, self.within, span
                row[FIRST], triggers = self.node(second)
                row[WITHOUT], _ = self.node(without)
                return number, triggers
            case tree.And(first, second, length):
                row[OP], row[HIGH] = BOTH, FAR if length is None else length
            case tree.Or(first, second):
                row[OP] = EITHER
            case _:
                raise TypeError(f"{pattern!r} is no pattern")
        row[FIRST], triggers = self.node(first)
        row[SECOND], others = self.node(second)
        if row[OP] == BOTH:
            own = [{self.own[name]: row[HIGH] for name in required_primitives(part)} for part in (first, second)]
            triggers = [one._replace(ages=all_of(one.ages, own[1])) for one in triggers]
            others = [one._replace(ages=all_of(one.ages, own[0])) for one in others]
        return number, triggers + others
