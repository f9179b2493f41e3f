"""Feeds: creation, changes and removal; counters that add up; data from the log."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.test import APIClient

from engine.model.faults import Refused
from webapp.detections.removal import feed_delete
from webapp.feeds import recent
from webapp.feeds.models import DeadLetter, Feed, IngestCounter
from webapp.feeds.selectors import feed_counters
from webapp.feeds.services import feed_create, feed_update
from webapp.jobs.models import FeedHead, Job, JobEvent
from webapp.queries.versions import next_version

pytestmark = [pytest.mark.services, pytest.mark.django_db]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


def faults_of(answer: Any) -> list[str]:
    return [fault["pointer"] for fault in answer.json()["faults"]]


def test_a_new_feed_has_counters_and_a_head_row(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    document = {"name": "strait", "title": "The strait", "crs": "geographic", "columns": {"sog": "float", "a": "int"}, "lateness": 5000}
    answer = client_of(people.owner).post("/api/v1/feeds/", document)
    assert answer.status_code == 201
    shown = answer.json()
    assert shown["counters"] == dict.fromkeys(("received", "processed", "duplicates", "late", "dead", "lost", "waiting"), 0)
    assert shown["head"]["seq"] == -1 and shown["owner"]["name"] == "owner" and shown["editable"]
    assert list(shown["columns"]) == ["sog", "a"], "declared order"
    assert list(Feed.objects.get(name="strait").engine_feed().columns) == ["sog", "a"]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": "Not A Slug"}, "/name"),
        ({"title": "strait\u202e"}, "/title"),
        ({"crs": "martian"}, "/crs"),
        ({"lateness": -1}, "/lateness"),
        ({"tick": 0}, "/tick"),
        ({"columns": {"sog": "double"}}, "/columns/sog"),
        ({"columns": {"entity": "int"}}, "/columns/entity"),
        ({"view": {"center": [0, "x"], "zoom": 3}}, "/view"),
        ({"plan_bounds": [0, 0, 1, 1]}, "/plan_bounds"),
        ({"retention_hours": 0}, "/retention_hours"),
    ],
)
def test_faults_of_feeds_have_pointers(change: dict[str, Any], pointer: str, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    document = {"name": "strait", "title": "The strait", "crs": "geographic", **change}
    answer = client_of(people.owner).post("/api/v1/feeds/", document)
    assert answer.status_code == 400
    assert pointer in faults_of(answer)
    assert not Feed.objects.exists()


def test_the_schema_is_fixed_once_there_are_rows(feed: Feed) -> None:
    assert feed_update(feed=feed, lateness=2000).lateness == 2000
    IngestCounter.objects.filter(feed=feed).update(received=1)
    with pytest.raises(Refused, match="received already"):
        feed_update(feed=feed, lateness=3000)
    assert feed_update(feed=feed, title="New title").title == "New title"


def test_a_change_of_a_feed_keeps_what_others_changed_meanwhile(people: SimpleNamespace) -> None:
    feed = feed_create(owner=people.owner, name="harbour", title="Harbour", crs="planar", columns={"a": "int"})
    loaded_before = Feed.objects.get(pk=feed.pk)
    feed_update(feed=feed, retention_hours=5, columns={"a": "int", "b": "int"})
    next_version(feed)
    changed = feed_update(feed=loaded_before, title="New title")
    assert (changed.title, changed.retention_hours, changed.columns) == ("New title", 5, {"a": "int", "b": "int"})
    assert changed.query_version == 1, "else the job does not notice the queries"


def test_the_schema_is_fixed_while_there_are_queries(feed: Feed, query: Any) -> None:
    with pytest.raises(Refused, match="Queries"):
        feed_update(feed=feed, crs="geographic")


def test_a_feed_is_removed_with_its_log_only_without_queries(
    feed: Feed, query: Any, received: Callable[..., None], django_capture_on_commit_callbacks: Any, log_form: str, settings: Any
) -> None:
    from webapp.queries.services import query_remove

    def files_in(folder: Path) -> list[Path]:
        return [path for path in folder.rglob("*") if path.is_file()]

    received(feed, [{"entity": "a", "t": 1, "x": 0, "y": 0}])
    with pytest.raises(Refused, match="In and out"):
        feed_delete(feed=feed, user=feed.owner)
    query_remove(query=query)
    folder = Path(settings.VEDETTE_LOG_STORE or settings.EVENT_LOG_ROOT) / feed.name
    assert files_in(folder)
    with django_capture_on_commit_callbacks(execute=True):
        feed_delete(feed=feed, user=feed.owner)
    assert not files_in(folder) and not Feed.objects.exists()


def test_the_counters_add_up(feed: Feed) -> None:
    IngestCounter.objects.filter(feed=feed).update(received=100, dead=7)
    FeedHead.objects.filter(feed=feed).update(processed=60, duplicates=10, late=3)
    counters = feed_counters(Feed.objects.get())
    assert counters["waiting"] == 20
    assert counters["received"] == sum(counters[name] for name in ("processed", "duplicates", "late", "dead", "waiting"))


def test_a_floor_plan_is_an_image_for_users_who_see_the_feed(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    answer = client.generic("PUT", "/api/v1/feeds/yard/plan", PNG, content_type="image/png")
    assert answer.status_code == 200 and answer.json()["plan_image"].startswith("/feeds/yard/plan?v=")
    shown = client_of(people.viewer).get("/feeds/yard/plan")
    assert b"".join(shown.streaming_content) == PNG and shown["Content-Type"] == "image/png"
    refused = client.generic("PUT", "/api/v1/feeds/yard/plan", b"<svg onload=alert(1)>", content_type="image/png")
    assert refused.status_code == 400
    client.generic("PUT", "/api/v1/feeds/yard/plan", b"", content_type="image/png")
    assert client.get("/feeds/yard/plan").status_code == 404


# -- data from the log -----------------------------------------------------------------------------


def rows(entity: str, *points: tuple[int, float, float], **more: Any) -> list[dict[str, Any]]:
    return [{"entity": entity, "t": t, "x": x, "y": y, **more} for t, x, y in points]


def test_positions_are_the_last_by_time_and_then_by_arrival(
    feed: Feed, received: Callable[..., None], people: SimpleNamespace, client_of: Any
) -> None:
    received(feed, [*rows("a", (1000, 0, 0), (3000, 2, 2), (2500, 9, 9)), *rows("b", (2500, 1, 1), (2500, 5, 5))])
    shown = client_of(people.viewer).get("/api/v1/feeds/yard/positions").json()
    assert shown == {"t": 3000, "entities": [["b", 5.0, 5.0, 2500], ["a", 2.0, 2.0, 3000]]}
    inside = client_of(people.viewer).get("/api/v1/feeds/yard/positions?bbox=4,4,6,6").json()
    assert [row[0] for row in inside["entities"]] == ["b"]


def test_late_rows_heartbeats_and_rows_without_a_place_are_no_positions(feed: Feed, received: Callable[..., None]) -> None:
    received(feed, rows("a", (5000, 1, 1), (3999, 8, 8)))
    received(feed, [{"event": "$heartbeat", "entity": "", "t": 9000}, {"entity": "a", "t": 8500}])
    assert recent.positions(feed).entities == [["a", 1.0, 1.0, 5000]]


def test_an_empty_feed_has_no_positions_tracks_or_values(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.viewer)
    assert client.get("/api/v1/feeds/yard/positions").json() == {"t": None, "entities": []}
    assert client.get("/api/v1/feeds/yard/tracks?entity=a").json() == {"complete": True, "tracks": []}
    assert client.get("/api/v1/feeds/yard/entities").json() == {"entities": []}
    assert client.get("/api/v1/feeds/yard/histogram?column=speed").json()["rows"] == 0


def test_tracks_are_in_order_of_time_within_both_ends(feed: Feed, received: Callable[..., None], people: SimpleNamespace, client_of: Any) -> None:
    received(feed, [*rows("a", (1000, 0, 0), (2000, 1, 0), (1500, 5, 5), (3000, 2, 0)), *rows("b", (2500, 7, 7))])
    found = client_of(people.viewer).get("/api/v1/feeds/yard/tracks?entity=a&from=1000&to=2000").json()
    assert found == {"complete": True, "tracks": [{"entity": "a", "points": [[1000, 0.0, 0.0], [1500, 5.0, 5.0], [2000, 1.0, 0.0]]}]}
    both = client_of(people.viewer).get("/api/v1/feeds/yard/tracks?entity=a&entity=b").json()
    assert [track["entity"] for track in both["tracks"]] == ["a", "b"]


def test_a_long_track_is_cut_at_its_beginning_and_marked(feed: Feed, received: Callable[..., None]) -> None:
    received(feed, rows("a", *((t, t, 0) for t in range(10))))
    found = recent.tracks(feed, ["a"], limit=4)
    assert not found.complete
    assert [point[0] for point in found.tracks[0]["points"]] == [6, 7, 8, 9]


@pytest.mark.parametrize("asked", ["", "entity=a&from=x", "entity=a&from=99999999999999999999"])
def test_invalid_parameters_of_tracks_are_refused(asked: str, feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert client_of(people.viewer).get(f"/api/v1/feeds/yard/tracks?{asked}").status_code == 400


def test_entities_are_found_by_a_part_of_their_id(feed: Feed, received: Callable[..., None]) -> None:
    received(feed, [row for name in ("van 2", "car 1", "scar", "Car 3") for row in rows(name, (1, 0, 0))])
    assert recent.entities(feed, "car") == ["Car 3", "car 1", "scar"]
    assert recent.entities(feed, "") == ["Car 3", "car 1", "scar", "van 2"]


def test_a_histogram_counts_numbers_in_bins_and_texts_by_frequency(
    feed: Feed, received: Callable[..., None], people: SimpleNamespace, client_of: Any
) -> None:
    received(
        feed,
        [
            {"entity": "a", "t": t, "x": 0, "y": 0, "speed": speed, "kind": kind}
            for t, (speed, kind) in enumerate([(0.0, "bus"), (10.0, "car"), (9.0, "car"), (None, None)])
        ],
    )
    client = client_of(people.viewer)
    shown = client.get("/api/v1/feeds/yard/histogram?column=speed&bins=2").json()
    assert (shown["rows"], shown["nulls"], shown["edges"], shown["counts"]) == (4, 1, [0.0, 5.0, 10.0], [1, 2])
    assert client.get("/api/v1/feeds/yard/histogram?column=kind").json()["values"] == [["car", 2], ["bus", 1]]
    assert client.get("/api/v1/feeds/yard/histogram?column=event").json()["values"] == [["position", 4]]
    assert sum(count for _, count in client.get("/api/v1/feeds/yard/histogram?column=entity").json()["values"]) == 4
    assert client.get("/api/v1/feeds/yard/histogram?column=nonsense").status_code == 400


# -- dead letters ----------------------------------------------------------------------------------


def test_dead_letters_are_listed_newest_first_page_by_page(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    DeadLetter.objects.bulk_create(DeadLetter(feed=feed, reason="late" if i % 2 else "malformed", line=i) for i in range(5))
    client = client_of(people.viewer)
    seen, address = [], "/api/v1/feeds/yard/dead-letters?page_size=2"
    while address:
        page = client.get(address).json()
        seen += [row["line"] for row in page["results"]]
        address = page["next"]
    assert seen == [4, 3, 2, 1, 0]
    assert [row["line"] for row in client.get("/api/v1/feeds/yard/dead-letters?reason=late").json()["results"]] == [3, 1]


def test_exported_tables_contain_no_formulas(feed: Feed, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    DeadLetter.objects.create(feed=feed, reason="malformed", detail="=HYPERLINK(1)", source="@evil", row={"entity": "-1"})
    answer = client_of(people.viewer).get("/api/v1/feeds/yard/dead-letters.csv")
    text = b"".join(answer.streaming_content).decode()
    assert answer["Content-Disposition"] == 'attachment; filename="dead-letters-yard.csv"'
    assert "'=HYPERLINK(1)" in text and "'@evil" in text
    assert not any(cell.startswith(("=", "@")) for line in text.splitlines() for cell in line.split(","))


def test_the_service_applies_the_checks_of_the_engine(people: SimpleNamespace) -> None:
    with pytest.raises(Refused):
        feed_create(owner=people.owner, name="x", title="x", crs="planar", columns={"seq": "int"})


SPECIFIED = {
    "name": "strait",
    "crs": "geographic",
    "time": "ms",
    "tick": 1,
    "lateness": "PT1M",
    "dedupe": True,
    "columns": {"sog": "float", "ship_type": "string"},
}


def test_a_feed_can_be_created_from_feed_json(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    shown = client.post("/api/v1/feeds/", SPECIFIED)
    assert shown.status_code == 201, shown.json()
    assert (shown.json()["title"], shown.json()["lateness"], shown.json()["ahead"]) == ("strait", 60_000, 86_400_000)
    changed = client.patch("/api/v1/feeds/strait/", {"lateness": "PT2S", "ahead": "PT1H"}).json()
    assert (changed["lateness"], changed["ahead"]) == (2_000, 3_600_000)
    assert client.patch("/api/v1/feeds/strait/", {"ahead": None}).json()["ahead"] is None


@pytest.mark.parametrize(
    ("document", "ahead"),
    [
        ({"wall_clock": True, "lateness": 2_000}, 1_000),
        ({"wall_clock": True, "lateness": "PT1M"}, 30_000),
        ({"wall_clock": True, "lateness": "P1D"}, 300_000),
        ({"time": "ticks"}, None),
        ({"ahead": "PT5M"}, 300_000),
    ],
)
def test_each_kind_of_clock_has_a_default_limit_for_future_rows(
    document: dict[str, Any], ahead: int | None, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    assert client_of(people.owner).post("/api/v1/feeds/", {"name": "f", "crs": "planar", **document}).json()["ahead"] == ahead


def test_all_faults_of_a_feed_are_reported_together_with_suggestions(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    wrong = {
        "crs": "martian",
        "latenes": "PT1M",
        "tick": 0,
        "columns": {"sog": "double"},
        "view": {"zoom": 3},
        "retention_hours": 0,
        "wallclock": True,
    }
    answer = client_of(people.owner).post("/api/v1/feeds/", {"name": "strait", **wrong})
    assert answer.status_code == 400
    faults = {fault["pointer"]: fault["message"] for fault in answer.json()["faults"]}
    assert set(faults) == {"/crs", "/latenes", "/tick", "/columns/sog", "/view", "/retention_hours", "/wallclock"}
    assert "did you mean 'lateness'" in faults["/latenes"]
    assert "did you mean 'wall_clock'" in faults["/wallclock"]
    assert not Feed.objects.exists()


def test_new_columns_are_appended_and_the_job_restarts(feed: Feed, query: Any, people: SimpleNamespace, client_of: Any) -> None:
    IngestCounter.objects.filter(feed=feed).update(received=1)
    FeedHead.objects.filter(feed=feed).update(epoch=7)
    Job.objects.update(desired_state="running", observed_state="running")
    client = client_of(people.operator)
    before = dict(feed.columns)
    assert client.patch("/api/v1/feeds/yard/", {"columns": {"load": "float", **before}}).status_code == 200
    assert list(Feed.objects.get().columns.items()) == [*before.items(), ("load", "float")], "whatever order they came in"
    # What the running start evaluates under the former columns is refused from here on.
    assert FeedHead.objects.get(feed=feed).epoch == 0
    assert Job.objects.get().observed_state == "stopping" and "new columns: load" in JobEvent.objects.latest("pk").text
    for columns, words in (
        ({"load": "string", **before}, "columns can be added"),
        ({}, "columns can be added"),
        ({**before, "load": "float", "entity3": "string"}, "answers of other queries"),
        ({**before, "load": "float", "more": "double"}, "must be one of"),
    ):
        answer = client.patch("/api/v1/feeds/yard/", {"columns": columns})
        assert answer.status_code == 400 and words in answer.content.decode(), (columns, answer.content)
