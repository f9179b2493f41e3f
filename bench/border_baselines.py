"""The baselines of BMQ-Processor, each compiled or vectorised as well as its idea allows.
All give `border.Answers`."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import shapely
from numba import njit

from engine.border_monitoring.moves import PASS

# Boxes are half-open [low, high), arrays (n, d); moves go from before[i] to after[i], arrays
# (m, d). Codes: 0 out, 1 in.


@njit(cache=True, nogil=True)
def naive(before, after, low, high):
    """Every box against both ends of every move."""
    out = np.empty((1024, 3), np.int64)
    n = 0
    d = low.shape[1]
    for i in range(len(before)):
        for k in range(len(low)):
            was = True
            now = True
            for j in range(d):
                was &= low[k, j] <= before[i, j] and before[i, j] < high[k, j]
                now &= low[k, j] <= after[i, j] and after[i, j] < high[k, j]
            if was != now:
                if n == len(out):
                    out = np.concatenate((out, np.empty_like(out)))
                out[n, 0], out[n, 1], out[n, 2] = i, k, now
                n += 1
    return out[:n]


class CellLists:
    """DiffRMQ's index in d = 1 or 2 dimensions: every cell lists the boxes that overlap
    it (CEI, CES of [BMQ] 7)."""

    def __init__(self, low: np.ndarray, high: np.ndarray, size: float, cells: int) -> None:
        self.low, self.high, self.cells = low, high, cells
        self.width = size / cells
        first = np.clip((low / self.width).astype(np.int64), 0, cells - 1)
        last = np.clip((high / self.width).astype(np.int64), 0, cells - 1)
        self.start, self.items = _lists(first, last, cells)
        self.out = np.empty(0, np.int32)

    @property
    def nbytes(self) -> int:
        return self.start.nbytes + self.items.nbytes + self.low.nbytes + self.high.nbytes

    def run(self, before: np.ndarray, after: np.ndarray) -> Answers:
        if len(self.out) < _room(before):
            self.out = np.empty(_room(before), np.int32)
        last = np.empty(len(before), np.int32)
        n = _diff(before, after, self.low, self.high, self.start, self.items, self.width, self.cells, last, self.out)
        return [(0, (last, self.out[:n]))]


Answers = list[tuple[int, tuple[np.ndarray, ...]]]


def _room(moves: np.ndarray) -> int:
    return 250 * len(moves) + 1024


@njit(cache=True)
def _lists(first, last, cells):
    """(start, items): the boxes of each cell."""
    d = first.shape[1]
    counts = np.zeros((cells if d == 1 else cells * cells) + 1, np.int64)
    for k in range(len(first)):
        for a in range(first[k, 0], last[k, 0] + 1):
            for b in range(first[k, d - 1] if d == 2 else 0, last[k, d - 1] + 1 if d == 2 else 1):
                counts[(a if d == 1 else a * cells + b) + 1] += 1
    start = np.cumsum(counts)
    fill = start.copy()
    items = np.empty(start[-1], np.int32)
    for k in range(len(first)):
        for a in range(first[k, 0], last[k, 0] + 1):
            for b in range(first[k, d - 1] if d == 2 else 0, last[k, d - 1] + 1 if d == 2 else 1):
                cell = a if d == 1 else a * cells + b
                items[fill[cell]] = k
                fill[cell] += 1
    return start, items


@njit(cache=True, nogil=True)
def _diff(before, after, low, high, start, items, width, cells, last, out):
    """Both matching sets, then their difference by stamps: 2 i for the set before, 2 i +
    1 once it is found again."""
    n = 0
    d = low.shape[1]
    stamp = np.full(len(low), -1, np.int64)
    matched = np.empty(len(low), np.int32)
    for i in range(len(before)):
        count = 0
        for end in range(2):
            place = before if end == 0 else after
            cell = min(max(int(place[i, 0] / width), 0), cells - 1)
            if d == 2:
                cell = cell * cells + min(max(int(place[i, 1] / width), 0), cells - 1)
            for s in range(start[cell], start[cell + 1]):
                k = items[s]
                held = low[k, 0] <= place[i, 0] and place[i, 0] < high[k, 0]
                if d == 2:
                    held &= low[k, 1] <= place[i, 1] and place[i, 1] < high[k, 1]
                if not held:
                    continue
                if end == 0:
                    stamp[k] = 2 * i
                    matched[count] = k
                    count += 1
                elif stamp[k] == 2 * i:
                    stamp[k] = 2 * i + 1
                else:
                    out[n] = k
                    n += 1
        for c in range(count):
            k = matched[c]
            if stamp[k] == 2 * i:
                out[n] = ~k
                n += 1
        last[i] = n
    return n


class RegionSegments:
    """The paper's own walk: a list of region segments for each dimension, delta sets, their
    difference, a query table for the cross-check."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        n, self.d = low.shape
        self.low, self.high = low, high
        self.bound, self.owner = [], []
        for j in range(self.d):
            bound = np.concatenate([low[:, j], high[:, j]])
            order = np.argsort(bound, kind="stable")
            self.bound.append(bound[order])
            self.owner.append(np.concatenate([np.arange(n), ~np.arange(n)])[order].astype(np.int32))
        self.bounds, self.owners = np.stack(self.bound), np.stack(self.owner)

    def prepared(self, before: np.ndarray, after: np.ndarray, stream: np.ndarray) -> Callable[[], Answers]:
        """A run over the moves. The stream table keeps each stream's node; it is filled before the
        measurement starts."""
        at = np.stack([np.searchsorted(self.bound[j], before[:, j], side="right") for j in range(self.d)], axis=1)
        nodes = np.zeros((int(stream.max()) + 1, self.d), np.int64)
        firsts = np.unique(stream, return_index=True)
        nodes[firsts[0]] = at[firsts[1]]
        out = np.empty(_room(before), np.int32)

        def run() -> Answers:
            last = np.empty(len(before), np.int32)
            n = _walk(before, after, stream, nodes.copy(), self.bounds, self.owners, self.low, self.high, last, out)
            return [(0, (last, out[:n]))]

        return run


@njit(cache=True, nogil=True)
def _walk(before, after, stream, nodes, bounds, owners, low, high, last, out):
    n = 0
    d = low.shape[1]
    plus = np.full(len(low), -1, np.int64)
    minus = np.full(len(low), -1, np.int64)
    touched = np.empty(4 * len(low), np.int32)
    for i in range(len(before)):
        for j in range(d):
            count = 0
            mark = i * d + j
            p = nodes[stream[i], j]
            if after[i, j] > before[i, j]:
                while p < bounds.shape[1] and bounds[j, p] <= after[i, j]:
                    k = owners[j, p]
                    if k >= 0:
                        plus[k] = mark
                    else:
                        k = ~k
                        minus[k] = mark
                    touched[count] = k
                    count += 1
                    p += 1
            else:
                while p > 0 and bounds[j, p - 1] > after[i, j]:
                    p -= 1
                    k = owners[j, p]
                    if k >= 0:
                        minus[k] = mark
                    else:
                        k = ~k
                        plus[k] = mark
                    touched[count] = k
                    count += 1
            nodes[stream[i], j] = p
            for c in range(count):
                k = touched[c]
                if (plus[k] == mark) == (minus[k] == mark):
                    continue
                entered = plus[k] == mark
                valid = True
                for e in range(d):
                    if e != j:
                        inner = after[i, e] if entered else before[i, e]
                        outer = before[i, e] if entered else after[i, e]
                        valid &= low[k, e] <= inner and inner < high[k, e]
                        if e < j:
                            valid &= low[k, e] <= outer and outer < high[k, e]
                if valid:
                    out[n] = k if entered else ~k
                    n += 1
        last[i] = n
    return n


def tree_bulk(tree: shapely.STRtree, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """STRtree over closed regions: both positions in bulk, then the
    symmetric difference of the pairs."""
    size = len(tree.geometries)
    was = tree.query(shapely.points(before), predicate="intersects")
    now = tree.query(shapely.points(after), predicate="intersects")
    a, b = was[0] * size + was[1], now[0] * size + now[1]
    gone, come = np.setdiff1d(a, b, assume_unique=True), np.setdiff1d(b, a, assume_unique=True)
    pairs = np.concatenate([gone, come])
    return np.stack([pairs // size, pairs % size, np.repeat([0, 1], [len(gone), len(come)])], axis=1)


@njit(cache=True, nogil=True)
def heap_timers(set_at, bound, key, watermark_every):
    """Timers in a binary heap of (due, key): all that are due when the watermark moves; the sum of
    fired keys times their order-free weight."""
    heap = [(np.int64(-1), np.int64(-1))]
    heap.pop()
    fired = np.zeros(len(key), np.int64)
    n = 0
    for i in range(len(set_at)):
        heapq.heappush(heap, (set_at[i] + bound[i], key[i]))
        if i % watermark_every == 0:
            while len(heap) > 0 and heap[0][0] < set_at[i]:
                fired[n] = heapq.heappop(heap)[1]
                n += 1
    while len(heap) > 0:
        fired[n] = heapq.heappop(heap)[1]
        n += 1
    return fired[:n]


def tree_passes(tree: shapely.STRtree, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """As `tree_bulk`, and the regions that a move's line touches with neither end inside."""
    n = len(tree.geometries)
    touched = tree.query(shapely.linestrings(np.stack([before, after], axis=1)), predicate="intersects")
    ends = [tree.query(shapely.points(place), predicate="intersects") for place in (before, after)]
    through = np.setdiff1d(touched[0] * n + touched[1], np.concatenate([end[0] * n + end[1] for end in ends]))
    passes = np.stack([through // n, through % n, np.full(len(through), PASS)], axis=1)
    return np.concatenate([tree_bulk(tree, before, after), passes])
