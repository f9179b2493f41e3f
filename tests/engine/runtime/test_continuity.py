"""Rows that come in any order of files, some twice, some not at all, are given in order and each once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.runtime.continuity import continued
from engine.sources.eventlog import EventLog

FEED = Feed("feed", Crs.PLANAR, TimeUnit.MS)
ROWS = 60


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    log = EventLog(tmp_path_factory.mktemp("log"), FEED.name)
    rows = [{"event": "position", "entity": f"e{i % 7}", "t": i, "x": float(i), "y": 0.0} for i in range(ROWS)]
    log.append(pa.Table.from_pylist(rows, schema=row_schema(FEED)))
    return log


pieces = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(1, 25)), min_size=1, max_size=8)


@given(pieces, st.integers(-1, ROWS - 2), st.booleans())
@settings(max_examples=200, deadline=None)
def test_whatever_is_delivered_the_rows_follow_each_other(log, delivered, position, cut):
    every = pa.concat_tables(log.read())
    if cut:  # Files of one length that do not overlap, as a log has them.
        delivered = [(start - start % 10, 10) for start, _ in delivered]
    given_ = pa.concat_tables([every.slice(start, length) for start, length in delivered])
    last = max(given_.column("seq").to_pylist())

    found = list(continued(log, position, given_))

    assert pa.concat_tables([every.slice(0, 0), *found]).equals(every.slice(position + 1, max(last - position, 0)))


def test_files_in_another_order_are_not_copied(tmp_path: Path, log: EventLog) -> None:
    every = pa.concat_tables(log.read())
    given_ = pa.concat_tables([every.slice(30, 30), every.slice(0, 30)])

    (found,) = continued(log, -1, given_)

    address = [column.chunk(0).buffers()[1].address for column in (every.column("x"), found.column("x"))]
    assert address[0] == address[1]
