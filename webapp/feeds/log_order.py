"""PostgreSQL as what keeps the segments of logs on shared storage in order (decision 26)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from engine.sources.shared_log import Ordered, Place
from webapp.feeds.models import Feed, LogHead, LogSegment


@dataclass
class DatabaseTurn:
    """Implements `Turn`: the feed's row is locked."""

    head: LogHead
    place: Place

    def add(self, segment: Ordered) -> None:
        LogSegment.objects.create(
            feed_id=self.head.feed_id, first_seq=segment.first_seq, rows=segment.rows, max_t=segment.max_t, file=segment.file, crc=segment.crc
        )
        self.head.next_seq, self.head.max_t, self.head.moved_at = segment.first_seq + segment.rows, segment.max_t, timezone.now()
        self.head.save()


class DatabaseOrder:
    """Implements `Order` for one feed."""

    def __init__(self, feed: Feed) -> None:
        self.feed_id = feed.pk

    def place(self) -> Place:
        head = LogHead.objects.filter(feed=self.feed_id).first()
        return Place() if head is None else _place(head)

    @contextmanager
    def turn(self) -> Iterator[DatabaseTurn]:
        LogHead.objects.bulk_create([LogHead(feed_id=self.feed_id)], ignore_conflicts=True)
        # Durable: inside another transaction the row would be locked until that ends.
        with transaction.atomic(durable=True):
            head = LogHead.objects.select_for_update().get(feed=self.feed_id)
            yield DatabaseTurn(head, _place(head))

    def beyond(self, seq: int) -> Sequence[Ordered]:
        rows = LogSegment.objects.filter(feed=self.feed_id)
        # The index finds the segment that has `seq`, and those that follow.
        at = rows.filter(first_seq__lte=max(0, seq)).order_by("-first_seq").values_list("first_seq", flat=True).first()
        found = rows.filter(first_seq__gte=at or 0, first_seq__gt=seq - F("rows")).order_by("first_seq")
        return [Ordered(*row) for row in found.values_list("first_seq", "rows", "max_t", "file", "crc")]

    def waiting_since(self, seq: int) -> float | None:
        first = LogSegment.objects.filter(feed=self.feed_id, first_seq__gt=seq - F("rows")).order_by("first_seq").first()
        return None if first is None else first.ordered_at.timestamp()


def _place(head: LogHead) -> Place:
    silent_ms = int((timezone.now() - head.moved_at).total_seconds() * 1000) if head.next_seq else 0
    return Place(head.next_seq, head.max_t, max(0, silent_ms))
