"""The gate of a feed: removes late rows and exact duplicates, and sorts the rest by event time.

A row is late when `t < clock - lateness`, which is a fact of the stamped row itself. Of the
others, one that equals an earlier accepted row in all columns is a duplicate of it. It has
the earlier row's `t`, so only rows with t >= watermark have to be remembered: whatever could
equal an older one is late.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import ENTITY, EVENT, SEQ, TIME
from engine.model.clock import in_time
from engine.model.events import HEARTBEAT, row_schema
from engine.model.feed import Feed
from engine.runtime.container import pack, table_bytes, table_from, unpack
from engine.runtime.fingerprints import SeenRows, fingerprints

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Admitted:
    """The gate's result for a batch.

    `accepted` are the events among its rows as they came, with their `clock`; `ready` all
    events that the watermark has reached now, sorted by (t, seq), without it. `late` are
    the late rows as they came.
    """

    accepted: pa.RecordBatch
    ready: pa.RecordBatch
    late: pa.Table
    duplicates: int


class Gate:
    """Judges the stamped rows of one feed, or of some of its entities: duplicates share their
    entity. Rows come in order of seq."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._seen = SeenRows()
        self._waiting = Reorderer(feed)
        self._columns = row_schema(feed).names

    def take(self, stamped: pa.Table, watermark: int) -> Admitted:
        """Judges `stamped` (in the columns of `stamped_schema`). `watermark` is the feed's after
        all partitions' rows: every row still to be accepted has t >= watermark."""
        batch = single_batch(stamped)
        t = int64s(batch, TIME)
        late: Bools = ~np.asarray(in_time(batch, self.feed.lateness).to_numpy(zero_copy_only=False), np.bool_)
        events = ~self._heartbeats(batch) & ~late
        duplicates = self._drop_repeated(batch, t, events, watermark) if self.feed.dedupe and len(t) else 0
        accepted = batch if events.all() else batch.filter(pa.array(events))
        self._waiting.add(accepted.select([*self._columns, SEQ]))
        return Admitted(accepted, self._waiting.release(watermark), stamped.filter(pa.array(late)) if late.any() else stamped.slice(0, 0), duplicates)

    def _heartbeats(self, batch: pa.RecordBatch) -> Bools:
        return np.asarray(pc.fill_null(pc.equal(batch.column(EVENT), HEARTBEAT), False).to_numpy(zero_copy_only=False), np.bool_)

    def _drop_repeated(self, batch: pa.RecordBatch, t: Ints, events: Bools, watermark: int) -> int:
        """Takes duplicates out of `events`; how many they were."""
        candidates = np.flatnonzero(events)
        first, second = fingerprints(batch, self._columns)
        fresh = self._seen.add(first[candidates], second[candidates], t[candidates])
        self._seen.forget_before(watermark)
        events[candidates[~fresh]] = False
        return len(fresh) - int(np.count_nonzero(fresh))

    def dump(self) -> bytes:
        return pack({}, {"seen": self._seen.dump(), "waiting": self._waiting.dump()})

    @classmethod
    def load(cls, feed: Feed, data: bytes) -> Gate:
        """The gate that was dumped, under the same feed or one that has more columns since: rows of
        before have null there. Raises ValueError."""
        gate, (_, parts) = cls(feed), unpack(data)
        waiting = single_batch(table_from(parts["waiting"]))
        gate._seen, gate._waiting = SeenRows.load(parts["seen"]), Reorderer.load(feed, waiting)
        if gate.rows_kept and (added := len(gate._columns) + 1 - len(waiting.schema.names)):
            if [*gate._columns[:-added], SEQ] != waiting.schema.names:
                raise ValueError("the feed's columns are others, not only more")
            gate._seen = gate._seen.with_nulls(added)
        return gate

    @classmethod
    def union(cls, feed: Feed, gates: Sequence[Gate]) -> Gate:
        """The gate of all entities, from gates that have some of them each, at the same row."""
        gate = cls(feed)
        waiting = [run for one in gates for run in one._waiting.runs]
        gate._seen = SeenRows.union([one._seen for one in gates])
        gate._waiting = Reorderer(feed, [merged(waiting)] if waiting else [])
        return gate

    def divided(self, partitions: int, partition_of: Callable[[pa.Array], Ints]) -> list[Gate]:
        """Inverse of `union`: `partition_of` gives the partition of each entity. Fingerprints do
        not show whose they are: each gate has all of them."""
        waiting = self._waiting.rows
        partition_of_row, gates = partition_of(waiting.column(ENTITY)), []
        for p in range(partitions):
            gate, own = Gate(self.feed), waiting.filter(pa.array(partition_of_row == p))
            gate._seen, gate._waiting = SeenRows.union([self._seen]), Reorderer(self.feed, [own] if own.num_rows else [])
            gates.append(gate)
        return gates

    @property
    def waiting(self) -> pa.RecordBatch:
        """Accepted rows that the watermark has not reached."""
        return self._waiting.rows

    @property
    def rows_kept(self) -> int:
        """Rows that wait and rows remembered to know their duplicates."""
        return len(self._waiting) + len(self._seen)

    def check(self) -> None:
        self._seen.check()
        self._waiting.check()


class Reorderer:
    """Keeps rows until the watermark reaches them and hands them over sorted by (t, seq).

    Invariant: each waiting run is sorted by (t, seq) and not empty. Runs are merged when
    there are many, the smallest first, so a row is moved a logarithmic number of times
    however small the batches are.
    """

    MAX_RUNS = 32

    def __init__(self, feed: Feed, runs: Sequence[pa.RecordBatch] = ()) -> None:
        self.feed = feed
        self.runs = list(runs)

    def __len__(self) -> int:
        return sum(run.num_rows for run in self.runs)

    @property
    def rows(self) -> pa.RecordBatch:
        """All that wait, sorted by (t, seq)."""
        return merged(self.runs) if self.runs else empty_batch(self.feed)

    def add(self, rows: pa.RecordBatch) -> None:
        """Takes accepted rows sorted by seq, all later in arrival than those before."""
        if rows.num_rows:
            self.runs.append(sorted_by_time(rows))
            if len(self.runs) > self.MAX_RUNS:
                self._merge_smallest()

    def release(self, watermark: int) -> pa.RecordBatch:
        """All waiting rows with t <= watermark, sorted by (t, seq)."""
        ready, waiting = [], []
        for run in self.runs:
            count = int(np.searchsorted(int64s(run, TIME), watermark, side="right"))
            if count:
                ready.append(run.slice(0, count))
            if count < run.num_rows:
                waiting.append(run.slice(count))
        self.runs = waiting
        return merged(ready) if ready else empty_batch(self.feed)

    def _merge_smallest(self) -> None:
        sizes = [(run.num_rows, position) for position, run in enumerate(self.runs)]
        chosen = {position for _, position in heapq.nsmallest(self.MAX_RUNS // 2, sizes)}
        small = [run for position, run in enumerate(self.runs) if position in chosen]
        self.runs = [run for position, run in enumerate(self.runs) if position not in chosen] + [merged(small)]

    def dump(self) -> bytes:
        return table_bytes(pa.Table.from_batches([self.rows]))

    @classmethod
    def load(cls, feed: Feed, rows: pa.RecordBatch) -> Reorderer:
        return cls(feed, [widened(rows, feed)] if rows.num_rows else [])

    def check(self) -> None:
        for run in self.runs:
            assert run.num_rows
            keys = list(zip(int64s(run, TIME).tolist(), int64s(run, SEQ).tolist(), strict=True))
            assert keys == sorted(set(keys))


def empty_batch(feed: Feed) -> pa.RecordBatch:
    """No rows, in the columns that operators see: those of the feed and `seq`."""
    schema = row_schema(feed).append(pa.field(SEQ, pa.int64()))
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)


def widened(rows: pa.RecordBatch, feed: Feed) -> pa.RecordBatch:
    """Rows of a state in the columns of `empty_batch`: null in those that the feed has got
    since."""
    schema, names = empty_batch(feed).schema, set(rows.schema.names)
    if rows.schema.equals(schema):
        return rows
    columns = [rows.column(one.name) if one.name in names else pa.nulls(rows.num_rows, one.type) for one in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def sorted_by_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that are sorted by seq (among equal t at least) sorted by (t, seq)."""
    t = int64s(rows, TIME)
    # Most feeds bring most batches in order: looking is cheaper than
    # sorting, and nothing is copied.
    if len(t) < 2 or bool((t[1:] >= t[:-1]).all()):
        return rows
    return rows.take(pa.array(np.argsort(t, kind="stable")))


def merged(runs: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows sorted by (t, seq); equal ones keep their order."""
    rows = runs[0] if len(runs) == 1 else pa.concat_batches(runs)
    t, seq = int64s(rows, TIME), int64s(rows, SEQ)
    in_order = (t[1:] > t[:-1]) | ((t[1:] == t[:-1]) & (seq[1:] >= seq[:-1]))
    return rows if bool(in_order.all()) else rows.take(pa.array(np.lexsort((seq, t))))


def single_batch(rows: pa.Table) -> pa.RecordBatch:
    """A table's rows as one batch."""
    if rows.num_rows == 0:
        return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in rows.schema.types], schema=rows.schema)
    batches = rows.to_batches()
    return batches[0] if len(batches) == 1 else rows.combine_chunks().to_batches()[0]


def int64s(rows: pa.RecordBatch, name: str) -> Ints:
    column: Ints = rows.column(name).to_numpy(zero_copy_only=False)
    return column
