"""Small random worlds full of corner cases for motion patterns, and ways to run the stages
and the evaluator over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engine.model.batch import Batch, EntityDictionary
from engine.model.events import Stamper
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.motion_patterns.operator import MotionOperator
from tests.engine.runs import changes_of, registered
from tests.oracles.motion_patterns import Answer, Row

OPERATOR = MotionOperator()
COLUMNS = {"v": ColumnType.INT}
PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, columns=COLUMNS, dedupe=False)
GLOBE = Feed("globe", Crs.GEOGRAPHIC, TimeUnit.TICKS, columns=COLUMNS, dedupe=False)
SCHEMA = pa.schema([("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("v", pa.int64())])


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMA.names} for row in rows], schema=SCHEMA)


def add_answers(total: Counter[Answer], changes: pa.Table) -> None:
    """Adds changes in the form of the oracle's answers; a retraction must
    be of an asserted answer."""
    for row in changes.to_pylist():
        assert row["kind"] == "match"
        assert all(item["entity"] == row["entities"][0] for item in row["evidence"])
        # A total may reach its bound without a sample in its window; then it has no item.
        labels = [int(item["variable"].removeprefix("P")) for item in row["evidence"]]
        assert labels == sorted(set(labels))
        seqs = tuple(item["seq"] for item in row["evidence"])
        answer = (int(row["query"]), row["entities"][0], row["start"], row["end"], row["score"], seqs)
        total[answer] += row["weight"]
        assert total[answer] >= 0, f"{answer} is retracted but was not asserted"
        if total[answer] == 0:
            del total[answer]


def run(
    documents: Sequence[Mapping[str, Any]], rows: Sequence[Row], feed: Feed, chance: random.Random | None = None, partitions: int = 1
) -> Counter[Answer]:
    """Answers of the evaluator over stamped rows in arrival order: in one batch, or in random
    batches with random restarts and registrations."""
    found: Counter[Answer] = Counter()
    for changes in changes_of(feed, registered(documents, feed), Stamper().stamp(table_of(rows)), chance, partitions):
        add_answers(found, changes)
    return found


def batch_of(rows: Sequence[Row], dictionary: EntityDictionary) -> Batch:
    table = table_of(rows).append_column("seq", pa.array([row["seq"] for row in rows], pa.int64()))
    return Batch(table.combine_chunks().to_batches()[0] if rows else pa.RecordBatch.from_pylist([], schema=table.schema), dictionary)


# -- strategies: few places, so that borders, equal distances and equal times are frequent ---------

SIZE = 4
grid = st.integers(0, SIZE)


def box(x: float, y: float, width: float, height: float) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]]}


@st.composite
def regions(draw: st.DrawFn, globe: bool = False) -> dict[str, Any]:
    if draw(st.integers(0, 2)) == 0:
        radius = draw(st.sampled_from([60e3, 111319.49079327358, 2.5e5] if globe else [0.5, 1, 2, 2.23606797749979]))
        return {"center": [draw(grid), draw(grid)], "radius": radius}
    return box(draw(grid), draw(grid), draw(st.integers(1, 3)), draw(st.integers(1, 3)))


KINDS = ("windowed", "ordered", "ordered", "scored", "mixed")
windows = st.tuples(st.integers(1, 9), st.integers(0, 4)).map(lambda pair: [pair[0] + pair[1], pair[1]])


@st.composite
def binary(draw: st.DrawFn, *, globe: bool = False, free: int = 2) -> dict[str, Any]:
    """A binary predicate; one in `free` + 1 has a window."""
    predicate: dict[str, Any] = {draw(st.sampled_from(["inside", "outside"])): draw(regions(globe))}
    if draw(st.integers(0, free)) > 0 and free:
        return predicate
    return {**predicate, "window": draw(windows), "quantifier": draw(st.sampled_from(["exists", "forall"]))}


@st.composite
def totals(draw: st.DrawFn, *, globe: bool = False) -> dict[str, Any]:
    predicate: dict[str, Any] = {draw(st.sampled_from(["inside", "outside"])): draw(regions(globe)), "window": draw(windows), "quantifier": "total"}
    at_least = draw(st.booleans())
    predicate["at_least" if at_least else "at_most"] = draw(st.integers(1 if at_least else 0, 6))
    if draw(st.booleans()):
        predicate["gap"] = draw(st.sampled_from([None, 0, 1, 2, 5]))
    return predicate


@st.composite
def numerical(draw: st.DrawFn, *, globe: bool = False) -> dict[str, Any]:
    place = st.tuples(grid, grid).map(list)
    circle = st.fixed_dictionaries({"center": place, "radius": st.sampled_from([1e5] if globe else [1, 1.5])})
    targets = [place, place.map(lambda pair: {"type": "Point", "coordinates": pair}), circle]
    if not globe:
        targets.append(regions())
    return {"distance": draw(st.one_of(targets)), "window": draw(windows), "quantifier": draw(st.sampled_from(["exists", "forall"]))}


@st.composite
def thetas(draw: st.DrawFn, globe: bool = False) -> dict[str, Any]:
    op = draw(st.sampled_from(["<=", ">=", "min", "max", "top", "top"]))
    if op == "top":
        return {"op": op, "k": draw(st.integers(1, 3)), "order": draw(st.sampled_from(["min", "max"]))}
    if op in ("<=", ">="):
        return {"op": op, "value": draw(st.sampled_from([0, 1e5, 222638.98158654716, 3e5] if globe else [0, 1, 2, 3, 1.4142135623730951, 4.5]))}
    return {"op": op}


@st.composite
def documents(draw: st.DrawFn, *, globe: bool = False, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    kind = draw(st.sampled_from(list(kinds)))
    predicates = []
    if kind in ("windowed", "mixed"):
        predicates += draw(st.lists(binary(globe=globe, free=0), min_size=1, max_size=2))
    if kind in ("ordered", "mixed"):
        predicates += draw(st.lists(binary(globe=globe), min_size=1, max_size=5 if kind == "ordered" else 2))
    if kind in ("scored", "mixed"):
        predicates += draw(st.lists(numerical(globe=globe), min_size=1, max_size=3))
    if kind == "totals":
        predicates += draw(st.lists(totals(globe=globe), min_size=1, max_size=2))
        predicates += draw(st.lists(st.one_of(binary(globe=globe), numerical(globe=globe)), max_size=3))
    if kind in ("mixed", "totals"):
        predicates = draw(st.permutations(predicates))
    document: dict[str, Any] = {"family": "motion", "predicates": predicates, "every": draw(st.sampled_from([1, 1, 2, 3, 5, 7]))}
    if any("distance" in predicate for predicate in predicates):
        document["theta"] = draw(thetas(globe))
    if any(predicate.get("window") is None for predicate in predicates):
        document["horizon"] = draw(st.sampled_from([1, 4, 9, 20, 40]))
    if draw(st.integers(0, 3)) == 0:
        document["where"] = [["v", "<", 2]]
    return document


@st.composite
def streams(draw: st.DrawFn, *, most: int = 30) -> list[Row]:
    """Rows in order of time; steps of 0 to 12, so that times are equal and windows fall
    empty; some without position."""
    rows: list[Row] = []
    t = draw(st.sampled_from([-100, -5, -1, 0, 5]))
    for seq in range(draw(st.integers(0, most))):
        t += draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 12]))
        row: dict[str, Any] = {"entity": draw(st.sampled_from(["1", "1", "2", "10"])), "t": t, "seq": seq, "x": None, "y": None}
        if draw(st.integers(0, 9)) < 9:
            row |= {"x": float(draw(grid)), "y": float(draw(grid))}
        row["v"] = draw(st.sampled_from([0, 1, 2, None]))
        rows.append(row)
    return rows
