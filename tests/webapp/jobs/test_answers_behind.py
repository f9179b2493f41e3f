"""From a derived answer through upstream answers down to rows, as the page requests them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rest_framework.test import APIClient

from engine.model.changes import ANSWERS
from engine.model.events import row_schema
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sinks.facts import facts_of
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from tests.webapp.conftest import BORDER
from webapp.detections.models import Detection
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_register
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

VISIT = {
    "family": "composite",
    "version": 1,
    "pattern": "CAME : LEFT",
    "primitives": {"CAME": {"where": [["event", "=", "came"]]}, "LEFT": {"where": [["event", "=", "left"]]}},
    "per": "entity",
    "within": 60_000,
    "derive": {"came": {"query": "gate", "kind": "in", "at": "start"}, "left": {"query": "gate", "kind": "out", "at": "end"}},
}
BEEN = {
    "family": "calculus",
    "version": 1,
    "program": "initiatedAt(been(X)=true, T) :- happensAt(visit(X), T).",
    "outputs": ["been"],
    "inputs": {"visit": {"args": ["entity"]}},
    "window": 60_000,
    "step": 1_000,
    "derive": {"visit": {"query": "visit", "kind": "detection", "at": "end"}},
}


@pytest.fixture
def graph(people: SimpleNamespace, feed: Feed) -> dict[str, Query]:
    """gate <- visit <- been; the gate is private to the owner, the others belong to the team."""
    made = {"gate": query_register(owner=people.owner, feed=feed, name="gate", specification=BORDER)}
    for name, document in {"visit": VISIT, "been": BEEN}.items():
        made[name] = query_register(owner=people.owner, feed=feed, name=name, specification=document, team=people.harbour)
    return made


@pytest.fixture
def processed(feed: Feed, graph: dict[str, Query], tmp_path: Path) -> FeedProcessor:
    """One walker came and left, another came."""
    feed_head_ensure(feed)
    log = EventLog(tmp_path / "log", feed.name)
    processor = FeedProcessor(feed.engine_feed(), log, FeedStore(feed, 1), Snapshots(files_of(tmp_path / "state")))
    processor.follow()
    places = [("a", 1000, 20.0), ("b", 1000, 20.0), ("a", 2000, 5.0), ("b", 3000, 5.0), ("a", 4000, 20.0), ("c", 30_000, 50.0)]
    rows: list[dict[str, Any]] = [{"event": "position", "entity": entity, "t": t, "x": x, "y": 5.0} for entity, t, x in places]
    log.append(pa.Table.from_pylist(rows, schema=row_schema(feed.engine_feed())))
    processor.process()
    return processor


def behind(client: APIClient, name: str) -> list[tuple[str, str, list[str], int]]:
    (found,) = Detection.objects.filter(query__name=name, weight=1).order_by("-version")[:1]
    answers = client.get(f"/api/v1/detections/{bytes(found.key).hex()}/answers").json()["answers"]
    return [(one["query_name"], one["event"], one["entities"], one["start"]) for one in answers]


def test_a_derived_answer_leads_to_upstream_answers_and_their_rows(
    people: SimpleNamespace, feed: Feed, processed: FeedProcessor, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    assert behind(client, "been") == [("visit", "visit", ["a"], 2000)]
    assert behind(client, "visit") == [("gate", "came", ["a"], 2000), ("gate", "left", ["a"], 4000)]
    assert behind(client, "gate") == []
    rows = Detection.objects.filter(query__name="gate").values_list("evidence", flat=True)
    assert all(item["seq"] < 6 and item["x"] is not None for evidence in rows for item in evidence)
    assert not feed_audit(feed=feed).faults


def test_an_answer_from_an_event_without_entity_is_stored() -> None:
    answer = {"query": "1", "version": 1, "kind": "match", "entities": [None, "a"], "start": 1, "end": 2, "weight": 1}
    (fact,) = facts_of(pa.Table.from_pylist([answer], schema=ANSWERS))
    assert fact.entities == ["", "a"]


def test_upstream_answers_of_hidden_queries_are_hidden(
    people: SimpleNamespace, processed: FeedProcessor, client_of: Callable[..., APIClient]
) -> None:
    assert behind(client_of(people.viewer), "visit") == []


def test_after_an_upstream_edit_upstream_answers_are_those_of_the_new_version(
    people: SimpleNamespace, feed: Feed, graph: dict[str, Query], processed: FeedProcessor, client_of: Callable[..., APIClient]
) -> None:
    query_edit(query=graph["gate"], user=people.owner, specification={**BORDER, "where": [["entity", "=", "a"]]})
    processed.follow()
    assert behind(client_of(people.owner), "visit") == [("gate", "came", ["a"], 2000), ("gate", "left", ["a"], 4000)]
    assert set(Detection.objects.filter(query__name="visit").values_list("version", flat=True)) == {1, 2}
    assert not feed_audit(feed=feed).faults
