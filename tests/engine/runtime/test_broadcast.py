"""Queries over the rows of all entities: neither their placement nor other queries that come and go
change an answer."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.changes import answers
from engine.model.events import Stamper
from engine.operator import RegisteredQuery
from engine.runtime.broadcast import ADMISSION, BEFORE_ANY_ROW, Broadcast, BroadcastQueries, job_plan, state_name
from engine.runtime.evaluator import Evaluator, missing_states
from engine.specification import check
from tests.engine.runtime.test_processor import FEED, SQUARE, rows_of
from tests.examples import examples

CLOSE = [{"between": ["A", "B"], "dt": [0, 4], "distance": {"max": 1}}]
PROGRAM = """
initiatedAt(up(E)=true, T) :- happensAt(position(E, X, Y), T), X > Y.
terminatedAt(up(E)=true, T) :- happensAt(position(E, X, Y), T), X < Y.
"""
INPUTS = {"position": {"args": ["entity", "x", "y"]}}
PARTITIONED: list[dict[str, Any]] = [
    {"family": "border", "version": 1, "region": SQUARE},
    {"family": "encounter", "version": 1, "distance": 1, "every": 2, "gap": 3},
    {"family": "composite", "version": 1, "pattern": "A : B", "primitives": {"A": {}, "B": {}}, "within": 4, "per": "entity"},
]
BROADCAST: list[dict[str, Any]] = [
    {"family": "constraint", "version": 1, "variables": {"A": {}, "B": {}}, "constraints": CLOSE},
    {"family": "constraint", "version": 1, "variables": {"A": {"where": [["x", ">=", 3]]}, "B": {}}, "constraints": CLOSE},
    {"family": "composite", "version": 1, "pattern": "A : B", "primitives": {"A": {}, "B": {}}, "within": 2},
    {"family": "calculus", "version": 1, "program": PROGRAM, "outputs": ["up"], "window": 12, "step": 4, "inputs": INPUTS},
]


def queries_of(documents: list[dict[str, Any]], first: int) -> list[RegisteredQuery]:
    return [RegisteredQuery(f"q{first + i}", 1, check(document, FEED)) for i, document in enumerate(documents)]


QUERIES = [*queries_of(PARTITIONED, 0), *queries_of(BROADCAST, len(PARTITIONED))]
CHOICES = st.sets(st.integers(0, len(QUERIES) - 1))
STEPS = st.lists(st.tuples(st.integers(0, 30), st.one_of(st.none(), st.tuples(CHOICES, st.booleans()))), min_size=1, max_size=6)


def found(outcomes: list[Any]) -> Counter[str]:
    """Answers, late rows and counts of all steps together."""
    total: Counter[str] = Counter()
    for outcome in outcomes:
        for row in outcome.changes.to_pylist():
            total[str({name: value for name, value in row.items() if name != "weight"})] += row["weight"]
        total.update(f"late {row['seq']}" for row in outcome.late.to_pylist())
        total.update({"processed": outcome.processed, "duplicates": outcome.duplicates})
    return Counter({key: count for key, count in total.items() if count})


def run(partitions: int, tables: list[pa.Table], changes: list[Any], chosen: set[int], *, restarts: bool) -> Counter[str]:
    """A job's run: after each batch the queries may change, new ones with or without the past; it
    may be loaded from its state."""
    queries = [QUERIES[i] for i in sorted(chosen)]
    evaluator, outcomes = Evaluator.start(FEED, queries, partitions), []
    for n, (table, change) in enumerate(zip(tables, changes, strict=True)):
        outcomes.append(evaluator.process(table))
        evaluator.check()
        if change is not None:
            wanted, caught_up = change
            fresh = [QUERIES[i] for i in sorted(wanted) if QUERIES[i] not in queries]
            side: Any = evaluator.side_evaluator(fresh) if caught_up else None
            for earlier in tables[: n + 1] if side is not None else []:
                side.process(earlier)
            queries = [QUERIES[i] for i in sorted(wanted)]
            evaluator.register(queries, side)
        if restarts:
            evaluator = Evaluator.load(FEED, queries, evaluator.dump())
    outcomes.append(evaluator.finish())
    return found(outcomes)


@settings(deadline=None, max_examples=examples(100))
@given(seed=st.integers(0, 1 << 16), chosen=CHOICES, steps=STEPS, partitions=st.integers(2, 5), restarts=st.booleans())
def test_the_answers_are_those_of_one_partition(seed: int, chosen: set[int], steps: list[Any], partitions: int, *, restarts: bool) -> None:
    chance, stamper = random.Random(seed), Stamper()
    begins = np.cumsum([0, *(count // 2 for count, _ in steps)]).tolist()
    rows = [rows_of(chance, count, begin) for (count, _), begin in zip(steps, begins, strict=False)]
    # Some rows come again: at the beginning of the next batch, after which queries may have come,
    # or at the end of their own.
    befores = [rows[0], *rows]
    again = [pa.concat_tables([before.slice(max(len(before) - 4, 0)), own, own.slice(0, 3)]) for own, before in zip(rows, befores, strict=False)]
    tables, changes = [stamper.stamp(one) for one in again], [change for _, change in steps]
    assert run(partitions, tables, changes, chosen, restarts=restarts) == run(1, tables, changes, chosen, restarts=False)


def taken(process: Broadcast, queries: BroadcastQueries, rows: pa.Table, watermark: int) -> Counter[str]:
    """What a process finds, with the queries' ids."""
    total: Counter[str] = Counter()
    for name, changes in process.take(rows, watermark)[1]:
        for row in answers(changes, *queries.keys(process.partitions)[name]).to_pylist():
            total[str({name: value for name, value in row.items() if name != "weight"})] += row["weight"]
    return total


@settings(deadline=None, max_examples=examples(50))
@given(st.integers(0, 1 << 16), st.lists(st.lists(st.integers(0, 2), min_size=8, max_size=8), min_size=1, max_size=4))
def test_partitions_that_move_take_their_queries_with_them(seed: int, places: list[list[int]]) -> None:
    """Partition p is at process `places[n][p]` in turn n; each process makes its state of the
    states of the turn before."""
    chance, stamper = random.Random(seed), Stamper()
    queries = BroadcastQueries(FEED, [(i % 8, RegisteredQuery(f"q{i}", 1, check(BROADCAST[i % 4], FEED))) for i in range(12)])
    whole, total, expected = Broadcast.start(FEED, queries), Counter[str](), Counter[str]()
    states = {ADMISSION: whole.admission.dump(), state_name(queries.partitions): whole.stages.dump()}
    for n, place in enumerate(places):
        rows = stamper.stamp(rows_of(chance, 16, 8 * n))
        shares = [share for one in range(3) if (share := tuple(p for p in range(8) if place[p] == one))]
        processes = [Broadcast.load(FEED, queries, share, states) for share in shares]
        for process in processes:
            total.update(taken(process, queries, rows, 8 * n))
            process.check()
        states = {ADMISSION: processes[0].admission.dump()} | {state_name(one.partitions): one.stages.dump() for one in processes}
        expected.update(taken(whole, queries, rows, 8 * n))
    assert total == expected


def test_a_state_before_any_row_is_made_by_its_reader() -> None:
    queries = BroadcastQueries(FEED, list(enumerate(queries_of(BROADCAST, 0))))
    whole = Broadcast.start(FEED, queries)
    states = {ADMISSION: whole.admission.dump(), state_name(queries.partitions): BEFORE_ANY_ROW}
    rows = Stamper().stamp(rows_of(random.Random(1), 20, 0))
    found = [taken(Broadcast.load(FEED, queries, share, states), queries, rows, 30) for share in ((0, 2), (1, 3))]
    assert found[0] + found[1] == taken(whole, queries, rows, 30)
    assert found[0]
    assert found[1]


def test_only_queries_over_all_entities_have_all_rows() -> None:
    plan = job_plan(QUERIES, FEED, 3)
    assert {query.id for own in plan.partitioned.values() for query in own.queries} == {"q0", "q1", "q2"}
    assert {query.id for query in plan.broadcast.of(range(3))} == {"q3", "q4", "q5", "q6"}
    assert not job_plan(QUERIES, FEED, 1).broadcast


def test_a_job_whose_queries_all_have_all_rows_keeps_no_state_by_entity() -> None:
    queries = queries_of(BROADCAST, 0)
    evaluator = Evaluator.start(FEED, queries, 2)
    assert not missing_states(evaluator.plan, 2, evaluator.states())
    assert not any(name.startswith("keyed") for name in evaluator.states())
    outcome = evaluator.process(Stamper().stamp(rows_of(random.Random(1), 20, 0)))
    assert outcome.processed + outcome.duplicates + outcome.late.num_rows == 20


def test_a_gate_that_was_divided_and_united_again_remembers_each_row_once() -> None:
    chance, stamper = random.Random(1), Stamper()
    evaluator = Evaluator.start(FEED, QUERIES[3:4], 3)
    evaluator.process(stamper.stamp(rows_of(chance, 20, 0)))
    before = evaluator.rows_kept
    evaluator.register(QUERIES[:1])
    evaluator.register(QUERIES[3:4])
    evaluator.check()
    assert evaluator.rows_kept == before


def test_processes_with_other_queries_give_entities_the_same_codes() -> None:
    """Also those whose rows waited when the first of these queries came: some queries read them as
    they come, others when they are in order."""
    chance, stamper = random.Random(1), Stamper()
    evaluator = Evaluator.start(FEED, QUERIES[:1], 4)
    evaluator.process(stamper.stamp(rows_of(chance, 6, 10)))
    evaluator.register(QUERIES)
    states = {name: state.dump() for name, state in evaluator.states().items()}
    names = []
    for p in evaluator.plan.broadcast.partitions:
        process = Broadcast.load(FEED, evaluator.plan.broadcast, (p,), states)
        # Another entity, late enough that all before it are in order now.
        process.take(Stamper().stamp(rows_of(chance, 1, 99).set_column(1, "entity", pa.array(["new"]))), 90)
        names.append(process.admission.dictionary.names)
    assert len(names) > 1
    assert all(some == names[0] for some in names)
