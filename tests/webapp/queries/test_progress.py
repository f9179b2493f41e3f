"""Partial matches of motion patterns in the API: the engine's steps on the newest part of the
log."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from engine.sources.eventlog import EventLog
from webapp.feeds.logs import folder_of_logs
from webapp.queries.progress import run

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def square(x: float) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[[x, 0], [x + 10, 0], [x + 10, 10], [x, 10], [x, 0]]]}


TOUR = {
    "family": "motion",
    "predicates": [{"inside": {"region": "square"}}, {"inside": square(20)}, {"inside": square(40)}],
    "every": 1000,
    "horizon": 60_000,
}


def walk(entity: str, *points: tuple[int, float]) -> list[dict[str, Any]]:
    return [{"entity": entity, "t": t, "x": x, "y": 5.0} for t, x in points]


@pytest.fixture
def tour(people: SimpleNamespace, region: Any, received: Callable[..., None]) -> Any:
    """A tour of three squares: one entity has completed it, one is half way, one has not begun."""
    from webapp.queries.services import query_register

    rows = walk("all", (1000, 5), (3000, 25), (5000, 45)) + walk("half", (2000, 25), (4000, 5), (6000, 45)) + walk("none", (6000, 99))
    received(region.feed, sorted(rows, key=lambda row: row["t"]))
    return query_register(owner=people.owner, feed=region.feed, name="Tour", specification=TOUR, team=people.harbour)


def test_progress_lists_matches_and_partial_matches(people: SimpleNamespace, tour: Any, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.viewer).get(f"/api/v1/queries/{tour.pk}/progress")
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert (found["at"], found["total"]) == (6000, 2)
    assert [(row["entity"], row["done"], row["of"], row["matches"]) for row in found["entities"]] == [("all", 3, 3, True), ("half", 1, 3, False)]
    assert found["entities"][1]["steps"] == [{"t": 4000, "x": 5.0, "y": 5.0}, None, None]


def test_progress_of_one_entity_can_be_requested(people: SimpleNamespace, tour: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    everybody = client.get(f"/api/v1/queries/{tour.pk}/progress").json()
    found = client.get(f"/api/v1/queries/{tour.pk}/progress?entity=half").json()
    assert found["at"] == everybody["at"] and found["rows"] < everybody["rows"]
    assert found["entities"] == [row for row in everybody["entities"] if row["entity"] == "half"] != []


def test_one_entity_is_compared_with_all_others_where_scores_decide(people: SimpleNamespace, tour: Any, client_of: Callable[..., APIClient]) -> None:
    nearest = {
        "family": "motion",
        "predicates": [{"distance": [99, 5], "window": [60_000, 0], "quantifier": "exists"}],
        "theta": {"op": "top", "k": 1, "order": "min"},
        "every": 1000,
    }
    ask = {"feed": "yard", "specification": nearest}
    client = client_of(people.viewer)
    found = {name: client.post("/api/v1/queries/progress", {**ask, "entity": name}).json()["entities"] for name in ("half", "none")}
    assert {name: [row["matches"] for row in rows] for name, rows in found.items()} == {"half": [False], "none": [True]}


@pytest.fixture
def asked_of_log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The entities whose rows were read from the log, by request; None: all."""
    found: list[Any] = []
    whole = EventLog.tail

    def tail(log: EventLog, *span: int, entities: Any = None, **more: Any) -> Any:
        found.append(entities)
        return whole(log, *span, entities=entities, **more)

    monkeypatch.setattr(EventLog, "tail", tail)
    return found


@pytest.mark.parametrize(
    ("theta", "read"),
    [
        ({"op": "<=", "value": 1000}, [["half"]]),
        ({"op": ">=", "value": 0}, [["half"]]),
        ({"op": "top", "k": 1, "order": "min"}, [["half"], None]),
        ({"op": "min"}, [["half"], None]),
    ],
)
def test_progress_of_one_entity_reads_only_its_rows_if_that_suffices(
    theta: dict[str, Any], read: list[Any], tour: Any, asked_of_log: list[Any]
) -> None:
    distance = {"distance": [99, 5], "window": [60_000, 0], "quantifier": "exists"}
    document = {"family": "motion", "predicates": [distance], "theta": theta, "every": 1000}
    request = {"log_root": folder_of_logs(tour.feed), "feed": tour.feed.engine_feed().to_json(), "specification": document}
    everybody = run({**request, "entity": None})["entities"]
    asked_of_log.clear()
    assert run({**request, "entity": "half"})["entities"] == [row for row in everybody if row["entity"] == "half"] != []
    assert asked_of_log == read


def test_progress_of_an_unsaved_pattern_is_computed(people: SimpleNamespace, tour: Any, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.viewer).post("/api/v1/queries/progress", {"feed": "yard", "specification": {**TOUR, "horizon": 2000}})
    assert [(row["entity"], row["done"]) for row in answer.json()["entities"]] == []
    wrong = client_of(people.viewer).post("/api/v1/queries/progress", {"feed": "yard", "specification": {**TOUR, "every": 0}})
    assert wrong.status_code == 400 and wrong.json()["faults"][0]["pointer"] == "/specification/every"


def test_late_rows_and_duplicates_do_not_count(
    people: SimpleNamespace, tour: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(tour.feed, walk("none", (1500, 5)))
    found = client_of(people.viewer).get(f"/api/v1/queries/{tour.pk}/progress?entity=none").json()
    assert found["entities"] == []


def test_progress_needs_permission_and_a_motion_pattern(people: SimpleNamespace, tour: Any, query: Any, client_of: Callable[..., APIClient]) -> None:
    assert client_of(people.stranger).get(f"/api/v1/queries/{tour.pk}/progress").status_code == 404
    assert client_of(people.owner).get(f"/api/v1/queries/{query.pk}/progress").status_code == 400
