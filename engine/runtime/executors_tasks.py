"""What Spark's workers do with one batch: segments of the log in, changes out, each task for one partition of the feed.

    segments --divided--> rows by home of their entity --keyed--> rows by home of their route --relational--> changes

Between the tasks travel few large messages, tables as Arrow streams: Spark never takes a row apart (decision 13). A task loads the state of its
partition from the folder of the last position, and writes the one after its rows into the next folder, under a temporary name and renamed. A task
that is tried again does the same over: nothing it wrote before is read.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from engine.failpoints import failpoint
from engine.model.batch import ENTITY, SEQ, TIME
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import OperatorFailed, QueryStopped
from engine.runtime.container import table_bytes, table_from
from engine.runtime.evaluator import conformed, entity_partitions, route_partitions
from engine.runtime.partitions import KeyedPartition, Plan, RelationalPartition, plan_of
from engine.sources.segments import Segment

MESSAGES = pa.schema([("home", pa.int32()), ("kind", pa.string()), ("name", pa.string()), ("payload", pa.binary())])
"""What tasks send. `kind`: rows, changes and emitted of the operator `name`, late, counts (JSON), stopped, failed."""
SPARK_MESSAGES = "home int, kind string, name string, payload binary"

Message = tuple[int, str, str, bytes]


@dataclass(frozen=True)
class Work:
    """What the tasks of one batch do: rows after `position`, states from `before` to `after`. Travels to the workers.

    `queries` is a broadcast of (a name for them, feed, queries, partitions).
    """

    feed: Feed
    before: str
    after: str
    partitions: int
    position: int
    watermark: int
    queries: Any

    def whole(self, segments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Everything in one task, for one partition."""
        return self.relational(self.keyed(self.divided(segments)))

    def divided(self, segments: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each segment (`path`, `content`) by the partition of their entity."""
        for batch in segments:
            for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
                segment = Segment.parse(Path(path.as_py()))
                segment.expect(zlib.crc32(content.as_buffer()))
                yield _message_batch(self._divided(rows_of(content.as_buffer(), self.feed, self.position)))

    def _divided(self, rows: pa.Table) -> list[Message]:
        if rows.num_rows == 0:
            return []
        homes = entity_partitions(rows.column(ENTITY), self.partitions)
        shares = [(p, rows if self.partitions == 1 else rows.take(pa.array(np.flatnonzero(homes == p)))) for p in range(self.partitions)]
        return [(p, "rows", "", table_bytes(share)) for p, share in shares if share.num_rows]

    def keyed(self, messages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The keyed stage of one partition; what it emits goes on by the partition of its route."""
        p = _partition()
        rows = _in_order([table_from(payload) for _, _, _, payload in _messages(messages)], self.feed)
        try:
            part = KeyedPartition.load(self.feed, self._plan, Path(self.before, f"keyed-{p}").read_bytes())
            output = part.take(rows, self.watermark)
        except (QueryStopped, OperatorFailed) as fault:
            yield _message_batch([_fault(p, fault)])
            return
        failpoint("executor.before_state")
        write(Path(self.after, f"keyed-{p}"), part.dump())
        if not has_relational(part.plan):
            shutil.copyfile(Path(self.before, f"relational-{p}"), Path(self.after, f"relational-{p}"))
        accepted = output.admitted.accepted
        counts = {
            "rows": rows.num_rows,
            "processed": accepted.num_rows,
            "duplicates": output.admitted.duplicates,
            "last_t": pc.max(accepted.column(TIME)).as_py() if accepted.num_rows else None,
        }
        found: list[Message] = [(p, "counts", "", json.dumps(counts).encode())]
        if output.admitted.late.num_rows:
            found.append((p, "late", "", table_bytes(output.admitted.late)))
        found += [(p, "changes", name, _bytes(changes)) for name, changes in output.changes.items() if changes.num_rows]
        for name, emitted in output.emitted.items():
            homes = route_partitions(emitted, self.partitions)
            found += [(h, "emitted", name, _bytes(emitted.filter(pa.array(homes == h)))) for h in range(self.partitions) if (homes == h).any()]
        yield _message_batch(found)

    def relational(self, messages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The relational stage of one partition; what is no concern of its own passes through."""
        if not has_relational(self._plan):
            yield from messages
            return
        p = _partition()
        passed: list[Message] = []
        emitted: dict[str, list[pa.RecordBatch]] = {}
        for home, kind, name, payload in _messages(messages):
            if kind == "emitted":
                emitted.setdefault(name, []).extend(table_from(payload).combine_chunks().to_batches())
            else:
                passed.append((home, kind, name, payload))
        try:
            part = RelationalPartition.load(self._plan, Path(self.before, f"relational-{p}").read_bytes())
            found = part.take(emitted, self.watermark)
        except (QueryStopped, OperatorFailed) as fault:
            yield _message_batch([*passed, _fault(p, fault)])
            return
        write(Path(self.after, f"relational-{p}"), part.dump())
        passed += [(p, "changes", name, _bytes(changes)) for name, changes in found.items() if changes.num_rows]
        yield _message_batch(passed)

    @property
    def _plan(self) -> Plan:
        """Compiled once in each worker: workers are used again for the batches to come."""
        key, feed, registered, partitions = self.queries.value
        if key not in _PLANS:
            _PLANS.clear()
            _PLANS[key] = plan_of(registered, feed, partitions)
        return _PLANS[key]


_PLANS: dict[str, Plan] = {}


def has_relational(plan: Plan) -> bool:
    """Whether any operator has a relational stage."""
    return any(run.operator.relational is not None for run in plan.values())


def rows_of(content: pa.Buffer, feed: Feed, position: int) -> pa.Table:
    """The rows of a segment's bytes after `position`, in the columns of `stamped_schema`."""
    rows = conformed(pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False).replace_schema_metadata(None), feed)
    # Numbers are dense, so positions are differences.
    return rows.slice(min(rows.num_rows, max(0, position + 1 - rows.column(SEQ)[0].as_py()))) if rows.num_rows else rows


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


def _fault(partition: int, fault: QueryStopped | OperatorFailed) -> Message:
    """For the driver, as a message: an exception would reach it as a text of Spark's, after three more tries."""
    if isinstance(fault, QueryStopped):
        return (partition, "stopped", "", json.dumps([*fault.key, fault.reason]).encode())
    return (partition, "failed", fault.name, fault.reason.encode())


def _partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _in_order(pieces: Sequence[pa.Table], feed: Feed) -> pa.Table:
    """Rows of several segments by seq: each segment's are, and segments do not overlap."""
    sequence = sorted(pieces, key=lambda rows: rows.column(SEQ)[0].as_py())
    return pa.concat_tables([pa.Table.from_batches([], stamped_schema(feed)), *sequence])


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _bytes(batch: pa.RecordBatch) -> bytes:
    return table_bytes(pa.Table.from_batches([batch]))


def _message_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    columns = list(zip(*messages, strict=True)) or [()] * len(MESSAGES)
    return pa.RecordBatch.from_arrays([pa.array(column, kind) for column, kind in zip(columns, MESSAGES.types, strict=True)], schema=MESSAGES)
