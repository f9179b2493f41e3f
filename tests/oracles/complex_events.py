"""Composite events, straight from specification 5.5: all sets of events that are
occurrences, node by node.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written JSON
with the pattern as a tree of pairs. An occurrence is a set of events and the moment that completes
it: (e, seq) of its last event, or (e, TIMER). An answer is (query, entity or null, s, e).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shapely import Point
from shapely.geometry import shape

from tests.oracles.conditions import hold

Row = Mapping[str, Any]
TIMER = math.inf
"""Comes after the events of its time."""


class Occurrence(NamedTuple):
    """`events` by seq; `start` the first time s; `moment` = (e, what completes it)."""

    events: frozenset[int]
    start: int
    moment: tuple[int, float]

    @property
    def end(self) -> int:
        return self.moment[0]


class Answer(NamedTuple):
    query: int
    entity: str | None
    start: int
    end: int


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]]) -> Counter[Answer]:
    """All detections on accepted rows at the end of input."""
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        for entity, completed in detections(rows, document).items():
            for moment, occurrences in completed.items():
                found[Answer(number, entity, max(one.start for one in occurrences), moment[0])] += 1
    return found


def detections(rows: Sequence[Row], document: Mapping[str, Any]) -> dict[str | None, dict[tuple[int, float], list[Occurrence]]]:
    """By entity (null when events need not share it) and completing moment: all occurrences."""
    last = max((row["t"] for row in rows), default=0)
    found: dict[str | None, dict[tuple[int, float], list[Occurrence]]] = {}
    for entity in sorted({row["entity"] for row in rows}) if document.get("per") else [None]:
        own = [row for row in rows if entity is None or row["entity"] == entity]
        completed: dict[tuple[int, float], list[Occurrence]] = {}
        for one in occurrences(document["pattern"], own, document):
            if one.end <= last:
                completed.setdefault(one.moment, []).append(one)
        found[entity] = completed
    return found


def occurrences(pattern: Any, rows: Sequence[Row], document: Mapping[str, Any]) -> set[Occurrence]:
    """All occurrences of a pattern, a JSON tree whose operators have two operands."""

    def of(part: Any) -> set[Occurrence]:
        return occurrences(part, rows, document)

    return {one for one in _of_node(pattern, of, rows, document) if one.end - one.start <= document["within"]}


def _of_node(pattern: Any, of: Callable[[Any], set[Occurrence]], rows: Sequence[Row], document: Mapping[str, Any]) -> Iterable[Occurrence]:
    if isinstance(pattern, str):
        return [Occurrence(frozenset([row["seq"]]), row["t"], (row["t"], row["seq"])) for row in rows if matches(row, pattern, document)]
    if "or" in pattern:
        return of(pattern["or"][0]) | of(pattern["or"][1])
    if "and" in pattern:
        return [union(p, q) for p in of(pattern["and"][0]) for q in of(pattern["and"][1])]
    if "interval" in pattern:
        first, second = (of(part) for part in pattern["interval"])
        return [union(p, q) for p in first for q in second if max(p.end, q.end) - min(p.start, q.start) <= pattern["span"]]
    if "absence" in pattern:
        first, negated = (of(part) for part in pattern["absence"])
        return [absent(p, pattern["span"]) for p in first if not any(p.end < q.start and q.end <= p.end + pattern["span"] for q in negated)]
    if "before" in pattern:
        negated, second = (of(part) for part in pattern["before"])
        return [r for r in second if not any(q.end < r.start and q.start >= r.start - pattern["span"] for q in negated)]
    if "around" in pattern:
        first, negated = (of(part) for part in pattern["around"])
        span = pattern["span"]
        return [absent(p, span) for p in first if not any(q.start >= p.start - span and q.end <= p.end + span for q in negated)]
    first, second = (of(part) for part in pattern["sequence"])
    negated = of(pattern["without"]) if "without" in pattern else set()
    low, high = pattern.get("bounds", (0, None))
    return [
        union(p, r)
        for p in first
        for r in second
        if r.start > p.end
        and r.start - p.end >= low
        and (high is None or r.start - p.end <= high)
        and not any(p.end < q.start and q.end < r.start for q in negated)
    ]


def union(p: Occurrence, q: Occurrence) -> Occurrence:
    return Occurrence(p.events | q.events, min(p.start, q.start), max(p.moment, q.moment))


def absent(p: Occurrence, span: int) -> Occurrence:
    return Occurrence(p.events, p.start, (p.end + span, TIMER))


def matches(row: Row, name: str, document: Mapping[str, Any]) -> bool:
    """Whether an event matches a primitive."""
    primitive = document["primitives"][name]
    if not hold(row, [*document.get("where", []), *primitive.get("where", [])]):
        return False
    if not all((row.get(column) or "").startswith(text) for column, text in primitive.get("prefix", {}).items()):
        return False
    if ("inside" in primitive or "outside" in primitive) and row.get("x") is None:
        return False
    return ("inside" not in primitive or inside(row, primitive["inside"])) and ("outside" not in primitive or not inside(row, primitive["outside"]))


def inside(row: Row, region: Mapping[str, Any]) -> bool:
    """On the plane."""
    if "center" in region:
        return math.hypot(row["x"] - region["center"][0], row["y"] - region["center"][1]) <= region["radius"]
    return bool(shape(region).intersects(Point(row["x"], row["y"])))
