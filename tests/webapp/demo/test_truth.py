"""The answers of demo queries compared with the ground truth."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rest_framework.test import APIClient

from tests.webapp.answers import a_head
from tests.webapp.detections.test_api import put
from webapp.demo.simulation.world import TruthEvent
from webapp.demo.simulation.worlds import WORLDS, world
from webapp.demo.truth import PAUSE_MS, compare, pauses
from webapp.feeds.models import Feed
from webapp.feeds.recent import log_of
from webapp.feeds.services import feed_create
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]
NOW = 1_763_700_000_000
HOUR = 3_600_000


def test_missed_and_wrong_answers_are_counted(query: Query) -> None:
    theft, later = (TruthEvent("theft", (tag,), None, NOW, NOW + 1000) for tag in ("a", "b"))
    right, wrong, again = put(query, "a", NOW, NOW + 900), put(query, "z", NOW, NOW), put(query, "a", NOW + HOUR, NOW + HOUR)
    score = compare([theft, later], [theft, later], [right, wrong, again])
    assert (score.happened, score.found, score.reported, score.right) == (2, 1, 3, 1)
    assert score.missed == (later,)
    assert score.wrong == (bytes(wrong.key).hex(), bytes(again.key).hex())
    assert (score.as_row()["precision"], score.as_row()["recall"]) == (1 / 3, 1 / 2)


def test_an_answer_without_entities_is_about_those_in_its_evidence(query: Query) -> None:
    pallet = TruthEvent("unescorted", ("pallet",), None, NOW, NOW)
    answer = put(query, "", NOW, NOW, evidence=[{"variable": "P", "entity": "pallet", "t": NOW, "x": None, "y": None}])
    assert compare([pallet], [pallet], [answer]).found == 1


def ocean(people: SimpleNamespace) -> tuple[Feed, Query]:
    feed = feed_create(owner=people.owner, name="ocean", title="Ocean", crs="geographic", time="ms", lateness=0, wall_clock=True, team=people.harbour)
    Feed.objects.filter(pk=feed.pk).update(created_at="2025-11-01T00:00Z")
    query = Query.objects.create(
        feed=feed, name="Pressure falls, then warm air nearby", owner=people.owner, team=people.harbour, family="constraint", specification={}
    )
    head = a_head(feed)
    head.watermark = NOW
    head.save()
    return feed, query


def settled_fronts() -> list[TruthEvent]:
    fronts = [one for one in world("ocean").truth(NOW - 3 * HOUR, NOW) if one.kind == "front"]
    return [one for one in fronts if one.start >= NOW - 3 * HOUR and one.end < NOW - 60_000]


def sent(feed: Feed, start: int, end: int) -> None:
    """Appends the buoys' reports from `start` up to `end` to the log, as the simulator's rows."""
    rows = world("ocean").rows(start, end)
    log_of(feed).append(rows.append_column("event", pa.array(["position"] * rows.num_rows)))


def test_the_page_shows_how_good_the_demo_is(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    feed, query = ocean(people)
    sent(feed, NOW - 3 * HOUR, NOW)
    settled = settled_fronts()
    for front in settled[1:]:
        put(query, front.entities[0], front.start, front.end)
    (score,) = scores(client_of(people.viewer), "ocean")
    assert (score["kind"], score["happened"], score["found"], score["precision"]) == ("front", len(settled), len(settled) - 1, 1.0)
    assert score["missed"][0]["start"] == settled[0].start


def test_answers_missed_while_the_simulator_paused_are_not_counted(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    feed, query = ocean(people)
    first, second, *others = settled_fronts()
    # Stopped during the first front, started again half an hour later; heartbeats continued.
    stopped, started = first.start + 60_000, first.start + 30 * 60_000
    sent(feed, NOW - 3 * HOUR, stopped)
    log_of(feed).append(pa.table({"event": ["$heartbeat"] * 2, "entity": ["$heartbeat"] * 2, "t": [stopped + 300_000, started - 300_000]}))
    sent(feed, started, NOW)
    (pause,) = pauses(feed, NOW - 3 * HOUR, NOW)
    assert stopped - PAUSE_MS < pause[0] < stopped and started <= pause[1] < started + PAUSE_MS
    afterwards = [one for one in others if one.start > pause[1]]
    assert len(afterwards) >= 2 and second.start < pause[1]
    # Of the events after the pause one was reported, and one of those that the pause interrupted.
    for front in (afterwards[0], second):
        put(query, front.entities[0], front.start, front.end)
    (score,) = scores(client_of(people.viewer), "ocean")
    assert (score["happened"], score["found"]) == (len(afterwards) + 1, 2)
    assert [one["start"] for one in score["missed"]] == [one.start for one in afterwards[1:]]


def test_no_demo_feed_is_silent_as_long_as_a_pause() -> None:
    for name in WORLDS:
        times = np.unique(world(name).rows(NOW, NOW + 150_000).column("t").to_numpy())
        assert np.diff([NOW, *times.tolist(), NOW + 150_000]).max() < PAUSE_MS, name


def test_a_feed_without_rows_counts_as_silent(people: SimpleNamespace) -> None:
    feed, _ = ocean(people)
    assert pauses(feed, NOW - HOUR, NOW) == [(NOW - HOUR, NOW)]


def test_each_kind_of_answer_is_compared_with_its_kind_of_truth(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    feed, query = ocean(people)
    Feed.objects.filter(pk=feed.pk).update(name="plaza")
    Query.objects.filter(pk=query.pk).update(name="What people do")
    query.refresh_from_db()
    fight, bag = (next(one for one in world("plaza").truth(NOW - HOUR, NOW) if one.kind == kind) for kind in ("fight", "left-object"))
    put(query, fight.entities[0], fight.start, fight.end, kind="fighting")
    put(query, bag.entities[0], bag.start, bag.end, kind="fighting")
    found = {score["kind"]: (score["found"], score["reported"], score["right"]) for score in scores(client_of(people.viewer), "plaza")}
    assert found == {"greeting": (0, 0, 0), "meeting": (0, 0, 0), "moving": (0, 0, 0), "fight": (1, 2, 1), "left-object": (0, 0, 0)}


def test_ground_truth_is_shown_only_for_visible_demo_feeds(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    ocean(people)
    assert scores(client_of(people.viewer), "yard") == []
    assert client_of(people.stranger).get("/api/v1/detections/scores?feed=ocean").status_code == 404


def scores(client: APIClient, feed: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/detections/scores?feed={feed}&minutes=180")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["scores"]
    return found
