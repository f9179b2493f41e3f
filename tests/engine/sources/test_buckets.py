"""Segments grouped by a hash of the entity read like ordered ones, and reading a
part costs only that part."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.runtime.evaluator import entity_partitions
from engine.runtime.executors_tasks import shares
from engine.sources import buckets
from engine.sources.buckets import buckets_of_partition, groups_of
from engine.sources.eventlog import EventLog, MissingRows, Span
from engine.sources.repair import LogExtent, repair

FEED = Feed("yard", Crs.PLANAR, TimeUnit.TICKS, lateness=5)


def rows_of(seed: int, count: int) -> pa.Table:
    chance = random.Random(seed)
    rows = [
        {"event": "position", "entity": f"e{chance.randrange(30)}", "t": max(0, i // 3 - chance.choice([0, 0, 4, 9])), "x": float(i), "y": 0.0}
        for i in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=row_schema(FEED))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[EventLog, EventLog]:
    """The same appends, some of them small, written in order and grouped."""
    made = []
    for least in (buckets.LEAST_ROWS, 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(buckets, "LEAST_ROWS", least)
            patch.setattr(buckets, "GROUP_ROWS", 5)
            log = EventLog(tmp_path_factory.mktemp("log"), FEED.name)
            for seed, count in enumerate((100, 3, 41, 400)):
                log.append(rows_of(seed, count))
            made.append(log)
    groups = []
    for segment in made[1].segments():
        with segment.opened() as file:
            groups.append((groups_of(file), file.num_row_groups))
    assert groups == [(16, 16), (1, 1), (8, 8), (64, 64)]
    return made[0], made[1]


@given(st.integers(0, 545), st.integers(0, 545), st.sampled_from([None, ["x"], ["entity", "seq", "t"]]))
def test_bucketed_segments_read_like_plain_ones(logs: tuple[EventLog, EventLog], first: int, stop: int, columns: list[str] | None) -> None:
    plain, grouped = ([table for table in log.read(first, stop, columns) if table.num_rows] for log in logs)
    assert pa.concat_tables(grouped or [pa.table({})]).equals(pa.concat_tables(plain or [pa.table({})]))


@given(
    st.integers(0, 150), st.one_of(st.none(), st.integers(0, 150)), st.sampled_from([None, 5]), st.sampled_from([None, ["x", "t"]]),
    st.sampled_from([None, ["e3", "e4"]]),
)  # fmt: skip
def test_tails_of_bucketed_and_plain_segments_are_equal(
    logs: tuple[EventLog, EventLog], from_t: int, to_t: int | None, lateness: int | None, columns: list[str] | None, entities: list[str] | None
) -> None:
    plain, grouped = (log.tail(from_t, to_t, lateness=lateness, columns=columns, entities=entities) for log in logs)
    assert grouped.equals(plain)


@given(st.integers(0, 540), st.integers(1, 545), st.integers(1, 70), st.data())
def test_parts_have_all_rows_of_their_partitions_in_order(
    logs: tuple[EventLog, EventLog], first: int, stop: int, partitions: int, data: st.DataObject
) -> None:
    mine = data.draw(st.lists(st.integers(0, partitions - 1), unique=True, min_size=1, max_size=4))
    rows = [row for table in logs[0].read(first, stop) for row in table.to_pylist()] if first < stop else []
    homes = entity_partitions(pa.chunked_array([[row["entity"] for row in rows]], pa.string()), partitions).tolist()
    expected = [[row["seq"] for row, home in zip(rows, homes, strict=True) if home == p] for p in mine]
    for log in logs:
        _, parts = shares(log, FEED, Span(first, max(first, stop), 0), mine, partitions)
        assert [part.column("seq").to_pylist() for part in parts] == expected


def test_one_of_sixteen_tasks_decodes_a_sixteenth_of_the_rows(logs: tuple[EventLog, EventLog]) -> None:
    grouped = logs[1]
    read = [sum(table.num_rows for table, _ in grouped.parts_between(144, 544, [buckets_of_partition(p, 16)])) for p in range(16)]
    assert sum(read) == 400


def test_missing_rows_of_a_bucket_are_reported(logs: tuple[EventLog, EventLog]) -> None:
    with pytest.raises(MissingRows, match="rows 544 to 599"):
        list(logs[1].parts_between(500, 600, [[1]]))


@pytest.mark.parametrize("harm", [lambda path: path.write_bytes(path.read_bytes()[:-4] + b"PAR2"), lambda path: None])
def test_bucketed_segments_are_compacted_and_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], object]) -> None:
    monkeypatch.setattr(buckets, "LEAST_ROWS", 40)
    monkeypatch.setattr(buckets, "GROUP_ROWS", 5)
    log = EventLog(tmp_path, FEED.name)
    for seed in range(3):
        log.append(rows_of(seed, 60))
    before = pa.concat_tables(log.read(0, 120))
    path = log.segments()[2].path
    harm(path)
    (schema,) = {pq.read_schema(segment.path).remove_metadata() for segment in log.segments()[:1]}
    repaired = repair(log, schema, LogExtent(180, log.end[1]))
    assert sum(len(one.lost) for one in repaired) in (0, 60)
    log.compact(179)
    assert not list(log.live.iterdir())
    assert pa.concat_tables(log.read(0, 120)).equals(before)
    assert pa.concat_tables(log.read()).column("seq").to_pylist() == list(range(180))
