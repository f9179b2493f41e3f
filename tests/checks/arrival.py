"""Worlds of arrival queries for the checks of every family."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.engine.arrival.worlds import COLUMNS, documents
from tests.strategies import World, arrivals, feeds


def ring(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


AROUND = (
    {"type": "Polygon", "coordinates": [ring(-20, -20, 20, 20), ring(-0.5, -0.5, 5.5, 5.5)]},
    {"type": "Polygon", "coordinates": [ring(4, 4, 6, 6)]},
    {"type": "Polygon", "coordinates": [ring(-9, -9, -0.5, 9)]},
)
"""The entries of entities that go from one place of the arrivals to the next."""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns=COLUMNS))
    return World(feed, draw(st.lists(documents(regions=AROUND), min_size=3, max_size=4)), draw(arrivals(feed)))
