"""What a feed's clock lets through: late rows out, exact duplicates out, the rest in order of event time.

A row is late when `t < clock - lateness`, which is a fact of the stamped row itself. Of the others, one that equals an earlier accepted row in all
columns is a duplicate of it. It has the earlier row's `t`, so only rows with t >= watermark have to be remembered: whatever could equal an older
one is late.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import CLOCK, EVENT, SEQ, TIME
from engine.model.events import HEARTBEAT, row_schema
from engine.model.feed import Feed
from engine.runtime.blobs import pack, pack_rows, unpack, unpack_rows
from engine.runtime.fingerprints import SeenRows, fingerprints

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Passed:
    """What the gate made of a batch: `accepted` rows in arrival order, `late` ones, and how many were duplicates."""

    accepted: pa.RecordBatch
    late: pa.Table
    duplicates: int


class Gate:
    """Judges the stamped rows of one feed, or of some of its entities: duplicates share their entity.

    Rows come in order of seq. `reached` is the greatest clock or `t` seen, null before any row.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.reached: int | None = None
        self._seen = SeenRows()
        self._columns = row_schema(feed).names

    @property
    def watermark(self) -> int | None:
        """Every row still to be accepted has t >= this; null before any row."""
        return None if self.reached is None else self.reached - self.feed.lateness

    def take(self, rows: pa.Table) -> Passed:
        """Judges `rows` (stamped, sorted by seq) and moves the clock."""
        batch = single_batch(rows)
        t = int64s(batch, TIME)
        late = self._late(batch, t)
        events = ~self._heartbeats(batch) & ~late
        self._move(batch, t)
        duplicates = 0
        if self.feed.dedupe and len(t):
            repeated = self._repeated(batch, t, events)
            duplicates = int(np.count_nonzero(repeated))
            events &= ~repeated
        accepted = batch if events.all() else batch.filter(pa.array(events))
        return Passed(accepted, rows.filter(pa.array(late)) if late.any() else rows.slice(0, 0), duplicates)

    def _late(self, batch: pa.RecordBatch, t: Ints) -> Bools:
        clock = pc.fill_null(batch.column(CLOCK), -(2**62)).to_numpy(zero_copy_only=False)
        late: Bools = t < clock - self.feed.lateness
        return late

    def _heartbeats(self, batch: pa.RecordBatch) -> Bools:
        return np.asarray(pc.fill_null(pc.equal(batch.column(EVENT), HEARTBEAT), False).to_numpy(zero_copy_only=False), np.bool_)

    def _move(self, batch: pa.RecordBatch, t: Ints) -> None:
        if len(t):
            # The clock of a row tells of rows that another partition got; a late row is behind its own clock.
            clock = pc.max(batch.column(CLOCK)).as_py()
            reached = int(t.max()) if clock is None else max(int(t.max()), clock)
            self.reached = reached if self.reached is None else max(self.reached, reached)

    def _repeated(self, batch: pa.RecordBatch, t: Ints, events: Bools) -> Bools:
        candidates = np.flatnonzero(events)
        first, second = fingerprints(batch, self._columns)
        fresh = self._seen.add(first[candidates], second[candidates], t[candidates])
        watermark = self.watermark
        assert watermark is not None
        self._seen.forget_before(watermark)
        repeated = np.zeros(len(t), np.bool_)
        repeated[candidates[~fresh]] = True
        return repeated

    def dump(self) -> bytes:
        reached = b"" if self.reached is None else str(self.reached).encode()
        return pack({"reached": reached, "seen": self._seen.dump()})

    @classmethod
    def load(cls, feed: Feed, data: bytes) -> Gate:
        gate, parts = cls(feed), unpack(data)
        gate.reached = int(parts["reached"]) if parts["reached"] else None
        gate._seen = SeenRows.load(parts["seen"])
        return gate

    @property
    def remembered(self) -> int:
        """Rows kept to know their duplicates."""
        return len(self._seen)


class Reorderer:
    """Keeps rows until the watermark reaches them and hands them over sorted by (t, seq).

    Invariant: each waiting run is sorted by (t, seq) and not empty. Runs are merged when there are many, the smallest first, so a row is
    moved a logarithmic number of times however small the batches are.
    """

    MAX_RUNS = 32

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._runs: list[pa.RecordBatch] = []

    def __len__(self) -> int:
        return sum(run.num_rows for run in self._runs)

    def add(self, rows: pa.RecordBatch) -> None:
        """Takes accepted rows sorted by seq, all later in arrival than those before."""
        if rows.num_rows:
            self._runs.append(sorted_by_time(rows))
            if len(self._runs) > self.MAX_RUNS:
                self._merge_smallest()

    def release(self, watermark: int) -> pa.RecordBatch:
        """All waiting rows with t <= watermark, sorted by (t, seq)."""
        ready, waiting = [], []
        for run in self._runs:
            count = int(np.searchsorted(int64s(run, TIME), watermark, side="right"))
            if count:
                ready.append(run.slice(0, count))
            if count < run.num_rows:
                waiting.append(run.slice(count))
        self._runs = waiting
        return merged(ready) if ready else empty_batch(self.feed)

    def _merge_smallest(self) -> None:
        sizes = [(run.num_rows, position) for position, run in enumerate(self._runs)]
        chosen = {position for _, position in heapq.nsmallest(self.MAX_RUNS // 2, sizes)}
        small = [run for position, run in enumerate(self._runs) if position in chosen]
        self._runs = [run for position, run in enumerate(self._runs) if position not in chosen] + [merged(small)]

    def dump(self) -> bytes:
        return pack_rows(merged(self._runs) if self._runs else empty_batch(self.feed))

    @classmethod
    def load(cls, feed: Feed, data: bytes) -> Reorderer:
        reorderer, rows = cls(feed), unpack_rows(data)
        if rows.num_rows:
            reorderer._runs = [rows]
        return reorderer


def empty_batch(feed: Feed) -> pa.RecordBatch:
    """No rows, in the columns that operators see: those of the feed and `seq`."""
    schema = row_schema(feed).append(pa.field(SEQ, pa.int64()))
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)


def sorted_by_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that are sorted by seq (among equal t at least) sorted by (t, seq)."""
    t = int64s(rows, TIME)
    # Most feeds bring most batches in order: looking is cheaper than sorting, and nothing is copied.
    if len(t) < 2 or bool((t[1:] >= t[:-1]).all()):
        return rows
    return rows.take(pa.array(np.argsort(t, kind="stable")))


def merged(runs: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Several runs sorted by (t, seq) as one."""
    if len(runs) == 1:
        return runs[0]
    rows = pa.concat_batches(runs)
    t, seq = int64s(rows, TIME), int64s(rows, SEQ)
    in_order = (t[1:] > t[:-1]) | ((t[1:] == t[:-1]) & (seq[1:] > seq[:-1]))
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
