"""Worlds of echo queries."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import World, arrivals, feeds

CONDITIONS = [["s", "=", "p"], ["v", "<=", 1], ["n", "!=", 1], ["b", "=", True], ["entity", "in", ["a", "b"]]]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds())
    wanted = draw(st.lists(st.tuples(st.sampled_from(["rows", "latest"]), st.sampled_from(CONDITIONS)), min_size=1, max_size=3))
    return World(feed, [{"family": "echo", "mode": mode, "where": [condition]} for mode, condition in wanted], draw(arrivals(feed)))
