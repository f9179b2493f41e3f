"""Browser pages as clients of the live socket, and answers as the sink and the publisher send
them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from tests.webapp.entry import server_entry
from tests.webapp.openapi import check_frame
from webapp.detections.models import Detection
from webapp.detections.selectors import detection_row
from webapp.detections.services import outbox_append
from webapp.live.chunks import chunks_after
from webapp.live.frames import group
from webapp.queries.models import Query

run = database_sync_to_async
HOST = [(b"host", b"localhost:8000")]


def session_of(user: Any) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


class Page:
    """A browser's page: its socket and the state that it has built from frames."""

    def __init__(self, socket: WebsocketCommunicator, session: str = "") -> None:
        self.socket, self.session = socket, session
        self.seq: int | None = None
        self.detections: dict[str, Any] = {}
        self.alerts: dict[int, Any] = {}
        self.frames: list[dict[str, Any]] = []

    async def say(self, **frame: Any) -> None:
        await self.socket.send_to(text_data=json.dumps({"feed": "yard", **frame}))

    async def hear(self, kind: str | None = None) -> dict[str, Any]:
        """The next frame (of this type), applied to the state."""
        while True:
            frame = json.loads(await self.socket.receive_from(timeout=5))
            check_frame(frame)
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


@asynccontextmanager
async def page(user: Any, *, origin: str | None = "http://localhost:8000", path: str = "/ws/live/", session: str = "") -> AsyncIterator[Page]:
    application = await run(server_entry)()
    headers = list(HOST)
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    cookie = session if user is None else await run(session_of)(user)
    if cookie:
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()))
    socket = WebsocketCommunicator(application, path, headers=headers)
    connected, _ = await socket.connect(timeout=5)
    assert connected
    try:
        yield Page(socket, cookie)
    finally:
        await socket.disconnect()


def store(feed: Any, query: Query, entity: str, start: int, end: int | None = None, weight: int = 1) -> None:
    """Stores an answer and adds it to the outbox, as the sink does."""
    from django.db import transaction

    key = f"{query.pk}-{entity}-{start}".encode().ljust(16, b".")
    with transaction.atomic():
        row, _ = Detection.objects.update_or_create(
            feed=feed, key=key, start=start,
            defaults={"query": query, "version": 1, "kind": "in", "entities": [entity], "end": end, "weight": weight, "seq": 0, "detected_at": 1},
        )  # fmt: skip
        outbox_append(feed_id=feed.pk, detections=[{**detection_row(row), "weight": weight or -1}])


async def publish(feed: Any, after: int) -> int:
    """Sends the outbox after a number to the group, as the publisher does; returns the last
    number."""
    chunks = await run(chunks_after)(feed_id=feed.pk, seq=after, limit=100)
    await get_channel_layer().group_send(group(feed.pk), {"type": "feed.changes", "feed": "yard", "chunks": chunks})
    return int(chunks[-1]["seq"]) if chunks else after
