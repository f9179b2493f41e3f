"""PostgreSQL keeps the order of segments of logs on shared storage (decision 26), and
notifies when a log has grown."""

from __future__ import annotations

import logging
import select
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.utils import timezone

from engine.sources.shared_log import LogEnd, OrderedSegment
from webapp.feeds.models import Feed, LogHead, LogSegment

logger = logging.getLogger(__name__)

CHANNEL = "vedette_log"
LOOK_S = 1.0
"""How often an idle connection is checked."""
AGAIN_S = 1.0


@dataclass
class DatabaseAppendLock:
    """Implements `AppendLock`: the feed's row is locked."""

    feed: str
    head: LogHead
    end: LogEnd

    def add(self, segment: OrderedSegment) -> None:
        _create(self.head.feed_id, segment)
        self.head.next_seq, self.head.max_t, self.head.moved_at = segment.first_seq + segment.rows, segment.max_t, timezone.now()
        self.head.save()
        _announce(self.feed)


class DatabaseSegmentOrder:
    """Implements `SegmentOrder` for the feed of this name, also for a later one of that name."""

    def __init__(self, feed: str) -> None:
        self.feed = feed

    def end(self) -> LogEnd:
        head = LogHead.objects.filter(feed__name=self.feed).first()
        return LogEnd() if head is None else _end(head)

    @contextmanager
    def append_lock(self) -> Iterator[DatabaseAppendLock]:
        with self._locked() as head:
            yield DatabaseAppendLock(self.feed, head, _end(head))

    @contextmanager
    def _locked(self) -> Iterator[LogHead]:
        # Durable: inside another transaction the row would be locked until that ends.
        with transaction.atomic(durable=True):
            yield self._lock()

    def _lock(self) -> LogHead:
        """The feed's row, locked until the transaction ends."""
        feed_id = Feed.objects.values_list("pk", flat=True).get(name=self.feed)
        LogHead.objects.bulk_create([LogHead(feed_id=feed_id)], ignore_conflicts=True)
        return LogHead.objects.select_for_update().get(feed=feed_id)

    @property
    def _segments(self) -> Any:
        return LogSegment.objects.filter(feed__name=self.feed, gone_at=None)

    def beyond(self, seq: int) -> Sequence[OrderedSegment]:
        # The index finds the segment that has `seq`, and those that follow.
        at = self._segments.filter(first_seq__lte=max(0, seq)).order_by("-first_seq").values_list("first_seq", flat=True).first()
        segments = self._segments.filter(first_seq__gte=at or 0, first_seq__gt=seq - F("rows")).order_by("first_seq")
        return [OrderedSegment(*row) for row in segments.values_list("first_seq", "rows", "max_t", "file", "crc")]

    def names(self, file: str) -> bool:
        return bool(self._segments.filter(file=file).exists())

    def waiting_since(self, seq: int) -> float | None:
        first = self._segments.filter(first_seq__gt=seq - F("rows")).order_by("first_seq").first()
        return None if first is None else float(first.ordered_at.timestamp())

    def grown_since(self, look_ns: int) -> bool:
        return NOTICES.grown_since(self.feed, look_ns)

    def replace(self, parts: Sequence[str], by: Sequence[OrderedSegment]) -> bool:
        with self._locked() as head:
            # When the statement restarts after waiting for the lock, it sees the changes of the
            # last holder.
            gone = self._segments.filter(file__in=parts)
            if gone.count() != len(parts):
                return False
            gone.update(gone_at=timezone.now())
            for segment in by:
                _create(head.feed_id, segment)
            return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        with transaction.atomic():
            self._lock()
            yield

    def exchange(self, parts: Sequence[str], by: OrderedSegment) -> None:
        head = self._lock()
        self._segments.filter(file__in=parts).update(gone_at=timezone.now())
        _create(head.feed_id, by)
        if by.first_seq + by.rows == head.next_seq:
            head.max_t = by.max_t
            head.save()
        _announce(self.feed)

    def replaced(self, seconds: float) -> Sequence[str]:
        before = timezone.now() - timedelta(seconds=seconds)
        return list(LogSegment.objects.filter(feed__name=self.feed, gone_at__lte=before).values_list("file", flat=True))

    def known(self) -> Collection[str]:
        return set(LogSegment.objects.filter(feed__name=self.feed).values_list("file", flat=True))

    def forget(self, files: Sequence[str]) -> None:
        LogSegment.objects.filter(feed__name=self.feed, file__in=files).exclude(gone_at=None).delete()


def _announce(feed: str) -> None:
    """Delivered when the transaction has ended."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, feed])


def _create(feed_id: int, one: OrderedSegment) -> None:
    LogSegment.objects.create(feed_id=feed_id, first_seq=one.first_seq, rows=one.rows, max_t=one.max_t, file=one.file, crc=one.crc)


def _end(head: LogHead) -> LogEnd:
    silent_ms = int((timezone.now() - head.moved_at).total_seconds() * 1000) if head.next_seq else 0
    return LogEnd(head.next_seq, head.max_t, max(0, silent_ms))


class Notices:
    """Listens to PostgreSQL for logs that have grown, in a thread with its own connection. Until it
    listens, every log counts as grown."""

    def __init__(self) -> None:
        self._grown: dict[str, int] = {}
        self._is_listening = False
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to listen, once a process."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, name="log notices", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread and its connection."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def grown_since(self, feed: str, look_ns: int) -> bool:
        """By name: a feed that was made again under that name is noticed too."""
        return not self._is_listening or self._grown.get(feed, 0) >= look_ns

    def _listen(self) -> None:
        while not self._ending.is_set():
            try:
                self._receive_notifications()
            except DatabaseError as error:
                logger.warning("what logs do is not heard: %s", error)
            except Exception:
                logger.exception("what logs do is not heard")
            self._is_listening = False
            connection.close()
            self._ending.wait(AGAIN_S)

    def _receive_notifications(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        raw = connection.connection
        # Earlier notifications are missed.
        self._grown = dict.fromkeys(self._grown, time.time_ns())
        self._is_listening = True
        while not self._ending.is_set():
            if not select.select([raw], [], [], LOOK_S)[0]:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT 1")
            raw.poll()
            for notice in raw.notifies:
                self._grown[notice.payload] = time.time_ns()
            raw.notifies.clear()


NOTICES = Notices()
"""This process's."""
