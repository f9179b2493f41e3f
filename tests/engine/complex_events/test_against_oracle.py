"""Detections equal the oracle's occurrences for any batches, partitions and restarts."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.complex_events.pattern import shortest
from engine.complex_events.specification import notices_of
from engine.specification import check
from tests.engine.complex_events.worlds import PLANE, as_tree, compare, documents, longer, rows
from tests.examples import examples
from tests.oracles.complex_events import Row, answers, occurrences


@settings(max_examples=examples(150))
@given(rows(), st.lists(documents(), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_detections_are_those_of_all_occurrences(world: list[Row], queries: list[Any], chance: random.Random) -> None:
    compare(queries, world, chance, chance.randint(1, 3))


@settings(max_examples=examples(60))
@given(rows(most=6), st.sampled_from([4, 5]).flatmap(documents))
def test_deep_patterns(world: list[Row], query: Any) -> None:
    compare([query], world)


@settings(max_examples=examples(75))
@given(rows(most=14), st.lists(documents(2), min_size=3, max_size=3))
def test_longer_streams(world: list[Row], queries: list[Any]) -> None:
    compare(queries, world)


@settings(max_examples=examples(75))
@given(rows(most=12), st.lists(documents(2), min_size=1, max_size=3), st.integers(2, 50), st.data())
def test_times_and_spans_of_many_ticks(world: list[Row], queries: list[Any], factor: int, data: st.DataObject) -> None:
    """Times and spans are stretched, so that events lie many ticks apart."""
    moved = sorted(row["t"] * factor + data.draw(st.integers(0, factor)) for row in world)
    stretched = [{**row, "t": t - 40} for row, t in zip(world, moved, strict=True)]
    compare([longer(query, factor) for query in queries], stretched)


@settings(max_examples=examples(150))
@given(rows(), documents())
def test_no_occurrence_is_shorter_than_its_patterns_shortest(world: list[Row], query: Any) -> None:
    least = shortest(check(query, PLANE).pattern)
    found = occurrences(as_tree(query)["pattern"], world, {**query, "within": 10**6})
    assert not found if least is None else all(one.end - one.start >= least for one in found)
    assert not notices_of(query, PLANE) or not answers(world, [as_tree(query)])
