"""Small random worlds full of corner cases for composite queries, and ways to
run the evaluator over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engine.complex_events import pattern as tree
from engine.complex_events.pattern import Pattern, pattern_text, primitives
from engine.model.events import Stamper
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.specification import check
from tests.engine.complex_events.writing import pattern_tree
from tests.engine.runs import changes_of, registered
from tests.oracles.complex_events import Answer, Row, detections

COLUMNS = {"reader": ColumnType.STRING, "n": ColumnType.INT, "v": ColumnType.FLOAT, "b": ColumnType.BOOL}
PLANE = Feed("plane", Crs.PLANAR, TimeUnit.TICKS, columns=COLUMNS, dedupe=False)
SCHEMA = pa.schema(
    [("entity", pa.string()), ("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()),
     ("reader", pa.string()), ("n", pa.int64()), ("v", pa.float64()), ("b", pa.bool_())]
)  # fmt: skip
NAMES = ("A", "B", "C", "D")
SPANS = st.sampled_from([0, 1, 2, 3, 4, 6, 9])


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMA.names} for row in rows], schema=SCHEMA)


class Checked:
    """Compares answers with the oracle's occurrences: start and end of each, and that
    the evidence is one of them."""

    def __init__(self, rows: Sequence[Row], documents: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.expected: Counter[Answer] = Counter()
        self.witnesses: dict[tuple[int, str | None, int, int], set[frozenset[int]]] = {}
        for number, document in enumerate(documents):
            for entity, completed in detections(rows, as_tree(document)).items():
                for (end, _), occurrences in completed.items():
                    start = max(one.start for one in occurrences)
                    self.expected[Answer(number, entity, start, end)] += 1
                    self.witnesses.setdefault((number, entity, start, end), set()).update(one.events for one in occurrences if one.start == start)
        self.found: Counter[Answer] = Counter()

    def add(self, changes: pa.Table) -> None:
        for row in changes.to_pylist():
            assert (row["kind"], row["weight"], row["value"], row["score"]) == ("detection", 1, None, None)
            answer = Answer(int(row["query"]), row["entities"][0] if row["entities"] else None, row["start"], row["end"])
            self.found[answer] += 1
            for item in row["evidence"]:
                event = self.rows[item["seq"]]
                assert (item["entity"], item["t"], item["x"], item["y"]) == (event["entity"], event["t"], event["x"], event["y"])
            assert row["evidence"] == sorted(row["evidence"], key=lambda item: (item["t"], item["seq"]))
            assert frozenset(item["seq"] for item in row["evidence"]) in self.witnesses.get(tuple(answer), set())

    def equal(self) -> None:
        assert self.found == self.expected


def as_tree(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its pattern as the tree that the program reads from it."""
    return {**document, "pattern": pattern_tree(check(document, PLANE).pattern)}


def longer(document: Mapping[str, Any], factor: int) -> dict[str, Any]:
    """The document with spans `factor` times as long."""

    def of(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: of(value) for key, value in part.items()}
        if isinstance(part, list):
            return [of(value) for value in part]
        return part * factor if isinstance(part, int) else part

    return {**document, "pattern": of(as_tree(document)["pattern"]), "within": document["within"] * factor}


def compare(
    documents: Sequence[Mapping[str, Any]], rows: Sequence[Row], chance: random.Random | None = None, partitions: int = 1, feed: Feed = PLANE
) -> Checked:
    """Runs the evaluator in one batch, or in random batches with random restarts and
    registrations, against the oracle."""
    checked = Checked(rows, documents)
    for changes in changes_of(feed, registered(documents, feed), Stamper().stamp(table_of(rows)), chance, partitions):
        checked.add(changes)
    checked.equal()
    return checked


# -- strategies: few values, so that ties, borders and equal times are frequent --------------------


@st.composite
def rows(draw: st.DrawFn, *, most: int = 9) -> list[Row]:
    found: list[dict[str, Any]] = []
    now = 0
    entities = draw(st.sampled_from(["a", "ab", "abc"]))
    for seq in range(draw(st.sampled_from([0, 3, most - 2, most - 1, most, most]))):
        now += draw(st.sampled_from([0, 0, 1, 1, 1, 2, 3]))
        place = draw(st.sampled_from([None, (0, 0), (1, 1), (3, 3)])) or (None, None)
        row: dict[str, Any] = {"seq": seq, "entity": draw(st.sampled_from(entities)), "t": now, "x": place[0], "y": place[1]}
        row |= {"reader": draw(st.sampled_from("abcd")), "n": draw(st.sampled_from([None, 0, 1, 2])), "v": draw(st.sampled_from([None, 0.5, 1.5]))}
        found.append(row | {"b": draw(st.sampled_from([None, True, False]))})
    return found


@st.composite
def filters(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Mostly one reader for each primitive; sometimes another condition
    that a primitive may have."""
    what = draw(st.integers(0, 12))
    wild: dict[int, dict[str, Any]] = {
        0: {"where": [["n", draw(st.sampled_from(["=", "!=", "<", ">="])), 1]]},
        1: {"where": [["v", ">", 1], ["n", "in", [1, 2.0]]]},
        2: {"where": [["b", "=", draw(st.booleans())]]},
        3: {"prefix": {"entity": draw(st.sampled_from("ab"))}},
        4: {"inside": {"center": [0, 0], "radius": 2}},
        5: {"outside": {"center": [0, 0], "radius": 2}, "where": [["reader", "!=", "a"]]},
        6: {"where": [["reader", "in", ["a", "b"]]]},
        7: {"where": [["reader", ">", "b"]], "prefix": {"reader": "c"}},
        8: {},
    }
    return wild.get(what, {"where": [["reader", "=", name.lower()]]})


@st.composite
def patterns(draw: st.DrawFn, depth: int) -> Pattern:
    """Trees with all operators; deeper ones more often."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return tree.Primitive(draw(st.sampled_from(NAMES)))
    first, second = draw(patterns(depth - 1)), draw(patterns(depth - 1))
    what = draw(
        st.sampled_from(["and", "or", "interval", "sequence", "sequence", "bounded", "without", "without", "absence", "absence", "before", "around"])
    )
    if what in ("and", "interval"):
        return tree.And(first, second, None if what == "and" else draw(SPANS))
    if what == "or":
        return tree.Or(first, second)
    if what == "before":
        return tree.Before(first, second, draw(SPANS))
    if what == "around":
        return tree.Around(first, second, draw(SPANS))
    if what == "absence":
        return tree.Absence(first, second, draw(SPANS))
    low, high = 0, None
    if what == "bounded" or (what == "without" and draw(st.booleans())):
        low = draw(st.sampled_from([0, 0, 1, 2]))
        high = draw(st.sampled_from([None, low, low + 1, low + 2, low + 5]))
    return tree.Sequence(first, second, low, high, draw(patterns(depth - 1)) if what == "without" else None)


@st.composite
def documents(draw: st.DrawFn, depth: int | None = None) -> dict[str, Any]:
    """A document that is accepted."""
    pattern = draw(patterns(draw(st.sampled_from([1, 2, 2, 3])) if depth is None else depth))
    found: dict[str, Any] = {
        "family": "composite",
        "pattern": pattern_text(pattern) if draw(st.booleans()) else pattern_tree(pattern),
        "primitives": {name: draw(filters(name)) for name in draw(st.sampled_from([primitives(pattern), NAMES]))},
        "within": draw(st.sampled_from([0, 1, 3, 6, 10, 20, 30])),
        "per": draw(st.sampled_from([None, "entity"])),
    }
    return found | ({"where": [["n", "!=", 2]]} if draw(st.integers(0, 7)) == 0 else {})
