"""What Spark's workers do with one batch of a feed: each task reads its part of the rows from the
log and steps the state that it holds.

    first task: keyed partitions
      --rows emitted, by the partition of their route--> second task: relational partitions
                broadcast partitions, which read all rows

A state stays in the Python process that made it, under a name that no other has: the last row in
it, and which attempt made it. A task that has another state than the one it is asked to continue
from, or none (its process is new, was killed, or an attempt before it had begun already), loads the
last snapshot and takes the rows since then again; no row is ever evaluated twice in one state. A
relational task cannot do that alone: it needs rows that the others emit. It reports that its state
is missing, and all tasks repeat the batch from the snapshot.
"""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyspark

from engine.failpoints import failpoint
from engine.model.batch import ENTITY, TIME
from engine.model.changes import concat
from engine.model.clock import watermark_at
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import OperatorFailed, QueryStopped
from engine.runtime.broadcast import ADMISSION, Broadcast, JobPlan, Partitions, job_plan, partitions_of, state_name
from engine.runtime.container import pack, table_bytes, table_from, unpack
from engine.runtime.evaluator import conformed, divided, entity_partitions, route_partitions
from engine.runtime.gate import Admitted
from engine.runtime.partitions import KeyedOutput, KeyedPartition, Keys, RelationalPartition
from engine.sources.buckets import BUCKETS, buckets_of_partition
from engine.sources.eventlog import Address, EventLog, Span
from engine.sources.store import AT_ONCE, Files

INLINE_BYTES = 256_000
"""What a task emits goes through the driver up to so many bytes, else through a file: a file takes
100 ms in a store, while the driver only forwards the tasks' messages."""

Message = tuple[str, str, bytes]
"""What a task reports: a kind (changes and late rows as Arrow streams, counts as JSON, emitted,
dumped, missed, stopped, failed), a name, the rest.

A large one is spilled to a file: its kind is SPILLED, its name that of the file, and the rest is
its kind and name as JSON.
"""
SPILLED = "spilled"
Queries = pyspark.Broadcast[Any]
"""A broadcast of (a name for them, feed, queries, partitions)."""
_Emitted = Mapping[int, Mapping[str, Sequence[pa.RecordBatch]]]
"""Rows that keyed partitions emitted, by the number of the step and the operator."""


@dataclass(frozen=True)
class BatchWork:
    """What all tasks of one batch do. `before` and `after` name states; `snapshot` are the files of
    the states, by stage and partition.

    `since` are the steps from the snapshot to the state before, `fresh` those that are new (none:
    the states are only wanted in files).
    """

    log: Address
    files: Files
    snapshot: Mapping[str, str]
    since: tuple[Span, ...]
    before: str
    fresh: tuple[Span, ...]
    after: str
    partitions: int
    rewind: bool = False
    """All tasks begin at the snapshot."""
    mark: str = ""
    """The common part of the names of all files that tasks write."""
    dump: bool = False
    """Whether the states after it are written."""
    inline_bytes: int = INLINE_BYTES

    @property
    def feed(self) -> str:
        """Identifies the feed in processes that have states of several."""
        return self.files.title


@dataclass(frozen=True)
class EmittedRows:
    """Rows that a keyed task emitted in one of its steps for one relational partition: `data`,
    or so many bytes of a file."""

    step: int
    partition: int
    name: str
    offset: int
    size: int
    file: str
    data: bytes


@dataclass
class _ResidentStates:
    """The states that this process holds, by (feed, stage, partition), each with its
    name; and the plans, by feed."""

    states: dict[tuple[str, str, int], tuple[str, Any]] = field(default_factory=dict)
    plans: dict[str, tuple[str, JobPlan]] = field(default_factory=dict)


_HERE = _ResidentStates()


def first_stage(queries: Queries, work: BatchWork, tasks: Iterable[Sequence[int]]) -> Iterator[Message]:
    """The keyed stage of the partitions that one executor has, and the queries that they evaluate
    over all rows; with one partition in all the relational stage too."""
    for mine in tasks:
        try:
            yield from _spilled(work, _first_stage(queries, work, mine))
        except (QueryStopped, OperatorFailed) as fault:
            yield _fault(fault)


def relational(queries: Queries, work: BatchWork, tasks: Iterable[Sequence[tuple[int, Sequence[EmittedRows]]]]) -> Iterator[Message]:
    """The relational stage of the partitions that one executor has, each
    with what was emitted for it."""
    for mine in tasks:
        try:
            for p, pieces in mine:
                yield from _spilled(work, _relational(queries, work, p, pieces))
        except (QueryStopped, OperatorFailed) as fault:
            yield _fault(fault)


def _spilled(work: BatchWork, messages: Iterable[Message]) -> Iterator[Message]:
    """Large messages are spilled to files: two JVMs would take longer to pass them on
    than the evaluation takes."""
    for kind, name, payload in messages:
        if len(payload) <= work.inline_bytes:
            yield (kind, name, payload)
            continue
        file = _name(work, kind)
        work.files.put_with_retries(file, payload, lasting=False)
        yield (SPILLED, file, json.dumps([kind, name]).encode())


def read_spilled(files: Files, messages: Iterable[Message]) -> list[Message]:
    """The messages, those that were spilled read from their files, which
    are removed. Raises OSError."""
    messages = list(messages)
    found = [(*json.loads(payload), files.read(name)) if kind == SPILLED else (kind, name, payload) for kind, name, payload in messages]
    files.remove_all([name for kind, name, _ in messages if kind == SPILLED])
    return found


def _first_stage(queries: Queries, work: BatchWork, mine: Sequence[int]) -> Iterator[Message]:
    feed, plan = _planned(queries, work)
    _forget_left_behind(work)
    own = mine if plan.partitions_rows else []
    found = {p: _taken((work.feed, "keyed", p), work) for p in own}
    lost = [p for p in own if found[p] is None]
    parts = {p: KeyedPartition.load(feed, plan.partitioned, _snapshot(work, f"keyed-{p}")) if p in lost else found[p] for p in own}
    whole = _whole(work, feed, plan, mine)
    lost_whole = whole is not None and whole.is_lost
    # All processes admit the same rows to queries that have all of them
    # broadcast; one of them reports which.
    counting = not plan.partitions_rows and _is_first(plan, mine)
    yield from [("loaded", "", b"")] * (len(lost) + lost_whole)
    # What a step emitted is numbered from the first new one: replayed steps are before 0, and most
    # do not need what comes of them.
    outputs: list[tuple[int, KeyedOutput]] = []
    admitted: list[Admitted] = []
    asserted: list[dict[str, pa.Table]] = []
    for step, span in enumerate((*work.since, *work.fresh), -len(work.since)):
        stepped, all_rows = (own, whole is not None) if step >= 0 else (lost, lost_whole)
        if not stepped and not all_rows:
            continue
        rows, of_stepped = shares(work.log.open(), feed, span, stepped, work.partitions, all_rows=all_rows)
        watermark = watermark_at(span.max_t, feed.lateness)
        for p, share in zip(stepped, of_stepped, strict=True):
            output = parts[p].take(share, watermark)
            if step >= 0 or work.rewind:
                outputs.append((step, output))
        if whole is not None and all_rows:
            of_all, changed = whole.state.take(rows, watermark)
            if step >= 0:
                admitted.append(of_all)
                asserted += [{f"{state_name(whole.state.partitions)}/{name}": changes} for name, changes in changed]
    failpoint("executor.before_state")
    if work.dump:
        for p, part in parts.items():
            yield _dumped(work, f"keyed-{p}", part.dump())
        yield from [] if whole is None else _dumped_whole(work, plan, whole.state)
    _HERE.states |= {(work.feed, "keyed", p): (work.after, part) for p, part in parts.items()}
    if whole is not None:
        _HERE.states[work.feed, "broadcast", mine[0]] = (work.after, whole.state)
    new = [output for step, output in outputs if step >= 0]
    yield from _found(admitted if counting else [output.admitted for output in new])
    yield from _asserted([*(output.changes for output in new), *asserted])
    if plan.is_relational:
        emitted = _by_step(outputs)
        yield from _stepped_relational(queries, work, 0, emitted) if work.partitions == 1 else _emitted(work, emitted)


class _BroadcastState(NamedTuple):
    """The queries of an executor over all rows; `is_lost`: they are at the snapshot."""

    state: Broadcast
    is_lost: bool


def _whole(work: BatchWork, feed: Feed, plan: JobPlan, mine: Sequence[int]) -> _BroadcastState | None:
    """Those of one executor, as a task must go on from; null where its partitions have none."""
    partitions: Partitions = tuple(p for p in plan.broadcast.partitions if p in mine)
    found: Broadcast | None = _taken((work.feed, "broadcast", mine[0]), work)
    if not partitions:
        return None
    if found is not None and found.partitions == partitions:
        return _BroadcastState(found, False)
    names = [name for name in work.snapshot if name == ADMISSION or set(partitions_of(name)) & set(partitions)]
    return _BroadcastState(Broadcast.load(feed, plan.broadcast, partitions, {name: _snapshot(work, name) for name in names}), True)


def _dumped_whole(work: BatchWork, plan: JobPlan, whole: Broadcast) -> Iterator[Message]:
    """Its state; the gate's and the dictionary's, the same in every process, come from the one
    with the first partition."""
    yield _dumped(work, state_name(whole.partitions), whole.stages.dump())
    if _is_first(plan, whole.partitions):
        yield _dumped(work, ADMISSION, whole.admission.dump())


def _is_first(plan: JobPlan, mine: Sequence[int]) -> bool:
    """Whether the first partition with queries over all rows is among some."""
    return any(p in mine for p in plan.broadcast.partitions[:1])


def shares(log: EventLog, feed: Feed, span: Span, mine: Sequence[int], partitions: int, *, all_rows: bool = False) -> tuple[pa.Table, list[pa.Table]]:
    """All rows of `span` (none unless asked for), and for each of some partitions its own, in order
    of seq. Each file is opened once."""
    nothing = pa.Table.from_batches([], stamped_schema(feed))
    every, found = [nothing], [[nothing] for _ in mine]
    by_bucket = not all_rows and partitions <= BUCKETS
    wanted: list[Collection[int]] = [buckets_of_partition(p, partitions) for p in mine] if by_bucket else [range(BUCKETS)]
    for stamped, whose in log.parts_between(span.first, span.stop, wanted):
        rows = conformed(stamped, feed)
        if all_rows:
            every.append(rows)
        own = whose if by_bucket else range(len(mine))
        for i, share in zip(own, _divided(rows, [mine[i] for i in own], partitions), strict=True):
            found[i].append(share)
    return pa.concat_tables(every), [pa.concat_tables(tables) for tables in found]


def _divided(rows: pa.Table, mine: Sequence[int], partitions: int) -> list[pa.Table]:
    """For each of some partitions its rows, in their order."""
    if partitions == 1 or not mine:
        return [rows] * len(mine)
    partition_of_row = entity_partitions(rows.column(ENTITY), partitions)
    if len(mine) == 1 and bool((partition_of_row == mine[0]).all()):
        # What was read is one partition's: large segments are grouped for it.
        return [rows]
    parts = divided(rows, partition_of_row, partitions)
    return [parts[p] for p in mine]


def _by_step(outputs: Sequence[tuple[int, KeyedOutput]]) -> _Emitted:
    """What was emitted, by the step's number and the operator."""
    found: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    for step, output in outputs:
        for name, rows in output.emitted.items():
            found.setdefault(step, {}).setdefault(name, []).append(rows)
    return found


def _found(admitted: Sequence[Admitted]) -> Iterator[Message]:
    accepted = [one.accepted for one in admitted]
    late = [one.late for one in admitted if one.late.num_rows]
    counts = {
        "processed": sum(rows.num_rows for rows in accepted),
        "duplicates": sum(one.duplicates for one in admitted),
        "late": sum(rows.num_rows for rows in late),
        "last_t": max((pc.max(rows.column(TIME)).as_py() for rows in accepted if rows.num_rows), default=None),
    }
    yield ("counts", "", json.dumps(counts).encode())
    if late:
        yield ("late", "", table_bytes(pa.concat_tables(late)))


def _asserted(changes: Iterable[Mapping[str, pa.Table]]) -> Iterator[Message]:
    found: dict[str, list[pa.Table]] = {}
    for one in changes:
        for name, table in one.items():
            if table.num_rows:
                found.setdefault(name, []).append(table)
    for name, tables in found.items():
        yield ("changes", name, table_bytes(concat(tables)))


def _emitted(work: BatchWork, emitted: _Emitted) -> Iterator[Message]:
    """Describes which bytes belong to which partition, with the bytes or with their file."""
    parts: list[bytes] = []
    pieces: list[tuple[int, int, str, int, int]] = []
    offset = 0
    for step, by_name in emitted.items():
        for name, batches in by_name.items():
            rows = pa.concat_batches(batches)
            for partition, share in enumerate(divided(rows, route_partitions(rows, work.partitions), work.partitions)):
                if not share.num_rows:
                    continue
                data = table_bytes(pa.Table.from_batches([share]))
                pieces.append((step, partition, name, offset, len(data)))
                parts.append(data)
                offset += len(data)
    file = ""
    if offset > work.inline_bytes:
        file = _name(work, "emitted")
        work.files.put_with_retries(file, *parts, lasting=False)
        parts = []
    yield ("emitted", "", pack({"file": file, "pieces": pieces}, {"rows": b"".join(parts)}))


def pieces_of(payload: bytes) -> list[EmittedRows]:
    """What a task emitted, from its message."""
    facts, parts = unpack(payload)
    file, rows = facts["file"], parts["rows"]
    return [
        EmittedRows(step, partition, name, offset, size, file, b"" if file else rows[offset : offset + size])
        for step, partition, name, offset, size in facts["pieces"]
    ]


def _relational(queries: Queries, work: BatchWork, p: int, pieces: Sequence[EmittedRows]) -> Iterator[Message]:
    emitted: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    for piece, data in zip(pieces, _fetched(work, pieces), strict=True):
        emitted.setdefault(piece.step, {}).setdefault(piece.name, []).extend(table_from(data).combine_chunks().to_batches())
    yield from _stepped_relational(queries, work, p, emitted)


def _fetched(work: BatchWork, pieces: Sequence[EmittedRows]) -> list[bytes]:
    """The bytes of each piece."""
    if not any(piece.file for piece in pieces):
        return [piece.data for piece in pieces]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda one: work.files.read(one.file, one.offset, one.size) if one.file else one.data, pieces))


def _stepped_relational(queries: Queries, work: BatchWork, p: int, emitted: _Emitted) -> Iterator[Message]:
    feed, plan = _planned(queries, work)
    key = (work.feed, "relational", p)
    part = _taken(key, work)
    replayed = work.since if work.rewind else ()
    if part is None:
        if work.since and not work.rewind:
            yield ("missed", "", b"")
            return
        part = RelationalPartition.load(plan.partitioned, _snapshot(work, f"relational-{p}"))
        yield ("loaded", "", b"")
    asserted = []
    for step, span in enumerate((*replayed, *work.fresh), -len(replayed)):
        changes = part.take(emitted.get(step, {}), watermark_at(span.max_t, feed.lateness))
        if step >= 0:
            asserted.append(changes)
    yield from _asserted(asserted)
    if work.dump:
        yield _dumped(work, f"relational-{p}", part.dump())
    _HERE.states[key] = (work.after, part)


def _taken(key: tuple[str, str, int], work: BatchWork) -> Any:
    """The state to continue from, if this process has it. It is removed, so that a task that
    fails leaves nothing behind."""
    name, part = _HERE.states.pop(key, ("", None))
    return part if name == work.before and not work.rewind else None


def _forget_left_behind(work: BatchWork) -> None:
    """Drops states from which no task will go on: their partition is at another executor by now, or
    its job has no state of that kind any more."""
    left = [key for key, (name, _) in _HERE.states.items() if key[0] == work.feed and name not in (work.before, work.after)]
    for key in left:
        del _HERE.states[key]


def _planned(queries: Queries, work: BatchWork) -> tuple[Feed, JobPlan]:
    """Compiled once in each worker: workers are used again for the batches to come."""
    name, feed, registered, partitions = queries.value
    if _HERE.plans.get(work.feed, ("", {}))[0] != name:
        _HERE.plans[work.feed] = (name, job_plan(registered, feed, partitions))
        # Spark's worker collects garbage after every task: 80 ms with all that is loaded here, 1 ms
        # when that is set aside as permanent.
        gc.collect()
        gc.freeze()
    return feed, _HERE.plans[work.feed][1]


def _snapshot(work: BatchWork, name: str) -> bytes:
    return work.files.read(work.snapshot[name])


def _dumped(work: BatchWork, name: str, data: bytes) -> Message:
    """Writes a state. A concurrent attempt elsewhere writes another file."""
    file = _name(work, name)
    work.files.put_with_retries(file, data)
    return ("dumped", name, file.encode())


def _name(work: BatchWork, what: str) -> str:
    return f"{work.mark}.{what}.{uuid.uuid4().hex}"


def keys_named(plan: JobPlan, name: str) -> Keys:
    """The queries whose changes a message with this name carries: the name of the operator, after
    that of the state of queries over all rows."""
    state, _, operator = name.rpartition("/")
    return plan.broadcast.keys(partitions_of(state))[operator] if state else plan.partitioned[operator].keys


def raise_fault(kind: str, name: str, payload: bytes) -> None:
    """The fault that ended a task, if this message carries one; nothing for other kinds."""
    if kind == "stopped":
        query, version, reason = json.loads(payload)
        raise QueryStopped((query, version), reason)
    if kind == "failed":
        raise OperatorFailed(name, payload.decode())


def _fault(fault: QueryStopped | OperatorFailed) -> Message:
    """As a message for the driver: an exception would arrive as Spark's text,
    after three more attempts."""
    if isinstance(fault, QueryStopped):
        return ("stopped", "", json.dumps([*fault.key, fault.reason]).encode())
    return ("failed", fault.name, fault.reason.encode())
