"""The publisher sends every outbox row in order, and positions; it survives outages
of everything that it uses."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import OperationalError, connection, transaction

from webapp.detections.services import outbox_append
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead
from webapp.live import access, positions
from webapp.live import publisher as publisher_module
from webapp.live.frames import group
from webapp.live.publisher import Publisher

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


class Reader:
    """A member of the feed's group."""

    def __init__(self, feed: int) -> None:
        self.layer = get_channel_layer()
        self.name = async_to_sync(self.layer.new_channel)()
        async_to_sync(self.layer.group_add)(group(feed), self.name)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The messages of that type that have arrived."""

        async def receive() -> list[dict[str, Any]]:
            found = []
            while True:
                try:
                    found.append(await asyncio.wait_for(self.layer.receive(self.name), 0.05))
                except TimeoutError:
                    return found

        return [message for message in async_to_sync(receive)() if message["type"] == kind]


@pytest.fixture
def publisher(feed: Feed) -> Iterator[Publisher]:
    made = Publisher()
    made.step()
    yield made
    connection.close()


@pytest.fixture
def reader(feed: Feed, publisher: Publisher) -> Reader:
    return Reader(feed.pk)


def test_the_publisher_forwards_changes_of_permissions(publisher: Publisher, reader: Reader, people: SimpleNamespace) -> None:
    async_to_sync(reader.layer.group_add)(access.GROUP, reader.name)
    publisher._wait()
    reader.all("access.changed")
    people.viewer.save(update_fields=["last_login"])
    publisher._wait()
    assert reader.all("access.changed") == []
    people.viewer.memberships.all().delete()
    publisher._wait()
    assert len(reader.all("access.changed")) == 1


def test_the_publisher_forwards_changes_of_permissions_after_reconnecting(publisher: Publisher, reader: Reader, people: SimpleNamespace) -> None:
    async_to_sync(reader.layer.group_add)(access.GROUP, reader.name)
    publisher._wait()
    reader.all("access.changed")
    connection.close_at = 0.0
    publisher._next_feeds = 0.0
    publisher.step()
    people.viewer.memberships.all().delete()
    publisher._wait()
    assert reader.all("access.changed"), "what was said between the two connections"
    people.operator.memberships.all().delete()
    publisher._wait()
    assert len(reader.all("access.changed")) == 1


def publish(feed: Feed, *numbers: int) -> None:
    for number in numbers:
        with transaction.atomic():
            outbox_append(feed_id=feed.pk, alerts=[{"id": number, "query": 7}])


def test_outbox_rows_are_published_once_in_order(feed: Feed, publisher: Publisher, reader: Reader) -> None:
    publish(feed, *range(50))
    publisher.step()
    publisher.step()
    chunks = [chunk for message in reader.all("feed.changes") for chunk in message["chunks"]]
    assert [chunk["seq"] for chunk in chunks] == list(range(1, 51))
    assert [[(query, json.loads(text)["id"]) for query, text in chunk["alerts"]] for chunk in chunks] == [[(7, number)] for number in range(50)]


def test_many_answers_are_split_into_messages_that_fit_a_frame(feed: Feed, publisher: Publisher, reader: Reader) -> None:
    for _ in range(6):
        with transaction.atomic():
            outbox_append(feed_id=feed.pk, detections=[{"id": n, "query": 7} for n in range(400)], alerts=[{"id": 1, "query": 7}])
    publisher.step()
    sent = [[chunk["seq"] for chunk in message["chunks"]] for message in reader.all("feed.changes")]
    assert sent == [[1, 2], [3, 4], [5, 6]], "a third row of the outbox would make them more than a thousand"


def test_quiet_feeds_cost_one_query_together(feed: Feed, publisher: Publisher, django_assert_num_queries: Any) -> None:
    for number in range(4):
        Feed.objects.create(name=f"quiet-{number}", owner=feed.owner)
    publisher._next_feeds = 0.0
    publisher.step()
    assert len(publisher.feeds) == 5
    publisher._next_status = time.monotonic() + 60
    with django_assert_num_queries(1):
        publisher.step()


def test_a_new_publisher_starts_at_the_head(feed: Feed, publisher: Publisher) -> None:
    publish(feed, 1, 2)
    other = Publisher()
    other.step()
    reader = Reader(feed.pk)
    publish(feed, 3)
    other.step()
    assert [chunk["seq"] for message in reader.all("feed.changes") for chunk in message["chunks"]] == [3]


def test_a_notification_wakes_the_publisher(feed: Feed, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "POLL_S", 30.0)
    monkeypatch.setattr(publisher_module, "POSITIONS_S", 30.0)
    waits: list[float] = []
    real = publisher_module.select.select

    def waiting(*arguments: Any) -> Any:
        if not waits:
            waits.append(0.0)
            connection_of_another(feed)
        return real(*arguments)

    monkeypatch.setattr(publisher_module.select, "select", waiting)
    publisher._wait()
    assert waits


def connection_of_another(feed: Feed) -> None:
    import threading

    def write() -> None:
        publish(feed, 1)
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()


def test_the_publisher_survives_an_outage_of_the_database(feed: Feed, publisher: Publisher, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(feed, 1)
    steps: list[str] = []
    real = publisher.step

    def step() -> None:
        steps.append("step")
        if len(steps) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        real()
        publisher.stopping.set()

    monkeypatch.setattr(publisher, "step", step)
    monkeypatch.setattr(publisher, "_wait", lambda: None)
    publisher.run()
    assert len(reader.all("feed.changes")) == 1


def test_positions_are_the_latest_of_each_entity_that_moved(
    feed: Feed, publisher: Publisher, reader: Reader, received: Callable[[Any, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "POSITIONS_S", 0.0)
    rows = [("a", 10, 1.0, 1.0), ("b", 11, 5.0, 5.0), ("a", 12, 2.0, 1.0)]
    received(feed, [{"entity": entity, "t": t, "x": x, "y": y} for entity, t, x, y in rows])
    publisher.tails[feed.pk]._next_send = 0.0
    publisher.step()
    (message,) = reader.all("feed.positions")
    assert (message["t"], sorted(message["entities"])) == (12, [["a", 2.0, 1.0, 12], ["b", 5.0, 5.0, 11]])
    received(feed, [{"entity": "a", "t": 11, "x": 9.0, "y": 9.0}, {"entity": "c", "t": 13, "x": None, "y": None}])
    publisher.step()
    assert reader.all("feed.positions") == [], "an older position and a row without one move no entity"


def test_the_state_of_a_feed_is_published(feed: Feed, publisher: Publisher, reader: Reader) -> None:
    FeedHead.objects.update(watermark=7, max_t=17)
    publisher._next_status = 0.0
    publisher.step()
    (message,) = reader.all("feed.status")
    assert (message["feed"], message["watermark"], message["max_t"]) == (feed.name, 7, 17)


def test_positions_are_kept_for_new_pages(feed: Feed, redis_url: str, settings: Any) -> None:
    settings.REDIS_URL = redis_url
    client = positions.client()
    assert client is not None
    positions.keep(client, feed.pk, 12, [["a", 2.0, 1.0, 12]])
    assert positions.latest(feed.pk) == {"t": 12, "entities": [["a", 2.0, 1.0, 12]]}
    client.flushall()
    assert positions.latest(feed.pk) == {"t": None, "entities": []}
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert positions.latest(feed.pk) == {"t": None, "entities": []}
