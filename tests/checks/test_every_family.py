"""The guarantees of every family's operator, checked through the evaluator: answers depend only on
the accepted events."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.families import FAMILIES
from engine.model.changes import ANSWERS
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.sources.delivery import Shuffle
from tests.checks.families import TEST_FAMILIES, WORLDS
from tests.examples import examples
from tests.strategies import World, stamped, summed

pytestmark = pytest.mark.parametrize("family", WORLDS)
SEEDS = st.integers(0, 2**16)


@pytest.fixture(autouse=True, scope="module")
def with_test_families() -> Iterator[None]:
    FAMILIES.update(TEST_FAMILIES)
    yield
    for name in TEST_FAMILIES:
        del FAMILIES[name]


def cut(table: pa.Table, chance: random.Random | None) -> Iterator[pa.Table]:
    """The rows in one batch, or in small ones of random sizes."""
    start = 0
    while start < table.num_rows:
        size = chance.randint(1, 6) if chance else table.num_rows
        yield table.slice(start, size)
        start += size


def answer(
    world: World, rows: pa.Table | None = None, *, chance: random.Random | None = None, partitions: int = 1, reload: bool = False
) -> Counter[str]:
    rows = world.stamped() if rows is None else rows
    queries = world.queries()
    evaluator = Evaluator.start(world.feed, queries, partitions)
    asserted = [ANSWERS.empty_table()]
    for batch in cut(rows, chance):
        asserted.append(evaluator.process(batch).changes)
        evaluator.check()
        if reload:
            evaluator = Evaluator.load(world.feed, queries, evaluator.dump())
            evaluator.check()
    asserted.append(evaluator.finish().changes)
    return summed(pa.concat_tables(asserted))


def in_worlds(test: object) -> object:
    """Runs the test in the worlds of its family."""

    @settings(max_examples=examples(25))
    @given(data=st.data(), seed=SEEDS)
    def run(family: str, data: st.DataObject, seed: int) -> None:
        test(data.draw(WORLDS[family]()), random.Random(seed))  # type: ignore[operator]

    return run


@in_worlds
def test_batches_partitions_and_restored_snapshots_do_not_change_the_answers(world: World, chance: random.Random) -> None:
    """The operator's inputs are not changed either."""
    rows = world.stamped()
    before = rows.to_pylist()
    whole = answer(world, rows)
    assert answer(world, rows, chance=chance) == whole, "small batches"
    assert answer(world, rows, chance=chance, partitions=4) == whole, "several partitions"
    assert answer(world, rows, chance=chance, partitions=2, reload=True) == whole, "restored after each batch"
    assert rows.to_pylist() == before


@in_worlds
def test_disorder_within_the_lateness_does_not_change_the_answers(world: World, chance: random.Random) -> None:
    rows = world.stamped()
    shuffle = Shuffle(world.feed, world.feed.lateness, chance.randint(0, 99))
    moved = pa.concat_tables(shuffle.shuffled([rows.select(rows.column_names[:-2])]), promote_options="default")
    if moved.num_rows:
        again = stamped(moved.to_pylist(), world.feed)
        assert without_positions(world, again) == without_positions(world, rows)


def without_positions(world: World, rows: pa.Table) -> Counter[str]:
    """The answer without evidence: another order of arrival has other positions."""
    evaluator = Evaluator.start(world.feed, world.queries())
    return summed(pa.concat_tables([evaluator.process(rows).changes, evaluator.finish().changes]), evidence=False)


@in_worlds
def test_a_query_registered_later_catches_up_from_history(world: World, chance: random.Random) -> None:
    rows, queries, partitions = world.stamped(), world.queries(), chance.randint(1, 3)
    first = queries[: chance.randint(0, len(queries) - 1)]
    middle = chance.randint(0, rows.num_rows)
    main = Evaluator.start(world.feed, first, partitions)
    asserted = [main.process(batch).changes for batch in cut(rows.slice(0, middle), chance)]
    side = main.side_evaluator([query for query in queries if query not in first])
    asserted += [side.process(batch).changes for batch in cut(rows.slice(0, middle), chance)]
    main.register(queries, side)
    main.check()
    asserted += [main.process(batch).changes for batch in cut(rows.slice(middle), chance)]
    asserted.append(main.finish().changes)
    assert summed(pa.concat_tables([ANSWERS.empty_table(), *asserted])) == answer(world)


@in_worlds
def test_deregistering_a_query_does_not_change_the_answers_of_the_others(world: World, chance: random.Random) -> None:
    rows, queries = world.stamped(), world.queries()
    staying = queries[1:]
    middle = chance.randint(0, rows.num_rows)
    evaluator = Evaluator.start(world.feed, queries)
    asserted = [evaluator.process(batch).changes for batch in cut(rows.slice(0, middle), chance)]
    evaluator.register(staying)
    evaluator.check()
    asserted += [evaluator.process(batch).changes for batch in cut(rows.slice(middle), chance)]
    asserted.append(evaluator.finish().changes)
    found = summed(pa.concat_tables([ANSWERS.empty_table(), *asserted]))
    assert of(found, staying) == of(answer(world), staying)


def of(answers: Counter[str], queries: list[RegisteredQuery]) -> Counter[str]:
    names = [f"('query', {query.id!r})" for query in queries]
    return Counter({fact: count for fact, count in answers.items() if any(name in fact for name in names)})


@in_worlds
def test_counters_report_the_number_of_events_kept_and_without_queries_the_state_is_empty(world: World, chance: random.Random) -> None:
    evaluator = Evaluator.start(world.feed, world.queries())
    for batch in cut(world.stamped(), chance):
        evaluator.process(batch)
    assert all(work["events_kept"] >= 0 for work in evaluator.counters().values())
    evaluator.register([])
    assert evaluator.counters() == {}
    assert evaluator.finish().changes.num_rows == 0


def test_every_test_world_has_answers(family: str) -> None:
    """So that the checks are not vacuous."""
    found: list[int] = []

    @settings(max_examples=examples(40))
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        found.append(answer(data.draw(WORLDS[family]())).total())

    look()
    assert sum(count > 0 for count in found) >= len(found) // 4
