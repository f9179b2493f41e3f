"""Sorted bounds with the partner end beside each bound: the index of ranges and of wide rectangles.

All bounds of one dimension are sorted. A value that moves from v0 to v1 changes the answer only of the queries whose bounds lie between
the two; with the other end of its query beside it each bound decides by itself (it counts iff the other end was not crossed as well), so
no set difference is formed.
In d dimensions a query whose bounds are crossed in several of them is reported in the first only, and the check of the other
dimensions stops at the first that refutes.

All ranges are half-open `[low, high)`; a closed end becomes the next double above it.

References: [BMQ] 4.1, 4.3 (RS list, Lemma 1), 5.3 (cross-check, Fig. 6). Departure: partner bounds instead of differences of sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.border_monitoring.moves import IN, OUT

_BLOCK = 32
_SHIFT = 5

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Bounds:
    """Immutable index over n boxes in d dimensions.

    Dimension j owns the entries `first[j]` to `first[j + 1]` of `bound` (ascending), `partner` (the other end) and `owner` (box k as k for its
    lower end, ~k for its upper). `directory[j]` gives, for each of its equal-width slots from `origin[j]` on, the first entry at or above the
    slot's start. `narrowest[k >> 5]` is the least width, in the entry's dimension, of the boxes of 32 entries: a shorter move crosses no
    partner of theirs, so they are told without looking at it. For the cross-check `across` (entries, 2) has the ends in the dimension after j
    (cyclically) beside each bound, which refutes most crossings without a jump in memory; in three dimensions and more the rest looks into
    `low`, `high` (n, d), and `partner` is empty. Unbounded ends are infinite.
    """

    low: Floats
    high: Floats
    across: Floats
    first: npt.NDArray[np.int64]
    bound: Floats
    partner: Floats
    owner: Ints
    narrowest: Floats
    directory: npt.NDArray[np.int32]
    origin: Floats
    scale: Floats

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))


def build_bounds(low: Floats, high: Floats) -> Bounds:
    """Index over the boxes `[low, high)`, arrays (n, d). A box empty in some dimension is never entered."""
    n, d = low.shape
    alive = (low < high).all(axis=1)
    first = [0]
    bounds, partners, owners = [], [], []
    slots = max(16, n)
    directory = np.zeros((d, slots + 2), np.int32)
    origin, scale = np.zeros(d), np.zeros(d)
    numbers = np.arange(n, dtype=np.int32)
    for j in range(d):
        lower = alive & np.isfinite(low[:, j])
        upper = alive & np.isfinite(high[:, j])
        bound = np.concatenate([low[lower, j], high[upper, j]])
        order = np.argsort(bound, kind="stable")
        bound = bound[order]
        bounds.append(bound)
        partners.append(np.concatenate([high[lower, j], low[upper, j]])[order])
        owners.append(np.concatenate([numbers[lower], ~numbers[upper]])[order])
        first.append(first[-1] + len(bound))
        if len(bound):
            origin[j] = bound[0]
            width = bound[-1] - bound[0]
            scale[j] = slots / width if width > 0 and np.isfinite(slots / width) else 0.0
            places = _slot_of(bound, origin[j], scale[j], slots)
            directory[j] = np.searchsorted(places, np.arange(slots + 2), side="left")
    owner, every, ends = np.concatenate(owners).astype(np.int32), np.concatenate(bounds), np.concatenate(partners)
    across = np.empty((0, 2))
    if d > 1:
        box = np.where(owner < 0, ~owner, owner)
        other = np.repeat((np.arange(d) + 1) % d, np.diff(first))
        across = np.stack([low[box, other], high[box, other]], axis=1)
    return Bounds(
        low=np.ascontiguousarray(low if d > 2 else np.empty((0, d)), np.float64),
        high=np.ascontiguousarray(high if d > 2 else np.empty((0, d)), np.float64),
        across=across,
        first=np.array(first, np.int64),
        bound=every,
        partner=ends if d < 3 else np.empty(0),
        owner=owner,
        narrowest=np.minimum.reduceat(np.abs(ends - every), np.arange(0, len(every), _BLOCK)) if len(every) else np.empty(0),
        directory=directory,
        origin=origin,
        scale=scale,
    )


def _slot_of(values: Floats, origin: float, scale: float, slots: int) -> npt.NDArray[np.int64]:
    """Slots of values; the same arithmetic as in the kernel, so that equal values always meet in one slot."""
    return np.minimum(np.maximum((values - origin) * scale, 0.0), slots).astype(np.int64)


@njit(cache=True, nogil=True, inline="always")
def _after(value, bound, first, last, directory, j, origin, scale):  # type: ignore[no-untyped-def]
    """First entry in [first, last) whose bound is greater than `value`."""
    slots = directory.shape[1] - 2
    slot = int(min(max((value - origin) * scale, 0.0), float(slots)))
    low = first + directory[j, slot]
    high = first + directory[j, slot + 1]
    while high - low > 8:
        middle = (low + high) >> 1
        if bound[middle] <= value:
            low = middle + 1
        else:
            high = middle
    while low < last and bound[low] <= value:
        low += 1
    return low


@njit(cache=True, nogil=True, inline="always")
def _held(low, high, box, values, row, first, last):  # type: ignore[no-untyped-def]
    """Whether `values[row]` lies in the box in the dimensions from `first` up to `last`, not including it."""
    j = first
    while j < last and low[box, j] <= values[row, j] and values[row, j] < high[box, j]:
        j += 1
    return j >= last


@njit(cache=True, nogil=True, inline="always")
def _alone(narrowest, start, stop, length):  # type: ignore[no-untyped-def]
    """Whether a move of this length is shorter than every box with an end among the entries from `start` up to `stop`."""
    block = start >> _SHIFT
    last = (stop - 1) >> _SHIFT
    while block <= last and narrowest[block] > length:
        block += 1
    return block > last


@njit(cache=True, nogil=True)
def crossings(  # type: ignore[no-untyped-def]
    begin, before, after, known, low, high, across, first, bound, partner, owner, narrowest, directory, origin, scale,
    out_row, out_box, out_code, work,
):  # fmt: skip
    """Boxes entered and left by the moves from row `begin` on, written to row, box and code; returns (next row, crossings).

    Move i goes from `before[i]` to `after[i]`, arrays (m, >= d); where `known[i]` is false there is none. When the output is full it stops
    before the row that did not fit. Adds to `work[1]` the bounds read.
    """
    n = 0
    capacity = len(out_row)
    d = low.shape[1]
    read = 0
    for i in range(begin, len(before)):
        if not known[i]:
            continue
        at_row = n
        for j in range(d):
            v0 = before[i, j]
            v1 = after[i, j]
            if v0 == v1:
                continue
            upwards = v1 > v0
            lesser = min(v0, v1)
            greater = max(v0, v1)
            start = _after(lesser, bound, first[j], first[j + 1], directory, j, origin[j], scale[j])
            # Looked up, not walked to: what is between is read once, and without a branch at its end.
            stop = _after(greater, bound, first[j], first[j + 1], directory, j, origin[j], scale[j])
            if stop == start:
                continue
            if n + stop - start > capacity:
                work[1] += read
                return i, at_row
            read += stop - start
            # Both lengths are rounded, and rounding keeps their order.
            alone = d < 3 and _alone(narrowest, start, stop, greater - lesser)
            if d == 1 and alone:
                for k in range(stop - start):
                    end_of = owner[start + k]
                    out_row[n + k] = i
                    out_box[n + k] = end_of ^ (end_of >> 31)
                    out_code[n + k] = (end_of >= 0) == upwards
                n += stop - start
                continue
            if d == 1:
                for k in range(start, stop):
                    end_of = owner[k]
                    # A lower end's partner is above its bound, an upper end's below it: either way the crossing counts iff the partner
                    # was not crossed too. Written always, counted when it holds: no branch to mispredict.
                    out_row[n] = i
                    out_box[n] = end_of ^ (end_of >> 31)
                    out_code[n] = (end_of >= 0) == upwards
                    n += 1 - ((partner[k] > lesser) & (partner[k] <= greater))
                continue
            if d == 2:
                was_other = before[i, 1 - j]
                now_other = after[i, 1 - j]
                for k in range(start, stop):
                    end_of = owner[k]
                    entered = (end_of >= 0) == upwards
                    was_in = (across[k, 0] <= was_other) & (was_other < across[k, 1])
                    now_in = (across[k, 0] <= now_other) & (now_other < across[k, 1])
                    # What crossed in both dimensions is told by the first: the second wants the other one held throughout.
                    counts = (was_in & now_in) if j == 1 else (entered & now_in) | (was_in & (not entered))
                    out_row[n] = i
                    out_box[n] = end_of ^ (end_of >> 31)
                    out_code[n] = entered
                    n += counts & (alone or (partner[k] <= lesser) | (partner[k] > greater))
                continue
            other = (j + 1) % d
            was_other = before[i, other]
            now_other = after[i, other]
            for k in range(start, stop):
                end_of = owner[k]
                entered = (end_of >= 0) == upwards
                value = now_other if entered else was_other
                if not (across[k, 0] <= value and value < across[k, 1]):
                    continue
                # Inside in every dimension; outside not already in an earlier one, where it has been reported.
                box = end_of ^ (end_of >> 31)
                inner = after if entered else before
                outer = before if entered else after
                if _held(low, high, box, inner, i, 0, d) and _held(low, high, box, outer, i, 0, j):
                    out_row[n] = i
                    out_box[n] = box
                    out_code[n] = IN if entered else OUT
                    n += 1
    work[1] += read
    return len(before), n


def bound_crossings(
    index: Bounds, before: Floats, after: Floats, known: npt.NDArray[np.bool_], work: npt.NDArray[np.int64]
) -> tuple[Ints, Ints, npt.NDArray[np.int8]]:
    """(row, box, code) of all crossings of the moves; see `crossings`."""
    parts = []
    row, capacity = 0, 1024 + 32 * len(after)  # Untouched pages cost nothing.
    while row < len(after):
        out = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.int8)
        row, n = crossings(
            row, before, after, known, index.low, index.high, index.across, index.first, index.bound, index.partner, index.owner, index.narrowest,
            index.directory, index.origin, index.scale, *out, work,
        )  # fmt: skip
        parts.append(tuple(column[:n] for column in out))
        capacity *= 2
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]
