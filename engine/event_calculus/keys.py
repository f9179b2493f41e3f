"""Joins of integer keys: compiled, because a window has many of them and most are small.

Measured on the CAVIAR windows: a join by numpy's searchsorted, repeat and cumsum took about 60 us for a hundred rows, this one 5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import Bools, Ints


@jit
def _range(a: Ints, b: Ints) -> tuple[int, int]:
    """The least value of both arrays, and the number of values from it to the greatest."""
    low = high = 0
    if len(a):
        low = high = a[0]
    elif len(b):
        low = high = b[0]
    for i in range(len(a)):
        low, high = min(low, a[i]), max(high, a[i])
    for i in range(len(b)):
        low, high = min(low, b[i]), max(high, b[i])
    return low, high - low + 1


@jit
def _combine(a: Ints, b: Ints, a2: Ints, b2: Ints) -> tuple[bool, Ints, Ints]:
    """Two columns of both sides as one; false (and empty arrays) if the numbers would overflow."""
    low, width = _range(a, b)
    low2, width2 = _range(a2, b2)
    left, right = np.empty(len(a), np.int64), np.empty(len(b), np.int64)
    if width <= 0 or width2 <= 0 or width >= (1 << 62) // width2:
        return False, left, right
    for i in range(len(a)):
        left[i] = (a[i] - low) * width2 + (a2[i] - low2)
    for i in range(len(b)):
        right[i] = (b[i] - low) * width2 + (b2[i] - low2)
    return True, left, right


@jit
def is_sorted(keys: Ints) -> bool:
    for i in range(1, len(keys)):  # noqa: SIM110 -- compiled: a generator would not be
        if keys[i] < keys[i - 1]:
            return False
    return True


@jit
def _lower(keys: Ints, order: Ints, wanted: int) -> int:
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[order[middle]] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _ordered(keys: Ints) -> Ints:
    return np.arange(len(keys)) if is_sorted(keys) else np.argsort(keys, kind="mergesort")


@jit
def _pairs(a: Ints, b: Ints, limit: int) -> tuple[int, Ints, Ints]:
    order = _ordered(b)
    first, counts = np.empty(len(a), np.int64), np.empty(len(a), np.int64)
    total = 0
    for i in range(len(a)):
        at = _lower(b, order, a[i])
        first[i] = at
        while at < len(b) and b[order[at]] == a[i]:
            at += 1
        counts[i] = at - first[i]
        total += counts[i]
    size = total if total <= limit else 0
    left, right = np.empty(size, np.int64), np.empty(size, np.int64)
    k = 0
    for i in range(len(a) if size else 0):
        for j in range(counts[i]):
            left[k], right[k] = i, order[first[i] + j]
            k += 1
    return total, left, right


@jit
def _locate(keys: Ints, wanted: Ints) -> Ints:
    order = _ordered(keys)
    out = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        at = _lower(keys, order, wanted[i])
        out[i] = order[at] if at < len(keys) and keys[order[at]] == wanted[i] else -1
    return out


def packed(columns: Sequence[Ints], others: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Each row of several integer columns as one integer, equal if and only if the rows (of both sides) are equal."""
    if not columns:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, right = np.ascontiguousarray(columns[0]), np.ascontiguousarray(others[0])
    for column, other in zip(columns[1:], others[1:], strict=True):
        a, b = np.ascontiguousarray(column), np.ascontiguousarray(other)
        fits, both_left, both_right = _combine(left, right, a, b)
        if not fits:
            left, right = _dense(left, right)
            fits, both_left, both_right = _combine(left, right, a, b)
        if not fits:
            _, both_left, both_right = _combine(left, right, *_dense(a, b))
        left, right = both_left, both_right
    return left, right


def _dense(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    _, inverse = np.unique(np.concatenate((left, right)), return_inverse=True)
    inverse = np.ascontiguousarray(inverse.reshape(-1))
    return inverse[: len(left)], inverse[len(left) :]


def pairs(a: Ints, b: Ints, limit: int) -> tuple[int, Ints, Ints]:
    """The number of pairs (i, j) with a[i] == b[j], and, if they are at most `limit`, all of them in order of i."""
    return _pairs(a, b, limit)


def among(keys: Ints, wanted: Ints) -> Bools:
    """Which of `wanted` occur in `keys`."""
    return np.asarray(_locate(keys, wanted)) >= 0


@jit
def mark(named: Bools, codes: Ints) -> None:
    """Sets named[code] for all codes that are not negative."""
    for code in codes:
        if code >= 0:
            named[code] = True


@jit
def mark_alive(named: Bools, keys: Ints, places: Ints, ptr: Ints, e: Ints, limit: int) -> None:
    """Sets named[keys[place, i]] for the given places and all lists i whose last interval ends after `limit`."""
    for i in range(keys.shape[1]):
        if ptr[i + 1] > ptr[i] and e[ptr[i + 1] - 1] > limit:
            for place in places:
                named[keys[place, i]] = True


# -- rows of several columns ---------------------------------------------------------------------------------------
#
# The keys of a fluent are one array (columns, rows), so that one compiled function serves every number of arguments. Rows are found by a
# hash table (slots): linear, without sorting, and without a limit on the size of the numbers.


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
    """For each row the number of its distinct value, in order of first appearance; and the first row of each."""
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
    """For each row of `wanted` its position among the rows of `keys` (unique rows), -1 if it is missing."""
    return find_indexed(keys, index_rows(keys), wanted)


@jit
def take_rows(keys: Ints, picked: Ints) -> Ints:
    """A copy of the picked rows."""
    out = np.empty((keys.shape[0], len(picked)), np.int64)
    for j in range(keys.shape[0]):
        for i in range(len(picked)):
            out[j, i] = keys[j, picked[i]]
    return out
