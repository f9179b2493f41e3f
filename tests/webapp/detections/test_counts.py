"""Counts of answers over time are exact after answers are stored, moved, retracted,
asserted again or deleted."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from tests.examples import examples
from tests.webapp.answers import a_feed, a_head, a_query, facts, match
from webapp.detections.counts import answer_counts
from webapp.detections.models import AnswerCount, Detection
from webapp.detections.services import detections_expire, detections_forget
from webapp.supervisor import sink

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

HOUR = 3_600_000
numbers = itertools.count()
times = st.integers(-2 * HOUR, 30 * HOUR) | st.sampled_from([-1, 0, 59_999, 60_000, HOUR - 1, HOUR])
changes = st.lists(st.tuples(st.sampled_from("ab"), times, st.sampled_from([1, 1, 1, -1])), max_size=12)


def total(feed: Any, query: Any, from_t: int, to_t: int, buckets: int) -> tuple[Counter[int], dict[str, Any]]:
    """Answers by the start of their bin."""
    found = json.loads(answer_counts(feed_id=feed.pk, query_ids=[query.pk], from_t=from_t, to_t=to_t, buckets=buckets))
    counted: Counter[int] = Counter()
    for kinds in found["counts"].values():
        for rows in kinds.values():
            for place, count in rows:
                counted[found["from"] + place * found["width"]] += count
    return counted, found


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(changes, max_size=4), from_t=times, span=st.integers(1, 40 * HOUR), buckets=st.integers(1, 300))
def test_the_counts_are_those_of_the_stored_answers(batches: list[Any], from_t: int, span: int, buckets: int) -> None:
    feed = a_feed(f"yard-{next(numbers)}")
    a_head(feed)
    query = a_query(feed)
    for number, batch in enumerate(batches):
        rows = [{**match(query, entity, t, t + 5), "weight": weight} for entity, t, weight in batch]
        sink.commit(sink.FencedWrite(feed_id=feed.pk, epoch=1, checkpoint=1, batch=number, facts=facts(rows)), timeout_s=5)
        counted, found = total(feed, query, from_t, from_t + span, buckets)
        assert found["from"] <= from_t and from_t + span <= found["to"] and (found["to"] - found["from"]) % found["width"] == 0
        stored = Detection.objects.filter(feed=feed, weight=1, start__gte=found["from"], start__lt=found["to"]).values_list("start", flat=True)
        assert counted == Counter(start // found["width"] * found["width"] for start in stored)
    detections_forget(feed_id=feed.pk)
    assert not AnswerCount.objects.filter(feed_id=feed.pk).exclude(count=0).exists()
    detections_expire()
    assert not AnswerCount.objects.filter(feed_id=feed.pk).exists()


def test_only_queries_that_the_reader_may_see_are_counted(people: SimpleNamespace, query: Any, client_of: Callable[..., APIClient]) -> None:
    address = f"/api/v1/detections/counts?feed={query.feed.name}&from=0&to=100"
    assert client_of(people.owner).get(address).json() == {"from": 0, "to": 100, "width": 1, "counts": {}}
    assert client_of(people.stranger).get(address).status_code == 404
    whole = client_of(people.owner).get(f"/api/v1/detections/counts?feed={query.feed.name}&from={-(2**63)}&to={2**63 - 2}").json()
    assert whole["from"] <= -(2**61) and 2**61 <= whole["to"] < 2**62
    for wrong in ("from=5&to=5", "from=x&to=9", "to=9", "from=1&to=2&buckets=z"):
        assert client_of(people.owner).get(f"/api/v1/detections/counts?feed={query.feed.name}&{wrong}").status_code == 400
