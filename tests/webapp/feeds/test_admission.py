"""Rows from the future: one of them must not make all other rows late (decision 17)."""

import time
from typing import Any

import pyarrow as pa
import pytest

from engine.model.events import check_rows
from webapp.feeds.ingest import Delivery, Receipt, ingest
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestCounter
from webapp.feeds.services import feed_create

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
DAY = 86_400_000
T = 1_700_000_000_000


def send(feed: Feed, *times: int, key: str | None = None) -> Receipt:
    rows = check_rows(pa.table({"entity": ["a"] * len(times), "t": times}), feed.engine_feed())[0]
    return ingest(feed, Delivery(rows, key=key))


def times(feed: Feed) -> list[int]:
    return [t for table in event_log(feed.name).read() for t in table["t"].to_pylist()]


def test_a_row_far_in_the_future_is_a_dead_letter_and_does_not_move_the_clock(feed: Feed) -> None:
    send(feed, T)
    receipt = send(feed, T + 11 * DAY, T + 1_000)
    assert (receipt.received, receipt.appended, receipt.dead, receipt.late) == (2, 1, 1, 0)
    assert receipt.dead_letters[0]["reason"] == "future" and "setting ahead" in receipt.dead_letters[0]["detail"]
    assert send(feed, T + 2_000).late == 0
    assert times(feed) == [T, T + 1_000, T + 2_000]
    counter = IngestCounter.objects.get(feed=feed)
    assert (counter.received, counter.dead) == (4, 1)
    assert DeadLetter.objects.get().row["t"] == T + 11 * DAY


def test_a_row_from_the_future_is_refused_with_the_clock_in_the_reason(feed: Feed) -> None:
    first = send(feed, T, T + 11 * DAY, T + 1_000, T + 12 * DAY)
    assert [letter["detail"].partition(":")[0] for letter in first.dead_letters] == [
        f"t is too far ahead of the clock, {clock}" for clock in (T, T + 1_000)
    ]
    assert f"the clock, {T + 1_000}:" in send(feed, T + 13 * DAY).dead_letters[0]["detail"]


def test_a_delivery_of_future_rows_only_is_idempotent(feed: Feed) -> None:
    send(feed, T)
    first, again = (send(feed, T + 11 * DAY, key="k") for _ in range(2))
    assert (first.appended, first.dead, first.repeated) == (0, 1, False)
    assert (again.appended, again.dead, again.repeated) == (0, 1, True)
    assert (times(feed), DeadLetter.objects.count(), IngestCounter.objects.get(feed=feed).received) == ([T], 1, 2)


def test_without_a_limit_a_feed_accepts_future_rows(feed: Feed) -> None:
    feed.ahead = None
    assert send(feed, T, T + 11 * DAY, T).late == 1


def test_a_feed_continues_after_a_pause_as_long_as_the_limit(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    send(feed, T)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3 * DAY * 1_000_000)
    assert send(feed, T + 3 * DAY + 5_000).appended == 1


def test_a_source_with_a_fast_clock_makes_no_rows_late(people: Any) -> None:
    feed = feed_create(owner=people.owner, name="live", title="live", crs="planar", lateness=10_000, wall_clock=True)
    now = time.time_ns() // 1_000_000
    fast = send(feed, now + 240_000)
    assert (fast.appended, fast.dead, fast.dead_letters[0]["reason"]) == (0, 1, "future")
    # Half the lateness ahead is allowed, so a row that takes up to the other
    # half to arrive is on time.
    assert send(feed, now + 4_500).appended == 1
    assert send(feed, now - 4_500).late == 0


def test_the_receipt_says_how_many_rows_were_late_also_when_it_is_repeated(feed: Feed) -> None:
    send(feed, T)
    first, again = (send(feed, T - 5_000, T + 1, T - 5_000, key="k") for _ in range(2))
    assert (first.appended, first.late) == (3, 2)
    assert (again.repeated, again.appended, again.late) == (True, 3, 2)
