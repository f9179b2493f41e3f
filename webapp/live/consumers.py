"""The live socket: passes client frames to subscriptions and their frames to the client.
Selectors decide the permissions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import redis
from autobahn.exception import Disconnected
from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from django.utils import timezone

from engine.model.messages import Message, message_of
from webapp.accounts.language import language_of_socket
from webapp.audit.sockets import socket_refused
from webapp.feeds.heads import FeedStatus
from webapp.live import access, frames, selectors, shares, socket_limit
from webapp.live.chunks import Chunk
from webapp.live.frames import Ack, BadFrame, Subscribe, Unsubscribe, View, group
from webapp.live.selectors import Permission
from webapp.live.subscription import Subscription

logger = logging.getLogger(__name__)

SUBSCRIPTIONS = 20
RECHECK_SECONDS = 60.0
RETRY_SECONDS = 1.0
"""When the database did not answer, permissions are read again after this long."""
CLOSING_SECONDS = 2.0
"""How long a stopping server waits for a client to answer the closing frame of its socket."""
SPREAD_SECONDS = 0.3
"""When all sockets have to check permissions, they spread over this."""
BURST, PER_SECOND = 200, 20.0
"""Client frames at once, and on average."""


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One browser's socket. Messages are handled one after the other, so a
    subscription never sees two at once."""

    ENDED = frames.NOT_LOGGED_IN
    SHOWS_ALERTS = True
    SHOWS_CONNECTORS = True
    UNKNOWN_READER = ("not-logged-in", Message("Log in, or send Authorization: Bearer <token> with a valid token that has the scope read."))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.tokens, self.tokens_at = float(BURST), time.monotonic()
        self.recheck: asyncio.Task[None] | None = None
        self.look = asyncio.Event()
        self.has_place = False
        self.expires_at: datetime | None = None
        work = asyncio.ensure_future(super().__call__(scope, receive, send))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            # The server ends.
            with contextlib.suppress(Disconnected):
                await send({"type": "websocket.close", "code": frames.RESTARTING})
                await asyncio.wait([work], timeout=CLOSING_SECONDS)
            work.cancel()
            await asyncio.wait([work])
            raise
        finally:
            # The place must be freed in any case.
            await self._end()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Like channels' own, without its call to the single database thread before each message: a
        hundred pages queued there for 15 s. Code that reads the database closes stale connections
        anyway (`database_sync_to_async`).
        """
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        await self.accept()
        reader = await self._reader()
        if reader is None:
            await database_sync_to_async(socket_refused)(self.scope, status=401)
            await self._say(*self.UNKNOWN_READER)
            await self.close(code=self.ENDED)
            return
        self.reader = reader
        self.has_place = await socket_limit.take(reader)
        if not self.has_place:
            await database_sync_to_async(socket_refused)(self.scope, status=429)
            await self._say("too-many", Message("Too many pages are open at once."))
            await self.close(code=frames.TOO_OFTEN)
            return
        self.recheck = asyncio.create_task(self._recheck())

    # -- the reader; shared views override these ------------------------------------------

    async def _reader(self) -> Hashable | None:
        """The key by which sockets are counted; null without a log-in."""
        user = self.scope.get("user")
        return user.pk if user is not None and user.is_authenticated and await self._is_valid() else None

    async def _is_valid(self) -> bool:
        """Whether the reader may still have this socket."""
        self.expires_at = await database_sync_to_async(selectors.logged_in_until)(self.scope)
        return self.expires_at is not None

    async def _permitted(self, feed: str) -> Permission | None:
        """The queries of the feed that the reader may see now."""
        allowed: Permission | None = await database_sync_to_async(selectors.permission)(user_id=self.scope["user"].pk, feed=feed)
        return allowed

    def _timeout_s(self) -> float:
        """Seconds until permissions are read again, if no change is reported: at the latest when
        the log-in or the link expires."""
        left = RECHECK_SECONDS if self.expires_at is None else (self.expires_at - timezone.now()).total_seconds()
        return max(0.0, min(RECHECK_SECONDS, left))

    async def _end(self) -> None:
        if self.has_place:
            self.has_place = False
            socket_limit.give_back(self.reader)
        if self.recheck is None:
            return
        self.recheck.cancel()
        try:
            for name in self._groups():
                await self.channel_layer.group_discard(name, self.channel_name)
        except (redis.RedisError, OSError) as error:
            # The layer drops messages for a closed socket.
            logger.warning("the channel layer does not answer: %s", error)

    # -- from the client ---------------------------------------------------------------------------

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data is None or len(text_data) > frames.FRAME_BYTES:
            await self.close(code=frames.TOO_BIG)
            return
        if not self._within_rate():
            await self.close(code=frames.TOO_OFTEN)
            return
        try:
            frame = frames.parse(text_data)
        except BadFrame as error:
            await self._say("bad-frame", message_of(error))
            return
        match frame:
            case Subscribe():
                await self._subscribe(frame)
            case View():
                await self._view(frame)
            case Unsubscribe():
                await self._leave(frame.feed)
            case Ack() if frame.feed in self.subscriptions:
                self.subscriptions[frame.feed].acked(frame.seq)

    def _within_rate(self) -> bool:
        now = time.monotonic()
        self.tokens = min(float(BURST), self.tokens + (now - self.tokens_at) * PER_SECOND) - 1
        self.tokens_at = now
        return self.tokens >= 0

    async def _subscribe(self, frame: Subscribe) -> None:
        """Joins the group first, then reads: changes in between are in the group's messages, and
        known numbers are dropped."""
        if not await self._is_valid():
            await self.close(code=self.ENDED)
            return
        if frame.feed not in self.subscriptions and len(self.subscriptions) >= SUBSCRIPTIONS:
            await self._say("too-many", Message("Too many feeds at once."))
            return
        allowed = await self._permitted(frame.feed)
        if allowed is None:
            await database_sync_to_async(socket_refused)(self.scope, status=404, feed=frame.feed)
            await self._say("not-permitted", Message("There is no such feed, or it is not shared with you."))
            await self.close(code=frames.NOT_PERMITTED)
            return
        await self.channel_layer.group_add(group(allowed.feed_id), self.channel_name)
        subscription = Subscription(allowed.feed_id, allowed.feed, frame.queries, allowed.queries, frame.bbox)
        self.subscriptions[frame.feed] = subscription
        await self._start(subscription, frame)
        await self._send_status(subscription, await database_sync_to_async(selectors.status)(feed_id=subscription.feed_id))

    async def _start(self, subscription: Subscription, frame: Subscribe) -> None:
        """Resumes after the reader's number if it can, else sends a snapshot."""
        places = await database_sync_to_async(selectors.places)(feed_id=subscription.feed_id)
        chunks = None
        if frame.since is not None:
            chunks = await database_sync_to_async(selectors.missed)(feed_id=subscription.feed_id, since=frame.since)
        if frame.since is not None and chunks is not None:
            subscription.last_sent = frame.since
            if chunks:
                await self._send_changes(subscription, chunks)
            else:
                nothing = frames.changes(subscription.feed, first=frame.since + 1, seq=frame.since, detections=[], alerts=[])
                await self._write(nothing, subscription)
            await self._show(subscription, places["t"], places["entities"])
            return
        read = await database_sync_to_async(selectors.snapshot)(feed_id=subscription.feed_id, queries=subscription.visible(), from_t=frame.from_t)
        if not self.SHOWS_ALERTS:
            read["alerts"] = []
        subscription.last_sent = read["seq"]
        entities = frames.within(subscription.bbox, places["entities"])
        await self._send(frames.snapshot(subscription.feed, positions=entities, **read), subscription)

    async def _view(self, frame: View) -> None:
        subscription = self.subscriptions.get(frame.feed)
        if subscription is None or subscription.stalled:
            return
        subscription.bbox = frame.bbox
        places = await database_sync_to_async(selectors.places)(feed_id=subscription.feed_id)
        await self._show(subscription, places["t"], places["entities"])

    async def _leave(self, feed: str) -> None:
        subscription = self.subscriptions.pop(feed, None)
        if subscription is not None:
            await self.channel_layer.group_discard(group(subscription.feed_id), self.channel_name)

    # -- from the publisher ------------------------------------------------------------------------

    async def feed_changes(self, message: dict[str, Any]) -> None:
        subscription = self.subscriptions.get(message["feed"])
        if subscription is None or subscription.stalled:
            return
        chunks = subscription.fresh(message["chunks"])
        if not chunks:
            return
        if subscription.follows(chunks):
            await self._pass_on(subscription, chunks)
        else:
            await self._catch_up(subscription)

    async def _catch_up(self, subscription: Subscription) -> None:
        """Sends what the channel layer lost, from the outbox."""
        chunks = await database_sync_to_async(selectors.missed)(feed_id=subscription.feed_id, since=subscription.last_sent)
        await self._pass_on(subscription, chunks)

    async def _pass_on(self, subscription: Subscription, chunks: Sequence[Chunk] | None) -> None:
        """Sends the changes that follow; has the reader start again if
        they are gone or too many."""
        if chunks is None or subscription.behind:
            await self._resync(subscription)
        elif chunks:
            await self._send_changes(subscription, chunks)

    async def feed_positions(self, message: dict[str, Any]) -> None:
        subscription = self.subscriptions.get(message["feed"])
        now = time.monotonic()
        if subscription is None or not subscription.wants_positions(now):
            return
        await self._show(subscription, message["t"], message["entities"])

    async def feed_status(self, message: dict[str, Any]) -> None:
        subscription = self.subscriptions.get(message["feed"])
        if subscription is None or subscription.stalled:
            return
        status = cast(FeedStatus, {name: value for name, value in message.items() if name not in ("type", "feed")})
        await self._send_status(subscription, status)
        if subscription.lacks(status.get("outbox_seq", 0)):
            await self._catch_up(subscription)

    async def _send_status(self, subscription: Subscription, status: FeedStatus) -> None:
        await self._send(frames.status(subscription.feed, status if self.SHOWS_CONNECTORS else {**status, "failing_connectors": []}))

    async def access_changed(self, message: dict[str, Any]) -> None:
        self.look.set()

    # -- to the client -----------------------------------------------------------------------------

    async def _send_changes(self, subscription: Subscription, chunks: Sequence[Chunk]) -> None:
        unknown_ids = subscription.unknown_ids(chunks)
        if unknown_ids:
            await self._learn(subscription, unknown_ids)
        if subscription.feed not in self.subscriptions:
            return
        taken = subscription.take(chunks)
        changes = frames.changes(subscription.feed, **(taken if self.SHOWS_ALERTS else {**taken, "alerts": []}))
        if len(changes) > frames.MESSAGE_BYTES:
            # A snapshot contains as much as fits; the page requests the rest.
            await self._resync(subscription)
        else:
            await self._write(changes, subscription)

    async def _learn(self, subscription: Subscription, asked: set[int] | None) -> bool:
        """Reads the permissions again; closes the socket and returns false when the reader
        may no longer see the feed."""
        allowed = await self._permitted(subscription.feed)
        if allowed is None or allowed.feed_id != subscription.feed_id:
            await self._leave(subscription.feed)
            await self.close(code=frames.NOT_PERMITTED)
            return False
        subscription.learn(allowed.queries, asked)
        return True

    async def _resync(self, subscription: Subscription) -> None:
        subscription.stalled = True
        await self._send(frames.resync(subscription.feed))

    async def _show(self, subscription: Subscription, t: int | None, entities: Sequence[Any]) -> None:
        text = frames.positions(subscription.feed, t=t, entities=entities, box=subscription.bbox)
        await self._write(text)
        subscription.sent_positions(len(text), time.monotonic())

    async def _say(self, code: str, why: Message) -> None:
        """Sends an error frame in the reader's language."""
        await self._send(frames.error(code, why, language_of_socket(self.scope)))

    async def _send(self, frame: Mapping[str, object], subscription: Subscription | None = None) -> None:
        await self._write(frames.encoded(frame), subscription)

    async def _write(self, text: str, subscription: Subscription | None = None) -> None:
        """Sends a frame; with a subscription it counts as something the
        reader has to acknowledge."""
        if subscription is not None:
            subscription.sent(len(text))
        # The client may have disconnected already, without the event having arrived.
        with contextlib.suppress(Disconnected):
            await self.send(text_data=text)

    def _groups(self) -> list[str]:
        return [access.GROUP, *(group(subscription.feed_id) for subscription in self.subscriptions.values())]

    async def _join_groups(self) -> None:
        """Joins all its groups, repeatedly: a Redis that was away may have lost them."""
        try:
            for name in self._groups():
                await self.channel_layer.group_add(name, self.channel_name)
        except (redis.RedisError, OSError) as error:
            logger.warning("the channel layer does not answer: %s", error)

    async def _recheck(self) -> None:
        """Every minute, and on request: checks whether the reader is still logged in and may still
        see the feed."""
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                await self._join_groups()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.look.wait(), self._timeout_s())
                    await asyncio.sleep(random.uniform(0, SPREAD_SECONDS))  # noqa: S311  not a secret
                self.look.clear()
                try:
                    if not await self._may_stay():
                        return
                except DatabaseError as error:
                    logger.warning("permissions cannot be read: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
                    self.look.set()

    async def _may_stay(self) -> bool:
        """Reads log-in and permissions again; closes the socket and returns false when the reader
        may no longer see anything."""
        if not await self._is_valid():
            await self.close(code=self.ENDED)
            return False
        for subscription in list(self.subscriptions.values()):
            before = subscription.allowed
            if not await self._learn(subscription, None):
                return False
            # Answers that the reader may no longer see must disappear from the screen too.
            if before - subscription.allowed:
                await self._resync(subscription)
        return True


class SharedConsumer(LiveConsumer):
    """The socket of a link to a live view: positions and answers of one feed, without alerts, which
    name users, and without names of connectors. Ends with the link."""

    ENDED = frames.NOT_PERMITTED
    SHOWS_ALERTS = False
    SHOWS_CONNECTORS = False
    UNKNOWN_READER = ("not-permitted", Message("This link has expired or was revoked."))

    async def _reader(self) -> Hashable | None:
        share = await database_sync_to_async(shares.share_opened)(self.scope["session"], self.scope["url_route"]["kwargs"]["pk"])
        if share is None:
            return None
        self.share, self.expires_at = share.pk, share.expires_at
        return "share", share.pk

    async def _is_valid(self) -> bool:
        return await database_sync_to_async(shares.share_shows)(self.share) is not None

    async def _permitted(self, feed: str) -> Permission | None:
        shown: Permission | None = await database_sync_to_async(shares.share_shows)(self.share)
        return shown if shown is not None and shown.feed == feed else None
