"""A clock that was set back: afterwards the stored data are as if the wrong rows had never come."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.core.management import call_command

from engine.model.events import row_schema
from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.store import files_of
from tests.webapp.answers import a_feed, a_user
from tests.webapp.jobs.test_audit import SQUARE
from webapp.alerts.models import Alert
from webapp.audit.models import Entry
from webapp.detections.models import Detection
from webapp.feeds.heads import feed_head_ensure
from webapp.feeds.ingest import Delivery, ingest
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestCounter
from webapp.feeds.selectors import feed_counters
from webapp.jobs.models import FeedHead, Job
from webapp.queries.services import query_register
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.clock import clock_set_back
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
FAR = 950_400_000


@pytest.fixture
def feed(tmp_path: Path, settings: Any) -> Feed:
    settings.EVENT_LOG_ROOT = tmp_path / "log"
    settings.CHECKPOINT_ROOT = tmp_path / "checkpoints"
    feed = a_feed("yard", lateness=5)
    feed_head_ensure(feed)
    IngestCounter.objects.create(feed=feed)
    query_register(owner=a_user(), feed=feed, name="gate", specification={"family": "border", "version": 1, "region": SQUARE}, alert_kinds=["in"])
    within = {"family": "transition", "version": 1, "region": SQUARE, "within": 15}
    query_register(owner=a_user(), feed=feed, name="stays", specification=within)
    return feed


def send(feed: Feed, rows: list[tuple[str, int, float]]) -> None:
    table = [{"event": "position", "entity": entity, "t": t, "x": x, "y": 1.0} for entity, t, x in rows]
    ingest(feed, Delivery(pa.Table.from_pylist(table, schema=row_schema(feed.engine_feed()))))


def processor(feed: Feed, settings: Any) -> FeedProcessor:
    head = FeedHead.objects.get(feed=feed)
    snapshots = Snapshots(files_of(Path(settings.CHECKPOINT_ROOT) / feed.name / "state"))
    made = FeedProcessor(feed.engine_feed(), event_log(feed.name), FeedStore(feed, head.epoch + 1), snapshots)
    made.follow()
    return made


def process(feed: Feed, settings: Any) -> None:
    processor(feed, settings).process()


def stored_state(feed: Feed) -> tuple[Any, ...]:
    rows = Detection.objects.filter(feed=feed, weight=1)
    return sorted((row.kind, tuple(row.entities), row.start, row.end) for row in rows), feed_counters(
        Feed.objects.select_related("head", "ingest_counter").get()
    )


def walk(seed: int, count: int = 60) -> list[tuple[str, int, float]]:
    chance = random.Random(seed)
    return [(chance.choice("ab"), 3 * n - chance.randrange(8), chance.choice([1.0, 5.0])) for n in range(count)]


@pytest.mark.parametrize(
    ("seed", "compacted", "taken", "at", "shared"),
    [
        (1, False, 60, 20, False),
        (2, True, 60, 20, False),
        (3, True, 31, 20, True),
        (4, False, 20, 20, False),
        (5, False, 60, 0, True),
    ],
)
def test_removing_wrong_rows_leaves_the_state_without_them(
    seed: int, compacted: bool, taken: int, at: int, shared: bool, feed: Feed, settings: Any, tmp_path: Path
) -> None:
    settings.VEDETTE_LOG_STORE = str(tmp_path / "store") if shared else ""
    rows = walk(seed)
    wrong = [*rows[:at], ("a", FAR, 5.0), *rows[at:30], ("b", FAR + 7, 1.0), *rows[30:]]
    for begin in range(0, len(wrong), 7):
        send(feed, wrong[begin : begin + 7])
    log = event_log(feed.name)
    running = processor(feed, settings)
    running.batch_rows = taken
    running.process()
    if compacted:
        log.compact(40)
    assert feed_audit(feed=feed).faults == [] and (taken == 20 or FeedHead.objects.get().late > 3)
    done = clock_set_back(feed=feed, to=1_000, reason="a clock eleven days fast")
    assert done.rows == 2
    assert feed_audit(feed=feed).faults == []
    assert log.end[0] == len(wrong) and log.end[1] == max(t for _, t, _ in rows)
    assert [s.rows for s in log.segments()][-1] >= len(wrong) - 41
    process(feed, settings)
    corrected = stored_state(feed)
    assert feed_audit(feed=feed).faults == []
    assert DeadLetter.objects.filter(reason="late").count() == corrected[1]["late"]
    assert [letter.row["t"] for letter in DeadLetter.objects.filter(reason="future").order_by("id")] == [FAR, FAR + 7]
    # The same rows without the wrong ones, on another feed.
    other = a_feed("other", lateness=5)
    feed_head_ensure(other)
    IngestCounter.objects.create(feed=other)
    for query in feed.queries.all():
        query_register(owner=a_user(), feed=other, name=query.name, specification=query.specification, alert_kinds=query.alert_kinds)
    send(other, rows)
    process(other, settings)
    expected = sorted((row.kind, tuple(row.entities), row.start, row.end) for row in Detection.objects.filter(feed=other, weight=1))
    assert corrected[0] == expected
    counters = feed_counters(Feed.objects.select_related("head", "ingest_counter").get(pk=other.pk))
    assert corrected[1] == {**counters, "dead": 2, "received": counters["received"] + 2}
    open_alerts = Alert.objects.filter(feed=feed).exclude(resolution="withdrawn")
    assert {(alert.start, tuple(alert.entities)) for alert in open_alerts} == {
        (alert.start, tuple(alert.entities)) for alert in Alert.objects.filter(feed=other)
    }


def test_the_command_asks_before_it_acts_and_is_recorded(feed: Feed, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Job.objects.update(desired_state="stopped")
    send(feed, [("a", 10, 5.0), ("a", FAR, 1.0), ("a", 20, 1.0), ("a", 40, 1.0)])
    process(feed, settings)
    call_command("clock", "yard")
    assert "is at 1970-01-12 00:00:00.000 UTC" in capsys.readouterr().out
    call_command("clock", "yard", "--to", "1970-01-01T00:00:01Z")
    assert "1 row beyond 1970-01-01 00:00:01.000 UTC would become dead letters" in capsys.readouterr().out
    call_command("clock", "yard", "--to", "1000", "--reason", "buoy 7", "--yes")
    assert "Dead letters now: 1 row." in capsys.readouterr().out
    entry = Entry.objects.get(action="feed.clock")
    assert (entry.object_name, entry.detail["to"], entry.detail["rows"], entry.detail["reason"]) == ("yard", 1000, 1, "buoy 7")
    assert event_log("yard").end == (4, 40)
    assert [(row.kind, row.start) for row in Detection.objects.filter(weight=1, kind="in")] == [("in", 20)]
    call_command("clock", "yard", "--to", "1000", "--yes")
    assert "nothing to do" in capsys.readouterr().out
