"""Entities: registry, notes, watches, visits; and the activity in a region."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from webapp.entities.models import Record, Watch
from webapp.entities.services import WATCHES, watches_look

pytestmark = [pytest.mark.services, pytest.mark.django_db]
Client = Callable[..., APIClient]
YARD = "/api/v1/feeds/yard"


def test_a_record_is_written_read_found_and_removed(feed: Any, people: SimpleNamespace, client_of: Client) -> None:
    client = client_of(people.operator)
    assert client.put(f"{YARD}/profile?id=a/1", {"name": "Aurora", "attributes": {"flag": "NO"}}).status_code == 200
    known = client_of(people.viewer).get(f"{YARD}/profile?id=a/1").json()
    assert (known["name"], known["attributes"]) == ("Aurora", {"flag": "NO"})
    assert client.get(f"{YARD}/registry?search=auro").json()["results"] == [{"entity": "a/1", "name": "Aurora", "attributes": {"flag": "NO"}}]
    assert client_of(people.analyst).put(f"{YARD}/profile?id=a/1", {"name": "x"}).status_code == 403
    refused = client.put(f"{YARD}/profile?id=a/1", {"attributes": {"": "x"}}, format="json")
    assert refused.json()["faults"][0]["message"] == "each attribute needs a name."
    assert client.put(f"{YARD}/profile?id=a/1", {"attibutes": {"flag": "NO"}}, format="json").status_code == 400, "it would remove the record"
    assert client.put(f"{YARD}/profile?id=a/1", {"name": ""}).status_code == 200
    assert not Record.objects.exists()


def test_a_registry_file_is_imported_completely_or_not_at_all(feed: Any, people: SimpleNamespace, client_of: Client) -> None:
    client = client_of(people.operator)

    def send(text: str) -> Any:
        return client.post(f"{YARD}/registry", {"file": SimpleUploadedFile("registry", text.encode())}, format="multipart")

    assert send("entity;name;flag\na;Aurora;NO\nb;;SE\n").json() == {"stored": 2}
    response = client.get(f"{YARD}/registry.csv")
    assert b"".join(response.streaming_content).decode().split() == ["entity,name,flag", "a,Aurora,NO", "b,,SE"]
    assert send('{"type": "FeatureCollection", "features": [{"properties": {"entity": "a", "name": "Borealis", "t": 3}}]}').json() == {"stored": 1}
    assert Record.objects.get(entity="a").attributes == {"t": "3"}
    for text, words in (
        ("mmsi,name\n1,a\n", "the header has: mmsi, name"),
        ("entity,name\nc,C\n,D\nc,E\n", 'Row 3: there is no "entity"'),
        ("entity\nc,d\n", "more fields than the header"),
        ("", "is empty"),
        ("entity,name\n", "no row"),
        ('{"type": "Feature"}', "FeatureCollection is needed"),
        ("[" * 100_000, "not GeoJSON"),
    ):
        answer = send(text)
        assert answer.status_code == 400 and any(words in fault["message"] for fault in answer.json()["faults"]), (text[:40], answer.json())
    assert Record.objects.count() == 2, "nothing of a refused file is stored"


def test_notes_are_removed_only_by_their_authors(feed: Any, people: SimpleNamespace, client_of: Client) -> None:
    assert client_of(people.viewer).post(f"{YARD}/notes", {"entity": "a", "text": "x"}).status_code == 403
    assert client_of(people.stranger).post(f"{YARD}/notes", {"entity": "a", "text": "x"}).status_code == 404
    assert client_of(None).post(f"{YARD}/notes", {"entity": "a", "text": "x"}).status_code == 401
    note = client_of(people.analyst).post(f"{YARD}/notes", {"entity": "a", "text": "Drifts at night."}).json()
    assert client_of(people.viewer).get(f"{YARD}/profile?id=a").json()["notes"] == [note]
    address = f"{YARD}/notes/{note['id']}"
    assert client_of(people.operator).delete(address).status_code == 403
    assert client_of(people.stranger).delete(address).status_code == 404
    assert client_of(people.analyst).delete(address).status_code == 204


def test_users_who_see_the_feed_can_watch_an_entity(feed: Any, people: SimpleNamespace, client_of: Client, received: Callable[..., None]) -> None:
    received(feed, [{"entity": "a", "t": 1000, "x": 0.0, "y": 0.0}])
    client = client_of(people.viewer)
    assert client.put(f"{YARD}/watch?id=a").json()["reported_t"] is None
    assert client_of(people.stranger).put(f"{YARD}/watch?id=a").status_code == 404
    received(feed, [{"entity": "b", "t": 2000, "x": 0.0, "y": 0.0}])
    watches_look()
    assert client.get("/api/v1/watches/").json()[0]["reported_t"] is None, "what it reported before does not count"
    received(feed, [{"entity": "a", "t": 900, "x": 0.0, "y": 0.0}])
    watches_look()
    assert client.get("/api/v1/watches/").json()[0]["reported_t"] is None, "what came too late does not count"
    received(feed, [{"entity": "a", "t": 3000, "x": 0.0, "y": 0.0}, {"entity": "a", "t": 4000, "x": 0.0, "y": 0.0}])
    watches_look()
    watches_look()
    assert [(one["entity"], one["reported_t"]) for one in client.get("/api/v1/watches/").json()] == [("a", 3000)]
    assert client.put(f"{YARD}/watch?id=a").json()["reported_t"] is None, "it begins again"
    assert client.delete(f"{YARD}/watch?id=a").status_code == 204
    assert client.get("/api/v1/watches/").json() == []


def test_the_number_of_watched_entities_is_limited(feed: Any, people: SimpleNamespace, client_of: Client) -> None:
    Watch.objects.bulk_create(Watch(user=people.viewer, feed=feed, entity=str(i), position=0) for i in range(WATCHES))
    assert client_of(people.viewer).put(f"{YARD}/watch?id=x").status_code == 400
    assert client_of(people.viewer).put(f"{YARD}/watch?id=1").status_code == 200


def test_the_regions_that_an_entity_visited(
    feed: Any, region: Any, people: SimpleNamespace, client_of: Client, received: Callable[..., None]
) -> None:
    way = [(1000, -5.0), (2000, 5.0), (3000, 6.0), (4000, 20.0), (5000, 10.0)]
    received(feed, [{"entity": "a", "t": t, "x": x, "y": 5.0} for t, x in way] + [{"entity": "a", "t": 6000}])
    found = client_of(people.viewer).get(f"{YARD}/profile?id=a").json()["visited"]
    assert [(one["name"], one["start"], one["end"]) for one in found["visits"]] == [("square", 2000, 4000), ("square", 5000, None)]
    found = client_of(people.viewer).get(f"{YARD}/profile?id=a&from=1000&to=2500").json()["visited"]
    assert [(one["start"], one["end"]) for one in found["visits"]] == [(2000, None)]
    assert client_of(people.viewer).get(f"{YARD}/profile?id=b").json()["visited"]["visits"] == []


def test_a_region_lists_its_alerts_and_visits(
    feed: Any, region: Any, people: SimpleNamespace, client_of: Client, received: Callable[..., None]
) -> None:
    client = client_of(people.viewer)
    assert client.get(f"/api/v1/regions/{region.pk}/activity").json()["inside"] == []
    ways = {"a": [(1000, 5), (2000, 20)], "b": [(1000, 20), (2000, 5), (3000, 5)], "c": [(1000, 20), (2000, 5), (5000, 20)]}
    received(feed, [{"entity": name, "t": t, "x": float(x), "y": 5.0} for t, x, name in sorted((*one, name) for name in ways for one in ways[name])])
    found = client.get(f"/api/v1/regions/{region.pk}/activity").json()
    assert found["inside"] == [["b", 2000, 3000]] and found["inside_count"] == 1
    assert sum(found["entries"]) == 2, "who was inside from the first did not enter"
    assert sum(found["exits"]) == 2 and sum(found["dwells"]) == 2 and found["median_dwell"] == 2000
    assert len(found["edges"]) == len(found["entries"]) + 1
