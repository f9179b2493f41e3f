"""Worlds of motion patterns for the checks of every family."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.model.feed import ColumnType
from tests.engine.motion_patterns.worlds import KINDS, documents
from tests.strategies import World, arrivals, feeds


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns={"v": ColumnType.INT}))
    return World(feed, draw(st.lists(documents(kinds=[*KINDS, "totals"]), min_size=1, max_size=3)), draw(arrivals(feed)))
