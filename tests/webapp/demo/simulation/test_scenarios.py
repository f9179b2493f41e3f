"""The demo's queries on their worlds: accepted by the checker, and
compared with the ground truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.runtime.derived import GraphEvaluator
from engine.specification import check
from webapp.demo.simulation.scenarios import read_scenario, truth_events_of
from webapp.demo.simulation.world import TruthEvent
from webapp.demo.simulation.worlds import WORLDS, world

NOW = 1_763_700_000_000
SLACK_MS = 60_000


def scenario(name: str) -> tuple[Feed, dict[str, dict[str, Any]], dict[str, Any]]:
    """The feed, its queries by name, and its regions."""
    found = read_scenario(name)
    return found.engine_feed(), {query["name"]: query for query in found.queries}, {place.name: place.geometry for place in found.places}


@pytest.mark.parametrize("name", WORLDS)
def test_every_query_of_a_demo_scenario_can_be_registered(name: str) -> None:
    feed, queries, regions = scenario(name)
    assert queries
    for query in queries.values():
        check(query["specification"], feed, regions)


FOUND = [
    ("city", "tour", 18), ("ocean", "front", 500), ("ocean", "spell", 400),
    ("warehouse", "theft", 20), ("warehouse", "unescorted", 30), ("warehouse", "lost", 20), ("warehouse", "back-and-forth", 25),
    ("warehouse", "unguarded", 20), ("warehouse", "forced", 20), ("ocean", "upwelling", 90),
    ("plaza", "crowd", 12), ("plaza", "round", 12), ("strait", "rendezvous", 60), ("strait", "illegal-fishing", 60),
]  # fmt: skip
"""World, kind of ground-truth event, minutes that contain at least two of it."""
PROGRAMS = [
    ("plaza", "What people do", 11, 2_000),
    pytest.param("strait", "Silence, delays, illegal passages", 60, 15_000, marks=pytest.mark.nightly),
    ("strait", "Fishing in a reserve", 60, 15_000),
    pytest.param("strait", "Pursuits and meetings at sea", 60, 30_000, marks=pytest.mark.nightly),
]
"""World, query with a program, minutes that contain two of everything it reports, and the tolerance
of beginnings and ends in milliseconds."""


@pytest.mark.parametrize(("name", "kind", "minutes"), FOUND)
def test_a_query_finds_exactly_the_ground_truth(name: str, kind: str, minutes: int) -> None:
    place, end = world(name), NOW + minutes * 60_000
    rows = place.rows(NOW, end)
    # A hundred of the cars are enough, including the one that makes the tour.
    rows = rows.filter(pc.greater(rows["entity"], "car-1900")) if name == "city" else rows
    reported = answers(name, lambda query: query.get("truth") == kind, rows)
    happened = [one for one in place.truth(NOW, end) if one.kind == kind]
    settled = [one for one in happened if one.start >= NOW and one.end + SLACK_MS <= end]
    assert len(settled) >= 2
    assert [one for one in settled if not any(about(row, one) for row in reported)] == []
    assert [row for row in reported if not any(about(row, one) for one in happened)] == []


@pytest.mark.parametrize(("name", "query", "minutes", "slack"), PROGRAMS)
def test_a_program_finds_the_intervals_of_the_ground_truth(name: str, query: str, minutes: int, slack: int) -> None:
    place, end = world(name), NOW + minutes * 60_000
    reported = answers(name, lambda one: one["name"] == query, place.rows(NOW, end))
    document = scenario(name)[1][query]
    for kind, answered in truth_events_of(document):
        mine = [row for row in reported if row["kind"] == answered]
        happened = [one for one in place.truth(NOW, end) if one.kind == kind]
        settled = [one for one in happened if one.start >= NOW + SLACK_MS and one.end + SLACK_MS <= end]
        assert len(settled) >= 2, kind
        assert [one for one in settled if not any(reports(row, one, slack) for row in mine)] == []
        inner = [row for row in mine if row["start"] >= NOW + SLACK_MS and (row["end"] or end) + SLACK_MS <= end]
        assert [row for row in inner if not any(reports(row, one, slack) for one in happened)] == []


def answers(name: str, wanted: Callable[[dict[str, Any]], bool], rows: pa.Table) -> list[dict[str, Any]]:
    """The final answers of the wanted queries of a scenario, without retracted ones."""
    found = read_scenario(name)
    feed, registered = found.engine_feed(), {query.id: query for query in found.registered()}
    chosen = [registered[query["name"]] for query in found.queries if wanted(query)]
    # Upstream queries are evaluated with it.
    above = {source.query for query in chosen for source in query.sources}
    evaluator = GraphEvaluator.local(feed, [*(registered[one] for one in sorted(above)), *chosen])
    good, dead = check_rows(rows, feed)
    assert not dead
    outcomes = [evaluator.process(Stamper().stamp(good)), evaluator.finish()]
    total: dict[str, int] = {}
    asserted = {}
    for row in (row for outcome in outcomes for row in outcome.changes.to_pylist() if row["query"] not in above):
        fact = repr([row[key] for key in ("query", "kind", "entities", "value", "start", "end")])
        total[fact] = total.get(fact, 0) + row["weight"]
        asserted[fact] = row
    return [asserted[fact] for fact, weight in total.items() if weight]


def about(row: dict[str, Any], event: TruthEvent) -> bool:
    """Whether an answer is about one of the event's entities at its time."""
    named = {*row["entities"], *(item["entity"] for item in row["evidence"] or ())}
    open_end = row["end"] is None or row["end"] >= event.start - SLACK_MS
    return bool(named & set(event.entities)) and row["start"] <= event.end + SLACK_MS and open_end


def reports(row: dict[str, Any], event: TruthEvent, slack: int) -> bool:
    """Whether an answer names all of the event's entities and its beginning and end,
    within `slack` milliseconds."""
    begins = set(event.entities) <= set(row["entities"]) and abs(row["start"] - event.start) <= slack
    return begins and row["end"] is not None and abs(row["end"] - event.end) <= slack
