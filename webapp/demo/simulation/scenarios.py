"""The demo's scenarios: each feed as it is registered, its regions, and the queries on it, from
fixtures/scenarios and the worlds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.derive import sources_of
from engine.model.feed import Feed as EngineFeed
from engine.operator import RegisteredQuery
from engine.specification import check
from webapp.demo.simulation.world import Place, World
from webapp.demo.simulation.worlds import world
from webapp.platform.folders import ROOT

SCENARIOS = ROOT / "fixtures" / "scenarios"
PROGRAMS = ROOT / "fixtures" / "programs"
FEED_KEYS = ("name", "crs", "time", "tick", "lateness", "dedupe", "columns")
"""The keys of a feed that the engine needs; the rest is for pages."""


@dataclass(frozen=True)
class Scenario:
    """One demo feed: `feed` as `feed_create` takes it, its world, its regions, and its queries as
    `query_register` takes them.

    A query's `truth` names the ground-truth events that it reports (see `truth_events_of`).
    """

    feed: dict[str, Any]
    world: World
    places: list[Place]
    queries: list[dict[str, Any]]

    def engine_feed(self) -> EngineFeed:
        return EngineFeed.from_json({key: value for key, value in self.feed.items() if key in FEED_KEYS})

    def registered(self) -> list[RegisteredQuery]:
        """Its queries, checked, under their names."""
        feed, regions = self.engine_feed(), {place.name: place.geometry for place in self.places}
        documents = {query["name"]: query["specification"] for query in self.queries}
        return [RegisteredQuery(name, 1, check(document, feed, regions), sources_of(document)) for name, document in documents.items()]


@cache
def read_scenario(name: str) -> Scenario:
    """The scenario of the feed `name`. Raises KeyError for a feed that is not of the demo."""
    place = world(name)
    places = place.places()
    document = json.loads((SCENARIOS / f"{name}.json").read_text(encoding="utf-8"))
    return Scenario(document["feed"], place, places, list(_queries(document["queries"], places)))


def _queries(templates: list[dict[str, Any]], places: list[Place]) -> Iterator[dict[str, Any]]:
    """The queries made from the templates: one for each place with the tag
    `for_each`, or just the one.

    A template's `program` names one of the ready specifications of
    fixtures/programs, which replaces it.
    """
    for template in templates:
        query = {key: value for key, value in template.items() if key not in ("for_each", "program")}
        if "program" in template:
            query["specification"] = json.loads((PROGRAMS / template["program"]).read_text(encoding="utf-8"))
        if "for_each" not in template:
            yield query
        else:
            yield from (_filled(query, place.name) for place in places if template["for_each"] in place.tags)


def _filled(template: Any, place: str) -> Any:
    """The template with `{place}` replaced in all its texts."""
    if isinstance(template, str):
        return template.replace("{place}", place)
    if isinstance(template, list):
        return [_filled(item, place) for item in template]
    if isinstance(template, dict):
        return {key: _filled(value, place) for key, value in template.items()}
    return template


@dataclass(frozen=True)
class ReportingQueries:
    """The queries of one family that report one kind of ground-truth event, each with the kind of
    its answers that does (null: all)."""

    kind: str
    family: str
    queries: tuple[tuple[str, str | None], ...]


def truth_of(feed: str, queries: Iterable[str]) -> list[ReportingQueries]:
    """Which of these queries (names) report which kind of ground-truth event. Events that two
    families report are compared with each separately."""
    known = set(queries)
    roles: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for query in read_scenario(feed).queries:
        for kind, answers in truth_events_of(query):
            if query["name"] in known:
                roles.setdefault((kind, query["specification"]["family"]), []).append((query["name"], answers))
    return [ReportingQueries(kind, family, tuple(reporting)) for (kind, family), reporting in roles.items()]


def truth_events_of(query: dict[str, Any]) -> list[tuple[str, str | None]]:
    """The kinds of ground-truth events that a scenario's query reports, each with the kind of
    answer that does; null: whatever it answers."""
    truth = query.get("truth", {})
    return [(truth, None)] if isinstance(truth, str) else [(kind, answers) for answers, kind in truth.items()]
