"""Answers and alerts have one form each: in the responses of the API, whose schema every test of
it checks, and in frames."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.webapp.answers import a_head, crossing, facts
from webapp.detections.models import Outbox
from webapp.supervisor import sink

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
LISTED_ONLY = {"feed", "acknowledged_at", "resolved_by", "resolved_at", "comments", "editable"}
"""The fields of an alert that frames leave out."""


@pytest.fixture
def published(feed: Any, query: Any) -> dict[str, Any]:
    """The content of a frame about one crossing and its alert."""
    a_head(feed)
    sink.commit(sink.FencedWrite(feed.pk, 1, 1, 0, facts([crossing(query, "a", 2000)])), timeout_s=5)
    (row,) = Outbox.objects.filter(feed=feed)
    return row.payload


def test_an_answer_has_one_form(published: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    (read,) = client_of(people.viewer).get("/api/v1/detections/?feed=yard").json()["results"]
    assert published["detections"] == [read]


def test_an_alert_has_one_form(published: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    (read,) = client_of(people.viewer).get("/api/v1/alerts/").json()["results"]
    assert published["alerts"] == [{name: value for name, value in read.items() if name not in LISTED_ONLY}]
