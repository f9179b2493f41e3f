"""The cost of a query is bounded by counts, and checking one does not delay other requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.webapp.conftest import SQUARE
from webapp.queries import verdicts

pytestmark = [pytest.mark.services, pytest.mark.django_db]
INPUTS = {"position": {"args": ["entity"]}}
CALCULUS = {"family": "calculus", "version": 1, "window": "PT3M", "step": "PT3M", "inputs": INPUTS}


def program(rules: int) -> dict[str, Any]:
    text = "\n".join(f"initiatedAt(f{n}(X)=true, T) :- happensAt(position(X), T)." for n in range(rules))
    return {**CALCULUS, "program": text, "outputs": ["f0"]}


PAIRS = {
    **CALCULUS,
    "program": "".join(f"initiatedAt(near{n}(X,Y)=true, T) :- happensAt(position(X), T), happensAt(position(Y), T2), T2 =< T.\n" for n in range(9)),
    "outputs": ["near0"],
}
MATCHES = {
    "family": "constraint", "version": 1, "variables": {"A": {}, "B": {}, "C": {}}, "report": "all",
    "constraints": [{"between": ["A", "B"], "dt": [0, 60_000]}, {"between": ["B", "C"], "dt": [0, 60_000]}],
}  # fmt: skip


def crowd(entities: int, times: int) -> list[dict[str, Any]]:
    return [{"entity": f"e{e}", "t": 1_000 * t, "x": 5.0, "y": 5.0} for t in range(times) for e in range(entities)]


def ask(client: APIClient, path: str, specification: Any) -> Any:
    return client.post(f"/api/v1/queries/{path}", {"feed": "yard", "specification": specification})


@pytest.mark.parametrize(
    ("specification", "rows", "expected"),
    [(PAIRS, (400, 20), "rows"), (MATCHES, (10, 20), "250,000 solutions")],
    ids=["pairs of entities", "triples of rows"],
)
def test_a_preview_of_an_unbounded_query_ends_with_the_limit(
    specification: Any, rows: tuple[int, int], expected: str, people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Any
) -> None:
    received(feed, crowd(*rows))
    answer = ask(client_of(people.owner), "preview", specification)
    said = answer.json()["faults"][0]["message"]
    assert answer.status_code == 400 and "A job would stop this query" in said and expected in said


def test_a_sandbox_of_an_unbounded_program_ends_with_a_remedy(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Any
) -> None:
    received(feed, crowd(400, 20))
    answer = ask(client_of(people.owner), "sandbox", PAIRS)
    assert answer.status_code == 503 and "choose a shorter period" in answer.json()["faults"][0]["message"]


def test_a_long_program_is_checked_like_a_short_one(people: SimpleNamespace, feed: Any, client_of: Any) -> None:
    client = client_of(people.owner)
    long = program(500)
    assert verdicts.is_long(long)
    assert ask(client, "check", long).json()["faults"] == []
    long["program"] += "\ninitiatedAt(g(X)=true, T) :- happensAt(posture(X), T)."
    (fault,) = ask(client, "check", long).json()["faults"]
    assert fault["pointer"] == "/program" and "line 501" in fault["message"] and "posture" in fault["message"]


def test_a_long_program_is_registered(people: SimpleNamespace, feed: Any, client_of: Any) -> None:
    client = client_of(people.owner)
    made = client.post("/api/v1/queries/", {"feed": "yard", "name": "long", "specification": program(400)})
    assert made.status_code == 201, made.content
    refused = client.post("/api/v1/queries/", {"feed": "yard", "name": "longer", "specification": {**program(400), "step": "x"}})
    assert refused.status_code == 400 and refused.json()["faults"][0]["pointer"] == "/specification/step"


@pytest.fixture
def longest_pause() -> Iterator[Callable[[], float]]:
    """The longest time for which another thread of this process was blocked."""
    gaps, end = [0.0], threading.Event()

    def beat() -> None:
        last = time.monotonic()
        while not end.wait(0.01):
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    yield lambda: max(gaps)
    end.set()
    thread.join()


def test_checking_thousands_of_rules_does_not_hold_up_the_web_process(
    people: SimpleNamespace, feed: Any, client_of: Any, longest_pause: Callable[[], float]
) -> None:
    client = client_of(people.owner)
    before = time.thread_time()
    answer = ask(client, "check", program(8_000))
    assert time.thread_time() - before < 0.5, "the work is done elsewhere"
    assert answer.json()["faults"] and longest_pause() < 1.0


def test_a_program_for_many_regions_is_bounded_as_a_whole(people: SimpleNamespace, feed: Any, client_of: Any) -> None:
    features = [{"type": "Feature", "properties": {"name": f"r{n}"}, "geometry": SQUARE} for n in range(200)]
    template = {**program(50), "areas": {"area": {"region": "$feature"}}}
    given = {"feed": "yard", "template": template, "geojson": {"type": "FeatureCollection", "features": features}, "dry_run": True}
    answer = client_of(people.owner).post("/api/v1/queries/bulk", given)
    assert answer.status_code == 400 and "1,500 characters" in answer.json()["faults"][0]["message"]


@pytest.mark.parametrize(
    "document",
    [
        {"family": "border", "version": 1, "region": SQUARE, **{f"key{n}": 1 for n in range(50_000)}},
        {"family": "border", "version": 1, "region": SQUARE, "where": [["sped", ">", 1]] * 50_000},
        {"family": "border", "version": 1, "region": SQUARE, "k" * 500_000: 1},
        {"family": "border", "version": 1, "region": SQUARE, "tags": [0] * 1_000_001},
    ],
    ids=["unknown keys", "unknown columns", "a key of half a megabyte", "too many values"],
)
def test_the_number_of_listed_faults_is_limited(document: Any, people: SimpleNamespace, feed: Any, client_of: Any) -> None:
    client = client_of(people.owner)
    ask(client, "check", {"family": "border", "version": 1})
    before = time.thread_time()
    for address, body in (("check", {"feed": "yard", "specification": document}), ("", {**document, "feed": "yard"})):
        answer = client.post(f"/api/v1/queries/{address}", body)
        assert 1 <= len(answer.json()["faults"]) <= 520
        assert len(answer.content) < 700_000
    # It took 39 s when suggestions were computed for each of a million misspelt names.
    assert time.thread_time() - before < 10.0


@pytest.mark.parametrize("text", ["[" * 3_000_000, '{"feed":"yard","specification":' + '{"a":' * 990 + "1" + "}" * 991], ids=["brackets", "objects"])
def test_the_depth_of_documents_is_limited(text: str, people: SimpleNamespace, feed: Any, client_of: Any) -> None:
    for address in ("queries/check", "regions/", "queries/bulk", "feeds/"):
        answer = client_of(people.owner).generic("POST", f"/api/v1/{address}", text, "application/json")
        assert answer.status_code in (200, 400), answer.content
        assert answer.json()["faults"]
