"""Worlds of calculus queries for the checks of every family: windows longer than the lateness, so
that no accepted row is forgotten."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import World, arrivals, feeds

PROGRAM = """
initiatedAt(busy(X)=true, T) :- happensAt(on(X), T).
terminatedAt(busy(X)=true, T) :- happensAt(off(X), T).
initiatedAt(level(X)=low, T) :- happensAt(on(X), T), \\+ holdsAt(busy(X)=true, T).
initiatedAt(level(X)=high, T) :- happensAt(on(X), T), holdsAt(busy(X)=true, T).
holdsFor(both(X)=true, I) :- holdsFor(busy(X)=true, I1), holdsFor(level(X)=low, I2), intersect_all([I1, I2], I).
"""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    feed = draw(feeds(columns={}))
    names = st.sampled_from(["on", "on", "off", "other"])
    rows = [row | {"event": draw(names)} for row in draw(arrivals(feed))]
    sizes = draw(st.lists(st.tuples(st.sampled_from([60, 90]), st.sampled_from([3, 10])), min_size=1, max_size=3))
    inputs = {"on": {"args": ["entity"]}, "off": {"args": ["entity"]}}
    documents = [
        {"family": "calculus", "program": PROGRAM, "outputs": ["busy", "level", "both"], "window": window, "step": step, "inputs": inputs}
        for window, step in sizes
    ]
    return World(feed, documents, rows)
