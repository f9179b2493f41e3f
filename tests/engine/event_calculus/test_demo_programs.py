"""The demo's programs on its simulators, with known ground truth, and on
small scenes written by hand."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from engine.model.events import Stamper, check_rows
from engine.operator import RegisteredQuery
from engine.specification import check
from tests.engine.event_calculus.recordings import PROGRAMS, answers, feed_of
from webapp.demo.simulation.strait import Strait

HOUR = 3_600_000
FRAME = 200


def query(folder: str, name: str, regions: dict[str, Any] | None = None) -> RegisteredQuery:
    document = json.loads((PROGRAMS / folder / f"query-{name}.json").read_text())
    return RegisteredQuery(name, 1, check(document, feed_of(folder), regions))


def stamped(folder: str, table: pa.Table) -> pa.Table:
    good, dead = check_rows(table, feed_of(folder))
    assert not dead
    return Stamper().stamp(good)


@pytest.fixture(scope="module")
def strait() -> tuple[Strait, dict[str, Any]]:
    world = Strait(1)
    return world, {place.name: place.geometry for place in world.places()}


def test_the_pursuit_is_found_and_no_other(strait: tuple[Strait, dict[str, Any]]) -> None:
    world, regions = strait
    truth = next(event for event in world.truth(10 * HOUR, 11 * HOUR) if event.kind == "pursuit")
    rows = world.rows(truth.start, truth.end)
    found = answers(query("strait", "encounters", regions), feed_of("strait"), stamped("strait", rows))
    pursuits = [fact for fact in found if fact[0] == "pursuit"]
    assert {frozenset(entities) for _, entities, *_ in pursuits} == {frozenset(truth.entities)}
    assert sum((end or truth.end) - start for *_, start, end in pursuits) > truth.end - truth.start - 30_000


def test_every_passage_of_the_closed_area_is_found(strait: tuple[Strait, dict[str, Any]]) -> None:
    world, regions = strait
    start, end = 10 * HOUR, 11 * HOUR
    smugglers = pa.array([vessel.name for vessel in world.vessels if vessel.truth_events and vessel.truth_events[0].kind == "passage"])
    rows = world.rows(start, end)
    rows = rows.filter(pa.compute.is_in(rows["entity"], value_set=smugglers))
    found = answers(query("strait", "traffic", regions), feed_of("strait"), stamped("strait", rows))
    passages = [event for event in world.truth(start + 600_000, end - 600_000) if event.kind == "passage"]
    illegal = [(entities, since, until) for kind, entities, _, since, until in found if kind == "illegalShipping" and until is not None]
    assert len(passages) > 2
    for passage in passages:
        inside = (*passage.entities, "closed_area")
        assert [
            1 for who, since, until in illegal if who == inside and abs(since - passage.start) < 15_000 and abs(until - passage.end) < 15_000
        ] == [1]


Scene = list[tuple[str, str, int, float | None]]


def scene(*parts: Scene) -> pa.Table:
    rows = sorted((row for part in parts for row in part), key=lambda row: row[2])
    return stamped(
        "plaza",
        pa.table(
            {
                "event": [row[0] for row in rows], "entity": [row[1] for row in rows], "t": [row[2] for row in rows],
                "x": pa.array([row[3] for row in rows], pa.float64()),
                "y": pa.array([None if row[3] is None else 0.0 for row in rows], pa.float64()),
            }
        ),
    )  # fmt: skip


def seen(who: str, activity: str, first: int, last: int, x: float) -> Scene:
    """Frames first..last of a person at x."""
    return [row for frame in range(first, last + 1) for row in ((activity, who, frame * FRAME, None), ("coord", who, frame * FRAME, x))]


def plaza(*parts: Scene) -> set[tuple[Any, ...]]:
    return {(kind, *entities, start // FRAME, end and end // FRAME) for kind, entities, _, start, end in answers(
        query("plaza", "activities"), feed_of("plaza"), scene(*parts)
    )}  # fmt: skip


def test_two_people_meet_and_part() -> None:
    found = plaza(
        [("appear", "a", FRAME, None), ("appear", "b", FRAME, None)],
        seen("a", "walking", 1, 10, 100.0), seen("b", "walking", 1, 20, 200.0),
        seen("a", "active", 11, 60, 100.0), seen("b", "walking", 21, 30, 110.0), seen("b", "active", 31, 40, 110.0),
        seen("b", "walking", 41, 60, 160.0),
    )  # fmt: skip
    assert found == {("greeting", "a", "b", 21, 41), ("meeting", "a", "b", 21, 41)}


def test_an_object_is_left_and_taken() -> None:
    found = plaza(
        [("appear", "a", FRAME, None), ("appear", "bag", 10 * FRAME, None), ("disappear", "bag", 50 * FRAME, None)],
        seen("a", "walking", 1, 60, 100.0), seen("bag", "inactive", 10, 50, 110.0),
    )  # fmt: skip
    assert found == {("leaving_object", "a", "bag", 11, 51)}


def test_a_fight() -> None:
    found = plaza(seen("a", "abrupt", 1, 20, 100.0), seen("b", "walking", 1, 42, 110.0), seen("a", "walking", 21, 42, 100.0))
    assert found == {("fighting", "a", "b", 1, 21), ("moving", "a", "b", 21, 43)}
