"""Queries that are evaluated over the rows of all entities, where sending on the rows they need
would cost more than reading all.

    rows --gate of all entities--> both stages of the queries of some partitions --changes-->

Each of these queries has a partition, and each process evaluates the queries of its partitions
together: with one index and one history, after one gate for all rows. When partitions move, a
process makes its state of the states that have its queries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Feed
from engine.operator import Delivery, RegisteredQuery
from engine.runtime.container import pack, unpack
from engine.runtime.gate import Admitted
from engine.runtime.partitions import (
    Admission,
    KeyedStates,
    Keys,
    Name,
    Plan,
    RelationalStates,
    by_operator,
    keys_of,
    operator_of,
    plan_of,
)

Partitions = tuple[int, ...]
"""Those of one process, ascending."""
ADMISSION = "admission"
"""The state of the gate for the rows of all entities."""
BEFORE_ANY_ROW = b"before any row"
"""The state of queries that have taken no row: it is made by its reader, who need not compile the
queries of other processes for it."""
_STATE = "broadcast-"


def state_name(partitions: Partitions) -> str:
    """The name of the state of the queries of some partitions.

    >>> state_name((0, 4))
    'broadcast-0.4'
    """
    return _STATE + ".".join(map(str, partitions))


def partitions_of(name: str) -> Partitions:
    """Inverse of `state_name`; empty for the name of another state."""
    return tuple(map(int, name.removeprefix(_STATE).split("."))) if name.startswith(_STATE) else ()


class BroadcastQueries:
    """Queries with their partitions, in the order of registration. Plans are compiled when first
    asked for: an executor needs only its own."""

    def __init__(self, feed: Feed, queries: Sequence[tuple[int, RegisteredQuery]], before: BroadcastQueries | None = None) -> None:
        self._feed, self._queries = feed, queries
        self.partitions: Partitions = tuple(sorted({p for p, _ in queries}))
        self._plans: dict[Partitions, Plan] = {}
        self._keys: dict[Partitions, Mapping[Name, Keys]] = {}
        self._before: Plan | None = None if before is None else next(iter(before._plans.values()), None)

    def __bool__(self) -> bool:
        return bool(self._queries)

    def of(self, partitions: Collection[int]) -> list[RegisteredQuery]:
        return [query for p, query in self._queries if p in partitions]

    def plan(self, partitions: Partitions) -> Plan:
        """Raises OperatorFailed."""
        if partitions not in self._plans:
            self._plans[partitions] = plan_of(self.of(partitions), self._feed, 1, self._before)
            self._before = None
        return self._plans[partitions]

    def foreign_plan(self, partitions: Partitions) -> Plan:
        """That of other processes, whose states are read once. Raises OperatorFailed."""
        return self._plans.get(partitions) or plan_of(self.of(partitions), self._feed, 1)

    def keys(self, partitions: Partitions) -> Mapping[Name, Keys]:
        """The queries by position in each operator of the plan, which is not compiled for it."""
        if partitions not in self._keys:
            self._keys[partitions] = {name: keys_of(own) for name, (_, own) in by_operator(self.of(partitions)).items()}
        return self._keys[partitions]


@dataclass(frozen=True)
class JobPlan:
    """What a job evaluates where: operators whose rows are partitioned, and queries to whose
    partitions all rows are broadcast."""

    partitioned: Plan
    broadcast: BroadcastQueries

    @property
    def plans(self) -> list[Plan]:
        """As one process evaluates them."""
        return [self.partitioned, self.broadcast.plan(self.broadcast.partitions)]

    @property
    def is_relational(self) -> bool:
        """Whether rows go on to relational partitions."""
        return any(run.operator.relational is not None for run in self.partitioned.values())

    @property
    def partitions_rows(self) -> bool:
        """Whether the keyed partitions take rows: not where all queries have them broadcast. The
        gate for all entities then counts them."""
        return bool(self.partitioned) or not self.broadcast


def job_plan(queries: Sequence[RegisteredQuery], feed: Feed, partitions: int, before: JobPlan | None = None) -> JobPlan:
    """As `plan_of`. With one partition nothing is broadcast: it has all rows anyway."""
    broadcast = [(query.route % partitions, query) for query in queries if partitions > 1 and operator_of(query.specification).is_broadcast(query)]
    keys = {query.key for _, query in broadcast}
    partitioned = [query for query in queries if query.key not in keys] if keys else queries
    if before is None:
        return JobPlan(plan_of(partitioned, feed, partitions), BroadcastQueries(feed, broadcast))
    return JobPlan(plan_of(partitioned, feed, partitions, before.partitioned), BroadcastQueries(feed, broadcast, before.broadcast))


class BothStages:
    """Both stages of some queries, over the rows of all entities, whose dictionary they share."""

    def __init__(self, plan: Plan) -> None:
        self.keyed, self.relational = KeyedStates(plan), RelationalStates(plan)

    def take(self, batches: Mapping[Delivery, Batch], dictionary: EntityDictionary, watermark: int) -> list[tuple[Name, pa.Table]]:
        """Changes from admitted rows and from timers."""
        changes, emitted = self.keyed.step(batches, watermark)
        ended = any(batch.ended for batch in batches.values())
        later = self.relational.step({name: [rows] for name, rows in emitted.items()}, dictionary, watermark, ended=ended)
        return [*changes.items(), *later.items()]

    def migrate(self, plan: Plan, others: Sequence[BothStages] = ()) -> None:
        """Switches to `plan`; `others` have the same dictionary and are consumed."""
        self.keyed.migrate(plan, [other.keyed for other in others])
        self.relational.migrate(plan, [other.relational for other in others])

    def dump(self) -> bytes:
        """The states, without the dictionary."""
        stages = {"keyed": self.keyed.dumps(), "relational": self.relational.dumps()}
        return pack({}, {f"{stage} {name}": data for stage, states in stages.items() for name, data in states.items()})

    @classmethod
    def load(cls, plan: Plan, data: bytes) -> BothStages:
        _, parts = unpack(data)

        def stage(name: str) -> dict[Name, bytes]:
            return {part.removeprefix(f"{name} "): state for part, state in parts.items() if part.startswith(f"{name} ")}

        loaded = cls({})
        loaded.keyed, loaded.relational = KeyedStates.load(plan, stage("keyed")), RelationalStates.load(plan, stage("relational"))
        return loaded

    def counters(self) -> list[Mapping[Name, Mapping[str, int]]]:
        return [self.keyed.counters(), self.relational.counters()]

    def check(self) -> None:
        self.keyed.check()
        self.relational.check()


class Broadcast:
    """What one process evaluates over the rows of all entities: the gate, the dictionary, and the
    queries of its partitions."""

    def __init__(self, admission: Admission, partitions: Partitions, stages: BothStages) -> None:
        self.admission, self.partitions, self.stages = admission, partitions, stages

    @classmethod
    def start(cls, feed: Feed, queries: BroadcastQueries, dictionary: EntityDictionary | None = None) -> Broadcast:
        """All queries in one process, before any row."""
        return cls(Admission(feed, dictionary), queries.partitions, BothStages(queries.plan(queries.partitions)))

    def take(self, stamped: pa.Table, watermark: int, *, ended: bool = False) -> tuple[Admitted, list[tuple[Name, pa.Table]]]:
        """What the gate admits, and changes, each with its operator. `stamped` are all rows in
        arrival order."""
        admitted, batches = self.admission.take(stamped, watermark, ended=ended)
        # One process stores the dictionary, others the states with its codes: they are the same
        # whatever columns their queries read.
        _ = batches[Delivery.ARRIVAL].entity
        return admitted, self.stages.take(batches, self.admission.dictionary, watermark)

    def migrate(self, queries: BroadcastQueries, caught_up: Broadcast | None) -> None:
        """Switches to all `queries`; `caught_up` shares the dictionary and is consumed."""
        self.partitions = queries.partitions
        self.stages.migrate(queries.plan(self.partitions), [] if caught_up is None else [caught_up.stages])

    @classmethod
    def load(cls, feed: Feed, queries: BroadcastQueries, partitions: Partitions, states: Mapping[str, bytes]) -> Broadcast:
        """The queries of some partitions, from the states that have them and the gate's."""
        admission = Admission.load(feed, states[ADMISSION])
        sources = {had: data for name, data in states.items() if set(had := partitions_of(name)) & set(partitions)}
        if set(sources.values()) == {BEFORE_ANY_ROW}:
            return cls(admission, partitions, BothStages(queries.plan(partitions)))
        if list(sources) == [partitions]:
            return cls(admission, partitions, BothStages.load(queries.plan(partitions), sources[partitions]))
        first, *others = [BothStages.load(queries.foreign_plan(had), data) for had, data in sources.items()]
        first.migrate(queries.plan(partitions), others)
        return cls(admission, partitions, first)

    def check(self) -> None:
        self.admission.gate.check()
        self.stages.check()
