"""Accepted and refused documents, and both written forms."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from engine.complex_events.pattern import Absence, And, Around, Before, Or, Primitive, Sequence, describe, pattern_text
from engine.complex_events.pattern_text import translate
from engine.complex_events.specification import notices_of
from engine.model.faults import Refused
from engine.model.feed import Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.complex_events.worlds import COLUMNS, PLANE, documents
from tests.engine.complex_events.writing import document_of, pattern_tree

MS = Feed("dock", Crs.PLANAR, TimeUnit.MS, columns=COLUMNS)
A, B, C, D = (Primitive(name) for name in "ABCD")


def document(pattern: Any, names: str = "ABC", **more: Any) -> dict[str, Any]:
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in names}
    return {"family": "composite", "pattern": pattern, "primitives": primitives, "within": 100, **more}


def pattern(text: str, feed: Feed = PLANE) -> Any:
    names = [name for name in "ABCD" if re.search(rf"\b{name}\b", text)]
    return check(document(text, "".join(names), within=10**7), feed).pattern


def faults(given: Any, feed: Feed = PLANE) -> list[str]:
    with pytest.raises(Refused) as refused:
        check(given, feed)
    return [str(fault) for fault in refused.value.faults]


def test_sequences_bind_tighter_than_and_and_and_tighter_than_or() -> None:
    assert pattern("A OR B AND C : D") == Or(A, And(B, Sequence(C, D)))
    assert pattern("(A OR B) AND C") == And(Or(A, B), C)


def test_operators_associate_to_the_left() -> None:
    assert pattern("A : B ;[5] C : D") == Sequence(And(Sequence(A, B), C, 5), D)
    assert pattern("A and B and C") == And(And(A, B), C)
    assert pattern("A : !B[5] : C") == Sequence(Absence(A, B, 5), C)
    assert pattern("A : B : !C : D") == Sequence(Sequence(A, B), D, without=C)


def test_bounds_are_numbers_durations_or_null() -> None:
    assert pattern("A :[2,PT1M] B", MS) == Sequence(A, B, 2, 60_000)
    assert pattern("A : !B :[null, 'PT0.5S'] C", MS) == Sequence(A, C, 0, 500, B)
    assert pattern("A :[PT1S,PT2S] B", MS) == Sequence(A, B, 1000, 2000)
    assert pattern("A :[PT0,5S,P1DT2,5S] B", MS) == Sequence(A, B, 500, 86_402_500)
    assert pattern("A :[PT1S,null] B", MS) == Sequence(A, B, 1000)
    assert pattern("!A[5] : B : C") == Sequence(Before(A, B, 5), C)
    assert pattern("A AND !B[5] AND C") == And(Around(A, B, 5), C)
    assert pattern("A AND !B[5] : C") == And(A, Before(B, C, 5))
    assert pattern("A : !(B OR C)[PT1S]", MS) == Absence(A, Or(B, C), 1000)


@given(documents())
def test_all_forms_are_read_back(given: Any) -> None:
    specification = check(given, PLANE)
    for as_tree in (False, True):
        assert check(document_of(specification, as_tree=as_tree), PLANE) == specification
    assert translate(pattern_text(specification.pattern)).tree == pattern_tree(specification.pattern)


def test_lists_in_trees_associate_to_the_left() -> None:
    assert check(document({"sequence": ["A", "B", "C"]}), PLANE).pattern == Sequence(Sequence(A, B), C)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("A : !B", "line 1, column 7", "ends too early"),
        ("!A : B", "line 1, column 4", "expected '['"),
        ("A :[0,5] !B : C", "line 1, column 10", "bounds before r"),
        ("A : !B : !C : A", "line 1, column 10", "!(q OR r)"),
        ("A :\n  Bx", "line 2, column 3", "did you mean 'B'"),
        ("A ; B", "line 1, column 5", "expected '['"),
        ("A :[5,2] B", "line 1, column 4", "holds nothing"),
        ("A : !B[PT5M]", "line 1, column 8", "number of ticks"),
        ("A $ B", "line 1, column 3", "unexpected '$'"),
    ],
)
def test_faults_of_a_text_name_the_place(text: str, place: str, words: str) -> None:
    (fault, *_) = [one for one in faults(document(text)) if one.startswith("/pattern")]
    assert place in fault and words in fault


def test_faults_of_a_tree_have_pointers() -> None:
    found = faults(document({"sequence": ["A", {"and": ["B", "X"]}], "bounds": [3, 1]}))
    assert found[0].startswith("/pattern/sequence/1/and/1: unknown primitive 'X'")
    assert found[1].startswith("/pattern/bounds: [3, 1] holds nothing")


def test_primitives_are_checked() -> None:
    given = document("A : B", "AB")
    given["primitives"] = {"A": {"where": [["raeder", "=", "a"]], "prefix": {"n": "x"}}, "B": {"inside": {"region": "dock"}}, "and": {}}
    found = faults(given)
    assert [one.partition(":")[0] for one in found] == [
        "/primitives/A/where/0/0",
        "/primitives/A/prefix/n",
        "/primitives/B/inside/region",
        "/primitives/and",
    ]


def test_primitives_that_the_pattern_does_not_name_are_unused() -> None:
    assert [one.name for one in check(document("A : B"), PLANE).primitives] == ["A", "B"]
    assert faults(document("A : B", primitives={"A": {}, "B": {}, "C": {"where": [["raeder", "=", "c"]]}}))[0].startswith("/primitives/C/where/0/0")


@pytest.mark.parametrize("text", ["A : !B[60] : !C[60]", "A : !B[6] ;[5] C", "A :[0,0] B :[0,0] C"])
def test_what_cannot_occur_is_accepted_and_its_author_hears_of_it(text: str) -> None:
    assert check(document(text), PLANE).text() == text
    assert [notice.startswith("no answers: ") for notice in notices_of(document(text), PLANE)] == [True]


def test_a_pattern_that_can_occur_has_no_notice() -> None:
    for text in ("A : !B[9] : C", "A : !B[5] ;[5] C", "(A :[0,0] B) OR C", "!A[60] : B"):
        assert notices_of(document(text, within=10), PLANE) == [], text


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_durations_of_any_length_are_refused_by_their_bound(digits: int) -> None:
    assert faults(document("A", "A", within=f"P{'9' * digits}D"), MS)[0].startswith("/within: must be below 2^60")
    assert faults(document("A", "A", within=f"-P{'9' * digits}D"), MS)[0].startswith("/within: must be")


def test_limits() -> None:
    for length in (257, 5000):
        assert "at most 256" in faults(document(" : ".join(["A"] * length), "A"))[0]
    tree: Any = "A"
    for _ in range(300):
        tree = {"and": [tree, "A"]}
    assert any("levels deep" in one or "more than 256" in one for one in faults(document(tree, "A")))


def test_a_tree_to_be_shown_names_the_kinds_of_nodes() -> None:
    tree = describe(pattern("(A OR B) : !C[5]"))
    assert [(part.kind, part.label) for part in tree.parts] == [("virtual", "OR"), ("negative", "C")]
    assert [part.kind for part in tree.parts[0].parts] == ["trigger", "trigger"]
