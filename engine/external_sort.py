"""Sorting more rows than memory should hold: sorted runs on disk, merged in pieces."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

RUN_BYTES = 96 << 20
"""Rows are sorted in memory up to this size; more are written out as one run."""
PIECE_ROWS = 32_768
_ORDER = "$order"
"""The last key: in which order rows came, so that no two rows are equal."""


class ExternalSort:
    """Collects tables of one schema and gives their rows back sorted by `keys`, equal rows
    in the order they came in.

    Keys hold no nulls. Files are written only when the rows are many, into a folder below `folder`
    or the system's; `close` removes them.
    """

    def __init__(self, keys: Sequence[str], *, run_bytes: int = RUN_BYTES, piece_rows: int = PIECE_ROWS, folder: Path | None = None) -> None:
        self.keys, self.run_bytes, self.piece_rows = [*keys, _ORDER], run_bytes, piece_rows
        self._count = 0
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._parent = folder
        self._folder: Path | None = None
        self._runs: list[Path] = []

    def __enter__(self) -> ExternalSort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            order = pa.array(np.arange(self._count, self._count + rows.num_rows), pa.int64())
            self._count += rows.num_rows
            self._held.append(rows.append_column(_ORDER, order))
            self._held_bytes += rows.get_total_buffer_size() if rows.num_rows > PIECE_ROWS else rows.nbytes
            if self._held_bytes >= self.run_bytes:
                self._spill()

    def sorted(self) -> Iterator[pa.Table]:
        """All rows in pieces, in order. Nothing may be added after."""
        if self._runs and self._held:
            self._spill()
        rows = self._merged() if self._runs else iter([self._sorted(self._held)] if self._held else [])
        for table in rows:
            yield from _pieces(table.drop_columns([_ORDER]), self.piece_rows)

    def close(self) -> None:
        self._held.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _sorted(self, tables: Sequence[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(tables).combine_chunks()
        return rows.take(pc.sort_indices(rows, sort_keys=[(key, "ascending") for key in self.keys]))

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="vedette-sort-", dir=self._parent))
        path = self._folder / f"{len(self._runs):06}.arrow"
        rows = self._sorted(self._held)
        self._held.clear()
        self._held_bytes = 0
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(rows, max_chunksize=self.piece_rows)
        self._runs.append(path)
        del rows
        # Arrow keeps freed memory for later.
        pa.default_memory_pool().release_unused()

    def _merged(self) -> Iterator[pa.Table]:
        """Each round gives out what is at most the least of the loaded pieces' last rows: nothing
        unread can come before it."""
        waiting = sorted((_Run(path, number, self.keys) for number, path in enumerate(self._runs)), key=lambda run: run.key(0), reverse=True)
        active: list[_Run] = []
        while active or waiting:
            if not active:
                active.append(waiting.pop())
            bound = min(run.key(-1) for run in active)
            # Runs that begin later stay closed: few are open at once when
            # rows came nearly in order.
            while waiting and waiting[-1].key(0) <= bound:
                active.append(waiting.pop())
                bound = min(bound, active[-1].key(-1))
            active.sort(key=lambda run: run.number)
            ready = [run.take_up_to(bound) for run in active]
            active = [run for run in active if run.load()]
            yield self._sorted(ready)


class _Run:
    """A sorted run that is read piece by piece; a piece is loaded unless the run is at its end."""

    def __init__(self, path: Path, number: int, keys: Sequence[str]) -> None:
        self.number = number
        self._keys = keys
        # Read and not mapped: pages of a mapped file stay with the process until it ends.
        self._reader = pa.ipc.open_file(pa.OSFile(str(path)))
        self._next = 0
        self._piece = pa.table({})
        self.load()

    def load(self) -> bool:
        """Loads the next piece if this one is used up; false at the end."""
        while self._piece.num_rows == 0 and self._next < self._reader.num_record_batches:
            self._piece = pa.Table.from_batches([self._reader.get_batch(self._next)])
            self._next += 1
        return bool(self._piece.num_rows)

    def key(self, row: int) -> tuple[Any, ...]:
        return tuple(self._piece.column(name)[row].as_py() for name in self._keys)

    def take_up_to(self, bound: tuple[Any, ...]) -> pa.Table:
        """The loaded rows whose key is at most `bound`."""
        low, high = 0, self._piece.num_rows
        while low < high:
            middle = (low + high) // 2
            if self.key(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken = self._piece.slice(0, low)
        self._piece = self._piece.slice(low)
        return taken


def _pieces(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)
