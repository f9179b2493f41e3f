"""The evaluator spread over Spark's workers: the same partitions as in one process, each at home on an executor that keeps its state.

The driver says which rows come next and names the states; what the tasks do is in `executors_tasks.py`. A partition's task prefers the executor
that has its state (`placement.py`); where none can be named, as in one JVM, tasks find their states elsewhere as often as not and begin at the last
snapshot. The folder of the states and that of the log have to be reachable by all executors.
"""

from __future__ import annotations

import json
import logging
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.model.changes import ANSWERS, answers
from engine.model.events import stamped_schema
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime import steps
from engine.runtime.container import table_from
from engine.runtime.evaluator import Evaluator, Outcome, same_homes
from engine.runtime.executors_tasks import Message, Piece, Work, has_relational, keyed, raise_fault, relational, write
from engine.runtime.partitions import KeyedPartition, RelationalPartition, plan_of
from engine.runtime.placement import placed
from engine.runtime.processor import FeedProcessor
from engine.runtime.spark_tasks import Tasks
from engine.sources.buckets import BUCKETS
from engine.sources.eventlog import EventLog, Span

logger = logging.getLogger(__name__)

FOLDERS_KEPT = 3


class ExecutorsEvaluator:
    """Like `Evaluator`, with the states at the executors and their snapshots in `folder`. `position` and `last_t` are as in Evaluator.

    `process` takes rows that are in the driver, and evaluates them there; `take` has the executors read them from the log.
    """

    def __init__(self, spark: SparkSession, feed: Feed, log: EventLog, folder: Path, queries: Sequence[RegisteredQuery], partitions: int) -> None:
        self.spark, self.feed, self.log, self.folder, self.partitions = spark, feed, log, folder, partitions
        self.tasks = Tasks(spark)
        self.position = -1
        self.last_t: int | None = None
        self._reached: int | None = None
        self.state = self.snapshot = ""
        self._since: list[Span] = []
        self.loads = 0
        """States that tasks did not have and loaded."""
        self._kept: list[str] = []
        self._places: dict[int, str] = {}
        self._queries: list[RegisteredQuery] = []
        self._broadcast: Any = None
        self._set_queries(queries)

    @classmethod
    def start(
        cls, spark: SparkSession, feed: Feed, log: EventLog, folder: Path, queries: Sequence[RegisteredQuery], partitions: int
    ) -> ExecutorsEvaluator:
        """Before any row."""
        evaluator = cls(spark, feed, log, folder, queries, partitions)
        evaluator._store(Evaluator.start(feed, queries, partitions))
        return evaluator

    @classmethod
    def load(
        cls, spark: SparkSession, feed: Feed, log: EventLog, folder: Path, queries: Sequence[RegisteredQuery], data: bytes
    ) -> ExecutorsEvaluator:
        """What was dumped. Raises ValueError when the states it names are not whole, or of other queries."""
        facts = json.loads(data)
        if facts["queries"] != [list(query.key) for query in queries]:
            raise ValueError("the state is that of other queries")
        same_homes(facts)
        evaluator = cls(spark, feed, log, folder, queries, facts["partitions"])
        evaluator.position, evaluator.last_t, evaluator._reached = facts["position"], facts["last_t"], facts["reached"]
        evaluator.state = evaluator.snapshot = facts["state"]
        evaluator._kept = [evaluator.snapshot]
        for name in evaluator._files():
            if not (folder / evaluator.snapshot / name).exists():
                raise ValueError(f"the state of {name} is missing")
        evaluator._sweep()
        return evaluator

    def dump(self) -> bytes:
        """Has the states written; where they are, and what they belong to."""
        if self.state != self.snapshot:
            self._snapshot()
        self._kept = [*self._kept, self.snapshot][-FOLDERS_KEPT:]
        self._sweep()
        facts = {"state": self.snapshot, "position": self.position, "last_t": self.last_t, "reached": self._reached, "partitions": self.partitions}
        return json.dumps(facts | {"buckets": BUCKETS, "queries": [list(query.key) for query in self._queries]}).encode()

    def skip_to(self, position: int) -> None:
        self.position = position

    @property
    def watermark(self) -> int | None:
        return None if self._reached is None else self._reached - self.feed.lateness

    # -- rows ---------------------------------------------------------------------------------------------------------------------

    def process(self, stamped: pa.Table) -> Outcome:
        """Rows that are in the driver."""
        local = self.local()
        outcome = local.process(stamped)
        self._store(local)
        return outcome

    def take(self, span: Span) -> Outcome:
        """The rows of `span`, which follow those before. Raises QueryStopped, OperatorFailed, LogDamaged: it is of no more use then."""
        clock = span.max_t if self._reached is None else max(self._reached, span.max_t)
        span = Span(span.first, span.stop, clock)
        after = f"{span.stop - 1}-{uuid.uuid4().hex}"
        outcome, last_t = self._outcome(self._run((span,), after), span)
        self.state, self.position, self.last_t, self._reached = after, span.stop - 1, last_t, clock
        self._since.append(span)
        return outcome

    def _snapshot(self) -> None:
        """The states in files."""
        name = uuid.uuid4().hex
        (self.folder / name).mkdir(parents=True)
        for kind, operator, payload in self._run((), self.state, dump=name):
            raise_fault(kind, operator, payload)
        self.snapshot, self._since = name, []

    def _run(self, fresh: tuple[Span, ...], after: str, *, dump: str = "") -> list[Message]:
        """What the tasks of one batch say; once more from the snapshot when one of them needs the others for its state."""
        self._place()
        since = tuple(self._since)
        place = self.log.address([*since, *fresh])
        found: list[Message] = []
        for rewind in (False, True):
            work = Work(place, str(self.folder), self.snapshot, since, self.state, fresh, after, self.partitions, rewind, dump)
            found = self._stages(work)
            self.loads += sum(kind == "loaded" for kind, _, _ in found)
            if not any(kind == "missed" for kind, _, _ in found):
                break
        return found

    def _place(self) -> None:
        """Gives each partition its executor: where it was, unless executors have come or gone."""
        before, self._places = self._places, placed(self._places, self.tasks.executors(), self.partitions)
        if self._places != before:
            found = {place: [p for p, at in self._places.items() if at == place] for place in sorted(set(self._places.values()))}
            logger.info("%s: partitions are at %s", self.feed.name, ", ".join(f"{place} {parts}" for place, parts in found.items()) or "any executor")

    def _stages(self, work: Work) -> list[Message]:
        try:
            found = self._tasks(partial(keyed, self._broadcast, work), list(range(self.partitions)))
            for message in found:
                raise_fault(*message)
            if self.partitions == 1 or not has_relational(self._plan):
                return found
            pieces = [Piece(*facts) for kind, _, payload in found if kind == "emitted" for facts in json.loads(payload)]
            homes = [(p, [piece for piece in pieces if piece.home == p]) for p in range(self.partitions)]
            found += self._tasks(partial(relational, self._broadcast, work), homes)
            for file in {piece.file for piece in pieces}:
                Path(file).unlink(missing_ok=True)
            return found
        except (PySparkException, Py4JError):
            # What a task raised is a text by now. A damaged segment is looked for here.
            for span in (*work.since, *work.fresh):
                self.log.verify(span.first, span.stop)
            raise

    def _tasks(self, act: Callable[[Iterable[Any]], Iterable[Message]], given: Sequence[Any]) -> list[Message]:
        """What `act` says of all that is `given` for the partitions: one task for each executor, which does all of its partitions.

        A task costs some 10 ms of processor time, mostly of JVMs, however little it has to do.
        """
        if not self._places:
            return self.tasks.run(act, [(None, [one]) for one in given])
        together: dict[str, list[Any]] = {}
        for p, one in enumerate(given):
            together.setdefault(self._places[p], []).append(one)
        return self.tasks.run(act, list(together.items()))

    def _outcome(self, messages: Sequence[Message], span: Span) -> tuple[Outcome, int | None]:
        """What the tasks say, and `last_t` after it. Raises QueryStopped, OperatorFailed."""
        plan, last_t = self._plan, self.last_t
        changes, late = [ANSWERS.empty_table()], [pa.Table.from_batches([], stamped_schema(self.feed))]
        processed = duplicates = 0
        for kind, name, payload in messages:
            raise_fault(kind, name, payload)
            if kind == "changes":
                batch = table_from(payload).combine_chunks().to_batches()[0]
                changes.append(answers(batch, *plan[name].keys))
            elif kind == "late":
                late.append(table_from(payload))
            elif kind == "counts":
                facts = json.loads(payload)
                processed, duplicates = processed + facts["processed"], duplicates + facts["duplicates"]
                last_t = max((t for t in (last_t, facts["last_t"]) if t is not None), default=None)
        return Outcome(pa.concat_tables(changes), pa.concat_tables(late), processed, duplicates, span.max_t - self.feed.lateness), last_t

    # -- queries ------------------------------------------------------------------------------------------------------------------

    def beside(self, queries: Sequence[RegisteredQuery]) -> _Beside:
        """An evaluator that reads history for `queries`, to be joined by `register`.

        It evaluates the running ones too: entity codes are given out by the executors, so states of one evaluator cannot be read with
        those of another, and the newcomer's states replace the old ones. They are equal, being made of the same rows.
        """
        fresh = {query.key for query in queries}
        return _Beside(self.feed, [*(query for query in self._queries if query.key not in fresh), *queries], fresh, self.partitions)

    def register(self, queries: Sequence[RegisteredQuery], caught_up: _Beside | None = None) -> None:
        """As Evaluator.register."""
        local = self.local() if caught_up is None else caught_up.inner
        if local.position != self.position:
            raise ValueError(f"the evaluator to be joined stands at row {local.position}, not {self.position}")
        local.register(queries)
        self._set_queries(queries)
        self._store(local)

    def _set_queries(self, queries: Sequence[RegisteredQuery]) -> None:
        self._queries = list(queries)
        self._plan = plan_of(self._queries, self.feed, self.partitions)
        if self._broadcast is not None:
            self._broadcast.unpersist()
        self._broadcast = self.spark.sparkContext.broadcast((uuid.uuid4().hex, self.feed, self._queries, self.partitions))

    # -- states -------------------------------------------------------------------------------------------------------------------

    def _files(self) -> list[str]:
        stages = ("keyed", "relational") if has_relational(self._plan) else ("keyed",)
        return [f"{stage}-{p}" for stage in stages for p in range(self.partitions)]

    def local(self) -> Evaluator:
        """The whole of it in this process."""
        if self.state != self.snapshot:
            self._snapshot()
        folder, every = self.folder / self.snapshot, range(self.partitions)
        stages = [KeyedPartition.load(self.feed, self._plan, (folder / f"keyed-{p}").read_bytes()) for p in every]
        if has_relational(self._plan):
            others = [RelationalPartition.load(self._plan, (folder / f"relational-{p}").read_bytes()) for p in every]
        else:
            others = [RelationalPartition(self._plan) for _ in every]
        local = Evaluator(self.feed, stages, others)
        local.position, local.last_t, local._reached = self.position, self.last_t, self._reached
        return local

    def _store(self, local: Evaluator) -> None:
        """Goes on from `local`: tasks find its states in files."""
        name = uuid.uuid4().hex
        (self.folder / name).mkdir(parents=True)
        for p, (keyed_part, relational_part) in enumerate(zip(local._keyed, local._relational, strict=True)):
            write(self.folder / name / f"keyed-{p}", keyed_part.dump())
            if has_relational(self._plan):
                write(self.folder / name / f"relational-{p}", relational_part.dump())
        self.state = self.snapshot = name
        self._since = []
        self.position, self.last_t, self._reached = local.position, local.last_t, local._reached

    def _sweep(self) -> None:
        """Removes the states that neither a kept dump nor the next batch needs."""
        for path in self.folder.iterdir():
            if path.name not in {*self._kept, self.snapshot}:
                shutil.rmtree(path, ignore_errors=True)


class _Beside:
    """A local evaluator of all queries that states only what the new ones find."""

    def __init__(self, feed: Feed, queries: Sequence[RegisteredQuery], fresh: set[tuple[str, int]], partitions: int) -> None:
        self.inner = Evaluator.start(feed, queries, partitions)
        self._fresh = pa.array([f"{query} {version}" for query, version in fresh])

    @property
    def position(self) -> int:
        return self.inner.position

    def skip_to(self, position: int) -> None:
        self.inner.skip_to(position)

    def process(self, stamped: pa.Table) -> Outcome:
        outcome = self.inner.process(stamped)
        keys = pc.binary_join_element_wise(outcome.changes.column("query"), pc.cast(outcome.changes.column("version"), pa.string()), " ")
        fresh = outcome.changes.filter(pc.is_in(keys, self._fresh))
        return Outcome(fresh, outcome.late, outcome.processed, outcome.duplicates, outcome.watermark)


class ExecutorsProcessor(FeedProcessor):
    """A FeedProcessor whose batches are evaluated by Spark's workers."""

    def __init__(self, spark: SparkSession, *arguments: Any, **options: Any) -> None:
        self.spark, self.tasks = spark, Tasks(spark)
        super().__init__(*arguments, **options)

    @property
    def _most_rows(self) -> int:
        """So many for each executor: what a batch costs by itself grows with them too."""
        return self.batch_rows * max(1, len(self.tasks.executors()))

    @property
    def _folder(self) -> Path:
        folder = self.snapshots.folder.parent / "executors"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _begin(self, queries: Sequence[RegisteredQuery]) -> Any:
        return ExecutorsEvaluator.start(self.spark, self.feed, self.log, self._folder, queries, self.partitions)

    def _load(self, queries: Sequence[RegisteredQuery], data: bytes) -> Any:
        return ExecutorsEvaluator.load(self.spark, self.feed, self.log, self._folder, queries, data)

    def _replay(self, evaluator: Any, stop: int) -> None:
        while (span := self.log.ahead(evaluator.position, self._most_rows, stop)) is not None:
            evaluator.take(span, self.log.all_between(span.first, span.stop))

    def _evaluate(self, span: Span) -> list[Outcome]:
        evaluator: Any = self.evaluator
        outcome = evaluator.take(span, self.log.all_between(span.first, span.stop))
        if outcome.changes.num_rows <= steps.MOST_ANSWERS:
            return [outcome]
        # Which query finds too much in one step is the driver's to say, or it would depend on the placement (decision 15).
        self.evaluator = self._recover()
        return super()._evaluate(span)
