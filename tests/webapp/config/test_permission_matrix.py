"""Who reaches what: every address of an object x method x user x sharing, compared with a second
implementation of the rule here.

`test_matrix.py` keeps the list of addresses complete; this file takes it from there, so
no address can be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.db import transaction
from django.urls import reverse
from rest_framework.test import APIClient

from tests.examples import PROFILE
from tests.webapp.config.test_matrix import LISTS, OWNED, OWNED_PAGES, PAGES, PERSONAL, address_of, ask
from webapp.accounts.models import Role
from webapp.alerts.models import Channel, Mute, RoutingRule, SavedView, Shift
from webapp.detections.models import Detection
from webapp.detections.partitions import partitions_ensure
from webapp.feeds.models import Feed, Region, Upload
from webapp.live.selectors import permission
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]

MEMBERS = [str(role) for role in Role]
ACTORS = ["owner", *MEMBERS, "stranger", "root"]
SHARINGS = ["private", "team", "foreign", "public"]
"""Sharings: only its owner; the harbour team, whose members are MEMBERS; the stranger's
team; no team, but public."""
ROLES = {"private": [Role.ADMIN], "foreign": [Role.ADMIN], "public": [Role.VIEWER, Role.ADMIN]}
"""Members that `make test` takes: a role has all rights of those below it, and members of another
team have none. The nightly run takes all."""
NEEDED = {
    "feed": Role.OPERATOR,
    "connector": Role.OPERATOR,
    "upload": Role.OPERATOR,
    "channel": Role.OPERATOR,
    "region": Role.ANALYST,
    "query": Role.ANALYST,
    "alert": Role.ANALYST,
    "view": Role.VIEWER,
    "mute": Role.ANALYST,
    "rule": Role.OPERATOR,
    "shift": Role.OPERATOR,
}
"""The least role that changes an object of its team."""
FOR_EDITORS = {"api-channel-deliveries"}
"""Reading these needs the right to change."""


def actors(sharing: str) -> list[str]:
    members = [str(role) for role in ROLES.get(sharing, Role)] if PROFILE == "fast" else MEMBERS
    return ["owner", *members, "stranger", "root"]


def sees(actor: str, sharing: str) -> bool:
    return (
        actor in ("owner", "root")
        or sharing == "public"
        or (sharing == "team" and actor in MEMBERS)
        or (sharing == "foreign" and actor == "stranger")
    )


def edits(actor: str, sharing: str, kind: str) -> bool:
    if actor in ("owner", "root"):
        return True
    # The stranger is the admin of their own team.
    in_team = (sharing == "team" and actor in MEMBERS) or (sharing == "foreign" and actor == "stranger")
    role = Role.ADMIN if actor == "stranger" else Role(actor)
    return in_team and role in NEEDED[kind].and_above


def kind_of(name: str) -> str:
    kinds = ("connector", "upload", "region", "query", "channel", "alert", "view", "mute", "rule", "shift")
    return next((kind for kind in kinds if kind in name.split("-")), "feed")


@dataclass
class World:
    people: SimpleNamespace
    things: dict[str, Any]
    client_of: Callable[..., APIClient]

    def __post_init__(self) -> None:
        # Logged in once each, as that takes longer than most requests.
        self.clients = {actor: self.client_of(getattr(self.people, actor)) for actor in ACTORS}

    def share(self, sharing: str) -> None:
        """The feed and everything in it have this sharing."""
        team = {"team": self.people.harbour, "foreign": self.people.elsewhere}.get(sharing)
        for model in (Feed, Region, Query, Channel, SavedView, Mute, Upload, RoutingRule, Shift):
            model.objects.update(owner=self.people.owner, team=team, public=sharing == "public")


@pytest.fixture
def world(people: SimpleNamespace, things: dict[str, Any], client_of: Callable[..., APIClient]) -> World:
    partitions_ensure([0])
    Detection.objects.create(
        feed=things["feed"], key=b"k" * 16, query=things["query"], version=1, kind="in", entities=["a"], start=1, end=1, seq=1, detected_at=1
    )
    return World(people, things, client_of)


def expected(name: str, method: str, actor: str, sharing: str) -> set[int]:
    """The expected status; an empty set: anything but a refusal or a server error."""
    if not sees(actor, sharing):
        return {404}
    if (method != "GET" or name in FOR_EDITORS) and not edits(actor, sharing, kind_of(name)):
        return {403}
    return set()


@pytest.mark.parametrize("kind", sorted({kind_of(name) for name in OWNED}))
def test_exactly_the_permitted_users_reach_an_object(kind: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Test messages need no network here: only the permission to send one is tested.
    monkeypatch.setattr("webapp.alerts.webhooks.send", lambda *args, **options: None, raising=False)
    wrong = []
    asked = [(name, method) for name in sorted(OWNED) if kind_of(name) == kind for method in OWNED[name]]
    for sharing in SHARINGS:
        world.share(sharing)
        for (name, method), actor in product(asked, actors(sharing)):
            with transaction.atomic():
                status = ask(world.clients[actor], method, address_of(name, world.things))
                transaction.set_rollback(True)
            wanted = expected(name, method, actor, sharing)
            is_right = status in wanted if wanted else status not in (401, 403, 404, 405) and status < 500
            if not is_right:
                wrong.append((name, sharing, method, actor, status, wanted or "reached"))
    assert wrong == []


def test_exactly_the_permitted_users_reach_the_page_of_an_object(world: World, client_of: Callable[..., APIClient]) -> None:
    for sharing, name in product(SHARINGS, sorted(OWNED_PAGES)):
        world.share(sharing)
        assert ask(client_of(None), "GET", address_of(name, world.things)) in (302, 404), (name, sharing, "nobody")
        for actor in ACTORS:
            status = ask(world.clients[actor], "GET", address_of(name, world.things))
            # The plan has no image, for any user.
            wanted = {404} if name == "feed-plan" or not sees(actor, sharing) else {200}
            assert status in wanted, (name, sharing, actor)


def test_sockets_and_api_show_the_same_of_a_feed(world: World) -> None:
    for sharing in SHARINGS:
        world.share(sharing)
        for actor in ACTORS:
            found = permission(user_id=getattr(world.people, actor).pk, feed=world.things["feed"].name)
            assert (found is not None) == sees(actor, sharing), (sharing, actor)
            assert found is None or found.queries == {world.things["query"].pk}, (sharing, actor)


@pytest.mark.parametrize("kind", ["feed", "region", "query"])
def test_lists_contain_what_is_shared_with_the_reader(kind: str, world: World) -> None:
    address = reverse({"feed": "api-feeds", "region": "api-regions", "query": "api-queries"}[kind])
    for sharing in SHARINGS:
        world.share(sharing)
        for actor in ACTORS:
            shown = world.clients[actor].get(address).json()["results"]
            assert bool(shown) == sees(actor, sharing), (sharing, actor)
            assert all(row["editable"] == edits(actor, sharing, kind) for row in shown), (sharing, actor)


def test_pages_are_for_everyone_who_is_logged_in_and_two_for_admins(world: World, client_of: Callable[..., APIClient]) -> None:
    for name in sorted(PAGES):
        assert ask(client_of(None), "GET", reverse(name)) == 302, name
        for actor in ACTORS:
            status = ask(world.clients[actor], "GET", reverse(name))
            is_admin = actor in ("admin", "stranger", "root")
            assert status == (200 if name != "audit" or is_admin else 403), (name, actor)


def test_objects_without_an_owner_cause_no_errors(world: World) -> None:
    asked = [(name, method) for name, methods in sorted((LISTS | PERSONAL).items()) for method in methods]
    for (name, method), actor in product(asked, ("viewer", "owner", "root")):
        with transaction.atomic():
            status = ask(world.clients[actor], method, address_of(name, world.things))
            transaction.set_rollback(True)
        assert status < 500 and status not in (401, 405), (name, method, actor)


def test_the_administration_is_for_superusers(world: World, client_of: Callable[..., APIClient]) -> None:
    lists = [reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in admin.site._registry]
    assert len(lists) > 5
    for address in [reverse("admin:index"), *lists]:
        for actor in ["nobody", *ACTORS]:
            status = (client_of(None) if actor == "nobody" else world.clients[actor]).get(address).status_code
            assert status == 200 if actor == "root" else status in (302, 403), (address, actor)
