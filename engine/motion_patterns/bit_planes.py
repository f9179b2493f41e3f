"""Bit planes: one bit for each entity, for each predicate and bucket of time ([CMP] 5.2 with a
bitmap as its table of objects).

A **bucket** ((b - 1) g, b g] of time that has samples with hits (`sample_store`) gets its planes at
the first evaluation after its end: for each sequence a plane with a bit for each entity that has a
hit there. All windows and evaluation times of a group are whole numbers of buckets and half-open on
the same side, so "some sample in the window satisfies" is the OR of whole planes: the words of a
**series**. If a bucket has few hits of a sequence relative to the number of entities, it holds a
list of the entities instead of a plane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.bits import how_many, lowest_bit
from engine.index.prefetch import prefetch
from engine.motion_patterns.sample_store import SampleStore, first_after

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

_RARE = 4
"""A bucket with less than one hit for this many words has no plane: setting a bit costs about as
much as reading this many words in sequence."""
_BLOCK, _MANY = 1024, 8
"""Samples of a block, which fits into the first-level cache, are grouped by their number of new
hits; _MANY or more are one group."""
_AT_ONCE = 5


class Planes(NamedTuple):
    """Buckets with hits are numbered from 0 in order of time, and numbers are never reused; number
    j has the slot `j % slots`. `bounds`: [number of buckets, the first sample that is in none]. By
    slot, `bucket`, `first`, `stop`: number by time, first sample, and the one past the last.

    `counts[slot, p]`: hits of sequence p; consecutive ones of an entity count once. If
    `dense[slot, p]` they are the bits `bits[p, slot]`, else that array begins with the list of
    their entities. `latest[slot, e]`: distance from `first` to the last sample of e that hits,
    if e has one in the bucket. `words[s]`: OR over the window of series s, the buckets
    `left[s]` to `entered[s]`.
    """

    bounds: Ints
    bucket: Ints
    first: Ints
    stop: Ints
    counts: Ints
    dense: npt.NDArray[np.bool_]
    bits: Words
    latest: Int32s
    words: Words
    entered: Ints
    left: Ints


def no_planes(sequences: int, slots: int, series: int, words: int) -> Planes:
    """Empty planes. The operating system allocates no memory for planes that are never written."""
    return Planes(
        np.zeros(2, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64),
        np.zeros((slots, sequences), np.int64), np.zeros((slots, sequences), np.bool_),
        np.zeros((sequences, slots, words), np.uint64), np.zeros((slots, words * 64), np.int32), np.zeros((series, words), np.uint64),
        np.zeros(series, np.int64), np.zeros(series, np.int64),
    )  # fmt: skip


def with_words(planes: Planes, words: int) -> Planes:
    """The same planes, `words` wide."""
    sequences, slots, had = planes.bits.shape
    wide = no_planes(sequences, slots, len(planes.words), words)
    filled = planes.counts.T > 0
    wide.bits[filled, :had] = planes.bits[filled]
    used = planes.counts.any(axis=1)
    wide.latest[used, : had * 64] = planes.latest[used]
    wide.words[:, :had] = planes.words
    return planes._replace(bits=wide.bits, latest=wide.latest, words=wide.words)


def emptied(planes: Planes, words: int) -> Planes:
    """The same buckets and windows without their hits, `words` wide, to be filled by
    `fill_again`."""
    sequences, slots, _ = planes.bits.shape
    empty = no_planes(sequences, slots, len(planes.words), words)
    return planes._replace(counts=empty.counts, dense=empty.dense, bits=empty.bits, latest=empty.latest, words=empty.words)


@njit(cache=True, nogil=True)
def fill(store, planes, width, at, words):  # type: ignore[no-untyped-def]
    """Makes the buckets of the samples up to time `at`, the edge of a bucket, if
    some window may contain them."""
    slots, mask = len(planes.bucket), len(store.t) - 1
    number, tail = planes.bounds[1], store.bounds[1]
    while number < tail and store.t[number & mask] <= at:
        bucket = -((-store.t[number & mask]) // width)
        stop = first_after(store, number, tail, bucket * width)
        if bucket > at // width - slots and _first_hit(store, number, stop) < stop:
            slot = planes.bounds[0] % slots
            planes.bucket[slot] = bucket
            planes.first[slot] = number
            planes.stop[slot] = stop
            _fill_bucket(store, planes, planes.bounds[0], words)
            planes.bounds[0] += 1
        number = stop
    planes.bounds[1] = number


@njit(cache=True, nogil=True, inline="always")
def _fill_bucket(store, planes, j, words):  # type: ignore[no-untyped-def]
    """Fills the planes, lists and last samples of bucket j."""
    slots, sequences, most = len(planes.bucket), len(planes.bits), words // _RARE
    slot, before = j % slots, (j - 1) % slots
    first, stop = planes.first[slot], planes.stop[slot]
    # Whether a sequence was dense in the bucket before predicts whether it is in this one.
    dense = _RARE * planes.counts[before] >= words
    planes.counts[slot] = 0
    planes.dense[slot] = dense
    for p in range(sequences):
        if dense[p]:
            planes.bits[p, slot, :words] = 0
    _set(store, first, stop, planes.counts[slot], planes.dense[slot], planes.bits[:, slot], planes.latest[slot], most)
    for p in range(sequences):
        if not planes.dense[slot, p] and planes.counts[slot, p] > most:
            planes.dense[slot, p] = True
            _set_plane(store, first, stop, p, planes.bits[p, slot, :words])


@njit(cache=True, nogil=True)
def fill_again(store, planes, sequence, words):  # type: ignore[no-untyped-def]
    """Fills all buckets that a present or later window contains, and the words of each series,
    after entities have got other compact ids."""
    made = planes.bounds[0]
    for j in range(max(made - len(planes.bucket), 0), made):
        if planes.first[j % len(planes.bucket)] >= store.bounds[0]:
            _fill_bucket(store, planes, j, words)
    for s in range(len(sequence)):
        gather(planes, s, sequence[s], words)


@njit(cache=True, nogil=True)
def _first_hit(store, number, stop):  # type: ignore[no-untyped-def]
    """The first of the samples `number` to `stop` that hits, or `stop`."""
    while number < stop and store.word[number & (len(store.t) - 1)] == 0:
        number += 1
    return number


@njit(cache=True, nogil=True)
def _set(store, first, stop, counts, dense, bits, latest, most):  # type: ignore[no-untyped-def]
    """Writes the hits of the samples `first` to `stop` to the planes `bits[p]` of one bucket. A
    sequence that is not `dense` gets up to `most` entities.

    Samples are written grouped by their number of hits, so that the processor
    can predict the branches.
    """
    who, hits, several = np.empty((_MANY + 1, _BLOCK), np.uint32), np.empty((_MANY + 1, _BLOCK), np.uint64), np.empty(_MANY + 1, np.int64)
    for begin in range(first, stop, _BLOCK):
        _find_new(store, first, begin, min(begin + _BLOCK, stop), latest, who, hits, several)
        for n in range(1, _MANY + 1):
            _write(who[n, : several[n]], hits[n], counts, dense, bits, most)


@njit(cache=True, nogil=True)
def _find_new(store, first, begin, stop, latest, who, hits, several):  # type: ignore[no-untyped-def]
    """Writes entities and new hits of the samples `begin` to `stop` of the bucket that starts
    with sample `first`: the `several[n]` samples with n (for the greatest n: n or more) new
    hits have the entities `who[n]` and `hits[n]`. `latest[e]`: the last sample that hits,
    counted from `first`. If the store is not linked, `back` links each sample to the entity's
    sample before it in the bucket.

    An entity mostly hits the same sequences again; only those that its sample
    before did not hit are new.
    """
    mask, linked = len(store.t) - 1, len(store.head) > 0
    entity, word, back = store.entity, store.word, store.back
    several[:] = 0
    for number in range(begin, stop):
        sample_hits = word[number & mask]
        if sample_hits == 0:
            continue
        e = np.uint32(entity[number & mask])
        before, latest[e] = np.int64(latest[e]), number - first
        # The old value may be of an earlier bucket with this slot. Mostly it is not before this
        # sample, and is then ignored.
        earlier = (first + before if before < number - first else number) & mask
        known = (before < number - first) & (entity[earlier] == entity[number & mask]) & (word[earlier] != 0)
        if not linked:
            back[number & mask] = (number - first - before) * np.int64(known)
        new = sample_hits & ~(word[earlier] * np.uint64(known))
        n = min(how_many(new), np.uint64(_MANY))
        who[n, several[n]] = e
        hits[n, several[n]] = new
        several[n] += 1


@njit(cache=True, nogil=True)
def _write(who, hits, counts, dense, bits, most):  # type: ignore[no-untyped-def]
    """Writes the `hits` of the entities `who` to planes and lists."""
    for i in range(len(who)):
        e, left = who[i], hits[i]
        word, bit = e >> np.uint32(6), np.uint64(1) << np.uint64(e & np.uint32(63))
        while left:
            p = lowest_bit(left)
            left &= left - np.uint64(1)
            if dense[p]:
                bits[p, word] |= bit
            elif counts[p] < most:
                bits[p, counts[p]] = e
            counts[p] += 1


@njit(cache=True, nogil=True)
def _set_plane(store, first, stop, p, plane):  # type: ignore[no-untyped-def]
    """Writes the bits of sequence p only."""
    mask, bit = len(store.t) - 1, np.uint64(1) << np.uint64(p)
    plane[:] = 0
    for number in range(first, stop):
        if store.word[number & mask] & bit:
            e = np.uint32(store.entity[number & mask])
            plane[e >> np.uint32(6)] |= np.uint64(1) << np.uint64(e & np.uint32(63))


@njit(cache=True, nogil=True)
def pass_buckets(planes, s, p, from_, to, width, at, work):  # type: ignore[no-untyped-def]
    """Moves the window of series s (on sequence p) to `at` over the buckets made. Returns whether a
    hit entered or left; `work` counts both."""
    slots, made = len(planes.bucket), planes.bounds[0]
    moved = False
    entered, left = planes.entered[s], planes.left[s]
    while entered < made and planes.bucket[entered % slots] * width <= at - to:
        count = planes.counts[entered % slots, p]
        work[0] += count
        moved |= count > 0
        entered += 1
    while left < entered and planes.bucket[left % slots] * width <= at - from_:
        count = planes.counts[left % slots, p]
        work[1] += count
        moved |= count > 0
        left += 1
    planes.entered[s] = entered
    planes.left[s] = left
    return moved


@njit(cache=True, nogil=True)
def first_with(planes, p, low, high):  # type: ignore[no-untyped-def]
    """The first of the buckets `low` to `high` that has a hit of sequence p, or `high`."""
    slots = len(planes.bucket)
    while low < high and planes.counts[low % slots, p] == 0:
        low += 1
    return low


@njit(cache=True, nogil=True)
def gather(planes, s, p, words):  # type: ignore[no-untyped-def]
    """Sets `words[s]` to the OR of sequence p over the window's buckets."""
    slots, bits = len(planes.bucket), planes.bits[p]
    union = planes.words[s]
    several = np.empty(_AT_ONCE, np.int64)
    n, begun = 0, False
    for j in range(planes.left[s], planes.entered[s]):
        if planes.dense[j % slots, p]:
            several[n] = j % slots
            n += 1
            if n == _AT_ONCE:
                _unite(bits, several, n, union, begun, words)
                n, begun = 0, True
    if n or not begun:
        _unite(bits, several, n, union, begun, words)
    for j in range(planes.left[s], planes.entered[s]):
        slot = j % slots
        if planes.dense[slot, p]:
            continue
        for i in range(planes.counts[slot, p]):
            e = bits[slot, i]
            union[e >> np.uint64(6)] |= np.uint64(1) << (e & np.uint64(63))


@njit(cache=True, nogil=True)
def _unite(bits, several, n, union, begun, words):  # type: ignore[no-untyped-def]
    """Sets `union` to the OR of the planes `several[:n]`, and of itself if `begun`; several
    planes in one pass over memory."""
    if n == 5 and not begun:
        a, b, c, d, e = bits[several[0]], bits[several[1]], bits[several[2]], bits[several[3]], bits[several[4]]
        for w in range(words):
            union[w] = a[w] | b[w] | c[w] | d[w] | e[w]
        return
    if not begun:
        union[:words] = 0
    for i in range(n):
        plane = bits[several[i]]
        for w in range(words):
            union[w] |= plane[w]


@njit(cache=True, nogil=True)
def expect_latest(planes, s, p, entities):  # type: ignore[no-untyped-def]
    """Prefetches the memory that `latest` reads first."""
    if planes.entered[s] == planes.left[s]:
        return
    slot = (planes.entered[s] - 1) % len(planes.bucket)
    bits, last = planes.bits[p, slot], planes.latest[slot]
    for e in entities:
        if e >= 0:
            prefetch(bits, e >> 6)
            prefetch(last, e)


@njit(cache=True, nogil=True)
def latest(store, planes, s, p, entities, samples):  # type: ignore[no-untyped-def]
    """Writes to `samples[i]` the latest sample of `entities[i]` (negative: none) in the window of
    series s that hits sequence p, or -1.

    The samples of different entities are far apart in memory, so that of one entity is prefetched
    while others are searched.
    """
    slots, mask, bit = len(planes.bucket), len(store.t) - 1, np.uint64(1) << np.uint64(p)
    bits, counts, dense, first, last = planes.bits[p], planes.counts, planes.dense, planes.first, planes.latest
    entity, word, t, seq, x, y = store.entity, store.word, store.t, store.seq, store.x, store.y
    newest, oldest = planes.entered[s] - 1, planes.left[s]
    bucket = np.empty(len(entities), np.int64)
    for i in range(len(entities)):
        e, j = entities[i], newest
        while e >= 0 and j >= oldest:
            slot = j % slots
            if counts[slot, p] > 0 and (not dense[slot, p] or (bits[slot, e >> 6] >> np.uint64(e & 63)) & np.uint64(1) != 0):
                break
            j -= 1
        bucket[i] = j
        samples[i] = first[j % slots] + last[j % slots, e] if e >= 0 and j >= oldest else -1
    for i in range(len(entities)):
        index = samples[i] & mask
        prefetch(entity, index)
        prefetch(word, index)
        prefetch(t, index)
        prefetch(seq, index)
        prefetch(x, index)
        prefetch(y, index)
    for i in range(len(entities)):
        number = samples[i]
        if number < 0:
            continue
        if number >= planes.stop[bucket[i] % slots] or entity[number & mask] != entities[i] or (word[number & mask] & bit) == 0:
            samples[i] = _latest_from(store, planes, p, entities[i], bucket[i], oldest)


@njit(cache=True, nogil=True)
def _latest_from(store, planes, p, e, newest, oldest):  # type: ignore[no-untyped-def]
    """The latest sample of entity e that hits sequence p in the buckets
    `newest` down to `oldest`, or -1."""
    slots, mask = len(planes.bucket), len(store.t) - 1
    for j in range(newest, oldest - 1, -1):
        slot = j % slots
        if planes.counts[slot, p] == 0:
            continue
        if planes.dense[slot, p] and (planes.bits[p, slot, e >> 6] >> np.uint64(e & 63)) & np.uint64(1) == 0:
            continue
        number = planes.first[slot] + planes.latest[slot, e]
        if number >= planes.stop[slot] or store.entity[number & mask] != e:
            continue
        while number >= planes.first[slot]:
            if (store.word[number & mask] >> np.uint64(p)) & np.uint64(1) != 0:
                return number
            back = store.back[number & mask]
            number = number - back if back > 0 else -1
    return -1


def check(store: SampleStore, planes: Planes) -> None:
    """Assert that planes agree with the stored samples."""
    left, tail = store.bounds
    mask = len(store.t) - 1
    made, slots = int(planes.bounds[0]), len(planes.bucket)
    assert (planes.left <= planes.entered).all() and (planes.entered <= made).all() and (planes.left >= made - slots).all()
    for j in range(int(planes.left.min(initial=made)), made):
        slot = j % slots
        if planes.first[slot] < left:
            continue  # Only empty windows still have it.
        assert planes.stop[slot] <= tail
        rows = np.arange(planes.first[slot], planes.stop[slot]) & mask
        for p, (plane, who) in enumerate(zip(planes.bits[:, slot], _entering(store.entity[rows], store.word[rows], len(planes.bits)), strict=True)):
            assert len(who) == planes.counts[slot, p]
            if planes.dense[slot, p]:
                assert (np.flatnonzero(np.unpackbits(plane.view(np.uint8), bitorder="little")) == np.unique(who)).all()
            else:
                assert sorted(plane[: len(who)].tolist()) == sorted(who)


def _entering(entity: Int32s, word: Words, sequences: int) -> list[list[int]]:
    """For each sequence the entity of each sample that hits it, unless the entity's hitting
    sample before hit it too."""
    found: list[list[int]] = [[] for _ in range(sequences)]
    last: dict[int, int] = {}
    for e, own in zip(entity.tolist(), word.tolist(), strict=True):
        if own:
            for p in range(sequences):
                if own >> p & 1 and not last.get(e, 0) >> p & 1:
                    found[p].append(e)
            last[e] = own
    return found
