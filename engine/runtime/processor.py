"""How one feed is processed exactly once: batches of the log, state snapshots, queries that come and go, recovery.

Knows neither Spark nor Django. The runtime hands over the rows of numbered batches; a `Store` keeps answers and the head of the feed in
one transaction each. Whatever dies whenever: the head says which rows are in the stored answers (`last_seq`) and which snapshot to go
on from; everything after it is done again from the log, and what had been stored already is not stored twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from engine.failpoints import failpoint
from engine.model.batch import SEQ
from engine.model.changes import ANSWERS
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator, Outcome
from engine.runtime.snapshots import Snapshot, Snapshots, SnapshotUnusable
from engine.sources.eventlog import EventLog

QueryKey = tuple[str, int]
"""A query's id and version."""
SNAPSHOT_SHARE = 0.1
"""Snapshots take at most about this share of the time; more rows of the log are replayed after a crash instead."""
JOIN_ROWS = 50_000
"""A new query joins when it is at most this far behind: the rest is caught up while the batches wait."""
HISTORY_ROWS = 16_384
"""Rows of history between two transactions of a query that catches up: a batch that waits for its turn waits for little."""


class MissingRows(RuntimeError):
    """Rows beyond the last stored one are in no file of the log any more: going on would lose them silently."""


class Paused(RuntimeError):
    """The batch was not taken because its streaming query is being ended; the next one brings its rows again."""


@dataclass(frozen=True)
class Head:
    """How far the feed has been processed, as stored with the answers. `queries` are those that have joined."""

    epoch: int
    checkpoint: int = 0
    last_batch: int = -1
    last_seq: int = -1
    query_version: int = 0
    queries: tuple[QueryKey, ...] = ()
    snapshot: str = ""
    snapshot_seq: int = -1


@dataclass(frozen=True)
class Commit:
    """One transaction: what a batch found (`batch` is its number) or what happened between two batches (`batch` null)."""

    head: Head
    batch: int | None
    changes: pa.Table
    late: pa.Table | None = None
    backfill: bool = False
    measures: Mapping[str, Any] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)


class Delivered(Protocol):
    """The stamped rows of a batch in any order: a Spark frame."""

    def toArrow(self) -> pa.Table:
        """All of them in this process."""


class Store(Protocol):
    """Where answers and heads are kept. Raises whatever makes going on impossible (a newer epoch, a database that stays away)."""

    def open(self) -> Head:
        """The feed's head, taken over for this epoch."""

    def version(self) -> int:
        """The feed's query version now."""

    def queries(self, version: int) -> Sequence[RegisteredQuery]:
        """The enabled queries of that version, checked."""

    def recall(self, keys: Sequence[QueryKey]) -> Sequence[RegisteredQuery]:
        """Queries that have joined, in the order of `keys`; one that exists no more is left out."""

    def record(self, checkpoint: int, batch: int, version: int) -> None:
        """Writes down, before the batch is evaluated, which query version it is evaluated under.

        A repetition replaces the record: the attempt before left nothing behind, so queries that joined meanwhile take part.
        """

    def commit(self, commit: Commit) -> bool:
        """Stores it with the new head, or nothing; False when the batch had been stored before."""

    def catching_up(self, report: Mapping[str, Any]) -> None:
        """How far new queries have read the history; empty when none is reading."""

    def tell(self, kind: str, text: str) -> None:
        """Something that users should know."""


class FeedProcessor:
    """One feed in one process. `process` and `follow` may be called from different threads; anything that raises ends its use."""

    def __init__(self, feed: Feed, log: EventLog, store: Store, snapshots: Snapshots, *, partitions: int = 1) -> None:
        self.feed, self.log, self.store, self.snapshots, self.partitions = feed, log, store, snapshots, partitions
        self._batch_lock = threading.RLock()
        self._commit_lock = threading.Lock()
        self._paused = False
        self._batch_since: float | None = None
        self._committed_at = time.monotonic()
        self._snapshots_written = 0
        self._snapshot_cost_s = 0.0
        self._snapshot_at = 0.0
        self.stopping = threading.Event()
        self.batches = 0
        self.head = store.open()
        self.queries: dict[QueryKey, RegisteredQuery] = {query.key: query for query in store.recall(self.head.queries)}
        self.evaluator = self._recover()

    # -- recovery -----------------------------------------------------------------------------------------------------------------

    def _recover(self) -> Evaluator:
        """The evaluator as it stood after `head.last_seq`: from the snapshot and the rows after it, or from the log alone."""
        evaluator = self._from_snapshot()
        for rows in self.log.read(evaluator.position + 1, self.head.last_seq + 1):
            self._after(evaluator.position, rows)
            evaluator.process(rows)
        if evaluator.position != self.head.last_seq:
            raise MissingRows(f"{self.feed.name}: the log ends at row {evaluator.position}, but answers up to {self.head.last_seq} are stored")
        return evaluator

    def _from_snapshot(self) -> Evaluator:
        queries = list(self.queries.values())
        if self.head.last_seq < 0 or tuple(self.queries) != self.head.queries:
            return self._from_start(queries)
        try:
            snapshot = self.snapshots.read(self.head.snapshot)
            if snapshot.facts["position"] != self.head.snapshot_seq:
                raise SnapshotUnusable(f"snapshot {self.head.snapshot} is of another position")
            return self._load(queries, snapshot.data)
        except (SnapshotUnusable, ValueError, KeyError, pa.ArrowException) as error:
            self.store.tell("rebuilt", f"{self.feed.name}: the state is being rebuilt from the log ({error}).")
            return self._from_start(queries)

    def _from_start(self, queries: Sequence[RegisteredQuery]) -> Evaluator:
        return self._at_oldest(self._begin(queries))

    def _begin(self, queries: Sequence[RegisteredQuery]) -> Evaluator:
        return Evaluator.start(self.feed, queries, partitions=self.partitions)

    def _load(self, queries: Sequence[RegisteredQuery], data: bytes) -> Evaluator:
        return Evaluator.load(self.feed, queries, data)

    def _at_oldest(self, evaluator: Evaluator) -> Evaluator:
        """A fresh evaluator before the oldest row that the log still has."""
        oldest = self.log.start
        if oldest > 0:
            evaluator.skip_to(oldest - 1)
        return evaluator

    # -- batches ------------------------------------------------------------------------------------------------------------------

    def process(self, checkpoint: int, batch: int, delivered: Delivered) -> None:
        """Takes the batch: its answers are stored, or were before, when this returns."""
        with self._turn():
            if (checkpoint, batch) <= (self.head.checkpoint, self.head.last_batch):
                return
            started = self._batch_since = time.monotonic()
            self.store.record(checkpoint, batch, self.head.query_version)
            failpoint("batch.before_evaluate")
            outcomes = self._evaluate(delivered)
            failpoint("batch.after_evaluate")
            head = replace(self.head, checkpoint=checkpoint, last_batch=batch, last_seq=self.evaluator.position)
            head = self._maybe_snapshot(head)
            failpoint("batch.after_snapshot")
            now = time.monotonic()
            self._commit(_batch_commit(head, outcomes, self.evaluator, now - started, now - self._committed_at))
            self._committed_at = now
            self.batches += 1
            self._batch_since = None
            failpoint("batch.after_commit")

    def _evaluate(self, delivered: Delivered) -> list[Outcome]:
        return [self.evaluator.process(rows) for rows in self._in_order(delivered.toArrow())]

    def batch_seconds(self) -> float:
        """How long the batch that is under way has taken; 0 between batches."""
        since = self._batch_since
        return 0.0 if since is None else time.monotonic() - since

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Holds the batch lock. Raises Paused instead of waiting for a pause to end."""
        while not self._batch_lock.acquire(timeout=0.05):
            if self._paused:
                raise Paused
        try:
            if self._paused:
                raise Paused
            yield
        finally:
            self._batch_lock.release()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """No batch is under way inside, and none begins: those that want to raise Paused."""
        self._paused = True
        try:
            with self._batch_lock:
                yield
        finally:
            self._paused = False

    def _commit(self, commit: Commit) -> None:
        with self._commit_lock:
            self.store.commit(commit)
            if commit.head.snapshot != self.head.snapshot:
                # Of the older ones the last stays: its head may be the one that is read while this transaction's answer is lost.
                self.snapshots.keep_only({commit.head.snapshot, self.head.snapshot})
            self.head = commit.head

    def _in_order(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The log's rows from the next one on up to the last of `rows`, without gap or repetition, in order of seq.

        Rows that were stored before are left out (a new checkpoint reads all files again); rows that Spark did not deliver yet
        (its listing of the folder is no snapshot) are read from the log.
        """
        rows = _sorted(rows)
        seq = rows.column(SEQ).to_numpy()
        begin = int(np.searchsorted(seq, self.evaluator.position, side="right"))
        if begin == len(seq):
            return
        rows, seq = rows.slice(begin), seq[begin:]
        breaks = np.flatnonzero(np.diff(seq) != 1) + 1
        edges = [0, *breaks.tolist(), len(seq)]
        for low, high in pairwise(edges):
            yield from self._between(self.evaluator.position + 1, int(seq[low]))
            yield rows.slice(low, high - low)

    def _between(self, first: int, stop: int) -> Iterator[pa.Table]:
        """Rows [first, stop) from the log. Raises MissingRows when it does not have them all."""
        position = first - 1
        if first < stop:
            for rows in self.log.read(first, stop):
                self._after(position, rows)
                yield rows
                position += rows.num_rows
        if position < stop - 1:
            raise MissingRows(f"{self.feed.name}: rows {position + 1} to {stop - 1} are in no file of the log")

    def _after(self, position: int, rows: pa.Table) -> None:
        first = rows.column(SEQ)[0].as_py() if rows.num_rows else position + 1
        if first != position + 1:
            raise MissingRows(f"{self.feed.name}: rows {position + 1} to {first - 1} are in no file of the log")

    def _maybe_snapshot(self, head: Head, *, force: bool = False) -> Head:
        """`head` with a new snapshot if one is due: each batch while that is cheap."""
        now = time.monotonic()
        if not force and head.snapshot and now - self._snapshot_at < self._snapshot_cost_s / SNAPSHOT_SHARE:
            return head
        self._snapshots_written += 1
        name = f"{head.epoch}-{head.checkpoint}-{head.last_batch}-{self._snapshots_written}"
        position = self.evaluator.position
        self.snapshots.write(name, Snapshot({"position": position, "queries": list(head.queries)}, self.evaluator.dump()))
        self._snapshot_at = time.monotonic()
        self._snapshot_cost_s = self._snapshot_at - now
        return replace(head, snapshot=name, snapshot_seq=position)

    # -- queries that come and go -------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Brings the running queries to the feed's present version; returns at once when there is nothing to do.

        Queries that are gone stop at the next batch boundary. New ones first answer for the history, beside the batches.
        """
        version = self.store.version()
        if version == self.head.query_version:
            return
        wanted = {query.key: query for query in self.store.queries(version)}
        if any(key not in wanted for key in self.queries):
            self._join({key: query for key, query in self.queries.items() if key in wanted}, self.head.query_version, None)
        fresh = {key: query for key, query in wanted.items() if key not in self.queries}
        if not fresh:
            self._join(wanted, version, None)
            return
        CatchUp(self, version, wanted, list(fresh.values())).run()

    def _join(self, queries: Mapping[QueryKey, RegisteredQuery], version: int, side: Evaluator | None) -> None:
        """From the next batch on `queries` run. `side` has caught up the new ones to the present position."""
        with self._batch_lock:
            self.evaluator.register(list(queries.values()), side)
            head = replace(self.head, query_version=version, queries=tuple(queries))
            head = self._maybe_snapshot(head, force=True)
            failpoint("join.before_commit")
            self._commit(Commit(head, None, NOTHING))
            self.queries = dict(queries)


class CatchUp:
    """New queries reading the history of a feed that goes on running, until they are where the feed is."""

    def __init__(self, processor: FeedProcessor, version: int, wanted: Mapping[QueryKey, RegisteredQuery], fresh: Sequence[RegisteredQuery]) -> None:
        self.processor, self.version, self.wanted, self.fresh = processor, version, wanted, fresh
        self.side = processor._at_oldest(processor.evaluator.beside(fresh))

    def run(self) -> None:
        """Reads and joins; gives up, for `follow` to begin anew, when the queries change meanwhile or the process is to stop."""
        processor = self.processor
        try:
            while processor.evaluator.position - self.side.position > JOIN_ROWS:
                if not self._read(processor.evaluator.position, patient=True):
                    return
            with processor._batch_lock:
                if self._read(processor.evaluator.position, patient=False):
                    failpoint("join.before_register")
                    processor._join(self.wanted, self.version, self.side)
        finally:
            processor.store.catching_up({})

    def _read(self, last: int, *, patient: bool) -> bool:
        """Up to row `last`; False when there is no point in going on."""
        processor = self.processor
        for rows in _pieces(processor.log.read(self.side.position + 1, last + 1)):
            if processor.stopping.is_set() or processor.store.version() != self.version:
                return False
            started = time.monotonic()
            outcome = self.side.process(rows)
            self._keep(outcome.changes)
            processor.store.catching_up({"queries": [query.id for query in self.fresh], "done": self.side.position, "to": last})
            if patient:
                # Half of one core at most: the batches of the running queries go on at their pace.
                processor.stopping.wait(min(1.0, time.monotonic() - started))
        return True

    def _keep(self, changes: pa.Table) -> None:
        """Stores what was found. A repetition after a crash meets the same rows."""
        processor = self.processor
        if changes.num_rows:
            with processor._commit_lock:
                processor.store.commit(Commit(processor.head, None, changes, backfill=True))


NOTHING: pa.Table = ANSWERS.empty_table()


def _batch_commit(head: Head, outcomes: Sequence[Outcome], evaluator: Evaluator, seconds: float, since_last: float) -> Commit:
    """`seconds` the batch took; its rows came within `since_last` seconds."""
    processed, duplicates = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("processed", "duplicates"))
    late = _joined(outcome.late for outcome in outcomes)
    rows = processed + duplicates + (late.num_rows if late is not None else 0)
    return Commit(
        head,
        head.last_batch,
        pa.concat_tables([NOTHING, *(outcome.changes for outcome in outcomes)]),
        late=late,
        measures={
            "watermark": evaluator.watermark,
            "max_t": _newest(evaluator),
            "batch_ms": seconds * 1000,
            "rows_per_s": rows / max(since_last, 0.001),
        },
        counted={"processed": processed, "duplicates": duplicates, "late": late.num_rows if late is not None else 0},
    )


def _newest(evaluator: Evaluator) -> int | None:
    return None if evaluator.watermark is None else evaluator.watermark + evaluator.feed.lateness


def _pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        for offset in range(0, table.num_rows, HISTORY_ROWS):
            yield table.slice(offset, HISTORY_ROWS)


def _joined(tables: Iterable[pa.Table]) -> pa.Table | None:
    full = [table for table in tables if table.num_rows]
    return pa.concat_tables(full, promote_options="default") if full else None


def _sorted(rows: pa.Table) -> pa.Table:
    """By seq, each once. Spark delivers files of one batch in any order, mostly the right one."""
    seq = rows.column(SEQ).to_numpy()
    if len(seq) < 2 or bool((np.diff(seq) > 0).all()):
        return rows
    order = np.argsort(seq, kind="stable")
    ordered = seq[order]
    return rows.take(pa.array(order[np.append(True, np.diff(ordered) > 0)]))
