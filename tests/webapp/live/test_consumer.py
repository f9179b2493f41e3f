"""The live socket through the real application and an in-memory layer: snapshot before + frames = snapshot after."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.db import connections
from django.test import Client

from webapp.alerts.models import Alert
from webapp.alerts.services import alerts_acknowledge
from webapp.detections.models import Detection, Outbox
from webapp.detections.partitions import partitions_ensure, span_of
from webapp.detections.selectors import detection_row
from webapp.detections.services import outbox_append
from webapp.live import access, consumers, subscription
from webapp.live.selectors import chunks_after, snapshot
from webapp.queries.models import Query
from webapp.queries.services import query_edit, query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

run = database_sync_to_async
HOST = [(b"host", b"localhost:8000")]


def session_of(user: Any) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


class Page:
    """A browser's page: its socket and the state it has put together from frames."""

    def __init__(self, socket: WebsocketCommunicator, session: str = "") -> None:
        self.socket, self.session = socket, session
        self.seq: int | None = None
        self.detections: dict[str, Any] = {}
        self.alerts: dict[int, Any] = {}
        self.frames: list[dict[str, Any]] = []

    async def say(self, **frame: Any) -> None:
        await self.socket.send_to(text_data=json.dumps({"feed": "yard", **frame}))

    async def hear(self, kind: str | None = None) -> dict[str, Any]:
        """The next frame (of this kind), taken in."""
        while True:
            frame = json.loads(await self.socket.receive_from(timeout=5))
            self.frames.append(frame)
            self.take(frame)
            if kind in (None, frame["type"]):
                return frame

    async def silence(self) -> None:
        while not await self.socket.receive_nothing(timeout=0.2):
            await self.hear()

    def take(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "snapshot":
            self.detections, self.alerts = {}, {}
            self.seq = frame["seq"]
        elif frame["type"] == "changes":
            assert self.seq is not None and frame["from"] == self.seq + 1, "a gap or a repetition"
            self.seq = frame["seq"]
        for row in frame.get("detections", ()):
            if row["weight"] > 0:
                self.detections[row["id"]] = row
            else:
                self.detections.pop(row["id"], None)
        for row in frame.get("alerts", ()):
            self.alerts[row["id"]] = row

    async def closed(self) -> int:
        while True:
            event = await self.socket.receive_output(timeout=5)
            if event["type"] == "websocket.close":
                return int(event["code"])


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which consumers read closes its connection, so that the test database can be dropped."""
    yield
    await run(connections.close_all)()


@asynccontextmanager
async def page(user: Any, *, origin: str | None = "http://localhost:8000") -> AsyncIterator[Page]:
    from webapp.config.asgi import application

    headers = list(HOST)
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    cookie = ""
    if user is not None:
        cookie = await run(session_of)(user)
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    socket = WebsocketCommunicator(application, "/ws/live/", headers=headers)
    connected, _ = await socket.connect(timeout=5)
    assert connected
    try:
        yield Page(socket, cookie)
    finally:
        await socket.disconnect()


@pytest.fixture
async def passing_on(world: SimpleNamespace) -> AsyncIterator[None]:
    """Passes on to sockets that permissions changed, as the publisher does."""
    listening = psycopg2.connect(**{**connections["default"].get_connection_params(), "cursor_factory": None})
    listening.autocommit = True
    listening.cursor().execute(f"LISTEN {access.CHANNEL}")

    async def pass_on() -> None:
        while True:
            listening.poll()
            if listening.notifies:
                listening.notifies.clear()
                await get_channel_layer().group_send(access.GROUP, {"type": "access.changed"})
            await asyncio.sleep(0.05)

    task = asyncio.create_task(pass_on())
    yield
    task.cancel()
    listening.close()


@pytest.fixture
def world(people: SimpleNamespace, feed: Any, query: Query) -> SimpleNamespace:
    """A feed with two queries: `query` of the team and `private` of its owner alone."""
    private = query_register(owner=people.owner, feed=feed, name="private", specification=query.specification)
    partitions_ensure([span_of(0)])
    return SimpleNamespace(feed=feed, query=query, private=private, people=people)


def store(feed: Any, query: Query, entity: str, start: int, end: int | None = None, weight: int = 1) -> None:
    """Stores an answer and tells it in the outbox, as the sink does."""
    from django.db import transaction

    key = f"{query.pk}-{entity}-{start}".encode().ljust(16, b".")
    with transaction.atomic():
        row, _ = Detection.objects.update_or_create(
            feed=feed, key=key, start=start,
            defaults={"query": query, "version": 1, "kind": "in", "entities": [entity], "end": end, "weight": weight, "seq": 0, "detected_at": 1},
        )  # fmt: skip
        outbox_append(feed_id=feed.pk, detections=[{**detection_row(row), "weight": weight or -1}])


async def publish(feed: Any, after: int) -> int:
    """Sends the outbox after a number to the group, as the publisher does; the last number."""
    chunks = await run(chunks_after)(feed_id=feed.pk, seq=after)
    await get_channel_layer().group_send("feed.yard", {"type": "feed.changes", "feed": "yard", "chunks": chunks})
    return int(chunks[-1]["seq"]) if chunks else after


async def test_snapshot_before_and_frames_are_the_snapshot_after(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        first = await reader.hear("snapshot")
        assert [row["entities"] for row in first["detections"]] == [["a"]] and first["seq"] == 1
        told = 1
        for entity, start, end, weight in [("b", 11, None, 1), ("a", 10, 20, 1), ("c", 12, 12, 1), ("c", 12, 12, 0), ("b", 11, 15, 1)]:
            await run(store)(world.feed, world.query, entity, start, end, weight)
            told = await publish(world.feed, told)
            await reader.hear("changes")
        async with page(world.people.viewer) as fresh:
            await fresh.say(type="subscribe")
            await fresh.hear("snapshot")
        assert reader.detections == fresh.detections and reader.seq == fresh.seq == 6
        assert sorted((row["entities"][0], row["end"]) for row in fresh.detections.values()) == [("a", 20), ("b", 15)]


async def test_numbers_are_covered_even_when_nothing_in_them_is_for_the_reader(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        await run(store)(world.feed, world.private, "secret", 10)
        await publish(world.feed, 0)
        frame = await reader.hear("changes")
        assert (frame["from"], frame["seq"], frame["detections"]) == (1, 1, [])
    async with page(world.people.owner) as owner:
        await owner.say(type="subscribe")
        assert [row["entities"] for row in (await owner.hear("snapshot"))["detections"]] == [["secret"]]


async def test_changes_too_large_for_a_message_make_the_page_start_again(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        monkeypatch.setattr(consumers.frames, "MESSAGE_BYTES", 100)
        await run(store)(world.feed, world.query, "a", 10)
        await publish(world.feed, 0)
        await reader.hear("resync")


async def test_only_the_queries_asked_for_come(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    await run(store)(world.feed, world.private, "b", 10)
    async with page(world.people.owner) as reader:
        await reader.say(type="subscribe", queries=[str(world.private.pk)])
        assert [row["entities"] for row in (await reader.hear("snapshot"))["detections"]] == [["b"]]


async def test_a_query_registered_after_the_subscription_is_shown_to_who_may_see_it(world: SimpleNamespace) -> None:
    people = world.people
    async with page(people.owner) as owner, page(people.viewer) as viewer:
        for reader in (owner, viewer):
            await reader.say(type="subscribe")
            await reader.hear("snapshot")
        late = await run(query_register)(owner=people.owner, feed=world.feed, name="late", specification=world.query.specification)
        await run(store)(world.feed, late, "a", 10)
        await publish(world.feed, 0)
        assert len((await owner.hear("changes"))["detections"]) == 1
        assert (await viewer.hear("changes"))["detections"] == []


async def test_a_lost_message_is_looked_up_and_a_repeated_one_left_out(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        for entity in "abc":
            await run(store)(world.feed, world.query, entity, 10)
        await publish(world.feed, 2)
        frame = await reader.hear("changes")
        assert (frame["from"], frame["seq"]) == (1, 3) and len(reader.detections) == 3
        await publish(world.feed, 1)
        await reader.silence()
        assert reader.seq == 3 and [f["type"] for f in reader.frames].count("changes") == 1


async def test_what_happens_between_joining_and_reading_is_told_once(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher sends while the snapshot is being read: the message waits in the channel and its known part is left out."""
    real = consumers.selectors.snapshot

    def slow(**asked: Any) -> Any:
        store(world.feed, world.query, "before", 10)
        read = real(**asked)
        store(world.feed, world.query, "after", 11)
        return read

    monkeypatch.setattr(consumers.selectors, "snapshot", slow)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        await publish(world.feed, 0)
        frame = await reader.hear("changes")
        assert (frame["from"], frame["seq"]) == (2, 2)
        assert sorted(row["entities"][0] for row in reader.detections.values()) == ["after", "before"]


async def test_a_reader_that_was_away_resumes_after_its_number(world: SimpleNamespace) -> None:
    for entity in "abc":
        await run(store)(world.feed, world.query, entity, 10)
    async with page(world.people.viewer) as reader:
        reader.seq = 1
        await reader.say(type="subscribe", since=1)
        frame = await reader.hear()
        assert frame["type"] == "changes" and (frame["from"], frame["seq"]) == (2, 3)
        assert sorted(row["entities"][0] for row in frame["detections"]) == ["b", "c"]


@pytest.mark.parametrize("since", [-5, 0, 99])
async def test_a_number_that_cannot_be_resumed_gets_a_snapshot(since: int, world: SimpleNamespace) -> None:
    for entity in "abc":
        await run(store)(world.feed, world.query, entity, 10)
    await run(Outbox.objects.filter(seq__lte=2).delete)()
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe", since=since)
        assert (await reader.hear())["type"] == "snapshot"


async def test_a_reader_who_missed_nothing_is_told_so(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    async with page(world.people.viewer) as reader:
        reader.seq = 1
        await reader.say(type="subscribe", since=1)
        frame = await reader.hear()
        assert (frame["type"], frame["from"], frame["seq"], frame["detections"]) == ("changes", 2, 1, [])


async def test_an_acknowledged_alert_reaches_other_pages(world: SimpleNamespace) -> None:
    alert = await run(Alert.objects.create)(
        query=world.query, feed=world.feed, detection_key=b"k" * 16, kind="in", entities=["a"], start=1, severity="low"
    )
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        (shown,) = (await reader.hear("snapshot"))["alerts"]
        assert (shown["state"], shown["query_name"]) == ("new", world.query.name)
        await run(alerts_acknowledge)(alerts=[alert], user=world.people.owner)
        await publish(world.feed, 0)
        await reader.hear("changes")
        assert (reader.alerts[alert.pk]["state"], reader.alerts[alert.pk]["acknowledged_by"]) == ("acknowledged", "owner")


# -- positions and status ---------------------------------------------------------------------------------------------------------


async def test_positions_are_those_of_the_box(world: SimpleNamespace, received: Callable[..., None]) -> None:
    await run(received)(world.feed, [{"entity": name, "t": 1000, "x": x, "y": 0.0} for name, x in (("near", 1.0), ("far", 50.0))])
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe", bbox=[0, -1, 10, 1])
        assert [e[0] for e in (await reader.hear("snapshot"))["positions"]] == ["near"]
        await get_channel_layer().group_send(
            "feed.yard", {"type": "feed.positions", "feed": "yard", "t": 2000, "entities": [["near", 60, 0, 2000], ["x", 5, 0, 2000]]}
        )
        assert (await reader.hear("positions"))["entities"] == [["x", 5, 0, 2000]]
        await reader.say(type="view", bbox=[40, -1, 60, 1])
        assert [e[0] for e in (await reader.hear("positions"))["entities"]] == ["far"]


async def test_the_state_of_the_feed_comes_with_the_subscription_and_later(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        assert (await reader.hear("status"))["job"] in ("stopped", "starting", "running")
        await get_channel_layer().group_send(
            "feed.yard", {"type": "feed.status", "feed": "yard", "watermark": 5, "max_t": 6, "rate": 7.0, "job": "running"}
        )
        frame = await reader.hear("status")
        assert {**frame} == {"type": "status", "feed": "yard", "watermark": 5, "max_t": 6, "rate": 7.0, "job": "running"}


async def test_after_leaving_nothing_comes_any_more(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        await reader.say(type="unsubscribe")
        await asyncio.sleep(0.1)
        await run(store)(world.feed, world.query, "a", 10)
        await publish(world.feed, 0)
        assert await reader.socket.receive_nothing(timeout=0.3)


# -- a slow reader ----------------------------------------------------------------------------------------------------------------


async def test_a_reader_that_acknowledges_nothing_is_told_to_start_again_once(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "UNACKED_FRAMES", 3)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        told = 0
        for entity in "abcdefgh":
            await run(store)(world.feed, world.query, entity, 10)
            told = await publish(world.feed, told)
        await reader.silence()
        kinds = [frame["type"] for frame in reader.frames]
        assert kinds.count("resync") == 1 and kinds[-1] == "resync"
        await reader.say(type="subscribe", since=reader.seq)
        await reader.hear("changes")
        assert reader.seq == 8 and len(reader.detections) == 8


async def test_one_that_acknowledges_is_not(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "UNACKED_FRAMES", 3)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        told = 0
        for entity in "abcdefgh":
            await run(store)(world.feed, world.query, entity, 10)
            told = await publish(world.feed, told)
            await reader.hear("changes")
            await reader.say(type="ack", seq=reader.seq)
        assert reader.seq == 8 and "resync" not in [frame["type"] for frame in reader.frames]


# -- permission -------------------------------------------------------------------------------------------------------------------


async def test_nobody_gets_no_socket(world: SimpleNamespace) -> None:
    async with page(None) as reader:
        assert await reader.closed() == 4401


async def test_a_stranger_is_not_permitted_and_learns_nothing(world: SimpleNamespace) -> None:
    for name in ("yard", "no-such-feed"):
        async with page(world.people.stranger) as reader:
            await reader.say(type="subscribe", feed=name)
            frame = await reader.hear("error")
            assert frame["code"] == "not-permitted" and name not in frame["message"]
            assert await reader.closed() == 4403


async def test_who_leaves_the_team_is_sent_away_within_a_recheck(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_who_leaves_the_team_is_sent_away_within_a_second(world: SimpleNamespace, passing_on: None) -> None:
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
        await reader.hear("status")
        get_channel_layer().groups.clear()
        await asyncio.sleep(0.5)
        await get_channel_layer().group_send("feed.yard", {"type": "feed.status", "feed": "yard", "rate": 1.0})
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
    from webapp.config.asgi import application

    cookie = await run(session_of)(world.people.viewer)
    headers = [*HOST, (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    socket = WebsocketCommunicator(application, "/ws/live/", headers=headers)
    connected, _ = await socket.connect(timeout=5)
    assert not connected


# -- limits -----------------------------------------------------------------------------------------------------------------------


async def test_what_is_no_frame_is_answered_with_the_reason(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.socket.send_to(text_data="{")
        assert (await reader.hear())["type"] == "error"
        await reader.say(type="subscribe")
        assert (await reader.hear())["type"] == "snapshot"


async def test_a_frame_too_long_or_of_bytes_ends_the_socket(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.socket.send_to(text_data="x" * 65_537)
        assert await reader.closed() == 1009
    async with page(world.people.viewer) as reader:
        await reader.socket.send_to(bytes_data=b"x")
        assert await reader.closed() == 1009


async def test_a_flood_of_frames_ends_the_socket(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "BURST", 5)
    monkeypatch.setattr(consumers, "PER_SECOND", 0.0)
    async with page(world.people.viewer) as reader:
        for _ in range(6):
            await reader.say(type="ack", seq=1)
        assert await reader.closed() == 1008


async def test_a_user_has_so_many_sockets_and_gets_them_back(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "SOCKETS_OF_A_USER", 1)
    async with page(world.people.viewer):
        async with page(world.people.viewer) as second:
            assert await second.closed() == 1008
        async with page(world.people.owner) as other:
            await other.say(type="subscribe")
            await other.hear("snapshot")
    async with page(world.people.viewer) as again:
        await again.say(type="subscribe")
        await again.hear("snapshot")


def test_a_snapshot_is_read_at_one_moment(world: SimpleNamespace) -> None:
    store(world.feed, world.query, "a", 10)
    read = snapshot(feed_id=world.feed.pk, queries=[world.query.pk], from_t=None)
    assert read["seq"] == 1 and len(read["detections"]) == 1
