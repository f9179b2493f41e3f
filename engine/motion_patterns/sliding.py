"""ORs of long windows, updated incrementally: bits of entering buckets are set, bits of leaving
buckets are cleared unless another bucket has them.

Entities change slowly, so the bucket after the one that leaves has nearly all of its bits; other
buckets are read only for the remaining bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.motion_patterns.bit_planes import Planes


@njit(cache=True, nogil=True)
def is_cheaper(planes, s, left):  # type: ignore[no-untyped-def]
    """Whether removing the buckets from `left` on that left the window of series s reads less
    memory than the OR of all buckets in it."""
    return 3 * (planes.left[s] - left) + 2 < planes.entered[s] - planes.left[s]


@njit(cache=True, nogil=True)
def take_out(planes, s, p, low, words):  # type: ignore[no-untyped-def]
    """Clears the bits of sequence p in `words[s]` that are in the buckets from `low` up to the
    window of series s, and in no bucket of the window."""
    slots, bits, union = len(planes.bucket), planes.bits[p], planes.words[s]
    high, made = planes.left[s], planes.entered[s]
    kept = np.empty(made - high, np.int64)
    several = 0
    for j in range(high, made):
        if planes.dense[j % slots, p] and planes.counts[j % slots, p] > 0:
            kept[several] = j % slots
            several += 1
    for j in range(low, high):
        slot = j % slots
        if planes.dense[slot, p]:
            _take_out_plane(bits, slot, kept[:several], union, words)
            continue
        for i in range(planes.counts[slot, p]):
            e = bits[slot, i]
            _take_out_word(bits, kept[:several], union, e >> np.uint64(6), np.uint64(1) << (e & np.uint64(63)))
    for j in range(high, made):
        if not planes.dense[j % slots, p]:
            _put_in_list(planes, p, j % slots, union)


@njit(cache=True, nogil=True)
def _take_out_plane(bits, slot, kept, union, words):  # type: ignore[no-untyped-def]
    if len(kept) == 0:
        for w in range(words):
            union[w] &= ~bits[slot, w]
        return
    leaving, following = bits[slot], bits[kept[0]]
    for w in range(words):
        gone = leaving[w] & ~following[w]
        if gone:
            _take_out_word(bits, kept[1:], union, w, gone)


@njit(cache=True, nogil=True)
def _take_out_word(bits, kept, union, w, gone):  # type: ignore[no-untyped-def]
    """Clears the bits `gone` in `union[w]` that none of the planes `kept` has."""
    for slot in kept:
        gone &= ~bits[slot, w]
        if gone == 0:
            return
    union[w] &= ~gone


@njit(cache=True, nogil=True)
def _put_in_list(planes, p, slot, union):  # type: ignore[no-untyped-def]
    for i in range(planes.counts[slot, p]):
        e = planes.bits[p, slot, i]
        union[e >> np.uint64(6)] |= np.uint64(1) << (e & np.uint64(63))


@njit(cache=True, nogil=True)
def put_in(planes, s, p, low, words):  # type: ignore[no-untyped-def]
    """Sets the bits of sequence p in `words[s]` that are in the buckets of the window
    of series s from `low` on."""
    slots, bits, union = len(planes.bucket), planes.bits[p], planes.words[s]
    for j in range(max(low, planes.left[s]), planes.entered[s]):
        slot = j % slots
        if not planes.dense[slot, p]:
            _put_in_list(planes, p, slot, union)
        elif planes.counts[slot, p] > 0:
            plane = bits[slot]
            for w in range(words):
                union[w] |= plane[w]


def check(planes: Planes, sequence: np.ndarray) -> None:
    """Assert that each series' words are the OR of its window."""
    slots = len(planes.bucket)
    for s, p in enumerate(sequence):
        union = np.zeros(planes.words.shape[1], np.uint64)
        for j in range(planes.left[s], planes.entered[s]):
            if planes.dense[j % slots, p] and planes.counts[j % slots, p] > 0:
                union |= planes.bits[p, j % slots]
            else:
                _put_in_list(planes, p, j % slots, union)
        assert (union == planes.words[s]).all()
