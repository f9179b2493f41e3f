"""The two halves of a feed's evaluation, each for one partition: keyed by entity, and keyed by
the route of emitted rows.

In one process an Evaluator holds all of them; on executors each task holds one, loaded from
and stored to its own bytes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self

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


Keys = tuple[pa.Array, pa.Array]
"""Ids and versions of queries, in their order."""


def keys_of(queries: Sequence[RegisteredQuery]) -> Keys:
    return pa.array([query.id for query in queries], pa.string()), pa.array([query.version for query in queries], pa.int32())


@dataclass(frozen=True)
class IndexedOperator:
    """An operator with its index over the queries it evaluates."""

    operator: Operator[Any]
    queries: tuple[RegisteredQuery, ...]
    index: Any

    @property
    def relational(self) -> Stage[Any, Any]:
        assert self.operator.relational is not None
        return self.operator.relational

    @cached_property
    def keys(self) -> Keys:
        """Made once, because a batch that changes little must not cost a pass over all queries."""
        return keys_of(self.queries)

    @cached_property
    def digest(self) -> str:
        """Which queries these are, in which order; made once, as `keys`."""
        keys = json.dumps([[query.id for query in self.queries], [query.version for query in self.queries]])
        return blake2b(keys.encode(), digest_size=16).hexdigest()


Plan = Mapping[Name, IndexedOperator]
"""The operators that have queries."""


@contextmanager
def as_operator_failure(name: Name) -> Iterator[None]:
    """Turns exceptions inside into OperatorFailed, except QueryStopped."""
    try:
        yield
    except QueryStopped:
        raise
    except Exception as error:
        raise OperatorFailed(name, f"{type(error).__name__}: {error}") from error


def plan_of(queries: Sequence[RegisteredQuery], feed: Feed, partitions: int, before: Plan | None = None) -> dict[Name, IndexedOperator]:
    """The plan for `queries` over so many partitions, made from the one `before` where that has the
    operator; their order inside it is kept.

    Raises OperatorFailed.
    """
    groups = by_operator(queries)
    return {name: _compiled(name, operator, own, feed, partitions, (before or {}).get(name)) for name, (operator, own) in groups.items()}


def by_operator(queries: Sequence[RegisteredQuery]) -> dict[Name, tuple[Operator[Any], list[RegisteredQuery]]]:
    """The operators of some queries, each with its own in their order."""
    operators = {kind: operator_of(one) for kind, one in {type(query.specification): query.specification for query in queries}.items()}
    groups: dict[Name, tuple[Operator[Any], list[RegisteredQuery]]] = {one.families[0]: (one, []) for one in operators.values()}
    if len(groups) == 1:
        return {name: (operator, list(queries)) for name, (operator, _) in groups.items()}
    for query in queries:
        groups[operators[type(query.specification)].families[0]][1].append(query)
    return groups


def operator_of(specification: Any) -> Operator[Any]:
    operator: Operator[Any] = family_of(specification).operator()
    return operator


def _compiled(
    name: Name, operator: Operator[Any], queries: Sequence[RegisteredQuery], feed: Feed, partitions: int, before: IndexedOperator | None
) -> IndexedOperator:
    with as_operator_failure(name):
        index = operator.compile(queries, feed) if before is None else operator.recompile(before.index, queries, feed)
        return IndexedOperator(operator, tuple(queries), index if partitions == 1 else operator.spread(index, feed, partitions))


class Admission:
    """The gate of all entities or of some, and their dictionary."""

    def __init__(self, feed: Feed, dictionary: EntityDictionary | None = None) -> None:
        self.gate = Gate(feed)
        self.dictionary = dictionary if dictionary is not None else EntityDictionary()

    def take(self, stamped: pa.Table, watermark: int, *, ended: bool = False) -> tuple[Admitted, Mapping[Delivery, Batch]]:
        """Rows in arrival order; `watermark` is the feed's after all partitions' rows."""
        admitted = self.gate.take(stamped, watermark)
        rows = {Delivery.ARRIVAL: admitted.accepted, Delivery.ORDERED: admitted.ready}
        return admitted, {delivery: Batch(own, self.dictionary, ended) for delivery, own in rows.items()}

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
    """The result of a keyed partition: changes (CHANGES) and emitted rows by
    operator, and its gate's result."""

    changes: dict[Name, pa.Table]
    emitted: dict[Name, pa.RecordBatch]
    admitted: Admitted


class _States(ABC):
    """The states of one stage of every operator that has it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = self._with_stage(plan)
        self.states: dict[Name, Any] = {name: self._stage(run).initial(run.index) for name, run in self.plan.items()}

    @staticmethod
    @abstractmethod
    def _stage(run: IndexedOperator) -> Stage[Any, Any]:
        """The operator's stage."""

    @staticmethod
    def _with_stage(plan: Plan) -> Plan:
        return plan

    def migrate(self, plan: Plan, others: Sequence[Self] = ()) -> None:
        """Switches to `plan`. `others` are at the same row, have the same dictionary and are
        consumed."""
        parts, plan = [self, *others], self._with_stage(plan)
        self.states = {name: self._migrated(name, run, [part for part in parts if name in part.plan]) for name, run in plan.items()}
        self.plan = plan

    def _migrated(self, name: Name, run: IndexedOperator, parts: Sequence[Self]) -> Any:
        with as_operator_failure(name):
            if not parts:
                return self._stage(run).initial(run.index)
            return self._stage(run).migrate(run.index, [(part.plan[name].index, part.states[name]) for part in parts])

    def dumps(self) -> dict[Name, bytes]:
        return {name: self._stage(run).dump(run.index, self.states[name]) for name, run in self.plan.items()}

    @classmethod
    def load(cls, plan: Plan, parts: Mapping[Name, bytes]) -> Self:
        loaded = cls({})
        loaded.plan = cls._with_stage(plan)
        loaded.states = {name: cls._stage(run).load(run.index, parts[name]) for name, run in loaded.plan.items()}
        return loaded

    def counters(self) -> dict[Name, Mapping[str, int]]:
        return {name: self._stage(run).counters(run.index, self.states[name]) for name, run in self.plan.items()}

    def check(self) -> None:
        for name, run in self.plan.items():
            self._stage(run).check(run.index, self.states[name])


class KeyedStates(_States):
    """The keyed state of every operator, over some entities."""

    @staticmethod
    def _stage(run: IndexedOperator) -> Stage[Any, Any]:
        return run.operator.keyed

    def step(self, batches: Mapping[Delivery, Batch], watermark: int) -> tuple[dict[Name, pa.Table], dict[Name, pa.RecordBatch]]:
        """Changes and emitted rows."""
        changes, emitted = {}, {}
        for name, run in self.plan.items():
            with as_operator_failure(name):
                result = run.operator.keyed.step(run.index, self.states[name], batches[run.operator.delivery], watermark)
            self.states[name] = result.state
            changes[name] = result.changes
            if result.emitted is not None and result.emitted.num_rows:
                emitted[name] = result.emitted
        return changes, emitted


class RelationalStates(_States):
    """The relational state of every operator that has one, over some routes."""

    @staticmethod
    def _stage(run: IndexedOperator) -> Stage[Any, Any]:
        return run.relational

    @staticmethod
    def _with_stage(plan: Plan) -> Plan:
        return {name: run for name, run in plan.items() if run.operator.relational is not None}

    def step(
        self, emitted: Mapping[Name, Sequence[pa.RecordBatch]], dictionary: EntityDictionary, watermark: int, *, ended: bool = False
    ) -> dict[Name, pa.Table]:
        """Changes from emitted rows and from timers."""
        found = {}
        for name, run in self.plan.items():
            given = list(emitted.get(name, ()))
            # Rows of one entity come from one keyed partition, so rows with equal (t, seq) and
            # route keep the order in which they were emitted.
            rows = (merged(given) if run.relational.ordered else pa.concat_batches(given)) if given else _NOTHING_EMITTED
            with as_operator_failure(name):
                result = run.relational.step(run.index, self.states[name], Batch(rows, dictionary, ended), watermark)
            self.states[name] = result.state
            found[name] = result.changes
        return found


class KeyedPartition:
    """The gate, the dictionary and the keyed state of every operator for a share of the entities.

    After QueryStopped or OperatorFailed a partition must not be used again.
    """

    def __init__(self, feed: Feed, plan: Plan, dictionary: EntityDictionary | None = None) -> None:
        self.admission, self.keyed = Admission(feed, dictionary), KeyedStates(plan)

    @property
    def dictionary(self) -> EntityDictionary:
        return self.admission.dictionary

    def take(self, stamped: pa.Table, watermark: int, *, ended: bool = False) -> KeyedOutput:
        """Rows of this partition in arrival order; `watermark` is the feed's
        after all partitions' rows."""
        admitted, batches = self.admission.take(stamped, watermark, ended=ended)
        return KeyedOutput(*self.keyed.step(batches, watermark), admitted)

    def migrate(self, plan: Plan, caught_up: KeyedPartition | None) -> None:
        """Switches to `plan`; `caught_up` shares the dictionary and is consumed."""
        self.keyed.migrate(plan, [] if caught_up is None else [caught_up.keyed])

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
    """The dictionary and the relational state of every operator that has one,
    for a share of the routes."""

    def __init__(self, plan: Plan, dictionary: EntityDictionary | None = None) -> None:
        self.relational = RelationalStates(plan)
        self.dictionary = dictionary if dictionary is not None else EntityDictionary()

    @property
    def is_empty(self) -> bool:
        """Whether no operator has a relational state."""
        return not self.relational.plan

    def take(self, emitted: Mapping[Name, Sequence[pa.RecordBatch]], watermark: int, *, ended: bool = False) -> dict[Name, pa.Table]:
        """Changes from this partition's emitted rows and from timers."""
        return self.relational.step(emitted, self.dictionary, watermark, ended=ended)

    def migrate(self, plan: Plan, caught_up: RelationalPartition | None) -> None:
        """Switches to `plan`; `caught_up` shares the dictionary and is consumed."""
        self.relational.migrate(plan, [] if caught_up is None else [caught_up.relational])

    def dump(self) -> bytes:
        return pack({"names": self.dictionary.names}, self.relational.dumps())

    @classmethod
    def load(cls, plan: Plan, data: bytes) -> RelationalPartition:
        facts, parts = unpack(data)
        partition = cls({}, EntityDictionary(facts["names"]))
        partition.relational = RelationalStates.load(plan, parts)
        return partition

    def counters(self) -> dict[Name, Mapping[str, int]]:
        return self.relational.counters()

    def check(self) -> None:
        self.relational.check()
