"""The index over all composite queries of a feed: kinds of events asked for once for all queries, pattern trees and triggers as arrays.

A **class** is a set of conditions that some primitive has; primitives with equal conditions share it, and its events are kept once. A program's
**instance** is a class as one group of queries asks for it: queries that look at single entities are evaluated in the keyed stage and are one group;
the others are spread over GROUPS groups, each the work of one relational partition.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.complex_events import bitmaps
from engine.complex_events import pattern as tree
from engine.complex_events.lists import ASK
from engine.complex_events.needs import Ages, asks, held, longest, negates, of_all, of_either, present, reach, total
from engine.complex_events.pattern import Pattern
from engine.complex_events.search import (
    ABSENCE,
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
from engine.complex_events.specification import CompositeSpecification, PrimitiveFilter
from engine.model.conditions import Condition, Conditions
from engine.model.feed import Feed
from engine.model.region import Region
from engine.operator import RegisteredQuery

GROUPS = 4
"""Groups of queries over all entities: an event is sent on once for each group that asks for it. At most so many partitions share the work."""

SMALL = 2
"""Leaves of patterns that are searched at once: bitmaps would cost as much."""

AT_ONCE = -1
"""Offset of a trigger whose event itself completes the pattern."""

QUERY, OFFSET, TRIGGER_NODE, LAST_NODE, GUARDS, GUARDS_END, CHECKS, CHECKS_END = TRIGGER_COLUMNS = range(8)
"""Columns of `Tables.triggers`."""

FIRST_GUARDS = 4
"""Guards of a trigger in a row of `Tables.nearest`, and of `Tables.further`."""


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
Short = npt.NDArray[np.int32]


class Tables(NamedTuple):
    """Pattern trees and triggers of a program; queries, leaves, triggers and guards in CSR form.

    `nodes`: see the columns in `search`. `root`, `within`: of each query. Leaves of query q are nodes `leaves[leaf_ends[q]:leaf_ends[q + 1]]`.
    An event of instance i asks `triggers[trigger_ends[i]:trigger_ends[i + 1]]`, rows with the columns of `TRIGGER_COLUMNS`: it completes QUERY itself
    (OFFSET AT_ONCE) as one of the leaves TRIGGER_NODE to LAST_NODE, or starts, when it completes TRIGGER_NODE, a timer that is due OFFSET later.
    What it completes holds an event of each of `guards[GUARDS:GUARDS_END]`, rows (class, age), that is at most so old, the lowest ages first.
    `nearest`: the first FIRST_GUARDS of them for each trigger, as class, age, class, age; where there are fewer, the class after the last, which
    counts as always there. `further`: the next ones. `whose`: query << 1 | whether there are still more. `timer_guards[timer_guard_ends[q]:...]`:
    the same for the timers of query q.
    `checks[CHECKS:CHECKS_END]`: parts beside the trigger, from the leaf up, see `bitmaps`; none if the pattern is too small to be worth it, or if its
    events are triggers in several places: then `whole[q]` are the steps [begin, end) of the whole pattern and the width of its slots.
    Rows of bitmaps of class c: `bit_rows[bit_ends[c]:bit_ends[c + 1]]`, as (row, width); `narrowest` of these widths. `kind`: the class of each
    instance. `asks`: what is asked of each node where queries are evaluated by lists, see `lists`; `listed`: the queries for which they may be.
    `horizon`: how long events of each class are kept, -1 where no query of the program asks for it.
    """

    nodes: Ints
    asks: Ints
    listed: Ints
    root: Ints
    within: Ints
    leaf_ends: Ints
    leaves: Ints
    trigger_ends: Ints
    triggers: Ints
    nearest: Short
    further: Short
    whose: Short
    guards: Ints
    timer_guard_ends: Ints
    timer_guards: Ints
    checks: Ints
    steps: Ints
    whole: Ints
    bit_ends: Ints
    bit_rows: Ints
    narrowest: Ints
    kind: Ints
    horizon: Ints
    shared: Ints


@dataclass(frozen=True)
class Program:
    """Queries that are evaluated together: `positions` of them in the index, `instances` as (group, class).

    `names`: of the primitive of each leaf node, else empty. `per_entity`: slots are kept for each entity. What follows from these is made once.
    """

    positions: tuple[int, ...]
    keys: tuple[tuple[str, int], ...]
    instances: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    tables: Tables
    per_entity: bool

    @cached_property
    def position_of(self) -> Ints:
        """The positions, to be asked for many at once."""
        return np.array(self.positions, np.int64)

    @cached_property
    def group_of(self) -> Ints:
        """The group of each instance."""
        return np.array([group for group, _ in self.instances], np.int64)

    @cached_property
    def name_of(self) -> pa.Array:
        """The names, to be asked for many at once."""
        return pa.array(self.names, pa.string())


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


class _Beside(NamedTuple):
    """A part that ends `low` to `high` before the other one starts (ordered), or lies within `high` together with it."""

    part: Pattern
    ordered: bool
    low: int
    high: int


class _Trigger(NamedTuple):
    """A leaf of class `kind` completes `node` itself, and the pattern `offset` later (AT_ONCE: itself).

    `ages`: (class, age) of what the completed part holds besides, ages counted from the event.
    """

    kind: int
    offset: int
    node: int
    ages: Ages
    beside: tuple[_Beside, ...] = ()
    """Parts that the completed one holds besides, from the leaf up."""


class _Builder:
    """Collects the tables of one program."""

    def __init__(self, feed: Feed, classes: dict[Class, int], per_entity: bool) -> None:
        self.feed, self.classes, self.per_entity = feed, classes, per_entity
        self.instances: dict[tuple[int, int], int] = {}
        self.nodes: list[list[int]] = []
        self.asks: list[list[int]] = []
        self.listed: list[int] = []
        self.names: list[str] = []
        self.positions: list[int] = []
        self.keys: list[tuple[str, int]] = []
        self.root: list[int] = []
        self.within: list[int] = []
        self.leaves: list[list[int]] = []
        self.triggers: list[list[list[int]]] = []
        self.guards: list[list[int]] = []
        self.timer_guards: list[list[list[int]]] = []
        self.steps: list[tuple[int, int, int]] = []
        self.whole: list[list[int]] = []
        self.checks: list[list[int]] = []
        self.places: dict[tuple[Pattern, int], tuple[int, int]] = {}
        self.bit_rows: dict[tuple[int, int], int] = {}
        self.horizon: dict[int, int] = {}
        self.own: dict[str, int] = {}
        self.here: dict[int, int] = {}

    def add(self, position: int, query: RegisteredQuery, specification: CompositeSpecification) -> None:
        group = 0 if self.per_entity else zlib.crc32(f"{query.id} {query.version}".encode()) % GROUPS
        self.own, self.here = {}, {}
        for primitive in specification.primitives:
            number = self.classes.setdefault(atoms(specification.where, primitive, self.feed), len(self.classes))
            instance = self.instances.setdefault((group, number), len(self.instances))
            self.own[primitive.name], self.here[number] = number, instance
            if instance == len(self.triggers):
                self.triggers.append([])
            self.horizon[number] = max(self.horizon.get(number, 0), specification.within)
        self.leaves.append([])
        root, triggers = self.node(specification.pattern)
        self.listed.append(int(not self.per_entity and not any(map(negates, tree.nodes(specification.pattern)))))
        self.asks += asks(specification.pattern, specification.within) if self.listed[-1] else [[0] * ASK] * (len(self.nodes) - root)
        self.timer_guards.append([[self.own[name], specification.within] for name in sorted(held(specification.pattern))])
        self.places = {}
        self.enter(triggers, specification)
        self.positions.append(position)
        self.keys.append(query.key)
        self.root.append(root)
        self.within.append(specification.within)

    def enter(self, triggers: list[_Trigger], specification: CompositeSpecification) -> None:
        """Enters the triggers of the next query: one for all leaves of a class that complete it at once, one for each that starts a timer."""
        number, within = len(self.root), specification.within
        width, whole = bitmaps.width_of(within), (0, 0)
        for kind, offset, node in sorted({(one.kind, one.offset, one.node) for one in triggers if one.offset != AT_ONCE}):
            self.triggers[self.here[kind]].append([number, offset, node, node, 0, 0, 0, 0])
        at_once: dict[int, list[_Trigger]] = {}
        for trigger in triggers:
            if trigger.offset == AT_ONCE:
                at_once.setdefault(trigger.kind, []).append(trigger)
        for kind, some in sorted(at_once.items()):
            ages = of_either(*(one.ages for one in some))
            begin = len(self.guards)
            self.guards += [[one, age] for age, one in sorted((min(age, within), one) for one, age in ages.items())]
            nodes = [one.node for one in some]
            self.triggers[self.here[kind]].append([number, AT_ONCE, min(nodes), max(nodes), begin, len(self.guards), *self.beside(some, within)])
            if len(some) > 1 and len(self.leaves[-1]) > SMALL:
                whole = self.place(specification.pattern, width, within)
        self.whole.append([*whole, width])

    def beside(self, triggers: list[_Trigger], within: int) -> tuple[int, int]:
        """Rows of `checks` for the parts beside a trigger; none where an event is a trigger in several places."""
        begin, reach = len(self.checks), 0
        if len(self.leaves[-1]) > SMALL and len(triggers) == 1:
            for part, ordered, low, high in triggers[0].beside:
                span = min(longest(part), within)
                reach = min(total(reach, high, span), within) if ordered else min(high, within)
                width = bitmaps.width_of(reach)
                self.checks.append([*self.place(part, width, within), int(ordered), low, high, span, width, 0])
        return begin, len(self.checks)

    def place(self, part: Pattern, width: int, within: int) -> tuple[int, int]:
        """The steps [begin, end) of a part over slots of this width."""
        if (part, width) not in self.places:
            begin = len(self.steps)
            rows = {name: self.bit_rows.setdefault((self.own[name], width), len(self.bit_rows)) for name in present(part)}
            spans = {node: min(longest(node), within) for node in tree.nodes(part)}
            self.steps += bitmaps.steps(part, rows, spans, width)
            self.places.update({(node, width): at for node, at in bitmaps.places(part, begin).items()})
        return self.places[part, width]

    def node(self, pattern: Pattern) -> tuple[int, list[_Trigger]]:
        """Adds a node and those below; gives its number and its triggers."""
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
                row[OP], row[LEAF], row[KIND] = PRIMITIVE, len(self.leaves[-1]), self.own[name]
                self.leaves[-1].append(number)
                return number, [_Trigger(self.own[name], AT_ONCE, number, {})]
            case tree.Sequence(first, second, low, high, without):
                row[OP], row[LOW], row[HIGH] = SEQUENCE, max(low, 1), FAR if high is None else high
                row[FIRST], _ = self.node(first)
                row[SECOND], triggers = self.node(second)
                if without is not None:
                    row[WITHOUT], _ = self.node(without)
                before = {self.own[name]: total(age, high, longest(second)) for name, age in reach(first).items()}
                part = _Beside(first, True, max(low, 1), total(high))
                return number, [one._replace(ages=of_all(one.ages, before), beside=(*one.beside, part)) for one in triggers]
            case tree.Absence(first, without, span):
                row[OP], row[HIGH] = ABSENCE, span
                row[FIRST], triggers = self.node(first)
                row[WITHOUT], _ = self.node(without)
                return number, [_Trigger(one.kind, max(one.offset, 0) + span, one.node if one.offset >= 0 else row[FIRST], {}) for one in triggers]
            case tree.Both(first, second, length):
                row[OP], row[HIGH] = BOTH, FAR if length is None else length
            case tree.Either(first, second):
                row[OP] = EITHER
            case _:
                raise TypeError(f"{pattern!r} is no pattern")
        row[FIRST], triggers = self.node(first)
        row[SECOND], others = self.node(second)
        if row[OP] == BOTH:
            own = [{self.own[name]: row[HIGH] for name in held(part)} for part in (first, second)]
            triggers = [one._replace(ages=of_all(one.ages, own[1]), beside=(*one.beside, _Beside(second, False, 0, row[HIGH]))) for one in triggers]
            others = [one._replace(ages=of_all(one.ages, own[0]), beside=(*one.beside, _Beside(first, False, 0, row[HIGH]))) for one in others]
        return number, triggers + others

    def program(self) -> Program:
        # The instances of a class stand side by side, and so do their triggers.
        instances = sorted(self.instances, key=lambda one: (one[1], one[0]))
        self.triggers = [self.triggers[self.instances[one]] for one in instances]
        leaf_ends, leaves = _csr(self.leaves)
        trigger_ends, _ = _csr([range(len(some)) for some in self.triggers])
        timer_guard_ends, _ = _csr([range(len(some)) for some in self.timer_guards])
        triggers, guards, timer_guards = (
            [one for some in self.triggers for one in some],
            self.guards,
            [one for some in self.timer_guards for one in some],
        )
        by_class: list[list[tuple[int, int]]] = [[] for _ in self.classes]
        for (kind, width), number in self.bit_rows.items():
            by_class[kind].append((number, width))
        bit_ends, _ = _csr([range(len(some)) for some in by_class])
        bit_rows = [one for some in by_class for one in some]
        rows, guard_rows = np.array(triggers, np.int64).reshape(-1, len(TRIGGER_COLUMNS)), np.array(guards, np.int64).reshape(-1, 2)
        tables = Tables(
            np.array(self.nodes, np.int64).reshape(-1, NODE), np.array(self.asks, np.int64).reshape(-1, ASK), np.array(self.listed, np.int64),
            np.array(self.root, np.int64), np.array(self.within, np.int64), leaf_ends, leaves, trigger_ends, rows,
            _in_rows(rows, guard_rows, 0, len(self.classes)), _in_rows(rows, guard_rows, FIRST_GUARDS, len(self.classes)), _whose(rows, guard_rows),
            guard_rows, timer_guard_ends,
            np.array(timer_guards, np.int64).reshape(-1, 2), np.array(self.checks, np.int64).reshape(-1, len(bitmaps.CHECK_COLUMNS)),
            np.array(self.steps, np.int64).reshape(-1, len(bitmaps.STEP_COLUMNS)), np.array(self.whole, np.int64).reshape(-1, 3), bit_ends,
            np.array(bit_rows, np.int64).reshape(-1, 2), np.array([min((width for _, width in bit_rows), default=62)], np.int64),
            np.array([number for _, number in instances], np.int64),
            np.array([self.horizon.get(number, -1) for number in range(len(self.classes))], np.int64),
            np.array([0 if self.per_entity else 1], np.int64),
        )  # fmt: skip
        return Program(tuple(self.positions), tuple(self.keys), tuple(instances), tuple(self.names), tables, self.per_entity)


def _in_rows(triggers: Ints, guards: Ints, first: int, always: int) -> Short:
    """Guards from the first on of each trigger, side by side; `always` stands for none, and for one whose age needs more than 32 bits."""
    found = np.zeros((len(triggers), 2 * FIRST_GUARDS), np.int32)
    for i in range(FIRST_GUARDS):
        at = triggers[:, GUARDS] + first + i
        there = at < triggers[:, GUARDS_END]
        there[there] = guards[at[there], 1] < 2**31
        found[:, 2 * i] = always
        found[there, 2 * i : 2 * i + 2] = guards[at[there]]
    return found


def _whose(triggers: Ints, guards: Ints) -> Short:
    """The query of each trigger, and whether it has guards that stand in neither row."""
    last = np.maximum(triggers[:, GUARDS_END] - 1, 0)
    more = triggers[:, GUARDS_END] - triggers[:, GUARDS] > 2 * FIRST_GUARDS
    # The ages rise: the last one is the greatest.
    more |= (triggers[:, GUARDS_END] > triggers[:, GUARDS]) & (np.append(guards[:, 1], 0)[last] >= 2**31)
    return (triggers[:, QUERY] << 1 | more).astype(np.int32)
