"""Worlds of border and transition queries for the checks of every family."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.model.feed import ColumnType
from tests.engine.border_monitoring.worlds import NUMBERS, documents
from tests.strategies import World, arrivals, feeds

COLUMNS = {"v": ColumnType.FLOAT, "w": ColumnType.INT, "k": ColumnType.STRING} | dict.fromkeys(NUMBERS, ColumnType.FLOAT)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns=COLUMNS))
    return World(feed, draw(st.lists(documents(), min_size=1, max_size=4)), draw(arrivals(feed)))
