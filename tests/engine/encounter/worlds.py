"""Small random worlds for encounters: few places, distances equal to the limit, gaps,
entities with both roles."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.model.feed import ColumnType

COLUMNS = {"v": ColumnType.INT, "s": ColumnType.STRING}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
roles = st.sampled_from([None, {}, {"where": []}, {"where": [["s", "=", "p"]]}, {"where": [["v", ">", 0]]}])


@st.composite
def documents(draw: st.DrawFn, *, globe: bool = False) -> dict[str, Any]:
    distance = draw(st.sampled_from([0, 60e3, 111319.49079327358, 2e5] if globe else [0, 0.5, 1, 1.4142135623730951, 3]))
    document: dict[str, Any] = {
        "family": "encounter",
        "distance": distance,
        "every": draw(st.sampled_from([1, 2, 3, 5])),
        "gap": draw(st.sampled_from([0, 1, 3, 6, 20, 20])),
        "position": draw(st.sampled_from(["last", "interpolated", "interpolated"])),
    }
    for name in "ab":
        role = draw(roles)
        if role is not None:
            document[name] = role
    if draw(st.integers(0, 2)) == 0:
        document["inside"] = draw(st.sampled_from([None, SQUARE, {"center": [1, 1], "radius": 1e5 if globe else 1}]))
    if draw(st.booleans()):
        document["lasting"] = draw(st.sampled_from([None, 0, 1, 2, 4, 6]))
    if draw(st.integers(0, 3)) == 0:
        document["where"] = [draw(st.sampled_from([["s", "!=", "q"], ["v", ">", 0]]))]
    return document


@st.composite
def streams(draw: st.DrawFn, *, most: int = 30) -> list[dict[str, Any]]:
    """Rows in order of time."""
    rows = []
    t = draw(st.sampled_from([0, 0, -7]))
    for seq in range(draw(st.integers(0, most))):
        t += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        place = draw(st.sampled_from([None, (0, 0), (1, 1), (2, 1), (0, 1), (3, 3)]))
        x, y = place if place is not None else (None, None)
        row = {"entity": draw(st.sampled_from("dbca")), "t": t, "seq": seq, "x": x, "y": y}
        rows.append(row | {"v": draw(st.sampled_from([None, 0, 1, 2])), "s": draw(st.sampled_from([None, "p", "q"]))})
    return rows
