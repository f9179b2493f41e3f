"""Accepted events on their way into operators: one Arrow batch with its hot columns as arrays."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SEQ, CLOCK = "seq", "clock"
EVENT, ENTITY, TIME, TIME_END, X, Y = "event", "entity", "t", "t_end", "x", "y"
CORE_COLUMNS = (EVENT, ENTITY, TIME, TIME_END, X, Y)


class EntityDictionary:
    """Entity ids and their codes: dense int32 in order of first appearance, never reused.

    Invariant: `codes[names[c]] == c` for every code `c`. May be shared by evaluators in several threads.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self.names: list[str] = list(names)
        self.codes: dict[str, int] = {name: code for code, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Codes of `ids` in their order (-1 for null); unseen ids get the next codes."""
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        encoded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
        local = np.fromiter((self._code(name) for name in encoded.dictionary.to_pylist()), np.int32)
        positions = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if len(local) == 0:
            return np.full(len(positions), -1, np.int32)
        return np.where(positions < 0, np.int32(-1), local[positions]).astype(np.int32)

    def decode(self, codes: npt.NDArray[np.integer[Any]]) -> pa.Array:
        """Names of `codes` as an Arrow string array; -1 becomes null. Cost follows `codes`, not the dictionary."""
        distinct, inverse = np.unique(codes, return_inverse=True)
        names = pa.array([self.names[c] if c >= 0 else None for c in distinct.tolist()], pa.string())
        return names.take(pa.array(inverse.reshape(-1)))

    def _code(self, name: str | None) -> int:
        if name is None:
            return -1
        code = self.codes.get(name)
        if code is None:
            with self._lock:
                code = self.codes.get(name)
                if code is None:
                    code = len(self.names)
                    # The name first: whoever finds the code finds its name too.
                    self.names.append(name)
                    self.codes[name] = code
        return code


@dataclass(frozen=True)
class Batch:
    """Accepted rows of one feed (or of one partition of it), with the columns operators touch as arrays.

    `rows` holds the columns of the feed (CONTRACT 1) plus `seq`, the row's position in the feed's arrival order,
    unique and increasing with arrival. An ORDERED stage sees rows sorted by (t, seq), an ARRIVAL stage by seq and with `clock`, the greatest
    `t` of the feed before the row (null for the first).
    Arrays are read-only by agreement: a stage never writes to its input.
    """

    rows: pa.RecordBatch
    entities: EntityDictionary = field(repr=False)

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
        """A numeric column as float64 with NaN for null."""
        column = self.column(name)
        if pa.types.is_null(column.type):
            return np.full(len(self), np.nan)
        numbers: npt.NDArray[np.float64] = pc.fill_null(pc.cast(column, pa.float64()), np.nan).to_numpy(zero_copy_only=False)
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
