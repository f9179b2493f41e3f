"""Interval algebra over many lists together: linear merges, no sorting.

A bundle of n lists is three arrays `ptr` (n + 1), `s`, `e`: list i is the intervals [s[k], e[k])
for ptr[i] <= k < ptr[i + 1], sorted, disjoint, not touching (maximal). An end of INF means that the
interval is open. All kernels keep these invariants.

References: [dRTEC] table 1; research notes, kernels 6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.event_calculus.compiled import jit

INF = 1 << 62
"""End of an open interval: greater than every time point, and INF + tick does not overflow."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Intervals(NamedTuple):
    """A bundle of lists of maximal intervals (see the module's text)."""

    ptr: Ints
    s: Ints
    e: Ints

    @property
    def lists(self) -> int:
        return len(self.ptr) - 1

    @property
    def counts(self) -> Ints:
        return self.ptr[1:] - self.ptr[:-1]

    def owners(self) -> Ints:
        """For each interval the number of its list."""
        return np.repeat(np.arange(len(self.ptr) - 1), self.ptr[1:] - self.ptr[:-1])

    def check(self) -> None:
        owners = self.owners()
        assert np.all(self.s < self.e), "an interval is empty"
        inner = owners[1:] == owners[:-1]
        assert np.all(self.e[:-1][inner] < self.s[1:][inner]), "intervals of a list touch or are not sorted"


def empty(lists: int) -> Intervals:
    return Intervals(np.zeros(lists + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@jit
def _gather(ptr: Ints, s: Ints, e: Ints, picked: Ints, begin: int) -> tuple[Ints, Ints, Ints]:
    n = len(picked)
    total = 0
    for i in range(n):
        if picked[i] >= 0:
            total += ptr[picked[i] + 1] - ptr[picked[i]]
    out_ptr, out_s, out_e = np.empty(n + 1, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    out_ptr[0] = 0
    k = 0
    for i in range(n):
        if picked[i] >= 0:
            for j in range(ptr[picked[i]], ptr[picked[i] + 1]):
                if e[j] > begin:
                    out_s[k] = max(s[j], begin)
                    out_e[k] = e[j]
                    k += 1
        out_ptr[i + 1] = k
    return out_ptr, out_s[:k], out_e[:k]


def gather(lists: Intervals, picked: Ints, begin: int) -> Intervals:
    """List picked[i] of `lists` as list i (-1: the empty list), without what is before `begin`."""
    return Intervals(*_gather(lists.ptr, lists.s, lists.e, picked, begin))


@jit
def write_union(sa: Ints, ea: Ints, a: int, a_end: int, sb: Ints, eb: Ints, b: int, b_end: int, s: Ints, e: Ints, k: int) -> int:
    """Writes the union of the lists sa[a:a_end] and sb[b:b_end] to s and e from index k on.
    Returns the index after it."""
    first = k
    while a < a_end or b < b_end:
        # The next interval is the one that begins first.
        if b >= b_end or (a < a_end and sa[a] <= sb[b]):
            low, high = sa[a], ea[a]
            a += 1
        else:
            low, high = sb[b], eb[b]
            b += 1
        if k > first and low <= e[k - 1]:
            e[k - 1] = max(e[k - 1], high)
        else:
            s[k], e[k] = low, high
            k += 1
    return k


@jit
def write_intersection(sa: Ints, ea: Ints, a: int, a_end: int, sb: Ints, eb: Ints, b: int, b_end: int, s: Ints, e: Ints, k: int) -> int:
    """Like `write_union`, but the intersection."""
    while a < a_end and b < b_end:
        low, high = max(sa[a], sb[b]), min(ea[a], eb[b])
        if low < high:
            s[k], e[k] = low, high
            k += 1
        if ea[a] < eb[b]:
            a += 1
        else:
            b += 1
    return k


@jit
def write_difference(sa: Ints, ea: Ints, a: int, a_end: int, sb: Ints, eb: Ints, b: int, b_end: int, s: Ints, e: Ints, k: int) -> int:
    """Like `write_union`, but the first list without the second."""
    for i in range(a, a_end):
        low = sa[i]
        while b < b_end and eb[b] <= low:
            b += 1
        # `b` stays at an interval that may also overlap the next one of the first list.
        j = b
        while j < b_end and sb[j] < ea[i]:
            if sb[j] > low:
                s[k], e[k] = low, sb[j]
                k += 1
            low = max(low, eb[j])
            j += 1
        if low < ea[i]:
            s[k], e[k] = low, ea[i]
            k += 1
    return k


UNION, INTERSECTION, DIFFERENCE = 0, 1, 2


@jit
def _merge(operation: int, pa: Ints, sa: Ints, ea: Ints, pb: Ints, sb: Ints, eb: Ints) -> tuple[Ints, Ints, Ints]:
    n = len(pa) - 1
    ptr, s, e = np.empty(n + 1, np.int64), np.empty(len(sa) + len(sb), np.int64), np.empty(len(sa) + len(sb), np.int64)
    ptr[0] = 0
    k = 0
    for i in range(n):
        if operation == UNION:
            k = write_union(sa, ea, pa[i], pa[i + 1], sb, eb, pb[i], pb[i + 1], s, e, k)
        elif operation == INTERSECTION:
            k = write_intersection(sa, ea, pa[i], pa[i + 1], sb, eb, pb[i], pb[i + 1], s, e, k)
        else:
            k = write_difference(sa, ea, pa[i], pa[i + 1], sb, eb, pb[i], pb[i + 1], s, e, k)
        ptr[i + 1] = k
    return ptr, s[:k], e[:k]


def union(a: Intervals, b: Intervals) -> Intervals:
    """List by list the points of either list; touching intervals become one."""
    return Intervals(*_merge(UNION, *a, *b))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """List by list the points of both lists."""
    return Intervals(*_merge(INTERSECTION, *a, *b))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """List by list the points of `a` that are not in `b`."""
    return Intervals(*_merge(DIFFERENCE, *a, *b))


def always(lists: int, begin: int) -> Intervals:
    """[begin, inf) in every list."""
    return Intervals(np.arange(lists + 1), np.full(lists, begin), np.full(lists, INF))


def keep(lists: Intervals, kept: Bools) -> Intervals:
    """Only the intervals marked in `kept`."""
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)))
    return Intervals(before[lists.ptr], lists.s[kept], lists.e[kept])


@jit
def counting_order(owner: Ints, lists: int) -> tuple[Ints, Ints]:
    """Positions sorted by owner (stable), and the offset of each owner's first:
    linear, without comparisons."""
    ptr = np.zeros(lists + 1, np.int64)
    for i in range(len(owner)):
        ptr[owner[i] + 1] += 1
    for i in range(lists):
        ptr[i + 1] += ptr[i]
    at = ptr[:-1].copy()
    order = np.empty(len(owner), np.int64)
    for i in range(len(owner)):
        order[at[owner[i]]] = i
        at[owner[i]] += 1
    return order, ptr


@jit
def amalgamated(owner: Ints, s: Ints, e: Ints, lists: int) -> tuple[Ints, Ints, Ints]:
    """`amalgamate` for kernels."""
    order, begins = counting_order(owner, lists)
    ptr, out_s, out_e = np.zeros(lists + 1, np.int64), np.empty(len(s), np.int64), np.empty(len(s), np.int64)
    k = 0
    for i in range(lists):
        own = order[begins[i] : begins[i + 1]]
        for j in range(1, len(own)):
            if s[own[j]] < s[own[j - 1]]:
                own = own[np.argsort(s[own])]
                break
        first = k
        for j in own:
            if k > first and s[j] <= out_e[k - 1]:
                out_e[k - 1] = max(out_e[k - 1], e[j])
            else:
                out_s[k], out_e[k] = s[j], e[j]
                k += 1
        ptr[i + 1] = k
    return ptr, out_s[:k], out_e[:k]


def amalgamate(owner: Ints, s: Ints, e: Ints, lists: int) -> Intervals:
    """Maximal intervals of arbitrary ones; interval k belongs to list owner[k]. Linear if
    those of each list are sorted."""
    return Intervals(*amalgamated(owner, s, e, lists))


@jit
def grow(array: Ints) -> Ints:
    """The array with room for twice as many."""
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


@jit
def _holds(ptr: Ints, s: Ints, e: Ints, picked: Ints, t: Ints) -> Bools:
    out = np.empty(len(picked), np.bool_)
    for i in range(len(picked)):
        low, high = ptr[picked[i]], ptr[picked[i] + 1]
        begin = low
        while low < high:
            middle = (low + high) >> 1
            if s[middle] <= t[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low > begin and t[i] < e[low - 1]
    return out


def holds(lists: Intervals, picked: Ints, t: Ints) -> Bools:
    """Whether t[i] is in an interval of list picked[i]."""
    return np.asarray(_holds(lists.ptr, lists.s, lists.e, picked, t))


def longer_than(lists: Intervals, duration: npt.NDArray[np.float64], query_time: int) -> Intervals:
    """Intervals that last more than `duration` (one for each list); an open one
    lasts until `query_time`."""
    ends = np.where(lists.e == INF, query_time, lists.e)
    return keep(lists, ends - lists.s > duration[lists.owners()])
