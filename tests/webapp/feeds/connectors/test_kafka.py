"""Kafka in both directions, with a real broker and killed processes: rows arrive exactly once, and
a topic holds the stored answers."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from django.utils import timezone
from rest_framework.test import APIClient

from engine.sinks.live import Keyed, Sink
from engine.sinks.live.kinds import sink_kinds
from engine.sources.live import SourceUnavailable
from tests.engine.sources.live.brokers import KafkaBroker
from tests.engine.sources.live.loopback import Loopback
from tests.topics import messages_of
from tests.webapp.answers import a_head, interval
from tests.webapp.detections.test_changes import revisions, store
from tests.webapp.feeds.connectors.lives import begun
from tests.webapp.feeds.connectors.test_connectors import rows_of, running, wait_for
from webapp.connectors.services import connector_create
from webapp.detections.models import Detection, Outbox
from webapp.detections.services import outbox_expire
from webapp.feeds.models import Connector, Feed
from webapp.jobs.models import FeedHead
from webapp.queries.models import Query
from webapp.queries.services import query_register

pytestmark = [pytest.mark.slow, pytest.mark.services, pytest.mark.django_db(transaction=True)]
END_S = 90.0
Records = dict[bytes, list[tuple[int, Any]]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    one = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    one.start()
    yield one
    one.stop(kill=True)


@pytest.fixture(autouse=True)
def allowed(settings: Any, tmp_path: Path) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    settings.EVENT_LOG_ROOT = tmp_path / "log-of-events"


def client_of_broker(broker: KafkaBroker) -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 0}


def topic_of(broker: KafkaBroker, name: str, partitions: int) -> AdminClient:
    admin = AdminClient(client_of_broker(broker))
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(END_S)
    return admin


@contextmanager
def connecting(var: Path, *killed_at: str) -> Iterator[subprocess.Popen[bytes]]:
    """The connector process, which dies at failpoints if it does not end before."""
    child = begun(var, killed_at)
    try:
        yield child
    finally:
        child.kill()
        child.wait(20)


def die(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    assert child.wait(20) == -signal.SIGKILL


def test_a_topic_is_read_exactly_once_by_two_processes_through_kills_and_new_partitions(broker: KafkaBroker, feed: Feed, tmp_path: Path) -> None:
    admin = topic_of(broker, "fleet", 3)
    producer = Producer({**client_of_broker(broker), "queue.buffering.max.messages": 1_000_000})

    def send(numbers: range, **more: Any) -> None:
        for n in numbers:
            producer.produce("fleet", json.dumps({"t": 1_000, "x": 1, "y": 2, "speed": n}), f"van{n % 7}", **more)
        assert producer.flush(END_S) == 0

    send(range(12_000))
    connector_create(feed=feed, name="fleet", kind="kafka", settings={"servers": f"127.0.0.1:{broker.port}", "topic": "fleet"})
    # The first has stored the rows of its second batch and dies before it records that;
    # the other waits until then.
    with connecting(tmp_path, "ingest.after_append=kill@2") as first, connecting(tmp_path, "ingest.after_append=kill@2") as second:
        wait_for(lambda: first.poll() is not None or second.poll() is not None, "one of them is killed")
        admin.create_partitions([NewPartitions("fleet", 5)])["fleet"].result(END_S)
        while 4 not in producer.list_topics("fleet", END_S).topics["fleet"].partitions:
            pass
        send(range(12_000, 12_300), partition=3)
        send(range(12_300, 12_500), partition=4)
        other = first if second.poll() is not None else second
        wait_for(lambda: Connector.objects.get().messages >= 8_000, "the other one continues")
        die(other)
    with running():
        wait_for(lambda: Connector.objects.get().messages == 12_500, "the next one continues")
    assert Counter(row["speed"] for row in rows_of("yard")) == Counter(range(12_500))
    connector = Connector.objects.get()
    assert (connector.rows, connector.dead, sum(connector.offset.values()), len(connector.offset)) == (12_500, 0, 12_500, 5)


def records_in(broker: KafkaBroker, topic: str, partitions: int) -> Records:
    """The content of the topic: for each key its numbers and values, in order."""
    found: Records = {}
    for message in messages_of(client_of_broker(broker), topic, partitions):
        value = message.value()
        found.setdefault(message.key(), []).append((int(dict(message.headers())["seq"]), None if value is None else json.loads(value)))
    return found


def held(records: Records) -> dict[str, int | None]:
    """The state of a consumer that keeps the last record of each key."""
    return {key.decode(): last[-1][1]["end"] for key, last in records.items() if last[-1][1] is not None}


def stored(query: Query) -> dict[str, int | None]:
    return {bytes(one.key).hex(): one.end for one in Detection.objects.filter(weight=1, query=query)}


def sent(pk: int) -> bool:
    offset = Connector.objects.get(pk=pk).offset
    return offset == {"seq": FeedHead.objects.get().outbox_seq}


def test_a_topic_holds_the_stored_answers_after_kills(
    broker: KafkaBroker, feed: Feed, query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient], tmp_path: Path
) -> None:
    a_head(feed)
    batches = revisions(query, 3)
    hidden = query_register(owner=people.owner, feed=feed, name="mine", specification=query.versions.get().specification)
    for batch, rows in enumerate(batches[:9]):
        store(feed, rows, batch)
    store(feed, [interval(hidden, "secret", 1, None)], 9)
    client = client_of(people.operator)
    settings = {"servers": f"127.0.0.1:{broker.port}", "topic": "answers"}
    body = {"feed": "yard", "kind": "kafka-answers", "settings": settings}
    assert "cannot be used" in client.post("/api/v1/connectors/trial", body).json()["faults"][0]["message"], "there is no such topic yet"
    topic_of(broker, "answers", 2)
    assert "partitions: 2" in client.post("/api/v1/connectors/trial", body).json()["said"]
    refused = client.post("/api/v1/connectors/", {**body, "name": "out", "settings": {**settings, "queries": f"{query.pk}, {hidden.pk}"}})
    assert refused.json()["faults"][0] == {"pointer": "/settings/queries", "message": f"The feed has no query {hidden.pk} that you may see."}
    made = client.post("/api/v1/connectors/", {**body, "name": "out"}).json()

    # The message was written, but that is not recorded: it comes again.
    with connecting(tmp_path, "connector.after_write=kill") as child:
        wait_for(lambda: child.poll() is not None, "it is killed")
    assert Connector.objects.get().offset["after"] == "" and held(records_in(broker, "answers", 2)) == stored(query)
    with connecting(tmp_path) as child:
        for batch, rows in enumerate(batches[9:18], 10):
            store(feed, rows, batch)
        wait_for(lambda: sent(made["id"]), "all is sent")
        die(child)
    assert held(records_in(broker, "answers", 2)) == stored(query)

    # Away until changes, some of them retractions, have expired: all stored answers come again, and
    # retracted ones without a value.
    for batch, rows in enumerate(batches[18:], 19):
        store(feed, rows, batch)
    Outbox.objects.update(created_at=timezone.now() - timedelta(days=30))
    outbox_expire()
    with running():
        wait_for(lambda: sent(made["id"]), "it continues")
    found = records_in(broker, "answers", 2)
    assert held(found) == stored(query) and b"secret" not in json.dumps(str(found)).encode()
    assert any(value is None for versions in found.values() for _, value in versions), "what was taken back is a record without a value"
    one = next(value for versions in found.values() for _, value in versions if value is not None)
    assert one["feed"] == "yard" and {"id", "query", "version", "kind", "entities", "start", "end", "seq"} <= one.keys()


def test_messages_of_a_former_process_cannot_overtake_newer_ones(broker: KafkaBroker) -> None:
    topic_of(broker, "fenced", 1)
    kind = sink_kinds()["kafka-answers"]
    settings = {field.name: field.default for field in kind.fields} | {"servers": f"127.0.0.1:{broker.port}", "topic": "fenced"}
    with closing(kind.open(settings, Loopback(), "one")) as stale:
        stale.write([Keyed("a", "1", 1)])
        with closing(kind.open(settings, Loopback(), "one")) as fresh:
            fresh.write([Keyed("a", "3", 3)])
            with pytest.raises(SourceUnavailable):
                stale.write([Keyed("a", "2", 2)])
    assert records_in(broker, "fenced", 1) == {b"a": [(1, 1), (3, 3)]}


def test_an_idle_sink_notices_that_its_topic_is_gone(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sinks.live.kafka.CHECK_S", 0.0)
    admin = topic_of(broker, "brief", 1)
    kind = sink_kinds()["kafka-answers"]
    settings = {field.name: field.default for field in kind.fields} | {"servers": f"127.0.0.1:{broker.port}", "topic": "brief"}
    with closing(kind.open(settings, Loopback(), "one")) as sink:
        sink.check()
        admin.delete_topics(["brief"])["brief"].result(END_S)
        with pytest.raises(SourceUnavailable, match="brief cannot be used"):
            check_until_it_fails(sink)


def check_until_it_fails(sink: Sink) -> None:
    end = time.monotonic() + END_S
    while time.monotonic() < end:
        sink.check()
        time.sleep(0.1)
