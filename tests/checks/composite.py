"""Worlds of composite queries for the checks of every family."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.engine.complex_events.worlds import COLUMNS, documents
from tests.strategies import World, arrivals, feeds

READERS = {None: "a", "": "b", "p": "c", "q": "d"}
"""So that primitives match: exact duplicates stay what they are."""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns=COLUMNS))
    rows = [{**row, "reader": READERS[row["reader"]]} for row in draw(arrivals(feed))]
    return World(feed, draw(st.lists(documents(), min_size=1, max_size=4)), rows)
