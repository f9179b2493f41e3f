"""Visits to a region compared with a search row by row."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.model.feed import Crs
from engine.model.region import read_region
from webapp.entities.visits import visits

SQUARE = read_region({"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}, Crs.PLANAR)
Report = tuple[str, int, int, int]


def one_by_one(reports: list[Report]) -> list[tuple[str, int, int, bool]]:
    """The later of two reports of the same instant counts; the border is inside."""
    found = []
    for entity in sorted({report[0] for report in reports}):
        last = {t: (x, y) for name, t, x, y in reports if name == entity}
        start = None
        for t in sorted(last):
            inside = all(0 <= value <= 2 for value in last[t])
            if inside and start is None:
                start = t
            elif not inside and start is not None:
                found.append((entity, start, t, True))
                start = None
        if start is not None:
            found.append((entity, start, max(last), False))
    return found


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 8), st.integers(-1, 3), st.integers(0, 2)), max_size=14))
def test_visits_agree_with_a_row_by_row_search(reports: list[Report]) -> None:
    names = ("entity", "t", "x", "y")
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.float64())
    rows = pa.table({name: pa.array([report[i] for report in reports], kind) for i, (name, kind) in enumerate(zip(names, kinds, strict=True))})
    found = visits(rows, SQUARE)
    columns = ([found.names[i] for i in found.entity], found.start.tolist(), found.end.tolist(), found.ended.tolist())
    assert sorted(zip(*columns, strict=True)) == one_by_one(reports)
