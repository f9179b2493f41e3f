"""Small adversarial worlds for border and transition queries, and a way to run the stage
over them in any batches."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import shapely
from hypothesis import strategies as st

from engine.border_monitoring.operator import BorderOperator
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from tests.engine.runs import registered
from tests.oracles.border_monitoring import Answer, Row

OPERATOR = BorderOperator()
STAGE = OPERATOR.keyed
NUMBERS = tuple("abcdefghi")
COLUMNS = {"v": ColumnType.FLOAT, "w": ColumnType.INT, "k": ColumnType.STRING} | dict.fromkeys(NUMBERS, ColumnType.FLOAT)
PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, columns=COLUMNS)
GLOBE = Feed("globe", Crs.GEOGRAPHIC, TimeUnit.TICKS, columns=COLUMNS)
ARROW = {ColumnType.FLOAT: pa.float64(), ColumnType.INT: pa.int64(), ColumnType.STRING: pa.string()}
SCHEMA = pa.schema(
    [("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("seq", pa.int64())]
    + [(name, ARROW[kind]) for name, kind in COLUMNS.items()]
)


def batch_of(rows: Sequence[Row], dictionary: EntityDictionary) -> Batch:
    return Batch(pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=SCHEMA), dictionary)


def answers_in(changes: pa.Table, queries: Sequence[RegisteredQuery]) -> Counter[Answer]:
    """Changes in the form of the oracle's answers; the evidence must name its event's entity."""
    found: Counter[Answer] = Counter()
    for row in changes.to_pylist():
        assert row["weight"] == 1
        assert all(item["entity"] == row["entities"][0] for item in row["evidence"])
        seqs = tuple(item["seq"] for item in row["evidence"])
        found[(int(queries[row["query"]].id), row["kind"], row["entities"][0], row["start"], row["end"], seqs)] += 1
    return found


def ordered(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["t"], row["seq"]))


def run(documents: Sequence[dict[str, Any]], rows: Sequence[Row], feed: Feed, chance: random.Random | None = None) -> Counter[Answer]:
    """Answers of one partition: in one batch, or cut, dumped and migrated at random positions."""
    queries = registered(documents, feed)
    index = OPERATOR.compile(queries, feed)
    state, dictionary = STAGE.initial(index), EntityDictionary()
    found: Counter[Answer] = Counter()
    rest = ordered(rows)
    while rest:
        size = chance.randint(1, 7) if chance else len(rest)
        part, rest = rest[:size], rest[size:]
        output = STAGE.step(index, state, batch_of(part, dictionary), part[-1]["t"])
        state = output.state
        found += answers_in(output.changes, queries)
        STAGE.check(index, state)
        if chance and chance.random() < 0.25:
            state = STAGE.load(index, STAGE.dump(index, state))
        if chance and chance.random() < 0.15:
            state = STAGE.migrate(index, [(index, state)])
            STAGE.check(index, state)
    if rows:
        found += answers_in(STAGE.step(index, state, batch_of([], dictionary), max(row["t"] for row in rows) + 1).changes, queries)
        STAGE.check(index, state)
    return found


# -- strategies: a grid of few places, so that borders, vertices and equal times are hit all the
# time -----------------------------------

SIZE = 6
grid = st.integers(0, SIZE)


@st.composite
def polygons(draw: st.DrawFn) -> dict[str, Any]:
    """Valid polygons and multipolygons on the integer grid: boxes, triangles, stars, holes,
    parts that touch in a point."""
    x, y = draw(st.integers(0, SIZE - 1)), draw(st.integers(0, SIZE - 1))
    kind = draw(st.sampled_from(["box", "ring", "pair", "corners"]))
    if kind == "box":
        shape = shapely.box(x, y, x + draw(st.integers(1, 4)), y + draw(st.integers(1, 4)))
    elif kind == "ring":
        shape = shapely.box(x, y, x + 4, y + 4).difference(shapely.box(x + 1, y + 1, x + draw(st.integers(2, 3)), y + draw(st.integers(2, 3))))
    elif kind == "pair":
        shape = shapely.union(shapely.box(x, y, x + 1, y + 2), shapely.box(x + 1, y + 2, x + 3, y + 3))
    else:
        shape = shapely.Polygon(draw(st.lists(st.tuples(grid, grid), min_size=3, max_size=6)))
        if not shape.is_valid or shape.area == 0:
            shape = shapely.box(x, y, x + 1, y + 1)
    document: dict[str, Any] = json.loads(shapely.to_geojson(shape))
    return document


plane_circles = st.fixed_dictionaries({"center": st.tuples(grid, grid).map(list), "radius": st.sampled_from([0.5, 1, 2, 2.5, 5, 3.1622776601683795])})
globe_circles = st.fixed_dictionaries({"center": st.tuples(grid, grid).map(list), "radius": st.sampled_from([50e3, 111319.49079327358, 2e5])})


@st.composite
def ranges(draw: st.DrawFn) -> dict[str, list[float | None]]:
    columns = draw(st.lists(st.sampled_from(["v", "w", "x", "y", *NUMBERS]), min_size=1, max_size=9, unique=True))
    low = st.one_of(st.none(), st.integers(0, 3))
    high = st.one_of(st.none(), st.integers(4, 7))
    return {column: [draw(low), draw(high)] for column in columns}


conditions = st.sampled_from([["k", "=", "p"], ["k", "!=", "p"], ["v", ">", 2], ["w", "in", [1, 2, 3]], ["k", "in", ["q"]]])


@st.composite
def options(draw: st.DrawFn, *, of_region: bool, globe: bool = False) -> dict[str, Any]:
    """Some of the options that are allowed for what is watched."""
    given: dict[str, Any] = {
        "first": draw(st.sampled_from(["ignore", "enter"])),
        "dwell": draw(st.sampled_from([0, 0, 1, 2, 4])),
        "while": draw(st.sampled_from([[], [], [["k", "!=", "q"]], [["w", ">", 1]]])),
    }
    if of_region:
        given |= {
            "hysteresis": draw(st.sampled_from([0, 111319.49079327358, 2e5] if globe else [0, 1, 1.4142135623730951, 2])),
            "accuracy": draw(st.sampled_from([None, None, "v"])),
        }
    return {key: value for key, value in given.items() if value and value != "ignore"}


@st.composite
def documents(
    draw: st.DrawFn, *, globe: bool = False, kinds: Sequence[str] = ("ranges", "circle", "polygon", "polygon"), optional: bool = True
) -> dict[str, Any]:
    """A specification of either family; with `optional`, one in three has options."""
    kind = draw(st.sampled_from(list(kinds)))
    watched: dict[str, Any]
    if kind == "ranges":
        watched = {"ranges": draw(ranges())}
    else:
        watched = {"region": draw(polygons() if kind == "polygon" else globe_circles if globe else plane_circles)}
    document: dict[str, Any] = {"family": draw(st.sampled_from(["border", "transition"])), **watched}
    if draw(st.integers(0, 2)) == 0:
        document["where"] = [draw(conditions)]
    if optional and draw(st.integers(0, 2)) == 0:
        # On the globe the oracle samples distances to polygons, which cannot decide ties.
        document |= draw(options(of_region=kind != "ranges" and not (globe and kind == "polygon"), globe=globe))
    if document["family"] == "transition":
        document["within"] = draw(st.sampled_from([0, 1, 3, 8]))
        if draw(st.booleans()):
            document["types"] = draw(
                st.lists(st.sampled_from(["passed", "returned", "stayed_in", "stayed_out"]), min_size=1, max_size=3, unique=True)
            )
    elif (kind == "polygon" or (kind == "circle" and not globe)) and not {"hysteresis", "accuracy", "dwell", "while"} & set(document):
        document["segments"] = draw(st.booleans())
    return document


@st.composite
def streams(draw: st.DrawFn, *, scale: int = 1, most: int = 40) -> list[Row]:
    """Rows in arrival order; times mostly ascending, often equal; some
    without position or readings."""
    rows = []
    t = 0
    for seq in range(draw(st.integers(0, most))):
        t += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        row: dict[str, Any] = {"entity": draw(st.sampled_from("1112")), "t": t, "seq": seq, "x": None, "y": None}
        if draw(st.integers(0, 9)) < 9:
            place = st.integers(0, SIZE * scale)
            row |= {"x": draw(place) / scale, "y": draw(place) / scale}
        reading = st.one_of(st.none(), st.integers(0, 7))
        row |= {"v": draw(reading), "w": draw(reading), "k": draw(st.sampled_from(["p", "q", None]))}
        common = draw(st.integers(0, 7))
        row |= dict.fromkeys(NUMBERS, common)
        row[draw(st.sampled_from(NUMBERS))] = draw(st.integers(0, 7))
        rows.append(row)
    return rows
