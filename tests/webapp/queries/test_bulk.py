"""One query for each region of a file, in one step, once, and only for permitted users."""

import json
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from engine.constraint_queries import operator
from tests.webapp.conftest import SQUARE
from webapp.feeds.models import Feed
from webapp.queries.models import Query, QueryVersion

pytestmark = [pytest.mark.services, pytest.mark.django_db]

TEMPLATE = {"family": "transition", "version": 1, "within": "PT3M", "types": ["stayed_in"]}
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]}
KML = b"""<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>Berth 7</name><Polygon><outerBoundaryIs><LinearRing><coordinates>
0,0 1,0 1,1 0,1 0,0</coordinates></LinearRing></outerBoundaryIs></Polygon></Placemark></Document></kml>"""


def square(at: float) -> dict[str, Any]:
    ring = [[at, 0], [at + 1, 0], [at + 1, 1], [at, 1], [at, 0]]
    return {"type": "Polygon", "coordinates": [ring]}


def collection(*features: tuple[str, Any]) -> dict[str, Any]:
    items = [{"type": "Feature", "properties": {"name": name, "berth": f"B{name}"}, "geometry": shape} for name, shape in features]
    return {"type": "FeatureCollection", "features": items}


THREE = collection(*((f"area {n}", square(2 * n)) for n in range(3)))


@pytest.fixture
def send(people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient]) -> Callable[..., Any]:
    """Posts to queries/bulk as a user, the owner by default."""

    def post(geojson: Any = THREE, *, user: Any = None, template: Any = TEMPLATE, **given: Any) -> Any:
        body = {"feed": "yard", "template": template, "geojson": geojson, **given}
        return client_of(user or people.owner).post("/api/v1/queries/bulk", body, format="json")

    return post


def test_each_region_of_a_file_becomes_a_query_in_one_version_of_the_set(send: Callable[..., Any], feed: Feed, people: SimpleNamespace) -> None:
    answer = send(naming="Stays in {name}", severity="high", alert_kinds=["stayed_in"], user=people.analyst, team=people.harbour.pk)
    body = answer.json()
    assert answer.status_code == 201 and body["registered"] == 3 and body["stored"]
    assert [(row["row"], row["name"]) for row in body["queries"]] == [(n + 1, f"Stays in area {n}") for n in range(3)]
    assert body["sentence"] == "Reports when something enters the area drawn with 4 corners and stays for more than 3 minutes."
    feed.refresh_from_db()
    assert feed.query_version == 1
    queries = list(Query.objects.order_by("pk"))
    assert [query.pk for query in queries] == [row["id"] for row in body["queries"]]
    assert {(query.owner, query.team, query.severity, query.family) for query in queries} == {(people.analyst, people.harbour, "high", "transition")}
    assert [query.specification["region"] for query in queries] == [square(2 * n) for n in range(3)]
    versions = QueryVersion.objects.all()
    assert {(v.version, v.from_feed_version, v.to_feed_version) for v in versions} == {(1, 1, None)}
    assert all(v.specification == v.document == v.query.specification for v in versions)


def test_messages_of_the_queries_can_be_limited(send: Callable[..., Any]) -> None:
    assert send(calls="once", calls_per_hour=5).status_code == 201
    assert set(Query.objects.values_list("calls", "calls_per_hour")) == {("once", 5)}


def test_registering_the_same_file_again_changes_nothing(send: Callable[..., Any], feed: Feed) -> None:
    first = send().json()
    again = send()
    assert again.status_code == 200
    body = again.json()
    assert body["queries"] == [] and body["registered"] == 0
    assert [(row["id"], row["same"]) for row in body["existing"]] == [(row["id"], True) for row in first["queries"]]
    feed.refresh_from_db()
    assert feed.query_version == 1
    changed = send(template={**TEMPLATE, "within": "PT5M"}).json()
    assert [row["same"] for row in changed["existing"]] == [False] * 3
    assert {query.specification["within"] for query in Query.objects.all()} == {"PT3M"}


def test_only_new_regions_of_the_file_are_registered(send: Callable[..., Any]) -> None:
    send()
    more = {**THREE, "features": [*THREE["features"], *collection(("area 9", square(20)))["features"]]}
    body = send(more).json()
    assert [row["name"] for row in body["queries"]] == ["area 9"] and len(body["existing"]) == 3


def test_a_dry_run_stores_nothing_and_shows_the_result(send: Callable[..., Any], feed: Feed) -> None:
    answer = send(dry_run=True)
    body = answer.json()
    assert answer.status_code == 200 and not body["stored"]
    assert [(row["name"], row["id"], row["geometry"]) for row in body["queries"]] == [(f"area {n}", None, square(2 * n)) for n in range(3)]
    feed.refresh_from_db()
    assert not Query.objects.exists() and feed.query_version == 0


MIXED = collection(("good", SQUARE), ("bow tie", BOW_TIE), ("nothing", None), ("good", square(5)))


def test_faults_are_reported_row_by_row_and_nothing_is_stored(send: Callable[..., Any]) -> None:
    answer = send(MIXED)
    body = answer.json()
    assert answer.status_code == 400 and not body["stored"] and not Query.objects.exists()
    assert [(row["row"], row["name"]) for row in body["refused"]] == [(2, "bow tie"), (3, "nothing"), (4, "good")]
    pointers = [[fault["pointer"].split("/")[1] for fault in row["faults"]] for row in body["refused"]]
    assert pointers == [["geometry"], ["geometry"], ["name"]]
    assert "Row 1 of the file has this name, too." in body["faults"][2]["message"]
    assert [row["name"] for row in body["queries"]] == ["good"]


def test_names_that_become_too_long_are_refused(send: Callable[..., Any]) -> None:
    answer = send(naming="x" * 95 + "{name}")
    assert answer.status_code == 400
    assert {fault["message"] for row in answer.json()["refused"] for fault in row["faults"]} == {"A name has 1 to 100 characters."}


def test_the_good_rows_can_be_registered_alone(send: Callable[..., Any]) -> None:
    answer = send(MIXED, partial=True)
    assert answer.status_code == 201 and answer.json()["registered"] == 1
    assert [query.name for query in Query.objects.all()] == ["good"]


@pytest.mark.parametrize(
    ("template", "pointer"),
    [
        ({**TEMPLATE, "within": "soon"}, "/template/within"),
        ({**TEMPLATE, "whitin": 3}, "/template/whitin"),
        ({**TEMPLATE, "where": [["sped", ">", 3]]}, "/template/where/0/0"),
        ({"family": "border", "ranges": {"speed": [0, 1]}}, "/template"),
        ({"family": "motion", "predicates": [], "every": 5}, "/template"),
        ([], "/template"),
        ({"family": "bordr", "region": {"region": "$feature"}}, "/template/family"),
    ],
)
def test_a_faulty_template_is_refused_once(template: Any, pointer: str, send: Callable[..., Any]) -> None:
    answer = send(template=template)
    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["faults"]] == [pointer]
    assert not Query.objects.exists()


def test_the_template_decides_where_the_region_is_used(send: Callable[..., Any], region: Any) -> None:
    predicates = [{"inside": {"region": "square"}}, {"inside": {"region": "$feature"}}]
    answer = send(template={"family": "motion", "version": 1, "predicates": predicates, "every": "PT10S", "horizon": "PT1H"})
    assert answer.status_code == 201
    query = Query.objects.get(name="area 1")
    assert query.specification["predicates"] == [predicates[0], {"inside": square(2)}]
    assert QueryVersion.objects.get(query=query).specification["predicates"][0] == {"inside": SQUARE}
    assert list(query.regions.all()) == [region]


def test_names_can_come_from_a_property(send: Callable[..., Any]) -> None:
    body = send(name_field="berth", naming="{row}: {name}").json()
    assert [row["name"] for row in body["queries"]] == ["1: Barea 0", "2: Barea 1", "3: Barea 2"]


@pytest.mark.parametrize(("name", "data"), [("areas.geojson", json.dumps(THREE).encode()), ("berths.kml", KML)])
def test_a_file_can_be_sent_as_a_form(name: str, data: bytes, people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient]) -> None:
    form = {"feed": "yard", "template": json.dumps(TEMPLATE), "alert_kinds": '["stayed_in"]', "file": SimpleUploadedFile(name, data)}
    answer = client_of(people.owner).post("/api/v1/queries/bulk", form, format="multipart")
    assert answer.status_code == 201, answer.json()
    assert answer.json()["queries"][0]["name"] == ("Berth 7" if name.endswith("kml") else "area 0")
    assert Query.objects.first().alert_kinds == ["stayed_in"]  # type: ignore[union-attr]


def test_a_template_that_would_keep_too_many_events_is_refused(
    send: Callable[..., Any], received: Callable[..., None], feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "MOST_EVENTS", 50)
    received(feed, [{"entity": "a", "t": 1_000 * t, "x": 0.5, "y": 0.5, "speed": 1.0} for t in range(101)])
    constraints = [{"between": ["A", "B"], "dt": [0, "PT90S"], "distance": {"max": 5}}, {"between": ["A"], "inside": {"region": "$feature"}}]
    template = {"family": "constraint", "variables": {"A": {}, "B": {}}, "constraints": constraints}
    answer = send(template=template)
    assert answer.status_code == 400, answer.json()
    assert "events at a time; at most 50" in str(answer.json())
    assert not Query.objects.exists()


def test_kinds_of_alerts_are_those_that_the_queries_give(send: Callable[..., Any]) -> None:
    answer = send(alert_kinds=["in"])
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/alert_kinds"


def test_a_stranger_cannot_name_the_feed_and_a_teammate_owns_what_they_make(send: Callable[..., Any], people: SimpleNamespace) -> None:
    refused = send(user=people.stranger)
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"] == "/feed"
    assert not Query.objects.exists()
    assert send(user=people.analyst, team=people.harbour.pk).status_code == 201
    assert {query.owner for query in Query.objects.all()} == {people.analyst}
    elsewhere = send(user=people.analyst, team=people.elsewhere.pk, naming="again {name}")
    assert elsewhere.status_code == 400 and elsewhere.json()["faults"][0]["pointer"] == "/team"


def test_a_teammate_sees_which_team_query_has_a_name(send: Callable[..., Any], people: SimpleNamespace) -> None:
    send()
    Query.objects.update(team=people.harbour)
    body = send(user=people.analyst).json()
    assert len(body["existing"]) == 3 and body["queries"] == []


def test_a_private_query_of_another_user_reveals_only_that_a_name_is_taken(send: Callable[..., Any], people: SimpleNamespace) -> None:
    send()
    for more in ({}, {"dry_run": True}, {"partial": True}):
        answer = send(user=people.analyst, **more)
        body = answer.json()
        assert body["existing"] == [] and body["registered"] == 0 and body["sentence"] is None
        assert [row["faults"][0] for row in body["refused"]] == [{"pointer": "/name", "message": "Another query of this feed has this name."}] * 3


def test_a_thousand_regions_are_registered_within_seconds(send: Callable[..., Any], feed: Feed) -> None:
    thousand = collection(*((f"cell {n}", square(2 * n)) for n in range(1000)))
    started = time.process_time()
    answer = send(thousand)
    seconds = time.process_time() - started
    assert answer.json()["registered"] == 1000 and Query.objects.count() == QueryVersion.objects.count() == 1000
    feed.refresh_from_db()
    assert feed.query_version == 1
    # In this process's CPU time, so that the load of the machine does not matter.
    assert seconds < 3


@pytest.fixture
def remove(people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient]) -> Callable[..., Any]:
    """Posts to queries/remove as a user, the owner by default."""

    def post(*, user: Any = None, **given: Any) -> Any:
        return client_of(user or people.owner).post("/api/v1/queries/remove", {"feed": "yard", **given}, format="json")

    return post


def test_all_queries_of_a_feed_are_removed_in_one_version_of_the_set(
    send: Callable[..., Any], remove: Callable[..., Any], feed: Feed, people: SimpleNamespace, region: Any, client_of: Callable[..., APIClient]
) -> None:
    template = {"family": "motion", "version": 1, "predicates": [{"inside": {"region": "square"}}, {"inside": {"region": "$feature"}}]}
    ids = [row["id"] for row in send(template={**template, "every": "PT10S", "horizon": "PT1H"}).json()["queries"]]
    of_feed = f"/api/v1/feeds/{feed.name}/"
    assert client_of(people.owner).delete(of_feed).status_code == 409
    assert remove(dry_run=True).json() == {"removed": ids, "refused": [], "missing": [], "stored": False}
    assert Query.objects.filter(deleted_at=None).count() == 3
    answer = remove()
    assert answer.status_code == 200 and answer.json() == {"removed": ids, "refused": [], "missing": [], "stored": True}
    feed.refresh_from_db()
    assert feed.query_version == 2
    assert {version.to_feed_version for version in QueryVersion.objects.all()} == {2}
    assert not Query.objects.filter(deleted_at=None).exists() and not Query.objects.filter(enabled=True).exists()
    assert not region.queries.exists()
    assert remove().json()["removed"] == []
    feed.refresh_from_db()
    assert feed.query_version == 2
    region.delete()
    assert client_of(people.owner).delete(of_feed).status_code == 204


def test_removal_can_select_by_id_name_family_and_search(send: Callable[..., Any], remove: Callable[..., Any]) -> None:
    ids = [row["id"] for row in send(collection(*((f"area {n}", square(2 * n)) for n in range(6)))).json()["queries"]]
    send(naming="border {name}", template={"family": "border", "version": 1})
    assert remove(ids=ids[:1]).json()["removed"] == ids[:1]
    assert remove(names=["area 1"]).json()["removed"] == [ids[1]]
    assert remove(search="AREA 2", family="transition").json()["removed"] == [ids[2]]
    assert len(remove(family="border").json()["removed"]) == 3
    assert remove(ids=ids[3:5], names=["area 4", "area 5"], partial=True).json()["removed"] == [ids[4]]
    assert set(Query.objects.filter(deleted_at=None).values_list("name", flat=True)) == {"area 3", "area 5"}


def test_a_removal_with_missing_queries_is_refused_unless_permitted(send: Callable[..., Any], remove: Callable[..., Any], feed: Feed) -> None:
    send()
    answer = remove(names=["area 1", "area 7"])
    assert answer.status_code == 400 and not answer.json()["stored"] and answer.json()["missing"] == ["area 7"]
    assert answer.json()["faults"][0]["message"] == "The feed has no query 'area 7'."
    feed.refresh_from_db()
    assert feed.query_version == 1 and Query.objects.filter(deleted_at=None).count() == 3
    assert remove(names=["area 1", "area 7"], partial=True).status_code == 200
    assert Query.objects.filter(deleted_at=None).count() == 2


def test_only_who_may_change_a_query_removes_it(send: Callable[..., Any], remove: Callable[..., Any], people: SimpleNamespace) -> None:
    send(naming="own {name}")
    send(naming="shared {name}", team=people.harbour.pk, user=people.operator)
    assert remove(user=people.stranger).status_code == 400
    answer = remove(user=people.viewer)
    assert answer.status_code == 400 and [row["name"] for row in answer.json()["refused"]] == [f"shared area {n}" for n in range(3)]
    assert remove(user=people.viewer, partial=True).json()["removed"] == []
    # The analyst does not see the owner's own queries, and may change those of the team.
    assert remove(user=people.analyst, names=["own area 1"]).json()["missing"] == ["own area 1"]
    assert len(remove(user=people.analyst).json()["removed"]) == 3
    assert {query.name for query in Query.objects.filter(deleted_at=None)} == {f"own area {n}" for n in range(3)}


def test_removing_queries_resolves_their_alerts(send: Callable[..., Any], remove: Callable[..., Any], people: SimpleNamespace, feed: Feed) -> None:
    from webapp.alerts.models import Alert, Resolution

    ids = [row["id"] for row in send().json()["queries"]]
    common = {"feed": feed, "severity": "low", "kind": "stayed_in", "entities": ["a"], "start": 1, "end": 2}
    Alert.objects.bulk_create(Alert(query_id=pk, detection_key=bytes([pk % 251]) * 16, **common) for pk in ids)
    remove(ids=ids[:2])
    assert list(Alert.objects.order_by("query").values_list("resolution", flat=True)) == [Resolution.REMOVED, Resolution.REMOVED, ""]
