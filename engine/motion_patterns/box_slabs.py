"""Which of up to 64 axis-parallel boxes contain each sample: one word has a bit for each box whose
slab contains x, one for y; the result is their AND.

Each axis is divided into cells, and the cell number is monotonic in the coordinate, in spite of
rounding. So a box certainly contains a sample whose cell is between the box's lowest and highest
cell. Only in those two cells ("gray" in [CMP] 5.2) the coordinate is compared with the border.
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
"""Cells of an axis: the words of both axes fit into the first-level cache."""
BLOCK = 16384
"""Samples of a block: it fits into the second-level cache, and is long enough
for the hardware prefetcher."""


@dataclass(frozen=True)
class BoxSlabs:
    """`words[axis, cell]`: the boxes whose slab intersects the cell; `gray[axis, cell]`: those of
    them whose border is in it. Cells 1 to _CELLS are between the outermost borders. `boxes`: rows
    west, south, east, north."""

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
        # The last border is in the last cell but one, so coordinates beyond
        # it are never in its cell.
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
        """The fields as the argument `slabs` of `take`."""
        return (*self.corner, *self.scale, self.words, self.gray, self.boxes)


@njit(cache=True, nogil=True)
def _cell(value, low, scale):  # type: ignore[no-untyped-def]
    """The cell of a coordinate, 0 for NaN; without branches, so that the loop is vectorized."""
    u = (value - low) * scale + 1.0
    return np.int32(min(max(u, 0.0), np.float64(_CELLS + 1)) if u >= 0.0 else 0.0)


@njit(cache=True, nogil=True)
def _cells(x, y, west, south, across, up, cells):  # type: ignore[no-untyped-def]
    """Writes both cells of each sample, packed: the lower 16 bits are that of x."""
    for i in range(len(x)):
        cells[i] = _cell(x[i], west, across) | _cell(y[i], south, up) << np.int32(16)


@njit(cache=True, nogil=True)
def _either(cells, i):  # type: ignore[no-untyped-def]
    """The cells on the axes of x and of y."""
    both = np.uint32(cells[i])
    return both & np.uint32(0xFFFF), both >> np.uint32(16)


@njit(cache=True, nogil=True)
def _find(cells, words, near):  # type: ignore[no-untyped-def]
    """Writes the samples that may be in a box to `near`. Returns their number. Most are in none, so
    their words are not kept."""
    n, x, y = 0, words[0], words[1]
    for i in range(len(cells)):
        column, level = _either(cells, i)
        near[n] = i
        n += (x[column] & y[level]) != 0
    return n


@njit(cache=True, nogil=True)
def _gray(cells, words, gray, near, hit, word, pending):  # type: ignore[no-untyped-def]
    """Writes the words of the samples `near[:hit]` to `word`, and the positions in
    `near` of those with gray bits to `pending`. Returns (number of pending samples,
    number of bits in all words)."""
    n, bits, x, y, gray_x, gray_y = 0, np.uint64(0), words[0], words[1], gray[0], gray[1]
    for k in range(hit):
        column, level = _either(cells, np.uint32(near[k]))
        hits = x[column] & y[level]
        word[k] = hits
        pending[n] = k
        n += (hits & (gray_x[column] | gray_y[level])) != 0
        bits += how_many(hits)
    return n, np.int64(bits)


@njit(cache=True, nogil=True)
def _decide(x, y, cells, gray, boxes, near, word, pending, count):  # type: ignore[no-untyped-def]
    """Decides the gray bits of the samples at the positions `pending[:count]`. Returns (number of
    bits removed, whether some word becomes 0)."""
    gone, empty = np.uint64(0), False
    for d in range(count):
        k = np.uint32(pending[d])
        i = np.uint32(near[k])
        column, level = _either(cells, i)
        left, px, py = word[k], x[i], y[i]
        undecided = left & (gray[0, column] | gray[1, level])
        while undecided:
            r = lowest_bit(undecided)
            # About half of them are outside, which cannot be predicted: so no branch.
            outside = np.uint64(1) - np.uint64((boxes[r, 0] <= px) & (px <= boxes[r, 2]) & (boxes[r, 1] <= py) & (py <= boxes[r, 3]))
            left ^= outside << r
            gone += outside
            undecided &= undecided - np.uint64(1)
        word[k] = left
        empty |= left == 0
    return np.int64(gone), empty


@njit(cache=True, nogil=True)
def _still(word, near, hit):  # type: ignore[no-untyped-def]
    """Moves the samples `near[:hit]` that still have a bit, and their words, to the
    front. Returns their number."""
    n = 0
    for k in range(hit):
        bits = word[k]
        near[n], word[n] = near[k], bits
        n += bits != 0
    return n


@njit(cache=True, nogil=True)
def _expect(store, entity, near, hit):  # type: ignore[no-untyped-def]
    """Prefetches the memory that storing the samples `near[:hit]` reads and writes."""
    for k in range(0, hit, sample_store.IN_A_LINE):
        sample_store.expect(store, k)
    for k in range(hit):
        prefetch(entity, np.int64(near[k]))


@njit(cache=True, nogil=True)
def take(begin, rows, slabs, store):  # type: ignore[no-untyped-def]
    """Stores those of `rows`, columns (x, y, t, seq, entity), from `begin` on that are in some box,
    each with the word of its boxes. Returns (the first row that is not processed because the store
    is full, number of bits in the words).

    Memory access takes as long as the computation. So the memory that a block's samples need in the
    store is prefetched while borders are compared.
    """
    x, y, t, seq, entity = rows
    west, south, across, up, words, gray, boxes = slabs
    # Samples that are not wanted are written too, and overwritten; so there is room for one more.
    most = min(BLOCK, len(x) - begin)
    near, pending = np.empty(most + 1, np.int32), np.empty(most + 1, np.int32)
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
        count, bits = _gray(cells, words, gray, near, hit, word, pending)
        gone, empty = _decide(px, py, cells, gray, boxes, near, word, pending, count)
        if empty:
            hit = _still(word, near, hit)
        pairs += bits - gone
        sample_store.append(store, near[:hit], t[start : start + size], seq[start : start + size], px, py, who, word)
    return len(x), pairs
