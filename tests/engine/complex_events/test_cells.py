"""The classes of events, against the conditions of each primitive."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.complex_events import cells
from engine.complex_events.classes import class_of
from engine.model.batch import Batch, EntityDictionary
from engine.specification import check
from tests.engine.complex_events.worlds import NAMES, PLANE, SCHEMA, filters, rows
from tests.oracles.complex_events import matches

ROWS = pa.schema([*SCHEMA, ("seq", pa.int64())])


MANY_HOLD = st.builds(lambda reader, v: {"where": [["reader", "=", reader], ["v", ">", -v]]}, st.sampled_from("abcd"), st.integers(0, 5))
"""Filters of which an event satisfies many on one axis, but few together with another axis."""


def one_of_each(filters_of_names):
    """A document whose primitives are these."""
    names = [f"P{i}" for i in range(len(filters_of_names))]
    return {"family": "composite", "pattern": " OR ".join(names), "primitives": dict(zip(names, filters_of_names, strict=True)), "within": 1}


@settings(deadline=None)
@given(
    asked=st.lists(st.one_of(st.sampled_from(NAMES).flatmap(filters), MANY_HOLD), min_size=1, max_size=16),
    some=rows(most=12),
    cut=st.integers(0, 12),
    dense=st.sampled_from([0, 4_000_000]),
    at_once=st.sampled_from([1, 4_000_000]),
)
def test_events_have_the_classes_whose_conditions_they_satisfy(asked, some, cut, dense, at_once):
    document, predicates = one_of_each(asked), {}
    specification = check(document, PLANE)
    kinds = [class_of(specification.where, one, PLANE, predicates) for one in specification.primitives]
    distinct = list(dict.fromkeys(kinds))
    asked_by = {kind: one.name for kind, one in zip(kinds, specification.primitives, strict=True)}
    expected = [[number for number, kind in enumerate(distinct) if matches(row, asked_by[kind], document)] for row in some]
    with patch.object(cells, "_DENSE", dense), patch.object(cells, "_AT_ONCE", at_once):
        index, names, found = cells.Cells(distinct), EntityDictionary(), []
        for part in (some[:cut], some[cut:], some):
            batch = Batch(pa.RecordBatch.from_pylist([{name: row.get(name) for name in ROWS.names} for row in part], schema=ROWS), names)
            ends, classes = index.classes_of_rows(batch)
            found += [classes[ends[i] : ends[i + 1]].tolist() for i in range(len(batch))]
    assert found == expected + expected
