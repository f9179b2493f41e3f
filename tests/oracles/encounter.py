"""Encounter answers, straight from specification 5.8: every pair of entities is asked at
every multiple of `every`.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written JSON.
An answer is (query, entities, start, end, value).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any

from tests.oracles.border_monitoring import GEOD, inside
from tests.oracles.conditions import hold

Row = Mapping[str, Any]
Answer = tuple[int, tuple[str, str], int, int | None, float]


@dataclass(frozen=True)
class Place:
    """The position of an entity; `x` is null while it is undecided."""

    x: float | None
    y: float | None


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], *, geographic: bool = False) -> Counter[Answer]:
    """All answers on accepted rows."""
    ordered = sorted(rows, key=lambda row: (row["t"], row["seq"]))
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        for one, other in pairs(sorted({row["entity"] for row in ordered}), document):
            found.update((number, (one, other), *run) for run in runs(one, other, ordered, document, geographic))
    return found


def pairs(entities: Sequence[str], document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    same = role(document, "a") == role(document, "b")
    for one in entities:
        for other in entities:
            if (one < other) if same else (one != other):
                yield one, other


def role(document: Mapping[str, Any], name: str) -> Any:
    return document.get(name, {}).get("where", [])


def runs(one: str, other: str, ordered: Sequence[Row], document: Mapping[str, Any], geographic: bool) -> Iterable[tuple[int, int | None, float]]:
    """(first T, first T that does not, least distance) of the runs that are long enough."""
    every = document["every"]
    looked: list[tuple[int, float | None]] = []
    for t in range(-(-ordered[0]["t"] // every) * every, ordered[-1]["t"] + 1, every):
        a, b = place(one, "a", t, ordered, document, geographic), place(other, "b", t, ordered, document, geographic)
        if a is None or b is None:
            looked.append((t, None))
        elif a.x is None or b.x is None:
            break
        else:
            looked.append((t, meeting(a, b, document, geographic)))
    i = 0
    while i < len(looked):
        j = i
        while j < len(looked) and looked[j][1] is not None:
            j += 1
        if j > i:
            end = looked[j][0] if j < len(looked) else None
            length = (end if end is not None else looked[-1][0]) - looked[i][0]
            if length >= (document.get("lasting") or 0):
                yield looked[i][0], end, min(d for _, d in looked[i:j] if d is not None)
        i = max(j, i + 1)


def place(entity: str, name: str, t: int, ordered: Sequence[Row], document: Mapping[str, Any], geographic: bool) -> Place | None:
    """The entity's place in a role at t; null when it has none."""
    tuples = [row for row in ordered if row["entity"] == entity and row["x"] is not None and hold(row, document.get("where", []))]
    before = [row for row in tuples if row["t"] <= t]
    after = [row for row in tuples if row["t"] > t]
    if not before or not hold(before[-1], role(document, name)) or not t - before[-1]["t"] < document["gap"]:
        return None
    last = before[-1]
    if document.get("position", "last") == "last" or t == last["t"]:
        return Place(last["x"], last["y"])
    if after and after[0]["t"] - last["t"] <= document["gap"]:
        return between(last, after[0], t, geographic)
    if after or last["t"] + document["gap"] <= ordered[-1]["t"]:
        return Place(last["x"], last["y"])
    return Place(None, None)


def between(last: Row, following: Row, t: int, geographic: bool) -> Place:
    share = (t - last["t"]) / (following["t"] - last["t"])
    across = following["x"] - last["x"]
    if geographic and abs(across) > 180:
        across += -360 if across > 0 else 360
    x = last["x"] + share * across
    if geographic and abs(x) > 180:
        x += -360 if x > 0 else 360
    return Place(x, last["y"] + share * (following["y"] - last["y"]))


def meeting(a: Place, b: Place, document: Mapping[str, Any], geographic: bool) -> float | None:
    """The distance of two places that meet."""
    assert a.x is not None and a.y is not None and b.x is not None and b.y is not None
    distance = float(GEOD.inv(a.x, a.y, b.x, b.y)[2]) if geographic else hypot(b.x - a.x, b.y - a.y)
    region = document.get("inside")
    both = region is None or all(inside({"x": p.x, "y": p.y}, {"region": region}, geographic) for p in (a, b))
    return distance if distance <= document["distance"] and both else None
