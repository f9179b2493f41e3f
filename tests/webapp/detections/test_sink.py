"""The one transaction of a batch: each batch once, in one epoch, outbox without gaps."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection, transaction
from django.db.utils import OperationalError

from engine.families import REVISED
from engine.model.events import HEARTBEAT
from tests.webapp.answers import a_feed, a_head, a_query, crossing, facts, interval, match
from webapp.alerts.models import Alert
from webapp.detections.models import Detection, Outbox
from webapp.detections.partitions import FIRST, LAST, SPAN, partitions_ensure, partitions_list, span_of
from webapp.detections.services import CHUNK, detections_expire, outbox_append
from webapp.feeds.models import DeadLetter, Feed
from webapp.jobs.models import FeedHead
from webapp.queries.models import Query
from webapp.supervisor import sink

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def feed() -> Feed:
    feed = a_feed()
    a_head(feed)
    return feed


@pytest.fixture
def query(feed: Feed) -> Query:
    return a_query(feed, alert_kinds=["in", "near"])


def store(feed: Feed, rows: list[dict[str, Any]], batch: int | None = 0, **changes: Any) -> bool:
    work = {"feed_id": feed.pk, "epoch": 1, "checkpoint": 1, "batch": batch, "facts": facts(rows), **changes}
    return sink.commit(sink.FencedWrite(**work), timeout_s=5)


def test_a_batch_is_stored_with_its_alerts_outbox_and_head(feed: Feed, query: Query) -> None:
    assert store(feed, [crossing(query, "car", 10), crossing(query, "bus", 11, kind="out")], progress={"last_seq": 7}, added={"processed": 8})
    rows = Detection.objects.order_by("start")
    assert [(row.kind, row.entities, row.start, row.end, row.weight, row.seq) for row in rows] == [
        ("in", ["car"], 10, 10, 1, 1),
        ("out", ["bus"], 11, 11, 1, 1),
    ]
    assert [item["seq"] for item in rows[0].evidence] == [0, 1]
    published = Outbox.objects.get().payload
    assert [d["id"] for d in published["detections"]] == [bytes(row.key).hex() for row in rows]
    assert [a["entities"] for a in published["alerts"]] == [["car"]]
    head = FeedHead.objects.get()
    assert (head.last_batch, head.last_seq, head.outbox_seq, head.processed) == (0, 7, 1, 8)


def test_a_replayed_batch_changes_nothing(feed: Feed, query: Query) -> None:
    assert store(feed, [crossing(query, "car", 10)], batch=3)
    before = FeedHead.objects.values().get()
    assert not store(feed, [crossing(query, "car", 10)], batch=3, added={"processed": 1})
    assert not store(feed, [crossing(query, "car", 12)], batch=2)
    assert FeedHead.objects.values().get() == before
    assert Detection.objects.count() == Outbox.objects.count() == Alert.objects.count() == 1


def test_a_new_checkpoint_counts_its_batches_from_zero_again(feed: Feed, query: Query) -> None:
    assert store(feed, [crossing(query, "car", 10)], batch=3)
    assert store(feed, [crossing(query, "car", 12)], batch=0, checkpoint=2)
    assert Detection.objects.count() == 2


def test_an_older_epoch_cannot_write(feed: Feed, query: Query) -> None:
    FeedHead.objects.update(epoch=2)
    with pytest.raises(sink.Fenced):
        store(feed, [crossing(query, "car", 10)])
    assert not Detection.objects.exists()
    assert not Outbox.objects.exists()


def test_the_end_of_an_interval_updates_its_row_in_any_order_of_changes(feed: Feed, query: Query) -> None:
    store(feed, [interval(query, "car", 5, None)])
    store(feed, [interval(query, "car", 5, 9), interval(query, "car", 5, None, weight=-1)], batch=1)
    row = Detection.objects.get()
    assert (row.start, row.end, row.weight, row.seq) == (5, 9, 1, 2)
    assert Alert.objects.count() == 1


def test_a_match_with_its_witness_that_ends_is_one_row_and_one_alert(feed: Feed) -> None:
    query = a_query(feed, name="tour", alert_kinds=["match"])
    store(feed, [match(query, "car", 5, None)])
    opened = Alert.objects.get()
    store(feed, [match(query, "car", 5, None, weight=-1), match(query, "car", 5, 9)], batch=1)
    assert [(row.start, row.end, row.weight) for row in Detection.objects.all()] == [(5, 9, 1)]
    ended = Alert.objects.get()
    assert (ended.pk, ended.end, ended.resolution) == (opened.pk, 9, "ended")


@pytest.mark.parametrize("kind", sorted(REVISED))
def test_an_interval_whose_value_and_evidence_are_revised_is_one_row_and_one_alert(feed: Feed, kind: str) -> None:
    """A pair that comes nearer, a crowd that grows, an arrival that is postponed:
    each stays the same answer."""
    query = a_query(feed, name="soon", alert_kinds=[kind])
    first = match(query, "car", 5, None) | {"kind": kind, "score": 30.0}
    nearer = first | {"score": 20.0, "evidence": [item | {"t": 7, "seq": 9} for item in first["evidence"]]}
    store(feed, [first])
    store(feed, [first | {"weight": -1}, nearer], batch=1)
    opened = Alert.objects.get()
    assert [(row.start, row.end, row.score, row.weight) for row in Detection.objects.all()] == [(5, None, 20.0, 1)]
    store(feed, [nearer | {"weight": -1}, nearer | {"end": 9}], batch=2)
    assert [(row.start, row.end, row.weight) for row in Detection.objects.all()] == [(5, 9, 1)]
    ended = Alert.objects.get()
    assert (ended.pk, ended.end, ended.resolution) == (opened.pk, 9, "ended")


def test_a_match_found_in_history_that_ends_now_opens_no_alert(feed: Feed) -> None:
    query = a_query(feed, name="tour", alert_kinds=["match"])
    store(feed, [match(query, "car", 5, None)], batch=None, backfill=True)
    store(feed, [match(query, "car", 5, None, weight=-1), match(query, "car", 5, 9)])
    assert [(row.start, row.end, row.weight) for row in Detection.objects.all()] == [(5, 9, 1)]
    assert not Alert.objects.exists()


def test_a_retracted_fact_stays_with_weight_zero_and_is_published(feed: Feed, query: Query) -> None:
    store(feed, [interval(query, "car", 5, 9)])
    store(feed, [interval(query, "car", 5, 9, weight=-1)], batch=1)
    assert Detection.objects.get().weight == 0
    assert Outbox.objects.get(seq=2).payload["detections"][0]["weight"] == -1


def test_an_interval_that_grows_is_one_row(feed: Feed, query: Query) -> None:
    store(feed, [interval(query, "car", 5, 9)])
    store(feed, [interval(query, "car", 5, 9, weight=-1), interval(query, "car", 5, 12)], batch=1)
    assert [(d.end, d.weight) for d in Detection.objects.all()] == [(12, 1)]


def test_history_is_stored_without_alerts(feed: Feed, query: Query) -> None:
    assert store(feed, [crossing(query, "car", 10), interval(query, "bus", 5, None)], batch=None, backfill=True)
    assert store(feed, [interval(query, "bus", 5, None, weight=-1), interval(query, "bus", 5, 20)])
    assert {row.backfill for row in Detection.objects.all()} == {True}
    assert Outbox.objects.get(seq=1).payload["detections"][0]["backfill"] is True
    assert not Alert.objects.exists()


def test_many_detections_go_out_in_chunks_with_dense_numbers(feed: Feed, query: Query) -> None:
    store(feed, [crossing(query, f"car-{i}", i) for i in range(2 * CHUNK + 1)])
    assert [(row.seq, len(row.payload["detections"])) for row in Outbox.objects.all()] == [(1, CHUNK), (2, CHUNK), (3, 1)]
    for row in Outbox.objects.all():
        keys = {d["id"] for d in row.payload["detections"]}
        assert {bytes(d.key).hex() for d in Detection.objects.filter(seq=row.seq)} == keys


def test_late_rows_become_dead_letters_with_the_reason(feed: Feed) -> None:
    late = pa.table({"entity": ["car"], "t": [5], "seq": [9], "clock": [50]})
    store(feed, [], late=late, added={"late": 1})
    letter = DeadLetter.objects.get()
    assert (letter.reason, letter.row) == ("late", {"entity": "car", "t": 5})
    assert "45 ms behind the newest row: the feed allows" in letter.detail
    assert FeedHead.objects.get().late == 1


def test_late_heartbeats_are_no_dead_letters(feed: Feed) -> None:
    """Nobody sent them, and nobody could correct them."""
    late = pa.table({"entity": [HEARTBEAT, "car"], "event": [HEARTBEAT, None], "t": [5, 6], "seq": [9, 10], "clock": [50, 50]})
    store(feed, [], late=late, added={"late": 2})
    assert DeadLetter.objects.get().row == {"entity": "car", "event": None, "t": 6}
    assert FeedHead.objects.get().late == 2


def test_unusual_texts_are_stored_unchanged(feed: Feed, query: Query) -> None:
    name = 'a"b\\c\t{d},\n\\N ünï\x00'
    store(feed, [crossing(query, name, 1)])
    row = Detection.objects.get()
    assert row.entities == [name.replace("\x00", "\ufffd")]
    assert row.evidence[0]["entity"] == Outbox.objects.get().payload["detections"][0]["entities"][0] == row.entities[0]


def test_a_commit_with_unknown_outcome_that_succeeded_is_not_repeated(feed: Feed, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction is committed, but its response is lost: the head row
    shows that it was committed."""
    lost = iter([True])

    def lose_answer(name: str) -> None:
        if name == "sink.after_commit" and next(lost, False):
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(sink, "failpoint", lose_answer)
    assert store(feed, [crossing(query, "car", 10)], batch=None, added={"processed": 1})
    assert FeedHead.objects.get().processed == 1
    assert Outbox.objects.count() == 1


def test_a_commit_that_failed_is_repeated(feed: Feed, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([True, True])

    def fail(name: str) -> None:
        if name == "sink.before_commit" and next(failures, False):
            raise OperationalError("the database system is shutting down")

    monkeypatch.setattr(sink, "failpoint", fail)
    assert store(feed, [crossing(query, "car", 10)], added={"processed": 1})
    assert FeedHead.objects.get().processed == 1
    assert Detection.objects.count() == 1


def test_the_job_gives_up_after_a_long_outage_of_the_database(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise OperationalError("no")

    monkeypatch.setattr(sink, "failpoint", fail)
    with pytest.raises(sink.DatabaseUnavailable):
        sink.commit(sink.FencedWrite(feed.pk, 1, 1, 0), timeout_s=0.3)


def test_outbox_numbers_have_no_gaps_with_several_writers(feed: Feed, query: Query) -> None:
    """Concurrent batches and acknowledgements; some transactions are rolled back."""

    def acknowledge(i: int) -> None:
        try:
            with transaction.atomic():
                outbox_append(feed_id=feed.pk, alerts=[{"id": i}])
                if i % 3 == 0:
                    raise RuntimeError("rolled back")
        except RuntimeError:
            pass
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(acknowledge, i) for i in range(40)]
        for batch in range(10):
            store(feed, [crossing(query, "car", batch, seq=batch)], batch=batch)
        for future in futures:
            future.result()
    seqs = list(Outbox.objects.values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1)) == list(range(1, FeedHead.objects.get().outbox_seq + 1))
    assert len(seqs) == 10 + 26


def test_partitions_cover_spans_and_extreme_times_share_one() -> None:
    assert [span_of(t) for t in (-1, 0, SPAN - 1, SPAN, 2**62, -(2**62))] == [-1, 0, 0, 1, LAST + 1, FIRST - 1]
    partitions_ensure([-1, 0, LAST + 1, FIRST - 1, 0])
    partitions_ensure([0, 1])
    assert set(partitions_list()) >= {FIRST - 1, -1, 0, 1, LAST + 1}


def test_answers_older_than_the_retention_are_deleted(feed: Feed, query: Query) -> None:
    day = 86_400_000
    store(feed, [crossing(query, "car", 10), crossing(query, "car", 30 * day), interval(query, "bus", 10, None)], progress={"max_t": 31 * day})
    detections_expire()
    assert sorted(d.start for d in Detection.objects.all()) == [10, 30 * day]


def test_payloads_are_json_with_scores_as_values(feed: Feed, query: Query) -> None:
    row = {**interval(query, "car", 1, None), "value": None, "score": 2.5}
    store(feed, [row])
    published = Outbox.objects.get().payload["detections"][0]
    assert (published["value"], published["evidence"], published["end"]) == (2.5, None, None)
    assert json.dumps(published)
