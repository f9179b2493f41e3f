"""Sums in comparisons: answers against the oracle, both written forms, and the bounds that
differences of times give to the graph."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.constraint_queries.trigger import translate
from engine.constraint_queries.trigger_writer import trigger_text
from engine.model.faults import Refused
from engine.specification import check
from tests.engine.constraint_queries.worlds import PLANE, rows, run, sums
from tests.engine.constraint_queries.writing import document_of
from tests.examples import examples
from tests.oracles.constraint_queries import answers


@st.composite
def documents(draw: st.DrawFn) -> dict:
    names = ["V1", "V2", "V3"][: draw(st.integers(1, 3))]
    compare = draw(st.lists(sums(names), min_size=1, max_size=2))
    times = [{"between": names, "dt": [-4, 4]}] if len(names) > 1 else []
    found = {"family": "constraint", "variables": {name: {} for name in names}, "constraints": [*times, {"between": names, "compare": compare}]}
    if len(names) > 1 and draw(st.booleans()):
        found["symmetric"] = [names]
    return found | {"report": draw(st.sampled_from(["all", "first"])), "expiration": draw(st.sampled_from(["tight", "loose", "domains"]))}


def possible(document) -> bool:
    """Whether no differences of times contradict each other."""
    try:
        check(document, PLANE)
    except Refused as refused:
        assert all("no events can satisfy" in fault.message for fault in refused.faults), refused
        return False
    return True


@settings(max_examples=examples(40), deadline=None)
@given(document=documents().filter(possible), arrived=rows(most=6), seed=st.integers(0, 999))
def test_answers_are_those_of_the_definition(document, arrived, seed):
    assert run([document], arrived, PLANE, random.Random(seed), 2) == answers(arrived, [document])


@settings(max_examples=examples(60), deadline=None)
@given(document=documents().filter(possible))
def test_text_and_json_are_read_back_as_equal(document):
    found = check(document, PLANE)
    assert check(document_of(found), PLANE) == found
    assert check({"family": "constraint", "trigger": trigger_text(found)}, PLANE) == found


def test_the_text_has_sums():
    text = "CREATE TRIGGER warm FOR E AS A, E AS B WHEN A.v - B.v > 2 * B.n + 0.5 AND B.t - A.t IN [0, 5]"
    assert translate(text).document["constraints"][0] == {"between": ["A", "B"], "compare": [["A.v - B.v", ">", "2 * B.n + 0.5"]]}


def written(*compare, dt=(0, 5)):
    return {
        "family": "constraint",
        "variables": {"A": {}, "B": {}},
        "constraints": [{"between": ["A", "B"], "dt": list(dt)}, {"between": ["A", "B"], "compare": list(compare)}],
    }


def faults(document):
    with pytest.raises(Refused) as refused:
        check(document, PLANE)
    return {fault.pointer: fault.message for fault in refused.value.faults}


def test_a_difference_of_times_takes_part_in_the_proof_and_bounds_memory():
    assert "add up to" in faults(written(["B.t - A.t", ">", 5]))["/constraints/1"]
    check(written(["B.t", "<", "A.t + 9"], dt=(0, None)), PLANE)


@pytest.mark.parametrize(
    ("side", "word"),
    [
        ("A.v * B.v", "at most one column"),
        ("A.v +", "ends too early"),
        ("(A.v + 1) * 2", "no parentheses"),
        ("-A.v + 1", "before the first constant"),
        ("A.w + 1", "Known"),
        ("A.s + 1", "type string"),
        ("A.v + C.v", "Known"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(side, word):
    assert word in faults(written([side, "<", 3]))["/constraints/1/compare/0/0"]
