"""Large files are read in little memory: pages of mapped files that were read are freed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.external_sort import ExternalSort
from engine.sources.formats import FileFormat, Layout, read_chunks

ROWS = 3_000_000
MOST_BYTES = 20_000_000


def resident() -> int:
    """Bytes of mapped files that are in the memory of this process."""
    found = re.search(r"RssFile:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def noise() -> pa.Table:
    """Incompressible data: 24 MB a column."""
    chance = np.random.default_rng(3)
    return pa.table({name: chance.random(ROWS) for name in ("x", "y")})


def of_arrow(folder: Path) -> Iterator[pa.Table]:
    with pa.ipc.new_file(str(folder / "one"), noise().schema) as writer:
        writer.write_table(noise())
    return (chunk.table for chunk in read_chunks(folder / "one", Layout(FileFormat.ARROW)))


def of_parquet(folder: Path) -> Iterator[pa.Table]:
    pq.write_table(noise(), folder / "one", row_group_size=ROWS)
    return (chunk.table for chunk in read_chunks(folder / "one", Layout(FileFormat.PARQUET)))


def of_sort(folder: Path) -> Iterator[pa.Table]:
    with ExternalSort(["x"], run_bytes=4 << 20, folder=folder) as sort:
        for batch in noise().to_batches(100_000):
            sort.add(pa.Table.from_batches([batch]))
        yield from sort.sorted()


@pytest.mark.parametrize("read", [of_arrow, of_parquet, of_sort])
def test_parts_of_a_file_that_were_read_are_freed(tmp_path: Path, read: Callable[[Path], Iterator[pa.Table]]) -> None:
    tables = read(tmp_path)
    before, most, rows = resident(), 0, 0
    for table in tables:
        rows += table.num_rows
        most = max(most, resident())
    assert rows == ROWS
    assert most - before < MOST_BYTES
