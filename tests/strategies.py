"""Small adversarial worlds for code that works on feeds: few ids, times that collide, rows late by
a little too much, duplicates, missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from engine.model.events import Stamper, check_rows
from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.specification import check

Row = dict[str, Any]
COLUMNS = {"v": ColumnType.FLOAT, "n": ColumnType.INT, "s": ColumnType.STRING, "b": ColumnType.BOOL}


@dataclass(frozen=True)
class World:
    """A feed, specification documents on it, and rows as they arrive."""

    feed: Feed
    documents: Sequence[Mapping[str, Any]]
    rows: Sequence[Row]

    def queries(self) -> list[RegisteredQuery]:
        return [RegisteredQuery(f"q{i}", 1, check(document, self.feed)) for i, document in enumerate(self.documents)]

    def stamped(self) -> pa.Table:
        """The rows that are events, with seq and clock."""
        return stamped(self.rows, self.feed)


def stamped(rows: Sequence[Row], feed: Feed) -> pa.Table:
    good, dead = check_rows(table_of(rows, feed), feed)
    assert not dead
    return Stamper().stamp(good)


def table_of(rows: Sequence[Row], feed: Feed) -> pa.Table:
    """Rows as a table in the types of the feed."""
    from engine.model.events import row_schema

    return pa.Table.from_pylist([{"event": row.get("event", "position"), **row} for row in rows], schema=row_schema(feed))


@st.composite
def feeds(draw: st.DrawFn, *, columns: Mapping[str, ColumnType] = COLUMNS, crs: Crs = Crs.PLANAR) -> Feed:
    return Feed("world", crs, TimeUnit.TICKS, 1, draw(st.sampled_from([0, 0, 2, 5, 40])), draw(st.booleans()), columns)


@st.composite
def arrivals(draw: st.DrawFn, feed: Feed, *, most: int = 30) -> list[Row]:
    """Rows of three entities in order of arrival: in order for the most part, some late, some exact
    duplicates; some from times before 0."""
    rows: list[Row] = []
    first = now = draw(st.sampled_from([0, 0, 0, -40]))
    for _ in range(draw(st.integers(0, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        behind = draw(st.sampled_from([0, 0, 0, 1, feed.lateness, feed.lateness + 1]))
        place = draw(st.sampled_from([None, (0, 0), (1, 1), (2, 2), (3, 1), (5, 5)]))
        x, y = place if place is not None else (None, None)
        row: Row = {"entity": draw(st.sampled_from("abc")), "t": max(first, now - behind), "x": x, "y": y}
        for name, kind in feed.columns.items():
            row[name] = draw(VALUES[kind])
        rows.append(row)
        if draw(st.integers(0, 6)) == 0:
            rows.append(dict(draw(st.sampled_from(rows))))
    return rows


VALUES: Mapping[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.FLOAT: st.sampled_from([None, 0.0, -0.0, 1.0, 2.5, 4.0]),
    ColumnType.INT: st.sampled_from([None, 0, 1, 2, 3]),
    ColumnType.STRING: st.sampled_from([None, "", "p", "q"]),
    ColumnType.BOOL: st.sampled_from([None, True, False]),
}


def summed(changes: pa.Table, *, evidence: bool = True) -> Counter[str]:
    """The sum of changes (ANSWERS): facts with their weights, zeroes dropped. Raises if a weight
    ends below zero."""
    total: Counter[str] = Counter()
    for row in changes.to_pylist():
        weight = row.pop("weight")
        if not evidence:
            row.pop("evidence")
        total[repr(sorted(row.items()))] += weight
    assert all(count >= 0 for count in total.values()), "retracted but never asserted"
    return Counter({fact: count for fact, count in total.items() if count})
