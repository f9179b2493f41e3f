"""The index over all composite queries of a feed: event classes shared by all queries, pattern
trees and triggers as arrays.

A **class** is the set of conditions of some primitive; primitives with equal conditions share it,
and its events are stored once. Queries over single entities are one **program**, the others
another; a program's **instances** are the classes that its queries use.

The index is joined from the queries' fragments, by array operations over all of them. When the list
of queries changes, fragments are made only for new queries; the resulting index is the same as if
all had been compiled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.complex_events.classes import Class
from engine.complex_events.fragments import (
    GUARDS,
    GUARDS_END,
    KEPT,
    LAST_NODE,
    LISTED,
    PER_ENTITY,
    QUERY,
    TRIGGER_NODE,
    WITHIN,
    Fragments,
    Ragged,
    fragments_of,
)
from engine.complex_events.search import FIRST, KIND, LAST, OP, PRIMITIVE, SECOND, WITHOUT, Ints
from engine.model.feed import Feed
from engine.operator import RegisteredQuery

FIRST_GUARDS = 4
"""Guards of a trigger in a row of `Tables.nearest`, and of `Tables.further`."""

Short = npt.NDArray[np.int32]


class Tables(NamedTuple):
    """Pattern trees and triggers of a program; queries, leaves, triggers and guards in CSR form.

    `nodes`: see the columns in `search`. `root`, `within`: those of each query. Leaves of query q
    are nodes `leaves[leaf_ends[q]:leaf_ends[q + 1]]`. An event of instance i visits
    `triggers[trigger_ends[i]:trigger_ends[i + 1]]`, rows with the columns of `TRIGGER_COLUMNS`: it
    completes QUERY itself (OFFSET AT_ONCE) as one of the leaves TRIGGER_NODE to LAST_NODE, or, if
    it completes TRIGGER_NODE, it starts a timer that is due OFFSET later. The occurrence contains
    an event of each of `guards[GUARDS:GUARDS_END]`, rows (class, greatest age), the lowest ages
    first. `nearest`: the first FIRST_GUARDS of them for each trigger, as class, age, class, age; if
    there are fewer, filled with the class after the last, which always counts as present.
    `further`: the next ones. `trigger_query`: query << 1 | whether there are still more.
    `timer_guards[timer_guard_ends[q]:...]`: the same for the timers of query q. `kind`: the class
    of each instance. `requirements`: those on each node's list, see `lists`; `listed`: the queries
    that may be evaluated by lists. `horizon`: how long events of each class are kept, -1 if no
    query of the program uses it.
    """

    nodes: Ints
    requirements: Ints
    listed: Ints
    root: Ints
    within: Ints
    leaf_ends: Ints
    leaves: Ints
    trigger_ends: Ints
    triggers: Ints
    nearest: Short
    further: Short
    trigger_query: Short
    guards: Ints
    timer_guard_ends: Ints
    timer_guards: Ints
    kind: Ints
    horizon: Ints
    shared: Ints


@dataclass(frozen=True)
class Program:
    """Queries that are evaluated together: `positions` are theirs in the index.

    `names`: the name of the primitive for each leaf node, else empty. `per_entity`: there are slots
    for each entity. Derived values are cached.
    """

    positions: tuple[int, ...]
    keys: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    tables: Tables
    per_entity: bool

    @cached_property
    def position_of(self) -> Ints:
        """The positions as an array."""
        return np.array(self.positions, np.int64)

    @cached_property
    def name_of(self) -> pa.Array:
        """The names as an array."""
        return pa.array(self.names, pa.string())


@dataclass(frozen=True)
class CompositeIndex:
    """All queries of a feed. `programs`: that of queries over single entities, and that of the
    others; `instances`: of each program by class, CSR."""

    feed: Feed
    queries: tuple[RegisteredQuery, ...]
    fragments: Fragments
    programs: tuple[Program, Program]
    instances: tuple[tuple[Ints, Ints], tuple[Ints, Ints]]

    @property
    def classes(self) -> tuple[Class, ...]:
        return self.fragments.classes


def compile_index(queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
    return _build_index(fragments_of(queries, feed), queries, feed)


def recompile_index(old: CompositeIndex, queries: Sequence[RegisteredQuery]) -> CompositeIndex:
    """The index for a list of queries that differs from that of `old`; it takes a few passes over
    arrays, and compiles only new queries."""
    known = {query.key: number for number, query in enumerate(old.queries)}
    at = np.array([known.get(query.key, -1) for query in queries], np.int64)
    fresh = np.flatnonzero(at < 0)
    at[fresh] = len(old.queries) + np.arange(len(fresh))
    added = fragments_of([queries[i] for i in fresh.tolist()], old.feed)
    return _build_index(old.fragments.concat(added).take(at).drop_unused_classes(), queries, old.feed)


def _build_index(fragments: Fragments, queries: Sequence[RegisteredQuery], feed: Feed) -> CompositeIndex:
    programs = _program(fragments, queries, True), _program(fragments, queries, False)
    return CompositeIndex(feed, tuple(queries), fragments, programs, (_instances(fragments, programs[0]), _instances(fragments, programs[1])))


def _instances(fragments: Fragments, program: Program) -> tuple[Ints, Ints]:
    return _ends(program.tables.kind, len(fragments.classes)), np.arange(len(program.tables.kind))


def _program(all_fragments: Fragments, queries: Sequence[RegisteredQuery], per_entity: bool) -> Program:
    """The program of the queries over single entities, or of the others."""
    positions = np.flatnonzero(all_fragments.facts[:, PER_ENTITY] == per_entity)
    one = all_fragments if len(positions) == len(queries) else all_fragments.take(positions)
    instances, instance = np.unique(one.kinds.rows, return_inverse=True)
    trigger_ends, triggers = _triggers(one, instance.reshape(-1), len(instances))
    nodes, guards = _nodes(one), _of_classes(one, one.guards)
    leaf = nodes[:, OP] == PRIMITIVE
    always = len(one.classes)
    tables = Tables(
        nodes=nodes,
        requirements=one.requirements.rows,
        listed=one.facts[:, LISTED].copy(),
        root=one.nodes.ends[:-1],
        within=one.facts[:, WITHIN].copy(),
        leaf_ends=_ends(one.nodes.owner[leaf], len(positions)),
        leaves=np.flatnonzero(leaf),
        trigger_ends=trigger_ends,
        triggers=triggers,
        nearest=_guard_rows(triggers, guards, 0, always),
        further=_guard_rows(triggers, guards, FIRST_GUARDS, always),
        trigger_query=_trigger_queries(triggers, guards),
        guards=guards,
        timer_guard_ends=one.timer_guards.ends,
        timer_guards=_of_classes(one, one.timer_guards),
        kind=instances,
        horizon=_horizon(one),
        shared=np.array([int(not per_entity)]),
    )
    keys = tuple(queries[i].key for i in positions.tolist())
    return Program(tuple(positions.tolist()), keys, tuple(one.names.rows.tolist()), tables, per_entity)


def _ends(owners: Ints, count: int) -> Ints:
    """The end offsets of the rows of each of `count` owners, preceded by 0; `owners`:
    those of the rows, ascending."""
    return np.append(0, np.cumsum(np.bincount(owners, minlength=count)))


def _kinds(fragments: Fragments, owner: Ints, places: Ints) -> Ints:
    """The classes at these indexes among those of their queries."""
    return np.asarray(fragments.kinds.rows[fragments.kinds.ends[owner] + places], np.int64)


def _of_classes(fragments: Fragments, table: Ragged) -> Ints:
    """The rows of a table whose first column is a class, with that as a
    number among all classes."""
    rows = table.rows.copy()
    rows[:, 0] = _kinds(fragments, table.owner, rows[:, 0])
    return rows


def _nodes(fragments: Fragments) -> Ints:
    rows, owner = fragments.nodes.rows.copy(), fragments.nodes.owner
    begins = fragments.nodes.ends[owner]
    rows[:, LAST] += begins
    leaves, inner = np.flatnonzero(rows[:, OP] == PRIMITIVE), np.flatnonzero(rows[:, OP] != PRIMITIVE)
    for column in (FIRST, SECOND, WITHOUT):
        there = inner[rows[inner, column] >= 0]
        rows[there, column] += begins[there]
    rows[leaves, KIND] = _kinds(fragments, owner[leaves], rows[leaves, KIND])
    return rows


def _triggers(fragments: Fragments, instance: Ints, instances: int) -> tuple[Ints, Ints]:
    """Triggers by instance, then in the order of their queries; `instance`: that of each
    of the fragments' `kinds`."""
    rows, owner = fragments.triggers.rows.copy(), fragments.triggers.owner
    asking = instance[fragments.kinds.ends[owner] + rows[:, QUERY]]
    rows[:, QUERY] = owner
    rows[:, [TRIGGER_NODE, LAST_NODE]] += fragments.nodes.ends[owner, None]
    rows[:, [GUARDS, GUARDS_END]] += fragments.guards.ends[owner, None]
    order = np.argsort(asking, kind="stable")
    return _ends(asking[order], instances), rows[order]


def _horizon(fragments: Fragments) -> Ints:
    """For each class the longest time for which a query keeps its events."""
    horizon = np.full(len(fragments.classes), -1, np.int64)
    np.maximum.at(horizon, fragments.kinds.rows, fragments.facts[fragments.kinds.owner, KEPT])
    return horizon


def _guard_rows(triggers: Ints, guards: Ints, first: int, always: int) -> Short:
    """Guards of each trigger from number `first` on, in one row; `always` fills it up, and replaces
    a guard whose age needs more than 32 bits."""
    found = np.zeros((len(triggers), 2 * FIRST_GUARDS), np.int32)
    for i in range(FIRST_GUARDS):
        at = triggers[:, GUARDS] + first + i
        there = at < triggers[:, GUARDS_END]
        there[there] = guards[at[there], 1] < 2**31
        found[:, 2 * i] = always
        found[there, 2 * i : 2 * i + 2] = guards[at[there]]
    return found


def _trigger_queries(triggers: Ints, guards: Ints) -> Short:
    """The query of each trigger, and whether it has guards that are in neither row."""
    last = np.maximum(triggers[:, GUARDS_END] - 1, 0)
    more = triggers[:, GUARDS_END] - triggers[:, GUARDS] > 2 * FIRST_GUARDS
    # Ages ascend, so the last one is the greatest.
    more |= (triggers[:, GUARDS_END] > triggers[:, GUARDS]) & (np.append(guards[:, 1], 0)[last] >= 2**31)
    return (triggers[:, QUERY] << 1 | more).astype(np.int32)
