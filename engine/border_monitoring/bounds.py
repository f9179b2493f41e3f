"""Sorted bounds, each with its query's other end: the index of ranges and of wide rectangles.

All bounds of one dimension are sorted. A value that moves from v0 to v1 changes the answer only of
the queries whose bounds lie between the two; with the other end of its query known each bound can
be decided separately (it counts iff the other end was not crossed as well), so no set difference is
formed. In d dimensions a query whose bounds are crossed in several of them is reported in the first
only, and the check of the other dimensions stops at the first that refutes.

All ranges are half-open `[low, high)`; a closed end becomes the next double above it.

References: [BMQ] 4.1, 4.3 (RS list, Lemma 1), 5.3 (cross-check, Fig. 6). Departure: partner bounds
instead of differences of sets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from engine.index.bits import how_many, lowest_bit
from engine.index.compiled import kernel
from engine.index.lanes import LANES, at_most, below

N = TypeVar("N", np.float64, np.int32)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


class MoveColumns(NamedTuple):
    """The moves of m tuples: from `before[i]` to `after[i]`, arrays (m, d); `before[i]`
    is valid where `known[i]`."""

    before: Floats
    after: Floats
    known: npt.NDArray[np.bool_]


class Bounds(NamedTuple):
    """Immutable index over n boxes in d dimensions.

    Dimension j owns the entries `first[j]` to `first[j + 1]` of `bound` (ascending), `partner`
    (the other end) and `owner` (box k as k for its lower end, ~k for its upper). `directory[j]`
    gives, for each of its equal-width slots from `origin[j]` on, the first entry at or above the
    slot's start. For the cross-check `across_low` and `across_high` have the ends in the dimension
    after j (cyclically) of each entry, which refutes most crossings without a jump in memory; in
    three dimensions and more the rest looks into `low`, `high` (n, d), and `partner` is empty.
    Unbounded ends are infinite. Columns of entries that are compared in lanes have `LANES` more,
    with any values, at their ends.
    """

    low: Floats
    high: Floats
    across_low: Floats
    across_high: Floats
    first: npt.NDArray[np.int64]
    bound: Floats
    partner: Floats
    owner: Ints
    directory: npt.NDArray[np.int32]
    origin: Floats
    scale: Floats

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def build_bounds(low: Floats, high: Floats) -> Bounds:
    """Index over the boxes `[low, high)`, arrays (n, d). A box empty in some
    dimension is never entered."""
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
    across_low, across_high = np.empty(0), np.empty(0)
    if d > 1:
        box = np.where(owner < 0, ~owner, owner)
        other = np.repeat((np.arange(d) + 1) % d, np.diff(first))
        across_low, across_high = low[box, other], high[box, other]
    return Bounds(
        low=np.ascontiguousarray(low if d > 2 else np.empty((0, d)), np.float64),
        high=np.ascontiguousarray(high if d > 2 else np.empty((0, d)), np.float64),
        across_low=_with_room(across_low),
        across_high=_with_room(across_high),
        first=np.array(first, np.int64),
        bound=_with_room(every),
        partner=_with_room(ends if d < 3 else np.empty(0)),
        owner=_with_room(owner),
        directory=directory,
        origin=origin,
        scale=scale,
    )


def _slot_of(values: Floats, origin: float, scale: float, slots: int) -> npt.NDArray[np.int64]:
    """Slots of values; the same arithmetic as in the kernel, so that equal
    values always meet in one slot."""
    return np.minimum(np.maximum((values - origin) * scale, 0.0), slots).astype(np.int64)


def _with_room(entries: npt.NDArray[N]) -> npt.NDArray[N]:
    return np.concatenate([entries, np.zeros(LANES, entries.dtype)])


@dataclass
class CrossingBuffers:
    """Output buffers of `bound_crossings`: the same memory for every call, because touching new
    memory costs as much as the search.

    Of the first m moves, move i has crossed `boxes[last[i - 1]:last[i]]` (from 0 for i = 0): box k
    as k when it is entered, as ~k when it is left.
    """

    last: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    boxes: Ints = field(default_factory=lambda: np.empty(LANES, np.int32))

    def reserve(self, moves: int) -> None:
        """Space for the counts of this many moves, and for some crossings of each."""
        if moves > len(self.last):
            self.last = np.empty(moves, np.int32)
        if 32 * moves > len(self.boxes):
            self.boxes = np.empty(32 * moves + 1024, np.int32)

    def grow(self, used: int) -> None:
        """Twice the space for crossings, of which `used` are kept."""
        boxes = np.empty(2 * len(self.boxes), np.int32)
        boxes[:used] = self.boxes[:used]
        self.boxes = boxes


@kernel()
def crossings(begin: Any, n: Any, moves: Any, index: Any, last: Any, boxes: Any, work: Any) -> Any:
    """Boxes entered and left by the `moves` from row `begin` on, appended after the first `n` of
    `boxes`; returns (next row, crossings).

    `index` are `Bounds`. When `boxes` is full it stops before the row that did not fit. Adds to
    `work[1]` the bounds read.
    """
    d = index.low.shape[1]
    for i in range(begin, len(moves.before)):
        last[i] = n
        if not moves.known[i]:
            continue
        at_row = n
        for j in range(d):
            v0, v1 = moves.before[i, j], moves.after[i, j]
            if v0 == v1:
                continue
            # What is between the two ends is read once, and without a branch at its end.
            start, stop = _first_above(index, j, min(v0, v1)), _first_above(index, j, max(v0, v1))
            if n + stop - start > len(boxes) - LANES:
                return i, at_row
            work[1] += stop - start
            # Read upwards a lower end is entered, downwards left.
            flip = np.int32(0) if v1 > v0 else np.int32(-1)
            for k in range(start, stop, LANES):
                crossed = _crossed(index, moves, i, j, k) & ((np.int64(1) << min(stop - k, LANES)) - 1)
                if d < 3:
                    # Written always, counted when it holds: no branch to mispredict.
                    for side in range(LANES):
                        boxes[np.uintp(n)] = index.owner[np.uintp(k) + np.uintp(side)] ^ flip
                        n += (crossed >> side) & 1
                    continue
                while crossed:
                    box = index.owner[k + lowest_bit(crossed)] ^ flip
                    crossed &= crossed - 1
                    if _is_first(index, moves, i, j, box):
                        boxes[n] = box
                        n += 1
        last[i] = n
    return len(moves.before), n


@kernel(inline=True)
def _first_above(index: Any, j: Any, value: Any) -> Any:
    """The first entry of dimension j whose bound is above `value`."""
    slots = index.directory.shape[1] - 2
    slot = int(min(max((value - index.origin[j]) * index.scale[j], 0.0), float(slots)))
    place, above = index.first[j] + index.directory[j, slot], index.first[j] + index.directory[j, slot + 1]
    while above - place > LANES:
        middle = (place + above) >> 1
        if index.bound[middle] <= value:
            place = middle + 1
        else:
            above = middle
    return place + how_many(at_most(index.bound, place, value) & ((np.int64(1) << (above - place)) - 1))


@kernel(inline=True)
def _crossed(index: Any, moves: Any, i: Any, j: Any, k: Any) -> Any:
    """Which of the entries of dimension j from k on, all between the move's ends, count as crossed,
    as bits; in three dimensions and more the caller asks for the others too."""
    d = index.low.shape[1]
    v0, v1 = moves.before[i, j], moves.after[i, j]
    other = j + 1 if j + 1 < d else 0
    was_other, now_other = moves.before[i, other], moves.after[i, other]
    crossed = np.int64(-1)
    if d == 2 and j == 1:
        # A crossing in both dimensions is asserted by the first: the second requires the
        # other one to hold throughout.
        crossed = at_most(index.across_low, k, min(was_other, now_other)) & ~at_most(index.across_high, k, max(was_other, now_other))
    elif d > 1:
        # Upwards a lower end is entered, downwards an upper one. An entering move must be inside
        # the other bounds now, a leaving one before.
        lower, upper = (now_other, was_other) if v1 > v0 else (was_other, now_other)
        ends = below(index.owner, k, np.int32(0))
        crossed = (ends | (at_most(index.across_low, k, lower) & ~at_most(index.across_high, k, lower))) & (
            ~ends | (at_most(index.across_low, k, upper) & ~at_most(index.across_high, k, upper))
        )
    if d < 3:
        # A lower end's partner is above its bound, an upper end's below it: either way the crossing
        # counts iff the partner was not crossed too.
        crossed &= at_most(index.partner, k, min(v0, v1)) | ~at_most(index.partner, k, max(v0, v1))
    return crossed


@kernel(inline=True)
def _is_first(index: Any, moves: Any, i: Any, j: Any, crossed: Any) -> Any:
    """Whether the move is inside the box in every dimension after it enters, before it leaves; and
    on the other side of it in no dimension before j, where that has been reported."""
    box = crossed ^ (crossed >> 31)
    for e in range(index.low.shape[1]):
        inner = moves.after[i, e] if crossed >= 0 else moves.before[i, e]
        outer = moves.before[i, e] if crossed >= 0 else moves.after[i, e]
        if not (index.low[box, e] <= inner and inner < index.high[box, e]):
            return False
        if e < j and not (index.low[box, e] <= outer and outer < index.high[box, e]):
            return False
    return True


def bound_crossings(index: Bounds, moves: MoveColumns, work: npt.NDArray[np.int64], crossed: CrossingBuffers) -> tuple[Ints, Ints]:
    """(last, boxes) of all crossings of the moves, views of `crossed`, where they are
    described; see `crossings`."""
    crossed.reserve(len(moves.after))
    row, n = 0, 0
    while True:
        row, n = crossings(row, n, moves, index, crossed.last, crossed.boxes, work)
        if row == len(moves.after):
            return crossed.last[:row], crossed.boxes[:n]
        crossed.grow(n)


def rows_of(last: Ints) -> Ints:
    """The move of each crossing."""
    return np.repeat(np.arange(len(last), dtype=np.int32), np.diff(last, prepend=np.int32(0)))
