"""The graph of a constraint query for its editor: from document and text, with implied constraints
and unsatisfiable cycles."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

pytestmark = [pytest.mark.services, pytest.mark.django_db]

CHAIN = {
    "family": "constraint",
    "variables": {"A": {"where": [["kind", "=", "tug"]]}, "B": {}, "C": {}},
    "constraints": [
        {"between": ["A", "B"], "dt": [0, "PT5S"], "distance": {"max": 10}},
        {"between": ["B", "C"], "dt": [0, 5000], "distance": {"max": 5, "open": True}},
        {"between": ["A"], "inside": {"region": "square"}},
    ],
}


@pytest.fixture
def ask(people: SimpleNamespace, region: Any, client_of: Callable[..., APIClient]) -> Callable[[Any], dict[str, Any]]:
    def asked(specification: Any) -> dict[str, Any]:
        answer = client_of(people.viewer).post("/api/v1/queries/closure", {"feed": "yard", "specification": specification})
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    return asked


def test_implied_constraints_are_derived(ask: Callable[[Any], dict[str, Any]]) -> None:
    found = ask(CHAIN)
    assert found["faults"] == [] and found["conflict"] is None and found["document"] == CHAIN
    edges = {tuple(edge["between"]): edge for edge in found["edges"]}
    assert edges["A", "B"]["explicit"] == {"dt": True, "distance": True}
    assert edges["A", "C"] == {
        "between": ["A", "C"],
        "dt": [0, 10_000],
        "distance": {"max": 15.0, "open": True},
        "explicit": {"dt": False, "distance": False},
    }


def test_document_and_text_give_the_same_graph(ask: Callable[[Any], dict[str, Any]]) -> None:
    text = ask(CHAIN)["text"]
    assert "INSIDE(A.r, 'square')" in text, "a stored region stays one"
    again = ask({"family": "constraint", "version": 1, "trigger": text})
    assert again["faults"] == [] and again["text"] == text and again["edges"] == ask(CHAIN)["edges"]
    assert ask(again["document"])["text"] == text


def test_an_unsatisfiable_cycle_is_shown(ask: Callable[[Any], dict[str, Any]]) -> None:
    wrong = {**CHAIN, "constraints": [*CHAIN["constraints"], {"between": ["A", "C"], "dt": [20_000, 30_000]}]}
    found = ask(wrong)
    assert {frozenset(pair) for pair in found["conflict"]["cycle"]} == {frozenset("AB"), frozenset("BC"), frozenset("AC")}
    assert sorted(found["conflict"]["constraints"]) == [0, 1, 3]
    assert found["faults"][0]["pointer"] == "/constraints/3" and found["text"] is not None
    far = {**CHAIN, "constraints": [*CHAIN["constraints"], {"between": ["A", "C"], "distance": {"min": 20}}]}
    assert [sorted(pair) for pair in ask(far)["conflict"]["cycle"]] == [["A", "B"], ["B", "C"], ["A", "C"]]


def test_faults_of_a_text_have_line_and_column(ask: Callable[[Any], dict[str, Any]]) -> None:
    found = ask({"family": "constraint", "trigger": "CREATE TRIGGER t\nFOR E AS A, E AS B\nWHEN A.t - B.t IN (0, 5]"})
    assert (found["faults"][0]["line"], found["faults"][0]["column"]) == (3, 19) and found["document"] is None
    found = ask({"family": "constraint", "trigger": "CREATE TRIGGER t\nFOR E AS A, E AS B\nWHEN A.knd = 'tug' AND B.t - A.t IN [0, 5]"})
    assert found["faults"][0]["line"] == 3 and "kind" in found["faults"][0]["message"]


def test_other_families_have_no_graph(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.viewer).post("/api/v1/queries/closure", {"feed": "yard", "specification": {"family": "border"}})
    assert answer.status_code == 400
