"""Critical points from plain positions: against the definition report by report; batches,
lateness, partitions, restarts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.sandbox import run_sandbox
from engine.event_calculus.synopsis import INPUTS
from engine.model.events import Stamper, check_rows
from engine.model.faults import Refused
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.event_calculus.recordings import add, answers
from tests.examples import examples
from tests.oracles.synopsis import Report, Thresholds, critical_points

ROOT = Path(__file__).parents[3]
SQUARES = {"left": (0.0, 0.0, 2.0, 4.0), "low": (1.0, 0.0, 4.0, 1.0)}
THRESHOLDS = Thresholds(gap=6, keep=3)
EVENTS = [
    "gap_start", "gap_end", "stop_start", "stop_end", "slow_motion_start", "slow_motion_end", "change_in_speed_start", "change_in_speed_end",
    "change_in_heading",
]  # fmt: skip
PROGRAM = (
    "\n".join(f"happensAt(seen_{name}(V), T) :- happensAt({name}(V), T)." for name in EVENTS)
    + """
happensAt(seen_entersArea(V, A), T) :- happensAt(entersArea(V, A), T).
happensAt(seen_leavesArea(V, A), T) :- happensAt(leavesArea(V, A), T).
happensAt(seen_velocity(V), T) :- happensAt(velocity(V, _, _, _), T).
happensAt(seen_coord(V), T) :- happensAt(coord(V, _, _), T).
"""
)


def square(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[[west, south], [east, south], [east, north], [west, north], [west, south]]]}


DOCUMENT: dict[str, Any] = {
    "family": "calculus", "version": 1, "program": PROGRAM, "window": 200, "step": 4,
    "synopsis": {"speed": "sog", "course": "cog", "gap": 6, "keep": 3, "areas": {name: square(*box) for name, box in SQUARES.items()}},
}  # fmt: skip


def feed(lateness: int) -> Feed:
    columns = {"sog": "float", "cog": "float"}
    return Feed.from_json({"name": "sea", "crs": "planar", "time": "ticks", "tick": 1, "lateness": lateness, "columns": columns})


def query(lateness: int = 0, **changed: Any) -> RegisteredQuery:
    return RegisteredQuery("q", 1, check({**DOCUMENT, **changed}, feed(lateness)))


def stamped(reports: list[Report], lateness: int = 0) -> pa.Table:
    names = ("entity", "t", "x", "y", "sog", "cog")
    types = (pa.string(), pa.int64(), *[pa.float64()] * 4)
    table = pa.table({name: pa.array([report[i] for report in reports], types[i]) for i, name in enumerate(names)})
    good, dead = check_rows(table, feed(lateness))
    assert not dead
    return Stamper().stamp(good)


def areas(x: float, y: float) -> set[str]:
    return {name for name, (west, south, east, north) in SQUARES.items() if west <= x <= east and south <= y <= north}


def expected(reports: list[Report]) -> Counter[tuple[Any, ...]]:
    """Answers of the program that only repeats the events; events are a set."""
    points = critical_points(reports, areas, max(report.t for report in reports) + 1, THRESHOLDS)
    return Counter({(f"seen_{name}", (entity, area) if area else (entity,), None, t, t): 1 for name, entity, t, area in points})


speeds = st.one_of(st.none(), st.sampled_from([0.0, 0.4, 0.5, 0.6, 3.0, 5.0, 5.1, 6.0, 9.0]))
courses = st.one_of(st.none(), st.sampled_from([0.0, 10.0, 16.0, 180.0, 350.0]))
reports_of = st.lists(
    st.builds(
        Report, st.sampled_from("ab"), st.integers(0, 40), st.integers(0, 4).map(float), st.integers(0, 4).map(float), speeds, courses
    ),
    min_size=1, max_size=30, unique_by=lambda report: (report.entity, report.t),
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(reports_of, st.integers(1, 7), st.integers(1, 3))
def test_the_definition_for_any_batches_and_partitions(reports: list[Report], batch_rows: int, partitions: int) -> None:
    reports = sorted(reports, key=lambda report: report.t)
    table = stamped(reports)
    assert answers(query(distributed=partitions > 1), feed(0), table, batch_rows=batch_rows, partitions=partitions) == expected(reports)


@settings(max_examples=examples(40), deadline=None)
@given(reports_of, st.data())
def test_reports_out_of_order_and_restarts(reports: list[Report], data: st.DataObject) -> None:
    """Delays up to the lateness, and a restart between two batches, change nothing."""
    lateness = 7
    delay = {report: data.draw(st.integers(0, lateness)) for report in reports}
    arrived = sorted(reports, key=lambda report: report.t + delay[report])
    table = stamped(arrived, lateness)
    cut = data.draw(st.integers(0, len(reports)))
    evaluator = Evaluator.start(feed(lateness), [query(lateness)])
    total: Counter[tuple[Any, ...]] = Counter()
    add(total, evaluator.process(table.slice(0, cut)).changes)
    evaluator = Evaluator.load(feed(lateness), [query(lateness)], evaluator.dump())
    add(total, evaluator.process(table.slice(cut)).changes)
    add(total, evaluator.finish().changes)
    assert total == expected(reports)


def test_values_come_with_the_event() -> None:
    program = "initiatedAt(fast(V)=true, T) :- happensAt(velocity(V, S, C, _), T), S > 5, C < 90."
    reports = [Report("a", 3, 0.0, 0.0, 6.0, 45.0)]
    assert answers(query(program=program), feed(0), stamped(reports)) == Counter({("fast", ("a",), "true", 4, None): 1})


def test_faults_have_their_places() -> None:
    with pytest.raises(Refused) as refused:
        query(synopsis={"speed": "sogg", "gap": 0, "turn": -1, "areas": {"a": {"region": "nowhere"}}, "foo": 1})
    assert {fault.pointer for fault in refused.value.faults} == {
        "/synopsis/foo", "/synopsis/speed", "/synopsis/gap", "/synopsis/turn", "/synopsis/areas/a/region",
    }  # fmt: skip


@settings(max_examples=examples(20), deadline=None)
@given(reports_of)
def test_the_sandbox_has_the_critical_points(reports: list[Report]) -> None:
    """A program is tried, and its answers explained, over a period of plain positions: with
    everything from which its answers are derived."""
    table = stamped(sorted(reports, key=lambda report: report.t))
    lanes = run_sandbox(PROGRAM, DOCUMENT, feed(0), table, 0, max(report.t for report in reports))
    shown = Counter((lane["fluent"], tuple(lane["args"]), None, one["start"], one["end"]) for lane in lanes for one in lane["intervals"])
    assert shown == expected(reports)


def test_the_editor_knows_what_a_synopsis_makes() -> None:
    """It requires no columns for these (frontend/src/data/calculus_document_data.ts)."""
    text = (ROOT / "frontend" / "src" / "data" / "calculus_document_data.ts").read_text(encoding="utf-8")
    listed = re.search(r"MADE_BY_SYNOPSIS: readonly string\[\] = \[([^\]]*)\]", text)
    assert listed is not None
    assert re.findall(r'"(\w+)"', listed[1]) == list(INPUTS)
