"""An entity's last report, at any instant of the history."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.feeds.models import Feed

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def ask(feed: Feed, received: Callable[..., None], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> Callable[..., Any]:
    received(feed, [{"entity": "a", "t": t, "x": t, "y": 0, "speed": t / 10, "kind": "ferry"} for t in (1000, 2000, 3000)])
    received(feed, [{"entity": "a", "t": 3000, "x": 7, "y": 7, "kind": "tug"}, {"entity": "b", "t": 4000, "x": 1, "y": 1}])
    received(feed, [{"entity": "a", "t": 2500, "x": 9, "y": 9}])
    client = client_of(people.viewer)
    return lambda query: client.get(f"/api/v1/feeds/yard/entity?{query}").json()


def test_the_newest_row_is_given_with_its_attributes_and_the_one_before(ask: Callable[..., Any]) -> None:
    found = ask("id=a")
    assert found["last"] == {"event": "position", "entity": "a", "t": 3000, "x": 7.0, "y": 7.0, "speed": None, "kind": "tug"}
    assert found["before"]["t"] == 2000, "what came too late does not count"


def test_an_entity_in_the_past_is_shown_as_it_was_known_then(ask: Callable[..., Any]) -> None:
    assert [ask("id=a&t=2999")[name]["t"] for name in ("last", "before")] == [2000, 1000]
    assert ask("id=a&t=1000")["before"] is None
    assert ask("id=a&t=999") == ask("id=nobody") == {"last": None, "before": None}
