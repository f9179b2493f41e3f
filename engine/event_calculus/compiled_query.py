"""The queries of a feed ready to run, the rows that the keyed stage emits for them, and how
distributed programs are divided.

With several partitions a program is divided ([dRTEC] 3): the keyed stage evaluates the fluents of
one entity (`nonrelational.py`) and sends its lists; the relational stage merges them, pairs
entities and evaluates the rest. With one partition that would double the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.event_calculus.answers import NEVER
from engine.event_calculus.inputs import VALUE, read_rows
from engine.event_calculus.local_results import LocalMessage, LocalResults
from engine.event_calculus.nonrelational import NonRelational
from engine.event_calculus.partitioning import Partitioning, Relation, partitioning_of, relation_of
from engine.event_calculus.sharing import Share, Sharing, sharing_of
from engine.event_calculus.specification import CalculusSpecification
from engine.event_calculus.state import WindowState
from engine.event_calculus.synopsis import AREA, COURSE, FIRST_SEQ, HEADING, SPEED, indicators
from engine.event_calculus.windows import Windows
from engine.model.batch import EVENT, SEQ, TIME, TIME_END, X, Y
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.operator import ROUTE, RegisteredQuery, relational_partitions

ARRIVED = "arrived"
"""Column (int64) of emitted rows: the feed's clock after the row had arrived."""
LISTS = "lists"
"""Column (binary) of emitted rows: lists of the keyed stage at the query time `t`; the row's
`event` shows whether the clock has passed it."""
SETTLED, AHEAD = "settled", "ahead"
"""The `event` of rows with lists: whether the clock has passed their query time."""


@dataclass(frozen=True)
class CompiledQuery:
    """One query ready to run; `route` is the same in every index that holds the query.

    `names`: names of the rows it reads; `passed`: of those that the relational stage reads;
    `first`: its windows in the keyed stage, if it is divided. `routes`: routes of the shares of its
    pairs, its own first; each gets all passed rows.
    """

    query: RegisteredQuery
    specification: CalculusSpecification
    windows: Windows
    route: int
    names: pa.Array
    passed: pa.Array
    first: NonRelational | None = None
    routes: tuple[int, ...] = ()

    def to_shares(self, parts: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Emitted rows for each share."""
        if len(self.routes) < 2:
            return list(parts)
        place = [part.schema.get_field_index(ROUTE) for part in parts]
        return [
            part.set_column(at, part.schema.field(at), pa.array(np.full(len(part), route)))
            for route in self.routes
            for part, at in zip(parts, place, strict=True)
        ]

    def take(self, state: WindowState, rows: pa.RecordBatch) -> None:
        """Adds emitted rows of this query to its windows; a row without an
        event has only the clock."""
        if state.local_results is not None:
            lists = rows.column(LISTS).is_valid()
            self._take_local_results(state.local_results, rows.filter(lists))
            rows = rows.filter(pc.invert(lists))
        arrived = np.asarray(rows.column(ARRIVED))
        seq, t = np.asarray(rows.column(SEQ)), np.asarray(rows.column(TIME))
        real = np.flatnonzero(np.asarray(rows.column(EVENT).is_valid()))
        # Made events do not advance the feed's clock: they become certain later than they happened.
        given = seq < FIRST_SEQ
        clock = int(arrived[given].max()) if given.any() else NEVER
        # What holds initially does not wait for a row that a rule reads.
        starting = np.flatnonzero(given) if self.windows.plan.program.initially else real
        first = int(t[starting[np.argmin(seq[starting])]]) if len(starting) else NEVER
        read = read_rows(rows, arrived, self.specification.inputs, state.symbols, self.windows.settings.tick)
        self.windows.take(state, read, first, clock, t[given], arrived[given])

    @staticmethod
    def _take_local_results(local_results: LocalResults, rows: pa.RecordBatch) -> None:
        kinds = rows.column(EVENT).to_pylist()
        columns = (rows.column(TIME).to_pylist(), (np.asarray(rows.column(SEQ)) - FIRST_SEQ).tolist(), rows.column(LISTS).to_pylist())
        messages = [LocalMessage(*message) for message in zip(*columns, strict=True)]
        local_results.take(*([one for one, its in zip(messages, kinds, strict=True) if its == kind] for kind in (SETTLED, AHEAD)))


@dataclass(frozen=True)
class CalculusIndex:
    """All calculus queries of a feed. `schema`: that of emitted rows, the columns that some query
    reads and those added here."""

    queries: tuple[CompiledQuery, ...]
    schema: pa.Schema
    lateness: int

    @classmethod
    def over(cls, queries: Sequence[CompiledQuery], feed: Feed) -> CalculusIndex:
        columns = {EVENT, TIME_END, VALUE, X, Y}
        for query in queries:
            columns |= {column for spec in query.specification.inputs for column in spec.columns}
        own = {TIME: pa.int64(), SEQ: pa.int64(), ARRIVED: pa.int64(), ROUTE: pa.int64()}
        if any(query.first is not None for query in queries):
            own[LISTS] = pa.binary()
        made = {AREA: pa.string(), SPEED: pa.float64(), COURSE: pa.float64(), HEADING: pa.float64()}
        types = {one.name: one.type for one in stamped_schema(feed)} | {EVENT: pa.string()} | made
        schema = pa.schema([(name, types[name]) for name in sorted(columns - own.keys()) if name in types] + list(own.items()))
        return cls(tuple(queries), schema, feed.lateness)

    def emit(self, columns: Mapping[str, pa.Array], n: int, route: int) -> pa.RecordBatch:
        """Columns of `n` rows in the schema of emitted rows; missing columns are null."""
        present = {**columns, ROUTE: pa.array(np.full(n, route))}
        arrays = [present[one.name].cast(one.type) if one.name in present else pa.nulls(n, one.type) for one in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def compile_query(query: RegisteredQuery) -> CompiledQuery:
    specification: CalculusSpecification = query.specification
    made = indicators(specification.inputs) if specification.synopsis is not None else frozenset()
    windows = Windows(specification.plan, specification.settings, specification.outputs, specification.areas, made)
    digest = hashlib.blake2b(f"{query.version}:{query.id}".encode(), digest_size=7).digest()
    names = pa.array([spec.name for spec in specification.inputs], pa.string())
    route = int.from_bytes(digest, "big")
    return CompiledQuery(query, specification, windows, route, names, names, routes=(route,))


def with_shares(compiled: CompiledQuery, partitions: int) -> CompiledQuery:
    """A distributed query divided in two, with a share of its pairs for each partition, as far
    as they can be separated."""
    if not compiled.specification.distributed:
        return compiled
    parts, sharing = _parts(compiled.specification)
    compiled = _with_partitioning(compiled, parts)
    if not sharing.keys:
        return compiled
    shares = [Share(sharing, number, partitions) for number in range(partitions)]
    return replace(compiled, windows=compiled.windows.with_shares(shares), routes=_routes(compiled.route, partitions))


def _with_partitioning(compiled: CompiledQuery, parts: Partitioning | None) -> CompiledQuery:
    """The query with its non-relational part in the keyed stage, if it can be separated."""
    one = compiled.specification
    if parts is None or not _may_have_keyed_windows(one):
        return compiled
    first = NonRelational(parts, Windows(one.plan, one.settings, one.outputs, parts=parts, keyed=True))
    windows = Windows(one.plan, one.settings, one.outputs, one.areas, parts=parts)
    passed = pa.array([spec.name for spec in one.inputs if spec.indicator in parts.relational.inputs], pa.string())
    return replace(compiled, windows=windows, passed=passed, first=first)


def _routes(first: int, partitions: int) -> tuple[int, ...]:
    """Routes from a query's own on, each to a different partition."""
    found: dict[int, int] = {}
    route = first
    while len(found) < partitions:
        found.setdefault(int(relational_partitions(np.array([route]), partitions)[0]), route)
        route += 1
    return tuple(found.values())


def distribution(specification: CalculusSpecification) -> Mapping[str, Any]:
    """Where each relation of a distributed program is computed (`Operator.parts`)."""
    plan = specification.plan
    parts, sharing = _parts(specification)
    keyed = set() if parts is None or not _may_have_keyed_windows(specification) else {relation_of(node) for node in parts.keyed.nodes}
    computed = {relation_of(node) for node in plan.nodes} | {Relation(True, *one.fluent.indicator) for one in plan.program.spatial}
    left = computed - keyed if not sharing.keys else set[Relation]()
    whole = dict.fromkeys(left, _reason_whole(specification)) | dict(sharing.undistributed)
    return {
        "by_entity": sorted({relation.name for relation in keyed}),
        "by_pair": sorted({relation.name for relation in sharing.keys if relation in computed}),
        "in_each_partition": sorted({relation.name for relation in computed - keyed - sharing.keys.keys() - whole.keys()}),
        "in_one_partition": {relation.name: reason for relation, reason in sorted(whole.items())},
    }


def _may_have_keyed_windows(one: CalculusSpecification) -> bool:
    """Whether the keyed stage may have windows.

    It may not with recorded arrivals, because then the clock may be ahead of the partitions' common
    watermark, nor with critical points, which count only when the watermark has passed them.
    """
    return one.arrival is None and one.synopsis is None


def _parts(one: CalculusSpecification) -> tuple[Partitioning | None, Sharing]:
    """The non-relational part of a program, and how the rest is distributed."""
    parts = partitioning_of(one.plan, one.inputs, one.outputs, one.settings.dialect)
    return parts, sharing_of(one.plan, parts, one.outputs, computed=_may_have_keyed_windows(one))


def _reason_whole(one: CalculusSpecification) -> str:
    """Why a program without pairs to share out stays in one partition (decisions 11 and 24)."""
    if one.synopsis is not None:
        return Message(
            "critical points count when they are certain, at the end of the input immediately, and only the last stage knows when the input ends"
        )
    if one.arrival is not None:
        return Message("the rows themselves say when they arrived, so no partition knows how far the others are")
    return Message("positions, constants, what holds initially and complements of all that is declared are not cut off")
