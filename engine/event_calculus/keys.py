"""Joins of integer keys: compiled, because a window has many of them and most are small.

The keys of a fluent are one array (columns, rows), so that one compiled function serves every
number of arguments. Rows are found by a hash table (slots): linear, without sorting, and without a
limit on the size of the numbers.
"""

from __future__ import annotations

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import Ints, counting_order


@jit
def is_sorted(keys: Ints) -> bool:
    for i in range(1, len(keys)):  # noqa: SIM110 -- compiled: a generator would not be
        if keys[i] < keys[i - 1]:
            return False
    return True


@jit
def _slot(keys: Ints, row: int, mask: int) -> int:
    h = 0
    for j in range(keys.shape[0]):
        h = (h ^ keys[j, row]) * -7046029254386353131
        h ^= (h >> 29) & 0x7FFFFFFFF
    return h & mask


@jit
def _equal(a: Ints, i: int, b: Ints, k: int) -> bool:
    for j in range(a.shape[0]):  # noqa: SIM110 -- compiled: a generator would not be
        if a[j, i] != b[j, k]:
            return False
    return True


@jit
def number_rows(keys: Ints) -> tuple[Ints, Ints]:
    """For each row the number of its distinct value, in order of first appearance;
    and the first row of each."""
    n = keys.shape[1]
    size = 8
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int64)
    number, first = np.empty(n, np.int64), np.empty(n, np.int64)
    groups = 0
    for i in range(n):
        # Neighbouring rows are often of one entity.
        if i > 0 and _equal(keys, i, keys, i - 1):
            number[i] = number[i - 1]
            continue
        at = _slot(keys, i, size - 1)
        while slots[at] >= 0 and not _equal(keys, i, keys, first[slots[at]]):
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at] = groups
            first[groups] = i
            groups += 1
        number[i] = slots[at]
    return number, first[:groups]


@jit
def index_rows(keys: Ints) -> Ints:
    """The hash table of unique rows, for `find_indexed`."""
    n = keys.shape[1]
    size = 8
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(n):
        at = _slot(keys, i, size - 1)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = i
    return slots


@jit
def find_indexed(keys: Ints, slots: Ints, wanted: Ints) -> Ints:
    """For each row of `wanted` its position among the rows of `keys`, -1 if it is missing."""
    found = np.full(wanted.shape[1], -1, np.int64)
    mask = len(slots) - 1
    for i in range(wanted.shape[1]):
        at = _slot(wanted, i, mask)
        while slots[at] >= 0:
            if _equal(wanted, i, keys, slots[at]):
                found[i] = slots[at]
                break
            at = (at + 1) & mask
    return found


@jit
def find_rows(keys: Ints, wanted: Ints) -> Ints:
    """For each row of `wanted` its position among the rows of `keys` (unique
    rows), -1 if it is missing."""
    return find_indexed(keys, index_rows(keys), wanted)


@jit
def pairs(left: Ints, right: Ints, limit: int) -> tuple[int, Ints, Ints]:
    """The number of pairs of equal rows, and, if they are at most `limit`, all of them, in the
    order of `left` and then of `right`."""
    n, m = left.shape[1], right.shape[1]
    number, first = number_rows(np.concatenate((right, left), axis=1))
    order, ptr = counting_order(number[:m], len(first))
    total = 0
    for i in range(n):
        total += ptr[number[m + i] + 1] - ptr[number[m + i]]
    size = total if total <= limit else 0
    one, other = np.empty(size, np.int64), np.empty(size, np.int64)
    k = 0
    for i in range(n if size else 0):
        for j in range(ptr[number[m + i]], ptr[number[m + i] + 1]):
            one[k], other[k] = i, order[j]
            k += 1
    return total, one, other


@jit
def take_rows(keys: Ints, picked: Ints) -> Ints:
    """A copy of the picked rows."""
    out = np.empty((keys.shape[0], len(picked)), np.int64)
    for j in range(keys.shape[0]):
        for i in range(len(picked)):
            out[j, i] = keys[j, picked[i]]
    return out
