"""128-bit fingerprints of rows and the set of those seen: how duplicates are found
without keeping the rows.

Two different rows have the same fingerprint with a probability of about 2^-128; a thousand million
remembered rows hold such a pair with a probability below 10^-20.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
_NULL = (np.uint64(0x6E756C6C6E756C6C), np.uint64(0x9AE16A3B2F90404F))
_LEAST_ROOM = 1024


def fingerprints(rows: pa.RecordBatch, columns: Sequence[str]) -> tuple[Words, Words]:
    """Two 64-bit words for each row: equal where the rows are equal in all
    `columns`, nulls included."""
    first = np.zeros(rows.num_rows, np.uint64)
    second = np.full(rows.num_rows, np.uint64(0x243F6A8885A308D3))
    for name in columns:
        column = rows.column(name)
        if column.null_count == len(column):
            _mix_one(first, second, *_NULL)
        elif pa.types.is_string(column.type):
            _mix_texts(first, second, column)
        else:
            _mix(first, second, _words(column), column.null_count > 0, _valid(column), *_NULL)
    return first, second


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    if not column.null_count:
        return np.empty(0, np.bool_)
    return np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), np.bool_)


def _words(column: pa.Array) -> Words:
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        column = pc.fill_null(column, 0)
    numbers = column.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.float64:
        # Minus zero equals zero.
        numbers = numbers + 0.0
    return np.ascontiguousarray(numbers).view(np.uint64)


def _mix_texts(first: Words, second: Words, column: pa.Array) -> None:
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    digests = np.frombuffer(b"".join(map(_digest, names)), np.uint64).reshape(-1, 2)
    digests = np.vstack([digests, np.array([_NULL], np.uint64)])
    codes = pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)
    _mix_pairs(first, second, digests, codes.astype(np.int64))


@lru_cache(maxsize=200_000)
def _digest(text: str) -> bytes:
    """Entities come again in every batch: looking their digests up is three times
    cheaper than making them."""
    return blake2b(text.encode(), digest_size=16).digest()


@njit(cache=True, nogil=True)
def _scrambled(word):  # type: ignore[no-untyped-def]
    """SplitMix64's finalizer: a bijection of 64-bit words that spreads every bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def _step(first, second, a, b):  # type: ignore[no-untyped-def]
    x = _scrambled(first * np.uint64(0x9E3779B97F4A7C15) + a)
    y = _scrambled((second ^ np.uint64(0xC2B2AE3D27D4EB4F)) * np.uint64(0x9FB21C651E98DF25) + b)
    # Both lines can be undone, so nothing of either word is lost.
    x = x ^ (y >> np.uint64(32))
    return x, y + (x << np.uint64(17))


@njit(cache=True, nogil=True)
def _mix(first, second, words, nulls, valid, null_a, null_b):  # type: ignore[no-untyped-def]
    for i in range(len(first)):
        if nulls and not valid[i]:
            first[i], second[i] = _step(first[i], second[i], null_a, null_b)
        else:
            first[i], second[i] = _step(first[i], second[i], words[i], words[i] ^ np.uint64(0x5851F42D4C957F2D))


@njit(cache=True, nogil=True)
def _mix_one(first, second, a, b):  # type: ignore[no-untyped-def]
    for i in range(len(first)):
        first[i], second[i] = _step(first[i], second[i], a, b)


@njit(cache=True, nogil=True)
def _mix_pairs(first, second, pairs, codes):  # type: ignore[no-untyped-def]
    for i in range(len(first)):
        first[i], second[i] = _step(first[i], second[i], pairs[codes[i], 0], pairs[codes[i], 1])


class SeenRows:
    """Fingerprints with their times in a table of open addresses.

    Invariant: at most half of the buckets are used, so a search always ends. Entries go when
    `forget_before` rebuilds the table, which it does only when the table has doubled since: adding
    n rows costs O(n) altogether.
    """

    def __init__(self) -> None:
        self._allocate(_LEAST_ROOM)
        self._count = 0
        self._rebuild_at = _LEAST_ROOM // 2

    def __len__(self) -> int:
        return self._count

    def _allocate(self, room: int) -> None:
        self._first, self._second = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
        self._t = np.zeros(room, np.int64)
        self._used = np.zeros(room, np.bool_)

    def add(self, first: Words, second: Words, t: Ints) -> npt.NDArray[np.bool_]:
        """Which of the rows, in their order, were not there before; they are there now."""
        self._reserve(self._count + len(t))
        fresh = np.empty(len(t), np.bool_)
        self._count += _insert(first, second, t, self._first, self._second, self._t, self._used, fresh)
        return fresh

    def forget_before(self, t: int) -> None:
        """Rows with times below `t` need not be remembered."""
        if self._count >= self._rebuild_at:
            self._rebuild(*self._entries(t))

    def _entries(self, least: int | None = None) -> tuple[Words, Words, Ints]:
        kept = self._used if least is None else self._used & (self._t >= least)
        return self._first[kept], self._second[kept], self._t[kept]

    def _reserve(self, count: int) -> None:
        if 2 * count > len(self._t):
            entries = self._entries()
            self._allocate(1 << (2 * count).bit_length())
            _insert(*entries, self._first, self._second, self._t, self._used, np.empty(len(entries[2]), np.bool_))

    def _rebuild(self, first: Words, second: Words, t: Ints) -> None:
        self._rebuild_at = max(2 * len(t), _LEAST_ROOM // 2)
        self._allocate(max(1 << (2 * self._rebuild_at).bit_length(), _LEAST_ROOM))
        self._count = _insert(first, second, t, self._first, self._second, self._t, self._used, np.empty(len(t), np.bool_))

    def dump(self) -> bytes:
        first, second, t = self._entries()
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, first=first, second=second, t=t)
            return file.getvalue()

    @classmethod
    def load(cls, data: bytes) -> SeenRows:
        seen = cls()
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            seen._rebuild(arrays["first"], arrays["second"], arrays["t"])
        return seen

    @classmethod
    def union(cls, parts: Sequence[SeenRows]) -> SeenRows:
        """The rows of all `parts`; a row that several have is one."""
        seen = cls()
        entries = [part._entries() for part in parts]
        if entries:
            first, second, t = (np.concatenate(columns) for columns in zip(*entries, strict=True))
            seen._rebuild(first, second, t)
        return seen

    def with_nulls(self, columns: int) -> SeenRows:
        """The same rows as if they had so many more columns behind the others, all of them null."""
        first, second, t = self._entries()
        for _ in range(columns):
            _mix_one(first, second, *_NULL)
        seen = SeenRows()
        seen._rebuild(first, second, t)
        return seen

    def check(self) -> None:
        assert self._count == int(np.count_nonzero(self._used))
        assert 2 * self._count <= len(self._t)


@njit(cache=True, nogil=True)
def _insert(first: Any, second: Any, t: Any, table_first: Any, table_second: Any, table_t: Any, used: Any, fresh: Any) -> Any:
    """Puts rows into the table; `fresh` marks those that were not in it. Returns how many."""
    mask = len(used) - 1
    added = 0
    for i in range(len(t)):
        bucket = np.int64(first[i] & np.uint64(mask))
        while used[bucket] and not (table_first[bucket] == first[i] and table_second[bucket] == second[i]):
            bucket = (bucket + 1) & mask
        fresh[i] = not used[bucket]
        if fresh[i]:
            used[bucket] = True
            table_first[bucket], table_second[bucket], table_t[bucket] = first[i], second[i], t[i]
            added += 1
    return added
