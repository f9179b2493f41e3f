"""Bit planes: one bit an entity, for each predicate and bucket of time ([CMP] 5.2 with a bitmap for its table of objects).

A **track** is a predicate without its window: the numbers of the stored samples that satisfy it (its **hits**), in order, and for each bucket
((b - 1) g, b g] of time a plane with a bit for each entity that has a hit there. All windows and evaluation times of a group are whole numbers of
buckets and half-open on the same side, so that "some sample in the window satisfies" is the OR of whole planes: a **series**' words.
A bucket with few hits for its number of entities has no plane, its hits are its run-length form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns.sample_store import Store

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_LEAST_RING = 64
_RARE = 4
"""A bucket with less than a hit for so many words has no plane: setting a bit costs about as much as reading this many words in a row."""
_AT_A_TIME = 256
_EMPTY = np.iinfo(np.int64).min


class Hits(NamedTuple):
    """Rings of all tracks in one pool: of track p the numbers below `left[p]` are gone, below `planed[p]` in planes, below `tail[p]` waiting.
    `sample` is the number in the store, `entity` its entity's."""

    first: Ints
    mask: Ints
    left: Ints
    planed: Ints
    tail: Ints
    sample: Ints
    entity: npt.NDArray[np.int32]


class Planes(NamedTuple):
    """`bits[p, slot]`: the plane of bucket `bucket[p, slot]`, of which `hits[p, slot]` are the first hit and the one past the last; without
    `dense[p, slot]` only these count. `words[s]`: OR over the window of series s. `entered`, `left`: cursors of the series in its track's hits."""

    bits: Words
    bucket: Ints
    hits: Ints
    dense: npt.NDArray[np.bool_]
    words: Words
    entered: Ints
    left: Ints


def no_hits(sizes: Ints) -> Hits:
    """Empty rings with room for `sizes` hits."""
    rooms = np.array([max(_LEAST_RING, 1 << int(size - 1).bit_length()) for size in np.maximum(sizes, 1).tolist()], np.int64)
    nothing, total = np.zeros(len(sizes), np.int64), int(rooms.sum())
    return Hits(np.cumsum(rooms) - rooms, rooms - 1, nothing, nothing.copy(), nothing.copy(), np.full(total, 0), np.full(total, 0, np.int32))


def with_room(hits: Hits, counts: Ints) -> Hits:
    """The same hits with room for `counts` more on each track; when one is short of room all that are more than half full get twice as much."""
    kept, rooms = hits.tail - hits.left, hits.mask + 1
    if (kept + counts <= rooms).all():
        return hits
    grown = no_hits(np.where(kept + counts > rooms // 2, np.maximum(kept + counts, 2 * rooms), rooms))
    for p in range(len(kept)):
        numbers = np.arange(hits.left[p], hits.tail[p])
        new, old = grown.first[p] + (numbers & grown.mask[p]), hits.first[p] + (numbers & hits.mask[p])
        grown.sample[new], grown.entity[new] = hits.sample[old], hits.entity[old]
    return grown._replace(left=hits.left, planed=hits.planed, tail=hits.tail)


def no_planes(tracks: int, slots: int, series: int, words: int) -> Planes:
    """Empty planes. Memory of planes that are never written is never taken."""
    return Planes(
        np.zeros((tracks, slots, words), np.uint64), np.full((tracks, slots), _EMPTY), np.zeros((tracks, slots, 2), np.int64),
        np.zeros((tracks, slots), np.bool_), np.zeros((series, words), np.uint64), np.zeros(series, np.int64), np.zeros(series, np.int64),
    )  # fmt: skip


def with_words(planes: Planes, words: int) -> Planes:
    """The same planes, `words` wide."""
    had = planes.bits.shape[2]
    bits = np.zeros((*planes.bits.shape[:2], words), np.uint64)
    bits[planes.dense, :had] = planes.bits[planes.dense]
    wide = np.zeros((len(planes.words), words), np.uint64)
    wide[:, :had] = planes.words
    return planes._replace(bits=bits, words=wide)


@njit(cache=True, nogil=True)
def add_hits(store, hits, p, first, rows, low, high):  # type: ignore[no-untyped-def]
    """Hits of track p: samples `first + rows[low:high]`."""
    base, mask, number, sample, entity = hits.first[p], hits.mask[p], hits.tail[p], hits.sample, hits.entity
    places = len(store.t) - 1
    for i in range(low, high):
        j = base + (number & mask)
        sample[j] = first + rows[i]
        entity[j] = store.entity[(first + rows[i]) & places]
        number += 1
    hits.tail[p] = number


@njit(cache=True, nogil=True)
def add_others(store, hits, p, first, count, rows, low, high):  # type: ignore[no-untyped-def]
    """Hits of track p: those of the samples `first` to `first + count` that are not in `rows[low:high]` (ascending)."""
    base, mask, number, sample, entity = hits.first[p], hits.mask[p], hits.tail[p], hits.sample, hits.entity
    places = len(store.t) - 1
    i = low
    for row in range(count):
        if i < high and rows[i] == row:
            i += 1
            continue
        j = base + (number & mask)
        sample[j] = first + row
        entity[j] = store.entity[(first + row) & places]
        number += 1
    hits.tail[p] = number


@njit(cache=True, nogil=True)
def time_of(store, hits, p, number):  # type: ignore[no-untyped-def]
    """When a hit was."""
    return store.t[hits.sample[hits.first[p] + (number & hits.mask[p])] & (len(store.t) - 1)]


@njit(cache=True, nogil=True)
def first_after(store, hits, p, low, high, t):  # type: ignore[no-untyped-def]
    """The first hit of track p in [low, high) later than t, or `high`; quick when it is near `low`."""
    step = 1
    while low + step <= high and time_of(store, hits, p, low + step - 1) <= t:
        low += step
        step *= 2
    high = min(high, low + step - 1)
    while low < high:
        middle = (low + high) // 2
        if time_of(store, hits, p, middle) <= t:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _set(hits, p, low, high, plane):  # type: ignore[no-untyped-def]
    base, mask, entity = hits.first[p], hits.mask[p], hits.entity
    for number in range(low, high):
        e = np.int64(entity[base + (number & mask)])
        plane[e >> 6] |= np.uint64(1) << np.uint64(e & 63)


@njit(cache=True, nogil=True)
def fill(store, hits, planes, p, width, reach, at, words):  # type: ignore[no-untyped-def]
    """Planes of track p for its waiting hits up to time `at`, a bucket's edge, as far as a window of `reach` still sees them."""
    slots = planes.bits.shape[1]
    number = hits.planed[p]
    while number < hits.tail[p]:
        t = time_of(store, hits, p, number)
        if t > at:
            break
        bucket = -((-t) // width)
        stop = first_after(store, hits, p, number, hits.tail[p], bucket * width)
        if bucket * width > at - reach:
            slot = bucket % slots
            planes.bucket[p, slot] = bucket
            planes.hits[p, slot, 0] = number
            planes.hits[p, slot, 1] = stop
            planes.dense[p, slot] = _RARE * (stop - number) >= words
            if planes.dense[p, slot]:
                plane = planes.bits[p, slot]
                plane[:words] = 0
                _set(hits, p, number, stop, plane)
        number = stop
    hits.planed[p] = number


@njit(cache=True, nogil=True)
def gather(hits, planes, s, p, low, high, words):  # type: ignore[no-untyped-def]
    """`words[s]` becomes the OR of track p's buckets `low` to `high`, both included."""
    slots = planes.bits.shape[1]
    found = planes.words[s]
    found[:words] = 0
    for bucket in range(low, high + 1):
        slot = bucket % slots
        if planes.bucket[p, slot] != bucket:
            continue
        if planes.dense[p, slot]:
            plane = planes.bits[p, slot]
            for w in range(words):
                found[w] |= plane[w]
        else:
            _set(hits, p, planes.hits[p, slot, 0], planes.hits[p, slot, 1], found)


@njit(cache=True, nogil=True)
def latest(hits, planes, p, low, high, entities, samples):  # type: ignore[no-untyped-def]
    """`samples[i]`: number of the latest sample of `entities[i]` (negative: nobody) that hits track p in the buckets `low` to `high`, or -1."""
    slots, base, mask, entity, sample = planes.bits.shape[1], hits.first[p], hits.mask[p], hits.entity, hits.sample
    bits, buckets, dense, between = planes.bits[p], planes.bucket[p], planes.dense[p], planes.hits[p]
    for i in range(len(entities)):
        samples[i] = -1
        e = entities[i]
        if e < 0:
            continue
        for bucket in range(high, low - 1, -1):
            slot = bucket % slots
            if buckets[slot] != bucket or (dense[slot] and (bits[slot, e >> 6] >> np.uint64(e & 63)) & np.uint64(1) == 0):
                continue
            place = _latest_place(entity, np.int32(e), base, mask, between[slot, 0], between[slot, 1])
            if place >= 0:
                samples[i] = sample[place]
                break


@njit(cache=True, nogil=True)
def _latest_place(entity, wanted, base, mask, low, high):  # type: ignore[no-untyped-def]
    """Where in the pool the latest hit of the entity lies among those numbered `low` to `high`, or -1. Many at a time are asked whether one is it."""
    while high > low:
        last = (high - 1) & mask
        size = min(high - low, _AT_A_TIME, last + 1)
        part = entity[base + last + 1 - size : base + last + 1]
        there = 0
        for i in range(len(part)):
            there += part[i] == wanted
        if there:
            for i in range(len(part) - 1, -1, -1):
                if part[i] == wanted:
                    return base + last + 1 - size + i
        high -= size
    return np.int64(-1)


def live(hits: Hits) -> tuple[Ints, Ints]:
    """(how many hits each track keeps, their samples' numbers by track)."""
    numbers = [np.arange(left, tail) for left, tail in zip(hits.left, hits.tail, strict=True)]
    pieces = [hits.sample[first + (n & mask)] for first, mask, n in zip(hits.first, hits.mask, numbers, strict=True)]
    return hits.tail - hits.left, np.concatenate([np.empty(0, np.int64), *pieces])


def check(store: Store, hits: Hits, planes: Planes) -> None:
    """Assert that hits are stored samples in order and planes what they say."""
    assert (hits.left <= hits.planed).all() and (hits.planed <= hits.tail).all()
    assert (hits.tail - hits.left <= hits.mask + 1).all()
    for p in range(len(hits.left)):
        place = hits.first[p] + (np.arange(hits.left[p], hits.tail[p]) & hits.mask[p])
        kept = hits.sample[place]
        assert (hits.entity[place] == store.entity[kept & (len(store.t) - 1)]).all()
        assert (np.diff(kept) > 0).all() and (kept >= store.bounds[0]).all() and (kept < store.bounds[1]).all()
    assert (planes.left <= planes.entered).all()
