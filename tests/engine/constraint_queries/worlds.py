"""Small random worlds full of corner cases for constraint queries, and ways to
run the evaluator over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engine.model.events import Stamper
from engine.model.faults import Refused
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.runs import changes_of, registered
from tests.oracles.constraint_queries import Answer, Row

COLUMNS = {"v": ColumnType.FLOAT, "n": ColumnType.INT, "s": ColumnType.STRING, "b": ColumnType.BOOL}
PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, columns=COLUMNS, dedupe=False)
GLOBE = Feed("globe", Crs.GEOGRAPHIC, TimeUnit.TICKS, columns=COLUMNS, dedupe=False)
SCHEMA = pa.schema(
    [("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()),
     ("v", pa.float64()), ("n", pa.int64()), ("s", pa.string()), ("b", pa.bool_())]
)  # fmt: skip
BIG = 2**53
DEGREE = 111319.49079327358
"""Metres along the equator."""


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMA.names} for row in rows], schema=SCHEMA)


def add_answers(total: Counter[Answer], changes: pa.Table, rows: Sequence[Row]) -> None:
    """Adds changes in the form of the oracle's answers. Checks that nothing is retracted and that
    evidence repeats the events."""
    for row in changes.to_pylist():
        assert (row["kind"], row["weight"], row["value"], row["score"]) == ("match", 1, None, None)
        for item, entity in zip(row["evidence"], row["entities"], strict=True):
            event = rows[item["seq"]]
            assert (item["entity"], item["t"], item["x"], item["y"]) == (entity, event["t"], event["x"], event["y"])
            assert event["entity"] == entity
        seqs = tuple(item["seq"] for item in row["evidence"])
        total[int(row["query"]), tuple(row["entities"]), row["start"], row["end"], seqs] += 1


def run(
    documents: Sequence[Mapping[str, Any]], rows: Sequence[Row], feed: Feed, chance: random.Random | None = None, partitions: int = 1
) -> Counter[Answer]:
    """Answers of the evaluator: in one batch, or in random batches with random restarts
    and registrations between."""
    found: Counter[Answer] = Counter()
    for changes in changes_of(feed, registered(documents, feed), Stamper().stamp(table_of(rows)), chance, partitions):
        add_answers(found, changes, rows)
    return found


# -- strategies: few values, so that ties, borders and equal times are frequent --------------------

PLACES: Mapping[bool, Sequence[tuple[float, float] | None]] = {
    False: [None, (0, 0), (1, 0), (1, 1), (2, 2), (4, 3)],
    True: [None, (180, 0), (-180, 0), (179.5, 0), (-179.5, 0), (0, 0), (1, 0), (0, 90), (77, 89.9)],
}
LIMITS = {False: [0, 1, 1.4142135623730951, 2, 5], True: [0, DEGREE / 2, DEGREE, 120_000, 1e7, 1.9e7]}
VALUES = {"v": [None, 0.0, 1.0, 1.5, float(BIG)], "n": [None, 0, 1, 2, BIG, BIG + 1], "s": [None, "", "p", "q\0"], "b": [None, True, False]}
NUMBERS, OPS = ("v", "n"), ("=", "!=", "<", "<=", ">", ">=")


@st.composite
def rows(draw: st.DrawFn, *, globe: bool = False, most: int = 9) -> list[Row]:
    found: list[dict[str, Any]] = []
    now = 0
    for seq in range(draw(st.sampled_from([0, 2, most - 2, most - 1, most, most]))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2]))
        place = draw(st.sampled_from(PLACES[globe])) or (None, None)
        row: dict[str, Any] = {"seq": seq, "entity": draw(st.sampled_from("abc")), "t": now, "x": place[0], "y": place[1]}
        for name, values in VALUES.items():
            row[name] = draw(st.sampled_from(values))
        found.append(row)
    return found


@st.composite
def conditions(draw: st.DrawFn) -> list[Any]:
    column = draw(st.sampled_from(["entity", "v", "n", "s", "b"]))
    if column == "b":
        return ["b", draw(st.sampled_from(["=", "!="])), draw(st.booleans())]
    values = "abc" if column == "entity" else [one for one in VALUES[column] if one is not None]
    if draw(st.integers(0, 3)) == 0:
        return [column, "in", draw(st.lists(st.sampled_from(list(values)), max_size=2))]
    return [column, draw(st.sampled_from(OPS)), draw(st.sampled_from(list(values)))]


@st.composite
def comparisons(draw: st.DrawFn, names: Sequence[str]) -> list[Any]:
    one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    what = draw(st.sampled_from(["numbers", "texts", "bools", "constant", "sums", "sums"]))
    if what == "sums":
        return draw(sums(names))
    if what == "numbers":
        return [f"{one}.{draw(st.sampled_from(NUMBERS))}", draw(st.sampled_from(OPS)), f"{other}.{draw(st.sampled_from(NUMBERS))}"]
    if what == "texts":
        texts = st.sampled_from(["s", "entity"])
        return [f"{one}.{draw(texts)}", draw(st.sampled_from(OPS)), f"{other}.{draw(texts)}"]
    if what == "bools":
        return [f"{one}.b", draw(st.sampled_from(["=", "!="])), f"{other}.b"]
    column, op, constant = draw(conditions())
    if op != "in" and draw(st.booleans()):
        return [constant, op, f"{one}.{column}"]
    return [f"{one}.{column}", op, constant]


@st.composite
def sums(draw: st.DrawFn, names: Sequence[str]) -> list[Any]:
    """At least one side names a column within a sum."""
    sides = [f"{draw(operands(names))} {draw(st.sampled_from('+-*'))} {draw(st.sampled_from(['2', '0.1', '3.5']))}"]
    sides[0] = draw(st.sampled_from([sides[0], f"{draw(operands(names))} - {draw(operands(names))}", f"-2 * {draw(operands(names))} + {sides[0]}"]))
    sides.append(draw(st.one_of(operands(names), st.sampled_from([0, 1, -1.5, "0.1 + " + draw(operands(names))]))))
    left, right = draw(st.permutations(sides))
    return [left, draw(st.sampled_from(OPS)), right]


def operands(names: Sequence[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(names), st.sampled_from(["v", "n", "t"])).map(".".join)


@st.composite
def constraints(draw: st.DrawFn, names: Sequence[str], globe: bool) -> dict[str, Any]:
    between = draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=len(names)))
    found: dict[str, Any] = {"between": between}
    keys = draw(st.lists(st.sampled_from(["dt", "distance", "inside", "compare"]), unique=True, min_size=1, max_size=3))
    if len(between) > 1:
        if "dt" in keys:
            found["dt"] = draw(spans())
        if "distance" in keys:
            least, most = sorted([draw(st.sampled_from(LIMITS[globe])), draw(st.sampled_from(LIMITS[globe]))])
            found["distance"] = draw(st.sampled_from([{"max": most}, {"max": most}, {"min": least}, {"min": least, "max": most}]))
            if draw(st.booleans()):
                found["distance"] = found["distance"] | {"open": True}
    if "compare" in keys:
        found["compare"] = draw(st.lists(comparisons(between), min_size=1, max_size=2))
    if "inside" in keys or len(found) == 1:
        found["inside"] = {"center": [0, 0], "radius": draw(st.sampled_from([100_000, DEGREE, 1.5e7] if globe else [1, 2, 5]))}
    return found


@st.composite
def spans(draw: st.DrawFn) -> list[int | None]:
    low, high = sorted([draw(st.integers(-6, 6)), draw(st.sampled_from([-2, 0, 0, 0, 1, 3, 6]))])
    return draw(st.sampled_from([[low, high], [low, high], [0, high] if high >= 0 else [low, high], [low, None], [None, high]]))


@st.composite
def documents(draw: st.DrawFn, *, globe: bool = False, most: int = 3) -> dict[str, Any]:
    """An accepted document: a tree of time bounds keeps memory bounded, the rest is arbitrary;
    documents that cannot be satisfied are drawn again."""
    names = [f"V{i + 1}" for i in range(draw(st.sampled_from([1, 2, most, most, most])))]
    variables = {name: draw(filters()) for name in names}
    found: dict[str, Any] = {"family": "constraint", "variables": variables, "constraints": []}
    alike = draw(st.booleans())
    if alike:  # Interchangeable: one filter, one mutual constraint.
        found["variables"] = dict.fromkeys(names, variables["V1"])
    if len(names) > 1 and alike:
        width = draw(st.integers(0, 6))
        found["constraints"] += [{"between": names, "dt": [-width, width]}, *draw(st.lists(mutual(names, globe), max_size=1))]
    else:
        for i, name in enumerate(names[1:]):
            low, high = sorted([draw(st.integers(-6, 6)), draw(st.sampled_from([-2, 0, 0, 1, 3, 6]))])
            pair = [draw(st.sampled_from(names[: i + 1])), name]
            found["constraints"].append({"between": draw(st.permutations(pair)), "dt": [low, high]})
        if draw(st.booleans()):
            found["constraints"] += draw(st.lists(constraints(names, globe), max_size=2))
    if len(names) > 1 and draw(st.booleans()):
        group = draw(st.permutations(names))
        found["symmetric"] = [group[: draw(st.integers(2, len(names)))]]
    if draw(st.integers(0, 3)) == 0:
        found["where"] = [draw(conditions())]
    found["report"] = draw(st.sampled_from(["all", "all", "first"]))
    found["expiration"] = draw(st.sampled_from(["tight", "tight", "loose", "domains"]))
    return found


@st.composite
def filters(draw: st.DrawFn) -> dict[str, Any]:
    """Mostly an entity or no filter, so that most queries have answers."""
    what = draw(st.sampled_from(["none", "none", "entity", "entity", "wild"]))
    if what == "wild":
        return {"where": [draw(conditions())]}
    return {} if what == "none" else {"where": [["entity", "=", draw(st.sampled_from("abc"))]]}


@st.composite
def mutual(draw: st.DrawFn, names: Sequence[str], globe: bool) -> dict[str, Any]:
    return {"between": list(names), "distance": {"max": draw(st.sampled_from(LIMITS[globe])), "open": False}}


def accepted(document: Mapping[str, Any], feed: Feed) -> bool:
    """Whether the document is satisfiable; any other fault is an error of the test."""
    try:
        check(document, feed)
    except Refused as refused:
        assert all("no events can satisfy" in str(fault) or "no distance is" in str(fault) for fault in refused.faults), refused
        return False
    return True


def one_document(*, globe: bool = False, most: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    return documents(globe=globe, most=most).filter(lambda document: accepted(document, GLOBE if globe else PLANE))
