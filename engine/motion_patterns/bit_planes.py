"""Bit planes: one bit an entity, for each predicate and bucket of time ([CMP] 5.2 with a bitmap for its table of objects).

A **bucket** ((b - 1) g, b g] of time that has hits (`hits`) is entered into the planes at the first evaluation after its end: for each track a plane
with a bit for each entity that has a hit there. All windows and evaluation times of a group are whole numbers of buckets and half-open on the
same side, so that "some sample in the window satisfies" is the OR of whole planes: a **series**' words.
A bucket with few hits of a track for its number of entities has no plane there, the entities themselves are its run-length form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.prefetch import prefetch
from engine.motion_patterns.hits import Hits, does_hit, hit_of, live
from engine.motion_patterns.sample_store import Store, first_after

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

_RARE = 4
"""A bucket with less than a hit for so many words has no plane: setting a bit costs about as much as reading this many words in a row."""
_AT_ONCE = 5


class Planes(NamedTuple):
    """Buckets with hits are numbered from 0 for ever in order of time; number j has the slot `j % slots`. `bounds`: [buckets made, the first sample
    that is in none]. `bucket`, `first`, `stop`: its number by time, its first sample and the one past the last.

    `counts[slot, p]`: hits of track p; with `dense[slot, p]` they are the bits `bits[p, slot]`, else the entities `grouped` from hit `group[slot, p]`
    on. `latest[slot, e]`: how far the last sample of e that hits is from `first`, if e has one there. `words[s]`: OR over the window of series s, the
    buckets `left[s]` to `entered[s]`.
    """

    bounds: Ints
    bucket: Ints
    first: Ints
    stop: Ints
    counts: Ints
    dense: npt.NDArray[np.bool_]
    group: Ints
    bits: Words
    latest: Int32s
    words: Words
    entered: Ints
    left: Ints


def no_planes(tracks: int, slots: int, series: int, words: int) -> Planes:
    """Empty planes. Memory of planes that are never written is never taken."""
    return Planes(
        np.zeros(2, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64),
        np.zeros((slots, tracks), np.int64), np.zeros((slots, tracks), np.bool_), np.zeros((slots, tracks), np.int64),
        np.zeros((tracks, slots, words), np.uint64), np.zeros((slots, words * 64), np.int32), np.zeros((series, words), np.uint64),
        np.zeros(series, np.int64), np.zeros(series, np.int64),
    )  # fmt: skip


def with_words(planes: Planes, words: int) -> Planes:
    """The same planes, `words` wide."""
    tracks, slots, had = planes.bits.shape
    wide = no_planes(tracks, slots, len(planes.words), words)
    dense = planes.dense.T
    wide.bits[dense, :had] = planes.bits[dense]
    used = planes.counts.any(axis=1)
    wide.latest[used, : had * 64] = planes.latest[used]
    wide.words[:, :had] = planes.words
    return planes._replace(bits=wide.bits, latest=wide.latest, words=wide.words)


@njit(cache=True, nogil=True)
def fill(store, hits, planes, width, at, words):  # type: ignore[no-untyped-def]
    """Buckets for the samples up to time `at`, a bucket's edge, as far as some window may see them."""
    slots, places = len(planes.bucket), len(store.t) - 1
    number, tail = planes.bounds[1], store.bounds[1]
    while number < tail and store.t[number & places] <= at:
        bucket = -((-store.t[number & places]) // width)
        stop = first_after(store, number, tail, bucket * width)
        low, high = hit_of(store, hits, number), hit_of(store, hits, stop)
        if low < high and bucket > at // width - slots:
            slot = planes.bounds[0] % slots
            planes.bounds[0] += 1
            planes.bucket[slot] = bucket
            planes.first[slot] = number
            planes.stop[slot] = stop
            _count(hits, low, high, planes.counts[slot], planes.group[slot])
            _divide(planes.counts[slot], planes.dense[slot], words)
            for p in range(len(planes.bits)):
                if planes.dense[slot, p]:
                    planes.bits[p, slot, :words] = 0
            _set(hits, low, high, planes.dense[slot], planes.bits, slot, planes.group[slot])
            _latest(store, hits, number, stop, planes.latest[slot])
        number = stop
    planes.bounds[1] = number


@njit(cache=True, nogil=True)
def _count(hits, low, high, count, group):  # type: ignore[no-untyped-def]
    """Hits of each track among those from `low` to `high`, and where its group begins."""
    track, mask = hits.track, len(hits.track) - 1
    count[:] = 0
    for h in range(low, high):
        count[np.uint32(track[h & mask])] += 1
    for p in range(len(count)):
        group[p] = low
        low += count[p]


@njit(cache=True, nogil=True)
def _divide(count, dense, words):  # type: ignore[no-untyped-def]
    for p in range(len(count)):
        dense[p] = count[p] > 0 and _RARE * count[p] >= words


@njit(cache=True, nogil=True)
def _set(hits, low, high, dense, bits, slot, group):  # type: ignore[no-untyped-def]
    """Bits of the hits from `low` to `high`, or their entities in groups."""
    track, entity, grouped, mask = hits.track, hits.entity, hits.grouped, len(hits.track) - 1
    following = group.copy()
    for h in range(low, high):
        p, e = np.uint32(track[h & mask]), np.uint32(entity[h & mask])
        if dense[p]:
            bits[p, slot, e >> np.uint32(6)] |= np.uint64(1) << np.uint64(e & np.uint32(63))
        else:
            grouped[following[p] & mask] = e
            following[p] += 1


@njit(cache=True, nogil=True)
def _latest(store, hits, first, stop, latest):  # type: ignore[no-untyped-def]
    """For each entity the last of the samples `first` to `stop` that hits, counted from `first`."""
    entity, hit, mask = store.entity, store.hit, len(store.t) - 1
    for number in range(first, stop - 1):
        if hit[number & mask] < hit[(number + 1) & mask]:
            latest[entity[number & mask]] = number - first
    if hit[(stop - 1) & mask] < hit_of(store, hits, stop):
        latest[entity[(stop - 1) & mask]] = stop - 1 - first


@njit(cache=True, nogil=True)
def pass_buckets(planes, s, p, from_, to, width, at, work):  # type: ignore[no-untyped-def]
    """The window of series s on track p moves to `at` over the buckets that are made: whether a hit entered or left; `work` counts both."""
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
    """The first of the buckets `low` to `high` with a hit of track p, or `high`."""
    slots = len(planes.bucket)
    while low < high and planes.counts[low % slots, p] == 0:
        low += 1
    return low


@njit(cache=True, nogil=True)
def gather(hits, planes, s, p, words):  # type: ignore[no-untyped-def]
    """`words[s]` becomes the OR of track p over the window's buckets."""
    slots, mask, bits, grouped = len(planes.bucket), len(hits.track) - 1, planes.bits[p], hits.grouped
    found = planes.words[s]
    several = np.empty(_AT_ONCE, np.int64)
    n, begun = 0, False
    for j in range(planes.left[s], planes.entered[s]):
        if planes.dense[j % slots, p]:
            several[n] = j % slots
            n += 1
            if n == _AT_ONCE:
                _unite(bits, several, n, found, begun, words)
                n, begun = 0, True
    if n or not begun:
        _unite(bits, several, n, found, begun, words)
    for j in range(planes.left[s], planes.entered[s]):
        slot = j % slots
        if planes.dense[slot, p]:
            continue
        for h in range(planes.group[slot, p], planes.group[slot, p] + planes.counts[slot, p]):
            e = np.int64(grouped[h & mask])
            found[e >> 6] |= np.uint64(1) << np.uint64(e & 63)


@njit(cache=True, nogil=True)
def _unite(bits, several, n, found, begun, words):  # type: ignore[no-untyped-def]
    """`found` becomes the OR of the planes `several[:n]`, and of itself if `begun`; several planes in one pass over memory."""
    if n == 5 and not begun:
        a, b, c, d, e = bits[several[0]], bits[several[1]], bits[several[2]], bits[several[3]], bits[several[4]]
        for w in range(words):
            found[w] = a[w] | b[w] | c[w] | d[w] | e[w]
        return
    if not begun:
        found[:words] = 0
    for i in range(n):
        plane = bits[several[i]]
        for w in range(words):
            found[w] |= plane[w]


@njit(cache=True, nogil=True)
def latest(store, hits, planes, s, p, entities, samples):  # type: ignore[no-untyped-def]
    """`samples[i]`: the latest sample of `entities[i]` (negative: nobody) in the window of series s that hits track p, or -1.

    Many are asked for at a time, each somewhere else in memory: what one needs is fetched while others are looked for.
    """
    slots, places, mask = len(planes.bucket), len(store.t) - 1, len(hits.track) - 1
    bits, counts, dense, first, last = planes.bits[p], planes.counts, planes.dense, planes.first, planes.latest
    entity, hit, t, seq, x, y, track = store.entity, store.hit, store.t, store.seq, store.x, store.y, hits.track
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
        place = samples[i] & places
        prefetch(entity, place)
        prefetch(hit, place)
        prefetch(t, place)
        prefetch(seq, place)
        prefetch(x, place)
        prefetch(y, place)
    for i in range(len(entities)):
        number = samples[i]
        if number < 0:
            continue
        found = number < planes.stop[bucket[i] % slots] and entity[number & places] == entities[i]
        if found:
            high = hit[(number + 1) & places] if number + 1 < store.bounds[1] else hits.bounds[0]
            h = hit[number & places]
            while h < high and track[h & mask] != p:
                h += 1
            found = h < high
        if not found:
            samples[i] = _latest_from(store, hits, planes, p, entities[i], bucket[i], oldest)


@njit(cache=True, nogil=True)
def _latest_from(store, hits, planes, p, e, newest, oldest):  # type: ignore[no-untyped-def]
    """The latest sample of entity e that hits track p in the buckets `newest` down to `oldest`, or -1."""
    slots, places = len(planes.bucket), len(store.t) - 1
    for j in range(newest, oldest - 1, -1):
        slot = j % slots
        if planes.counts[slot, p] == 0:
            continue
        if planes.dense[slot, p] and (planes.bits[p, slot, e >> 6] >> np.uint64(e & 63)) & np.uint64(1) == 0:
            continue
        number = planes.first[slot] + planes.latest[slot, e]
        if number >= planes.stop[slot] or store.entity[number & places] != e:
            continue
        while number >= planes.first[slot]:
            if does_hit(store, hits, number, p):
                return number
            back = store.back[number & places]
            number = number - back if back > 0 else -1
    return -1


def check(store: Store, hits: Hits, planes: Planes) -> None:
    """Assert that hits are those of stored samples and planes what they say."""
    counts, tracks = live(store, hits)
    left, tail = store.bounds
    numbers = np.arange(left, tail)
    owner = np.repeat(numbers, counts)
    kept = np.arange(int(hits.bounds[0]) - len(tracks), int(hits.bounds[0])) & (len(hits.track) - 1)
    assert (counts >= 0).all() and (hits.entity[kept] == store.entity[owner & (len(store.t) - 1)]).all()
    made, slots = int(planes.bounds[0]), len(planes.bucket)
    assert (planes.left <= planes.entered).all() and (planes.entered <= made).all() and (planes.left >= made - slots).all()
    for j in range(int(planes.left.min(initial=made)), made):
        slot = j % slots
        if planes.first[slot] < left:
            continue  # Only empty windows still stand there.
        own = (owner >= planes.first[slot]) & (owner < planes.stop[slot])
        assert (np.bincount(tracks[own], minlength=len(planes.bits)) == planes.counts[slot]).all()
        for p in np.flatnonzero(planes.dense[slot]):
            bits = np.unpackbits(planes.bits[p, slot].view(np.uint8), bitorder="little")
            who = store.entity[owner[own & (tracks == p)] & (len(store.t) - 1)]
            assert (np.flatnonzero(bits) == np.unique(who)).all()
