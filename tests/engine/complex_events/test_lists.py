"""Queries evaluated by lists and by searches give the same rows, with the same
witnesses, for any batches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.complex_events import pattern as tree
from engine.complex_events.operator import CompositeOperator, CompositeState
from engine.complex_events.pattern import Pattern
from engine.complex_events.plan import CompositeIndex
from engine.complex_events.query_search import BY_LISTS, LISTED, MOST_WAITING, SEARCHED
from engine.model.batch import Batch, EntityDictionary
from tests.engine.complex_events.worlds import NAMES, PLANE, SCHEMA, SPANS, as_tree
from tests.engine.complex_events.writing import pattern_tree
from tests.engine.runs import registered
from tests.examples import examples
from tests.oracles.complex_events import Row, detections

OPERATOR = CompositeOperator()


class Run:
    """Batches through the operator; `by_lists`: whether queries may be evaluated by lists."""

    def __init__(self, documents: Sequence[Mapping[str, Any]], by_lists: bool) -> None:
        self.by_lists, self.documents = by_lists, list(documents)
        self.names = EntityDictionary()
        self.index = self.compiled()
        self.state = OPERATOR.keyed.initial(self.index)
        self.answers: Counter[Any] = Counter()

    def compiled(self) -> CompositeIndex:
        index = OPERATOR.compile(registered(self.documents, PLANE), PLANE)
        per_entity, program = index.programs
        assert program.tables.listed.all()
        if self.by_lists:
            return index
        slower = replace(program, tables=program.tables._replace(listed=np.zeros_like(program.tables.listed)))
        return replace(index, programs=(per_entity, slower))

    def register(self, document: Mapping[str, Any]) -> None:
        """Adds a query, which reads later events only."""
        old = self.index
        self.documents.append(document)
        self.index = self.compiled()
        self.state = OPERATOR.keyed.migrate(self.index, [(old, self.state)])

    def take(self, rows: Sequence[Row]) -> None:
        schema = SCHEMA.append(pa.field("seq", pa.int64()))
        batch = Batch(pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema), self.names)
        found = OPERATOR.keyed.step(self.index, self.state, batch, int(batch.t[-1]))
        OPERATOR.keyed.check(self.index, self.state)
        for row in found.changes.to_pylist():
            evidence = tuple((item["variable"], item["seq"]) for item in row["evidence"])
            self.answers[row["query"], row["start"], row["end"], evidence] += 1

    def counted(self, counter: int) -> int:
        return int(self.state.programs[1].counters[counter])


def cut(rows: Sequence[Row], chance: random.Random, most: int) -> list[Sequence[Row]]:
    parts, rest = [], rows
    while rest:
        size = chance.randint(1, most)
        parts.append(rest[:size])
        rest = rest[size:]
    return parts


def both_ways(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], chance: random.Random, most: int) -> tuple[Run, Run]:
    """All but the last query from the first event on, the last one from the middle on; each
    way with separate batches."""
    runs = Run(documents[:-1], True), Run(documents[:-1], False)
    middle = len(rows) // 2
    for run, largest in zip(runs, (most, chance.choice([1, 3, most])), strict=True):
        for part in cut(rows[:middle], chance, largest):
            run.take(part)
        run.register(documents[-1])
        for part in cut(rows[middle:], chance, largest):
            run.take(part)
    assert runs[0].answers == runs[1].answers
    assert runs[1].counted(LISTED) == 0
    return runs


@st.composite
def positive(draw: st.DrawFn, depth: int) -> Pattern:
    """Trees without negation; those that ask for every start often."""
    if depth == 0 or draw(st.integers(0, 6)) == 0:
        return tree.Primitive(draw(st.sampled_from(NAMES)))
    first, second = draw(positive(depth - 1)), draw(positive(depth - 1))
    what = draw(st.sampled_from(["and", "and", "or", "interval", "interval", "sequence", "bounded", "bounded"]))
    if what in ("and", "interval"):
        return tree.And(first, second, None if what == "and" else draw(SPANS))
    if what == "or":
        return tree.Or(first, second)
    low = draw(st.sampled_from([0, 0, 1, 2])) if what == "bounded" else 0
    return tree.Sequence(first, second, low, low + draw(st.sampled_from([1, 2, 5])) if what == "bounded" else None)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Primitives that share events: C is A or B too."""
    readers = {"A": ["a"], "B": ["b"], "C": draw(st.sampled_from([["c"], ["a", "c"], ["a", "b"]])), "D": ["d"]}
    primitives = {name: {"where": [["reader", "in", some]]} for name, some in readers.items()}
    pattern = pattern_tree(draw(positive(draw(st.sampled_from([1, 2, 2, 3, 3, 4])))))
    return {"family": "composite", "pattern": pattern, "primitives": primitives, "within": draw(st.sampled_from([0, 2, 5, 9, 20])), "per": None}


def stream(chance: random.Random, count: int, steps: Sequence[int], late: int = 3, readers: Sequence[str] = "abcd") -> list[Row]:
    """Events with equal times; seq is the order of arrival, which is not that of times."""
    now = 0
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        now += chance.choice(steps)
        rows.append({"entity": chance.choice("ab"), "t": now, "x": None, "y": None, "reader": chance.choice(readers)})
    order = sorted(range(count), key=lambda i: (rows[i]["t"] + chance.randint(0, late), i))
    for seq, i in enumerate(order):
        rows[i]["seq"] = seq
    return sorted(rows, key=lambda row: (row["t"], row["seq"]))


@settings(max_examples=examples(100))
@given(st.lists(documents(), min_size=2, max_size=4), st.randoms(use_true_random=False), st.sampled_from([12, 40]))
def test_both_ways_give_the_same_rows(queries: list[dict[str, Any]], chance: random.Random, count: int) -> None:
    both_ways(stream(chance, count, [0, 0, 1, 1, 2, 3]), queries, chance, chance.choice([2, 9, count]))


LONG = ("(A AND B) :[0,6] (C AND (A OR D))", "(A ;[4] B) AND (C OR D)", "A : (B AND (C : D))", "(A :[1,3] B) OR (C AND D)", "A AND B")


@pytest.mark.parametrize("pattern", LONG)
@pytest.mark.parametrize("within", [15, 60, 400])
def test_many_deferred_candidates(pattern: str, within: int) -> None:
    """More deferred events of a query than allowed, and lists that get too long: the query
    is searched from there on."""
    chance = random.Random(7)
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in NAMES}
    document = {"family": "composite", "pattern": pattern, "primitives": primitives, "within": within, "per": None}
    listed, _ = both_ways(stream(chance, 4 * MOST_WAITING, [0, 1, 1, 2]), [document, document], chance, 3 * MOST_WAITING)
    assert listed.counted(LISTED) > 0
    assert len(listed.answers) > 100


def wide(chance: random.Random, names: Sequence[str]) -> Pattern:
    """A tree with each of the primitives once; every occurrence contains nearly all."""
    if len(names) == 1:
        return tree.Primitive(names[0])
    cut = chance.randint(1, len(names) - 1)
    first, second = wide(chance, names[:cut]), wide(chance, names[cut:])
    what = chance.choice(["and", "and", "and", "interval", "bounded", "or" if len(names) == 2 else "sequence"])
    if what in ("and", "interval"):
        return tree.And(first, second, None if what == "and" else chance.choice([20, 60]))
    if what == "or":
        return tree.Or(first, second)
    return tree.Sequence(first, second, 0, chance.choice([20, 60]) if what == "bounded" else None)


@pytest.mark.parametrize("seed", range(6))
def test_more_primitives_than_stand_in_the_rows_of_guards(seed: int) -> None:
    """Twelve of them, some of them rare: also the guards beyond the second row
    decide which events wait."""
    chance, names = random.Random(seed), "ABCDEFGHIJKL"
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in names}
    documents: list[dict[str, Any]] = [
        {"family": "composite", "pattern": pattern_tree(wide(chance, chance.sample(names, 12))), "primitives": primitives, "within": 150, "per": None}
        for _ in range(12)
    ]
    rows = stream(chance, 600, [0, 1, 1, 2], readers=names.lower() + "abcdefgh" * 3)
    listed, searched = both_ways(rows, documents, chance, 80)
    assert listed.counted(LISTED) > 0 and searched.counted(SEARCHED) > 0
    assert len(listed.answers) > 20


def still_by_lists(state: CompositeState) -> list[bool]:
    assert state.work is not None
    return [bool(one) for one in state.work.waiting.queries[:, BY_LISTS]]


def test_lists_that_get_too_long_are_given_up() -> None:
    chance = random.Random(3)
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in NAMES}
    documents = [
        {"family": "composite", "pattern": pattern, "primitives": primitives, "within": 2_000, "per": None} for pattern in ("A :[0,2] B", "A AND B")
    ]
    run = Run(documents, True)
    for part in cut(stream(chance, 3_000, [0, 1, 1, 2]), random.Random(1), 3):
        run.take(part)
    assert still_by_lists(run.state.programs[1]) == [True, False]
    assert run.counted(SEARCHED) > 100


def test_a_start_that_is_not_the_latest_counts_before_a_bound() -> None:
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in "ABC"}
    document = {"family": "composite", "pattern": "A :[1,1] (B AND C)", "primitives": primitives, "within": 9, "per": None}
    rows = [
        {"seq": i, "entity": "x", "t": t, "x": None, "y": None, "reader": reader}
        for i, (reader, t) in enumerate([("a", 1), ("b", 2), ("b", 5), ("c", 6)])
    ]
    run = Run([document], True)
    run.take(rows)
    assert [(start, end) for _, start, end, _ in run.answers] == [(1, 6)]
    assert run.counted(LISTED) == 1


@pytest.mark.parametrize("by_lists", [True, False])
@pytest.mark.parametrize("pattern", ["(A :[1,1] C) AND (B : C)", "(B : C) AND (A :[1,1] C)"])
def test_an_event_that_completes_both_parts_has_the_latest_events_beside_it(pattern: str, by_lists: bool) -> None:
    """The C at 6 ends both parts. The A at 5 is the evidence: with the B at 2, the A at 2 and the C
    at 3 would make an occurrence of the same start."""
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in "ABC"}
    document = {"family": "composite", "pattern": pattern, "primitives": primitives, "within": 9, "per": None}
    placed = [("a", 2), ("b", 2), ("c", 3), ("a", 5), ("c", 6)]
    rows = [{"seq": i, "entity": "x", "t": t, "x": None, "y": None, "reader": reader} for i, (reader, t) in enumerate(placed)]
    run = Run([document], by_lists)
    run.take(rows)
    witnesses = {end: {seq for _, seq in evidence} for _, _, end, evidence in run.answers}
    assert witnesses == {3: {0, 1, 2}, 6: {1, 3, 4}}
    for (end, _), occurrences in detections(rows, as_tree(document))[None].items():
        assert max(one.start for one in occurrences) == 2
        assert witnesses[end] in [one.events for one in occurrences if one.start == 2]
    assert (run.counted(LISTED) > 0) == by_lists
