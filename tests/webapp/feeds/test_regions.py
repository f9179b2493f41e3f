"""Regions: checks, use by queries, import and export."""

import json
from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from tests.webapp.conftest import SQUARE
from webapp.feeds.models import Region
from webapp.queries.models import Query, QueryVersion

pytestmark = [pytest.mark.services, pytest.mark.django_db]
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]}
BIGGER = {"type": "Polygon", "coordinates": [[[0, 0], [20, 0], [20, 20], [0, 20], [0, 0]]]}


def upload(client: APIClient, data: bytes, **fields: Any) -> Any:
    return client.post("/api/v1/regions/import", {"file": SimpleUploadedFile("x", data), "feed": "yard", **fields}, format="multipart")


def collection(*named: tuple[str, Any]) -> bytes:
    features = [{"type": "Feature", "properties": {"name": name}, "geometry": geometry} for name, geometry in named]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def test_a_region_is_stored_with_its_bounding_box(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.owner).post(
        "/api/v1/regions/", {"feed": "yard", "name": "spot", "geometry": {"center": [5, 5], "radius": 2}, "tags": ["b", "a", "b"]}
    )
    assert answer.status_code == 201
    assert answer.json()["bbox"] == [3, 3, 7, 7] and answer.json()["tags"] == ["a", "b"] and answer.json()["used_by"] == []


@pytest.mark.parametrize(
    "geometry",
    [
        BOW_TIE,
        {},
        {"type": "Point", "coordinates": [0, 0]},
        {"center": [0, 0], "radius": -1},
        {"center": [0, 10**400], "radius": 1},
        {"region": "square"},
        "square",
        None,
    ],
)
def test_an_invalid_region_is_refused_with_a_pointer_below_geometry(
    geometry: Any, people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]
) -> None:
    answer = client_of(people.owner).post("/api/v1/regions/", {"feed": "yard", "name": "x", "geometry": geometry})
    assert answer.status_code == 400
    assert all(fault["pointer"].startswith("/geometry") for fault in answer.json()["faults"])


@pytest.mark.parametrize("kind", ["regions", "queries"])
def test_a_change_that_another_person_made_meanwhile_is_not_overwritten(
    kind: str, people: SimpleNamespace, region: Region, query: Any, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    address = f"/api/v1/{kind}/{(region if kind == 'regions' else query).pk}/"
    seen = client.get(address).json()["updated_at"]
    assert client.patch(address, {"tags": ["mine"], "updated_at": seen}).status_code == 200
    refused = client.patch(address, {"tags": ["yours"], "updated_at": seen})
    assert refused.status_code == 409 and refused.json()["faults"][0]["pointer"] == "/updated_at"
    now = client.get(address).json()
    assert now["tags"] == ["mine"]
    in_milliseconds = datetime.fromisoformat(now["updated_at"]).isoformat(timespec="milliseconds")
    assert client.patch(address, {"tags": ["theirs"], "updated_at": in_milliseconds}).status_code == 200
    assert client.patch(address, {"tags": ["last"]}).status_code == 200, "who does not ask replaces"
    wrong = client.patch(address, {"tags": [], "updated_at": "yesterday"})
    assert wrong.status_code == 400 and wrong.json()["faults"][0]["pointer"] == "/updated_at"


def test_region_names_are_unique_in_a_feed(people: SimpleNamespace, region: Region, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.owner).post("/api/v1/regions/", {"feed": "yard", "name": "square", "geometry": SQUARE})
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/name"


def test_a_region_in_use_cannot_be_removed_and_names_its_queries(
    people: SimpleNamespace, region: Region, query: Query, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    assert client.get(f"/api/v1/regions/{region.pk}/").json()["used_by"] == [{"id": query.pk, "name": "In and out"}]
    answer = client.delete(f"/api/v1/regions/{region.pk}/")
    assert answer.status_code == 409 and "In and out" in answer.json()["faults"][0]["message"]
    client.delete(f"/api/v1/queries/{query.pk}/")
    assert client.delete(f"/api/v1/regions/{region.pk}/").status_code == 204


def test_a_new_geometry_makes_new_versions_of_the_queries_that_use_it(
    people: SimpleNamespace, region: Region, query: Query, client_of: Callable[..., APIClient]
) -> None:
    before = query.feed.query_version
    answer = client_of(people.analyst).patch(f"/api/v1/regions/{region.pk}/", {"geometry": BIGGER})
    assert answer.status_code == 200
    old, new = QueryVersion.objects.filter(query=query).order_by("version")
    assert (old.version, new.version) == (1, 2)
    assert old.to_feed_version == new.from_feed_version == before + 1
    assert old.specification["region"] == SQUARE and new.specification["region"] == BIGGER
    assert new.document["region"] == {"region": "square"}
    query.refresh_from_db()
    assert query.version == 2


def test_renaming_a_region_updates_queries_without_new_versions(people: SimpleNamespace, region: Region, query: Query, client_of: Any) -> None:
    client_of(people.owner).patch(f"/api/v1/regions/{region.pk}/", {"name": "yard square", "tags": ["x"]})
    query.refresh_from_db()
    assert query.specification["region"] == {"region": "yard square"}
    assert query.version == 1 and QueryVersion.objects.count() == 1
    assert QueryVersion.objects.get().document["region"] == {"region": "yard square"}, "restored, it names the same region"


def test_a_trigger_keeps_its_text_and_comments_when_its_region_is_renamed(people: SimpleNamespace, region: Region, client_of: Any) -> None:
    client = client_of(people.owner)
    text = "CREATE TRIGGER t FOR E AS A, E AS B\nWHEN INSIDE(A.r, 'square') -- 'square' is the yard\nAND B.t - A.t IN [0, 5]"
    body = {"feed": region.feed.name, "name": "pairs", "specification": {"family": "constraint", "version": 1, "trigger": text}}
    made = client.post("/api/v1/queries/", body, format="json")
    assert made.status_code == 201, made.json()
    assert client.patch(f"/api/v1/regions/{region.pk}/", {"name": "owner's square"}).status_code == 200
    stored = client.get(f"/api/v1/queries/{made.json()['id']}/").json()
    assert stored["specification"]["trigger"] == text.replace("A.r, 'square'", "A.r, 'owner''s square'")
    assert [one["name"] for one in stored["regions"]] == ["owner's square"] and stored["version"] == 1


def test_regions_are_found_by_tag_name_and_box(people: SimpleNamespace, region: Region, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    for asked, count in (
        ("tag=dock", 1),
        ("tag=pier", 0),
        ("search=QUA", 1),
        ("bbox=9,9,30,30", 1),
        ("bbox=11,11,30,30", 0),
        ("feed=yard", 1),
    ):
        assert len(client.get(f"/api/v1/regions/?{asked}").json()["results"]) == count, asked
    assert client.get("/api/v1/regions/?bbox=1,2,3").status_code == 400


@pytest.mark.parametrize("kind", ["geojson", "gpkg", "csv"])
def test_an_export_can_be_imported_again(kind: str, people: SimpleNamespace, region: Region, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    client.patch(f"/api/v1/regions/{region.pk}/", {"tags": ["dock", "no anchoring"]})
    data = client.get(f"/api/v1/regions/export?feed=yard&format={kind}").content
    Region.objects.all().delete()
    answer = upload(client, data, tags="again, once")
    assert answer.status_code == 201, answer.content
    back = Region.objects.get()
    assert back.name == "square" and back.bbox == [0, 0, 10, 10]
    assert back.tags == ["again", "dock", "no anchoring", "once"]


def test_of_two_regions_of_one_name_at_the_same_moment_one_is_refused(
    people: SimpleNamespace, region: Region, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(_: Region, **options: Any) -> None:
        Region.objects.filter(pk=region.pk).update(name="new")

    monkeypatch.setattr(Region, "full_clean", meanwhile)
    client = client_of(people.owner)
    client.raise_request_exception = False
    refused = client.post("/api/v1/regions/", {"feed": "yard", "name": "new", "geometry": SQUARE}, format="json")
    assert refused.status_code == 409 and "Somebody else" in refused.json()["faults"][0]["message"]


def test_commas_separate_tags(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    feature = {"type": "Feature", "properties": {"name": "a", "tags": ["dock, quay"]}, "geometry": SQUARE}
    assert upload(client, json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()).status_code == 201
    assert Region.objects.get().tags == ["dock", "quay"]
    typed = client.post("/api/v1/regions/", {"feed": "yard", "name": "b", "geometry": SQUARE, "tags": ["dock, quay"]}, format="json")
    assert typed.status_code == 400 and typed.json()["faults"][0]["pointer"] == "/tags/0"


def test_kml_is_only_for_geographic_feeds(people: SimpleNamespace, region: Region, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    assert client.get("/api/v1/regions/export?feed=yard&format=kml").status_code == 400
    client.post("/api/v1/feeds/", {"name": "sea", "title": "Sea", "crs": "geographic"})
    circle = {"center": [5, 58], "radius": 100}
    client.post("/api/v1/regions/", {"feed": "sea", "name": "<bay> & co", "geometry": circle, "tags": ["quiet bay"]})
    data = client.get("/api/v1/regions/export?feed=sea&format=kml").content
    answer = upload(client, data, feed="sea")
    assert answer.status_code == 201 and answer.json()["created"][0]["name"] == "<bay> & co 2"
    back = Region.objects.get(name="<bay> & co 2")
    assert back.tags == ["quiet bay"] and back.geometry == circle


THIRD = 1 / 3
LAGOON = {
    "type": "Polygon",
    "coordinates": [
        [[THIRD, 58.1], [THIRD + 0.1, 58.1 + 1e-13], [0.7, 58 + THIRD], [THIRD, 58.1]],
        [[0.45, 58.15], [0.5, 58.2 + 1e-14], [0.5, 58.17], [0.45, 58.15]],
    ],
}
DISK = {"center": [THIRD, 58 + THIRD], "radius": 100 * THIRD}


@pytest.mark.parametrize("kind", ["csv", "geojson", "gpkg", "kml"])
def test_no_digit_of_a_corner_and_no_circle_is_lost_in_a_file(kind: str, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    client.post("/api/v1/feeds/", {"name": "sea", "title": "Sea", "crs": "geographic"}, format="json")
    several = {"type": "MultiPolygon", "coordinates": [LAGOON["coordinates"], [[[2, 58], [2 + THIRD, 58], [2, 59], [2, 58]]]]}
    shapes = {"disk": DISK, "lagoon": LAGOON, "several": several}
    for name, geometry in shapes.items():
        assert client.post("/api/v1/regions/", {"feed": "sea", "name": name, "geometry": geometry}, format="json").status_code == 201
    data = client.get(f"/api/v1/regions/export?feed=sea&format={kind}").content
    rows = upload(client, data, feed="sea", dry_run="true").json()["created"]
    assert {row["same_as"]: row["geometry"] for row in rows} == {region.name: region.geometry for region in Region.objects.all()}


@pytest.mark.parametrize("text", ["yes", "{", "{}", '{"center": [0, 0]}', "[" * 150, '{"center": {"a": 1}, "radius": 3, "b": 1}'])
def test_an_attribute_circle_of_others_is_none(text: str, people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    quoted = text.replace('"', '""')
    table = f'name,circle,wkt\na,"{quoted}","POLYGON ((0 0, 1 0, 1 1, 0 0))"\n'
    assert upload(client_of(people.owner), table.encode()).json()["created"][0]["geometry"]["type"] == "Polygon"


def test_an_import_with_faults_stores_nothing_unless_requested(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    data = collection(("good", SQUARE), ("bad", BOW_TIE))
    answer = upload(client, data)
    assert answer.status_code == 400
    assert answer.json()["refused"][0]["row"] == 2 and answer.json()["refused"][0]["name"] == "bad"
    assert "Row 2" in answer.json()["faults"][0]["message"]
    assert not Region.objects.exists()
    assert upload(client, data, partial="true").status_code == 201
    assert [region.name for region in Region.objects.all()] == ["good"]


def test_a_dry_run_stores_nothing_and_shows_everything(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    answer = upload(client_of(people.owner), collection(("a", SQUARE), ("a", BIGGER), ("", SQUARE)), dry_run="true")
    assert answer.status_code == 200
    assert [item["name"] for item in answer.json()["created"]] == ["a", "a 2", "region 3"]
    assert not Region.objects.exists()


def test_an_import_says_what_is_stored_already_and_can_leave_it_out(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    upload(client, collection(("a", SQUARE)))
    data = collection(("a", SQUARE), ("a", BIGGER), ("b", SQUARE))
    rows = upload(client, data, dry_run="true").json()["created"]
    assert [(row["name"], row.get("file_name"), row.get("same_as")) for row in rows] == [("a 2", "a", "a"), ("a 3", "a", None), ("b", None, "a")]
    rows = upload(client, data, only_new="true").json()["created"]
    assert [(row["name"], row.get("file_name"), row.get("same_as")) for row in rows] == [("a 2", "a", None)]
    assert Region.objects.count() == 2


@pytest.mark.parametrize("kind", ["csv", "geojson", "gpkg"])
def test_an_exported_file_is_known_when_it_is_imported_again(
    kind: str, people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    square = {"type": "Polygon", "coordinates": [[[1, 51], [2, 51], [2, 52], [1, 52], [1, 51]]]}
    for name in ('=1+2, "Quay" Ü; x', "-5 Meilen", "'tis"):
        assert client.post("/api/v1/regions/", {"feed": feed.name, "name": name, "geometry": square, "tags": ["=x"]}).status_code == 201
    Region.objects.filter(name="'tis").update(geometry=BIGGER)
    data = client.get("/api/v1/regions/export", {"feed": feed.name, "format": kind}).content
    rows = upload(client, data).json()["created"]
    assert {row["file_name"] for row in rows} == {'=1+2, "Quay" Ü; x', "-5 Meilen", "'tis"}
    assert all(row.get("same_as") for row in rows)
    assert {tuple(region.tags) for region in Region.objects.all()} == {("=x",)}


def test_an_import_does_not_tell_of_regions_of_others(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    upload(client_of(people.owner), collection(("a", SQUARE)))
    Region.objects.update(owner=people.stranger, team=None, public=False)
    row = upload(client_of(people.owner), collection(("b", SQUARE)), dry_run="true").json()["created"][0]
    assert "same_as" not in row


GPX = b'<?xml version="1.0"?><gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><name>loop</name><trkseg>%s</trkseg></trk></gpx>'


def test_a_closed_gpx_track_is_a_region_and_an_open_one_is_not(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    points = [b'<trkpt lat="%d" lon="%d"/>' % place for place in ((0, 0), (0, 1), (1, 1), (0, 0))]
    client = client_of(people.owner)
    assert upload(client, GPX % b"".join(points)).status_code == 201
    answer = upload(client, GPX % b"".join(points[:3]))
    assert answer.status_code == 400 and "closed" in answer.json()["refused"][0]["faults"][0]["message"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[1, 2]",
        b'{"type": "FeatureCollection"}',
        b"PK\x03\x04",
        b"name,wkt\n",
        b"name\nx\n",
        b"SQLite format 3\x00" + b"\x00" * 200,
        b'<OGRVRTDataSource><OGRVRTLayer name="x"><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>',
        b'<?xml version="1.0"?><!DOCTYPE kml [<!ENTITY x SYSTEM "file:///etc/passwd">]><kml>&x;</kml>',
        b"<kml><broken",
        "name,wkt\n\N{SNOWMAN},x".encode("utf-16"),
        b'{"type":"Polygon","coordinates":[[[0,0],[10,0],[0,1' + b"0" * 400 + b"],[0,0]]]}",
        b'{"type":"Polygon","coordinates":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_unreadable_region_files_are_refused_with_a_reason(
    data: bytes, people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]
) -> None:
    answer = upload(client_of(people.owner), data)
    assert answer.status_code == 400 and answer.json()["faults"][0]["message"]
    assert "passwd" not in answer.content.decode().replace("/etc/passwd", "") and "root:" not in answer.content.decode()


def test_many_regions_are_tagged_and_deleted_at_once_within_permissions(
    people: SimpleNamespace, region: Region, query: Query, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    other = client.post("/api/v1/regions/", {"feed": "yard", "name": "mine", "geometry": SQUARE}).json()["id"]
    ids = [region.pk, other]
    assert client.post("/api/v1/regions/bulk", {"ids": ids, "action": "tag", "tags": ["n"]}).json()["changed"] == sorted(ids, reverse=True)
    assert client_of(people.viewer).post("/api/v1/regions/bulk", {"ids": ids, "action": "delete"}).json() == {"changed": [], "refused": []}
    answer = client.post("/api/v1/regions/bulk", {"ids": ids, "action": "delete"}).json()
    assert answer["changed"] == [other] and answer["refused"][0]["id"] == region.pk


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["x" * 51], "A tag has at most 50 characters."),
        ([f"t{number}" for number in range(51)], "A region has at most 50 tags."),
        (["a\x00b"], "A tag has no commas, no control characters and no marks that change the direction of writing."),
    ],
)
def test_tags_of_a_file_that_cannot_be_stored_are_refused(
    tags: list[str], expected: str, people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    client.raise_request_exception = False
    feature = {"type": "Feature", "properties": {"name": "a", "tags": tags}, "geometry": SQUARE}
    answer = upload(client, json.dumps({"type": "FeatureCollection", "features": [feature]}).encode())
    assert answer.status_code == 400
    assert answer.json()["refused"] == [{"row": 1, "name": "a", "faults": [{"pointer": "/tags", "message": expected}]}]
    assert not Region.objects.exists()


def test_tags_given_with_a_file_are_limited_too(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    client.raise_request_exception = False
    assert upload(client, collection(("a", SQUARE)), tags="x" * 51).status_code == 400


def test_half_a_character_in_a_file_is_refused(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    client.raise_request_exception = False
    for properties in ({"name": "a", "tags": ["HALF"]}, {"name": "a", "circle": {"center": [0, 0], "radius": 1, "HALF": 1}}):
        feature = {"type": "Feature", "properties": properties, "geometry": SQUARE}
        answer = upload(client, json.dumps({"type": "FeatureCollection", "features": [feature]}).replace("HALF", "\\ud800").encode())
        assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/file"


def test_tags_added_to_many_regions_stay_within_the_limit(people: SimpleNamespace, region: Any, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    answer = client.post("/api/v1/regions/bulk", {"ids": [region.pk], "action": "tag", "tags": [f"t{number}" for number in range(50)]})
    refused = [{"id": region.pk, "faults": [{"pointer": "/tags", "message": "A region has at most 50 tags."}]}]
    assert answer.status_code == 200 and answer.json() == {"changed": [], "refused": refused}
    region.refresh_from_db()
    assert region.tags == ["dock"]
