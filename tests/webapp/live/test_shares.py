"""Links to a live view: read-only, of one feed, until they expire or are revoked, and
no access to anything else."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.links import opened, page_of
from tests.webapp.live.pages import page, publish, run, store
from webapp.accounts.services import token_create
from webapp.accounts.teams import member_remove
from webapp.feeds.models import Connector
from webapp.live.models import SharedView
from webapp.live.shares import NewShare, share_create, share_revoke

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_connection_left")]

Clients = Callable[..., APIClient]
SHARES = "/api/v1/feeds/yard/shares/"


def until(**more: float) -> datetime:
    return timezone.now() + timedelta(**more)


def shared(world: SimpleNamespace, **more: Any) -> NewShare:
    return share_create(**{"maker": world.people.operator, "feed": world.feed, "name": "Open day", "expires_at": until(days=1), **more})


def socket_of(new: NewShare, client: Client | None = None) -> dict[str, str]:
    """The socket address of the page behind the link, and the session in which it is opened."""
    browser = client or Client()
    address = page_of(browser, f"/shared/#{new.text}")
    return {"path": f"/ws{address}", "session": browser.cookies[settings.SESSION_COOKIE_NAME].value}


def data_of(client: Client, text: str) -> dict[str, Any]:
    answer = opened(client, f"/shared/#{text}")
    assert answer.status_code == 200
    found = re.search(r'id="page-data" type="application/json">(.*?)</script>', answer.content.decode())
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_link_names_no_query_that_its_maker_cannot_see(world: SimpleNamespace) -> None:
    client, body = Client(), {"name": "a", "expires_at": until(days=1), "queries": [world.query.pk, 10**30, world.query.pk + 1000]}
    client.force_login(world.people.operator)
    answer = client.post("/api/v1/feeds/yard/shares/", body, content_type="application/json")
    assert answer.status_code == 400 and [fault["pointer"] for fault in answer.json()["faults"]] == ["/queries/1", "/queries/2"]


def test_a_shared_link_opens_only_the_page_of_its_feed(world: SimpleNamespace) -> None:
    client = Client()
    text = shared(world).text
    for answer in (client.get("/shared/"), opened(client, f"/shared/#{text}")):
        # Without a Referer browsers would send `Origin: null` with the form, which is refused.
        assert answer.headers["Referrer-Policy"] == "same-origin" and answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"] == "noindex" and answer.status_code == 200
    assert text not in answer.content.decode() and text.partition(":")[0] not in str(dict(client.session))
    assert Client().get(answer.request["PATH_INFO"]).status_code == 404, "its number opens it for nobody else"
    data = data_of(client, text)
    assert data["feed"]["name"] == "yard" and [row["name"] for row in data["queries"]] == ["In and out"]
    assert [row["name"] for row in data["regions"]] == ["square"]
    assert "owner" not in json.dumps(data), "names of people stay inside"
    for elsewhere in ("/", "/feeds/", "/account/", "/feeds/yard/plan", "/admin/"):
        assert client.get(elsewhere).status_code == 302, elsewhere
    for api in ("feeds/", "queries/", "detections/?feed=yard", "feeds/yard/positions", "alerts/", "me"):
        assert client.get(f"/api/v1/{api}").status_code == 401, api


@pytest.mark.parametrize("change", ["expired", "revoked", "maker switched off", "maker left the team", "made up", "cut"])
def test_an_invalid_link_is_refused(change: str, world: SimpleNamespace) -> None:
    new = shared(world)
    text = new.text
    inside = Client()
    address = page_of(inside, f"/shared/#{text}")
    match change:
        case "expired":
            SharedView.objects.update(expires_at=until(seconds=-1))
        case "revoked":
            share_revoke(share=new.share)
        case "maker switched off":
            world.people.operator.is_active = False
            world.people.operator.save()
        case "maker left the team":
            member_remove(member=world.people.operator.memberships.get(), new_owner=None)
        case "made up":
            text = "x" + text
        case "cut":
            text = text.rpartition(":")[0]
    refused = opened(Client(), f"/shared/#{text}")
    assert refused.status_code == 404 and "This link has expired or was revoked." in refused.content.decode()
    assert "/queries/" not in refused.content.decode(), "pages that take a log-in"
    if change not in ("made up", "cut"):
        assert inside.get(address).status_code == inside.get(f"{address}plan").status_code == 404


def test_the_link_shows_no_more_than_its_maker_sees(world: SimpleNamespace) -> None:
    both = [world.query.pk, world.private.pk]
    assert [row["id"] for row in data_of(Client(), shared(world, queries=both).text)["queries"]] == [world.query.pk]
    assert len(data_of(Client(), shared(world, maker=world.people.owner, queries=both).text)["queries"]) == 2
    assert data_of(Client(), shared(world, queries=[]).text)["queries"] == []


def test_the_secret_is_not_kept(world: SimpleNamespace) -> None:
    assert shared(world).text.partition(":")[0] not in str(list(SharedView.objects.values()))


def test_editors_of_a_feed_create_expiring_links_in_a_session(world: SimpleNamespace, client_of: Clients) -> None:
    body = {"name": "Open day", "expires_at": until(days=7).isoformat()}
    for name, status in (("viewer", 403), ("analyst", 403), ("stranger", 404), ("operator", 201), ("owner", 201), ("root", 201)):
        client = client_of(getattr(world.people, name))
        assert client.post(SHARES, body).status_code == status, name
        assert client.get(SHARES).status_code == (200 if status == 201 else status), name
    assert client_of(None).post(SHARES, body).status_code == 401
    program = APIClient()
    program.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(user=world.people.operator, name='x', scopes=['read', 'write']).text}")
    assert program.post(SHARES, body).status_code == 403
    operator = client_of(world.people.operator)
    for moment in (until(days=31), until(seconds=-1)):
        assert operator.post(SHARES, {"expires_at": moment.isoformat()}).json()["faults"][0]["pointer"] == "/expires_at"
    first = operator.get(SHARES).json()[0]
    assert "link" not in first
    assert client_of(world.people.viewer).delete(f"{SHARES}{first['id']}/").status_code == 403
    assert operator.delete(f"{SHARES}{first['id']}/").status_code == 204 and operator.delete(f"{SHARES}{first['id']}/").status_code == 404


async def test_the_socket_of_a_link_sends_answers_of_its_queries_and_no_alerts(world: SimpleNamespace) -> None:
    new = await run(shared)(world)
    await run(store)(world.feed, world.query, "a", 10)
    await run(store)(world.feed, world.private, "b", 10)
    async with page(None, **await run(socket_of)(new)) as reader:
        await reader.say(type="subscribe")
        snapshot = await reader.hear("snapshot")
        assert [row["query"] for row in snapshot["detections"]] == [world.query.pk] and snapshot["alerts"] == []
        await run(store)(world.feed, world.query, "c", 20)
        await publish(world.feed, snapshot["seq"])
        assert [row["entities"] for row in (await reader.hear("changes"))["detections"]] == [["c"]]
        await reader.say(type="subscribe", feed="another-feed")
        assert (await reader.hear("error"))["code"] == "not-permitted"
        assert await reader.closed() == 4403


async def test_a_link_does_not_name_the_feeds_connectors(world: SimpleNamespace) -> None:
    await run(Connector.objects.create)(feed=world.feed, name="mast", kind="ais-tcp", failing_since=timezone.now())
    new = await run(shared)(world)
    async with page(None, **await run(socket_of)(new)) as reader:
        await reader.say(type="subscribe")
        assert (await reader.hear("status"))["failing_connectors"] == []
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe", feed="yard")
        assert (await reader.hear("status"))["failing_connectors"] == ["mast"]


async def test_the_socket_closes_when_the_link_is_revoked(world: SimpleNamespace, passing_on: None) -> None:
    new = await run(shared)(world)
    async with page(None, **await run(socket_of)(new)) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        began = time.monotonic()
        await run(share_revoke)(share=new.share)
        assert await reader.closed() == 4403 and time.monotonic() - began < 2


async def test_the_socket_closes_when_the_link_expires(world: SimpleNamespace) -> None:
    new = await run(shared)(world, expires_at=until(seconds=3))
    socket = await run(socket_of)(new)
    async with page(None, **socket) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        assert await reader.closed() == 4403 and timezone.now() >= new.share.expires_at
    async with page(None, **socket) as reader:
        assert (await reader.hear("error"))["code"] == "not-permitted"
        assert await reader.closed() == 4403


async def test_the_socket_needs_an_opened_link(world: SimpleNamespace) -> None:
    new = await run(shared)(world)
    other = await run(shared)(world, name="Another")
    theirs = await run(socket_of)(other)
    for path, session in ((f"/ws/shared/{new.share.pk}/", theirs["session"]), (theirs["path"], "")):
        async with page(None, path=path, session=session) as reader:
            assert (await reader.hear("error"))["code"] == "not-permitted"
            assert await reader.closed() == 4403


async def test_the_socket_of_a_link_is_refused_to_other_origins(world: SimpleNamespace) -> None:
    new = await run(shared)(world)
    async with page(None, **await run(socket_of)(new), origin="https://evil.example") as reader:
        assert await asyncio.wait_for(reader.closed(), 5) == 4403
