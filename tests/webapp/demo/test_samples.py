"""Samples to start with: one step makes a feed with regions and queries, and each of its queries has answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from webapp.cage.warm_pool import INSPECTIONS
from webapp.demo.samples import all_samples
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed, Upload
from webapp.feeds.uploads.loading import Loads
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
REAL = [sample.name for sample in all_samples() if not sample.made]
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
    """Nothing would count it: who is over a quota of feeds could fill the disk."""
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "feeds": 0}
    assert client.post(ADDRESS, {"name": "strait"}).status_code == 403
    assert list((tmp_path / "uploads").iterdir()) == [] and not Upload.objects.exists()


def test_made_samples_become_live_feeds_with_queries(client: APIClient, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    offered = client.get(ADDRESS).json()["results"]
    assert [one["name"] for one in offered] == ["strait", "city", "garages"] and all(one["queries"] for one in offered)
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


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_a_real_recording_answers_each_query_of_its_gallery(name: str, client: APIClient, data_folder: Path, settings: Any) -> None:
    settings.SAMPLES_ROOT = data_folder
    sample = {one["name"]: one for one in client.get(ADDRESS).json()["results"]}[name]
    assert sample["licence"] and sample["origin"] and not sample["live"]
    answer = client.post(ADDRESS, {"name": name})
    assert answer.status_code == 201, answer.json()
    upload = loaded(lambda upload: upload.state == "done")
    feed = Feed.objects.get(name=name)
    assert upload.rows and upload.dead + upload.late < upload.rows / 100
    regions = {region.name: region.geometry for region in feed.regions.all()}
    queries = [
        RegisteredQuery(query.name, 1, check(query.specification, feed.engine_feed(), regions), ()) for query in Query.objects.filter(feed=feed)
    ]
    evaluator = Evaluator.start(feed.engine_feed(), queries)
    answered: set[str] = set()
    for table in event_log(name).read():
        answered |= set(evaluator.process(table).changes.column("query").to_pylist())
    answered |= set(evaluator.finish().changes.column("query").to_pylist())
    assert answered == {query["name"] for query in sample["queries"]}
