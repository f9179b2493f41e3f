"""A query's answers when it is switched off, on again, edited or removed while rows arrive
(decision 20)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from engine.model.events import row_schema
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.eventlog import EventLog
from engine.sources.store import files_of
from tests.examples import examples
from tests.webapp.answers import a_feed, a_user
from webapp.alerts.models import Alert
from webapp.detections.counts import answer_counts
from webapp.detections.models import Detection, Outbox
from webapp.detections.selectors import detection_list, detection_row
from webapp.feeds.heads import feed_head_ensure
from webapp.jobs.models import FeedHead
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_register, query_remove
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

RULES = """
initiatedAt(inside(X) = true, T) :- happensAt(enter(X), T).
terminatedAt(inside(X) = true, T) :- happensAt(leave(X), T).
"""
INPUTS = {name: {"args": ["entity"]} for name in ("enter", "leave", "gone")}
INSIDE = {"family": "calculus", "version": 1, "inputs": INPUTS, "program": RULES, "window": "PT60S", "step": "PT1S"}
SQUARE = {"family": "border", "version": 1, "region": {"center": [0, 0], "radius": 1}}


class Yard:
    """A feed that is processed batch by batch, as its job does it."""

    def __init__(self, folder: Path, number: int = 0) -> None:
        self.feed = a_feed(f"yard-{number}", lateness=0)
        feed_head_ensure(self.feed)
        self.log = EventLog(django_settings.EVENT_LOG_ROOT, self.feed.name)
        self.processor = FeedProcessor(self.feed.engine_feed(), self.log, FeedStore(self.feed, 1), Snapshots(files_of(folder / f"state-{number}")))

    def send(self, *rows: tuple[str, str, int]) -> None:
        """Rows (event, entity, t), processed when this returns."""
        events = [{"event": event, "entity": entity, "t": t, "x": 0.0, "y": 0.0} for event, entity, t in rows]
        self.log.append(pa.Table.from_pylist(events, schema=row_schema(self.feed.engine_feed())))
        self.processor.process()

    def shown(self) -> list[dict[str, Any]]:
        return [detection_row(one) for one in detection_list(feed_id=self.feed.pk).order_by("start", "key")]


@pytest.fixture
def yard(tmp_path: Path, settings: Any) -> Yard:
    settings.EVENT_LOG_ROOT = tmp_path / "log"
    return Yard(tmp_path)


def register(yard: Yard, **more: Any) -> Query:
    query = query_register(owner=a_user(), feed=yard.feed, name="inside", specification=INSIDE, alert_kinds=["inside"], **more)
    yard.processor.follow()
    return query


def switch(yard: Yard, query: Query, enabled: bool) -> Query:
    edited = query_edit(query=query, user=a_user(), enabled=enabled)
    yard.processor.follow()
    return edited


def test_switching_off_a_query_ends_its_open_answers_with_the_reason(yard: Yard) -> None:
    query = register(yard)
    yard.send(("enter", "a", 1_000), ("tick", "z", 5_000))
    assert [(one["end"], one["cut"]) for one in yard.shown()] == [(None, False)]
    before = Outbox.objects.filter(feed=yard.feed).count()
    switch(yard, query, enabled=False)
    assert [(one["end"], one["cut"]) for one in yard.shown()] == [(5_000, True)]
    assert list(detection_list(feed_id=yard.feed.pk, from_t=5_001)) == []
    published = [row.payload for row in Outbox.objects.filter(feed=yard.feed).order_by("seq")][before:]
    assert [(one["end"], one["cut"]) for row in published for one in row["detections"]] == [(5_000, True)]
    assert [row["queries"] for row in published] == [[query.pk]]
    alert = Alert.objects.get()
    assert (alert.state, alert.resolution, alert.end) == ("new", "changed", 5_000), "somebody has to take it still"


def test_switched_on_again_an_answer_is_stored_once_as_the_log_gives_it(yard: Yard) -> None:
    query = register(yard)
    yard.send(("enter", "a", 1_000), ("enter", "b", 2_000), ("tick", "z", 5_000))
    off = switch(yard, query, enabled=False)
    yard.send(("leave", "a", 6_000), ("tick", "z", 9_000))
    switch(yard, off, enabled=True)
    yard.send(("tick", "z", 12_000))
    assert [(one["entities"], one["end"], one["cut"]) for one in yard.shown()] == [(["a"], 6_000 + 1, False), (["b"], None, False)]
    assert feed_audit(feed=yard.feed).faults == []


def test_answers_not_asserted_again_are_retracted(yard: Yard) -> None:
    """As of an operator that asserts and retracts in two batches, and neither when both are one."""
    query = register(yard)
    yard.send(("enter", "a", 1_000), ("tick", "z", 5_000))
    asserted = Detection.objects.get()
    Detection.objects.create(
        feed=yard.feed,
        key=b"k" * 16,
        query=query,
        version=1,
        kind="inside",
        entities=["b"],
        value="true",
        start=1_500,
        seq=asserted.seq,
        detected_at=1,
    )
    assert feed_audit(feed=yard.feed).faults != []
    off = switch(yard, query, enabled=False)
    switch(yard, off, enabled=True)
    assert set(Detection.objects.values_list("start", "weight")) == {(asserted.start, 1), (1_500, 0)}
    assert feed_audit(feed=yard.feed).faults == []


def test_only_the_newest_version_of_a_query_is_shown_and_counted(yard: Yard, client_of: Callable[..., APIClient]) -> None:
    query = register(yard)
    yard.send(("enter", "a", 1_000), ("tick", "z", 5_000))
    query_edit(
        query=query,
        user=a_user(),
        specification={**INSIDE, "program": RULES + "terminatedAt(inside(X)=true, T) :- happensAt(gone(X), T).\n"},
    )
    yard.processor.follow()
    yard.send(("tick", "z", 7_000))
    assert [(one["version"], one["end"]) for one in yard.shown()] == [(2, None)]
    counts = json.loads(answer_counts(feed_id=yard.feed.pk, query_ids=[query.pk], from_t=0, to_t=60_000, buckets=1))["counts"]
    assert counts == {str(query.pk): {"inside": [[0, 1]]}}
    found = client_of(a_user()).get(f"/api/v1/detections/?feed={yard.feed.name}&versions=all").json()["results"]
    assert sorted((one["version"], one["end"], one["cut"]) for one in found) == [(1, 5_000, True), (2, None, False)]


def test_a_border_query_reports_the_time_of_leaving(yard: Yard, client_of: Callable[..., APIClient]) -> None:
    query = query_register(owner=a_user(), feed=yard.feed, name="square", specification=SQUARE)
    yard.processor.follow()
    yard.send(("position", "a", 1_000), ("position", "a", 4_000))
    switch(yard, query, enabled=False)
    client = client_of(a_user())
    assert client.get(f"/api/v1/queries/{query.pk}/").json()["left_at"] == 4_000
    switch(yard, Query.objects.get(pk=query.pk), enabled=True)
    assert client.get(f"/api/v1/queries/{query.pk}/").json()["left_at"] is None


def test_a_removed_query_s_open_answers_end(yard: Yard) -> None:
    query = register(yard)
    yard.send(("enter", "a", 1_000), ("tick", "z", 5_000))
    query_remove(query=query)
    yard.processor.follow()
    assert [(one["end"], one["cut"]) for one in yard.shown()] == [(5_000, True)]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["enter", "leave", "tick"]), st.sampled_from("ab"), st.integers(0, 3_000)),
        st.sampled_from(["switch", "edit", "restart"]),
    ),
    max_size=14,
)
numbers = iter(range(1, 10_000))


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_stored_answers_are_those_of_the_log_after_any_switches_edits_and_restarts(yard: Yard, tmp_path: Path, steps: list[Any]) -> None:
    world = Yard(tmp_path, next(numbers))
    query, t, edits = register(world), 1_000, 0
    for step in steps:
        if step == "switch":
            query = switch(world, query, enabled=not query.enabled)
        elif step == "edit":
            edits += 1
            query = query_edit(query=query, user=a_user(), specification={**INSIDE, "program": RULES + "% edit\n" * edits})
            world.processor.follow()
        elif step == "restart":
            world.processor = FeedProcessor(world.feed.engine_feed(), world.log, FeedStore(world.feed, 1), world.processor.snapshots)
            world.processor.follow()
        else:
            event, entity, later = step
            t += later
            world.send((event, entity, t))
    assert feed_audit(feed=world.feed).faults == []
    open_ones = [one for one in world.shown() if one["end"] is None]
    assert query.enabled or not open_ones
    keys = [(one["kind"], tuple(one["entities"]), one["start"]) for one in world.shown()]
    assert len(keys) == len(set(keys))


def test_a_query_that_joins_is_not_taken_for_a_row(yard: Yard) -> None:
    yard.send(("enter", "ann", 1_000))
    last_row = FeedHead.objects.get().updated_at
    assert last_row is not None
    register(yard)
    head = FeedHead.objects.get()
    assert head.queries and head.updated_at == last_row
    yard.send(("leave", "ann", 2_000))
    head = FeedHead.objects.get()
    assert head.updated_at is not None and head.updated_at > last_row
