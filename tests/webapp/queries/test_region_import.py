"""A file replaces stored regions of the same names."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.webapp.conftest import SQUARE
from tests.webapp.feeds.test_regions import BIGGER, BOW_TIE, collection, upload
from webapp.feeds.models import Region
from webapp.queries import region_import
from webapp.queries.models import Query, QueryVersion

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def edited(client: APIClient, kind: str, old: str, new: str) -> bytes:
    data: bytes = client.get(f"/api/v1/regions/export?feed=yard&format={kind}").content
    assert data.decode().count(old) == 1
    return data.decode().replace(old, new).encode()


def test_an_edited_export_replaces_the_region_and_queries_follow(people: SimpleNamespace, region: Region, query: Query, client_of: Any) -> None:
    client = client_of(people.analyst)
    data = edited(client, "csv", "10.0 10.0", "20.0 20.0")
    found = upload(client, data, dry_run="true").json()["created"]
    assert [row["could_replace"] for row in found] == [{"id": region.pk, "changes": ["geometry"]}]
    answer = upload(client, data, replace="true")
    assert answer.status_code == 201 and answer.json()["created"] == []
    (row,) = answer.json()["replaced"]
    assert (row["id"], row["name"], row["bbox"], row["changes"]) == (region.pk, "square", [0, 0, 20, 20], ["geometry"])
    stored = Region.objects.get()
    assert stored.owner == people.owner and stored.tags == ["dock"] and stored.bbox == [0, 0, 20, 20] and stored.vertices == 5
    assert stored.updated_at > region.updated_at
    old, new = QueryVersion.objects.filter(query=query).order_by("version")
    assert old.to_feed_version == new.from_feed_version
    assert old.specification["region"] == SQUARE and new.specification["region"] == stored.geometry
    assert new.created_by == people.analyst


@pytest.mark.parametrize("kind", ["geojson", "csv", "gpkg"])
def test_an_export_that_nobody_edited_replaces_nothing(kind: str, people: SimpleNamespace, region: Region, query: Query, client_of: Any) -> None:
    client = client_of(people.owner)
    data = client.get(f"/api/v1/regions/export?feed=yard&format={kind}").content
    (row,) = upload(client, data, dry_run="true").json()["created"]
    assert row["could_replace"] == {"id": region.pk, "changes": []}
    answer = upload(client, data, replace="true").json()
    assert (answer["created"], answer["replaced"]) == ([], [])
    assert Region.objects.get().updated_at == region.updated_at and QueryVersion.objects.count() == 1


def test_a_query_on_several_replaced_regions_gets_one_version(people: SimpleNamespace, region: Region, client_of: Any) -> None:
    client = client_of(people.owner)
    upload(client, collection(("other", BIGGER)))
    predicates = [{"inside": {"region": name}} for name in ("square", "other")]
    specification = {"family": "motion", "version": 1, "predicates": predicates, "every": "PT10S", "horizon": "PT1H"}
    made = client.post("/api/v1/queries/", {"feed": "yard", "name": "both", "specification": specification})
    assert made.status_code == 201, made.json()
    smaller = {"type": "Polygon", "coordinates": [[[0, 0], [5, 0], [5, 5], [0, 0]]]}
    assert upload(client, collection(("square", smaller), ("other", smaller)), replace="true").status_code == 201
    assert QueryVersion.objects.filter(query=made.json()["id"]).count() == 2


@pytest.mark.parametrize("who", ["viewer", "stranger", "owner"])
def test_only_regions_that_the_user_may_change_are_replaced(who: str, people: SimpleNamespace, region: Region, feed: Any, client_of: Any) -> None:
    type(feed).objects.update(public=True)
    Region.objects.update(public=True)
    client = client_of(getattr(people, who))
    answer = upload(client, collection(("square", BIGGER)), replace="true")
    region.refresh_from_db()
    if who == "viewer":
        assert answer.status_code == 403 and Region.objects.get().geometry == SQUARE
    elif who == "stranger":
        assert [row["name"] for row in answer.json()["created"]] == ["square 2"] and answer.json()["replaced"] == []
        assert "could_replace" not in answer.json()["created"][0] and region.geometry == SQUARE
    else:
        assert answer.json()["created"] == [] and region.geometry == BIGGER


def test_a_dry_run_of_a_replacement_changes_nothing(people: SimpleNamespace, region: Region, query: Query, client_of: Any) -> None:
    answer = upload(client_of(people.owner), collection(("square", BIGGER), ("new", SQUARE)), replace="true", dry_run="true")
    assert answer.status_code == 200
    assert [row["name"] for row in answer.json()["replaced"]] == ["square"] and [row["name"] for row in answer.json()["created"]] == ["new"]
    assert Region.objects.get().geometry == SQUARE and QueryVersion.objects.count() == 1


def test_faults_in_a_file_keep_it_from_replacing_anything(people: SimpleNamespace, region: Region, feed: Any, client_of: Any) -> None:
    client = client_of(people.owner)
    data = collection(("square", BIGGER), ("bad", BOW_TIE))
    assert upload(client, data, replace="true").status_code == 400 and Region.objects.get().geometry == SQUARE
    assert upload(client, data, replace="true", partial="true").status_code == 201 and Region.objects.get().geometry == BIGGER


def test_of_two_regions_of_one_name_the_first_replaces_and_nameless_ones_never_do(
    people: SimpleNamespace, region: Region, feed: Any, client_of: Any
) -> None:
    client = client_of(people.owner)
    Region.objects.create(owner=people.owner, feed=feed, name="region 3", geometry=SQUARE, bbox=[0, 0, 10, 10])
    answer = upload(client, collection(("square", BIGGER), ("square", SQUARE), ("", BIGGER)), replace="true").json()
    assert [row["name"] for row in answer["replaced"]] == ["square"]
    assert [row["name"] for row in answer["created"]] == ["square 2", "region 3 2"]
    assert Region.objects.get(name="region 3").geometry == SQUARE


def test_tags_of_the_file_replace_those_of_the_region_if_it_has_some(people: SimpleNamespace, region: Region, feed: Any, client_of: Any) -> None:
    client = client_of(people.owner)
    tagged = {"type": "Feature", "properties": {"name": "square", "tags": ["quay"]}, "geometry": SQUARE}
    data = json.dumps({"type": "FeatureCollection", "features": [tagged]}).encode()
    (row,) = upload(client, data, replace="true").json()["replaced"]
    assert row["changes"] == ["tags"] and Region.objects.get().tags == ["quay"]
    upload(client, collection(("square", BIGGER)), replace="true", tags="pier")
    assert Region.objects.get().tags == ["pier", "quay"]


def test_a_replacement_counts_for_the_quota_of_the_region_s_owner(people: SimpleNamespace, region: Region, client_of: Any) -> None:
    people.owner.quotas = {"vertices": 4}
    people.owner.save()
    larger = {"type": "Polygon", "coordinates": [[[0, 0], [5, -1], [10, 0], [10, 10], [0, 10], [0, 0]]]}
    answer = upload(client_of(people.analyst), collection(("square", larger)), replace="true")
    assert answer.status_code == 403 and Region.objects.get().geometry == SQUARE


@pytest.mark.parametrize("what", ["changed", "removed", "no longer shared"])
def test_a_region_that_is_no_longer_as_the_import_found_it_is_not_replaced(
    what: str, people: SimpleNamespace, region: Region, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(people.analyst)

    def meanwhile(*_: Any) -> None:
        if what == "changed":
            client_of(people.owner).patch(f"/api/v1/regions/{region.pk}/", {"tags": ["theirs"]})
        elif what == "removed":
            region.delete()
        else:
            Region.objects.update(team=None)

    monkeypatch.setattr(region_import, "_check_growth", meanwhile)
    answer = upload(client, collection(("square", BIGGER)), replace="true")
    assert answer.status_code == 409 and "Somebody has changed" in answer.json()["faults"][0]["message"]
    assert [one.geometry for one in Region.objects.all()] == [SQUARE]
