"""Worlds of occupancy queries for the checks of every family."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.engine.occupancy.worlds import COLUMNS, documents
from tests.strategies import World, arrivals, feeds


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns=COLUMNS))
    return World(feed, draw(st.lists(documents(), min_size=1, max_size=3)), draw(arrivals(feed)))
