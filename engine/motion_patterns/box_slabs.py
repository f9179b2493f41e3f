"""Which boxes hold each sample, for up to 64 boxes along the axes: a word with a bit for each box whose slab holds x, one for y, and their AND.

Each axis is cut into cells, and the cell of a coordinate never falls as the coordinate grows, in spite of rounding. So a box whose lowest and highest
cell lie on either side of a sample's cell holds it for certain, and only in those two cells ("gray" in [CMP] 5.2) the border itself is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.bits import how_many, lowest_bit
from engine.index.prefetch import prefetch
from engine.motion_patterns import sample_store

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

MOST_BOXES = 64
_CELLS = 1024
"""Of an axis: the words of both axes stay in the first cache."""
BLOCK = 2048
"""Samples that are looked at together: they stay in the first cache."""


@dataclass(frozen=True)
class BoxSlabs:
    """`words[axis, cell]`: the boxes whose slab meets the cell, `gray[axis, cell]` those of them whose border lies in it; cells 1 to _CELLS lie
    between the outermost borders. `boxes`: rows west, south, east, north."""

    boxes: Floats
    corner: tuple[float, float]
    scale: tuple[float, float]
    words: Words
    gray: Words

    @classmethod
    def of(cls, boxes: Floats) -> BoxSlabs:
        """Slabs of at most MOST_BOXES boxes."""
        corner = (float(boxes[:, 0].min()), float(boxes[:, 1].min()))
        sides = np.maximum(boxes[:, 2:].max(axis=0) - corner, 1e-300)
        # The last border is in the last cell but one: what lies beyond is not in its cell.
        scale = (float((_CELLS - 1) / sides[0]), float((_CELLS - 1) / sides[1]))
        words, gray = np.zeros((2, _CELLS + 2), np.uint64), np.zeros((2, _CELLS + 2), np.uint64)
        for axis in range(2):
            ends = np.empty((2, len(boxes)), np.int32)
            for side in range(2):
                _cells(np.ascontiguousarray(boxes[:, axis + 2 * side]), corner[axis], scale[axis], ends[side])
            for r, (low, high) in enumerate(ends.T.tolist()):
                words[axis, low : high + 1] |= np.uint64(1 << r)
                gray[axis, [low, high]] |= np.uint64(1 << r)
        return cls(np.ascontiguousarray(boxes), corner, scale, words, gray)

    @property
    def arrays(self) -> tuple[float, float, float, float, Words, Words, Floats]:
        """As `take` wants them."""
        return (*self.corner, *self.scale, self.words, self.gray, self.boxes)


@njit(cache=True, nogil=True)
def _cells(values, low, scale, cells):  # type: ignore[no-untyped-def]
    """The cell of each coordinate, 0 for NaN; without branches, so that several are done at a time."""
    most = np.float64(_CELLS + 1)
    for i in range(len(values)):
        u = (values[i] - low) * scale + 1.0
        cells[i] = np.int32(min(max(u, 0.0), most) if u >= 0.0 else 0.0)


@njit(cache=True, nogil=True)
def _combine(across, up, words, found):  # type: ignore[no-untyped-def]
    x, y = words[0], words[1]
    for i in range(len(across)):
        found[i] = x[np.uint32(across[i])] & y[np.uint32(up[i])]


@njit(cache=True, nogil=True)
def _some(words, size, near):  # type: ignore[no-untyped-def]
    """Which of the words have a bit, into `near`: how many."""
    n = 0
    for i in range(size):
        near[n] = i
        n += words[i] != 0
    return n


@njit(cache=True, nogil=True)
def _still(words, near, hit):  # type: ignore[no-untyped-def]
    """Which of the samples `near[:hit]` have a bit yet, to the front of `near`: how many."""
    n = 0
    for k in range(hit):
        i = np.uint32(near[k])
        near[n] = i
        n += words[i] != 0
    return n


@njit(cache=True, nogil=True)
def _gray(across, up, gray, word, near, hit, doubtful):  # type: ignore[no-untyped-def]
    """Which of the samples `near[:hit]` have gray bits, into `doubtful`: (how many, how many bits all of them have)."""
    n, bits, x, y = 0, np.uint64(0), gray[0], gray[1]
    for k in range(hit):
        i = np.uint32(near[k])
        own = word[i]
        doubtful[n] = i
        n += (own & (x[np.uint32(across[i])] | y[np.uint32(up[i])])) != 0
        bits += how_many(own)
    return n, np.int64(bits)


@njit(cache=True, nogil=True)
def _decide(x, y, across, up, gray, boxes, word, doubtful, count):  # type: ignore[no-untyped-def]
    """Gray bits of the samples `doubtful[:count]` are decided: (how many bits go, whether some word has none left)."""
    gone, empty = np.uint64(0), False
    for k in range(count):
        i = np.uint32(doubtful[k])
        left, px, py = word[i], x[i], y[i]
        asked = left & (gray[0, np.uint32(across[i])] | gray[1, np.uint32(up[i])])
        while asked:
            r = lowest_bit(asked)
            # Half of them are outside, none can tell which: so no branch.
            outside = np.uint64(1) - np.uint64((boxes[r, 0] <= px) & (px <= boxes[r, 2]) & (boxes[r, 1] <= py) & (py <= boxes[r, 3]))
            left ^= outside << r
            gone += outside
            asked &= asked - np.uint64(1)
        word[i] = left
        empty |= left == 0
    return np.int64(gone), empty


@njit(cache=True, nogil=True)
def _expect(store, entity, near, hit):  # type: ignore[no-untyped-def]
    """What keeping the samples `near[:hit]` will read and write is fetched, but for their links."""
    for k in range(0, hit, sample_store.IN_A_LINE):
        sample_store.expect(store, k)
    for k in range(hit):
        prefetch(entity, np.int64(near[k]))


@njit(cache=True, nogil=True)
def take(begin, x, y, t, seq, entity, west, south, across, up, words, gray, boxes, store):  # type: ignore[no-untyped-def]
    """Rows from `begin` on that lie in some box go to the store, each with the word of its boxes: the first row that is not done, for want of room,
    and how many bits the words have.

    Memory takes as long as the work: so what a block's samples will need in the store is fetched while their borders are looked at.
    """
    columns, levels = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    word, near, doubtful = np.empty(BLOCK, np.uint64), np.empty(BLOCK + 1, np.int32), np.empty(BLOCK + 1, np.int32)
    pairs = 0
    for start in range(begin, len(x), BLOCK):
        size = min(BLOCK, len(x) - start)
        if store.bounds[1] - store.bounds[0] + size > len(store.t):
            return start, pairs
        px, py, who = x[start : start + size], y[start : start + size], entity[start : start + size]
        _cells(px, west, across, columns)
        _cells(py, south, up, levels)
        _combine(columns[:size], levels[:size], words, word)
        hit = _some(word, size, near)
        _expect(store, who, near, hit)
        count, bits = _gray(columns, levels, gray, word, near, hit, doubtful)
        gone, empty = _decide(px, py, columns, levels, gray, boxes, word, doubtful, count)
        if empty:
            hit = _still(word, near, hit)
        pairs += bits - gone
        sample_store.expect_links(store, who, near, hit)
        sample_store.append(store, near[:hit], t[start : start + size], seq[start : start + size], px, py, who, word)
    return len(x), pairs
