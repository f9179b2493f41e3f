"""Quotas of users and teams on objects and rates; each refusal names the quota."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from webapp.accounts.models import ApiToken, Membership, Scope
from webapp.accounts.services import token_create
from webapp.audit.models import Entry
from webapp.config.settings.quotas import quotas
from webapp.feeds import rates
from webapp.feeds.models import Region
from webapp.feeds.rates import Buckets, Limit

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

CIRCLE = {"center": [0, 0], "radius": 1}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}
SPECIFICATION = {"family": "border", "version": 1, "region": SQUARE}
POINTS = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": n}, "geometry": SQUARE} for n in ("a", "b")]}
MADE: list[tuple[str, str, dict[str, Any]]] = [
    ("queries", "queries/", {"feed": "yard", "name": "one more", "specification": SPECIFICATION}),
    ("queries", "queries/bulk", {"feed": "yard", "template": {"family": "border", "version": 1}, "geojson": POINTS}),
    ("vertices", "regions/", {"feed": "yard", "name": "one more", "geometry": SQUARE}),
    ("feeds", "feeds/", {"name": "another", "title": "Another", "crs": "planar", "time": "ms"}),
    ("channels", "channels/", {"name": "desk", "url": "https://hooks.example.org/x"}),
    ("rules", "routing-rules/", {"name": "all", "people": ["owner"]}),
]


@pytest.fixture
def client(people: SimpleNamespace, query: Any, client_of: Callable[..., APIClient]) -> APIClient:
    """The owner's client, an operator of the harbour team, with one feed, one region of
    five vertices and one query."""
    Membership.objects.create(user=people.owner, team=people.harbour, role="operator")
    return client_of(people.owner)


@pytest.mark.parametrize("whose", ["USER_QUOTAS", "TEAM_QUOTAS"])
@pytest.mark.parametrize(("quota", "path", "body"), MADE, ids=[path for _, path, _ in MADE])
def test_exceeding_a_quota_is_refused_with_the_quota(
    quota: str, path: str, body: dict[str, Any], whose: str, client: APIClient, people: SimpleNamespace, settings: Any
) -> None:
    held = {"queries": 1, "vertices": 5, "feeds": 1}.get(quota, 0)
    setattr(settings, whose, {**getattr(settings, whose), quota: held})
    body = {**body, "team": people.harbour.pk} if whose == "TEAM_QUOTAS" else body
    answer = client.post(f"/api/v1/{path}", body)
    message = answer.json()["faults"][0]["message"]
    assert answer.status_code == 403, answer.content
    assert f"{held:,}" in message and ("Your quota" if whose == "USER_QUOTAS" else "The quota of") in message
    setattr(settings, whose, {**getattr(settings, whose), quota: held + 10})
    assert client.post(f"/api/v1/{path}", body).status_code == 201


def test_the_quota_counts_vertices_of_the_stored_geometry(client: APIClient, settings: Any) -> None:
    region = Region.objects.get()
    assert region.vertices == 5
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "vertices": 5}
    larger = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [12, 5], [10, 10], [0, 10], [0, 0]]]}
    assert client.patch(f"/api/v1/regions/{region.pk}/", {"geometry": larger}).status_code == 403
    assert client.patch(f"/api/v1/regions/{region.pk}/", {"geometry": CIRCLE}).status_code == 200
    region.refresh_from_db()
    assert region.vertices == 1


def test_objects_moved_to_a_team_count_towards_its_quota(client: APIClient, people: SimpleNamespace, query: Any, settings: Any) -> None:
    type(query).objects.update(team=None)
    settings.TEAM_QUOTAS = {**settings.TEAM_QUOTAS, "queries": 0}
    assert client.patch(f"/api/v1/queries/{query.pk}/", {"team": people.harbour.pk}).status_code == 403


def test_tokens_have_a_quota_too(client: APIClient, settings: Any) -> None:
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "tokens": 1}
    assert client.post("/api/v1/tokens/", {"name": "a", "scopes": ["read"]}).status_code == 201
    answer = client.post("/api/v1/tokens/", {"name": "b", "scopes": ["read"]})
    assert answer.status_code == 403 and "Your quota of tokens is 1" in answer.content.decode()


@pytest.mark.parametrize(("path", "quota"), [("channels", "channels"), ("routing-rules", "rules")])
def test_channels_and_rules_given_to_a_team_count_towards_its_quota(
    path: str, quota: str, client: APIClient, people: SimpleNamespace, settings: Any
) -> None:
    body = {"channels": {"name": "desk", "url": "https://hooks.example.org/x"}, "routing-rules": {"name": "all", "people": ["owner"]}}[path]
    made = client.post(f"/api/v1/{path}/", body, format="json").json()
    settings.TEAM_QUOTAS = {**settings.TEAM_QUOTAS, quota: 0}
    answer = client.patch(f"/api/v1/{path}/{made['id']}/", {"team": people.harbour.pk}, format="json")
    assert answer.status_code == 403 and "is 0" in answer.json()["faults"][0]["message"], answer.content


def test_tests_of_channels_count_as_messages(client: APIClient, people: SimpleNamespace, settings: Any) -> None:
    from webapp.alerts.models import Delivery

    made = client.post("/api/v1/channels/", {"name": "desk", "url": "https://hooks.example.org/x"}).json()
    Delivery.objects.create(channel_id=made["id"], test=True, body="{}")
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "messages": 1}
    answer = client.post(f"/api/v1/channels/{made['id']}/test")
    assert answer.status_code == 403 and "Your quota of messages to channels an hour is 1" in answer.json()["faults"][0]["message"]
    assert Delivery.objects.count() == 1


def test_an_unknown_quota_is_refused_when_the_program_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEDETTE_USER_QUOTAS", "queries=5, rows=7")
    assert quotas("VEDETTE_USER_QUOTAS", queries=1, rows=2, feeds=3) == {"queries": 5, "rows": 7, "feeds": 3}
    with pytest.raises(ValueError, match="feeds"):
        quotas("VEDETTE_USER_QUOTAS", feeds=3)


# -- set for one user or team --------------------------------------------------------------------


def test_quotas_set_by_an_administrator_are_enforced(client: APIClient, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    root, path = client_of(people.root), f"/api/v1/people/{people.owner.pk}/quotas"
    before = {row["name"]: row for row in client.get("/api/v1/me/quotas").json()}
    assert {name: row["used"] for name, row in before.items()} == {
        **dict.fromkeys(("tokens", "uploads", "channels", "rules", "messages"), 0),
        "queries": 1,
        "vertices": 5,
        "feeds": 1,
        "rows": None,
    }
    assert all(row["limit"] == row["default"] for row in before.values())
    assert root.patch(path, {"limits": {"feeds": 1, "tokens": 0}}).status_code == 200
    refused = client.post("/api/v1/tokens/", {"name": "a", "scopes": ["read"]})
    assert refused.status_code == 403 and "Your quota of tokens is 0" in refused.content.decode()
    after = {row["name"]: row for row in client.get("/api/v1/me/quotas").json()}
    assert (after["feeds"]["limit"], after["tokens"]["limit"], after["queries"]) == (1, 0, before["queries"])
    assert root.patch(path, {"limits": {"tokens": None}}).json() == root.get(path).json()
    assert client.post("/api/v1/tokens/", {"name": "a", "scopes": ["read"]}).status_code == 201
    entry = Entry.objects.filter(action="user.quotas").latest("pk")
    assert (entry.object_name, entry.detail) == ("owner", {"quotas": {"tokens": [0, None]}})


def test_a_teams_quotas_are_seen_by_its_members_and_set_by_administrators_alone(
    client: APIClient, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    path = f"/api/v1/teams/{people.harbour.pk}/quotas"
    assert {row["name"]: row["used"] for row in client_of(people.viewer).get(path).json()}["queries"] == 1
    assert client_of(people.stranger).get(path).status_code == 404
    for user in (people.viewer, people.admin):
        assert client_of(user).patch(path, {"limits": {"queries": 10**6}}).status_code == 403
    assert client_of(people.stranger).patch(path, {"limits": {"queries": 1}}).status_code == 404
    assert client_of(people.root).patch(path, {"limits": {"queries": 1}}).status_code == 200
    refused = client.post("/api/v1/queries/", {"feed": "yard", "name": "one more", "specification": SPECIFICATION, "team": people.harbour.pk})
    assert refused.status_code == 403 and "The quota of queries of the team harbour is 1" in refused.content.decode()
    for path in ("/api/v1/people/1/quotas", f"/api/v1/people/{people.owner.pk}/quotas"):
        assert client.get(path).status_code == 403


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({"feed": 3}, "did you mean 'feeds'?"), ({"feeds": -1}, "0"), ({"feeds": "many"}, "integer"), ({"jobs": 1}, "quota 'jobs'")],
)
def test_an_invalid_quota_is_refused_with_a_pointer(
    limits: dict[str, Any], expected: str, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    answer = client_of(people.root).patch(f"/api/v1/people/{people.owner.pk}/quotas", {"limits": limits})
    (fault,) = answer.json()["faults"]
    assert answer.status_code == 400 and expected in fault["message"] and fault["pointer"] == f"/limits/{next(iter(limits))}"


# -- rows a second ---------------------------------------------------------------------------------


def send(token: ApiToken | Any, rows: int) -> Any:
    lines = "".join(f"position,a,{n},1,1\n" for n in range(rows))
    return APIClient().generic(
        "POST", "/api/v1/feeds/yard/events", f"event,entity,t,x,y\n{lines}", "text/csv", HTTP_AUTHORIZATION=f"Bearer {token.text}"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"USER_QUOTAS": {"rows": 10}}, "Your quota of 10 rows a second"),
        ({"TEAM_QUOTAS": {"rows": 10}}, "The quota of 10 rows a second of the feed's team"),
        ({"INGEST_RATE": "6/min"}, "Your quota of 6/min requests with rows"),
        ({"INGEST_RATE": "6/minute"}, "Your quota of 6/minute requests with rows"),
    ],
)
def test_a_user_who_sends_too_fast_gets_retry_after(
    given: dict[str, Any], expected: str, people: SimpleNamespace, feed: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("webapp.feeds.ingest_views.BUCKETS", Buckets(lambda: clock[0]))
    for name, value in given.items():
        setattr(settings, name, {**getattr(settings, name), **value} if isinstance(value, dict) else value)
    token = token_create(user=people.owner, name="gateway", scopes=[Scope.INGEST])
    assert send(token, 200).status_code == 202, "ten seconds' worth may come at once, and one request may be larger"
    refused = send(token, 1)
    assert (refused.status_code, expected in refused.content.decode()) == (429, True)
    clock[0] += int(refused["Retry-After"]) + 0.001
    assert send(token, 1).status_code == 202


def test_a_token_bucket_refills_up_to_its_size() -> None:
    clock = [0.0]
    buckets, limit = Buckets(lambda: clock[0]), Limit(("user", 1), "x", 10.0, of_rows=True)
    buckets.take(limit, 150)
    assert buckets.wait(limit) == 5.0
    clock[0] = 6.0
    assert buckets.wait(limit) == 0.0
    clock[0] = 1000.0
    buckets.take(limit, int(10 * rates.BURST_S) + 10)
    assert buckets.wait(limit) == 1.0
    assert buckets.wait(Limit(("user", 2), "x", 10.0, of_rows=True)) == 0.0


# -- tokens ----------------------------------------------------------------------------------------


def test_a_token_for_one_feed_works_only_there(people: SimpleNamespace, feed: Any, client: APIClient) -> None:
    other = client.post("/api/v1/feeds/", {"name": "other", "title": "Other", "crs": "planar", "time": "ms"})
    assert other.status_code == 201
    made = client.post("/api/v1/tokens/", {"name": "gateway", "scopes": ["ingest"], "feed": "other"})
    assert made.status_code == 201 and made.json()["feed"] == "other"
    token = SimpleNamespace(text=made.json()["token"])
    refused = send(token, 1)
    assert refused.status_code == 403 and "another feed" in refused.content.decode()
    assert client.post("/api/v1/tokens/", {"name": "x", "scopes": ["ingest", "read"], "feed": "other"}).status_code == 400
    reading = APIClient().get("/api/v1/feeds/other/", HTTP_AUTHORIZATION=f"Bearer {token.text}")
    assert reading.status_code == 403


def test_tokens_have_a_maximum_lifetime(people: SimpleNamespace, feed: Any, client: APIClient, settings: Any) -> None:
    answer = client.post("/api/v1/tokens/", {"name": "x", "scopes": ["read"], "expires_at": "3026-01-01T00:00:00Z"})
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/expires_at"
    made = client.post("/api/v1/tokens/", {"name": "x", "scopes": ["ingest"]}).json()
    assert made["expires_at"] is not None
    token = SimpleNamespace(text=made["token"])
    ApiToken.objects.update(expires_at=None)
    assert send(token, 1).status_code == 202
    ApiToken.objects.update(created_at="2020-01-01T00:00:00Z")
    assert send(token, 1).status_code == 401, "one that was made when there was no greatest age"


def test_a_changed_password_ends_all_tokens_however_it_was_changed(people: SimpleNamespace, feed: Any, client: APIClient) -> None:
    def made() -> Any:
        return token_create(user=people.owner, name="x", scopes=[Scope.INGEST])

    others = token_create(user=people.operator, name="x", scopes=[Scope.INGEST])
    token = made()
    assert client.post("/api/v1/me/password", {"old": "owner has a password", "new": "another long phrase"}).status_code == 204
    assert send(token, 1).status_code == 401
    token = made()
    people.owner.refresh_from_db()
    people.owner.set_password("and a third phrase")
    people.owner.save()
    assert send(token, 1).status_code == 401
    token = made()
    people.owner.save()
    assert send(token, 1).status_code == 202 and send(others, 1).status_code == 202
