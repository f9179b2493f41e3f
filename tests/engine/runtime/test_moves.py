"""Partitions that move between workers, are lost, or are evaluated twice change no answer: tasks
without Spark, on workers in memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.model.events import Stamper, row_schema
from engine.operator import RegisteredQuery
from engine.runtime import executors, executors_tasks
from engine.runtime.evaluator import Evaluator
from engine.runtime.executors import ExecutorsEvaluator, ExecutorsProcessor, PlanCache
from engine.runtime.snapshots import Snapshots, StateFiles
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from tests.engine.runtime.test_broadcast import BROADCAST, PARTITIONED, QUERIES, found, queries_of
from tests.engine.runtime.test_executors import logged
from tests.engine.runtime.test_processor import FEED, STEPS, STORING, Life, live, rows_of
from tests.examples import examples

KNOWN = [
    *QUERIES,
    *queries_of([{**BROADCAST[-1], "distributed": True}], 20),
    *(replace(query, version=2) for query in queries_of(BROADCAST, 3)),
]


class Cluster:
    """Workers by their executor's name; each has the states that tasks left there. With
    none, a task may run anywhere."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.names = ["a", "b"]
        self.memory: dict[str, Any] = {}
        self.twice = False

    def executors(self) -> list[str]:
        return sorted(self.names)

    def run(self, act: Callable[[Iterable[Any]], Iterable[Any]], given: Sequence[tuple[str | None, Any]]) -> list[Any]:
        return [message for place, one in given for message in self._task(act, place, one)]

    def _task(self, act: Callable[[Iterable[Any]], Iterable[Any]], place: str | None, one: Any) -> list[Any]:
        if self.twice and self.chance.random() < 0.5:
            # An attempt whose messages are lost.
            self._at(self.chance.choice([place or "x", "x", "y"]), act, one)
        return self._at(place or self.chance.choice(["x", "y"]), act, one)

    def _at(self, place: str, act: Callable[[Iterable[Any]], Iterable[Any]], one: Any) -> list[Any]:
        executors_tasks._HERE = self.memory.setdefault(place, executors_tasks._ResidentStates())
        return list(act([one]))


@pytest.fixture(scope="module", autouse=True)
def no_spark() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setattr(executors, "Tasks", lambda spark: spark.cluster)
    patch.setattr(executors_tasks, "_HERE", executors_tasks._HERE)
    yield
    patch.undo()


def session(cluster: Cluster) -> Any:
    context = SimpleNamespace(broadcast=lambda value: SimpleNamespace(value=value, unpersist=lambda: None))
    return SimpleNamespace(cluster=cluster, sparkContext=context)


CHOICES = st.sets(st.integers(0, len(KNOWN) - 1))
EVENTS = st.one_of(
    st.tuples(st.just("here"), st.integers(2, 10)),
    st.tuples(st.sampled_from(["change", "catch_up"]), CHOICES),
    st.tuples(st.sampled_from(["dump", "restart", "again", "twice", "drop"]), st.none()),
    st.tuples(st.sampled_from(["join", "leave", "killed"]), st.sampled_from(["a", "b", "c", "d"])),
)


class World:
    """A job on the cluster, and one evaluator with the same rows and queries for comparison."""

    def __init__(self, folder: Path, seed: int, chosen: set[int], partitions: int) -> None:
        self.cluster, self.chance, self.stamper = Cluster(seed), random.Random(seed), Stamper()
        self.queries = self.of(chosen)
        self.local = Evaluator.start(FEED, self.queries)
        self.log = EventLog(folder / "log", FEED.name)
        self.log.live.mkdir(parents=True)
        self.folder = folder
        self.spread: Any = ExecutorsEvaluator.start(PlanCache(session(self.cluster)), FEED, self.log, self.states(), self.queries, partitions)
        self.spread.inline_bytes = self.chance.choice([0, 2_000, 256_000])
        self.expected: list[Any] = []
        self.found: list[Any] = []
        self.tables: list[pa.Table] = []
        self.t = 0

    def states(self) -> StateFiles:
        """As a new process has them."""
        return StateFiles(files_of(self.folder / "state"))

    @staticmethod
    def of(chosen: set[int]) -> list[RegisteredQuery]:
        return [KNOWN[i] for i in sorted(chosen)]

    def rows(self, count: int) -> pa.Table:
        own = rows_of(self.chance, count, self.t)
        if self.tables:
            own = pa.concat_tables([self.tables[-1].select(own.schema.names).slice(0, 2), own])
        self.t += count // 2
        return self.given(self.stamper.stamp(own))

    def given(self, table: pa.Table) -> pa.Table:
        self.tables.append(table)
        self.expected.append(self.local.process(table))
        return logged(self.spread, table)

    def batch(self, count: int) -> None:
        self.take(self.rows(count).num_rows)

    def take(self, rows: int) -> None:
        span = self.log.ahead(self.spread.position, rows)
        assert span is not None
        self.found.append(self.spread.take(span))

    def here(self, count: int) -> None:
        self.found.append(self.spread.process(self.rows(count)))

    def again(self, _: None) -> None:
        """The same batch twice: the result of the first attempt was lost."""
        spread = self.spread
        before = spread.position, list(spread._since), spread.state, spread.last_t, spread._reached
        self.batch(10)
        self.found.pop()
        spread.position, spread._since, spread.state, spread.last_t, spread._reached = before
        self.take(self.tables[-1].num_rows)

    def catch_up(self, chosen: set[int]) -> None:
        self.change(chosen, caught_up=True)

    def change(self, chosen: set[int], *, caught_up: bool = False) -> None:
        wanted = self.of(chosen)
        fresh = [query for query in wanted if query not in self.queries]
        for evaluator in (self.local, self.spread):
            side: Any = evaluator.side_evaluator(fresh) if caught_up and fresh and self.tables else None
            if side is not None:
                side.skip_to(self.tables[0]["seq"][0].as_py() - 1)
            for table in self.tables if side is not None else []:
                side.process(table)
            evaluator.register(wanted, side)
        self.queries = wanted

    def drop(self, _: None = None) -> None:
        """Retention: the log keeps its last batch."""
        self.spread.dump()
        self.tables = self.tables[-1:]
        for segment in self.log.segments() if self.tables else []:
            if segment.first_seq < self.tables[0]["seq"][0].as_py():
                segment.path.unlink()

    def dump(self, _: None = None) -> None:
        self.spread.dump()

    def restart(self, _: None) -> None:
        data = self.spread.dump()
        self.spread = ExecutorsEvaluator.load(PlanCache(session(self.cluster)), FEED, self.log, self.states(), self.queries, data)

    def join(self, name: str) -> None:
        self.cluster.names = sorted({*self.cluster.names, name})

    def leave(self, name: str) -> None:
        self.cluster.names = [one for one in self.cluster.names if one != name]
        self.killed(name)

    def killed(self, name: str) -> None:
        self.cluster.memory.pop(name, None)

    def twice(self, _: None) -> None:
        self.cluster.twice = not self.cluster.twice


@settings(deadline=None, max_examples=examples(15))
@example(1, set(range(len(QUERIES))), 3, [(25, ("restart", None)), (0, ("change", {*range(len(QUERIES))} - {0})), (25, ("dump", None))])
@given(st.integers(0, 1 << 16), CHOICES, st.integers(1, 5) | st.just(70), st.lists(st.tuples(st.integers(-8, 30), EVENTS), min_size=3, max_size=9))
def test_answers_are_those_of_one_evaluator(
    tmp_path_factory: pytest.TempPathFactory, seed: int, chosen: set[int], partitions: int, steps: list[tuple[int, tuple[str, Any]]]
) -> None:
    """There are rows between most events, so states that are lost have rows since their
    snapshot."""
    world = World(tmp_path_factory.mktemp("world"), seed, chosen, partitions)
    for count, (name, argument) in steps:
        if count > 1:
            world.batch(count)
        getattr(world, name)(argument)
    world.batch(20)
    assert found(world.found) == found(world.expected)
    assert (world.spread.position, world.spread.last_t, world.spread.watermark) == (world.local.position, world.local.last_t, world.local.watermark)


class LifeOnExecutors(Life):
    """A job on the cluster; a crash of the driver may kill a worker too. One worker evaluates
    batches of 4 rows."""

    def __init__(self, folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = Cluster(seed)
        super().__init__(folder, seed, monkeypatch)

    def begin(self) -> ExecutorsProcessor:
        if self.chance.random() < 0.3:
            self.cluster.memory.pop(self.chance.choice(self.cluster.names), None)
        snapshots, storing = Snapshots(files_of(self.folder / "state")), STORING if self.is_concurrent else None
        return ExecutorsProcessor(session(self.cluster), FEED, self.log, self.store, snapshots, partitions=3, batch_rows=4, storing=storing)


@settings(deadline=None, max_examples=examples(25))
@given(st.integers(0, 1 << 16), st.lists(STEPS, min_size=6, max_size=12))
def test_whatever_crashes_where_every_answer_is_stored_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: list[tuple[int, str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        live(LifeOnExecutors(tmp_path_factory.mktemp("life"), seed, patch), steps)


def test_a_worker_forgets_states_from_which_no_task_will_go_on(tmp_path: Path) -> None:
    world = World(tmp_path, 1, {0, 1}, 4)
    world.batch(10)
    world.join("c")
    world.batch(10)
    world.batch(10)
    kept = [(key, name) for worker in world.cluster.memory.values() for key, (name, _) in worker.states.items()]
    assert {name for _, name in kept} == {world.spread.state}
    assert sum(stage == "keyed" for (_, stage, _), _ in kept) == 4, "one of a partition, though one moved"
    # Now all queries have all rows, so no partition keeps a state by entity.
    world.catch_up({len(PARTITIONED), len(PARTITIONED) + 1})
    world.batch(10)
    busy = [worker for worker in world.cluster.memory.values() if any(name == world.spread.state for name, _ in worker.states.values())]
    assert {stage for worker in busy for _, stage, _ in worker.states} == {"broadcast"}


def test_running_queries_keep_what_they_know_from_rows_that_are_no_longer_in_the_log(tmp_path: Path) -> None:
    """Entity a came in before; its exit is found although its first rows were deleted when another
    query joins."""
    world = World(tmp_path, 1, {0}, 3)
    for places in ([("a", 0, 9.0), ("a", 1, 2.0)], [("b", 10, 9.0)], [("a", 30, 9.0), ("b", 40, 9.0)]):
        rows = [{"event": "position", "entity": entity, "t": t, "x": place, "y": place} for entity, t, place in places]
        world.take(world.given(world.stamper.stamp(pa.Table.from_pylist(rows, schema=row_schema(FEED)))).num_rows)
        if len(world.tables) == 2:
            world.drop()
            world.catch_up({0, 1})
    kinds = {row["kind"] for outcome in world.found for row in outcome.changes.to_pylist()}
    assert (kinds, found(world.found)) == ({"in", "out"}, found(world.expected))
