"""How one feed is processed exactly once: batches, snapshots, changes of queries, recovery.

Knows neither Spark nor Django. A batch is what the log has beyond the stored rows; a `Store` keeps
answers and the head of the feed in one transaction each. After any crash the head shows which rows
are in the stored answers (`last_seq`) and which snapshot to continue from; everything after it is
repeated from the log, and nothing is stored twice.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import pyarrow as pa

from engine.failpoints import failpoint
from engine.families import family_of
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.operator import OperatorFailed, QueryStopped, RegisteredQuery
from engine.runtime import steps
from engine.runtime.batch_commit import batch_commit
from engine.runtime.bisection import failing_queries
from engine.runtime.catch_up import CatchUp
from engine.runtime.derived import GraphEvaluator, in_graph_order, with_upstream, without_upstream
from engine.runtime.evaluator import Evaluator, Outcome
from engine.runtime.snapshots import Snapshot, Snapshots, SnapshotUnusable
from engine.runtime.store import NOTHING, Commit, Head, QueryKey, StoppedQuery, Store, StoreTooSlow
from engine.runtime.storing import StoreQueue
from engine.sources.eventlog import EventLog, MissingRows, Span
from engine.sources.store import StoreUnavailable

BATCH_ROWS = 400_000
"""Rows of one batch at most, unless a single segment has more. Bounds the memory that a backlog
needs, and the time until the first of its answers is seen; a batch of a second at full load makes
the fixed cost of each small."""
SNAPSHOT_SHARE = 0.05
"""Snapshots take at most about this share of the time: fewer mean a longer replay after a crash."""
JOIN_ROWS = 50_000
"""A new query joins when it is at most this far behind; the batches wait for the rest."""
TRIES = 3
"""An operator's failure is investigated this often before the process ends."""
AHEAD_ROWS = 10_000
"""So many rows are evaluated while the batch before is stored. Fewer wait for more to come."""
NO_LIMIT = sys.maxsize


class FeedProcessor:
    """One feed in one process. `process` and `follow` may be called from different threads;
    anything that raises ends its use.

    An executor for `storing` stores a batch while the next is evaluated; else `process` does.
    """

    def __init__(
        self,
        feed: Feed,
        log: EventLog,
        store: Store,
        snapshots: Snapshots,
        *,
        partitions: int = 1,
        batch_rows: int = BATCH_ROWS,
        storing: Executor | None = None,
    ) -> None:
        self.feed, self.log, self.store, self.snapshots = feed, log, store, snapshots
        self.partitions, self.batch_rows = partitions, batch_rows
        self._batch_lock = threading.RLock()
        self._commit_lock = threading.Lock()
        self._storing = StoreQueue(storing)
        self._part_since: float | None = None
        self._part_rows = NO_LIMIT
        self._committed_at = time.monotonic()
        self._snapshots_written = 0
        self._dump_s = 0.0
        self._snapshot_cost_s = 0.0
        self._snapshot_at = 0.0
        self.stopping = threading.Event()
        self.batches = 0
        self.head = store.open()
        self.queries: dict[QueryKey, RegisteredQuery] = {query.key: query for query in store.recall(self.head.queries)}
        self._known = dict(self.queries)
        self._keys = tuple(self.queries)
        self._stopped: list[StoppedQuery] = []
        self._stopped_ever: set[QueryKey] = set()
        self.snapshots.adopt([self.head.snapshot])
        self.evaluator = self._recover()
        self._sweep()
        if self._stopped:
            self._store_part([])

    # -- recovery ----------------------------------------------------------------------------------

    def _recover(self) -> GraphEvaluator:
        """The evaluator of `queries` after `head.last_seq`; those that cannot are stopped."""
        tries = 0
        while True:
            try:
                return self._recovered(list(self.queries.values()))
            except QueryStopped as stop:
                self._give_up(StoppedQuery(stop.key, stop.reason))
            except OperatorFailed as failure:
                tries += not self._look_into(failure, None)
                if tries == TRIES:
                    raise

    def _recovered(self, queries: Sequence[RegisteredQuery]) -> GraphEvaluator:
        """`queries`, some of those that had joined, after `head.last_seq`: from the snapshot and
        the rows after it, or from the log alone."""
        evaluator = self._from_snapshot(queries)
        self._replay(evaluator, self.head.last_seq + 1)
        if evaluator.position != self.head.last_seq:
            reason = Message("it ends at row {end}, but answers up to {last} are stored", end=evaluator.position, last=self.head.last_seq)
            raise MissingRows(self.feed.name, reason)
        return evaluator

    def _replay(self, evaluator: GraphEvaluator, stop: int) -> None:
        """Replays up to row `stop - 1`; the answers are stored already."""
        for rows in self.log.all_between(evaluator.position + 1, stop):
            evaluator.process(rows)

    def _from_snapshot(self, queries: Sequence[RegisteredQuery]) -> GraphEvaluator:
        if self.head.last_seq < 0 or tuple(self._known) != self.head.queries:
            return self._from_start(queries)
        try:
            snapshot = self.snapshots.read(self.head.snapshot)
            if snapshot.facts["position"] != self.head.snapshot_seq:
                raise SnapshotUnusable(f"snapshot {self.head.snapshot} is of another position")
            evaluator = GraphEvaluator.load(self.feed, list(self._known.values()), snapshot.data, self._load)
        except (QueryStopped, OperatorFailed, StoreUnavailable):
            raise
        except Exception as error:
            # An operator may fail on the state of another release; the log has the same content.
            self.store.report_event(
                "rebuilt", Message("{feed}: the state is being rebuilt from the log ({error}).", feed=self.feed.name, error=error)
            )
            return self._from_start(queries)
        if len(queries) < len(self._known):
            evaluator.register(queries)
        return evaluator

    def _from_start(self, queries: Sequence[RegisteredQuery]) -> GraphEvaluator:
        return self._at_oldest(GraphEvaluator.start(self.feed, queries, self._begin))

    def _begin(self, queries: Sequence[RegisteredQuery]) -> Evaluator:
        return Evaluator.start(self.feed, queries, partitions=self.partitions)

    def _load(self, queries: Sequence[RegisteredQuery], data: bytes) -> Evaluator:
        return Evaluator.load(self.feed, queries, data)

    def _at_oldest(self, evaluator: GraphEvaluator) -> GraphEvaluator:
        """A fresh evaluator before the oldest row that the log still has."""
        oldest = self.log.start
        if oldest > 0:
            evaluator.skip_to(oldest - 1)
        return evaluator

    def _sweep(self) -> None:
        """Removes the states that earlier starts left."""
        # First the files: one that a newer start makes after this look is not among them, and if it
        # made one before, the head is no longer ours.
        left = self.snapshots.left_behind({self.head.snapshot, *self._parts()})
        if left and self.store.owns():
            self.snapshots.remove(left)

    def _parts(self) -> list[str]:
        """The files in addition to the snapshot that the evaluator's dump names."""
        return []

    # -- batches -----------------------------------------------------------------------------------

    def process(self) -> bool:
        """Takes the next batch; false when the log has nothing new, and everything is stored.
        Raises LogDamaged, MissingRows.

        When it returns true the answers are stored, or are being stored in the background.
        """
        with self._batch_lock:
            try:
                return self._next_batch()
            except StoreTooSlow as slow:
                self._take_less(slow)
            return True

    def _next_batch(self) -> bool:
        span = self._ahead()
        if span is None or span.rows < AHEAD_ROWS:
            waited = self._storing.since is not None
            self._storing.settle()
            span = self._ahead() if waited else span
        if span is None:
            return False
        self._part_since = time.monotonic()
        failpoint("batch.before_evaluate")
        outcomes = self._evaluate_or_stop(span)
        failpoint("batch.after_evaluate")
        self._store_part(outcomes, ends_batch=True)
        self.batches += 1
        self._part_since = None
        if not self._storing.is_concurrent:
            self._storing.settle()
        return True

    def _ahead(self) -> Span | None:
        """The next batch."""
        return self.log.ahead(self.evaluator.position, min(self._most_rows, self._part_rows))

    @property
    def _most_rows(self) -> int:
        """The most rows of one batch."""
        return self.batch_rows

    def _evaluate_or_stop(self, span: Span) -> list[Outcome]:
        """What the batch finds under all queries that can be evaluated; the others are stopped."""
        tries = 0
        while True:
            try:
                return self._evaluate(span)
            except QueryStopped as stop:
                self._storing.settle()
                self._give_up(StoppedQuery(stop.key, stop.reason))
            except OperatorFailed as failure:
                self._storing.settle()
                tries += not self._look_into(failure, span)
                if tries == TRIES:
                    raise
            # The state of a stage that failed is lost; the last commit is not.
            self.evaluator = self._recover()

    def _evaluate(self, span: Span) -> list[Outcome]:
        """The answers of the batch's rows that are not stored yet."""
        outcomes: list[Outcome] = []
        taken, found, step_rows, part_rows = 0, 0, steps.STEP_ROWS, self._part_rows
        for rows in self.log.all_between(self.evaluator.position + 1, span.stop):
            at = 0
            while at < rows.num_rows:
                piece = rows.slice(at, min(step_rows, part_rows - taken))
                at += piece.num_rows
                outcome = steps.bounded(self.evaluator.process(piece), piece.num_rows)
                outcomes.append(outcome)
                taken, found = taken + piece.num_rows, found + outcome.changes.num_rows
                step_rows = steps.next_step(step_rows, outcome.changes.num_rows)
                if found > steps.COMMIT_ANSWERS or taken >= part_rows:
                    self._store_part(outcomes)
                    outcomes, taken, found = [], 0, 0
        return outcomes

    # -- storing -----------------------------------------------------------------------------------

    def _store_part(self, outcomes: Sequence[Outcome], *, ends_batch: bool = False) -> None:
        """Stores answers up to the evaluator's position, after those before."""
        now, since = time.monotonic(), self._part_since
        changes = self.store.prepare(pa.concat_tables([NOTHING, *(outcome.changes for outcome in outcomes)]))
        self._storing.settle()
        stopped = tuple(self._stopped)
        head = replace(self.head, last_seq=self.evaluator.position, queries=self._keys)
        if ends_batch:
            # Before the first batch there is no generation of batch numbers yet.
            head = replace(head, checkpoint=max(1, head.checkpoint), last_batch=head.last_batch + 1)
        if stopped:
            # The snapshot before is one of other queries.
            head = self._with_snapshot(head, self._dumped())
        seconds = 0.0 if since is None else now - since
        commit = batch_commit(head, outcomes, changes, self.evaluator, seconds, now - self._committed_at, whole=ends_batch, stopped=stopped)
        self._committed_at = now
        if since is not None:
            self._part_since = time.monotonic()
        self._storing.begin(partial(self._commit_part, commit))
        if stopped:
            self._storing.settle()
            self._stopped = []
        elif self._snapshot_is_due():
            # Answers do not wait for it; the next batch, which changes the state, does.
            self._storing.begin(partial(self._commit_snapshot, self._dumped()))

    def _commit_part(self, commit: Commit) -> None:
        rows = commit.head.last_seq - self.head.last_seq
        try:
            self._commit(commit)
        except StoreTooSlow:
            self._part_rows = rows // 2
            raise
        if 2 * rows >= self._part_rows:
            # Slowly: each part that is too large again costs all the time that it may take.
            self._part_rows += self._part_rows // 8 + 1
        failpoint("batch.after_commit")

    def _take_less(self, slow: StoreTooSlow) -> None:
        """Continues after the last commit with fewer rows a time, or raises `slow`."""
        if self._part_rows in (0, NO_LIMIT):
            raise slow
        text = Message(
            "{feed}: storing took too long ({error}); it continues with {rows:,} rows at a time.",
            feed=self.feed.name,
            error=slow,
            rows=self._part_rows,
        )
        self.store.report_event("resumed", text)
        self.evaluator = self._recover()
        self._part_since = None

    def _settle(self) -> None:
        """Stores what was evaluated, or evaluates it again. The caller holds the batch lock."""
        try:
            self._storing.settle()
        except StoreTooSlow as slow:
            self._take_less(slow)

    def _commit_snapshot(self, state: Snapshot) -> None:
        self._commit(Commit(self._with_snapshot(self.head, state), None))

    # -- queries that cannot be evaluated ----------------------------------------------------------

    def _give_up(self, *stopped: StoppedQuery) -> None:
        """Continues without these queries. The stop is stored with the next commit: a repetition
        reaches the same stop, or finds it stored."""
        for one in stopped:
            self.queries.pop(one.key, None)
            self._stopped_ever.add(one.key)
        self._keys = tuple(self.queries)
        self._stopped += stopped
        if orphans := _orphans(self.queries.values()):
            self._give_up(*orphans)

    def _look_into(self, failure: OperatorFailed, span: Span | None) -> bool:
        """Stops the queries that caused the failure; False if it did not recur."""
        suspects = [query for query in self.queries.values() if family_of(query.specification).operator().families[0] == failure.name]
        try:
            found = failing_queries(suspects, lambda queries: self._failure(queries, span))
        except QueryStopped as stop:
            found = [StoppedQuery(stop.key, stop.reason)]
        self._give_up(*found)
        return bool(found)

    def _failure(self, queries: Sequence[RegisteredQuery], span: Span | None) -> str | None:
        """Why the operator fails with these queries alone before the end of `span`; null when it
        does not. Raises QueryStopped."""
        try:
            evaluator = self._recovered(with_upstream(queries, self.queries.values()))
            if span is not None:
                self._replay(evaluator, span.stop)
        except OperatorFailed as failure:
            return failure.reason
        return None

    @property
    def is_storing(self) -> bool:
        """Whether answers are being stored in the background."""
        return self._storing.since is not None

    def batch_seconds(self) -> float:
        """For how long the present part of a batch has been under way; 0 between batches."""
        begun = [since for since in (self._part_since, self._storing.since) if since is not None]
        return time.monotonic() - min(begun) if begun else 0.0

    def _commit(self, commit: Commit) -> None:
        with self._commit_lock:
            self.store.commit(commit)
            if commit.head.queries is not self.head.queries:
                self._known = {key: self._known.get(key) or self.queries[key] for key in commit.head.queries}
            if commit.head.snapshot != self.head.snapshot:
                # Of the older ones the last stays: its head may be the one that is read while this
                # transaction's answer is lost.
                self.snapshots.keep_only({commit.head.snapshot, self.head.snapshot})
            self.head = commit.head

    def _snapshot_is_due(self) -> bool:
        """After each batch while that is cheap."""
        return not self.head.snapshot or time.monotonic() - self._snapshot_at >= self._snapshot_cost_s / SNAPSHOT_SHARE

    def _dumped(self) -> Snapshot:
        """The evaluator's state."""
        began = time.monotonic()
        position, data = self.evaluator.position, self.evaluator.dump()
        self._dump_s = time.monotonic() - began
        return Snapshot({"position": position, "parts": self._parts()}, data)

    def _with_snapshot(self, head: Head, state: Snapshot) -> Head:
        """`head` with `state` as its snapshot, which is on disk."""
        began = time.monotonic()
        self._snapshots_written += 1
        name = self.snapshots.named(f"{head.epoch}-{head.checkpoint}-{head.last_batch}-{self._snapshots_written}")
        self.snapshots.write(name, state)
        self._snapshot_at = time.monotonic()
        self._snapshot_cost_s = self._dump_s + self._snapshot_at - began
        failpoint("batch.after_snapshot")
        return replace(head, snapshot=name, snapshot_seq=state.facts["position"])

    # -- added and removed queries -----------------------------------------------------------------

    def follow(self) -> None:
        """Brings the running queries to the feed's present version; returns at once if they are.

        Removed queries stop at the next batch boundary. New ones first answer for the history,
        while batches continue.
        """
        version = self.store.version()
        if version == self.head.query_version:
            return
        wanted = {query.key: query for query in self.store.queries(version)}
        if any(key not in wanted for key in self.queries):
            self._join({key: query for key, query in list(self.queries.items()) if key in wanted}, self.head.query_version, None)
        fresh = [query for key, query in wanted.items() if key not in self.queries and key not in self._stopped_ever]
        if orphans := _orphans(query for key, query in wanted.items() if key not in self._stopped_ever):
            self._refuse(*orphans)
            fresh = [query for query in fresh if query.key not in self._stopped_ever]
        if fresh:
            self._catch_up(version, wanted, fresh)
        else:
            self._join(wanted, version, None)

    def _catch_up(self, version: int, wanted: Mapping[QueryKey, RegisteredQuery], fresh: Sequence[RegisteredQuery]) -> None:
        """New queries join, together or else one by one; one that cannot is stopped first."""
        try:
            self._read_history(version, wanted, fresh)
        except QueryStopped as stop:
            self._refuse(StoppedQuery(stop.key, stop.reason))
        except OperatorFailed as failure:
            with self._batch_lock:
                self._settle()
                # The failure may have struck in the middle of the joining.
                self.evaluator = self._recover()
            if len(fresh) == 1:
                self._refuse(StoppedQuery(fresh[0].key, Message("its evaluation failed ({failure})", failure=failure)))
                return
            # Queries that others derive from come first.
            for query in [*(query for query in fresh if not query.sources), *in_graph_order(fresh)]:
                if query.key not in self._stopped_ever:
                    self._catch_up(version, wanted, [query])

    def _read_history(self, version: int, wanted: Mapping[QueryKey, RegisteredQuery], fresh: Sequence[RegisteredQuery]) -> None:
        """`fresh` answer for the history and join.

        Given up (`follow` begins again) when the queries change or the process is to stop.
        """
        with self._batch_lock:
            beside = self.evaluator
            side = self._at_oldest(beside.side_evaluator(fresh))

        def still_wanted() -> bool:
            # When a query was stopped meanwhile, the others have begun again from a snapshot.
            return not self.stopping.is_set() and self.evaluator is beside and self.store.version() == version

        reading = CatchUp(side, fresh, self.log, side.position + 1, still_wanted, self._keep_history, self.store.catching_up)
        try:
            while self.evaluator.position - side.position > JOIN_ROWS:
                if not reading.read(self.evaluator.position, self.stopping.wait):
                    return
            with self._batch_lock:
                self._settle()
                if reading.read(self.evaluator.position) and still_wanted():
                    failpoint("join.before_register")
                    self._join_fresh(version, wanted, fresh, side)
        finally:
            self.store.caught_up()

    def _keep_history(self, changes: pa.Table) -> None:
        prepared = self.store.prepare(changes)
        with self._commit_lock:
            self.store.commit(Commit(self.head, None, prepared, backfill=True))

    def _join_fresh(self, version: int, wanted: Mapping[QueryKey, RegisteredQuery], fresh: Sequence[RegisteredQuery], side: GraphEvaluator) -> None:
        """The feed's version is reached when no wanted query is left out."""
        queries = {**self.queries, **{query.key: query for query in fresh}}
        if wanted.keys() <= queries.keys():
            self._join(wanted, version, side)
        else:
            self._join(queries, self.head.query_version, side)

    def _refuse(self, *stopped: StoppedQuery) -> None:
        with self._batch_lock:
            self._settle()
            self._give_up(*stopped)
            self._commit(Commit(self.head, None, stopped=stopped))
            self._stopped = [one for one in self._stopped if one not in stopped]

    def _join(self, queries: Mapping[QueryKey, RegisteredQuery], version: int, side: GraphEvaluator | None) -> None:
        """`queries` run from the next batch on. `side` has caught up the new ones to here."""
        with self._batch_lock:
            self._settle()
            running = {key: query for key, query in queries.items() if key not in self._stopped_ever}
            self.evaluator.register(list(running.values()), side)
            self.queries, self._keys = running, tuple(running)
            head = replace(self.head, query_version=version, queries=self._keys)
            head = self._with_snapshot(head, self._dumped())
            failpoint("join.before_commit")
            self._commit(Commit(head, None))


def _orphans(queries: Iterable[RegisteredQuery]) -> list[StoppedQuery]:
    """Those that derive from a query that is not among them, and why they cannot go on."""
    return [
        StoppedQuery(query.key, Message("it derives from {source}, which does not run", source=repr(source.name)))
        for query, source in without_upstream(queries)
    ]
