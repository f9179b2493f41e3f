"""Following answers: a follower sees every change exactly once and in order with concurrent
writers, whenever it stops and continues."""

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from tests.webapp.answers import a_head, crossing, facts, interval
from webapp.detections.models import Detection, Outbox
from webapp.detections.services import outbox_append, outbox_expire
from webapp.feeds.models import Feed
from webapp.jobs.models import FeedHead
from webapp.queries.models import Query
from webapp.supervisor import sink

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]
Client = Callable[..., APIClient]
BATCHES = 25


def store(feed: Feed, rows: list[dict[str, Any]], batch: int) -> None:
    sink.commit(sink.FencedWrite(feed_id=feed.pk, epoch=1, checkpoint=1, batch=batch, facts=facts(rows)), timeout_s=5)


def changes(client: APIClient, after: int, **asked: Any) -> Any:
    return client.get("/api/v1/detections/", {"feed": "yard", "after": after, **asked})


def revisions(query: Query, seed: int) -> list[list[dict[str, Any]]]:
    """Batches of answers that are asserted, extended, retracted, and asserted again."""
    chance = random.Random(seed)
    ends: dict[tuple[str, int], int | None] = {}
    batches = []
    for _ in range(BATCHES):
        rows = []
        for entity, start in {(chance.choice("abc"), chance.randrange(5)) for _ in range(chance.randrange(4))}:
            known = (entity, start) in ends
            if known:
                rows.append(interval(query, entity, start, ends.pop((entity, start)), weight=-1))
            if not known or chance.random() < 0.6:
                end = chance.choice([None, start + chance.randrange(1, 9)])
                rows.append(interval(query, entity, start, end))
                ends[entity, start] = end
        batches.append(rows)
    return batches


@pytest.mark.parametrize("seed", range(3))
def test_a_follower_sees_every_change_once_beside_concurrent_writers(
    seed: int, feed: Feed, query: Query, people: SimpleNamespace, client_of: Client
) -> None:
    a_head(feed)
    done = threading.Event()

    def write() -> None:
        for batch, rows in enumerate(revisions(query, seed)):
            store(feed, rows, batch)
        connections.close_all()

    def publish() -> None:
        # Another writer to the outbox: numbers without answers.
        while not done.wait(0.01):
            with transaction.atomic():
                outbox_append(feed_id=feed.pk, alerts=[{"id": 1}])
        connections.close_all()

    writers = [threading.Thread(target=write), threading.Thread(target=publish)]
    for writer in writers:
        writer.start()
    chance = random.Random(seed)
    seen: list[tuple[int, str, int, int | None]] = []
    held: dict[str, int | None] = {}
    after, finished = 0, False
    while not finished:
        finished = not writers[0].is_alive()
        if finished:
            done.set()
            writers[1].join()
        # Each request is from a program that has just started and knows only its number.
        answer = changes(client_of(people.owner), after, page_size=chance.choice([1, 3, 1000])).json()
        finished = finished and not answer["more"]
        for one in answer["results"]:
            assert after < one["seq"] <= answer["seq"]
            seen.append((one["seq"], one["id"], one["weight"], one["end"]))
            if one["weight"] > 0:
                held[one["id"]] = one["end"]
            else:
                held.pop(one["id"], None)
        after = answer["seq"]
    published = [(row.seq, one["id"], one["weight"], one["end"]) for row in Outbox.objects.order_by("seq") for one in row.payload["detections"]]
    assert seen == published
    assert after == FeedHead.objects.get().outbox_seq
    assert held == {bytes(row.key).hex(): row.end for row in Detection.objects.filter(weight=1)}
    assert any(weight < 1 for _, _, weight, _ in seen)


def test_filters_of_a_follower_do_not_change_the_numbering(feed: Feed, query: Query, people: SimpleNamespace, client_of: Client) -> None:
    a_head(feed)
    store(feed, [crossing(query, "a", 1), crossing(query, "b", 1, kind="out")], 0)
    store(feed, [crossing(query, "a", 2, kind="out")], 1)
    client = client_of(people.owner)
    whole = changes(client, 0).json()
    assert (whole["after"], whole["seq"], whole["more"], len(whole["results"])) == (0, 2, False, 3)
    only = changes(client, 0, entity="b").json()
    assert (only["seq"], [one["entities"] for one in only["results"]]) == (2, [["b"]])
    either = changes(client, 0, entity=["a", "b"]).json()["results"]
    assert [one["entities"] for one in either] == [["a"], ["b"], ["a"]]
    assert [one["start"] for one in changes(client, 0, kind="out", query=query.pk).json()["results"]] == [1, 2]
    assert changes(client, 2).json() == {"after": 2, "seq": 2, "more": False, "results": []}
    assert changes(client_of(people.stranger), 0).status_code == 404
    Query.objects.update(team=None)
    assert changes(client_of(people.viewer), 0).json()["results"] == [], "the feed is theirs to see, the query is not"


def test_a_number_that_is_expired_or_in_the_future_is_refused_with_the_remedy(
    feed: Feed, query: Query, people: SimpleNamespace, client_of: Client
) -> None:
    a_head(feed)
    store(feed, [crossing(query, "a", 1)], 0)
    store(feed, [crossing(query, "a", 2)], 1)
    client = client_of(people.owner)
    ahead = changes(client, 3)
    assert (ahead.status_code, "has reached number 2" in ahead.json()["faults"][0]["message"]) == (400, True)
    assert changes(client, 0, order="start", **{"from": 3}).json()["faults"][0]["pointer"] == "/from"
    assert changes(client, -1).status_code == 400
    Outbox.objects.filter(seq=1).update(created_at=timezone.now() - timedelta(hours=2))
    outbox_expire()
    gone = changes(client, 0)
    assert (gone.status_code, "continue after 2" in gone.json()["faults"][0]["message"]) == (410, True)
    assert changes(client, 1).json()["seq"] == 2
