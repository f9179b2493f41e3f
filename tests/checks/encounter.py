"""Worlds of encounter queries for the checks of every family."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.engine.encounter.worlds import COLUMNS, documents
from tests.strategies import World, arrivals, feeds


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns=COLUMNS))
    return World(feed, draw(st.lists(documents(), min_size=2, max_size=4)), draw(arrivals(feed)))
