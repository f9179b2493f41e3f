"""Unknown parameters and values are refused, all together, each with a suggestion."""

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import get_resolver
from rest_framework.test import APIClient

from webapp.config.parameters import ROOT, known_parameters, shape
from webapp.feeds.models import Feed

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("detections/?feed=yard&enity=a&form=3", {"/enity": "entity", "/form": "from"}),
        ("feeds/?pagesize=3", {"/pagesize": "page_size"}),
        ("feeds/yard/tracks?entity=a&limt=3", {"/limt": "limit"}),
        ("feeds/yard/dead-letters?reson=late", {"/reson": "reason"}),
        ("alerts/?stat=new", {"/stat": "state"}),
    ],
)
def test_a_misspelt_parameter_is_refused_with_a_suggestion(
    address: str, meant: dict[str, str], feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    answer = client_of(people.owner).get(f"/api/v1/{address}")
    assert answer.status_code == 400
    faults = {fault["pointer"]: fault["message"] for fault in answer.json()["faults"]}
    assert set(faults) == set(meant)
    assert all(f"did you mean '{name}'" in faults[pointer] for pointer, name in meant.items()), faults


@pytest.mark.parametrize(
    ("address", "pointer", "part"),
    [
        ("detections/?feed=yard&withdrawn=maybe", "/withdrawn", "unknown value 'maybe'. Known: false, true"),
        ("detections/?feed=yard&versions=al", "/versions", "did you mean 'all'"),
        ("detections/?feed=yard&order=begin", "/order", "Known: -start, start"),
        ("detections/?feed=yard&feed=quay", "/feed", "is here twice"),
        ("detections/?feed=yard&page_size=0", "/page_size", "At least 1."),
        ("detections/counts?feed=yard&from=0&to=9&buckets=0", "/buckets", "From 1 to 2,000."),
        ("queries/?enabled=maybe", "/enabled", "Known: false, true"),
        ("queries/?mine=2", "/mine", "Known: false, true"),
        ("alerts/?muted=yes", "/muted", "Known: false, true"),
        ("alerts/?state=new&state=sen", "/state", "did you mean 'seen'"),
        ("alerts/groups?hours=0", "/hours", "From 1 to 168."),
        ("alerts/numbers?hours=0", "/hours", "From 1 to 2,160."),
        ("routing-rules/dry-run?hours=0", "/hours", "From 1 to 168."),
        ("feeds/yard/measures?minutes=99999", "/minutes", "From 1 to 1,440."),
        ("feeds/yard/histogram?column=x&bins=0", "/bins", "From 1 to 200."),
        ("feeds/yard/tracks?entity=a&limit=0", "/limit", "From 1 to 100,000."),
        ("feeds/yard/movements?from=0&to=9&step=-1", "/step", "From 1 to"),
        ("feeds/yard/entity", "/id", "Name an entity."),
        ("feeds/?page_size=many", "/page_size", "A whole number."),
        ("feeds/yard/dead-letters?page_size=0", "/page_size", "At least 1."),
        ("queries/?feed=yart", "/feed", "There is no feed 'yart' that you may see."),
        ("regions/?feed=yart", "/feed", "There is no feed"),
        ("alerts/?feed=yart", "/feed", "There is no feed"),
        ("connectors/?feed=yart", "/feed", "There is no feed"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(
    address: str, pointer: str, part: str, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    """It was ignored, and the answer looked like a filtered one."""
    answer = client_of(people.owner).get(f"/api/v1/{address}")
    assert answer.status_code == 400, answer.content
    (fault,) = answer.json()["faults"]
    assert fault["pointer"] == pointer
    assert part in fault["message"]


def test_parameters_that_cannot_apply_to_rows_are_refused_by_exports(feed: Feed) -> None:
    answer = APIClient().generic("POST", "/api/v1/feeds/yard/events?map=entity%3Dmmsi", b"", "text/csv")
    assert answer.status_code == 400
    assert "unknown parameter 'map'" in answer.json()["faults"][0]["message"]


@pytest.mark.parametrize(
    "address",
    [
        "feeds/?page=1&page_size=10",
        "feeds/yard/dead-letters?page_size=2&reason=late&source=job",
        "feeds/yard/dead-letters.csv?reason=late",
        "regions/?feed=yard&tag=a&search=b&bbox=0,0,1,1&page_size=5",
        "regions/export?feed=yard&format=geojson&search=x",
        "queries/?feed=yard&family=border&enabled=true&search=x&page=1",
        "detections/?feed=yard&from=1&to=2&order=start&page_size=3&withdrawn=true",
        "channels/?page_size=3",
        "alerts/?feed=yard&state=new&state=acknowledged&severity=low&page_size=3",
        "alerts/?muted=&over=false&verdict=right",
    ],
)
def test_documented_parameters_are_accepted(address: str, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert client_of(people.owner).get(f"/api/v1/{address}").status_code == 200


OF_TRACKERS = {"api/v1/track/{}", "api/v1/track/{}/{}"}
"""Each model of a tracker adds parameters; these addresses are described in docs/connectors.md."""


def test_every_address_of_the_api_is_described() -> None:
    def routes(patterns: Any, before: str = "") -> Any:
        for pattern in patterns:
            if hasattr(pattern, "url_patterns"):
                yield from routes(pattern.url_patterns, before + str(pattern.pattern))
            else:
                yield before + str(pattern.pattern)

    described = {route for route, _ in known_parameters()}
    ours = {shape(route) for route in routes(get_resolver().url_patterns) if route.startswith(ROOT)}
    assert ours - described == OF_TRACKERS


TOGETHER = """
import threading
import django
django.setup()
from webapp.config.parameters import known_parameters
found = []
threads = [threading.Thread(target=lambda: found.append(len(known_parameters()))) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len(set(found)))
"""


def test_the_first_requests_of_a_process_may_be_concurrent() -> None:
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["12", "1"], done.stderr
