"""Queries: registration, edits and removal; consecutive versions; faults with pointers."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from engine.model.faults import Refused
from tests.examples import examples
from tests.webapp.conftest import BORDER, SQUARE
from webapp.audit.models import Entry
from webapp.feeds.models import Feed
from webapp.queries.models import Query, QueryVersion
from webapp.queries.regions import region_update
from webapp.queries.selectors import versions_at
from webapp.queries.services import query_edit, query_register, query_remove

pytestmark = [pytest.mark.services, pytest.mark.django_db]

TRANSITION = {"family": "transition", "version": 1, "region": SQUARE, "within": "PT3M", "types": ["passed", "stayed_in"]}


def running(feed: Feed, version: int | None = None) -> set[tuple[str, int]]:
    feed.refresh_from_db()
    found = versions_at(feed=feed, version=feed.query_version if version is None else version)
    return {(row.query.name, row.version) for row in found}


def test_a_registered_query_runs_from_the_next_version_of_the_set(people: SimpleNamespace, feed: Feed) -> None:
    query = query_register(owner=people.owner, feed=feed, name="a", specification=BORDER)
    assert running(feed, 0) == set()
    assert running(feed, 1) == running(feed) == {("a", 1)}
    assert query.family == "border" and query.version == 1


def test_stored_regions_are_frozen_into_the_version_and_kept_as_written_in_the_query(query: Query, region: Any) -> None:
    version = QueryVersion.objects.get(query=query)
    assert version.specification["region"] == SQUARE
    assert version.document == query.specification
    assert query.specification["region"] == {"region": "square"}
    assert list(query.regions.all()) == [region]


def test_a_text_may_name_a_stored_region_and_follows_its_changes(people: SimpleNamespace, feed: Feed, region: Any) -> None:
    text = "CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [0, 1000] AND INSIDE(A.r, 'square') AND INSIDE(B.r, CIRCLE(0, 0, 9))"
    specification = {"family": "constraint", "version": 1, "trigger": text}
    made = query_register(owner=people.owner, feed=feed, name="near", specification=specification)
    assert made.specification == specification and list(made.regions.all()) == [region]
    inside = [one["inside"] for one in _newest(made)["constraints"][1:]]
    assert inside == [SQUARE, {"center": [0, 0], "radius": 9}]

    moved = {"center": [5, 5], "radius": 2}
    region_update(region=region, user=people.owner, geometry=moved)
    assert _newest(made)["constraints"][1]["inside"] == moved
    region_update(region=region, user=people.owner, name="place")
    made.refresh_from_db()
    assert made.specification["trigger"] == text.replace("'square'", "'place'") and made.version == 2


def _newest(query: Query) -> Any:
    return QueryVersion.objects.get(query=query, to_feed_version=None).specification


def test_an_edit_of_the_specification_makes_a_version_and_other_edits_do_not(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    edited = query_edit(query=query, user=people.owner, severity="critical", name="New name", description="x", alert_kinds=["in", "out"])
    assert edited.version == 1 and running(feed) == {("New name", 1)}
    edited = query_edit(query=edited, user=people.owner, specification=TRANSITION, alert_kinds=["passed"])
    assert edited.version == 2 and edited.family == "transition" and not edited.regions.exists()
    assert running(feed) == {("New name", 2)}
    assert running(feed, feed.query_version - 1) == {("New name", 1)}


def test_every_change_takes_a_new_version_of_the_set(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    feed.refresh_from_db()
    before = feed.query_version
    query_edit(query=query, user=people.owner, severity="high")
    feed.refresh_from_db()
    assert feed.query_version == before + 1


def test_switching_a_query_off_and_on_keeps_its_version(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    off = query_edit(query=query, user=people.owner, enabled=False)
    assert running(feed) == set()
    on = query_edit(query=off, user=people.owner, enabled=True)
    assert running(feed) == {("In and out", 1)} and on.version == 1
    assert QueryVersion.objects.filter(query=query).count() == 1


def test_a_region_that_moved_while_the_query_was_off_makes_a_new_version(people: SimpleNamespace, feed: Feed, region: Any, query: Query) -> None:
    off = query_edit(query=query, user=people.owner, enabled=False)
    region_update(region=region, user=people.owner, geometry={"center": [0, 0], "radius": 7})
    off.refresh_from_db()
    on = query_edit(query=off, user=people.owner, enabled=True)
    assert running(feed) == {("In and out", on.version)} and on.version > 1


def test_a_query_edited_while_it_is_off_runs_as_a_new_version(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    query = query_edit(query=query, user=people.owner, enabled=False)
    assert running(feed) == set()
    query = query_edit(query=query, user=people.owner, specification=BORDER)
    assert running(feed) == set()
    query = query_edit(query=query, user=people.owner, enabled=True)
    assert running(feed) == {("In and out", query.version)}
    assert QueryVersion.objects.get(to_feed_version=None).specification == BORDER


def test_a_removed_query_stops_and_keeps_its_versions(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    query_remove(query=query)
    assert running(feed) == set()
    assert running(feed, feed.query_version - 1) == {("In and out", 1)}
    query_register(owner=people.owner, feed=feed, name="In and out", specification=BORDER)
    assert len(running(feed)) == 1


def test_the_order_of_keys_is_kept(people: SimpleNamespace, feed: Feed) -> None:
    document = {"version": 1, "where": [], "region": SQUARE, "family": "border"}
    query = query_register(owner=people.owner, feed=feed, name="a", specification=document)
    assert list(Query.objects.get(pk=query.pk).specification) == list(document)
    assert list(QueryVersion.objects.get().specification) == list(document)


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        ({}, ["/specification"]),
        ([], ["/specification"]),
        ({"family": "bordr"}, ["/specification/family"]),
        ({"family": "border", "region": {"region": "squar"}}, ["/specification/region/region"]),
        ({"family": "border", "region": SQUARE, "sgments": True}, ["/specification/sgments"]),
        ({"family": "border", "ranges": {"sped": [0, 1]}}, ["/specification/ranges/sped"]),
        (
            {"family": "border", "region": SQUARE, "where": [["kind", "=", 3], ["speed", "~", 1]]},
            ["/specification/where/0/2", "/specification/where/1/1"],
        ),
    ],
)
def test_all_faults_are_reported_with_pointers_and_nothing_is_stored(
    document: Any, pointers: list[str], people: SimpleNamespace, feed: Feed, region: Any, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    answer = client.post("/api/v1/queries/", {"feed": "yard", "name": "x", "specification": document})
    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["faults"]] == pointers
    assert not Query.objects.exists()
    feed.refresh_from_db()
    assert feed.query_version == 0
    checked = client.post("/api/v1/queries/check", {"feed": "yard", "specification": document})
    assert checked.status_code == 200
    assert [fault["pointer"] for fault in checked.json()["faults"]] == [pointer.removeprefix("/specification") for pointer in pointers]


def test_a_misspelt_region_is_reported_with_the_nearest(people: SimpleNamespace, region: Any) -> None:
    with pytest.raises(Refused, match="square"):
        query_register(owner=people.owner, feed=region.feed, name="x", specification={"family": "border", "region": {"region": "squar"}})


def test_hidden_regions_cannot_be_named_or_guessed(people: SimpleNamespace, feed: Feed, region: Any) -> None:
    region.team = None
    region.save()
    with pytest.raises(Refused) as refused:
        query_register(owner=people.analyst, feed=feed, name="x", specification={"family": "border", "region": {"region": "squar"}})
    assert "square" not in str(refused.value).replace("squar'", "")


def test_a_teammate_edits_a_query_whose_region_they_cannot_see(people: SimpleNamespace, query: Query, region: Any) -> None:
    region.team = None
    region.save()
    edited = query_edit(query=query, user=people.analyst, specification={**query.specification, "where": [["speed", ">", 3]]})
    assert edited.version == 2 and list(edited.regions.all()) == [region]


def test_alert_kinds_are_those_that_the_query_gives(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    with pytest.raises(Refused) as refused:
        query_register(owner=people.owner, feed=feed, name="x", specification=TRANSITION, alert_kinds=["passed", "returned", "in"])
    assert [fault.pointer for fault in refused.value.faults] == ["/alert_kinds/1", "/alert_kinds/2"]
    with pytest.raises(Refused):
        query_edit(query=query, user=people.owner, specification=TRANSITION)


def test_query_names_are_unique_in_a_feed(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.owner).post("/api/v1/queries/", {"feed": "yard", "name": "In and out", "specification": BORDER})
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/name"
    assert client_of(people.owner).patch(f"/api/v1/queries/{query.pk}/", {"name": "In and out"}).status_code == 200


def test_a_query_is_shown_with_its_sentence_kinds_and_regions(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    shown = client_of(people.viewer).get(f"/api/v1/queries/{query.pk}/").json()
    assert shown["sentence"] == "Reports when something enters square or leaves square."
    assert shown["kinds"] == ["in", "out"] and shown["regions"][0]["name"] == "square" and shown["editable"] is False
    assert client_of(people.viewer).get(f"/api/v1/queries/{query.pk}/shapes").json() == {"shapes": [SQUARE]}


def test_versions_are_listed_newest_first_with_who_made_them(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    client_of(people.analyst).patch(f"/api/v1/queries/{query.pk}/", {"specification": BORDER})
    listed = client_of(people.viewer).get(f"/api/v1/queries/{query.pk}/versions").json()
    assert [(row["version"], row["created_by"], row["current"]) for row in listed] == [(2, "analyst", True), (1, "owner", False)]


def test_a_version_keeps_its_regions_as_they_were(people: SimpleNamespace, query: Query, region: Any, client_of: Callable[..., APIClient]) -> None:
    grown = {"type": "Polygon", "coordinates": [[[0, 0], [30, 0], [30, 30], [0, 30], [0, 0]]]}
    assert client_of(people.owner).patch(f"/api/v1/regions/{region.pk}/", {"geometry": grown}).status_code == 200
    of = {number: client_of(people.viewer).get(f"/api/v1/queries/{query.pk}/versions/{number}").json() for number in (1, 2)}
    assert [(row["version"], row["current"], row["specification"]["region"]) for row in of.values()] == [(1, False, SQUARE), (2, True, grown)]
    assert client_of(people.viewer).get(f"/api/v1/queries/{query.pk}/versions/3").status_code == 404
    assert client_of(people.stranger).get(f"/api/v1/queries/{query.pk}/versions/1").status_code == 404


OTHER = {**BORDER, "region": {"center": [5, 5], "radius": 2}}


def test_a_version_changes_only_with_the_meaning_of_the_query(
    people: SimpleNamespace, query: Query, region: Any, client_of: Callable[..., APIClient]
) -> None:
    owner = client_of(people.owner)

    def first_is_unchanged(address: str, **change: Any) -> bool:
        assert owner.patch(f"/api/v1/{address}/", change).status_code == 200
        return bool(owner.get(f"/api/v1/queries/{query.pk}/versions/1").json()["unchanged"])

    own = f"queries/{query.pk}"
    assert first_is_unchanged(own, enabled=False) and first_is_unchanged(own, enabled=True)
    assert owner.get(f"/api/v1/{own}/").json()["version"] == 1
    assert first_is_unchanged(f"regions/{region.pk}", name="yard square")
    written = owner.get(f"/api/v1/{own}/").json()["specification"]
    assert not first_is_unchanged(own, specification=OTHER)
    assert first_is_unchanged(own, specification=written)
    grown = {"type": "Polygon", "coordinates": [[[0, 0], [30, 0], [30, 30], [0, 30], [0, 0]]]}
    assert not first_is_unchanged(f"regions/{region.pk}", geometry=grown)


def test_a_version_can_be_compared_with_a_query_that_is_switched_off(
    people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]
) -> None:
    client_of(people.owner).patch(f"/api/v1/queries/{query.pk}/", {"enabled": False, "specification": OTHER})
    assert client_of(people.viewer).get(f"/api/v1/queries/{query.pk}/versions/1").json()["unchanged"] is False


def test_lists_are_filtered(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    for asked, count in (
        ("feed=yard", 1),
        ("family=border", 1),
        ("family=motion", 0),
        ("enabled=false", 0),
        ("search=OUT", 1),
        ("id=0", 0),
    ):
        assert len(client.get(f"/api/v1/queries/?{asked}").json()["results"]) == count, asked


def test_queries_are_filed_in_folders_and_under_tags(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    filed = client.patch(f"/api/v1/queries/{query.pk}/", {"folder": "Harbour/Night", "tags": ["weekly", "customs", "weekly"]}, format="json")
    assert (filed.status_code, filed.data["folder"], filed.data["tags"], filed.data["version"]) == (200, "Harbour/Night", ["weekly", "customs"], 1)
    asked = {"folder=Harbour/Night": 1, "folder=Harbour": 0, "tag=customs": 1, "tag=custom": 0, "mine=true": 1, "mine=false": 0}
    assert {words: client.get(f"/api/v1/queries/?{words}").data["count"] for words in asked} == asked
    assert client_of(people.analyst).get("/api/v1/queries/?mine=true").data["count"] == 0
    refused = client.patch(f"/api/v1/queries/{query.pk}/", {"tags": ["a\tb"], "folder": "x" * 201}, format="json")
    assert refused.status_code == 400 and {fault["pointer"] for fault in refused.data["faults"]} == {"/tags/0", "/folder"}
    reversed_text = "tug \u202egnp.exe"
    turned = client.patch(f"/api/v1/queries/{query.pk}/", {"name": reversed_text, "tags": [reversed_text]}, format="json", HTTP_ACCEPT_LANGUAGE="de")
    faults = {fault["pointer"]: fault["message"] for fault in turned.data["faults"]}
    assert turned.status_code == 400 and faults.keys() == {"/name", "/tags/0"}
    assert "Schreibrichtung" in faults["/name"] and "Schreibrichtung" in faults["/tags/0"]


def test_the_feed_of_a_query_cannot_change(people: SimpleNamespace, query: Query, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    client.post("/api/v1/feeds/", {"name": "other", "title": "Other", "crs": "planar"})
    assert client.patch(f"/api/v1/queries/{query.pk}/", {"feed": "other"}).status_code == 400


STEPS = st.lists(st.tuples(st.sampled_from(["register", "edit", "switch", "remove", "touch"]), st.integers(0, 2)), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))
@given(steps=STEPS)
def test_former_sets_of_queries_can_be_reconstructed(steps: list[tuple[str, int]], people: SimpleNamespace, feed: Feed) -> None:
    """A model is kept next to the tables: after any steps, a request for an old version gives the
    set that was current at that time.

    But for versions that were switched off and on again: of those the last span alone is known.
    """
    from django.db import transaction

    with transaction.atomic():
        place = transaction.savepoint()
        _follow(steps, people, feed)
        transaction.savepoint_rollback(place)
    feed.refresh_from_db()


def _follow(steps: list[tuple[str, int]], people: SimpleNamespace, feed: Feed) -> None:
    live: dict[int, Query] = {}
    switched_on: dict[int, bool] = {}
    then: dict[int, set[tuple[int, int]]] = {}
    resumed: set[tuple[int, int]] = set()
    for number, (step, which) in enumerate(steps):
        query = live.get(which)
        if step == "register" and query is None:
            live[which] = query_register(owner=people.owner, feed=feed, name=f"q{which}", specification=BORDER)
            switched_on[which] = True
        elif query is not None and step == "edit":
            live[which] = query_edit(query=query, user=people.owner, specification={**BORDER, "where": [["speed", ">", number]]})
        elif query is not None and step == "switch":
            switched_on[which] = not switched_on[which]
            live[which] = query_edit(query=query, user=people.owner, enabled=switched_on[which])
            resumed.add((query.pk, query.version))
        elif query is not None and step == "touch":
            live[which] = query_edit(query=query, user=people.owner, severity="high")
        elif query is not None and step == "remove":
            query_remove(query=query)
            del live[which]
        feed.refresh_from_db()
        then[feed.query_version] = {(query.pk, query.version) for key, query in live.items() if switched_on[key]}
        assert _set_at(feed, feed.query_version) == then[feed.query_version]
    for version, expected in then.items():
        assert _set_at(feed, version) - resumed == expected - resumed


def _set_at(feed: Feed, version: int) -> set[tuple[int, int]]:
    return {(row.query_id, row.version) for row in versions_at(feed=feed, version=version)}


def test_a_query_that_would_keep_too_many_events_is_refused_with_the_figure(
    people: SimpleNamespace, feed: Feed, received: Callable[..., None], client_of: Callable[[Any], APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.constraint_queries import operator

    def close(dt: str) -> dict[str, Any]:
        constraint = {"between": ["A", "B"], "dt": [0, dt], "distance": {"max": 5}}
        return {"family": "constraint", "variables": {"A": {"where": [["speed", ">", 1]]}, "B": {}}, "constraints": [constraint]}

    monkeypatch.setattr(operator, "MOST_EVENTS", 50)
    before = query_register(owner=people.owner, feed=feed, name="no history yet", specification=close("PT60S"))
    received(feed, [{"entity": "a", "t": 1_000 * t, "x": 0.0, "y": 0.0, "speed": float(t % 3)} for t in range(101)])
    with pytest.raises(Refused) as refused:
        query_register(owner=people.owner, feed=feed, name="too long", specification=close("PT180S"))
    (fault,) = refused.value.faults
    assert fault.pointer == "/specification"
    assert "last 101 rows this query would keep about 59 events at a time; at most 50" in fault.message
    answer = client_of(people.owner).post("/api/v1/queries/check", {"feed": feed.name, "specification": close("PT180S")}, format="json").json()
    assert [fault["pointer"] for fault in answer["faults"]] == [""]
    query_register(owner=people.owner, feed=feed, name="short enough", specification=close("PT60S"))
    with pytest.raises(Refused):
        query_edit(query=before, user=people.owner, specification=close("PT180S"))
    monkeypatch.setattr(operator, "MOST_EVENTS", 5)
    assert query_edit(query=before, user=people.owner, name="only the name").name == "only the name"


def test_registering_asks_the_database_few_times(feed: Any, client_of: Any, people: Any) -> None:
    """Hundreds are registered one by one: nothing is read that is known already or not needed. The
    response equals that of a GET."""
    client = client_of(people.owner)
    body = {"feed": "yard", "name": "first", "specification": BORDER, "alert_kinds": ["in"]}
    assert client.post("/api/v1/queries/", body).status_code == 201
    with CaptureQueriesContext(connection) as asked:
        made = client.post("/api/v1/queries/", {**body, "name": "second"})
    # Within a test's transaction, the one of the change and its audit entry is a savepoint: two
    # statements that a server does not send.
    assert len(asked) <= 17, [one["sql"][:80] for one in asked.captured_queries]
    assert made.json() == client.get(f"/api/v1/queries/{made.json()['id']}/").json()


def together(client: APIClient, *wanted: dict[str, Any]) -> Any:
    return client.post("/api/v1/queries/", [{"feed": "yard", "specification": BORDER, **one} for one in wanted], format="json")


def test_a_list_is_registered_whole_in_its_order(people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient]) -> None:
    derived = {
        "family": "composite", "version": 1, "pattern": "CAME", "per": "entity", "within": 60_000,
        "primitives": {"CAME": {"where": [["event", "=", "came"]]}}, "derive": {"came": {"query": "a", "kind": "in", "at": "end"}},
    }  # fmt: skip
    answer = together(client_of(people.owner), {"name": "a"}, {"name": "b", "specification": derived}, {"name": "c", "enabled": False})
    assert answer.status_code == 201, answer.json()
    assert [(one["name"], one["editable"]) for one in answer.json()] == [("a", True), ("b", True), ("c", True)]
    assert running(feed) == {("a", 1), ("b", 1)}
    assert Entry.objects.filter(action="query.create").count() == 3


def test_registering_many_queries_needs_few_more_statements_than_one(
    people: SimpleNamespace, feed: Feed, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    asked = []
    for count in (1, 60):
        with CaptureQueriesContext(connection) as found:
            assert together(client, *[{"name": f"{count}-{n}"} for n in range(count)]).status_code == 201
        asked.append(len(found))
    assert asked[1] <= asked[0] + 3, asked


def test_a_list_with_faults_registers_nothing_and_reports_all_faults(
    people: SimpleNamespace, feed: Feed, query: Query, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    answer = together(client, {"name": "a"}, {"name": query.name}, {"name": "b", "specification": {**BORDER, "famly": 1}}, {"name": "a"})
    assert [fault["pointer"] for fault in answer.json()["faults"]] == ["/1/name", "/2/specification/famly", "/3/name"]
    answer = together(client, {"name": "a"}, {"nam": "b"})
    assert (answer.status_code, [fault["pointer"] for fault in answer.json()["faults"]]) == (400, ["/1/name", "/1/nam"])
    assert together(client).status_code == 400 == together(client, *[{"name": f"n{n}"} for n in range(1_001)]).status_code
    assert together(client, {"name": "a", "specification": {**BORDER, "program": "x" * 300_001}}).json()["faults"][0]["pointer"] == ""
    assert Query.objects.count() == 1
