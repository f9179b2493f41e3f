"""Samples to start with: one step makes a feed with regions and queries, and each
of its queries has answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from webapp.accounts.models import User
from webapp.cage.warm_pool import INSPECTIONS
from webapp.demo.samples import all_samples
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed, Upload
from webapp.feeds.uploads.loading import Loads
from webapp.feeds.uploads.store import file_of, upload_append, upload_create
from webapp.queries.models import Query, Severity

pytestmark = [pytest.mark.services, pytest.mark.django_db]
SHIPPED = [sample.name for sample in all_samples() if sample.is_shipped]
ASKED_FOR = [sample.name for sample in all_samples() if sample.file and not sample.is_shipped]
BUSES = "entity,t,x,y\n14,2026-01-26T16:00:00Z,-2.9779,53.4084\n14,2026-01-26T16:10:00Z,-2.9,53.5\n"
ADDRESS = "/api/v1/samples/"


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    settings.VAR, settings.SAMPLES_ROOT = tmp_path, tmp_path / "none"


@pytest.fixture(autouse=True, scope="module")
def no_process_stays() -> Iterator[None]:
    yield
    INSPECTIONS.retire()


@pytest.fixture
def client(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> APIClient:
    return client_of(people.operator)


def loaded(until: Callable[[Upload], bool]) -> Upload:
    loads = Loads()
    for _ in range(1_000):
        loads.round()
        if until(upload := Upload.objects.get()):
            return upload
    raise AssertionError(f"it never came so far: {upload.state} {upload.error}")


def test_a_sample_that_is_refused_leaves_no_file(client: APIClient, settings: Any, tmp_path: Path) -> None:
    """Nothing would count it: a user over the quota of feeds could fill the disk."""
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "feeds": 0}
    assert client.post(ADDRESS, {"name": "strait"}).status_code == 403
    assert list((tmp_path / "uploads").iterdir()) == [] and not Upload.objects.exists()


def test_generated_samples_become_live_feeds_with_queries(client: APIClient, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    offered = [one for one in client.get(ADDRESS).json()["results"] if one["live"]]
    assert [one["name"] for one in offered] == ["strait", "city", "garages"] and all(one["queries"] and one["here"] for one in offered)
    made = client.post(ADDRESS, {"name": "strait", "team": people.harbour.pk})
    assert made.status_code == 201, made.json()
    again = client.post(ADDRESS, {"name": "strait"}).json()
    assert (made.json()["feed"], again["feed"]) == ("strait", "strait-2")
    Upload.objects.get(pk=again["id"]).delete()
    feed = Feed.objects.get(name="strait")
    assert feed.wall_clock and feed.team == people.harbour and feed.columns["ship_type"] == "string" and feed.lateness == 2000
    assert list(feed.queries.order_by("pk").values_list("name", flat=True)) == [query["name"] for query in offered[0]["queries"]]
    loaded(lambda upload: upload.position > 0)
    assert event_log("strait").end[0] > 0
    assert client.post(ADDRESS, {"name": "strat"}).json()["faults"][0]["message"].count("strait")
    assert client.post(ADDRESS, {"name": "strait", "team": 999}).status_code == 400
    assert client_of(people.viewer).post(ADDRESS, {"name": "strait"}).status_code == 403


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_recording_answers_each_query_of_its_gallery(name: str, client: APIClient) -> None:
    _answers_each_query(name, client)


@pytest.mark.data
@pytest.mark.parametrize("name", ASKED_FOR)
def test_a_recording_of_the_operator_answers_each_query_of_its_gallery(name: str, client: APIClient, data_folder: Path, settings: Any) -> None:
    settings.SAMPLES_ROOT = data_folder
    _answers_each_query(name, client)


def _answers_each_query(name: str, client: APIClient) -> None:
    sample = {one["name"]: one for one in client.get(ADDRESS).json()["results"]}[name]
    assert sample["licence"] and sample["origin"] and sample["here"] and not sample["live"]
    answer = client.post(ADDRESS, {"name": name})
    assert answer.status_code == 201, answer.json()
    upload = loaded(lambda upload: upload.state == "done")
    feed = Feed.objects.get(name=name)
    assert upload.rows and upload.dead + upload.late < upload.rows / 100
    assert set(feed.queries.values_list("severity", flat=True)) <= set(Severity.values)
    regions = {region.name: region.geometry for region in feed.regions.all()}
    queries = [
        RegisteredQuery(query.name, 1, check(query.specification, feed.engine_feed(), regions), ()) for query in Query.objects.filter(feed=feed)
    ]
    evaluator = Evaluator.start(feed.engine_feed(), queries)
    answered: set[str] = set()
    times: list[int] = []
    for table in event_log(name).read():
        times += table.column("t").to_pylist()
        answered |= set(evaluator.process(table).changes.column("query").to_pylist())
    answered |= set(evaluator.finish().changes.column("query").to_pylist())
    assert answered == {query["name"] for query in sample["queries"]}
    # The page's data about the recording.
    assert (sample["rows"], sample["from"], sample["to"]) == (len(times), min(times) // 1000 * 1000, max(times) // 1000 * 1000)
    if sample["opens"] is not None:
        first, last = sample["opens"]["window"]
        assert first < sample["opens"]["instant"] < last and min(times) < last and first < max(times)


def test_the_known_storms_of_2005_are_found(client: APIClient) -> None:
    """As the National Hurricane Center reports: four storms of category five; Katrina ashore in
    Florida on 25 August, in Louisiana on the 29th."""
    client.post(ADDRESS, {"name": "storms"})
    loaded(lambda upload: upload.state == "done")
    feed = Feed.objects.get(name="storms")
    regions = {region.name: region.geometry for region in feed.regions.all()}
    wanted = ["Category five", "Landfall in Florida", "Landfall in Louisiana or Mississippi"]
    queries = [
        RegisteredQuery(one.name, 1, check(one.specification, feed.engine_feed(), regions), ()) for one in feed.queries.filter(name__in=wanted)
    ]
    evaluator = Evaluator.start(feed.engine_feed(), queries)
    rows = [row for table in event_log("storms").read() for row in evaluator.process(table).changes.to_pylist()]
    rows += evaluator.finish().changes.to_pylist()
    came = {
        (row["query"], row["entities"][0], datetime.fromtimestamp(row["start"] / 1000, UTC).strftime("%m-%d")) for row in rows if row["kind"] == "in"
    }
    assert {entity for query, entity, _ in came if query == wanted[0]} == {"Emily", "Katrina", "Rita", "Wilma"}
    assert {(wanted[1], "Katrina", "08-25"), (wanted[1], "Wilma", "10-24"), (wanted[2], "Katrina", "08-29"), (wanted[2], "Rita", "09-24")} <= came


def test_a_sample_without_its_recording_is_built_from_the_users_file(client: APIClient, people: SimpleNamespace) -> None:
    (buses,) = [one for one in client.get(ADDRESS).json()["results"] if one["name"] == "buses"]
    assert not buses["here"] and buses["file"] == "vehicles_bus_liverpool/positions.parquet"
    assert "not included" in client.post(ADDRESS, {"name": "buses"}).json()["faults"][0]["message"]
    answer = client.post(ADDRESS, {"name": "buses", "upload": _uploaded(people.operator, BUSES)})
    assert answer.status_code == 201, answer.json()
    feed = Feed.objects.get(name="buses")
    assert (feed.title, feed.queries.count(), feed.regions.count()) == (buses["title"], 3, 1)
    assert loaded(lambda upload: upload.state == "done").rows == 2


def test_a_file_that_does_not_fit_the_sample_stays_for_the_user(client: APIClient, people: SimpleNamespace) -> None:
    upload = _uploaded(people.operator, BUSES)
    answer = client.post(ADDRESS, {"name": "aircraft", "upload": upload})
    assert answer.status_code == 400
    assert answer.json()["faults"][0]["pointer"] == "/upload" and "alt_ft" in answer.json()["faults"][0]["message"]
    assert not Feed.objects.exists() and Upload.objects.get(pk=upload).state == "ready"
    assert file_of(Upload.objects.get(pk=upload)).read_text() == BUSES
    assert client.post(ADDRESS, {"name": "strait", "upload": upload}).status_code == 400


def test_a_sample_refuses_files_of_other_users(client: APIClient, people: SimpleNamespace) -> None:
    answer = client.post(ADDRESS, {"name": "buses", "upload": _uploaded(people.stranger, BUSES)})
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/upload" and not Feed.objects.exists()


def _uploaded(owner: User, text: str) -> str:
    upload = upload_create(owner=owner, name="mine.csv", size=len(text))
    upload_append(upload=upload, offset=0, data=text.encode())
    return str(upload.pk)
