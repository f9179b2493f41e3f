"""In which order, and in which batches, the rows of files are delivered: `--arrival`,
`--shuffle-within`, `--batch-rows`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.external_sort import ExternalSort
from engine.model.clock import in_time, too_far_ahead
from engine.model.columns import CLOCK, TIME
from engine.model.events import DeadLetter, Stamper
from engine.model.feed import Feed
from engine.model.untimely import future_letters
from engine.sources.files import CheckedChunk, UnreadableFile

_KEY, _FINER, _DELIVERED = "$key", "$finer", "$delivered"
_FRACTIONS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Of a second."""
_LARGEST = np.iinfo(np.int64).max
Ints = npt.NDArray[np.int64]


def by_arrival(pieces: Iterable[CheckedChunk]) -> Iterator[pa.Table]:
    """The events sorted by the pieces' extra column, equal values in file order, missing ones last.
    Large inputs are sorted on disk.

    Raises UnreadableFile when no event has a value there, or values have no order.
    """
    schema: pa.Schema | None = None
    some_without = False
    with ExternalSort([_KEY, _FINER]) as sort, ExternalSort([]) as without:
        for piece in pieces:
            assert piece.extra is not None
            try:
                keys, finer = _comparable(piece.extra)
            except pa.ArrowException as error:
                raise UnreadableFile(f"--arrival: the column must hold numbers, times or texts: {error}") from error
            rows = piece.rows.append_column(_KEY, keys).append_column(_FINER, finer)
            if keys.null_count:
                # Separately: a part without any value does not show their type.
                some_without = True
                without.add(piece.rows.filter(keys.is_null()))
                rows = rows.filter(keys.is_valid())
            if rows.num_rows:
                schema = schema or rows.schema
                if rows.schema != schema:
                    raise UnreadableFile("--arrival: the column must hold numbers, or times, or texts throughout")
                sort.add(rows)
        # JSON lines have no header: in them a wrong name of a column is found only here.
        if schema is None and some_without:
            raise UnreadableFile("--arrival: no row has a value in this column")
        for table in sort.sorted():
            yield table.drop_columns([_KEY, _FINER])
        yield from without.sorted()


def _comparable(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """What the values are compared by, and what decides where that is equal: numbers as float64,
    times as int64, the rest as text. NaN is a missing value."""
    kind = column.type
    if pa.types.is_temporal(kind) and not (pa.types.is_duration(kind) or pa.types.is_interval(kind)):
        return _instants(column)
    if pa.types.is_integer(kind):
        return _whole_numbers(column.cast(pa.int64()))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        floats = column.cast(pa.float64())
        keys = pc.if_else(pc.is_nan(floats), pa.scalar(None, pa.float64()), floats)
    else:
        keys = column.cast(pa.string())
    return keys, _zeros(keys)


def _whole_numbers(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The nearest doubles, and how much the numbers are beyond them: another part of the input may
    have fractions."""
    whole = pc.fill_null(column, 0).to_numpy()
    nearest = whole.astype(np.float64)
    # 2^63 is no int64.
    is_largest = nearest == 2.0**63
    beyond = np.where(is_largest, whole - _LARGEST - 1, whole - np.where(is_largest, 0.0, nearest).astype(np.int64))
    return pa.chunked_array([pa.array(nearest, mask=pc.is_null(column).to_numpy())]), pa.chunked_array([beyond], pa.int64())


def _instants(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Whole seconds, and the nanoseconds after them: files may have other units than their
    neighbours, and times that nanoseconds alone cannot hold."""
    kind = column.type
    if pa.types.is_date32(kind):
        return pc.multiply(column.cast(pa.int32()).cast(pa.int64()), 86_400), _zeros(column)
    fraction = _FRACTIONS["ms" if pa.types.is_date64(kind) else kind.unit]
    whole = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_time32(kind) else column.cast(pa.int64())
    seconds, rest = np.divmod(pc.fill_null(whole, 0).to_numpy(), fraction)
    keys = pa.chunked_array([pa.array(seconds, mask=pc.is_null(column).to_numpy())])
    return keys, pa.chunked_array([rest * (_FRACTIONS["ns"] // fraction)], pa.int64())


def _zeros(like: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([np.zeros(len(like), np.int64)], pa.int64())


def beyond_clock(tables: Iterable[pa.Table], feed: Feed) -> Iterator[tuple[pa.Table, list[DeadLetter]]]:
    """Each table without the rows that would move the feed's clock by more
    than its `ahead`, and those."""
    clock: int | None = None
    for table in tables:
        t = table.column(TIME).to_numpy()
        refused = too_far_ahead(t, clock, feed.ahead or 0)
        letters = future_letters(table, refused, clock, feed)
        kept = t[~refused]
        if len(kept):
            clock = int(kept.max()) if clock is None else max(clock, int(kept.max()))
        yield table.filter(pa.array(~refused)) if letters else table, letters


class Shuffle:
    """Delivers events out of order by at most `within` (unit of `t`), the
    same way for the same seed.

    A row is put off to between the clock c it would meet in file order (the greatest `t` up to it)
    and c + within, by as much for all rows of equal `t`, so these keep their order. It is never put
    off beyond its own t + lateness: what was not late stays so. A late row waits for what made it
    late. So every accepted row stays accepted, every late row late, and the answer the same.
    """

    def __init__(self, feed: Feed, within: int, seed: int) -> None:
        self.feed, self.within, self.seed = feed, within, seed
        self._stamper = Stamper()
        self._held: pa.Table | None = None

    def shuffled(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            if table.num_rows:
                reached = self._put_off(table)
                # All later rows are delayed at least to its clock.
                yield self._released(before=reached)
        yield self._released(before=None)

    def _put_off(self, table: pa.Table) -> int:
        """Adds the rows with their delivery times; the clock after them."""
        stamped = self._stamper.stamp(table)
        t = table.column(TIME).to_numpy()
        clock = pc.fill_null(stamped.column(CLOCK), t[0]).to_numpy()
        met = np.maximum(clock, t)
        delivered = np.minimum(met + self._jitter(t), t + self.feed.lateness)
        late = ~in_time(stamped, self.feed.lateness).to_numpy()
        delivered = np.where(late, met + min(self.within, self.feed.lateness), delivered)
        rows = table.append_column(_DELIVERED, pa.array(delivered, pa.int64()))
        self._held = rows if self._held is None else pa.concat_tables([self._held, rows])
        return int(met.max())

    def _jitter(self, t: Ints) -> Ints:
        """A number from 0 to `within` for each time, decided by it and the seed."""
        word = t.view(np.uint64) + np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((word ^ (word >> np.uint64(31))) % np.uint64(self.within + 1)).astype(np.int64)

    def _released(self, before: int | None) -> pa.Table:
        """The rows due, in order of delivery; equal times in file order."""
        assert self._held is not None or before is None
        if self._held is None:
            return pa.table({})
        delivered = self._held.column(_DELIVERED).to_numpy()
        ready = np.ones(len(delivered), np.bool_) if before is None else delivered < before
        positions = np.flatnonzero(ready)
        positions = positions[np.argsort(delivered[positions], kind="stable")]
        released = self._held.take(pa.array(positions)).drop_columns([_DELIVERED])
        self._held = self._held.filter(pa.array(~ready)).combine_chunks()
        return released


def batches_of(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows` rows; the last may be shorter."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        start = 0
        while count + table.num_rows - start >= rows:
            end = start + rows - count
            yield pa.concat_tables([*held, table.slice(start, end - start)])
            held, count, start = [], 0, end
        if start < table.num_rows:
            held.append(table.slice(start))
            count += table.num_rows - start
    if held:
        yield pa.concat_tables(held)
