"""All queries of one feed, evaluated in one process: what backtests, previews, backfills and the running job have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from engine.model.batch import ENTITY, SEQ, EntityDictionary
from engine.model.changes import ANSWERS, answers
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import ROUTE, RegisteredQuery
from engine.runtime.container import pack, unpack
from engine.runtime.gate import NEVER, greatest_time, in_arrival_order, ints
from engine.runtime.partitions import KeyedOutput, KeyedPartition, Name, Plan, RelationalPartition, plan_of

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Outcome:
    """What a table of rows brought: signed `changes` (ANSWERS), `late` rows, and how many rows were processed and duplicates.

    `watermark` is the feed's afterwards; None before any row.
    """

    changes: pa.Table
    late: pa.Table
    processed: int
    duplicates: int
    watermark: int | None


class Evaluator:
    """A feed's queries and their state after row `position` of the log (-1 before any).

    The answers do not depend on how the rows are cut into calls of `process`, nor on `partitions`.
    """

    def __init__(self, feed: Feed, plan: Plan, keyed: list[KeyedPartition], relational: list[RelationalPartition]) -> None:
        self.feed, self.plan, self.keyed, self.relational = feed, plan, keyed, relational
        self.position = -1
        self._greatest = NEVER
        self._threads = ThreadPoolExecutor(len(keyed)) if len(keyed) > 1 else None

    @classmethod
    def start(cls, feed: Feed, queries: Sequence[RegisteredQuery], *, partitions: int = 1, beside: Evaluator | None = None) -> Evaluator:
        """An evaluator before the first row.

        `beside` a running one with as many partitions it shares that one's dictionaries, so that it can join it later.
        """
        plan = plan_of(queries, feed)
        if beside is None:
            return cls(feed, plan, [KeyedPartition(feed, plan) for _ in range(partitions)], [RelationalPartition(plan) for _ in range(partitions)])
        keyed = [KeyedPartition(feed, plan, other.dictionary) for other in beside.keyed]
        return cls(feed, plan, keyed, [RelationalPartition(plan, other.dictionary) for other in beside.relational])

    @property
    def watermark(self) -> int | None:
        """Rows with smaller `t` are late from now on; None before any row."""
        return None if self._greatest == NEVER else self._greatest - self.feed.lateness

    def process(self, stamped: pa.Table) -> Outcome:
        """Take the next rows of the log, in any order among themselves."""
        if not len(stamped):
            return self._outcome([], [])
        rows = in_arrival_order(stamped.select(stamped_schema(self.feed).names))
        seq = ints(rows, SEQ)
        if seq[0] <= self.position:
            raise ValueError(f"row {seq[0]} comes after row {self.position}")
        self.position = int(seq[-1])
        self._greatest = max(self._greatest, greatest_time(rows, self.feed.lateness))
        return self._step(rows, self._greatest - self.feed.lateness)

    def finish(self, until: int | None = None) -> Outcome:
        """The end of the input: all rows count, timers up to the last accepted `t`, or up to `until` if that is later, fire."""
        if until is None and self._greatest == NEVER:
            return self._outcome([], [])
        last = self._greatest if until is None else max(self._greatest, until)
        return self._step(stamped_schema(self.feed).empty_table(), last + 1)

    def skip_to(self, position: int) -> None:
        """The log no longer has the rows up to `position`: go on after them."""
        self.position = max(self.position, position)

    def register(self, queries: Sequence[RegisteredQuery], caught_up: Evaluator | None = None) -> None:
        """Go over to `queries`, the complete new list.

        Those in `caught_up`, an evaluator started beside this one and at the same position, answer as if they had always run;
        other new ones start here. `caught_up` is given up.
        """
        if caught_up is not None and caught_up.position != self.position:
            raise ValueError(f"caught up to row {caught_up.position}, but the feed is at row {self.position}")
        plan = plan_of(queries, self.feed)
        for n, keyed in enumerate(self.keyed):
            keyed.migrate(plan, caught_up.keyed[n] if caught_up else None)
        for n, relational in enumerate(self.relational):
            relational.migrate(plan, caught_up.relational[n] if caught_up else None)
        self.plan = plan

    def dump(self) -> bytes:
        """The state as bytes; the queries themselves are not part of it."""
        facts = {
            "position": self.position,
            "greatest": self._greatest,
            "queries": {name: run.keys for name, run in self.plan.items()},
            "partitions": len(self.keyed),
        }
        parts = {f"keyed-{n}": part.dump() for n, part in enumerate(self.keyed)}
        return pack(facts, parts | {f"relational-{n}": part.dump() for n, part in enumerate(self.relational)})

    @classmethod
    def load(cls, feed: Feed, queries: Sequence[RegisteredQuery], data: bytes) -> Evaluator:
        """Inverse of `dump` under the same queries in any order. Raises ValueError when the state is of other queries."""
        facts, parts = unpack(data)
        plan = plan_of(_in_order(queries, facts["queries"]), feed)
        if {name: [list(key) for key in run.keys] for name, run in plan.items()} != facts["queries"]:
            raise ValueError("the state belongs to other queries")
        keyed = [KeyedPartition.load(feed, plan, parts[f"keyed-{n}"]) for n in range(facts["partitions"])]
        relational = [RelationalPartition.load(plan, parts[f"relational-{n}"]) for n in range(facts["partitions"])]
        evaluator = cls(feed, plan, keyed, relational)
        evaluator.position, evaluator._greatest = facts["position"], facts["greatest"]
        return evaluator

    def counters(self) -> dict[Name, Counter[str]]:
        """Work done so far, by operator."""
        total: dict[Name, Counter[str]] = {name: Counter() for name in self.plan}
        for part in [*self.keyed, *self.relational]:
            for name, counted in part.counters().items():
                total[name].update(counted)
        return total

    def check(self) -> None:
        """Assert the invariants of every gate and state."""
        for part in [*self.keyed, *self.relational]:
            part.check()

    def _step(self, rows: pa.Table, watermark: int) -> Outcome:
        shares = self._shares(rows)
        keyed = self._each(lambda pair: pair[0].take(pair[1], watermark), list(zip(self.keyed, shares, strict=True)))
        changes = [output.changes for output in keyed]
        if any(run.operator.relational is not None for run in self.plan.values()):
            routed = _routed([output.emitted for output in keyed], len(self.relational))
            changes += self._each(lambda pair: pair[0].take(pair[1], watermark), list(zip(self.relational, routed, strict=True)))
        return self._outcome(changes, keyed)

    def _outcome(self, changes: Sequence[Mapping[Name, pa.RecordBatch]], keyed: Sequence[KeyedOutput]) -> Outcome:
        found = [self._answers(name, batch) for part in changes for name, batch in part.items() if batch.num_rows]
        late = [output.admitted.late for output in keyed]
        return Outcome(
            pa.concat_tables([ANSWERS.empty_table(), *found]),
            pa.concat_tables([stamped_schema(self.feed).empty_table(), *late]),
            sum(len(output.admitted.accepted) for output in keyed),
            sum(output.admitted.duplicates for output in keyed),
            self.watermark,
        )

    def _answers(self, name: Name, batch: pa.RecordBatch) -> pa.Table:
        ids, versions = zip(*self.plan[name].keys, strict=True)
        return answers(batch, ids, versions)

    def _shares(self, rows: pa.Table) -> list[pa.Table]:
        """The rows of each keyed partition, in arrival order."""
        if len(self.keyed) == 1:
            return [rows]
        share = partition_of(rows, len(self.keyed))
        return [rows.filter(pa.array(share == n)) for n in range(len(self.keyed))]

    def _each(self, work: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """`work` on each item, on threads when there are several: kernels let go of the interpreter."""
        return list(self._threads.map(work, items)) if self._threads else [work(item) for item in items]


def partition_of(rows: pa.Table, partitions: int) -> npt.NDArray[np.int64]:
    """The keyed partition of each row, by its entity: the same in every process."""
    entity = rows.column(ENTITY).combine_chunks().dictionary_encode()
    hashed = pd.util.hash_array(np.array(entity.dictionary.to_pylist(), object), categorize=False)
    share = (hashed % np.uint64(partitions)).astype(np.int64)
    codes = entity.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    # Heartbeats have no entity and mean nothing to a partition but the watermark, which all get.
    return np.where(codes < 0, 0, share[codes]) if len(share) else np.zeros(len(codes), np.int64)


def _routed(emitted: Sequence[Mapping[Name, pa.RecordBatch]], partitions: int) -> list[dict[Name, list[pa.RecordBatch]]]:
    """Emitted rows of all keyed partitions by relational partition and operator."""
    routed: list[dict[Name, list[pa.RecordBatch]]] = [{} for _ in range(partitions)]
    for part in emitted:
        for name, rows in part.items():
            share = rows.column(ROUTE).to_numpy(zero_copy_only=False) % partitions
            for n in range(partitions):
                chosen = rows if partitions == 1 else rows.filter(pa.array(share == n))
                if chosen.num_rows:
                    routed[n].setdefault(name, []).append(chosen)
    return routed


def _in_order(queries: Sequence[RegisteredQuery], stored: Mapping[Name, Sequence[Sequence[Any]]]) -> list[RegisteredQuery]:
    """`queries` in the order in which a state knows them; those it does not know last."""
    place = {(str(id_), int(version)): n for keys in stored.values() for n, (id_, version) in enumerate(keys)}
    return sorted(queries, key=lambda query: place.get(query.key, len(place)))
