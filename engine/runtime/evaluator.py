"""The whole of a feed in one process: partitions with their gates, and the
operators of all queries.

Rows enter stamped and in order of `seq`; the watermark is that of the feed, the same for all
partitions, so neither the partitions nor the sizes of batches can be seen in the answers.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from engine.model.batch import CLOCK, ENTITY, SEQ, TIME
from engine.model.changes import ANSWERS, answers
from engine.model.clock import watermark_at
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import ROUTE, RegisteredQuery, relational_partitions
from engine.runtime.broadcast import ADMISSION, BothStages, Broadcast, JobPlan, job_plan, partitions_of, state_name
from engine.runtime.container import pack, unpack
from engine.runtime.gate import Admitted, Gate
from engine.runtime.partitions import Admission, KeyedPartition, Name, Plan, RelationalPartition
from engine.sources.buckets import BUCKETS

STATE_VERSION = 6
ROUTES = 4
"""Which routes the queries of several partitions have; another number for
another way to choose them."""
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True)
class Outcome:
    """The outcome of some rows: changes in the ANSWERS schema, late rows as they came (stamped),
    counts, the watermark after them.

    `processed` counts accepted events; heartbeats are counted nowhere.
    `watermark` is null before any row.
    """

    changes: pa.Table
    late: pa.Table
    processed: int
    duplicates: int
    watermark: int | None


class Evaluator:
    """All queries of one feed. Begin with `start` or `load`; `process` takes the
    log's rows in order of `seq`.

    `position` is the seq of the last row taken (-1: none yet); `last_t` the greatest `t` of an
    accepted event (null before any).
    """

    def __init__(
        self, feed: Feed, plan: JobPlan, keyed: Sequence[KeyedPartition], relational: Sequence[RelationalPartition], broadcast: Broadcast
    ) -> None:
        self.feed, self.plan = feed, plan
        self.position = -1
        self.last_t: int | None = None
        self._reached: int | None = None
        self._keyed, self._relational, self._broadcast = list(keyed), list(relational), broadcast

    @classmethod
    def start(cls, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int = 1) -> Evaluator:
        """An evaluator before any row. `queries` are checked; several queries of one
        id need different versions."""
        plan, every = job_plan(queries, feed, partitions), range(partitions)
        keyed = [KeyedPartition(feed, plan.partitioned) for _ in every]
        return cls(feed, plan, keyed, [RelationalPartition(plan.partitioned) for _ in every], Broadcast.start(feed, plan.broadcast))

    def side_evaluator(self, queries: Sequence[RegisteredQuery]) -> Evaluator:
        """An evaluator before any row that reads history for `queries`, to be joined to this one by
        `register`; may run in another thread.

        The two share their dictionaries, so that the states of one can be
        read with those of the other.
        """
        plan = job_plan(queries, self.feed, len(self._keyed))
        keyed = [KeyedPartition(self.feed, plan.partitioned, own.dictionary) for own in self._keyed]
        relational = [RelationalPartition(plan.partitioned, own.dictionary) for own in self._relational]
        return Evaluator(self.feed, plan, keyed, relational, Broadcast.start(self.feed, plan.broadcast, self._broadcast.admission.dictionary))

    def skip_to(self, position: int) -> None:
        """The rows up to `position` no longer exist: the next row follows it."""
        self.position = position

    @property
    def watermark(self) -> int | None:
        """The greatest `t` so far minus the lateness; null before any row."""
        return None if self._reached is None else watermark_at(self._reached, self.feed.lateness)

    @property
    def queries(self) -> list[RegisteredQuery]:
        """All that run."""
        return [query for plan in self.plan.plans for running in plan.values() for query in running.queries]

    # -- rows --------------------------------------------------------------------------------------

    def process(self, stamped: pa.Table) -> Outcome:
        """Takes stamped rows that follow those before, in order of seq;
        missing columns are null."""
        rows = conformed(stamped, self.feed)
        if rows.num_rows:
            self.position = rows.column(SEQ)[-1].as_py()
            self._reached = reached(rows, self._reached)
        watermark = self.watermark
        return _nothing(self.feed, None) if watermark is None else self._step(rows, watermark)

    def finish(self, until: int | None = None) -> Outcome:
        """The end of the input: all rows count, and timers fire up to the last accepted `t`, or to
        `until` if that is later.

        The evaluator takes no rows after this.
        """
        if self.last_t is None:
            return _nothing(self.feed, self.watermark)
        none = pa.Table.from_batches([], stamped_schema(self.feed))
        end = self.last_t if until is None else max(self.last_t, until)
        # Heartbeats may have moved the watermark beyond the last event; it never goes back.
        behind = self.watermark if self.watermark is not None else self.last_t
        released = self._step(none, max(self.last_t, behind), ended=True)
        last = self._step(none, max(end + 1, behind), ended=True)
        return Outcome(pa.concat_tables([released.changes, last.changes]), none, 0, 0, end)

    def _step(self, rows: pa.Table, watermark: int, *, ended: bool = False) -> Outcome:
        admitted, asserted = self._partitioned(rows, watermark, ended=ended) if self.plan.partitions_rows else ([], [])
        if self.plan.broadcast:
            of_all, changed = self._broadcast.take(rows, watermark, ended=ended)
            own = self.plan.broadcast.plan(self._broadcast.partitions)
            asserted += [_answers(own, name, changes) for name, changes in changed]
            admitted = admitted or [of_all]
        for accepted in (one.accepted for one in admitted if one.accepted.num_rows):
            newest = pc.max(accepted.column(TIME)).as_py()
            self.last_t = newest if self.last_t is None else max(self.last_t, newest)
        return Outcome(
            pa.concat_tables([ANSWERS.empty_table(), *asserted]),
            pa.concat_tables([one.late for one in admitted]),
            sum(one.accepted.num_rows for one in admitted),
            sum(one.duplicates for one in admitted),
            watermark,
        )

    def _partitioned(self, rows: pa.Table, watermark: int, *, ended: bool) -> tuple[list[Admitted], list[pa.Table]]:
        """What the keyed partitions admit, and the answers of the queries
        whose rows are partitioned."""
        plan = self.plan.partitioned
        outputs = [part.take(share, watermark, ended=ended) for part, share in zip(self._keyed, self._by_entity(rows), strict=True)]
        asserted = [_answers(plan, *changed) for output in outputs for changed in output.changes.items()]
        emitted = {name: [output.emitted[name] for output in outputs if name in output.emitted] for name in plan}
        for part, share in zip(self._relational, self._by_route(emitted), strict=True):
            asserted += [_answers(plan, *changed) for changed in part.take(share, watermark, ended=ended).items()]
        return [output.admitted for output in outputs], asserted

    def _by_entity(self, rows: pa.Table) -> list[pa.Table]:
        if len(self._keyed) == 1:
            return [rows]
        return divided(rows, entity_partitions(rows.column(ENTITY), len(self._keyed)), len(self._keyed))

    def _by_route(self, emitted: Mapping[Name, Sequence[pa.RecordBatch]]) -> list[Mapping[Name, Sequence[pa.RecordBatch]]]:
        count = len(self._relational)
        if count == 1:
            return [emitted]
        shares = {name: [divided(rows, route_partitions(rows, count), count) for rows in batches] for name, batches in emitted.items()}
        return [{name: [parts[p] for parts in batches] for name, batches in shares.items()} for p in range(count)]

    # -- added and removed queries -----------------------------------------------------------------

    def register(self, queries: Sequence[RegisteredQuery], caught_up: Evaluator | None = None) -> None:
        """From the next row on `queries` run, and no others.

        Queries that run already continue. New ones take their state from `caught_up`, an evaluator
        made by `beside` that has taken the same rows; without it they begin here. `caught_up`
        cannot be used afterwards. Raises ValueError when it is at another row.
        """
        keyed: Sequence[KeyedPartition | None] = [None] * len(self._keyed)
        relational: Sequence[RelationalPartition | None] = [None] * len(self._relational)
        broadcast: Broadcast | None = None
        if caught_up is not None:
            if caught_up._keyed[0].dictionary is not self._keyed[0].dictionary or caught_up.position != self.position:
                raise ValueError(
                    f"the evaluator to be joined must be made by side_evaluator() and be at row {self.position}, not {caught_up.position}"
                )
            # Queries that `caught_up` evaluated only because others derive from them continue here.
            own_keys = {query.key for query in self.queries}
            if any(query.key in own_keys for query in caught_up.queries):
                caught_up.register([query for query in caught_up.queries if query.key not in own_keys])
            keyed, relational, broadcast = caught_up._keyed, caught_up._relational, caught_up._broadcast
        before, self.plan = self.plan, job_plan(queries, self.feed, len(self._keyed), self.plan)
        self._take_over_gates(before)
        for own, other in zip(self._keyed, keyed, strict=True):
            own.migrate(self.plan.partitioned, other)
        for mine, another in zip(self._relational, relational, strict=True):
            mine.migrate(self.plan.partitioned, another)
        self._broadcast.migrate(self.plan.broadcast, broadcast)

    def _take_over_gates(self, before: JobPlan) -> None:
        """Gates that took no rows before and do now begin with what the others know; those that
        take none any more forget it."""
        keyed, count = [part.admission for part in self._keyed], len(self._keyed)
        of_all, after = self._broadcast.admission, self.plan
        if after.broadcast and not before.broadcast:
            of_all.gate = Gate.union(self.feed, [one.gate for one in keyed])
            # Now, not when a partition's queries first read them: the dictionary has to be
            # the same in all processes.
            of_all.dictionary.encode(of_all.gate.waiting.column(ENTITY))
        if before.partitions_rows != after.partitions_rows:
            gates = of_all.gate.divided(count, lambda names: entity_partitions(pa.chunked_array([names]), count)) if before.broadcast else []
            for p, one in enumerate(keyed):
                one.gate = gates[p] if after.partitions_rows else Gate(self.feed)
        if before.broadcast and not after.broadcast:
            of_all.gate = Gate(self.feed)

    # -- states ------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Everything that `load` needs to continue at `position`."""
        facts = {
            "version": STATE_VERSION,
            "position": self.position,
            "partitions": len(self._keyed),
            "last_t": self.last_t,
            "reached": self._reached,
            "queries": _digests(self.plan),
            "buckets": BUCKETS,
            "routes": ROUTES,
        }
        return pack(facts, {name: part.dump() for name, part in self.states().items()})

    def states(self) -> dict[str, KeyedPartition | RelationalPartition | Admission | BothStages]:
        """Everything with rows or operators in it, by its name in `state_names`."""
        found: dict[str, KeyedPartition | RelationalPartition | Admission | BothStages] = {}
        if self.plan.partitions_rows:
            found |= {f"keyed-{p}": part for p, part in enumerate(self._keyed)}
        found |= {f"relational-{p}": part for p, part in enumerate(self._relational) if not part.is_empty}
        if self.plan.broadcast:
            found |= {ADMISSION: self._broadcast.admission, state_name(self._broadcast.partitions): self._broadcast.stages}
        return found

    @classmethod
    def load(cls, feed: Feed, queries: Sequence[RegisteredQuery], data: bytes) -> Evaluator:
        """The evaluator that was dumped, under the same queries. Raises ValueError when they are
        others or the state is unusable."""
        facts, parts = unpack(data)
        if facts["version"] != STATE_VERSION:
            raise ValueError(f"the state has version {facts['version']}, this program reads {STATE_VERSION}")
        check_partitioning(facts)
        plan = job_plan(queries, feed, facts["partitions"])
        if facts["queries"] != _digests(plan):
            raise ValueError("the state is that of other queries")
        evaluator = cls.of_states(feed, plan, facts["partitions"], parts)
        evaluator.seek(facts["position"], facts["last_t"], facts["reached"])
        return evaluator

    @classmethod
    def of_states(cls, feed: Feed, plan: JobPlan, partitions: int, states: Mapping[str, bytes]) -> Evaluator:
        """From the dumped `states()`, before it has a position."""
        every, shared = range(partitions), plan.partitioned
        keyed = [KeyedPartition.load(feed, shared, states[f"keyed-{p}"]) if plan.partitions_rows else KeyedPartition(feed, shared) for p in every]
        relational = [
            RelationalPartition.load(shared, states[name]) if (name := f"relational-{p}") in states else RelationalPartition(shared) for p in every
        ]
        own = plan.broadcast
        return cls(feed, plan, keyed, relational, Broadcast.load(feed, own, own.partitions, states) if own else Broadcast.start(feed, own))

    def seek(self, position: int, last_t: int | None, reached: int | None) -> None:
        """Sets where it is in the log, and its clock there."""
        self.position, self.last_t, self._reached = position, last_t, reached

    # -- watching ----------------------------------------------------------------------------------

    def counters(self) -> dict[Name, dict[str, int]]:
        """For each operator, by its first family, its work so far summed over the partitions."""
        found: dict[Name, Counter[str]] = {name: Counter() for plan in self.plan.plans for name in plan}
        of_all = self._broadcast.stages.counters()
        for counters in [*(part.counters() for part in self._keyed), *(part.counters() for part in self._relational), *of_all]:
            for name, counted in counters.items():
                found[name].update(counted)
        return {name: dict(total) for name, total in found.items()}

    @property
    def rows_kept(self) -> int:
        """Rows and fingerprints that the gates hold."""
        return sum(one.gate.rows_kept for one in (self._broadcast.admission, *(part.admission for part in self._keyed)))

    def check(self) -> None:
        """Asserts the invariants of all states; for tests."""
        for keyed in self._keyed:
            keyed.check()
        for relational in self._relational:
            relational.check()
        self._broadcast.check()


def missing_states(plan: JobPlan, partitions: int, names: Collection[str]) -> list[str]:
    """Which of an evaluator's `states()` are not among some; the queries over all
    entities may be in several."""
    stages = ("keyed", "relational")[: 1 + plan.is_relational] if plan.partitions_rows else ()
    wanted = [f"{stage}-{p}" for stage in stages for p in range(partitions)] + [ADMISSION] * bool(plan.broadcast)
    there = {p for name in names for p in partitions_of(name)}
    return [name for name in wanted if name not in names] + [state_name((p,)) for p in plan.broadcast.partitions if p not in there]


def reached(stamped: pa.Table, before: int | None) -> int:
    """The clock after some rows: the greatest `t` and clock among them, or `before`."""
    seen: list[int | None] = [pc.max(stamped.column(name)).as_py() for name in (TIME, CLOCK)]
    return max(one for one in [before, *seen] if one is not None)


def entity_partitions(entities: pa.ChunkedArray, partitions: int) -> npt.NDArray[np.int64]:
    """The keyed partition of each entity: decided by the id's own bytes, so that every process and
    every restart spreads alike."""
    found = [np.empty(0, np.int64), *(_keyed_partitions(chunk, partitions) for chunk in entities.cast(pa.string()).chunks)]
    return np.concatenate(found)


def _keyed_partitions(names: pa.Array, partitions: int) -> npt.NDArray[np.int64]:
    _, offsets, data = names.buffers()
    if not len(names) or data is None:
        return np.zeros(len(names), np.int64)
    places = np.frombuffer(offsets, np.int32)[names.offset : names.offset + len(names) + 1]
    # Over the raw bytes: building a dictionary first costs twenty times as much where most
    # rows have different entities.
    buckets = max(BUCKETS, partitions)
    partition_of_row: npt.NDArray[np.int64] = _crc_partitions(np.frombuffer(data, np.uint8), places, _CRC_TABLE, buckets, partitions)
    return partition_of_row


_CRC_TABLE = np.array([zlib.crc32(bytes([byte])) ^ zlib.crc32(b"\0") for byte in range(256)], np.uint32)


@njit(cache=True, nogil=True)
def _crc_partitions(data: Any, places: Any, table: Any, buckets: Any, partitions: Any) -> Any:
    """The partition of the bucket of each name, by its CRC-32 (zlib's)."""
    partition_of_row = np.empty(len(places) - 1, np.int64)
    for i in range(len(partition_of_row)):
        crc = np.uint32(0xFFFFFFFF)
        for at in range(places[i], places[i + 1]):
            crc = table[(crc ^ data[at]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        partition_of_row[i] = np.int64(crc ^ np.uint32(0xFFFFFFFF)) % buckets % partitions
    return partition_of_row


def route_partitions(rows: pa.RecordBatch, partitions: int) -> npt.NDArray[np.int64]:
    """The relational partition of each emitted row."""
    return relational_partitions(rows.column(ROUTE).to_numpy(zero_copy_only=False), partitions)


def divided(rows: Rows, partition_of_row: npt.NDArray[np.int64], partitions: int) -> list[Rows]:
    """For each partition its rows, in their order; `partition_of_row` has the partition of each
    row."""
    order = np.argsort(partition_of_row.astype(np.uint16), kind="stable")
    ends = np.searchsorted(partition_of_row[order], np.arange(partitions + 1))
    together = rows.take(pa.array(order))
    return [together.slice(ends[p], ends[p + 1] - ends[p]) for p in range(partitions)]


def check_partitioning(facts: Mapping[str, Any]) -> None:
    """Raises ValueError when a state is of partitions that had other entities or routes."""
    if facts["partitions"] > 1 and (facts.get("buckets"), facts.get("routes")) != (BUCKETS, ROUTES):
        raise ValueError("entities or routes had other partitions when the state was written")


def _digests(plan: JobPlan) -> list[str]:
    return [running.digest for own in plan.plans for running in own.values()]


def _answers(plan: Plan, name: Name, changes: pa.Table) -> pa.Table:
    return answers(changes, *plan[name].keys) if changes.num_rows else ANSWERS.empty_table()


def conformed(rows: pa.Table, feed: Feed) -> pa.Table:
    """The feed's columns and stamps in their order; a column that is not there is null."""
    wanted = stamped_schema(feed)
    if rows.schema.equals(wanted):
        return rows
    names = set(rows.column_names)
    columns = [rows.column(f.name).cast(f.type) if f.name in names else pa.nulls(rows.num_rows, f.type) for f in wanted]
    return pa.Table.from_arrays(columns, schema=wanted)


def _nothing(feed: Feed, watermark: int | None) -> Outcome:
    return Outcome(ANSWERS.empty_table(), pa.Table.from_batches([], stamped_schema(feed)), 0, 0, watermark)
