"""The two halves of a feed's evaluation, each for one partition: keyed by entity, and keyed by the route of emitted rows.

In one process an Evaluator holds all of them; on executors each task holds one, loaded from and stored to its own bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from engine.families import family_of
from engine.model.batch import SEQ, TIME, Batch, EntityDictionary
from engine.model.feed import Feed
from engine.operator import ROUTE, Delivery, Operator, OperatorFailed, QueryStopped, RegisteredQuery, Stage
from engine.runtime.container import pack, unpack
from engine.runtime.gate import Admitted, Gate, merged

Name = str
"""An operator, by its first family."""
_NOTHING_EMITTED = pa.RecordBatch.from_pylist([], schema=pa.schema([(TIME, pa.int64()), (SEQ, pa.int64()), (ROUTE, pa.int64())]))


@dataclass(frozen=True)
class Running:
    """An operator with its index over the queries it evaluates."""

    operator: Operator[Any]
    queries: tuple[RegisteredQuery, ...]
    index: Any

    @property
    def relational(self) -> Stage[Any, Any]:
        assert self.operator.relational is not None
        return self.operator.relational

    @cached_property
    def keys(self) -> tuple[pa.Array, pa.Array]:
        """Ids and versions of the queries: made once, because a batch that changes little must not cost a pass over all queries."""
        return pa.array([query.id for query in self.queries], pa.string()), pa.array([query.version for query in self.queries], pa.int32())

    @cached_property
    def digest(self) -> str:
        """Which queries these are, in which order; made once, as `keys`."""
        keys = json.dumps([[query.id for query in self.queries], [query.version for query in self.queries]])
        return blake2b(keys.encode(), digest_size=16).hexdigest()


Plan = Mapping[Name, Running]
"""The operators that have queries."""


@contextmanager
def blamed(name: Name) -> Iterator[None]:
    """Turns exceptions inside into OperatorFailed, except QueryStopped."""
    try:
        yield
    except QueryStopped:
        raise
    except Exception as error:
        raise OperatorFailed(name, f"{type(error).__name__}: {error}") from error


def plan_of(queries: Sequence[RegisteredQuery], feed: Feed, partitions: int, before: Plan | None = None) -> dict[Name, Running]:
    """The plan for `queries` over so many partitions, made from the one `before` where that has the operator; their order inside it is kept.

    Raises OperatorFailed.
    """
    operators = {kind: operator_of(one) for kind, one in {type(query.specification): query.specification for query in queries}.items()}
    distinct = {operator.families[0]: operator for operator in operators.values()}
    if len(distinct) < 2:
        own = {name: list(queries) for name in distinct}
    else:
        own = {name: [] for name in distinct}
        for query in queries:
            own[operators[type(query.specification)].families[0]].append(query)
    return {name: _compiled(name, operator, own[name], feed, partitions, (before or {}).get(name)) for name, operator in distinct.items()}


def operator_of(specification: Any) -> Operator[Any]:
    operator: Operator[Any] = family_of(specification).operator()
    return operator


def _compiled(
    name: Name, operator: Operator[Any], queries: Sequence[RegisteredQuery], feed: Feed, partitions: int, before: Running | None
) -> Running:
    with blamed(name):
        index = operator.compile(queries, feed) if before is None else operator.recompile(before.index, queries, feed)
        return Running(operator, tuple(queries), index if partitions == 1 else operator.spread(index, feed, partitions))


class Admission:
    """The gate of all entities or of some, and their dictionary."""

    def __init__(self, feed: Feed, dictionary: EntityDictionary | None = None) -> None:
        self.gate = Gate(feed)
        self.dictionary = dictionary if dictionary is not None else EntityDictionary()

    def take(self, stamped: pa.Table, watermark: int) -> tuple[Admitted, Mapping[Delivery, Batch]]:
        """Rows in arrival order; `watermark` is the feed's after all partitions' rows."""
        admitted = self.gate.take(stamped, watermark)
        return admitted, {Delivery.ARRIVAL: Batch(admitted.accepted, self.dictionary), Delivery.ORDERED: Batch(admitted.ready, self.dictionary)}

    def dump(self) -> bytes:
        return pack({"names": self.dictionary.names}, {"gate": self.gate.dump()})

    @classmethod
    def load(cls, feed: Feed, data: bytes) -> Admission:
        facts, parts = unpack(data)
        admission = cls(feed, EntityDictionary(facts["names"]))
        admission.gate = Gate.load(feed, parts["gate"])
        return admission


@dataclass(frozen=True)
class KeyedOutput:
    """The result of a keyed partition: changes (CHANGES) and emitted rows by operator, and its gate's result."""

    changes: dict[Name, pa.RecordBatch]
    emitted: dict[Name, pa.RecordBatch]
    admitted: Admitted


class KeyedStates:
    """The keyed state of every operator, over some entities."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.states: dict[Name, Any] = {name: run.operator.keyed.initial(run.index) for name, run in plan.items()}

    def step(self, batches: Mapping[Delivery, Batch], watermark: int) -> tuple[dict[Name, pa.RecordBatch], dict[Name, pa.RecordBatch]]:
        """Changes and emitted rows."""
        changes, emitted = {}, {}
        for name, run in self.plan.items():
            with blamed(name):
                result = run.operator.keyed.step(run.index, self.states[name], batches[run.operator.delivery], watermark)
            self.states[name] = result.state
            changes[name] = result.changes
            if result.emitted is not None and result.emitted.num_rows:
                emitted[name] = result.emitted
        return changes, emitted

    def migrate(self, plan: Plan, caught_up: KeyedStates | None) -> None:
        """Switches to `plan`; `caught_up` has the same dictionary and is consumed."""
        sources = [self] if caught_up is None else [self, caught_up]
        self.states = {name: _migrated(run.operator.keyed, run, [(part.plan, part.states) for part in sources]) for name, run in plan.items()}
        self.plan = plan

    def dumps(self) -> dict[Name, bytes]:
        return {name: run.operator.keyed.dump(run.index, self.states[name]) for name, run in self.plan.items()}

    @classmethod
    def load(cls, plan: Plan, parts: Mapping[Name, bytes]) -> KeyedStates:
        loaded = cls({})
        loaded.plan = plan
        loaded.states = {name: run.operator.keyed.load(run.index, parts[name]) for name, run in plan.items()}
        return loaded

    def counters(self) -> dict[Name, Mapping[str, int]]:
        return {name: run.operator.keyed.counters(run.index, self.states[name]) for name, run in self.plan.items()}

    def check(self) -> None:
        for name, run in self.plan.items():
            run.operator.keyed.check(run.index, self.states[name])


class KeyedPartition:
    """The gate, the dictionary and the keyed state of every operator for a share of the entities.

    After QueryStopped or OperatorFailed a partition must not be used again.
    """

    def __init__(self, feed: Feed, plan: Plan, dictionary: EntityDictionary | None = None) -> None:
        self.admission, self.keyed = Admission(feed, dictionary), KeyedStates(plan)

    @property
    def dictionary(self) -> EntityDictionary:
        return self.admission.dictionary

    def take(self, stamped: pa.Table, watermark: int) -> KeyedOutput:
        """Rows of this partition in arrival order; `watermark` is the feed's after all partitions' rows."""
        admitted, batches = self.admission.take(stamped, watermark)
        return KeyedOutput(*self.keyed.step(batches, watermark), admitted)

    def migrate(self, plan: Plan, caught_up: KeyedPartition | None) -> None:
        """Switches to `plan`; `caught_up` shares the dictionary and is consumed."""
        self.keyed.migrate(plan, None if caught_up is None else caught_up.keyed)

    def dump(self) -> bytes:
        return pack({}, {"$admission": self.admission.dump(), **self.keyed.dumps()})

    @classmethod
    def load(cls, feed: Feed, plan: Plan, data: bytes) -> KeyedPartition:
        _, parts = unpack(data)
        partition = cls(feed, {})
        partition.admission, partition.keyed = Admission.load(feed, parts["$admission"]), KeyedStates.load(plan, parts)
        return partition

    def counters(self) -> dict[Name, Mapping[str, int]]:
        return self.keyed.counters()

    def check(self) -> None:
        self.admission.gate.check()
        self.keyed.check()


class RelationalPartition:
    """The relational state of every operator that has one, for a share of the routes."""

    def __init__(self, plan: Plan, dictionary: EntityDictionary | None = None) -> None:
        self.plan = _relational(plan)
        self.dictionary = dictionary if dictionary is not None else EntityDictionary()
        self.states: dict[Name, Any] = {name: run.relational.initial(run.index) for name, run in self.plan.items()}

    def take(self, emitted: Mapping[Name, Sequence[pa.RecordBatch]], watermark: int) -> dict[Name, pa.RecordBatch]:
        """Changes from this partition's emitted rows and from timers."""
        found = {}
        for name, run in self.plan.items():
            given = list(emitted.get(name, ()))
            # Rows of one entity come from one keyed partition, so rows with equal (t, seq) and route keep the order in which they were emitted.
            rows = (merged(given) if run.relational.ordered else pa.concat_batches(given)) if given else _NOTHING_EMITTED
            with blamed(name):
                result = run.relational.step(run.index, self.states[name], Batch(rows, self.dictionary), watermark)
            self.states[name] = result.state
            found[name] = result.changes
        return found

    def migrate(self, plan: Plan, caught_up: RelationalPartition | None) -> None:
        """Goes over to `plan`; `caught_up` shares the dictionary and is given up."""
        sources = [self] if caught_up is None else [self, caught_up]
        relational = _relational(plan)
        self.states = {name: _migrated(run.relational, run, [(part.plan, part.states) for part in sources]) for name, run in relational.items()}
        self.plan = relational

    def dump(self) -> bytes:
        parts = {name: run.relational.dump(run.index, self.states[name]) for name, run in self.plan.items()}
        return pack({"names": self.dictionary.names}, parts)

    @classmethod
    def load(cls, plan: Plan, data: bytes) -> RelationalPartition:
        facts, parts = unpack(data)
        partition = cls({}, EntityDictionary(facts["names"]))
        partition.plan = _relational(plan)
        partition.states = {name: run.relational.load(run.index, parts[name]) for name, run in partition.plan.items()}
        return partition

    def counters(self) -> dict[Name, Mapping[str, int]]:
        return {name: run.relational.counters(run.index, self.states[name]) for name, run in self.plan.items()}

    def check(self) -> None:
        for name, run in self.plan.items():
            run.relational.check(run.index, self.states[name])


def _relational(plan: Plan) -> dict[Name, Running]:
    return {name: run for name, run in plan.items() if run.operator.relational is not None}


def _migrated(stage: Stage[Any, Any], run: Running, sources: Sequence[tuple[Plan, Mapping[Name, Any]]]) -> Any:
    name = run.operator.families[0]
    parts = [(plan[name].index, states[name]) for plan, states in sources if name in plan]
    with blamed(name):
        return stage.migrate(run.index, parts) if parts else stage.initial(run.index)
