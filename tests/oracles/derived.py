"""Answers as events, straight from specification 5.9: each query's final answers are rows of the
next one, after the feed's own rows of their time.

Rows are dictionaries in arrival order; documents are the written JSON, each after those it derives
from. Answers come from the families' own oracles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine.complex_events.pattern_text import translate
from tests.oracles import arrival, border_monitoring, complex_events, constraint_queries, encounter, motion_patterns, occupancy
from tests.oracles.event_calculus import PointByPoint, runs

Row = dict[str, Any]
Fact = tuple[str, list[str], float | None, int, int | None]
"""Kind, entities, value, start, end."""


def facts(rows: Sequence[Row], documents: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Fact]]:
    """The final answers of every query; `rows` in order of time."""
    found: dict[str, list[Fact]] = {}
    for name, document in documents.items():
        seen = with_events(rows, document, found)
        found[name] = list(FAMILIES[document["family"]](seen, {key: one for key, one in document.items() if key != "derive"}, rows))
    return found


def with_events(rows: Sequence[Row], document: Mapping[str, Any], answers: Mapping[str, list[Fact]]) -> list[Row]:
    """The feed's rows and the document's events in their order, `seq` as their place in it."""
    events = []
    for event, source in document.get("derive", {}).items():
        for kind, entities, value, start, end in answers[source["query"]]:
            t = start if source["at"] == "start" else end
            if kind == source["kind"] and t is not None:
                order = (t, source["query"], entities, kind, start, float("inf") if end is None else end, event)
                revised = source["at"] == "start" and kind in ("occupied", "met", "arriving")
                row: Row = dict.fromkeys(rows[0]) if rows else {}
                row |= {"event": event, "entity": entities[0] if entities else None, "t": t, "value": None if revised else value}
                events.append((order, row | {f"entity{i + 2}": one for i, one in enumerate(entities[1:])}))
    events.sort(key=lambda item: item[0])
    last = max((row["t"] for row in rows), default=0)
    merged = sorted([*rows, *(row for _, row in events if row["t"] <= last)], key=lambda row: row["t"])
    return [row | {"seq": place} for place, row in enumerate(merged)]


def _border(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    for (_, kind, entity, start, end, _), count in border_monitoring.answers(rows, [document]).items():
        yield from [(kind, [entity], None, start, end)] * count


def _motion(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    for _, entity, start, end, score, _ in motion_patterns.answers(rows, [document]):
        yield "match", [entity], score, start, end


def _occupancy(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    for _, start, end, value in occupancy.answers(rows, [document]):
        yield "occupied", [], float(value), start, end


def _encounter(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    for _, pair, start, end, value in encounter.answers(rows, [document]):
        yield "met", list(pair), value, start, end


def _arrival(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    for _, entity, start, end, value, _ in arrival.answers(rows, [document]):
        yield "arriving", [entity], float(value), start, end


def _constraint(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    for (_, entities, start, end, _), count in constraint_queries.answers(rows, [document]).items():
        yield from [("match", list(entities), None, start, end)] * count


def _composite(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    usable = [row for row in rows if not document.get("per") or row["entity"] is not None]
    last = max((row["t"] for row in own), default=0)
    for (_, entity, start, end), count in complex_events.answers(usable, [document | {"pattern": translate(document["pattern"]).tree}]).items():
        yield from [("detection", [] if entity is None else [entity], None, start, end)] * (count if end <= last else 0)


def _calculus(rows: Sequence[Row], document: Mapping[str, Any], own: Sequence[Row]) -> Iterator[Fact]:
    """One window over everything: only events are given, and only true fluents are requested."""
    if not rows:
        return
    last = max(row["t"] for row in own)
    world = PointByPoint(document["program"], last=last)
    for row in rows:
        arguments = [row.get(column) for column in document["inputs"].get(row["event"], {"args": [None]})["args"]]
        if None not in arguments:
            texts = tuple(one if isinstance(one, str) else f"{one:g}" for one in arguments)
            world.events.setdefault((row["event"], texts), set()).add(row["t"])
    for (name, entities, _), ticks in world.answer().items():
        if name in document["outputs"]:
            for start, end in runs(ticks):
                yield name, list(entities), None, start, None if end > last + 1 else end


FAMILIES: Mapping[str, Callable[[Sequence[Row], Mapping[str, Any], Sequence[Row]], Iterator[Fact]]] = {
    "border": _border,
    "transition": _border,
    "motion": _motion,
    "occupancy": _occupancy,
    "encounter": _encounter,
    "arrival": _arrival,
    "constraint": _constraint,
    "composite": _composite,
    "calculus": _calculus,
}
