"""The sandbox of rule programs: each fluent with the rule of each edge, in a process that can be
killed; and templates in the API."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.feeds.logs import folder_of_logs
from webapp.queries import sandbox as sandboxes
from webapp.queries.services import query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db]

PROGRAM = """\
initiatedAt(slow(V)=true, T) :- happensAt(position(V, Speed), T), Speed < 1.
terminatedAt(slow(V)=true, T) :- happensAt(position(V, Speed), T), Speed >= 1.

spatial(within(V)=true, inside(position, square, 60000)).

holdsFor(parked(V)=true, I) :-
    holdsFor(slow(V)=true, Is),
    holdsFor(within(V)=true, Iw),
    intersect_all([Is, Iw], I).
"""
CALCULUS = {
    "family": "calculus",
    "version": 1,
    "program": PROGRAM,
    "inputs": {"position": {"args": ["entity", "speed"]}},
    "outputs": ["parked"],
    "window": "PT10M",
    "step": "PT1S",
}


def reports(entity: str, *points: tuple[int, float, float]) -> list[dict[str, Any]]:
    return [{"entity": entity, "t": t, "x": x, "y": 5.0, "speed": speed} for t, x, speed in points]


PARKING = reports("a", (1000, -5, 9), (2000, 5, 0), (3000, 5, 0), (4000, 5, 9), (5000, 50, 9))


def test_events_that_no_row_is_are_named(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(feed, PARKING)
    misspelt = "initiatedAt(slow(V)=true, T) :- happensAt(posiion(V), T)."
    wrong = {**CALCULUS, "program": misspelt, "inputs": {"posiion": {"args": ["entity"]}}, "outputs": ["slow"]}
    found = ask(client_of(people.viewer), specification=wrong).json()
    assert (found["absent"], found["events"], found["lanes"]) == (["posiion"], ["position"], [])


def ask(client: APIClient, **more: Any) -> Any:
    return client.post("/api/v1/queries/sandbox", {"feed": "yard", "specification": CALCULUS, **more})


@pytest.mark.usefixtures("region")
def test_every_fluent_comes_with_the_rules_of_its_edges(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(feed, PARKING)
    answer = ask(client_of(people.viewer))
    assert answer.status_code == 200, answer.content
    found = answer.json()
    lanes = {(lane["fluent"], *lane["args"], lane["value"]): lane for lane in found["lanes"]}
    assert {key: lane["is_output"] for key, lane in lanes.items()} == {
        ("within", "a", "true"): False,
        ("slow", "a", "true"): False,
        ("parked", "a", "true"): True,
    }
    assert [(one["start"], one["end"]) for one in lanes["parked", "a", "true"]["intervals"]] == [(2001, 4001)]
    slow = lanes["slow", "a", "true"]["intervals"][0]
    assert (slow["start"], slow["end"]) == (2001, 4001)
    assert found["rules"][slow["began"]["rule"]]["line"] == 1 and found["rules"][slow["ended"]["rule"]]["line"] == 2
    assert (found["absent"], found["events"]) == ([], [])
    assert slow["began"]["because"] == ["happensAt(position(a, 0), 2000)"]
    parked = lanes["parked", "a", "true"]["intervals"][0]["began"]
    assert found["rules"][parked["rule"]]["text"].startswith("holdsFor(parked(V)=true, I) :-")
    assert lanes["within", "a", "true"]["intervals"][0]["began"] is None
    assert (found["to"], found["rows"], found["entities"]) == (5000, 5, None)


@pytest.mark.usefixtures("region")
def test_only_the_span_and_the_entities_asked_for_are_shown(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    late = [{**row, "t": row["t"] + 600_000} for row in [*PARKING, *reports("b", (1500, 5, 0), (4500, 5, 9))]]
    received(feed, [*PARKING, *sorted(late, key=lambda row: row["t"])])
    found = ask(client_of(people.owner), minutes=1, entities=["b"]).json()
    assert {tuple(lane["args"]) for lane in found["lanes"]} == {("b",)}
    assert min(one["start"] for lane in found["lanes"] for one in lane["intervals"]) == 601_500
    assert found["entities"] == ["b"]


@pytest.mark.usefixtures("region")
def test_any_span_of_the_history_can_be_requested(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    day = 24 * 3_600_000
    received(feed, [*PARKING, *({**row, "t": row["t"] + day} for row in PARKING)])
    client = client_of(people.viewer)

    def parked(**period: Any) -> tuple[Any, ...]:
        found = ask(client, **period).json()
        lanes = [lane for lane in found["lanes"] if lane["fluent"] == "parked"]
        return found["from"], found["to"], found["rows"], [(one["start"], one["end"]) for lane in lanes for one in lane["intervals"]]

    assert parked(**{"from": 0, "to": 3500}) == (0, 3500, 3, [(2001, None)])
    assert parked(to=5000, minutes=0.1) == (-1000, 5000, 5, [(2001, 4001)])
    assert parked(**{"from": day, "to": 2 * day}) == (day, day + 5000, 5, [(day + 2001, day + 4001)])
    assert parked(**{"from": 10_000, "to": 20_000}) == (10_000, 20_000, 0, [])
    assert parked(**{"from": day + 1000}) == parked(**{"from": day + 1000, "to": 2 * day})
    for wrong in ({"from": 10, "to": 10}, {"from": 0, "to": 2**62}, {"to": "noon"}):
        assert ask(client, **wrong).status_code == 400


@pytest.mark.usefixtures("region")
def test_too_many_intervals_are_limited_to_entities_with_answers(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.feeds.selectors import regions_of_feed
    from webapp.queries.references import frozen

    outside = [reports(f"c{n}", *((1000 + 10 * m, 50, m % 2 * 2) for m in range(9))) for n in range(9)]
    received(feed, sorted([*PARKING, *(row for rows in outside for row in rows)], key=lambda row: row["t"]))
    monkeypatch.setattr(sandboxes, "INTERVALS", 12)
    monkeypatch.setattr(sandboxes, "FEW", (5, 1))
    request = {
        "log_root": folder_of_logs(feed),
        "feed": feed.engine_feed().to_json(),
        "specification": frozen(CALCULUS, regions_of_feed(feed, user=people.owner)),
        "period": {"span": 60_000},
        "entities": [],
    }
    found = sandboxes.run(request)
    assert found["entities"] == ["a"] and {tuple(lane["args"]) for lane in found["lanes"]} == {("a",)}
    monkeypatch.setattr(sandboxes, "INTERVALS", 1)
    with pytest.raises(SystemExit) as ended:
        sandboxes.run(request)
    assert ended.value.code in sandboxes.FAILURES


@pytest.mark.usefixtures("region")
def test_an_empty_log_has_no_lanes(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert ask(client_of(people.owner)).json()["lanes"] == []


def test_faults_are_reported_before_anything_runs(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    answer = ask(client)
    # There is no region `square` yet: the fault points into the program.
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/specification/program"
    assert answer.json()["faults"][0]["message"].startswith("line 4, column ")
    other = ask(client, specification={"family": "border", "ranges": {"speed": [0, 1]}})
    assert other.status_code == 400 and other.json()["faults"][0]["pointer"] == "/specification/family"
    assert ask(client_of(people.stranger)).status_code == 400


@pytest.mark.usefixtures("region")
def test_a_program_that_takes_too_long_is_ended_with_the_reason(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "SECONDS", 0.002)
    answer = ask(client_of(people.owner))
    assert answer.status_code == 503 and "shorter period" in answer.json()["faults"][0]["message"]


@pytest.mark.usefixtures("region")
def test_a_template_can_be_filled_in_and_registered(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    from webapp.queries.models import Query, QueryVersion

    client = client_of(people.owner)
    templates = {one["name"]: one for one in client.get("/api/v1/queries/gallery", {"feed": "yard"}).json()["templates"]}
    parameters = {one["name"]: one for one in templates["stopped_inside"]["parameters"]}
    assert parameters["area"]["value"] == {"region": "square"} and parameters["speed_column"]["options"] == ["speed"]
    assert templates["suspicious_delay"]["unsuited"] == "It is for places on the Earth."
    values = {name: one["value"] for name, one in parameters.items()} | {"speed": 2, "span": "PT30S"}
    body = {"feed": "yard", "template": "stopped_inside", "values": values}
    specification = client.post("/api/v1/queries/gallery", body).json()["specification"]
    checked = client.post("/api/v1/queries/check", {"feed": "yard", "specification": specification}).json()
    assert checked["faults"] == [] and checked["kinds"] == ["stoppedInside"]
    reason = "positions, constants, what holds initially and complements of all that is declared are not cut off"
    expected = f"Several partitions share its work: slow by entity. stoppedInside and within stay in one partition ({reason})."
    assert checked["placement"] is None
    distributed = {"feed": "yard", "specification": specification | {"distributed": True}}
    assert client.post("/api/v1/queries/check", distributed).json()["placement"] == expected
    made = client.post("/api/v1/queries/", {"feed": "yard", "name": "stops", "specification": specification, "alert_kinds": ["stoppedInside"]})
    assert made.status_code == 201, made.content
    query = Query.objects.get(name="stops")
    # The program that a job compiles contains the region's document; the query is
    # updated when the region changes.
    assert QueryVersion.objects.get(query=query).specification["areas"]["area"]["type"] == "Polygon"
    assert [region.name for region in query.regions.all()] == ["square"]
    edited = {**specification, "program": specification["program"].replace("Speed < 2", "Speed < 3")}
    changed = client.patch(f"/api/v1/queries/{query.pk}/", {"specification": edited})
    assert changed.status_code == 200 and changed.json()["version"] == 2
    refused = client.patch(
        f"/api/v1/queries/{query.pk}/", {"specification": {**edited, "program": "holdsFor(a(X)=true, I) :- holdsFor(b(X)=true, I)."}}
    )
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"] == "/specification/program"


@pytest.mark.usefixtures("region")
def test_regions_named_only_in_the_program_text_belong_to_the_query(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    from webapp.feeds.models import Region
    from webapp.queries.models import Query, QueryVersion

    client = client_of(people.owner)
    made = client.post("/api/v1/queries/", {"feed": "yard", "name": "parked", "specification": CALCULUS})
    assert made.status_code == 201, made.content
    query = Query.objects.get(name="parked")
    assert [region.name for region in query.regions.all()] == ["square"]
    assert QueryVersion.objects.get(query=query).specification["areas"]["square"]["type"] == "Polygon"
    region = Region.objects.get(name="square")
    assert client.patch(f"/api/v1/regions/{region.pk}/", {"name": "plaza"}).status_code == 200
    query.refresh_from_db()
    # The text still uses its old name.
    assert query.specification["areas"] == {"square": {"region": "plaza"}} and query.specification["program"] == PROGRAM


def test_templates_are_visible_only_with_the_feed(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    for user, status in ((people.owner, 200), (people.viewer, 200), (people.stranger, 400)):
        assert client_of(user).get("/api/v1/queries/gallery", {"feed": "yard"}).status_code == status
        body = {"feed": "yard", "template": "silent", "values": {"span": "PT1M"}}
        assert client_of(user).post("/api/v1/queries/gallery", body).status_code == status


def test_values_that_do_not_fit_are_reported_by_name(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.owner).post("/api/v1/queries/gallery", {"feed": "yard", "template": "silent", "values": {"span": "long"}})
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/values/span"


BEEN = {
    "family": "calculus",
    "version": 1,
    "program": "initiatedAt(been(X)=true, T) :- happensAt(visit(X), T).\nterminatedAt(been(X)=true, T) :- happensAt(came(X), T).",
    "outputs": ["been"],
    "inputs": {"visit": {"args": ["entity"]}, "came": {"args": ["entity"]}},
    "window": 60_000,
    "step": 1_000,
    "derive": {
        "visit": {"query": "visit", "kind": "detection", "at": "end"},
        "came": {"query": "In and out", "kind": "in", "at": "end"},
    },
}
VISIT = {
    "family": "composite",
    "version": 1,
    "pattern": "CAME : LEFT",
    "primitives": {"CAME": {"where": [["event", "=", "came"]]}, "LEFT": {"where": [["event", "=", "left"]]}},
    "per": "entity",
    "within": 60_000,
    "derive": {
        "came": {"query": "In and out", "kind": "in", "at": "end"},
        "left": {"query": "In and out", "kind": "out", "at": "end"},
    },
}


def test_answers_of_upstream_queries_are_events_of_the_program(
    people: SimpleNamespace, query: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    query_register(owner=people.owner, feed=query.feed, name="visit", specification=VISIT)
    received(query.feed, reports("a", (1000, -5, 1), (2000, 5, 1), (3000, 50, 1), (4000, 50, 1), (6000, 5, 1), (9000, 5, 1)))
    answer = ask(client_of(people.owner), specification=BEEN)
    assert answer.status_code == 200, answer.content
    found = answer.json()
    (been,) = [lane for lane in found["lanes"] if lane["fluent"] == "been"]
    assert [(one["start"], one["end"]) for one in been["intervals"]] == [(3001, 6001)]
    assert (been["args"], found["rows"]) == (["a"], 6)
