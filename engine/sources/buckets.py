"""Rows of large segments grouped by a hash of their entity, so that a reader of some entities
reads only their row groups.

An entity has one of BUCKETS buckets, by the CRC-32 of its name. A segment of many rows is
written with a row group for each group of buckets, the rows of a group in order of seq; its
metadata has the number of groups. A segment of few rows is one group, in order: decoding it costs
less than the groups would.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.model.columns import ENTITY, SEQ

BUCKETS = 64
GROUPS = b"vedette.groups"
"""Key of a segment's metadata: into how many groups its rows were put;
missing where they are in order."""
LEAST_ROWS = 65_536
"""Smaller segments are not grouped. Measured (docs/decisions/0021): a million rows cost 0.3 s more
to write and 0.03 s more to read whole, and a task of 16 saves 0.07 to 0.12 s."""
GROUP_ROWS = 4_096
"""The approximate minimum of rows in a group: below it the row group costs more than its rows."""


def group_count(rows: int) -> int:
    """Into how many groups a segment's rows are put: a power of two up to BUCKETS, so
    that each bucket is in one.

    >>> [group_count(rows) for rows in (10, 65_535, 65_536, 200_000, 1_000_000)]
    [1, 1, 16, 32, 64]
    """
    return 1 if rows < LEAST_ROWS else min(BUCKETS, 1 << (rows // GROUP_ROWS).bit_length() - 1)


def grouped(rows: pa.Table, groups: int) -> list[pa.Table]:
    """The rows by group, each group's in their order."""
    group_of_row = (_buckets(rows.column(ENTITY)) % groups).astype(np.uint8)
    # Bytes are sorted by counting.
    order = np.argsort(group_of_row, kind="stable")
    ends = np.searchsorted(group_of_row[order], np.arange(groups + 1))
    together = rows.take(pa.array(order))
    return [together.slice(begin, end - begin) for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def write_rows(where: Path | BytesIO, rows: pa.Table) -> None:
    """The file of a live segment: rows in order of seq, grouped when they are many. It is read a
    few times: fast to write counts more than small."""
    groups = group_count(rows.num_rows)
    if groups > 1:
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), GROUPS: str(groups)})
    with pq.ParquetWriter(where, rows.schema, compression="snappy", use_dictionary=["event", "entity"], write_page_checksum=True) as writer:
        for group in [rows] if groups == 1 else grouped(rows, groups):
            # A group may be empty; the others keep their numbers.
            writer.write_table(group, row_group_size=max(1, group.num_rows))


def _buckets(entities: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """By the names that occur: this runs at ingest, which loads no kernel."""
    encoded = entities.cast(pa.string()).combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    buckets = np.array([zlib.crc32(name.encode()) % BUCKETS for name in encoded.dictionary.to_pylist()] or [0], np.int64)
    bucket_of_row: npt.NDArray[np.int64] = buckets[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)]
    return bucket_of_row


def buckets_of_partition(partition: int, partitions: int) -> list[int]:
    """The buckets whose entities a partition has.

    >>> buckets_of_partition(1, 32)
    [1, 33]
    """
    return [bucket for bucket in range(BUCKETS) if bucket % partitions == partition]


def groups_of(file: pq.ParquetFile) -> int:
    """How many groups of buckets the file's row groups are; 1 when its rows are in order."""
    return int((file.schema_arrow.metadata or {}).get(GROUPS, b"1"))


def rows_of(file: pq.ParquetFile, columns: Sequence[str] | None = None, buckets: Collection[int] | None = None) -> pa.Table:
    """The file's rows in order of seq: all, or at least those of some buckets. The table
    has `seq` for any `columns`."""
    groups = groups_of(file)
    names = None if columns is None else [*columns, *([] if SEQ in columns else [SEQ])]
    if groups == 1:
        return file.read(columns=names, use_threads=False)
    chosen = range(groups) if buckets is None else sorted({bucket % groups for bucket in buckets})
    rows = file.read_row_groups(list(chosen), columns=names, use_threads=False)
    if len(chosen) == 1:
        return rows
    return rows.take(pa.array(np.argsort(rows.column(SEQ).to_numpy(), kind="stable")))
