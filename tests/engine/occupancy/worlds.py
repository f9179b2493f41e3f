"""Small adversarial worlds for occupancy: few entities, positions on the border, equal times,
tuples that go stale at the same time."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.model.feed import ColumnType

COLUMNS = {"v": ColumnType.INT, "s": ColumnType.STRING}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    watched: dict[str, Any] = draw(
        st.sampled_from(
            [{"region": SQUARE}, {"region": {"center": [1, 1], "radius": 1}}, {"ranges": {"v": [1, 3]}}, {"ranges": {"v": [None, 2], "x": [0, 2]}}]
        )
    )
    op = draw(st.sampled_from([">=", "<="]))
    document: dict[str, Any] = {"family": "occupancy", **watched, "count": [op, draw(st.integers(1 if op == ">=" else 0, 3))]}
    if draw(st.booleans()):
        document["stale"] = draw(st.sampled_from([None, 0, 1, 2, 5]))
    if draw(st.booleans()):
        document["lasting"] = draw(st.sampled_from([None, 0, 1, 2, 5, 6]))
    if draw(st.integers(0, 3)) == 0:
        document["where"] = [draw(st.sampled_from([["s", "=", "p"], ["v", ">", 0]]))]
    return document


@st.composite
def streams(draw: st.DrawFn, *, most: int = 30) -> list[dict[str, Any]]:
    """Rows in order of time."""
    rows = []
    t = draw(st.sampled_from([0, 0, -7]))
    for seq in range(draw(st.integers(0, most))):
        t += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        place = draw(st.sampled_from([None, (0, 0), (1, 1), (2, 1), (3, 3)]))
        x, y = place if place is not None else (None, None)
        row = {"entity": draw(st.sampled_from("abcd")), "t": t, "seq": seq, "x": x, "y": y}
        rows.append(row | {"v": draw(st.sampled_from([None, 0, 1, 2, 3, 2**53 + 1])), "s": draw(st.sampled_from([None, "p", "q"]))})
    return rows
