"""Small adversarial worlds for arrivals: lines that touch borders and corners, a hole, equal times,
silences that end at the same time."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.model.feed import ColumnType

COLUMNS = {"v": ColumnType.INT, "s": ColumnType.STRING}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
RING = {"type": "Polygon", "coordinates": [[[0, 0], [6, 0], [6, 6], [0, 6], [0, 0]], [[1, 1], [5, 1], [5, 5], [1, 5], [1, 1]]]}
TWO = {"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [0, 1], [0, 0]]], [[[3, 3], [5, 3], [5, 4], [3, 3]]]]}
CIRCLE = {"center": [2, 1], "radius": 1}


@st.composite
def documents(draw: st.DrawFn, *, regions: tuple[Any, ...] = (SQUARE, RING, TWO, CIRCLE)) -> dict[str, Any]:
    document: dict[str, Any] = {
        "family": "arrival",
        "region": draw(st.sampled_from(regions)),
        "within": draw(st.sampled_from([1, 2, 3, 5, 8, 40, 40, 40])),
        "over": draw(st.sampled_from([1, 2, 5, 20, 20, 20])),
        "gap": draw(st.sampled_from([1, 2, 3, 5, 20])),
    }
    if draw(st.integers(0, 3)) == 0:
        document["where"] = [draw(st.sampled_from([["s", "=", "p"], ["v", ">", 0]]))]
    return document


@st.composite
def streams(draw: st.DrawFn, *, most: int = 30, west: float = 0, scale: float = 1) -> list[dict[str, Any]]:
    """Rows in order of time of entities that keep a direction for a while; `west` and `scale` move
    and scale their positions."""
    rows: list[dict[str, Any]] = []
    places = {entity: (draw(st.integers(-4, 8)), draw(st.integers(-4, 8))) for entity in "abc"}
    ways = dict.fromkeys("abc", (1, 0))
    t = draw(st.sampled_from([0, 0, -7]))
    for seq in range(draw(st.integers(0, most))):
        t += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        entity = draw(st.sampled_from("aabc"))
        if draw(st.integers(0, 2)) == 0:
            ways[entity] = draw(st.sampled_from([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 2), (0, 0), (0.5, -0.25)]))
        x, y = (a + b for a, b in zip(places[entity], ways[entity], strict=True))
        places[entity] = (x, y) if -9 < x < 12 and -9 < y < 12 else (-3, 1)
        x, y = places[entity]
        place = {"x": None, "y": None} if draw(st.integers(0, 9)) == 0 else {"x": west + scale * x, "y": scale * y}
        row = {"entity": entity, "t": t, "seq": seq, **place}
        rows.append(row | {"v": draw(st.sampled_from([None, 0, 1, 2])), "s": draw(st.sampled_from(["p", "p", "q"]))})
    return rows
