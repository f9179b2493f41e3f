"""Stored answers in the API: filtered, in pages, as files; and jobs."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from tests.engine.sources.test_odd_files import looked
from webapp.config.moments import iso_of_event
from webapp.detections.models import Detection
from webapp.detections.partitions import partitions_ensure, span_of
from webapp.detections.selectors import detection_parts
from webapp.feeds.models import Feed
from webapp.jobs.models import Job, JobEvent
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def put(query: Query, entity: str, start: int, end: int | None, **fields: Any) -> Detection:
    partitions_ensure([span_of(start)])
    key = f"{query.pk}/{entity}/{start}".encode().ljust(16, b".")[:16]
    known = {"version": 1, "kind": "in", "seq": 1, "detected_at": 5, **fields}
    return Detection.objects.create(feed=query.feed, query=query, key=key, entities=[entity], start=start, end=end, **known)


@pytest.fixture
def stored(query: Query) -> Query:
    """Three intervals, an instant, and one retracted."""
    put(query, "a", 10, 20, evidence=[{"variable": None, "entity": "a", "t": 10, "x": 1.5, "y": 2.5, "seq": 1}])
    put(query, "b", 15, None)
    put(query, "a", 30, 40, kind="out")
    put(query, "c", 50, 50)
    put(query, "a", 60, 61, weight=0)
    return query


@pytest.mark.parametrize(
    ("asked", "starts"),
    [
        ("", [50, 30, 15, 10]),
        ("order=start", [10, 15, 30, 50]),
        ("entity=a", [30, 10]),
        ("entity=a&entity=c", [50, 30, 10]),
        ("kind=out", [30]),
        ("kind=out&kind=in", [50, 30, 15, 10]),
        ("from=35", [50, 30, 15]),
        ("to=15", [10]),
        ("from=25&to=30", [15]),
        ("from=50&to=51", [50, 15]),
        ("page_size=2", [50, 30, 15, 10]),
        ("withdrawn=true", [60]),
        ("withdrawn=true&to=60", []),
        ("withdrawn=false", [50, 30, 15, 10]),
    ],
)
def test_answers_are_filtered_ordered_and_read_page_by_page(
    asked: str, starts: list[int], stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.viewer)
    seen: list[int] = []
    address: str | None = f"/api/v1/detections/?feed=yard&{asked}"
    while address:
        answer = client.get(address)
        assert answer.status_code == 200, answer.content
        seen += [row["start"] for row in answer.json()["results"]]
        address = answer.json()["next"]
    assert seen == starts


@pytest.mark.parametrize(("index", "withdrawn"), [("detections_withdrawn", True), ("detections_lasting", False)])
def test_a_page_of_one_instant_reads_only_its_answers(index: str, withdrawn: bool, query: Query) -> None:
    """Nearly all are instants that were not retracted."""
    # Times of milliseconds since the epoch need more than 32 bits.
    begin = 1_763_700_000_000
    partitions_ensure([span_of(begin)])
    known = {"feed": query.feed, "query": query, "version": 1, "kind": "in", "entities": ["a"], "seq": 1, "detected_at": 5}
    rare = range(0, 20_000, 5_000)
    Detection.objects.bulk_create(
        Detection(
            key=f"{n:016}".encode(),
            start=begin + n,
            end=begin + (20_000 if n in rare else n),
            weight=int(not (withdrawn and n in rare)),
            **known,
        )
        for n in range(20_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE detections_detection")
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [index])
        indexes = [name for (name,) in cursor.fetchall()]
    before, during = detection_parts(feed_id=query.feed_id, query_ids=[query.pk], from_t=begin + 9_000, to_t=begin + 9_001, withdrawn=withdrawn)
    page = before.order_by("-begun", "-key")[:1001]
    assert [one.start - begin for one in page] == [5_000, 0]
    assert any(f" {name} " in page.explain() for name in indexes), page.explain()
    assert [one.start - begin for one in during] == ([] if withdrawn else [9_000])


def test_pages_stay_correct_while_answers_arrive_and_many_share_one_time(
    query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    for i in range(7):
        put(query, f"e{i}", 10, 10)
    client = client_of(people.viewer)
    first = client.get(f"/api/v1/detections/?query={query.pk}&page_size=3").json()
    put(query, "later", 99, 99)
    seen = [row["id"] for row in first["results"]]
    address = first["next"]
    while address:
        page = client.get(address).json()
        seen += [row["id"] for row in page["results"]]
        address = page["next"]
    assert len(seen) == len(set(seen)) == 7


@pytest.mark.parametrize(
    "asked", ["", "feed=yard&from=x", "query=abc", "feed=yard&to=99999999999999999999999", "feed=yard&cursor=x", "feed=yard&cursor=1.zz"]
)
def test_invalid_parameters_are_refused(asked: str, stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert client_of(people.viewer).get(f"/api/v1/detections/?{asked}").status_code == 400


def test_answers_of_queries_that_are_not_shared_are_hidden(stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    private = query_register(owner=people.owner, feed=stored.feed, name="private", specification=stored.specification)
    hidden = put(private, "z", 12, 13)
    for asked in ("feed=yard", f"query={private.pk}", f"feed=yard&query={private.pk}", "feed=yard&entity=z"):
        assert all(row["query"] != private.pk for row in client_of(people.viewer).get(f"/api/v1/detections/?{asked}").json()["results"])
        assert client_of(people.owner).get(f"/api/v1/detections/?{asked}").json()["results"]
    address = f"/api/v1/detections/{bytes(hidden.key).hex()}/"
    assert client_of(people.viewer).get(address).status_code == 404
    assert client_of(people.stranger).get(address).status_code == 404
    assert client_of(people.owner).get(address).status_code == 200
    assert "z" not in b"".join(client_of(people.viewer).get("/api/v1/detections/export?feed=yard").streaming_content).decode().split("in,")


def test_one_answer_comes_with_its_sentence_and_tracks(
    stored: Query, people: SimpleNamespace, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(stored.feed, [{"entity": "a", "t": t, "x": float(t), "y": 0.0} for t in (5, 10, 25)])
    key = bytes(Detection.objects.get(start=10).key).hex()
    shown = client_of(people.viewer).get(f"/api/v1/detections/{key}/?feed=yard").json()
    assert (shown["query_name"], shown["feed"], shown["start"], shown["end"]) == ("In and out", "yard", 10, 20)
    assert shown["sentence"].startswith("Reports") and shown["tracks"][0]["points"][0] == [5, 5.0, 0.0]
    query_edit(query=stored, user=people.owner, specification={"family": "border", "version": 1, "region": {"center": [5, 5], "radius": 2}})
    assert client_of(people.viewer).get(f"/api/v1/detections/{key}/?feed=yard").json()["sentence"] == shown["sentence"]


def test_the_evidence_of_an_answer_is_a_file_with_the_query_as_it_was(
    stored: Query, people: SimpleNamespace, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(stored.feed, [{"entity": "a", "t": t, "x": float(t), "y": 0.0} for t in (5, 10, 25)])
    before = stored.versions.get(version=1).specification
    address = f"/api/v1/detections/{bytes(Detection.objects.get(start=10).key).hex()}"
    query_edit(query=stored, user=people.owner, specification={"family": "border", "version": 1, "region": {"center": [5, 5], "radius": 2}})
    file = client_of(people.viewer).get(f"{address}/evidence?feed=yard")
    assert file["Content-Disposition"].startswith("attachment; filename=")
    found = file.json()
    assert found.pop("specification") == before and found.pop("saved_at")
    assert found == client_of(people.viewer).get(f"{address}/?feed=yard").json()
    assert client_of(people.stranger).get(f"{address}/evidence?feed=yard").status_code == 404


def test_queries_can_be_left_out(stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    other = query_register(owner=people.owner, feed=stored.feed, name="other", specification=stored.specification)
    put(other, "z", 12, 13)
    client = client_of(people.owner)
    for left_out, left in ((other, stored), (stored, other)):
        rows = client.get(f"/api/v1/detections/?feed=yard&without={left_out.pk}&without=99").json()["results"]
        assert {row["query"] for row in rows} == {left.pk}
        lines = b"".join(client.get(f"/api/v1/detections/export?feed=yard&format=jsonl&without={left_out.pk}").streaming_content).splitlines()
        assert {json.loads(line)["query"] for line in lines} == {left.pk}
    both = f"query={stored.pk}&query={other.pk}&without={other.pk}"
    assert {row["query"] for row in client.get(f"/api/v1/detections/?{both}").json()["results"]} == {stored.pk}
    assert client.get("/api/v1/detections/?feed=yard&without=x").status_code == 400


def export(client: APIClient, kind: str) -> str:
    answer = client.get(f"/api/v1/detections/export?feed=yard&format={kind}")
    assert answer.status_code == 200 and f"answers.{kind}" in answer["Content-Disposition"]
    return b"".join(answer.streaming_content).decode()


def test_answers_are_exported_in_three_formats(stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    put(stored, "=cmd()", 70, 71, value="@evil")
    client = client_of(people.viewer)
    rows = list(csv.DictReader(io.StringIO(export(client, "csv"))))
    assert [row["start"] for row in rows] == ["10", "15", "30", "50", "70"]
    assert {row["query_name"] for row in rows} == {stored.name} and rows[0]["start_at"] == "1970-01-01T00:00:00.010000Z"
    assert json.loads(rows[0]["entities"]) == ["a"] and rows[1]["end"] == "" and rows[4]["value"] == "'@evil"
    collection = json.loads(export(client, "geojson"))
    assert [feature["properties"]["start"] for feature in collection["features"]] == [10, 15, 30, 50, 70]
    assert collection["features"][0]["geometry"] == {"type": "Point", "coordinates": [1.5, 2.5]} and collection["features"][1]["geometry"] is None
    assert [json.loads(line)["start"] for line in export(client, "jsonl").splitlines()] == [10, 15, 30, 50, 70]
    assert client.get("/api/v1/detections/export?feed=yard&format=exe").status_code == 400


def test_a_feed_reads_the_whole_of_our_own_places(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], tmp_path: Path) -> None:
    begin = 1_767_225_600_000
    for n in range(20):
        at = begin + n * 1_000
        item = {"variable": None, "entity": "a", "t": at - 500, "x": 1.5, "y": 2.5, "seq": 1}
        put(query, "one", at, at, evidence=[item])
        put(query, "two", at, None, evidence=[item, {**item, "t": at}, {**item, "x": None, "y": None}])
        put(query, "none", at, at)
    text = export(client_of(people.viewer), "geojson")
    by_entity = {one["properties"]["entities"][0]: one["properties"]["times"] for one in json.loads(text)["features"]}
    assert by_entity == {"one": [at - 500], "two": [at - 500, at], "none": [at]}
    _, rows, faults = looked(tmp_path / "answers.geojson", text)
    assert not faults and len(rows) == 20 * 4
    assert {row["t"] for row in rows} == {begin + n * 1_000 - early for n in range(20) for early in (0, 500)}


def test_every_format_has_all_that_a_list_tells(stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    listed = client.get("/api/v1/detections/?feed=yard&order=start").json()["results"]
    rows = list(csv.DictReader(io.StringIO(export(client, "csv"))))
    places = json.loads(export(client, "geojson"))["features"]
    for answer, row, place in zip(listed, rows, places, strict=True):
        assert set(answer) <= set(row) and set(answer) <= set(place["properties"])
        assert (row["id"], row["version"], row["cut"], row["backfill"]) == (answer["id"], str(answer["version"]), "false", "false")
    assert rows[0]["found_at"] == iso_of_event(listed[0]["detected_at"], "ms")


def test_exported_answers_have_their_times_in_words(stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    for unit, begins in (("ms", "1970-01-01T00:00:00.010000Z"), ("ticks", None)):
        Feed.objects.update(time=unit)
        rows = [json.loads(line) for line in export(client_of(people.viewer), "jsonl").splitlines()]
        assert (rows[0]["start_at"], rows[1]["end_at"]) == (begins, None)


def test_a_file_that_is_cut_short_says_so_in_its_name(
    stored: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(people.viewer)
    for most, name in ((3, "answers-first-3.csv"), (4, "answers.csv")):
        monkeypatch.setattr("webapp.detections.api.DOWNLOAD_ROWS", most)
        answer = client.get("/api/v1/detections/export?feed=yard")
        assert f'"{name}"' in answer["Content-Disposition"]
        assert len(b"".join(answer.streaming_content).splitlines()) == 1 + most


def test_an_empty_export_is_a_file_too(query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert json.loads(export(client_of(people.viewer), "geojson")) == {"type": "FeatureCollection", "features": []}


# -- jobs ------------------------------------------------------------------------------------------


def test_only_operators_start_and_stop_jobs(feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    Job.objects.update(last_error="Traceback of the job")
    shown = client_of(people.viewer).get("/api/v1/jobs/").json()[0]
    assert (shown["name"], shown["feeds"], shown["editable"], shown["last_error"]) == ("main", ["yard"], False, "")
    assert client_of(people.viewer).post("/api/v1/jobs/main/stop").status_code == 403
    assert client_of(people.analyst).post("/api/v1/jobs/main/stop").status_code == 403
    answer = client_of(people.operator).post("/api/v1/jobs/main/stop")
    assert answer.status_code == 200 and answer.json()["desired_state"] == "stopped" and answer.json()["last_error"]
    assert JobEvent.objects.first().text == "Asked to stop by operator."
    assert client_of(people.operator).post("/api/v1/jobs/main/start").json()["desired_state"] == "running"
    assert client_of(people.operator).get("/api/v1/jobs/none/").status_code == 404


def test_a_job_hides_the_names_of_feeds_from_strangers(feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert client_of(people.stranger).get("/api/v1/jobs/main/").json()["feeds"] == []
