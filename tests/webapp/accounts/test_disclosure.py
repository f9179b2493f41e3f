"""Private objects of others are neither revealed nor in the way: private queries on a public feed,
private channels, feeds of an old name."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.accounts.models import Role
from webapp.alerts.deliveries import channel_create, channel_update
from webapp.alerts.models import Alert, Notification
from webapp.feeds import recent
from webapp.feeds.models import Feed, Region
from webapp.feeds.services import feed_create
from webapp.live import positions
from webapp.queries.models import Query
from webapp.queries.services import query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db]
SECRET = "What the stranger looks for"


@pytest.fixture
def of_a_stranger(people: SimpleNamespace, feed: Feed, region: Region) -> Query:
    """A stranger's private query on the feed, which is public, and naming its region."""
    Feed.objects.update(public=True)
    Region.objects.update(public=True)
    specification = {"family": "border", "version": 1, "region": {"region": "square"}}
    return query_register(owner=people.stranger, feed=feed, name=SECRET, specification=specification)


def test_another_users_query_does_not_prevent_the_removal_of_a_feed(
    of_a_stranger: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    answer = client_of(people.owner).delete("/api/v1/feeds/yard/")
    assert answer.status_code == 204, answer.content
    assert not Feed.objects.exists() and not Query.objects.exists()


def test_own_queries_prevent_the_removal_of_a_feed_and_only_they_are_named(
    of_a_stranger: Query, query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    answer = client_of(people.owner).delete("/api/v1/feeds/yard/")
    assert answer.status_code == 409
    assert query.name in answer.content.decode() and SECRET not in answer.content.decode()


@pytest.mark.parametrize("bulk", [False, True])
def test_another_users_query_keeps_the_shape_of_a_removed_region(
    bulk: bool, of_a_stranger: Query, region: Region, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.owner)
    if bulk:
        answer = client.post("/api/v1/regions/bulk", {"ids": [region.pk], "action": "delete"})
        assert answer.json()["changed"] == [region.pk] and SECRET not in answer.content.decode()
    else:
        assert client.delete(f"/api/v1/regions/{region.pk}/").status_code == 204
    of_a_stranger.refresh_from_db()
    assert of_a_stranger.specification["region"] == region.geometry and of_a_stranger.version == 1
    assert client_of(people.stranger).patch(f"/api/v1/queries/{of_a_stranger.pk}/", {"enabled": False}).status_code == 200


def test_deliveries_of_an_alert_name_only_the_readers_channels(
    query: Query, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    alert = Alert.objects.create(query=query, feed=feed, detection_key=b"k" * 16, kind="in", entities=["a"], start=1, severity="low")
    private = channel_create(owner=people.owner, name=SECRET, url="https://hooks.example.org/x")
    shared = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/y", team=people.harbour)
    Notification.objects.bulk_create(Notification(alert=alert, channel=channel) for channel in (private, shared))
    listed = client_of(people.viewer).get(f"/api/v1/alerts/{alert.pk}/").json()["deliveries"]
    assert [one["channel"] for one in listed] == ["desk"]
    assert len(client_of(people.owner).get(f"/api/v1/alerts/{alert.pk}/").json()["deliveries"]) == 2


def test_a_channel_shows_only_queries_visible_to_the_reader_and_keeps_the_others(
    query: Query, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    private = query_register(owner=people.owner, feed=feed, name=SECRET, specification=query.specification)
    channel = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/y", team=people.harbour, queries=[query, private])
    address = f"/api/v1/channels/{channel.pk}/"
    assert client_of(people.operator).get(address).json()["queries"] == [query.pk]
    assert client_of(people.operator).patch(address, {"queries": []}).json()["queries"] == []
    channel.refresh_from_db()
    assert list(channel.queries.all()) == [private] and not channel.all_queries
    assert channel_update(channel=channel, user=people.owner, queries=[]).all_queries


def test_a_feed_created_under_a_former_name_starts_empty(
    feed: Feed,
    people: SimpleNamespace,
    client_of: Callable[..., APIClient],
    received: Callable[[Any, Any], None],
    redis_url: str,
    settings: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    from webapp.live.publisher import PositionTail
    from webapp.live.selectors import places

    settings.REDIS_URL = redis_url
    received(feed, [{"entity": SECRET, "t": 1, "x": 1.0, "y": 1.0}])
    tail = PositionTail(feed)
    tail.due(1e9)
    tail._keep()
    assert positions.latest(feed.pk)["entities"], "kept for pages that are opened"
    with django_capture_on_commit_callbacks(execute=True):
        assert client_of(people.owner).delete("/api/v1/feeds/yard/").status_code == 204
    remade = feed_create(owner=people.stranger, name="yard", title="Another", crs="planar", time="ms")
    assert places(feed_id=remade.pk)["entities"] == []
    client = client_of(people.stranger)
    answers = [
        client.get(f"/api/v1/feeds/yard/{what}").content.decode() for what in ("positions", "entities", f"tracks?entity={SECRET}", "dead-letters")
    ]
    assert SECRET not in json.dumps(answers)
    received(remade, [{"entity": "b", "t": 1, "x": 1.0, "y": 1.0}])
    assert recent.log_of(remade).end[0] == 1


MAKING: list[tuple[str, Role, dict[str, Any]]] = [
    ("feeds/", Role.OPERATOR, {"name": "mine", "title": "Mine", "crs": "planar", "time": "ms"}),
    ("channels/", Role.OPERATOR, {"name": "mine", "url": "https://hooks.example.org/"}),
    ("regions/", Role.ANALYST, {"feed": "yard", "name": "mine", "geometry": {"center": [0, 0], "radius": 1}}),
    ("queries/", Role.ANALYST, {"feed": "yard", "name": "mine", "specification": {"family": "border", "region": {"region": "square"}}}),
    (
        "queries/bulk", Role.ANALYST,
        {"feed": "yard", "template": {"family": "border"}, "geojson": {"type": "Point", "coordinates": [0, 0]}, "dry_run": True},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "least", "body"), MAKING, ids=[path for path, _, _ in MAKING])
def test_a_role_limits_personal_objects_too(
    path: str, least: Role, body: dict[str, Any], region: Region, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    for role in Role:
        answer = client_of(getattr(people, role)).post(f"/api/v1/{path}", body)
        if role not in least.and_above:
            assert (answer.status_code, least.shown in answer.content.decode()) == (403, True), role
        else:
            assert answer.status_code != 403, role
            break
