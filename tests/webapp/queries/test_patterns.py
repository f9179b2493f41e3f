"""A pattern for its editor: as a tree, as text, with the leaves that trigger its evaluation."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

pytestmark = [pytest.mark.services, pytest.mark.django_db]

THEFT = {
    "family": "composite",
    "pattern": "SHELF : !CHECKOUT :[0,PT10M] EXIT",
    "primitives": {"SHELF": {"where": [["kind", "=", "shelf"]]}, "CHECKOUT": {"inside": {"region": "square"}}, "EXIT": {}},
    "per": "entity",
    "within": "PT10M",
}


@pytest.fixture
def ask(people: SimpleNamespace, region: Any, client_of: Callable[..., APIClient]) -> Callable[..., dict[str, Any]]:
    def asked(**changes: Any) -> dict[str, Any]:
        answer = client_of(people.viewer).post("/api/v1/queries/pattern", {"feed": "yard", "specification": {**THEFT, **changes}})
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    return asked


def test_a_text_becomes_an_equivalent_tree(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask()
    assert found["faults"] == []
    assert found["tree"] == {"sequence": ["SHELF", "EXIT"], "without": "CHECKOUT", "bounds": [0, "PT10M"]}, "times stay as they are written"
    assert found["words"] == "SHELF, then within 10 minutes EXIT with no CHECKOUT in between"
    assert ask(pattern=found["tree"]) == found


def test_triggers_and_minimum_conditions_are_listed_from_left_to_right(ask: Callable[..., dict[str, Any]]) -> None:
    assert ask()["leaves"] == [
        {"name": "SHELF", "kind": "normal", "needed": True},
        {"name": "CHECKOUT", "kind": "negative", "needed": False},
        {"name": "EXIT", "kind": "trigger", "needed": True},
    ]
    either = ask(pattern="(SHELF OR CHECKOUT) : !EXIT[PT5S]")["leaves"]
    assert [(leaf["kind"], leaf["needed"]) for leaf in either] == [("trigger", False), ("trigger", False), ("negative", False)]


def test_the_pattern_is_shown_despite_faults_elsewhere(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask(within=None, primitives={"SHELF": {"where": [["knd", "=", "shelf"]]}})
    assert {fault["pointer"] for fault in found["faults"]} >= {"/within", "/primitives/SHELF/where/0/0"}
    assert len(found["leaves"]) == 3 and found["tree"] is not None


@pytest.mark.parametrize(
    ("text", "line", "column"), [("SHELF :\n  !CHECKOUT", 2, 12), ("SHELF : SHOP", 1, 9), ("SHELF :[9,5] EXIT", 1, 8), ("SHELF ;[] EXIT", 1, 9)]
)
def test_faults_of_a_text_have_line_and_column(ask: Callable[..., dict[str, Any]], text: str, line: int, column: int) -> None:
    (fault, *_) = ask(pattern=text)["faults"]
    assert (fault["line"], fault["column"], fault["pointer"]) == (line, column, "/pattern")


@pytest.mark.parametrize(
    "pattern", ["", "SHELF :", 7, None, {}, {"and": "SHELF"}, {"sequence": ["SHELF"]}, {"interval": ["SHELF", "EXIT"], "span": "soon"}]
)
def test_an_invalid_pattern_has_no_tree(ask: Callable[..., dict[str, Any]], pattern: Any) -> None:
    found = ask(pattern=pattern)
    assert found["faults"] and (found["tree"], found["words"], found["leaves"]) == (None, None, [])


def test_other_families_have_no_pattern(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.viewer).post("/api/v1/queries/pattern", {"feed": "yard", "specification": {"family": "border"}})
    assert answer.status_code == 400
