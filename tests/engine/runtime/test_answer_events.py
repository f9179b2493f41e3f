"""Answers that become events: when they are passed on, and which are not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.derive import Source, with_answers
from engine.model.batch import EVENT, TIME
from engine.model.changes import ANSWERS
from engine.model.feed import Crs, Feed, TimeUnit
from engine.runtime.answer_events import AnswerEvents
from engine.specification import check

FEED = Feed("plane", Crs.PLANAR, TimeUnit.TICKS)
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
CROWD = {"family": "occupancy", "region": SQUARE, "count": [">=", 2]}


def heard(at, *asserted):
    """Of the intervals of a count, each as (start, end, weight)."""
    events = AnswerEvents(with_answers(FEED), [Source("full", "crowd", "occupied", at, "crowd")], {"crowd": check(CROWD, FEED)}, per_entity=False)
    whole = {"query": "crowd", "version": 1, "kind": "occupied", "entities": [], "evidence": [], "score": 3.0}
    rows = [{**whole, "start": start, "end": end, "weight": weight} for start, end, weight in asserted]
    events.take_answers(pa.Table.from_pylist(rows, schema=ANSWERS))
    return events


def taken(events, before):
    rows, known = events.take(before)
    assert known.tolist() == rows.column(TIME).to_pylist(), "a count is known at once"
    return list(zip(rows.column(EVENT).to_pylist(), known.tolist(), strict=True))


@pytest.mark.parametrize("at", ["start", "end"])
def test_an_event_is_handed_on_when_its_time_is_past(at):
    """At its time itself, rows of that time may still come before it."""
    events = heard(at, (5, 5, 1))
    assert (taken(events, 5), taken(events, 6), taken(events, 7)) == ([], [("full", 5)], [])


@pytest.mark.parametrize("at", ["start", "end"])
def test_what_is_taken_back_is_no_event(at):
    assert taken(heard(at, (5, 7, -1)), 9) == []
    assert taken(heard(at, (3, None, -1)), 9) == []
    assert taken(heard(at, (3, None, 1), (3, None, -1), (3, 7, 1)), 9) == [("full", {"start": 3, "end": 7}[at])]


@pytest.mark.parametrize(("at", "value"), [("start", None), ("end", 3.0)])
def test_a_value_that_is_revised_is_missing_at_the_start(at, value):
    """Until the interval ends its value may change (specification 5.9)."""
    rows, _ = heard(at, (3, 7, 1)).take(9)
    assert rows.column("value").to_pylist() == [value]
