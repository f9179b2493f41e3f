"""Accepted events on their way into operators: one Arrow batch with its hot columns as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import CLOCK as CLOCK
from engine.model.columns import CORE_COLUMNS as CORE_COLUMNS
from engine.model.columns import ENTITY as ENTITY
from engine.model.columns import EVENT as EVENT
from engine.model.columns import SEQ as SEQ
from engine.model.columns import TIME as TIME
from engine.model.columns import TIME_END as TIME_END
from engine.model.columns import X as X
from engine.model.columns import Y as Y
from engine.model.dictionary import EntityDictionary as EntityDictionary


@dataclass(frozen=True)
class Batch:
    """Accepted rows of one feed (or of one partition of it), with the columns
    operators touch as arrays.

    `rows` holds the columns of the feed (specification 2) plus `seq`, the row's position in the
    feed's arrival order, unique and increasing with arrival. An ORDERED stage sees rows sorted by
    (t, seq), an ARRIVAL stage by seq and with `clock`, the greatest `t` of the feed before the row
    (null for the first). Arrays are read-only by agreement: a stage never writes to its input.
    `ended`: the input has ended with these rows.
    """

    rows: pa.RecordBatch
    entities: EntityDictionary = field(repr=False)
    ended: bool = False

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @cached_property
    def t(self) -> npt.NDArray[np.int64]:
        t: npt.NDArray[np.int64] = self.rows.column(TIME).to_numpy(zero_copy_only=False)
        return t

    @cached_property
    def seq(self) -> npt.NDArray[np.int64]:
        seq: npt.NDArray[np.int64] = self.rows.column(SEQ).to_numpy(zero_copy_only=False)
        return seq

    @cached_property
    def entity(self) -> npt.NDArray[np.int32]:
        """Codes in `entities`."""
        return self.codes(ENTITY)

    @cached_property
    def x(self) -> npt.NDArray[np.float64]:
        """Longitude or plane x; NaN where the row has no position."""
        return self.numbers(X)

    @cached_property
    def y(self) -> npt.NDArray[np.float64]:
        return self.numbers(Y)

    def has(self, name: str) -> bool:
        return name in self.rows.schema.names

    def column(self, name: str) -> pa.Array:
        """The column as Arrow; all null when this batch does not carry it."""
        if not self.has(name):
            return pa.nulls(len(self))
        return self.rows.column(name)

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """A numeric column as float64 with NaN for null; a whole number that no double holds
        as the next one below it.

        So a comparison with a bound that is a double gives what the number itself gives.
        """
        column = self.column(name)
        if pa.types.is_null(column.type):
            return np.full(len(self), np.nan)
        column = column if pa.types.is_float64(column.type) else _doubles_at_most(column)
        # A column without nulls is not copied.
        numbers: npt.NDArray[np.float64] = (pc.fill_null(column, np.nan) if column.null_count else column).to_numpy(zero_copy_only=False)
        return numbers

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """A column of entity ids as codes in `entities`, -1 for null."""
        column = self.column(name)
        if pa.types.is_null(column.type):
            return np.full(len(self), -1, np.int32)
        return self.entities.encode(column)

    def take(self, positions: npt.NDArray[np.integer[Any]]) -> Batch:
        """The rows at `positions`, in that order, over the same dictionary."""
        return Batch(self.rows.take(pa.array(positions)), self.entities)


_EXACT = 2**53
"""Whole numbers up to here are doubles."""


def _doubles_at_most(column: pa.Array) -> pa.Array:
    """The greatest double that is not above each whole number."""
    nearest = pc.cast(column, pa.float64(), safe=False)
    large = pc.any(pc.or_(pc.greater(column, _EXACT), pc.less(column, -_EXACT))).as_py()
    if not large:
        return nearest
    exact = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    # 2^63, which a number just below it rounds to, is no int64.
    doubles = pc.fill_null(nearest, 0.0).to_numpy(zero_copy_only=False)
    above = doubles >= 2.0**63
    above[~above] = doubles[~above].astype(np.int64) > exact[~above]
    return pa.array(np.where(above, np.nextafter(doubles, -np.inf), doubles), mask=pc.is_null(column).to_numpy(zero_copy_only=False))
