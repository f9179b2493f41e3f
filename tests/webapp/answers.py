"""Answers, feeds and queries for tests of code that stores and pushes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from engine.model.changes import ANSWERS
from engine.sinks.facts import Fact, facts_of
from webapp.accounts.models import User
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead
from webapp.queries.models import Query


def a_user(name: str = "ada") -> User:
    return User.objects.get_or_create(username=name)[0]


def a_feed(name: str = "city", **fields: Any) -> Feed:
    return Feed.objects.create(name=name, title=name, owner=a_user(), **{"crs": "planar", "time": "ms", **fields})


def a_query(feed: Feed, name: str = "garage", **fields: Any) -> Query:
    return Query.objects.create(feed=feed, name=name, owner=a_user(), **{"family": "border", "specification": {}, **fields})


def a_head(feed: Feed, epoch: int = 1) -> FeedHead:
    """The feed's head, taken by the job's start `epoch`."""
    head = feed_head_ensure(feed)
    head.epoch = epoch
    head.save()
    return head


def crossing(query: Query, entity: str, t: int, *, kind: str = "in", seq: int = 0) -> dict[str, Any]:
    """An answer made of two events."""
    evidence = [{"variable": None, "entity": entity, "t": t - 1 + i, "x": 0.5, "y": float(i), "seq": seq + i} for i in range(2)]
    return {"query": str(query.pk), "version": 1, "kind": kind, "entities": [entity], "start": t, "end": t, "evidence": evidence, "weight": 1}


def interval(query: Query, entity: str, start: int, end: int | None, weight: int = 1) -> dict[str, Any]:
    """An answer of interval algebra."""
    return {"query": str(query.pk), "version": 1, "kind": "near", "entities": [entity], "value": "true", "start": start, "end": end, "weight": weight}


def match(query: Query, entity: str, start: int, end: int | None, weight: int = 1) -> dict[str, Any]:
    """A match of a motion pattern with its witness."""
    evidence = [{"variable": "1", "entity": entity, "t": start, "x": 0.0, "y": 0.0, "seq": 3}]
    return {**interval(query, entity, start, end, weight), "kind": "match", "value": None, "evidence": evidence}


def facts(rows: Iterable[dict[str, Any]]) -> list[Fact]:
    """The facts of the answers, as a batch stores them."""
    return facts_of(pa.Table.from_pylist(list(rows), schema=ANSWERS))
