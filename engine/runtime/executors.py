"""The evaluator spread over Spark's workers: the same partitions as in one process, each on an
executor that keeps its state.

The driver determines which rows come next and names the states; what the tasks do is in
`executors_tasks.py`. A partition's task prefers the executor that has its state (`placement.py`);
where executors cannot be named, as in one JVM, tasks often do not find their state and begin at the
last snapshot. The files of the states and those of the log are reached by all executors: in a
folder on one machine, or in a store (decision 40).
"""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.model.batch import SEQ
from engine.model.changes import ANSWERS, answers
from engine.model.clock import watermark_at
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime import steps
from engine.runtime.broadcast import BEFORE_ANY_ROW, JobPlan, job_plan, partitions_of
from engine.runtime.container import table_from
from engine.runtime.evaluator import ROUTES, STATE_VERSION, Evaluator, Outcome, check_partitioning, missing_states
from engine.runtime.executors_tasks import (
    INLINE_BYTES,
    BatchWork,
    Message,
    first_stage,
    keys_named,
    pieces_of,
    raise_fault,
    read_spilled,
    relational,
)
from engine.runtime.placement import placed
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import StateFiles
from engine.runtime.spark_tasks import Tasks
from engine.sources.buckets import BUCKETS
from engine.sources.eventlog import EventLog, Span
from engine.sources.store import AT_ONCE

logger = logging.getLogger(__name__)

DUMPS_KEPT = 3
"""The files of the last dumps are kept: a head may name one of them."""


class PlanCache:
    """The last plan of a job, and its broadcast: workers that have compiled it need not compile it
    again for an evaluator that is restarted with the same queries."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._last: tuple[Any, JobPlan, Any] | None = None

    def of(self, feed: Feed, queries: Sequence[RegisteredQuery], partitions: int) -> tuple[JobPlan, Any]:
        """The plan of these queries, and the broadcast of what workers make it from."""
        last, made_of = self._last, (feed, [query.key for query in queries], partitions)
        if last is not None and last[0] == made_of:
            return last[1:]
        if last is not None:
            last[2].unpersist()
        broadcast = self.spark.sparkContext.broadcast((uuid.uuid4().hex, feed, list(queries), partitions))
        self._last = made_of, job_plan(queries, feed, partitions), broadcast
        return self._last[1:]


class ExecutorsEvaluator:
    """Like `Evaluator`, with the states at the executors and their snapshots in `states`.
    `position` and `last_t` are as in Evaluator.

    `process` takes rows that are in the driver, and evaluates them there; `take` has the
    executors read them from the log.
    """

    def __init__(self, plans: PlanCache, feed: Feed, log: EventLog, states: StateFiles, queries: Sequence[RegisteredQuery], partitions: int) -> None:
        self.plans, self.feed, self.log, self.states, self.partitions = plans, feed, log, states, partitions
        self.tasks = Tasks(plans.spark)
        self.position = -1
        self.last_t: int | None = None
        self._reached: int | None = None
        self.state = ""
        self.snapshot: Mapping[str, str] = {}
        """The files of the states as they were `_since` so many spans, by stage and partition."""
        self._since: list[Span] = []
        self.inline_bytes = INLINE_BYTES
        self.loads = 0
        """States that tasks did not have and loaded."""
        self._kept: deque[Mapping[str, str]] = deque(maxlen=DUMPS_KEPT)
        self._places: dict[int, str] = {}
        self._set_queries(queries)

    @classmethod
    def start(
        cls, plans: PlanCache, feed: Feed, log: EventLog, states: StateFiles, queries: Sequence[RegisteredQuery], partitions: int
    ) -> ExecutorsEvaluator:
        """Before any row."""
        evaluator = cls(plans, feed, log, states, queries, partitions)
        evaluator._store(Evaluator.start(feed, queries, partitions))
        return evaluator

    @classmethod
    def load(
        cls, plans: PlanCache, feed: Feed, log: EventLog, states: StateFiles, queries: Sequence[RegisteredQuery], data: bytes
    ) -> ExecutorsEvaluator:
        """What was dumped. Raises ValueError when the states it names are not whole, or of other
        queries; StoreUnavailable."""
        facts = json.loads(data)
        if facts["queries"] != [list(query.key) for query in queries]:
            raise ValueError("the state is that of other queries")
        if facts.get("version") != STATE_VERSION:
            raise ValueError(f"the state has version {facts.get('version')}, this program reads {STATE_VERSION}")
        check_partitioning(facts)
        evaluator = cls(plans, feed, log, states, queries, facts["partitions"])
        evaluator.position, evaluator.last_t, evaluator._reached = facts["position"], facts["last_t"], facts["reached"]
        evaluator.state, evaluator.snapshot = uuid.uuid4().hex, facts["files"]
        states.adopt(evaluator.parts)
        there = states.files.existing(evaluator.parts)
        whole = [name for name, file in facts["files"].items() if file in there]
        for name in missing_states(evaluator._plan, evaluator.partitions, whole):
            raise ValueError(f"the state {name} is missing")
        evaluator._keep()
        return evaluator

    def dump(self) -> bytes:
        """Writes the states; returns where they are, and what they belong to."""
        if self._since:
            self._snapshot()
        self._keep()
        facts: dict[str, Any] = {"position": self.position, "last_t": self.last_t, "reached": self._reached, "partitions": self.partitions}
        facts |= {
            "version": STATE_VERSION,
            "files": dict(self.snapshot),
            "buckets": BUCKETS,
            "routes": ROUTES,
            "queries": [list(query.key) for query in self._queries],
        }
        return json.dumps(facts).encode()

    @property
    def parts(self) -> list[str]:
        """The files that what was dumped last names."""
        return list(self.snapshot.values())

    def skip_to(self, position: int) -> None:
        self.position = position

    @property
    def watermark(self) -> int | None:
        return None if self._reached is None else watermark_at(self._reached, self.feed.lateness)

    # -- rows --------------------------------------------------------------------------------------

    def process(self, stamped: pa.Table) -> Outcome:
        """Rows that are in the driver."""
        local = self.local()
        outcome = local.process(stamped)
        self._store(local)
        return outcome

    def take(self, span: Span) -> Outcome:
        """The rows of `span`, which follow those before. Raises QueryStopped, OperatorFailed,
        LogDamaged: it is of no more use then."""
        clock = span.max_t if self._reached is None else max(self._reached, span.max_t)
        span = Span(span.first, span.stop, clock)
        after = f"{span.stop - 1}-{uuid.uuid4().hex}"
        outcome, last_t = self._outcome(self._run((span,), after), span)
        self.state, self.position, self.last_t, self._reached = after, span.stop - 1, last_t, clock
        self._since.append(span)
        return outcome

    def _snapshot(self) -> None:
        """The states in files."""
        found = self._run((), self.state, dump=True)
        for message in found:
            raise_fault(*message)
        self.snapshot, self._since = {name: file.decode() for kind, name, file in found if kind == "dumped"}, []

    def _run(self, fresh: tuple[Span, ...], after: str, *, dump: bool = False) -> list[Message]:
        """The messages of one batch's tasks; repeated from the snapshot when a task needs the
        others to rebuild its state."""
        self._place()
        since = tuple(self._since)
        place = self.log.address([*since, *fresh])
        found: list[Message] = []
        for rewind in (False, True):
            files, mark = self.states.files, self.states.named(uuid.uuid4().hex)
            work = BatchWork(place, files, self.snapshot, since, self.state, fresh, after, self.partitions, rewind, mark, dump, self.inline_bytes)
            found = self._stages(work)
            self.loads += sum(kind == "loaded" for kind, _, _ in found)
            if not any(kind == "missed" for kind, _, _ in found):
                break
        return found

    def _place(self) -> None:
        """Assigns each partition to an executor: where it was, unless executors joined or left."""
        before, self._places = self._places, placed(self._places, self.tasks.executors(), self._busy)
        if self._places != before:
            found = {place: [p for p, at in self._places.items() if at == place] for place in sorted(set(self._places.values()))}
            logger.info("%s: partitions are at %s", self.feed.name, ", ".join(f"{place} {parts}" for place, parts in found.items()) or "any executor")

    @property
    def _busy(self) -> list[int]:
        """The partitions that take rows."""
        return list(range(self.partitions)) if self._plan.partitions_rows else list(self._plan.broadcast.partitions)

    def _stages(self, work: BatchWork) -> list[Message]:
        try:
            found = self._tasks(partial(first_stage, self._broadcast, work), {p: p for p in self._busy})
            for message in found:
                raise_fault(*message)
            if self.partitions == 1 or not self._plan.is_relational:
                return found
            pieces = [piece for kind, _, payload in found if kind == "emitted" for piece in pieces_of(payload)]
            given = {p: (p, [piece for piece in pieces if piece.partition == p]) for p in range(self.partitions)}
            found += self._tasks(partial(relational, self._broadcast, work), given)
            self.states.remove({piece.file for piece in pieces if piece.file})
            return found
        except (PySparkException, Py4JError):
            # A task's exception arrives as text. A damaged segment is searched here.
            for span in (*work.since, *work.fresh):
                self.log.verify(span.first, span.stop)
            raise

    def _tasks(self, act: Callable[[Iterable[Any]], Iterable[Message]], given: Mapping[int, Any]) -> list[Message]:
        """The messages of `act` for what is `given` to partitions: one task per executor
        for all of its partitions.

        A task costs some 10 ms of processor time, mostly of JVMs, however little it has to do.
        """
        if not self._places:
            return read_spilled(self.states.files, self.tasks.run(act, [(None, [one]) for one in given.values()]))
        together: dict[str, list[Any]] = {}
        for p, one in given.items():
            together.setdefault(self._places[p], []).append(one)
        return read_spilled(self.states.files, self.tasks.run(act, list(together.items())))

    def _outcome(self, messages: Sequence[Message], span: Span) -> tuple[Outcome, int | None]:
        """What the tasks report, and `last_t` after it. Raises QueryStopped, OperatorFailed."""
        plan, last_t = self._plan, self.last_t
        changes, late = [ANSWERS.empty_table()], [pa.Table.from_batches([], stamped_schema(self.feed))]
        processed = duplicates = 0
        for kind, name, payload in messages:
            raise_fault(kind, name, payload)
            if kind == "changes":
                changes.append(answers(table_from(payload), *keys_named(plan, name)))
            elif kind == "late":
                late.append(table_from(payload))
            elif kind == "counts":
                facts = json.loads(payload)
                processed, duplicates = processed + facts["processed"], duplicates + facts["duplicates"]
                last_t = max((t for t in (last_t, facts["last_t"]) if t is not None), default=None)
        watermark = watermark_at(span.max_t, self.feed.lateness)
        return Outcome(pa.concat_tables(changes), pa.concat_tables(late), processed, duplicates, watermark), last_t

    # -- queries -----------------------------------------------------------------------------------

    def side_evaluator(self, queries: Sequence[RegisteredQuery]) -> _SideEvaluator:
        """An evaluator that reads history for `queries`, to be joined by `register`. No batch may
        run meanwhile, as for all that reads the states."""
        return _SideEvaluator(self.local(), queries)

    def register(self, queries: Sequence[RegisteredQuery], caught_up: _SideEvaluator | None = None) -> None:
        """As Evaluator.register."""
        local = self.local() if caught_up is None else caught_up.running
        if local.position != self.position:
            raise ValueError(f"the evaluator to be joined is at row {local.position}, not {self.position}")
        local.register(queries, None if caught_up is None else caught_up.side)
        self._set_queries(queries)
        self._store(local)

    def _set_queries(self, queries: Sequence[RegisteredQuery]) -> None:
        self._queries = list(queries)
        self._plan, self._broadcast = self.plans.of(self.feed, self._queries, self.partitions)

    # -- states ------------------------------------------------------------------------------------

    def local(self) -> Evaluator:
        """The whole of it in this process."""
        if self._since:
            self._snapshot()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            data = dict(zip(self.snapshot, pool.map(self.states.files.read, self.snapshot.values()), strict=True))
        local = Evaluator.of_states(self.feed, self._plan, self.partitions, data)
        local.seek(self.position, self.last_t, self._reached)
        return local

    def _store(self, local: Evaluator) -> None:
        """Continues from `local`: tasks find its states in files."""
        self.state = uuid.uuid4().hex
        parts = local.states()
        names = {name: self.states.named(f"{self.state}.{name}") for name in parts}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: self.states.files.put_with_retries(names[name], _dumped(local, name, parts[name])), parts))
        self.snapshot, self._since = names, []
        self.position, self.last_t, self._reached = local.position, local.last_t, local._reached

    def _keep(self) -> None:
        """Removes the files that neither a kept dump nor the next batch needs."""
        self._kept.append(self.snapshot)
        self.states.keep_only({file for kept in self._kept for file in kept.values()})


def _dumped(local: Evaluator, name: str, part: Any) -> bytes:
    is_new = local.watermark is None and bool(partitions_of(name))
    dumped: bytes = BEFORE_ANY_ROW if is_new else part.dump()
    return dumped


class _SideEvaluator:
    """A local evaluator of new queries, `side`, and the one it will join: `running`, all of the
    executors' as it was when this one began.

    Entity codes are given out by the executors, so states that they made since then cannot
    be read with those of `side`: `running` takes the rows since then again. Those before it
    may no longer be in the log.
    """

    def __init__(self, running: Evaluator, queries: Sequence[RegisteredQuery]) -> None:
        self.running, self.side = running, running.side_evaluator(queries)

    @property
    def position(self) -> int:
        return self.side.position

    def skip_to(self, position: int) -> None:
        self.side.skip_to(position)

    def process(self, stamped: pa.Table) -> Outcome:
        """What the new queries find."""
        new = stamped.filter(pc.greater(stamped.column(SEQ), self.running.position))
        if new.num_rows:
            self.running.process(new)
        return self.side.process(stamped)


class ExecutorsProcessor(FeedProcessor):
    """A FeedProcessor whose batches are evaluated by Spark's workers."""

    def __init__(self, spark: SparkSession, *arguments: Any, **options: Any) -> None:
        self.plans, self.tasks = PlanCache(spark), Tasks(spark)
        self._rows_for_answers: float = math.inf
        """So many rows gave four fifths of the answers, lately, that may
        be in the driver at once."""
        super().__init__(*arguments, **options)

    @property
    def _most_rows(self) -> int:
        """`batch_rows` for each executor, because the fixed cost of a batch grows with their
        number; fewer where rows give very many answers."""
        return int(min(self.batch_rows * max(1, len(self.tasks.executors())), self._rows_for_answers))

    @cached_property
    def _states(self) -> StateFiles:
        """The files of the partitions' states, next to the snapshots that name them."""
        return StateFiles(self.snapshots.files)

    def _begin(self, queries: Sequence[RegisteredQuery]) -> Any:
        return ExecutorsEvaluator.start(self.plans, self.feed, self.log, self._states, queries, self.partitions)

    def _load(self, queries: Sequence[RegisteredQuery], data: bytes) -> Any:
        return ExecutorsEvaluator.load(self.plans, self.feed, self.log, self._states, queries, data)

    def _parts(self) -> list[str]:
        found: list[str] = self.evaluator.base.parts
        return found

    def _replay(self, evaluator: Any, stop: int) -> None:
        while (span := self.log.ahead(evaluator.position, self._most_rows, stop)) is not None:
            evaluator.take(span, self.log.all_between(span.first, span.stop))

    def _evaluate(self, span: Span) -> list[Outcome]:
        evaluator: Any = self.evaluator
        if span.rows > self._part_rows:
            return super()._evaluate(span)
        outcome = evaluator.take(span, self.log.all_between(span.first, span.stop))
        self._rows_for_answers = max(span.rows * steps.MOST_ANSWERS * 4 // 5 / max(outcome.changes.num_rows, 1), 1)
        if outcome.changes.num_rows <= steps.MOST_ANSWERS:
            return [outcome]
        self.evaluator = self._recover()
        fewer = self.log.ahead(self.evaluator.position, max(int(self._rows_for_answers), steps.STEP_ROWS))
        if fewer is not None and fewer.rows < span.rows:
            return self._evaluate(fewer)
        # The driver decides which query finds too much in one step; otherwise it would depend on
        # the placement (decision 15).
        return super()._evaluate(span)
