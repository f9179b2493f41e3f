"""Queries that one partition evaluates over the rows of all entities, where sending on the rows they need would cost more than reading all.

    rows --gate of all entities--> both stages of the queries of one partition --changes-->

Every process that has such a partition reads all rows and has a gate for them; its partitions share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Feed
from engine.operator import Delivery, RegisteredQuery
from engine.runtime.container import pack, unpack
from engine.runtime.gate import Admitted
from engine.runtime.partitions import Admission, KeyedStates, Name, Plan, RelationalPartition, operator_of, plan_of


class PlansByPartition(Mapping[int, Plan]):
    """Of the queries of each partition; compiled when first asked for, because an executor needs only those of its own partitions."""

    def __init__(self, feed: Feed, queries: Mapping[int, Sequence[RegisteredQuery]], before: PlansByPartition | None = None) -> None:
        self._feed, self._queries = feed, queries
        self._compiled: dict[int, Plan] = {}
        self._before = {} if before is None else before._compiled

    def __getitem__(self, p: int) -> Plan:
        """Raises KeyError where a partition has no queries, OperatorFailed."""
        if p not in self._compiled:
            self._compiled[p] = plan_of(self._queries[p], self._feed, 1, self._before.pop(p, None))
        return self._compiled[p]

    def __contains__(self, p: object) -> bool:
        return p in self._queries

    def __iter__(self) -> Iterator[int]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


@dataclass(frozen=True)
class JobPlan:
    """What a job evaluates where: operators whose rows are partitioned, and by partition those to which all rows are broadcast."""

    partitioned: Plan
    broadcast: PlansByPartition

    @property
    def plans(self) -> list[Plan]:
        return [self.partitioned, *self.broadcast.values()]

    @property
    def is_relational(self) -> bool:
        """Whether rows go on to relational partitions."""
        return any(run.operator.relational is not None for run in self.partitioned.values())

    @property
    def partitions_rows(self) -> bool:
        """Whether the keyed partitions take rows: not where all queries have them broadcast. The gate for all entities then counts them."""
        return bool(self.partitioned) or not self.broadcast


def job_plan(queries: Sequence[RegisteredQuery], feed: Feed, partitions: int, before: JobPlan | None = None) -> JobPlan:
    """As `plan_of`. With one partition nothing is broadcast: it has all rows anyway."""
    partitioned, broadcast = list[RegisteredQuery](), dict[int, list[RegisteredQuery]]()
    for query in queries:
        route = operator_of(query.specification).broadcast(query) if partitions > 1 else None
        if route is None:
            partitioned.append(query)
        else:
            broadcast.setdefault(route % partitions, []).append(query)
    by_partition = {p: broadcast[p] for p in sorted(broadcast)}
    if before is None:
        return JobPlan(plan_of(partitioned, feed, partitions), PlansByPartition(feed, by_partition))
    return JobPlan(plan_of(partitioned, feed, partitions, before.partitioned), PlansByPartition(feed, by_partition, before.broadcast))


class WholePartition:
    """Both stages of queries, over the rows of all entities."""

    def __init__(self, plan: Plan, dictionary: EntityDictionary | None = None) -> None:
        self.keyed, self.relational = KeyedStates(plan), RelationalPartition(plan, dictionary)

    def take(self, batches: Mapping[Delivery, Batch], watermark: int) -> list[tuple[Name, pa.RecordBatch]]:
        """Changes from admitted rows and from timers."""
        changes, emitted = self.keyed.step(batches, watermark)
        later = self.relational.take({name: [rows] for name, rows in emitted.items()}, watermark)
        return [*changes.items(), *later.items()]

    def migrate(self, plan: Plan, caught_up: WholePartition | None) -> None:
        """Switches to `plan`; `caught_up` shares the dictionary and is consumed."""
        self.keyed.migrate(plan, None if caught_up is None else caught_up.keyed)
        self.relational.migrate(plan, None if caught_up is None else caught_up.relational)

    def dump(self) -> bytes:
        keyed = {f"keyed {name}": data for name, data in self.keyed.dumps().items()}
        return pack({}, keyed | {"relational": self.relational.dump()})

    @classmethod
    def load(cls, plan: Plan, data: bytes) -> WholePartition:
        _, parts = unpack(data)
        partition = cls({})
        partition.keyed = KeyedStates.load(plan, {name: parts[f"keyed {name}"] for name in plan})
        partition.relational = RelationalPartition.load(plan, parts["relational"])
        return partition

    def counters(self) -> list[Mapping[Name, Mapping[str, int]]]:
        return [self.keyed.counters(), self.relational.counters()]

    def check(self) -> None:
        self.keyed.check()
        self.relational.check()


class Broadcast:
    """The partitions of one process, by number, with the gate and the dictionary that they share."""

    def __init__(self, admission: Admission, partitions: Mapping[int, WholePartition]) -> None:
        self.admission, self.partitions = admission, dict(partitions)

    @classmethod
    def start(cls, feed: Feed, plans: Mapping[int, Plan], partitions: Iterable[int]) -> Broadcast:
        """Before any row."""
        return cls(Admission(feed), {p: WholePartition(plans.get(p, {})) for p in partitions})

    def beside(self, feed: Feed, plans: Mapping[int, Plan]) -> Broadcast:
        """Before any row, with the dictionaries of this one."""
        parts = {p: WholePartition(plans.get(p, {}), part.relational.dictionary) for p, part in self.partitions.items()}
        return Broadcast(Admission(feed, self.admission.dictionary), parts)

    def take(self, stamped: pa.Table, watermark: int) -> tuple[Admitted, list[tuple[int, Name, pa.RecordBatch]]]:
        """What the gate says, and changes, each with its partition and operator. `stamped` are all rows in arrival order."""
        admitted, batches = self.admission.take(stamped, watermark)
        # One process stores the dictionary, others the states with its codes: they are the same whatever columns a partition's queries read.
        _ = batches[Delivery.ARRIVAL].entity
        return admitted, [(p, *changed) for p, part in self.partitions.items() for changed in part.take(batches, watermark)]

    def migrate(self, plans: Mapping[int, Plan], caught_up: Broadcast | None) -> None:
        """Switches to `plans`; `caught_up` shares the dictionaries and is consumed."""
        for p, part in self.partitions.items():
            part.migrate(plans.get(p, {}), None if caught_up is None else caught_up.partitions[p])

    def check(self) -> None:
        self.admission.gate.check()
        for part in self.partitions.values():
            part.check()
