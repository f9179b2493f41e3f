"""Constraint queries give the oracle's answers with every form of expiration, for any
batches, partitions and restarts."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.constraint_queries.reader import EXPIRATIONS
from tests.engine.constraint_queries.worlds import GLOBE, PLANE, one_document, rows, run
from tests.examples import examples
from tests.oracles.constraint_queries import Row, answers


@settings(max_examples=examples(125))
@given(rows(), st.lists(one_document(), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_answers_on_the_plane_are_those_of_all_tuples(world: list[Row], documents: list[Any], chance: random.Random) -> None:
    assert run(documents, world, PLANE, chance, chance.randint(1, 3)) == answers(world, documents)


@settings(max_examples=examples(60))
@given(rows(globe=True), st.lists(one_document(globe=True), min_size=1, max_size=2), st.randoms(use_true_random=False))
def test_answers_on_the_globe_are_those_of_all_tuples(world: list[Row], documents: list[Any], chance: random.Random) -> None:
    assert run(documents, world, GLOBE, chance) == answers(world, documents, geographic=True)


@settings(max_examples=examples(60))
@given(rows(most=8), one_document(most=4))
def test_the_three_forms_of_expiration_answer_alike(world: list[Row], document: Any) -> None:
    found = [run([{**document, "expiration": form}], world, PLANE) for form in EXPIRATIONS]
    assert found == [answers(world, [document])] * 3
