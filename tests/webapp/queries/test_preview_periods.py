"""Previews of any period of a log with late, repeated and equally old rows, in any segments,
against the oracles of the gate and of the family."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.model.events import row_schema
from engine.model.feed import Feed
from engine.runtime import steps
from engine.sources.eventlog import EventLog
from tests.examples import examples
from tests.oracles import border_monitoring as oracle
from tests.oracles.gate import judged
from webapp.queries import preview as previews

LATENESS = 4
FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ms", "lateness": LATENESS, "columns": {}})
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}
BORDER = {"family": "border", "version": 1, "region": SQUARE}
STAYS = {"family": "transition", "version": 1, "region": SQUARE, "within": 5, "types": ["passed", "returned", "stayed_in", "stayed_out"]}
STEP = st.tuples(st.sampled_from("ab"), st.integers(-6, 9), st.sampled_from([-5.0, 5.0, 15.0]))
"""The entity, how much later than the row before it is, and its x."""


def rows_of(moves: list[tuple[str, int, float]]) -> list[dict[str, Any]]:
    rows, t = [], 10
    for entity, later, x in moves:
        t = max(0, t + later)
        rows.append({"event": "position", "entity": entity, "t": t, "x": x, "y": 5.0})
    return rows


PERIOD = st.tuples(st.integers(-3, 40), st.integers(1, 20)).map(lambda drawn: (drawn[0], drawn[0] + drawn[1]))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=20).map(rows_of), st.integers(1, 8), PERIOD, st.sampled_from([BORDER, STAYS]), st.integers(1, 4))
@example(rows_of([("a", 0, -5.0), ("a", 2, 5.0), ("b", 18, 5.0)]), 3, (0, 20), STAYS, 4)
@example(rows_of([("a", 0, -5.0), ("b", 3, 5.0), ("a", -2, 5.0)]), 1, (0, 12), BORDER, 1)
def test_a_preview_has_the_answers_of_the_periods_accepted_rows(
    rows: list[dict[str, Any]], segment: int, period: tuple[int, int], document: dict[str, Any], step: int
) -> None:
    from_t, to_t = period[0], min(period[1], max(row["t"] for row in rows))
    accepted, _, _ = judged(rows, LATENESS, FEED.dedupe, ("entity", "t", "x", "y"))
    inside = [{**rows[i], "seq": i} for i in accepted if from_t <= rows[i]["t"] <= to_t]
    expected = Counter(
        (kind, entity, start, end) for _, kind, entity, start, end, *_ in oracle.answers(inside, [document], until=max(from_t, to_t)).elements()
    )
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder), FEED.name)
        for begin in range(0, len(rows), segment):
            log.append(pa.Table.from_pylist(rows[begin : begin + segment], schema=row_schema(FEED)))
        request = {"log_root": folder, "feed": FEED.to_json(), "specification": document, "above": {}}
        before, steps.STEP_ROWS = steps.STEP_ROWS, step
        try:
            found = previews.run({**request, "period": {"span": 0, "from_t": period[0], "to_t": period[1]}})
        finally:
            steps.STEP_ROWS = before
    assert Counter((one["kind"], one["entities"][0], one["start"], one["end"]) for one in found["answers"]) == expected
    assert found["total"] == expected.total()
