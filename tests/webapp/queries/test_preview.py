"""Previews: the engine's answers on the newest part of the log, in a process that can be killed."""

from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.webapp.conftest import BORDER
from webapp.accounts.services import token_create
from webapp.cage import slots
from webapp.cage.warm_pool import ENGINE
from webapp.feeds.logs import folder_of_logs
from webapp.queries import preview as previews
from webapp.queries.api import checked_for_trial
from webapp.queries.caged import Period, PreviewFailed

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def crossings(*points: tuple[int, float]) -> list[dict[str, Any]]:
    return [{"entity": "a", "t": t, "x": x, "y": 5.0} for t, x in points]


MINUTE: dict[str, Any] = {"period": {"span": 60_000}, "above": {}}


def ask(client: APIClient, **more: Any) -> Any:
    return client.post("/api/v1/queries/preview", {"feed": "yard", "specification": BORDER, **more})


def test_a_preview_finds_what_the_query_would_have_found_and_stores_nothing(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    from webapp.detections.models import Detection
    from webapp.queries.models import Query

    received(feed, crossings((1000, -5), (2000, 5), (3000, 6), (4000, 50)))
    answer = ask(client_of(people.viewer))
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert [(row["kind"], row["start"], row["entities"]) for row in found["answers"]] == [("in", 2000, ["a"]), ("out", 4000, ["a"])]
    assert [item["t"] for item in found["answers"][0]["evidence"]] == [1000, 2000]
    assert (found["from"], found["to"], found["rows"], found["total"], found["truncated"]) == (1000, 4000, 4, 2, False)
    assert not Query.objects.exists() and not Detection.objects.exists()


def test_only_the_span_asked_for_is_read(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(feed, crossings((1_000, -5), (2_000, 5), (3_000, -5)))
    received(feed, crossings((600_000, -5), (601_000, 5)))
    found = ask(client_of(people.owner), minutes=1).json()
    assert [row["start"] for row in found["answers"]] == [601_000]


def test_a_preview_of_a_past_period_is_that_of_a_log_with_only_its_rows(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(feed, crossings((1_000, -5), (2_000, 5), (3_000, -5), (4_000, 5)))
    received(feed, crossings((5_000, -5), (4_500, -6), (9_000, 5)))
    period = {"from": 2_000, "to": 4_500}
    found = ask(client_of(people.owner), **period).json()
    assert [(row["kind"], row["start"]) for row in found["answers"]] == [("out", 3_000), ("in", 4_000), ("out", 4_500)]
    assert (found["from"], found["to"], found["rows"]) == (2_000, 4_500, 4)


def test_a_past_period_ends_with_its_timers_fired(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    """That someone has been there for a minute is known before their next row."""
    received(feed, crossings((1_000, -5), (2_000, 5)))
    received(feed, crossings((90_000, 5)))
    crowded = {"family": "occupancy", "version": 1, "region": BORDER["region"], "count": [">=", 1], "lasting": "PT1M"}
    client = client_of(people.owner)
    for to, starts in ((62_000, [2_000]), (61_000, [])):
        assert [row["start"] for row in ask(client, specification=crowded, **{"from": 0, "to": to}).json()["answers"]] == starts


def test_a_period_after_the_newest_row_has_no_rows(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    """The newest row was evaluated, though it is not in the period."""
    received(feed, crossings((1_000, -5), (2_000, 5)))
    found = ask(client_of(people.owner), **{"from": 9_000, "to": 10_000}).json()
    assert (found["from"], found["to"], found["rows"], found["answers"]) == (9_000, 9_000, 0, [])


@pytest.mark.parametrize(
    ("period", "pointer"),
    [({"from": 5, "to": 5}, "/from"), ({"from": "noon"}, "/from"), ({"to": 2**63}, "/to"), ({"minutes": 0}, "/minutes")],
)
def test_an_impossible_period_is_refused(
    period: dict[str, Any], pointer: str, people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]
) -> None:
    answer = ask(client_of(people.owner), **period)
    assert (answer.status_code, [fault["pointer"] for fault in answer.json()["faults"]]) == (400, [pointer])


def test_a_recording_of_months_can_be_tried_as_a_whole(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    """A day was the most: of a query over five days nothing was found."""
    day = 86_400_000
    received(feed, crossings((day, -5), (2 * day, 5), (100 * day, -5)))
    received(feed, crossings((300 * day, 5)))
    found = ask(client_of(people.owner), minutes=366 * 24 * 60).json()
    assert [row["start"] for row in found["answers"]] == [2 * day, 100 * day, 300 * day]


@pytest.mark.parametrize(("rows", "days", "expected"), [(2, 10, (2, True)), (2, 1, (1, False)), (3, 10, (3, True)), (4, 10, (4, False))])
def test_the_newest_rows_of_a_long_span_are_evaluated(
    rows: int, days: int, expected: tuple[int, bool], feed: Any, received: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 86_400_000
    for n in range(4):
        received(feed, crossings((n * day, -5)))
    monkeypatch.setattr(previews, "ROWS", rows)
    request = {"log_root": folder_of_logs(feed), "feed": feed.engine_feed().to_json(), "specification": BORDER, "above": {}}
    found = previews.run({**request, "period": {"span": days * day - 1}})
    assert (found["rows"], found["truncated"]) == expected


@pytest.mark.parametrize(("minutes", "expected"), [((9, 1, 8), (1, True)), ((1, 9, 8), (2, False))])
def test_a_preview_is_truncated_where_an_earlier_row_of_the_span_is_not_read(
    minutes: tuple[int, ...], expected: tuple[int, bool], feed: Any, received: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in no order: the first row that may be read need not be of the span."""
    received(feed, crossings(*((minute * 60_000, -5) for minute in minutes)))
    monkeypatch.setattr(previews, "ROWS", 2)
    request = {"log_root": folder_of_logs(feed), "feed": feed.engine_feed().to_json(), "specification": BORDER, "above": {}}
    found = previews.run({**request, "period": {"span": 2 * 60_000}})
    assert (found["rows"], found["truncated"]) == expected


def test_an_error_of_the_program_is_not_reported_as_a_lack_of_memory(feed: Any, received: Callable[..., None]) -> None:
    received(feed, crossings((1000, -5), (2000, 5)))
    unresolved = {**BORDER, "region": {"region": "no such region"}}
    with pytest.raises(PreviewFailed, match="an error in Vedette"):
        previews.preview(log_root=folder_of_logs(feed), feed=feed.engine_feed().to_json(), specification=unresolved, period=Period(60_000))


def test_many_answers_are_a_limit_of_the_preview_and_not_of_the_query(
    feed: Any, received: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    received(feed, crossings((1000, -5), (2000, 5), (3000, 6), (4000, 50)))
    request = {
        "log_root": folder_of_logs(feed),
        "feed": feed.engine_feed().to_json(),
        "specification": BORDER,
        "period": {"span": 60_000},
        "above": {},
    }
    monkeypatch.setattr(previews, "ANSWERS_FOUND", 1)
    assert previews.run(request) == {"too_many": 4}
    monkeypatch.setattr("engine.runtime.steps.MOST_ANSWERS", 0)
    assert "finds more than 0 answers" in str(previews.run(request)["stopped"])


def test_stored_regions_may_be_named(
    people: SimpleNamespace, region: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    received(region.feed, crossings((1000, -5), (2000, 5)))
    answer = ask(client_of(people.owner), specification={"family": "border", "region": {"region": "square"}})
    assert len(answer.json()["answers"]) == 1


def test_a_text_may_name_stored_regions(people: SimpleNamespace, region: Any, received: Callable[..., None]) -> None:
    feed = region.feed
    received(feed, crossings((1000, -5), (2000, 5), (3000, 6)))
    text = "CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [1, 1000] AND INSIDE(A.r, 'square')"
    ready = checked_for_trial(feed, {"family": "constraint", "version": 1, "trigger": text}, people.owner)
    request = {
        "log_root": folder_of_logs(feed),
        "feed": feed.engine_feed().to_json(),
        "specification": ready,
        "period": {"span": 60_000},
        "above": {},
    }
    assert previews.run(request)["total"] == 1


def test_an_empty_log_gives_an_empty_preview(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    assert ask(client_of(people.owner)).json()["answers"] == []


@pytest.mark.parametrize(("x", "lacks_places"), [(None, True), (50.0, False)])
def test_a_preview_without_answers_reports_that_no_row_has_a_place(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient], x: float | None, lacks_places: bool
) -> None:
    received(feed, [{"entity": "a", "t": t, "x": x, "y": x} for t in (1000, 2000)])
    found = ask(client_of(people.viewer)).json()
    assert (found["total"], found["lacks_places"]) == (0, lacks_places)


@pytest.mark.parametrize(("place", "unmet"), [("Dock 9", ['kind = "Dock 9"']), ("dock", [])])
def test_a_preview_names_the_conditions_that_no_row_meets(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient], place: str, unmet: list[str]
) -> None:
    received(feed, [{"entity": "a", "t": t, "kind": kind} for t, kind in ((1000, "gate"), (2000, "dock"))])
    primitives = {"A": {"where": [["kind", "=", place]]}, "B": {"where": [["kind", "in", ["gate", "shelf"]], ["speed", "<", 5]]}}
    pattern = {"family": "composite", "version": 1, "pattern": "A : B", "per": "entity", "within": 1000, "primitives": primitives}
    found = ask(client_of(people.viewer), specification=pattern).json()
    assert (found["total"], found["unmet"]) == (0, unmet)


def test_faults_are_reported_before_anything_runs(people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient]) -> None:
    answer = ask(client_of(people.owner), specification={"family": "bordr"})
    assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/specification/family"


def test_a_preview_that_takes_too_long_is_ended_with_the_reason(
    people: SimpleNamespace, feed: Any, received: Callable[..., None], client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "SECONDS", 0.002)
    answer = ask(client_of(people.owner))
    assert answer.status_code == 503 and "shorter period" in answer.json()["faults"][0]["message"]


def test_previews_above_the_limit_get_retry_after(
    people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "WAIT_S", 0.05)
    with ExitStack() as held:
        for _ in range(slots.AT_ONCE):
            held.enter_context(ENGINE.slots.slot())
        answer = ask(client_of(people.viewer))
        assert answer.status_code == 503 and answer["Retry-After"] == "10" and "Try again" in answer.json()["faults"][0]["message"]
    with ENGINE.slots.slot():
        pass  # What is refused keeps no place.


def test_one_user_cannot_use_all_preview_slots(
    people: SimpleNamespace, feed: Any, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "WAIT_S", 0.05)
    with ExitStack() as held:
        with slots.requested_by(lambda: people.owner.pk):
            for _ in range(slots.OF_ONE_USER):
                held.enter_context(ENGINE.slots.slot())
        assert ask(client_of(people.owner)).status_code == 503
        with slots.requested_by(lambda: people.viewer.pk), ENGINE.slots.slot():
            pass  # Another user is answered meanwhile.
        token = token_create(user=people.owner, name="t", scopes=["read", "write"]).text
        by_token = APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")
        assert ask(by_token).status_code == 503, "a token is its user's"


def detections_of(event: str, query: str, kind: str) -> dict[str, Any]:
    """A pattern of two answers of another query, one after the other."""
    return {
        "family": "composite",
        "version": 1,
        "pattern": "A : A",
        "primitives": {"A": {"where": [["event", "=", event]]}},
        "per": "entity",
        "within": 60_000,
        "derive": {event: {"query": query, "kind": kind, "at": "end"}},
    }


def test_a_preview_of_a_derived_query_evaluates_all_upstream_queries(
    people: SimpleNamespace, query: Any, received: Callable[..., None], client_of: Callable[..., APIClient]
) -> None:
    from webapp.queries.services import query_register

    query_register(owner=people.owner, feed=query.feed, name="twice", specification=detections_of("came", "In and out", "in"))
    received(query.feed, crossings((1000, -5), (2000, 5), (3000, -5), (4000, 5), (5000, -5), (6000, 5), (7000, -5)))
    client = client_of(people.owner)
    found = ask(client, specification=detections_of("came", "In and out", "in")).json()
    assert [(row["kind"], row["entities"], row["end"]) for row in found["answers"]] == [("detection", ["a"], 4000), ("detection", ["a"], 6000)]
    found = ask(client, specification=detections_of("pair", "twice", "detection")).json()
    assert [row["end"] for row in found["answers"]] == [6000] and found["rows"] == 7


def test_a_preview_deriving_from_an_unknown_query_is_refused_with_a_suggestion(
    people: SimpleNamespace, query: Any, client_of: Callable[..., APIClient]
) -> None:
    answer = ask(client_of(people.owner), specification=detections_of("came", "In and ot", "in"))
    (fault,) = answer.json()["faults"]
    assert (answer.status_code, fault["pointer"]) == (400, "/specification/derive/came/query") and "In and out" in fault["message"]
