"""The answers of removed queries stay accessible."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.webapp.answers import a_head, facts, match
from webapp.queries.services import query_remove
from webapp.supervisor import sink

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
REMOVED = "/api/v1/detections/removed-queries"


def test_a_removed_query_is_listed_with_its_answers(feed: Any, query: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    a_head(feed)
    rows = [match(query, name, 2000, 3000) for name in "ab"]
    sink.commit(sink.FencedWrite(feed_id=feed.pk, epoch=1, checkpoint=1, batch=0, facts=facts(rows)), timeout_s=5)
    assert client.get(REMOVED).json() == {"results": []}
    query_remove(query=query, user=people.owner)
    (listed,) = client.get(REMOVED).json()["results"]
    assert (listed["id"], listed["name"], listed["feed"], listed["answers"]) == (query.pk, query.name, "yard", 2)
    lines = b"".join(client.get(f"/api/v1/detections/export?feed=yard&query={query.pk}").streaming_content).decode().splitlines()
    assert len(lines) == 1 + listed["answers"]
    assert client_of(people.stranger).get(REMOVED).json() == {"results": []}
