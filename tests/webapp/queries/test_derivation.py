"""Derived queries: refused if invalid, updated when their upstream queries change, and
named before they are stopped."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from engine.model.faults import Refused
from tests.webapp.conftest import BORDER, SQUARE
from webapp.accounts.models import Membership
from webapp.feeds.models import Feed
from webapp.feeds.region_files import Feature
from webapp.queries.bulk import queries_register
from webapp.queries.models import Query, QueryVersion
from webapp.queries.regions import region_update
from webapp.queries.selectors import versions_running
from webapp.queries.services import queries_stop_without_access, query_edit, query_register, query_remove

pytestmark = [pytest.mark.services, pytest.mark.django_db]

CAME = {"came": {"query": "In and out", "kind": "in", "at": "end"}}
SEEN = {"came": {"query": "twice", "kind": "detection", "at": "end"}}


def square(size: float) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[[0, 0], [size, 0], [size, size], [0, size], [0, 0]]]}


def twice(derive: Any) -> dict[str, Any]:
    """A pattern of two answers of another query, one after the other."""
    return {
        "family": "composite",
        "version": 1,
        "pattern": "A : A",
        "primitives": {"A": {"where": [["event", "=", "came"]]}},
        "within": 60_000,
        "derive": derive,
    }


@pytest.fixture
def graph(people: SimpleNamespace, feed: Feed, query: Query) -> SimpleNamespace:
    """In and out <- twice <- four times; all of the harbour team."""
    common: dict[str, Any] = {"owner": people.owner, "feed": feed, "team": people.harbour}
    second = query_register(name="twice", specification=twice(CAME), **common)
    third = query_register(name="four times", specification=twice(SEEN), **common)
    return SimpleNamespace(first=query, second=second, third=third)


def running(feed: Feed) -> dict[str, int]:
    feed.refresh_from_db()
    return {row.query.name: row.version for row in versions_running(feed=feed, version=feed.query_version)}


def reasons() -> dict[str, str | None]:
    return {query.name: query.stopped.reason if query.stopped else None for query in Query.objects.filter(deleted_at=None)}


def test_the_version_names_the_upstream_query_by_its_id(graph: SimpleNamespace) -> None:
    version = QueryVersion.objects.get(query=graph.second)
    assert version.specification["derive"]["came"]["query"] == str(graph.first.pk)
    assert version.document["derive"] == CAME


def test_an_unknown_query_is_refused_with_a_suggestion(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    with pytest.raises(Refused) as refused:
        query_register(owner=people.owner, feed=feed, name="x", specification=twice({"came": {"query": "In and uot", "kind": "in", "at": "end"}}))
    (fault,) = refused.value.faults
    assert fault.pointer == "/specification/derive/came/query" and "'In and out'" in fault.message


def test_hidden_queries_are_reported_as_unknown(people: SimpleNamespace, feed: Feed) -> None:
    query_register(owner=people.owner, feed=feed, name="private", specification=BORDER)
    with pytest.raises(Refused, match="unknown query 'private'"):
        query_register(owner=people.analyst, feed=feed, name="x", specification=twice({"came": {"query": "private", "kind": "in", "at": "end"}}))


def test_a_cycle_is_refused_with_its_path(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    with pytest.raises(Refused) as refused:
        query_edit(query=graph.second, user=people.owner, specification=twice({"came": {"query": "four times", "kind": "detection", "at": "end"}}))
    assert "twice from four times from twice" in refused.value.faults[0].message


def test_editing_a_query_restarts_its_derived_queries(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    assert running(feed) == {"In and out": 1, "twice": 1, "four times": 1}
    query_edit(query=graph.first, user=people.owner, specification={**BORDER, "where": [["speed", ">", 1]]})
    assert running(feed) == {"In and out": 2, "twice": 2, "four times": 2}


def test_statements_under_the_feeds_lock_do_not_grow_with_derived_queries(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    def statements(size: float) -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            query_edit(query=query, user=people.owner, specification={**BORDER, "region": square(size)})
        return [one["sql"][:60] for one in captured.captured_queries]

    def add(numbers: range) -> None:
        for number in numbers:
            query_register(owner=people.owner, feed=feed, name=f"q{number}", specification=twice(CAME))

    statements(15)  # It names a stored region until now.
    add(range(2))
    few = statements(20)
    add(range(2, 12))
    many = statements(30)
    assert len(many) == len(few), [one for one in {*many, *few} if many.count(one) != few.count(one)]
    assert [running(feed)[f"q{number}"] for number in range(12)] == [3, 3, *[2] * 10] and set(reasons().values()) == {None}


def test_changing_a_region_restarts_derived_queries(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace, region: Any) -> None:
    region_update(region=region, user=people.owner, geometry={"center": [0, 0], "radius": 2})
    assert running(feed) == {"In and out": 2, "twice": 2, "four times": 2}


def test_renaming_a_query_updates_derived_queries(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    query_edit(query=graph.first, user=people.owner, name="gate")
    graph.second.refresh_from_db()
    assert graph.second.specification["derive"]["came"]["query"] == "gate"
    assert running(feed) == {"gate": 1, "twice": 2, "four times": 2}


def test_an_incompatible_edit_stops_derived_queries_with_the_reason(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    passes = {"family": "transition", "version": 1, "region": SQUARE, "within": 1000, "types": ["passed"]}
    query_edit(query=graph.first, user=people.owner, specification=passes, alert_kinds=[])
    assert running(feed) == {"In and out": 2}
    assert "unknown kind of answer 'in'" in str(reasons()["twice"]) and "'twice' was stopped" in str(reasons()["four times"])


def test_switching_off_and_removing_name_the_derived_queries(people: SimpleNamespace, graph: SimpleNamespace) -> None:
    with pytest.raises(Refused, match="This would stop 'twice', 'four times', derived"):
        query_edit(query=graph.first, user=people.owner, enabled=False)
    with pytest.raises(Refused, match="This would stop 'twice', 'four times', derived"):
        query_remove(query=graph.first, user=people.owner)
    query_remove(query=graph.third, user=people.owner)


def test_derived_queries_of_others_are_counted_not_named(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    query_register(owner=people.analyst, feed=feed, name="mine alone", specification=twice(CAME))
    with pytest.raises(Refused) as refused:
        query_remove(query=query, user=people.owner)
    assert "This would stop 1 query of others" in refused.value.faults[0].message and "alone" not in str(refused.value)


def test_switching_off_a_query_pauses_its_derived_queries(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    off = query_edit(query=graph.first, user=people.owner, enabled=False, stop_dependents=True)
    assert running(feed) == {}
    assert "'In and out' is switched off" in str(reasons()["twice"])
    query_edit(query=off, user=people.owner, enabled=True)
    assert running(feed) == {"In and out": 1, "twice": 3, "four times": 3}


def test_a_new_query_replaces_a_removed_one_of_the_same_name(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    query_remove(query=graph.first, user=people.owner, stop_dependents=True)
    assert running(feed) == {}
    again = query_register(owner=people.owner, feed=feed, name="In and out", specification=BORDER, team=people.harbour)
    assert running(feed) == {"In and out": 1, "twice": 3, "four times": 3}
    assert QueryVersion.objects.get(query=graph.second, version=3).specification["derive"]["came"]["query"] == str(again.pk)


def test_a_query_from_a_file_replaces_a_removed_one_of_the_same_name(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    query_remove(query=graph.first, user=people.owner, stop_dependents=True)
    features = [Feature(1, "In and out", SQUARE)]
    template = {"family": "border", "version": 1}
    registered = queries_register(owner=people.owner, feed=feed, template=template, features=features, team=people.harbour)
    assert [query.name for query in registered.queries] == ["In and out"]
    assert running(feed) == {"In and out": 1, "twice": 3, "four times": 3}


def of_others(people: SimpleNamespace, feed: Feed, query: Query) -> Query:
    """A teammate's private query that derives from the owner's."""
    return query_register(
        owner=people.analyst, feed=feed, name="of the analyst", specification=twice({"came": {"query": str(query.pk), "kind": "in", "at": "end"}})
    )


def test_derivation_ends_when_a_query_is_no_longer_shared(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    other = of_others(people, feed, query)
    below = query_register(owner=people.analyst, feed=feed, name="below", specification=twice({"came": {**SEEN["came"], "query": other.name}}))
    query_edit(query=query, user=people.owner, team=None)
    assert running(feed) == {"In and out": 1} and "no longer shared" in str(reasons()[other.name]) and "was stopped" in str(reasons()[below.name])
    query_edit(query=query, user=people.owner, name="a new secret", specification={**BORDER, "where": [["speed", ">", 1]]})
    assert running(feed) == {"a new secret": 2} and "secret" not in str(reasons()[other.name])
    query_edit(query=query, user=people.owner, public=True)
    assert running(feed) == {"a new secret": 2, other.name: 4, below.name: 4}


def test_changing_a_region_does_not_start_queries_that_cannot_derive(people: SimpleNamespace, feed: Feed, query: Query, region: Any) -> None:
    document = {**twice(CAME), "primitives": {"A": {"inside": {"region": region.name}, "where": [["event", "=", "came"]]}}}
    second = query_register(owner=people.analyst, feed=feed, name="second", specification=document)
    query_edit(query=query, user=people.owner, team=None)
    region_update(region=region, user=people.owner, geometry={"center": [0, 0], "radius": 2})
    assert running(feed) == {"In and out": 1 + query.regions.count()} and "no longer shared" in str(reasons()[second.name])
    query_edit(query=query, user=people.owner, public=True)
    assert second.name in running(feed)


def test_former_members_cannot_derive_from_team_queries(people: SimpleNamespace, feed: Feed, query: Query, graph: SimpleNamespace) -> None:
    other = of_others(people, feed, query)
    queries_stop_without_access()
    assert other.name in running(feed)
    Membership.objects.filter(user=people.analyst).delete()
    queries_stop_without_access()
    assert running(feed) == {"In and out": 1, "twice": 1, "four times": 1}, "only that one stops"
    set_version = feed.query_version
    queries_stop_without_access()
    feed.refresh_from_db()
    assert feed.query_version == set_version, "once"


def test_a_new_query_does_not_replace_a_hidden_one_of_the_same_name(people: SimpleNamespace, feed: Feed, query: Query) -> None:
    other = of_others(people, feed, query)
    query_register(owner=people.analyst, feed=feed, name="by name", specification=twice(CAME))
    namesake = query_register(owner=people.owner, feed=feed, name=str(query.pk), specification=BORDER, public=True)
    query_edit(query=query, user=people.owner, specification={**BORDER, "where": [["speed", ">", 1]]})
    assert QueryVersion.objects.get(query=other, version=2).specification["derive"]["came"]["query"] == str(query.pk)
    query_remove(query=query, user=people.owner, stop_dependents=True)
    hidden = query_register(owner=people.owner, feed=feed, name=query.name, specification=BORDER)
    assert set(running(feed)) == {namesake.name, hidden.name}, "neither by a name like an id, nor by a name that its owner may not see"


def test_a_teammates_edit_keeps_upstream_queries_only_the_owner_sees(people: SimpleNamespace, feed: Feed, graph: SimpleNamespace) -> None:
    query_register(owner=people.analyst, feed=feed, name="mine alone", specification=BORDER)
    with pytest.raises(Refused, match="owner of this query may not see 'mine alone'"):
        query_edit(query=graph.second, user=people.analyst, specification=twice({"came": {**CAME["came"], "query": "mine alone"}}))


def test_the_page_shows_upstream_and_downstream_queries(people: SimpleNamespace, graph: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    shown = client_of(people.owner).get(f"/api/v1/queries/{graph.second.pk}/derivation").json()
    above, below = shown["derives_from"], shown["derived_by"]
    assert [(one["name"], one["event"], one["kind"], one["at"], one["runs"]) for one in above] == [("In and out", "came", "in", "end", True)]
    assert [(one["name"], one["direct"], one["runs"]) for one in below] == [("four times", True, True)] and shown["hidden"] == 0


def test_the_api_requires_confirmation_to_stop_derived_queries(
    people: SimpleNamespace, graph: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client, address = client_of(people.owner), f"/api/v1/queries/{graph.first.pk}/"
    refused = client.patch(address, {"enabled": False}, format="json")
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"] == "/stop_dependents"
    assert client.delete(address).status_code == 400
    bulk = {"feed": "yard", "names": ["In and out"]}
    assert client.post("/api/v1/queries/remove", bulk, format="json").status_code == 400
    assert client.post("/api/v1/queries/remove", {"feed": "yard"}, format="json").status_code == 200
    assert client.delete(address).status_code == 404
