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
BLOCK = 16384
"""Samples that are looked at together: they stay in the second cache, and it is long enough a run through memory for the processor to read ahead."""


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
        ends = np.empty((2, len(boxes)), np.int32)
        for side in range(2):
            x, y = np.ascontiguousarray(boxes[:, 2 * side : 2 * side + 2].T)
            _cells(x, y, *corner, *scale, ends[side])
        for axis in range(2):
            for r, (low, high) in enumerate((ends >> 16 * axis & 0xFFFF).T.tolist()):
                words[axis, low : high + 1] |= np.uint64(1 << r)
                gray[axis, [low, high]] |= np.uint64(1 << r)
        return cls(np.ascontiguousarray(boxes), corner, scale, words, gray)

    @property
    def arrays(self) -> tuple[float, float, float, float, Words, Words, Floats]:
        """As `take` wants them."""
        return (*self.corner, *self.scale, self.words, self.gray, self.boxes)


@njit(cache=True, nogil=True)
def _cell(value, low, scale):  # type: ignore[no-untyped-def]
    """The cell of a coordinate, 0 for NaN; without branches, so that several are done at a time."""
    u = (value - low) * scale + 1.0
    return np.int32(min(max(u, 0.0), np.float64(_CELLS + 1)) if u >= 0.0 else 0.0)


@njit(cache=True, nogil=True)
def _cells(x, y, west, south, across, up, cells):  # type: ignore[no-untyped-def]
    """Both cells of each sample, packed: the lower 16 bits are that of x."""
    for i in range(len(x)):
        cells[i] = _cell(x[i], west, across) | _cell(y[i], south, up) << np.int32(16)


@njit(cache=True, nogil=True)
def _either(cells, i):  # type: ignore[no-untyped-def]
    """The cells on the axes of x and of y."""
    both = np.uint32(cells[i])
    return both & np.uint32(0xFFFF), both >> np.uint32(16)


@njit(cache=True, nogil=True)
def _find(cells, words, near):  # type: ignore[no-untyped-def]
    """The samples that may be in a box, into `near`: how many. Most are in none, so their words are not kept."""
    n, x, y = 0, words[0], words[1]
    for i in range(len(cells)):
        column, level = _either(cells, i)
        near[n] = i
        n += (x[column] & y[level]) != 0
    return n


@njit(cache=True, nogil=True)
def _gray(cells, words, gray, near, hit, word, doubtful):  # type: ignore[no-untyped-def]
    """The words of the samples `near[:hit]`, into `word`, and the places in `near` of those with gray bits, into `doubtful`: (how many, how many bits
    all words have)."""
    n, bits, x, y, gray_x, gray_y = 0, np.uint64(0), words[0], words[1], gray[0], gray[1]
    for k in range(hit):
        column, level = _either(cells, np.uint32(near[k]))
        own = x[column] & y[level]
        word[k] = own
        doubtful[n] = k
        n += (own & (gray_x[column] | gray_y[level])) != 0
        bits += how_many(own)
    return n, np.int64(bits)


@njit(cache=True, nogil=True)
def _decide(x, y, cells, gray, boxes, near, word, doubtful, count):  # type: ignore[no-untyped-def]
    """Gray bits of the samples at the places `doubtful[:count]` are decided: (how many bits go, whether some word has none left)."""
    gone, empty = np.uint64(0), False
    for d in range(count):
        k = np.uint32(doubtful[d])
        i = np.uint32(near[k])
        column, level = _either(cells, i)
        left, px, py = word[k], x[i], y[i]
        asked = left & (gray[0, column] | gray[1, level])
        while asked:
            r = lowest_bit(asked)
            # Half of them are outside, none can tell which: so no branch.
            outside = np.uint64(1) - np.uint64((boxes[r, 0] <= px) & (px <= boxes[r, 2]) & (boxes[r, 1] <= py) & (py <= boxes[r, 3]))
            left ^= outside << r
            gone += outside
            asked &= asked - np.uint64(1)
        word[k] = left
        empty |= left == 0
    return np.int64(gone), empty


@njit(cache=True, nogil=True)
def _still(word, near, hit):  # type: ignore[no-untyped-def]
    """Which of the samples `near[:hit]` have a bit yet, with their words to the front: how many."""
    n = 0
    for k in range(hit):
        own = word[k]
        near[n], word[n] = near[k], own
        n += own != 0
    return n


@njit(cache=True, nogil=True)
def _expect(store, entity, near, hit):  # type: ignore[no-untyped-def]
    """What keeping the samples `near[:hit]` will read and write is fetched."""
    for k in range(0, hit, sample_store.IN_A_LINE):
        sample_store.expect(store, k)
    for k in range(hit):
        prefetch(entity, np.int64(near[k]))


@njit(cache=True, nogil=True)
def take(begin, rows, slabs, store):  # type: ignore[no-untyped-def]
    """Of `rows`, columns (x, y, t, seq, entity), those from `begin` on that lie in some box go to the store, each with the word of its boxes: the
    first row that is not done, for want of room, and how many bits the words have.

    Memory takes as long as the work: so what a block's samples will need in the store is fetched while their borders are looked at.
    """
    x, y, t, seq, entity = rows
    west, south, across, up, words, gray, boxes = slabs
    # What is not looked for is written too, and overwritten: the last one's place is past them all.
    most = min(BLOCK, len(x) - begin)
    near, doubtful = np.empty(most + 1, np.int32), np.empty(most + 1, np.int32)
    cells, word = np.empty(most, np.int32), np.empty(most + 1, np.uint64)
    pairs = 0
    for start in range(begin, len(x), BLOCK):
        size = min(BLOCK, len(x) - start)
        px, py, who = x[start : start + size], y[start : start + size], entity[start : start + size]
        _cells(px, py, west, south, across, up, cells)
        hit = _find(cells[:size], words, near)
        if store.bounds[1] - store.bounds[0] + hit > len(store.t):
            return start, pairs
        _expect(store, who, near, hit)
        count, bits = _gray(cells, words, gray, near, hit, word, doubtful)
        gone, empty = _decide(px, py, cells, gray, boxes, near, word, doubtful, count)
        if empty:
            hit = _still(word, near, hit)
        pairs += bits - gone
        sample_store.append(store, near[:hit], t[start : start + size], seq[start : start + size], px, py, who, word)
    return len(x), pairs
