"""A query that the job stops: recorded with the batch, shown to its owner, and started
again by the next version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from engine.runtime.store import Commit, StoppedQuery
from tests.webapp.conftest import BORDER
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed
from webapp.jobs.models import JobEvent
from webapp.queries.models import Query, QueryStop
from webapp.queries.services import query_edit, query_register, query_remove
from webapp.supervisor.sink import Fenced
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

REASON = "it would keep 200,001 events at t = 7; at most 200,000 are kept"


@pytest.fixture
def other(people: SimpleNamespace, feed: Feed) -> Query:
    return query_register(owner=people.owner, feed=feed, name="other", specification=BORDER)


@pytest.fixture
def store(feed: Feed, query: Query, other: Query) -> FeedStore:
    feed_head_ensure(feed)
    return FeedStore(feed, 1)


def running(store: FeedStore) -> set[tuple[str, int]]:
    return {query.key for query in store.queries(store.version())}


def stop(store: FeedStore, query: Query, batch: int = 0) -> bool:
    head = replace(store.open(), checkpoint=1, last_batch=batch)
    return store.commit(Commit(head, batch, stopped=(StoppedQuery((str(query.pk), query.version), REASON),)))


def test_a_stopped_query_leaves_with_its_batch_and_shows_the_reason(
    store: FeedStore, query: Query, other: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    assert running(store) == {(str(query.pk), 1), (str(other.pk), 1)}
    assert stop(store, query)
    assert running(store) == {(str(other.pk), 1)}
    shown = {row["id"]: row["stopped"] for row in client_of(people.owner).get("/api/v1/queries/").json()["results"]}
    assert shown[query.pk]["reason"] == REASON
    assert shown[other.pk] is None
    assert REASON in JobEvent.objects.get(kind="query").text


def test_replayed_batches_and_old_epochs_stop_no_query(store: FeedStore, query: Query, other: Query) -> None:
    assert stop(store, query)
    assert not stop(store, other)
    newer = FeedStore(store.feed, 2)
    newer.open()
    with pytest.raises(Fenced):
        store.commit(Commit(newer.open(), None, stopped=(StoppedQuery((str(other.pk), 1), REASON),)))
    assert QueryStop.objects.count() == 1


@pytest.mark.parametrize("how", ["edited", "switched off and on"])
def test_the_next_version_of_a_stopped_query_starts(store: FeedStore, query: Query, other: Query, people: SimpleNamespace, how: str) -> None:
    stop(store, query)
    if how == "edited":
        specification: dict[str, Any] = {**BORDER, "region": {"center": [0, 0], "radius": 3}}
        edited = query_edit(query=query, user=people.owner, specification=specification)
    else:
        off = query_edit(query=query, user=people.owner, enabled=False)
        assert off.stopped is None
        edited = query_edit(query=off, user=people.owner, enabled=True)
    assert edited.stopped is None
    assert running(store) == {(str(query.pk), edited.version), (str(other.pk), 1)}


def test_other_edits_leave_a_query_stopped(store: FeedStore, query: Query, people: SimpleNamespace) -> None:
    stop(store, query)
    edited = query_edit(query=query, user=people.owner, name="renamed")
    assert edited.stopped is not None
    assert (str(query.pk), 1) not in running(store)


def test_stopping_a_removed_query_has_no_effect(store: FeedStore, query: Query) -> None:
    query_remove(query=query)
    assert stop(store, query)
