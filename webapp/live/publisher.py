"""The publisher: the only sender to the channel layer. Its messages are copies; readers request
lost ones again by number. Reads the outbox by (feed, seq), woken by NOTIFY and polling every
POLL_S; tails the event logs for positions; sends each feed's status once a second. Survives
outages of PostgreSQL and Redis.
"""

from __future__ import annotations

import logging
import select
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import redis
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import DatabaseError, close_old_connections, connection

from webapp.detections.services import OUTBOX_CHANNEL
from webapp.feeds.damage import damage_isolated, feeds_set_aside
from webapp.feeds.heads import feed_statuses, newest_outbox_numbers
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed
from webapp.feeds.recent import last_of_each
from webapp.live import access, positions
from webapp.live.chunks import Chunk, chunks_after
from webapp.live.frames import group

logger = logging.getLogger(__name__)

POLL_S = 0.25
POSITIONS_S = 0.15
"""Positions of a feed are sent at most this often: a map does not need more."""
KEEP_S = 1.0
STATUS_S = 1.0
FEEDS_S = 2.0
MESSAGE_ROWS = 20
"""Outbox rows that are read at once, and in one message at most."""
MESSAGE_ANSWERS = 1_000
"""Answers and alerts in one message, unless one outbox row has more: a frame holds about two
thousand; beyond that the page resynchronises."""
BEHIND_ROWS = 200_000
"""When positions lag further behind than this, they skip to the end of the log:
only current ones matter."""
POSITION_COLUMNS = ("event", "entity", "t", "x", "y", "seq")


class Publisher:
    """The work of the process; `run` returns when `stopping` is set."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.feeds: dict[int, Feed] = {}
        self.sent: dict[int, int] = {}
        self.tails: dict[int, PositionTail] = {}
        self._next_status = self._next_feeds = 0.0
        self._listening: Any = None

    def run(self) -> None:
        """Until `stopping` is set. It waits while the database is unavailable."""
        while not self.stopping.is_set():
            try:
                self.step()
                self._wait()
            except DatabaseError as error:
                logger.warning("the database does not answer: %s", error)
                connection.close()
                self.stopping.wait(1.0)

    def step(self) -> None:
        """Sends new rows."""
        now = time.monotonic()
        if now >= self._next_feeds:
            self._next_feeds = now + FEEDS_S
            self._look_for_feeds()
        newest = newest_outbox_numbers()
        for feed_id in self.feeds:
            if newest.get(feed_id, 0) > self.sent[feed_id]:
                self._send_changes(feed_id)
        for feed_id, tail in list(self.tails.items()):
            with damage_isolated(self.feeds[feed_id]):
                message = tail.due(now)
                if message is not None:
                    self._send(feed_id, message)
        if now >= self._next_status:
            self._next_status = now + STATUS_S
            self._send_statuses()

    def _look_for_feeds(self) -> None:
        close_old_connections()
        self.feeds = {feed.pk: feed for feed in Feed.objects.only("id", "name")}
        # The end of a damaged log is unknown until it is repaired; answers
        # found before are still sent.
        whole = self.feeds.keys() - feeds_set_aside()
        for feed_id in whole - self.tails.keys():
            with damage_isolated(self.feeds[feed_id]):
                self.tails[feed_id] = PositionTail(self.feeds[feed_id])
        for feed_id in self.tails.keys() - whole:
            del self.tails[feed_id]
        newest = newest_outbox_numbers()
        for feed_id in self.feeds:
            # Pages that were open before this process started hold a number, and ask again
            # when the next one skips some.
            self.sent.setdefault(feed_id, newest.get(feed_id, 0))

    def _send_changes(self, feed_id: int) -> None:
        while rows := chunks_after(feed_id=feed_id, seq=self.sent[feed_id], limit=MESSAGE_ROWS):
            for chunks in messages(rows):
                self._send(feed_id, {"type": "feed.changes", "feed": self.feeds[feed_id].name, "chunks": chunks})
                # Without checking that it arrived: readers notice a missing number, and a stuck
                # channel layer must not block the others.
                self.sent[feed_id] = chunks[-1]["seq"]

    def _send_statuses(self) -> None:
        statuses = feed_statuses()
        for feed_id, feed in self.feeds.items():
            status = statuses.get(feed_id)
            if status is not None:
                self._send(feed_id, {"type": "feed.status", "feed": feed.name, **status})

    def _send(self, feed_id: int, message: Mapping[str, Any]) -> None:
        self._send_to(group(feed_id), message)

    def _send_to(self, name: str, message: Mapping[str, Any]) -> None:
        try:
            async_to_sync(get_channel_layer().group_send)(name, dict(message))
        except (redis.RedisError, OSError) as error:
            logger.warning("the channel layer does not answer: %s", error)

    def _wait(self) -> None:
        """Waits until an outbox has new rows, or positions are due."""
        raw = self._listen()
        select.select([raw], [], [], min(POLL_S, POSITIONS_S))
        raw.poll()
        if any(notice.channel == access.CHANNEL for notice in raw.notifies):
            self._recheck_sockets()
        raw.notifies.clear()

    def _listen(self) -> Any:
        """The connection that listens. Django replaces it now and then, and LISTEN
        applies to one connection only."""
        connection.ensure_connection()
        raw = connection.connection
        if raw is not self._listening:
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {OUTBOX_CHANNEL}")
                cursor.execute(f"LISTEN {access.CHANNEL}")
            self._listening = raw
            # Notifications between the two connections were lost.
            self._recheck_sockets()
        return raw

    def _recheck_sockets(self) -> None:
        """Makes all sockets check permissions again."""
        self._send_to(access.GROUP, {"type": "access.changed"})


def messages(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Outbox rows in the parts that are sent together."""
    part: list[Chunk] = []
    held = 0
    for chunk in chunks:
        size = len(chunk["detections"]) + len(chunk["alerts"])
        if part and held + size > MESSAGE_ANSWERS:
            yield part
            part, held = [], 0
        part.append(chunk)
        held += size
    if part:
        yield part


class PositionTail:
    """The moving end of one feed's log, coalesced to the latest position of each entity."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.log = event_log(feed.name)
        self.position = max(0, self.log.end[0] - BEHIND_ROWS)
        self.latest: dict[str, list[Any]] = {}
        self._changed: set[str] = set()
        self._next_send = self._next_keep = 0.0
        self._kept = True
        self.max_t: int | None = None

    def due(self, now: float) -> dict[str, Any] | None:
        """The message with entities that moved since the last one, if it is
        time for one and any did."""
        if now < self._next_send:
            return None
        self._next_send = now + POSITIONS_S
        self._read()
        if now >= self._next_keep and not self._kept:
            self._next_keep = now + KEEP_S
            self._keep()
        if not self._changed:
            return None
        moved = [self.latest[entity] for entity in self._changed]
        self._changed.clear()
        return {"type": "feed.positions", "feed": self.feed.name, "t": self.max_t, "entities": moved}

    def _read(self) -> None:
        end, self.max_t = self.log.end
        if end - self.position > BEHIND_ROWS:
            self.position = end - BEHIND_ROWS
        if end > self.position:
            for rows in self.log.read(self.position, end, columns=POSITION_COLUMNS):
                self._take(rows)
                self._kept = False
            self.position = end

    def _take(self, rows: pa.Table) -> None:
        placed = rows.filter(pc.and_(pc.is_valid(rows.column("entity")), pc.and_(pc.is_valid(rows.column("x")), pc.is_valid(rows.column("y")))))
        if not placed.num_rows:
            return
        newest = last_of_each(placed)
        for place in zip(*(newest.column(name).to_pylist() for name in ("entity", "x", "y", "t")), strict=True):
            known = self.latest.get(place[0])
            if known is None or known[3] <= place[3]:
                self.latest[place[0]] = list(place)
                self._changed.add(place[0])

    def _keep(self) -> None:
        connection = positions.client()
        if connection is None:
            return
        try:
            positions.keep(connection, self.feed.pk, self.max_t, list(self.latest.values()))
            self._kept = True
        except redis.RedisError as error:
            logger.warning("positions of %s are not kept: %s", self.feed, error)
