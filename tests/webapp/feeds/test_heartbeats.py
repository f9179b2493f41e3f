"""Heartbeats move a silent feed's clock, and maintenance compacts only what
is settled and processed."""

import pyarrow as pa
import pytest

from engine.model.events import HEARTBEAT, check_rows
from engine.sources.segments import list_segments
from webapp.feeds.heartbeats import UNDER_WAY_MS, Heartbeats
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.logs import event_log
from webapp.feeds.maintenance import feed_maintain
from webapp.feeds.models import Feed, IngestCounter
from webapp.jobs.models import FeedHead

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
NOW = 1_700_000_000_000


def send(feed: Feed, *times: int) -> None:
    ingest(feed, Delivery(check_rows(pa.table({"entity": ["a"] * len(times), "t": times}), feed.engine_feed())[0]))


def rows(feed: Feed) -> list[tuple[str, int]]:
    return [row for table in event_log(feed.name).read() for row in zip(table["event"].to_pylist(), table["t"].to_pylist(), strict=True)]


def test_an_empty_log_gets_no_heartbeat(feed: Feed) -> None:
    hearts = Heartbeats()
    assert not any(hearts.beat(feed, NOW + 1_000 * n) for n in range(10))


def test_a_heartbeat_after_silence_allows_for_delayed_rows(feed: Feed) -> None:
    send(feed, NOW - 5_000)
    hearts = Heartbeats()
    assert [hearts.beat(feed, NOW + n) for n in (0, 999, 1_000, 1_500, 2_100)] == [False, False, True, False, True]
    assert rows(feed) == [("position", NOW - 5_000), (HEARTBEAT, NOW + 1_000 - UNDER_WAY_MS), (HEARTBEAT, NOW + 2_100 - UNDER_WAY_MS)]
    assert IngestCounter.objects.get(feed=feed).received == 1


def test_rows_end_a_silence_and_the_clock_is_monotonic(feed: Feed) -> None:
    send(feed, NOW)
    hearts = Heartbeats()
    assert not hearts.beat(feed, NOW)
    assert not hearts.beat(feed, NOW + 1_500), "its time would be before the last row's"
    send(feed, NOW + 2_000)
    assert not hearts.beat(feed, NOW + 2_500)
    assert hearts.beat(feed, NOW + 4_001)


def test_heartbeats_of_a_long_silence_are_rarer(feed: Feed) -> None:
    send(feed, NOW)
    hearts = Heartbeats()
    beats = [n for n in range(0, 600_000, 250) if hearts.beat(feed, NOW + n)]
    assert beats[-1] - beats[-2] == 5_000
    assert len(beats) < 160


def test_maintenance_compacts_only_processed_rows(feed: Feed) -> None:
    head, log = FeedHead.objects.filter(feed=feed), event_log(feed.name)
    for n in range(6):
        send(feed, NOW + n)
    feed_maintain(feed=feed)
    assert len(list_segments(log.live)) == 6, "no job has processed anything"
    head.update(checkpoint=1, last_batch=0, last_seq=2)
    feed_maintain(feed=feed)
    assert [s.first_seq for s in list_segments(log.live)] == [3, 4, 5]
    assert [t for _, t in rows(feed)] == [NOW + n for n in range(6)]


def test_maintenance_drops_what_is_older_than_the_feed_keeps(feed: Feed) -> None:
    feed.ahead = None
    log = event_log(feed.name)
    for t in (NOW - 100 * 3_600_000, NOW):
        send(feed, t)
        log.compact(log.end[0] - 1)
    feed_maintain(feed=feed)
    assert [t for _, t in rows(feed)] == [NOW]
