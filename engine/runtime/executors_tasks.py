"""What Spark's workers do with one batch of a feed: each task reads its part of the rows from the log and steps the state that it holds.

    keyed task --rows emitted, by the partition of their route--> relational task

A state stays in the Python process that made it, under a name that no other has: the last row in it, and which attempt made it. A task that has
another state than the one it is asked to go on from, or none (its process is new, was killed, or an attempt before it had begun already),
loads the last snapshot and takes the rows since then again; nothing is ever stepped twice. A relational task cannot do that alone: the rows it
would need are emitted by the others. It says that it misses its state, and all tasks do the batch over from the snapshot.
"""

from __future__ import annotations

import gc
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast

from engine.failpoints import failpoint
from engine.model.batch import ENTITY, TIME
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import OperatorFailed, QueryStopped
from engine.runtime.container import table_bytes, table_from
from engine.runtime.evaluator import conformed, entity_partitions, route_partitions
from engine.runtime.partitions import KeyedOutput, KeyedPartition, Plan, RelationalPartition, plan_of
from engine.sources.buckets import BUCKETS, buckets_of_partition
from engine.sources.eventlog import EventLog, Span

Message = tuple[str, str, bytes]
"""What a task says: a kind (changes and late rows as Arrow streams, counts, emitted as JSON, missed, stopped, failed), the operator, the rest."""
Queries = Broadcast[Any]
"""A broadcast of (a name for them, feed, queries, partitions)."""


@dataclass(frozen=True)
class Work:
    """What all tasks of one batch do. `before` and `after` name states; `snapshot` is the folder of the states in files.

    `since` are the steps from the snapshot to the state before, `fresh` those that are new (none: the states are only wanted in files).
    """

    log: tuple[str, str]
    folder: str
    snapshot: str
    since: tuple[Span, ...]
    before: str
    fresh: tuple[Span, ...]
    after: str
    partitions: int
    rewind: bool = False
    """Everybody begins at the snapshot."""
    dump: str = ""
    """The folder for the states after it; empty: they are not written."""


@dataclass(frozen=True)
class Piece:
    """Rows that a keyed task emitted in one of its steps for one relational partition: so many bytes of a file."""

    step: int
    home: int
    name: str
    file: str
    offset: int
    size: int


@dataclass
class _Resident:
    """The states that this process holds, by (folder, stage, partition), each with its name; and the plans, by folder."""

    states: dict[tuple[str, str, int], tuple[str, Any]] = field(default_factory=dict)
    plans: dict[str, tuple[str, Plan]] = field(default_factory=dict)


_HERE = _Resident()


def keyed(queries: Queries, work: Work, tasks: Iterable[int]) -> Iterator[Message]:
    """The keyed stage of some partitions; with one partition the relational stage too."""
    for p in tasks:
        try:
            yield from _keyed(queries, work, p)
        except (QueryStopped, OperatorFailed) as fault:
            yield _fault(fault)


def relational(queries: Queries, work: Work, tasks: Iterable[tuple[int, Sequence[Piece]]]) -> Iterator[Message]:
    """The relational stage of some partitions, each with what was emitted for it."""
    for p, pieces in tasks:
        try:
            yield from _relational(queries, work, p, pieces)
        except (QueryStopped, OperatorFailed) as fault:
            yield _fault(fault)


def _keyed(queries: Queries, work: Work, p: int) -> Iterator[Message]:
    feed, plan = _planned(queries, work)
    key = (work.folder, "keyed", p)
    part = _taken(key, work)
    replayed = work.since if part is None else ()
    if part is None:
        part = KeyedPartition.load(feed, plan, _file(work, "keyed", p).read_bytes())
        yield ("loaded", "", b"")
    outputs = [_step(part, work, p, span) for span in (*replayed, *work.fresh)]
    failpoint("executor.before_state")
    if work.dump:
        write(Path(work.folder, work.dump, f"keyed-{p}"), part.dump())
    _HERE.states[key] = (work.after, part)
    fresh = outputs[len(replayed) :]
    yield from _found(fresh)
    if has_relational(plan):
        # What a step emitted is numbered from the last one backwards: replayed steps are before 0, and most do not need them.
        numbered = [(i - len(replayed), output.emitted) for i, output in enumerate(outputs) if work.rewind or i >= len(replayed)]
        if work.partitions == 1:
            yield from _stepped_relational(queries, work, p, {i: {name: [rows] for name, rows in emitted.items()} for i, emitted in numbered})
        else:
            yield from _emitted(work, numbered)


def _step(part: KeyedPartition, work: Work, p: int, span: Span) -> KeyedOutput:
    rows = share(EventLog(*work.log), part.feed, span, p, work.partitions)
    return part.take(rows, span.max_t - part.feed.lateness)


def share(log: EventLog, feed: Feed, span: Span, p: int, partitions: int) -> pa.Table:
    """The rows of one partition among those of `span`, in order of seq."""
    found = [pa.Table.from_batches([], stamped_schema(feed))]
    buckets = range(BUCKETS) if partitions > BUCKETS else buckets_of_partition(p, partitions)
    for rows in log.part_between(span.first, span.stop, buckets):
        mine = rows if partitions == 1 else rows.take(pa.array(np.flatnonzero(entity_partitions(rows.column(ENTITY), partitions) == p)))
        found.append(conformed(mine, feed))
    return pa.concat_tables(found)


def _found(outputs: Sequence[KeyedOutput]) -> Iterator[Message]:
    for output in outputs:
        accepted = output.admitted.accepted
        counts = {
            "processed": accepted.num_rows,
            "duplicates": output.admitted.duplicates,
            "late": output.admitted.late.num_rows,
            "last_t": pc.max(accepted.column(TIME)).as_py() if accepted.num_rows else None,
        }
        yield ("counts", "", json.dumps(counts).encode())
        if output.admitted.late.num_rows:
            yield ("late", "", table_bytes(output.admitted.late))
        yield from _stated(output.changes)


def _stated(changes: Mapping[str, pa.RecordBatch]) -> Iterator[Message]:
    for name, found in changes.items():
        if found.num_rows:
            yield ("changes", name, _bytes(found))


def _emitted(work: Work, steps: Sequence[tuple[int, Mapping[str, pa.RecordBatch]]]) -> Iterator[Message]:
    """Puts the rows where all relational tasks reach them, and says which bytes are whose."""
    parts: list[bytes] = []
    pieces: list[tuple[int, int, str, str, int, int]] = []
    file, offset = str(Path(work.folder, "emitted", uuid.uuid4().hex)), 0
    for step, emitted in steps:
        for name, rows in emitted.items():
            homes = route_partitions(rows, work.partitions)
            for home in np.unique(homes).tolist():
                data = _bytes(rows.filter(pa.array(homes == home)))
                pieces.append((step, home, name, file, offset, len(data)))
                parts.append(data)
                offset += len(data)
    if parts:
        Path(file).parent.mkdir(exist_ok=True)
        with Path(file).open("wb") as target:
            target.writelines(parts)
    yield ("emitted", "", json.dumps(pieces).encode())


def _relational(queries: Queries, work: Work, p: int, pieces: Sequence[Piece]) -> Iterator[Message]:
    emitted: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    for piece in pieces:
        with Path(piece.file).open("rb") as source:
            source.seek(piece.offset)
            rows = table_from(source.read(piece.size)).combine_chunks().to_batches()
        emitted.setdefault(piece.step, {}).setdefault(piece.name, []).extend(rows)
    yield from _stepped_relational(queries, work, p, emitted)


def _stepped_relational(queries: Queries, work: Work, p: int, emitted: Mapping[int, Mapping[str, Sequence[pa.RecordBatch]]]) -> Iterator[Message]:
    feed, plan = _planned(queries, work)
    key = (work.folder, "relational", p)
    part = _taken(key, work)
    replayed = work.since if work.rewind else ()
    if part is None:
        if work.since and not work.rewind:
            yield ("missed", "", b"")
            return
        part = RelationalPartition.load(plan, _file(work, "relational", p).read_bytes())
        yield ("loaded", "", b"")
    for i, span in enumerate((*replayed, *work.fresh)):
        changes = part.take(emitted.get(i - len(replayed), {}), span.max_t - feed.lateness)
        if i >= len(replayed):
            yield from _stated(changes)
    if work.dump:
        write(Path(work.folder, work.dump, f"relational-{p}"), part.dump())
    _HERE.states[key] = (work.after, part)


def _taken(key: tuple[str, str, int], work: Work) -> Any:
    """The state to go on from, if it is here. It is here no more then: a task that breaks off leaves nothing behind."""
    name, part = _HERE.states.pop(key, ("", None))
    return part if name == work.before and not work.rewind else None


def _planned(queries: Queries, work: Work) -> tuple[Feed, Plan]:
    """Compiled once in each worker: workers are used again for the batches to come."""
    name, feed, registered, partitions = queries.value
    if _HERE.plans.get(work.folder, ("", {}))[0] != name:
        _HERE.plans[work.folder] = (name, plan_of(registered, feed, partitions))
        # Spark's worker collects garbage after every task: 80 ms with all that is loaded here, 1 ms when that is set aside as permanent.
        gc.collect()
        gc.freeze()
    return feed, _HERE.plans[work.folder][1]


def _file(work: Work, stage: str, p: int) -> Path:
    return Path(work.folder, work.snapshot, f"{stage}-{p}")


def has_relational(plan: Plan) -> bool:
    """Whether any operator has a relational stage."""
    return any(run.operator.relational is not None for run in plan.values())


def raise_fault(kind: str, name: str, payload: bytes) -> None:
    """The fault that broke off a task, if this message tells of one; nothing for other kinds."""
    if kind == "stopped":
        query, version, reason = json.loads(payload)
        raise QueryStopped((query, version), reason)
    if kind == "failed":
        raise OperatorFailed(name, payload.decode())


def write(path: Path, data: bytes) -> None:
    """`data` on disk under `path` when this returns, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _fault(fault: QueryStopped | OperatorFailed) -> Message:
    """For the driver, as a message: an exception would reach it as a text of Spark's, after three more tries."""
    if isinstance(fault, QueryStopped):
        return ("stopped", "", json.dumps([*fault.key, fault.reason]).encode())
    return ("failed", fault.name, fault.reason.encode())


def _bytes(batch: pa.RecordBatch) -> bytes:
    return table_bytes(pa.Table.from_batches([batch]))
