"""On a feed of milliseconds time begins with the least t that has arrived, whatever
the batches and partitions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.event_calculus.recordings import add, answers
from tests.examples import examples

FEED = Feed.from_json({"name": "yard", "crs": "planar", "time": "ms", "tick": 1, "lateness": 6, "columns": {"value": "string"}})
PROGRAM = """
initially(open(door)=true).
gate(a). gate(b).
grounding(idle(X)=true) :- gate(X).
initiatedAt(state(X)=V, T) :- happensAt(set(X, V), T).
initiatedAt(moved(X)=true, T) :- happensAt(start(moving(X)=true), T).
holdsFor(idle(X)=true, I) :- holdsFor(moving(X)=true, I1), complement_all([I1], I).
"""

Row = tuple[str, str, int, str]


def query(**changed: Any) -> RegisteredQuery:
    document = {
        "family": "calculus", "version": 1, "program": PROGRAM, "outputs": ["open", "state", "moved", "idle"], "window": 50, "step": 3,
        "inputs": {"set": {"args": ["entity", "value"]}, "moving": {"args": ["entity"], "fluent": "points"}},
    }  # fmt: skip
    return RegisteredQuery("q", 1, check({**document, **changed}, FEED))


def stamped(rows: list[Row]) -> pa.Table:
    names = ("event", "entity", "t", "value")
    good, dead = check_rows(pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)}), FEED)
    assert not dead
    return Stamper().stamp(good)


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("distributed", [False, True])
def test_rows_before_the_first_that_arrived_count_in_every_partition(partitions: int, distributed: bool) -> None:
    table = stamped([("set", "a", 101, "on"), ("set", "a", 100, "off"), ("set", "a", 106, "off")])
    found = answers(query(outputs=["state"], distributed=distributed), FEED, table, partitions=partitions)
    assert set(found) == {("state", ("a",), "off", 101, 102), ("state", ("a",), "on", 102, 107), ("state", ("a",), "off", 107, None)}


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 4, 5, 7])
def test_a_row_that_arrives_after_its_window_does_not_move_the_beginning(batch_rows: int) -> None:
    """No rule reads `other`. The row at 0 arrives when the window that ends at 3 is over, and the
    next one begins after it."""
    table = stamped([("other", "a", t, "") for t in (1, 2, 3)] + [("set", "a", t, "on") for t in (2, 4, 0, 8, 10)])
    found = answers(query(outputs=["open", "idle"], window=4), FEED, table, batch_rows=batch_rows)
    assert set(found) == {("open", ("door",), "true", 1, None), ("idle", ("a",), "true", 1, None), ("idle", ("b",), "true", 1, None)}


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_batches_partitions_and_restarts_do_not_move_it(data: st.DataObject) -> None:
    row = st.tuples(st.sampled_from(["set", "moving", "other"]), st.sampled_from("abc"), st.integers(0, 20), st.sampled_from(["on", "off"]))
    delayed = data.draw(st.lists(st.tuples(row, st.integers(0, 6)), min_size=1, max_size=15))
    rows = [one if one[0] == "set" else (*one[:3], "true") for one, _ in sorted(delayed, key=lambda pair: pair[0][2] + pair[1])]
    table, window = stamped(rows), data.draw(st.sampled_from([3, 5, 9, 50]))
    asked = query(window=window, distributed=data.draw(st.booleans()))
    whole = answers(query(window=window), FEED, table)
    assert answers(asked, FEED, table, batch_rows=data.draw(st.integers(1, 6)), partitions=data.draw(st.integers(1, 3))) == whole
    cut = data.draw(st.integers(0, len(table)))
    evaluator = Evaluator.start(FEED, [asked], 2)
    total: Counter[tuple[Any, ...]] = Counter()
    add(total, evaluator.process(table.slice(0, cut)).changes)
    evaluator = Evaluator.load(FEED, [asked], evaluator.dump())
    add(total, evaluator.process(table.slice(cut)).changes)
    add(total, evaluator.finish().changes)
    assert total == whole


@pytest.mark.parametrize("batch_rows", [1, 2, 3])
@pytest.mark.parametrize("time", ["ms", "ticks"])
def test_what_holds_initially_needs_no_row_that_a_rule_reads(time: str, batch_rows: int) -> None:
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": time, "tick": 1, "lateness": 6, "columns": {"value": "string"}})
    document = {"family": "calculus", "version": 1, "program": PROGRAM, "outputs": ["open"], "window": 9, "step": 3}
    document["inputs"] = {"set": {"args": ["entity", "value"]}, "moving": {"args": ["entity"], "fluent": "points"}}
    table = stamped([("other", "a", 31, ""), ("other", "a", 30, ""), ("other", "b", 70, "")])
    asked = RegisteredQuery("q", 1, check(document, feed))
    begins = 30 if time == "ms" else 0
    assert set(answers(asked, feed, table, batch_rows=batch_rows)) == {("open", ("door",), "true", begins, None)}
    unsatisfied = RegisteredQuery("q", 1, check({**document, "where": [["event", "=", "set"]]}, feed))
    assert set(answers(unsatisfied, feed, table, batch_rows=batch_rows)) == {("open", ("door",), "true", begins, None)}


@pytest.mark.parametrize("window", [10, 29, 30, 31, 100])
@pytest.mark.parametrize("edge", ["exact", "rtec"])
@pytest.mark.parametrize(("time", "begins"), [("ms", 30), ("ticks", 0)])
def test_what_holds_initially_starts_however_short_the_window(time: str, begins: int, edge: str, window: int) -> None:
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": time, "tick": 1})
    program = "initially(open(door)=true).\ninitiatedAt(opened(X)=true, T) :- happensAt(start(open(X)=true), T).\n"
    program += "terminatedAt(open(X)=true, T) :- happensAt(shut(X), T).\n"
    document = {"family": "calculus", "version": 1, "program": program, "outputs": ["opened"], "window": window, "step": 5, "edge": edge}
    asked = RegisteredQuery("q", 1, check({**document, "inputs": {"shut": {"args": ["entity"]}}}, feed))
    table = stamped([("shut", "hatch", 30, ""), ("shut", "door", 50, "")])
    assert set(answers(asked, feed, table)) == {("opened", ("door",), "true", begins, None)}


@pytest.mark.parametrize("grounding", ["person(a).", "dynamicDomain(person(_)). grounding(moving(X)=true) :- person(X)."])
@pytest.mark.parametrize("edge", ["exact", "rtec"])
@pytest.mark.parametrize(("window", "begins"), [(5, 26), (10, 21), (30, 1), (31, 0), (100, 0)])
def test_a_complement_starts_with_the_first_tick_of_the_window_that_knows_its_grounding(window: int, begins: int, edge: str, grounding: str) -> None:
    feed = Feed.from_json({"name": "yard", "crs": "planar", "time": "ticks", "tick": 1})
    program = f"""
        {grounding}
        grounding(idle(X)=true) :- person(X).
        holdsFor(idle(X)=true, I) :- holdsFor(moving(X)=true, I1), complement_all([I1], I).
        initiatedAt(rested(X)=true, T) :- happensAt(start(idle(X)=true), T).
        """
    document = {"family": "calculus", "version": 1, "program": program, "outputs": ["idle", "rested"], "window": window, "step": 5, "edge": edge}
    asked = RegisteredQuery("q", 1, check({**document, "inputs": {"moving": {"args": ["entity"], "fluent": "points"}}}, feed))
    found = set(answers(asked, feed, stamped([("moving", "a", 30, "true"), ("moving", "a", 31, "true"), ("moving", "a", 35, "true")])))
    assert {("idle", ("a",), "true", begins, 30), ("rested", ("a",), "true", begins, None)} <= found


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 9])
@pytest.mark.parametrize("edge", ["exact", "rtec"])
@pytest.mark.parametrize(("window", "late", "begins"), [(2, 0, 2), (2, 1, 2), (3, 1, 1), (9, 0, 0)])
def test_what_holds_initially_is_kept_when_time_begins_earlier(window: int, late: int, begins: int, edge: str, batch_rows: int) -> None:
    table = stamped([("set", "a", t, "on") for t in (2, 3, late, 6, 15)])
    found = answers(query(outputs=["open"], window=window, step=1, edge=edge), FEED, table, batch_rows=batch_rows)
    assert set(found) == {("open", ("door",), "true", begins, None)}


@pytest.mark.parametrize("batch_rows", [1, 2, 5])
def test_a_row_of_the_window_counts_beside_one_that_is_too_late(batch_rows: int) -> None:
    """At 8 the row at 3 has left the window of 4 and that at 5 has not."""
    table = stamped([("set", "a", 7, "on"), ("set", "b", 8, "on"), ("set", "c", 3, "on"), ("set", "d", 5, "on"), ("set", "e", 9, "on")])
    found = answers(query(outputs=["state"], window=4, step=1), FEED, table, batch_rows=batch_rows)
    assert set(found) == {("state", (name,), "on", t + 1, None) for name, t in (("a", 7), ("b", 8), ("d", 5), ("e", 9))}
