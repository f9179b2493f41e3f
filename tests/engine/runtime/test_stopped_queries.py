"""A query that cannot be evaluated is stopped, and the others answer as if it had never been
there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.families import FAMILIES, Family
from engine.operator import OperatorFailed, RegisteredQuery
from engine.runtime import steps as step_sizes
from engine.runtime.processor import FeedProcessor
from engine.runtime.store import Commit
from engine.sources.eventlog import Span
from tests.engine.runtime.faulty.specification import Faulty
from tests.engine.runtime.test_processor import PLACES, QUERIES, Life

Worlds = Callable[[int, list[Faulty]], Life]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    patch = pytest.MonkeyPatch()
    patch.setitem(FAMILIES, "faulty", Family("tests.engine.runtime.faulty", "FaultyOperator"))

    def make(seed: int, specifications: list[Faulty]) -> Life:
        faulty = [RegisteredQuery(f"f{i}", 1, specification) for i, specification in enumerate(specifications)]
        return Life(tmp_path_factory.mktemp("life"), seed, patch, [QUERIES[0], *faulty, *QUERIES[1:]])

    yield make
    patch.undo()


def register(world: Life, count: int) -> None:
    world.store.wanted, world.store.number = list(world.store.known[:count]), world.store.number + 1


def settle(world: Life) -> None:
    """Until the job is at the feed's version; each query that is refused takes one round."""
    for _ in range(len(world.store.known) + 2):
        world.act(lambda: world.job.follow())
    assert world.store.head.query_version == world.store.number


def stopped(world: Life) -> set[str]:
    return {query for query, _ in world.store.stopped}


SPECIFICATIONS = st.builds(Faulty, st.sampled_from(["answers", "answers", "stops", "breaks", "pairs", "never"]), st.integers(0, 60))
STEPS = st.tuples(st.integers(0, 30), st.sampled_from(["batch", "batch", "add", "follow", "crash"]), st.sampled_from(PLACES))
"""How many rows come, what happens then, and where the process dies in it."""


@given(
    st.integers(0, 2**32),
    st.lists(SPECIFICATIONS, min_size=1, max_size=5),
    st.integers(1, 8),
    st.integers(1, 40),
    st.lists(STEPS, min_size=4, max_size=10),
)
def test_the_others_answer_as_without_it_whatever_crashes_where(
    life: Worlds, seed: int, specifications: list[Faulty], first: int, most: int, steps: list[tuple[int, str, str]]
) -> None:
    world = life(seed, specifications)
    with pytest.MonkeyPatch.context() as patch:
        # Steps of a few rows, and transactions of a few answers.
        patch.setattr(step_sizes, "STEP_ROWS", most)
        patch.setattr(step_sizes, "COMMIT_ANSWERS", most)
        register(world, first)
        for count, step, place in steps:
            world.grow(count)
            world.armed = {place: 1} if step != "crash" else {}
            if step == "add":
                register(world, len(world.store.wanted) + 1)
            elif step == "follow":
                world.act(lambda: world.job.follow())
            elif step == "batch":
                world.run_batch()
            elif step == "crash":
                world.job = world.begin()
        world.armed = {}
        world.run_batch()
        settle(world)
    world.check()
    faults = {query.id for query in world.store.known if isinstance(query.specification, Faulty) and query.specification.does != "answers"}
    assert stopped(world) <= faults
    assert {query.id for query in world.store.wanted if query.id in faults and query.specification.does == "never"} <= stopped(world)


def test_each_fault_stops_its_own_query_with_the_reason(life: Worlds) -> None:
    world = life(1, [Faulty(), Faulty("stops", 30), Faulty("breaks", 40), Faulty("pairs", 20), Faulty("pairs", 20), Faulty("never")])
    register(world, len(world.store.known))
    settle(world)
    for _ in range(4):
        world.grow(40)
        world.run_batch()
    world.check()
    assert stopped(world) == {"f1", "f2", "f3", "f4", "f5"}
    reasons = {query: reason.partition("time")[0] for (query, _), reason in world.store.stopped.items()}
    assert reasons["f1"] == "row of "
    assert reasons["f2"] == "its evaluation failed (ZeroDivisionError: row of "
    assert reasons["f5"] == "its evaluation failed (LookupError: no index)"
    assert {key[0] for key, count in world.store.facts.items() if count} >= {"f0", "f1", "f2"}, "what was found before stays"


def test_a_stop_is_stored_with_the_batch_or_not_at_all(life: Worlds) -> None:
    world = life(2, [Faulty("stops", 10)])
    register(world, 4)
    settle(world)
    world.grow(60)
    world.armed = {"store.lost": 1}
    with pytest.raises(Exception, match=r"store\.lost"):
        world.job.process()
    assert not world.store.stopped
    world.job = world.begin()
    assert "f0" in {query for query, _ in world.job.queries}
    world.run_batch()
    assert stopped(world) == {"f0"}
    again = world.begin()
    assert "f0" not in {query for query, _ in again.queries}
    world.check()


def test_a_query_with_too_many_answers_at_a_time_is_stopped_with_the_figure(life: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_sizes, "MOST_ANSWERS", 50)
    world = life(3, [Faulty()])
    register(world, 4)
    settle(world)
    world.grow(40)
    world.run_batch()
    assert not world.store.stopped
    world.grow(100)
    world.run_batch()
    assert list(world.store.stopped) == [("f0", 1)]
    assert "answers in 100 rows; at most 50" in world.store.stopped["f0", 1]
    world.check()


def test_a_batch_with_many_answers_is_stored_in_parts(life: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_sizes, "STEP_ROWS", 40)
    monkeypatch.setattr(step_sizes, "COMMIT_ANSWERS", 100)
    world = life(4, [Faulty(), Faulty(), Faulty(), Faulty()])
    register(world, 8)
    settle(world)
    sizes: list[int] = []
    keep = world.store.commit

    def commit(given: Commit) -> bool:
        sizes.append(len(given.changes))
        return keep(given)

    monkeypatch.setattr(world.store, "commit", commit)
    world.grow(1000)
    world.run_batch()
    world.check()
    assert len(sizes) > 10
    assert max(sizes) <= 400


def test_a_failure_that_does_not_come_again_stops_nobody(life: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    world = life(5, [Faulty()])
    register(world, 4)
    settle(world)
    world.grow(40)
    failures = iter([True])
    take = FeedProcessor._evaluate

    def once(self: FeedProcessor, span: Span) -> object:
        if next(failures, False):
            raise OperatorFailed("faulty", "MemoryError: for a moment")
        return take(self, span)

    monkeypatch.setattr(FeedProcessor, "_evaluate", once)
    world.run_batch()
    assert not world.store.stopped
    world.check()


@pytest.mark.parametrize("does", ["stops", "breaks"])
def test_what_is_being_stored_is_not_stored_again_when_the_next_batch_stops_a_query(life: Worlds, does: str) -> None:
    world = life(6, [Faulty(does, 30)])
    world.is_concurrent = True
    world.job = world.begin()
    register(world, 2)
    settle(world)
    world.store.seconds = 0.3
    for _ in range(5):
        world.grow(20)
    world.run_batch()
    assert stopped(world) == {"f0"}
    world.check()
