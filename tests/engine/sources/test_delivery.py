"""Orders of delivery: by a column, shuffled, in batches."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.external_sort import ExternalSort
from engine.model.events import row_schema
from engine.model.feed import Crs, Feed, TimeUnit
from engine.sources.delivery import Shuffle, batches_of, by_arrival
from engine.sources.file_rows import read_files
from engine.sources.files import Columns, UnreadableFile
from tests.oracles.gate import judged
from tests.strategies import arrivals, feeds, table_of

FEED = Feed("f", Crs.PLANAR, TimeUnit.TICKS)


@given(st.data(), st.integers(0, 12), st.integers(0, 99), st.integers(1, 9))
def test_shuffling_keeps_equal_times_in_order_late_rows_late_and_the_rest_on_time(data: st.DataObject, within: int, seed: int, size: int) -> None:
    feed = data.draw(feeds())
    rows = [row | {"n": i} for i, row in enumerate(data.draw(arrivals(feed, most=40)))]
    table = table_of(rows, feed)
    moved = pa.concat_tables(
        [row_schema(feed).empty_table(), *Shuffle(feed, within, seed).shuffled(batches_of([table], size))], promote_options="default"
    )
    order = moved.column("n").to_pylist()
    assert sorted(order) == list(range(len(rows)))
    times = [rows[i]["t"] for i in order]
    for t in set(times):
        same = [i for i in order if rows[i]["t"] == t]
        assert same == sorted(same)
    names = row_schema(feed).names
    accepted, late, _ = judged([table.to_pylist()[i] for i in range(len(rows))], feed.lateness, feed.dedupe, names)
    again, late_again, _ = judged(moved.to_pylist(), feed.lateness, feed.dedupe, names)
    assert [order[i] for i in again] == accepted
    assert sorted(order[i] for i in late_again) == late


def test_shuffling_moves_rows_by_at_most_the_bound() -> None:
    feed = Feed("f", Crs.PLANAR, TimeUnit.TICKS, lateness=10)
    table = table_of([{"entity": "a", "t": t} for t in range(500)], feed)
    times = np.array(pa.concat_tables(Shuffle(feed, 10, 3).shuffled([table])).column("t").to_pylist())
    assert 0 < (np.maximum.accumulate(times) - times).max() <= 10
    other = pa.concat_tables(Shuffle(feed, 10, 4).shuffled([table])).column("t").to_pylist()
    assert other != times.tolist()


def by_column(folder: Path, text: str, column: str) -> list[int]:
    path = folder / "e.csv"
    path.write_text(text)
    tables = by_arrival(read_files([path], Columns(FEED, extra=column)))
    return [t for table in tables for t in table.column("t").to_pylist()]


def test_rows_are_ordered_by_a_column_stably_with_nulls_last(tmp_path: Path) -> None:
    text = "entity,t,came\na,1,30\na,2,\na,3,9\n,4,1\na,5,30\na,6,9.0\n"
    assert by_column(tmp_path, text, "came") == [3, 6, 1, 5, 2]
    assert by_column(tmp_path, text, "t") == [1, 2, 3, 5, 6]
    assert by_column(tmp_path, "entity,t,came\na,1,b\na,2,a\n", "came") == [2, 1]


def test_times_of_other_units_in_the_next_file_are_one_order(tmp_path: Path) -> None:
    """As writers of other ages leave them: 1 s is between 999,999 and 1,000,001 microseconds."""
    came = {
        1: pa.array([1_000], pa.timestamp("ms")),
        2: pa.array([1_000_001, 999_999, None], pa.timestamp("us")),
        5: pa.array([1_000_000_001, 999_999_001, -1, -1_001, -1_000], pa.timestamp("ns")),
        10: pa.array([1, 253_402_300_799], pa.timestamp("s")),
        12: pa.array([-1], pa.date32()),
        13: pa.array([2**63 - 1], pa.timestamp("ms")),
        14: pa.array([1_500], pa.date64()),
    }
    paths = []
    for first, times in came.items():
        paths.append(tmp_path / f"{first:02}.parquet")
        pq.write_table(pa.table({"entity": ["a"] * len(times), "t": range(first, first + len(times)), "came": times}), paths[-1])
    tables = by_arrival(read_files(paths, Columns(FEED, extra="came")))
    assert [t for table in tables for t in table.column("t").to_pylist()] == [12, 8, 9, 7, 14, 3, 6, 1, 10, 5, 2, 11, 13, 4]


def test_whole_numbers_and_fractions_are_one_order_in_whatever_parts_they_are_read(tmp_path: Path) -> None:
    big = 2**53
    parts = [
        [big + 1, 3, None],
        [2.5, float(big), big + 2.0],
        [2, 2**63 - 1],
        [2.0**63, -2.0],
        [2**53 + 5, 1.5, 10**400, -(10**400)],
        [None],
        [2**63 - 2],
    ]
    numbers = [number for part in parts for number in part]
    paths, first = [], 1
    for part in parts:
        paths.append(tmp_path / f"{first:02}.jsonl")
        rows = [{"entity": "a", "t": first + i, "came": number} for i, number in enumerate(part)]
        paths[-1].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        first += len(part)
    tables = by_arrival(read_files(paths, Columns(FEED, extra="came")))
    found = [numbers[t - 1] for table in tables for t in table.column("t").to_pylist()]
    assert found == [*sorted(number for number in numbers if number is not None), None, None]
    with pytest.raises(UnreadableFile, match="numbers, or times, or texts"):
        paths[0].write_text('{"entity": "a", "t": 1, "came": "3"}\n')
        list(by_arrival(read_files(paths, Columns(FEED, extra="came"))))


@pytest.mark.parametrize("values", [["b", "a"], [dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], [2, 1]])
def test_parts_without_a_value_come_last_whatever_the_others_hold(values: list[Any], tmp_path: Path) -> None:
    parts: list[list[Any]] = [[None, None], [values[0], None], [None], [values[1]]]
    paths, first = [], 1
    for part in parts:
        paths.append(tmp_path / f"{first:02}.parquet")
        pq.write_table(pa.table({"entity": ["a"] * len(part), "t": range(first, first + len(part)), "came": pa.array(part)}), paths[-1])
        first += len(part)
    tables = by_arrival(read_files(paths, Columns(FEED, extra="came")))
    assert [t for table in tables for t in table.column("t").to_pylist()] == [6, 3, 1, 2, 4, 5]


def test_an_unknown_arrival_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="did you mean 'came'"):
        by_column(tmp_path, "entity,t,came\na,1,1\n", "cane")


def test_an_arrival_column_without_any_value_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"entity": "a", "t": 2, "came": 1}\n{"entity": "a", "t": 1}\n')
    assert [t for table in by_arrival(read_files([path], Columns(FEED, extra="came"))) for t in table.column("t").to_pylist()] == [2, 1]
    with pytest.raises(UnreadableFile, match="no row has a value"):
        list(by_arrival(read_files([path], Columns(FEED, extra="cane"))))


@given(st.lists(st.tuples(st.integers(0, 5), st.text("ab", max_size=2)), max_size=60), st.integers(1, 20), st.sampled_from([1, 3, 1000]))
def test_sorting_on_disk_gives_sorted_rows(rows: list[tuple[int, str]], size: int, piece: int) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.string()), "i": pa.array(range(len(rows)))}
    )
    with ExternalSort(["a", "b"], run_bytes=100, piece_rows=piece) as sort:
        for start in range(0, len(rows), size):
            sort.add(table.slice(start, size))
        found = [tuple(row.values()) for part in sort.sorted() for row in part.to_pylist()]
        folder = sort._folder
    assert found == sorted((a, b, i) for i, (a, b) in enumerate(rows))
    assert folder is None or not folder.exists()


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 7))
def test_batches_have_the_requested_size(sizes: list[int], rows: int) -> None:
    numbers = iter(range(100))
    tables = [pa.table({"a": pa.array([next(numbers) for _ in range(size)], pa.int64())}) for size in sizes]
    found = [table.column("a").to_pylist() for table in batches_of(tables, rows)]
    assert [a for batch in found for a in batch] == list(range(sum(sizes)))
    assert all(len(batch) == rows for batch in found[:-1])
    assert all(found)


@pytest.mark.parametrize(
    "values", [pa.array([2**64 - 1, 1], pa.uint64()), pa.array([b"\xff", b"a"]), pa.array([[1], [0]]), pa.array([{"a": 1}, {"a": 0}])]
)
def test_an_arrival_column_without_an_order_is_refused(tmp_path: Path, values: pa.Array) -> None:
    path = tmp_path / "rows.parquet"
    rows = {"event": ["e", "e"], "entity": ["a", "a"], "t": [1, 2], "x": [0.0, 0.0], "y": [0.0, 0.0], "came": values}
    pq.write_table(pa.table(rows), path)
    with pytest.raises(UnreadableFile, match="--arrival: the column must hold"):
        list(by_arrival(read_files([path], Columns(FEED, extra="came"))))
