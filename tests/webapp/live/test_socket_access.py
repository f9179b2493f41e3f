"""Who may open the live socket and keep it: permissions, sessions, origins."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client
from django.utils import timezone

from tests.webapp.entry import server_entry
from tests.webapp.live.pages import HOST, Page, page, run, session_of, store
from tests.webapp.openapi import check_frame
from webapp.accounts.services import token_create, token_revoke
from webapp.live import consumers
from webapp.queries.models import Query
from webapp.queries.services import query_edit

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_connection_left")]


@pytest.fixture(autouse=True)
def application(transactional_db: None) -> Any:
    """The server's application, loaded before there is an event loop."""
    return server_entry()


async def test_anonymous_users_get_no_socket(world: SimpleNamespace) -> None:
    async with page(None) as reader:
        assert await reader.closed() == 4401


async def test_strangers_are_refused_without_details(world: SimpleNamespace) -> None:
    for name in ("yard", "no-such-feed"):
        async with page(world.people.stranger) as reader:
            await reader.say(type="subscribe", feed=name)
            frame = await reader.hear("error")
            assert frame["code"] == "not-permitted" and name not in frame["message"]
            assert await reader.closed() == 4403


async def test_refused_sockets_and_subscriptions_are_in_the_audit_log(world: SimpleNamespace) -> None:
    from webapp.audit.models import Entry

    async with page(None) as reader:
        await reader.closed()
    async with page(world.people.stranger) as reader:
        await reader.say(type="subscribe", feed="yard")
        await reader.closed()
    nobody, stranger = await run(lambda: list(Entry.objects.filter(outcome="refused", request="WEBSOCKET /ws/live/").order_by("id")))()
    assert (nobody.action, nobody.means, nobody.status) == ("socket.open", "nobody", 401)
    assert (stranger.action, stranger.actor_name, stranger.means, stranger.status) == ("feed.subscribe", "stranger", "session", 404)
    assert (stranger.object_type, stranger.object_id) == ("feed", "yard")


async def test_a_former_team_member_is_disconnected_at_the_next_check(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.2)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        await run(world.people.viewer.memberships.all().delete)()
        assert await reader.closed() == 4403


async def test_a_query_that_is_no_longer_shared_leaves_the_page(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.2)
    await run(store)(world.feed, world.query, "a", 10)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        assert len((await reader.hear("snapshot"))["detections"]) == 1
        await run(Query.objects.filter(pk=world.query.pk).update)(team=None)
        await reader.hear("resync")
        await reader.say(type="subscribe")
        assert (await reader.hear("snapshot"))["detections"] == []


async def test_logging_out_ends_the_socket(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.contrib.sessions.models import Session

    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.2)
    async with page(world.people.viewer) as reader:
        await run(Session.objects.all().delete)()
        assert await reader.closed() == 4401


async def test_a_session_that_expires_ends_the_socket_at_once(world: SimpleNamespace) -> None:
    from django.contrib.sessions.models import Session

    session = await run(session_of)(world.people.viewer)
    await run(Session.objects.filter(pk=session).update)(expire_date=timezone.now() + timedelta(seconds=3))
    async with page(None, session=session) as reader:
        assert await reader.closed() == 4401


async def test_logging_out_ends_the_socket_within_a_second(world: SimpleNamespace, passing_on: None) -> None:
    async with page(world.people.viewer) as reader, page(world.people.owner) as other:
        for one in (reader, other):
            await one.say(type="subscribe")
            await one.hear("status")
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = reader.session
        await run(client.post)("/logout/")
        started = time.monotonic()
        assert await reader.closed() == 4401
        assert time.monotonic() - started < 1.5
        await other.silence()
        await other.say(type="subscribe")
        await other.hear("snapshot")


async def test_a_former_team_member_is_disconnected_within_a_second(world: SimpleNamespace, passing_on: None) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        started = time.monotonic()
        await run(world.people.viewer.memberships.all().delete)()
        assert await reader.closed() == 4403
        assert time.monotonic() - started < 1.5


async def test_a_query_that_is_no_longer_shared_leaves_the_page_within_a_second(world: SimpleNamespace, passing_on: None) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        started = time.monotonic()
        await run(query_edit)(query=world.query, user=world.people.owner, team=None)
        await reader.hear("resync")
        assert time.monotonic() - started < 1.5


async def test_a_socket_stays_in_its_groups_although_the_layer_forgets_members(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.2)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        first = await reader.hear("status")
        get_channel_layer().groups.clear()
        await asyncio.sleep(0.5)
        await get_channel_layer().group_send(f"feed.{world.feed.pk}", {**first, "type": "feed.status", "rate": 1.0})
        await reader.hear("status")


async def test_a_new_subscription_after_logging_out_is_refused_at_once(world: SimpleNamespace) -> None:
    from django.contrib.sessions.models import Session

    async with page(world.people.viewer) as reader:
        await run(Session.objects.all().delete)()
        await reader.say(type="subscribe")
        assert await reader.closed() == 4401


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://localhost.evil.example", "http://sub.localhost:8000", "https://127.0.0.2", "file://"]
)
async def test_only_our_own_pages_may_open_a_socket(origin: str | None, world: SimpleNamespace) -> None:
    application = server_entry()
    cookie = await run(session_of)(world.people.viewer)
    headers = [*HOST, (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    await refused(WebsocketCommunicator(application, "/ws/live/", headers=headers), "wrong-origin", 4403)


async def refused(socket: WebsocketCommunicator, code: str, close: int) -> None:
    """The socket only sends one error that states what is needed."""
    assert (await socket.connect(timeout=5))[0]
    frame = json.loads(await socket.receive_from(timeout=5))
    check_frame(frame)
    assert (frame["type"], frame["code"]) == ("error", code)
    assert "Authorization: Bearer" in frame["message"] and "scope read" in frame["message"]
    assert (await socket.receive_output(timeout=5))["code"] == close
    await socket.disconnect()


def handshake(token: str) -> WebsocketCommunicator:
    return WebsocketCommunicator(server_entry(), "/ws/live/", headers=[*HOST, (b"authorization", f"Bearer {token}".encode())])


async def test_a_program_opens_a_socket_with_its_token_and_sees_what_its_user_may(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    token = await run(token_create)(user=world.people.viewer, name="follower", scopes=["read"])
    reader = Page(handshake(token.text))
    assert (await reader.socket.connect(timeout=5))[0]
    await reader.say(type="subscribe")
    assert len((await reader.hear("snapshot"))["detections"]) == 1
    await reader.socket.disconnect()


async def test_a_token_that_is_revoked_ends_its_sockets(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.2)
    token = await run(token_create)(user=world.people.viewer, name="follower", scopes=["read"])
    reader = Page(handshake(token.text))
    await reader.socket.connect(timeout=5)
    await reader.say(type="subscribe")
    await reader.hear("status")
    await run(token_revoke)(token=token.token)
    assert await reader.closed() == 4401


@pytest.mark.parametrize("scopes", [None, ["ingest"], ["write"]])
async def test_tokens_without_the_read_scope_are_refused_with_the_scope_needed(scopes: list[str] | None, world: SimpleNamespace) -> None:
    text = "vdt_unknown"
    if scopes is not None:
        text = (await run(token_create)(user=world.people.viewer, name="other", scopes=scopes)).text
    await refused(handshake(text), "not-logged-in", 4401)
