"""The demo's queries on their own worlds: accepted by the checker, and as good as the worlds' truth says."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.compute as pc
import pytest

from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.strategies import stamped
from webapp.feeds.demo import SCENARIOS, scenario_queries
from webapp.feeds.simulation.world import Happening
from webapp.feeds.simulation.worlds import WORLDS, world

NOW = 1_763_700_000_000
SLACK_MS = 60_000
FEED_KEYS = ("name", "crs", "time", "tick", "lateness", "dedupe", "columns")


def scenario(name: str) -> tuple[Feed, dict[str, dict[str, Any]], dict[str, Any]]:
    """The feed, its queries by name, and its regions."""
    document = json.loads((SCENARIOS / f"{name}.json").read_text())
    places = world(name).places()
    feed = Feed.from_json({key: value for key, value in document["feed"].items() if key in FEED_KEYS})
    return feed, {query["name"]: query for query in scenario_queries(document["queries"], places)}, {place.name: place.geometry for place in places}


@pytest.mark.parametrize("name", WORLDS)
def test_every_query_of_a_scenario_can_be_registered(name: str) -> None:
    feed, queries, regions = scenario(name)
    assert queries
    for query in queries.values():
        check(query["specification"], feed, regions)


FOUND = [
    ("city", "tour", 18), ("ocean", "front", 500), ("ocean", "spell", 400),
    ("warehouse", "theft", 20), ("warehouse", "unescorted", 30), ("warehouse", "lost", 20), ("warehouse", "back-and-forth", 25),
]  # fmt: skip
"""World, kind of happening, minutes that hold at least two of it."""


@pytest.mark.parametrize(("name", "kind", "minutes"), FOUND)
def test_a_query_finds_what_its_world_says_and_nothing_else(name: str, kind: str, minutes: int) -> None:
    place, end = world(name), NOW + minutes * 60_000
    feed, queries, regions = scenario(name)
    wanted = [
        RegisteredQuery(query["name"], 1, check(query["specification"], feed, regions)) for query in queries.values() if query.get("truth") == kind
    ]
    rows = place.rows(NOW, end)
    # A hundred of the cars are enough, the one that makes the tour among them.
    rows = rows.filter(pc.greater(rows["entity"], "car-1900")) if name == "city" else rows
    evaluator = Evaluator.start(feed, wanted)
    outcomes = [evaluator.process(stamped(rows.to_pylist(), feed)), evaluator.finish()]
    told = [row for outcome in outcomes for row in outcome.changes.to_pylist()]
    happened = [one for one in place.truth(NOW, end) if one.kind == kind]
    settled = [one for one in happened if one.start >= NOW and one.end + SLACK_MS <= end]
    assert len(settled) >= 2
    assert [one for one in settled if not any(about(row, one) for row in told)] == []
    assert [row for row in told if not any(about(row, one) for one in happened)] == []


def about(row: dict[str, Any], happening: Happening) -> bool:
    """Whether an answer is about one of the happening's things at its time."""
    named = {*row["entities"], *(item["entity"] for item in row["evidence"] or ())}
    open_end = row["end"] is None or row["end"] >= happening.start - SLACK_MS
    return bool(named & set(happening.entities)) and row["start"] <= happening.end + SLACK_MS and open_end
