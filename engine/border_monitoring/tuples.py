"""The last tuple of every entity of one tuple class, and the tuple before each new one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass
class LastTuples:
    """Columnar by entity code: `values` (capacity, w), `t`, `seq` of the entity's last
    tuple; `seq` -1: none yet.

    The w values are the class's columns and, for ranges, x and y after them (evidence;
    NaN when the row had none).
    """

    values: Floats
    t: Int64s
    seq: Int64s

    @classmethod
    def empty(cls, width: int) -> LastTuples:
        return cls(np.empty((0, width)), np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.seq >= 0))

    def reserve(self, entities: int) -> None:
        """Space for codes below `entities`; grows by doubling."""
        capacity = len(self.seq)
        if entities <= capacity:
            return
        extra = max(entities - capacity, capacity)
        self.values = np.concatenate([self.values, np.full((extra, self.values.shape[1]), np.nan)])
        self.t = np.concatenate([self.t, np.zeros(extra, np.int64)])
        self.seq = np.concatenate([self.seq, np.full(extra, -1, np.int64)])

    def take_later(self, other: LastTuples) -> None:
        """For each entity keep the later of this tuple and the other's."""
        self.reserve(len(other.seq))
        n = len(other.seq)
        later = other.seq > self.seq[:n]
        self.values[:n][later] = other.values[later]
        self.t[:n][later] = other.t[later]
        self.seq[:n][later] = other.seq[later]


@njit(cache=True, nogil=True)
def advance(entity, values, t, seq, last_values, last_t, last_seq):  # type: ignore[no-untyped-def]
    """The tuple before each given one of its entity: (values (m, w), t, seq, known);
    the last ones are replaced.

    Rows are tuples in the order of the stream; where `known` is false the
    tuple is its entity's first.
    """
    m, w = values.shape
    before = np.empty((m, w))
    before_t = np.empty(m, np.int64)
    before_seq = np.empty(m, np.int64)
    known = np.empty(m, np.bool_)
    for i in range(m):
        e = entity[i]
        known[i] = last_seq[e] >= 0
        before_t[i] = last_t[e]
        before_seq[i] = last_seq[e]
        for j in range(w):
            before[i, j] = last_values[e, j]
            last_values[e, j] = values[i, j]
        last_t[e] = t[i]
        last_seq[e] = seq[i]
    return before, before_t, before_seq, known
