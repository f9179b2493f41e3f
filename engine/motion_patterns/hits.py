"""Hits: which stored samples satisfy which tracks. A **track** is a predicate without its window, a **hit** a pair of a stored sample and a track
that it satisfies. Hits follow each other as their samples do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns.sample_store import Store

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

_LEAST_RING = 1024


class Hits(NamedTuple):
    """A ring of the hits of all stored samples, numbered from 0 for ever: `track`, and the sample's `entity`. `bounds`: [tail]. `grouped`: the
    entities of a bucket's hits by track, in the places of its hits; only of tracks that have no plane there."""

    bounds: Ints
    track: Int32s
    entity: Int32s
    grouped: Int32s


def no_hits(size: int) -> Hits:
    """An empty ring with room for `size` hits."""
    room = _LEAST_RING
    while room < size:
        room *= 2
    return Hits(np.zeros(1, np.int64), np.full(room, 0, np.int32), np.full(room, 0, np.int32), np.full(room, 0, np.int32))


def with_room(hits: Hits, store: Store, count: int) -> Hits:
    """The same hits, which are those of `store`, with room for `count` more."""
    left, tail = _first_of(store, hits), int(hits.bounds[0])
    size = len(hits.track)
    if tail - left + count <= size:
        return hits
    grown = no_hits(tail - left + count)
    numbers = np.arange(left, tail)
    old, new = numbers & (size - 1), numbers & (len(grown.track) - 1)
    for name in ("track", "entity", "grouped"):
        getattr(grown, name)[new] = getattr(hits, name)[old]
    return grown._replace(bounds=hits.bounds)


def _first_of(store: Store, hits: Hits) -> int:
    """The first hit of the samples that are kept."""
    left, tail = store.bounds
    return int(store.hit[left & (len(store.t) - 1)] if left < tail else hits.bounds[0])


@njit(cache=True, nogil=True)
def add_hits(store, hits, first, at, region, tracks_first, tracks, misses, everywhere):  # type: ignore[no-untyped-def]
    """Hits of the stored samples from `first` on; there must be room.

    The sample `first + at[i]`, ascending, lies in `region[i]`, which hits `tracks[tracks_first[r]:tracks_first[r + 1]]`. Rows of `misses`: (region,
    track) that every sample hits that the region does not hold; `everywhere`: tracks that every sample hits.
    """
    if len(misses) == 0 and len(everywhere) == 0 and len(tracks) == len(tracks_first) - 1:
        _add_found(store, hits, first, at, region, tracks)
    else:
        _add_all(store, hits, first, at, region, tracks_first, tracks, misses, everywhere)


@njit(cache=True, nogil=True)
def _add_found(store, hits, first, at, region, tracks):  # type: ignore[no-untyped-def]
    """As `add_hits` where region r hits the one track `tracks[r]`; without a branch for each sample."""
    places, mask, number = len(store.t) - 1, len(hits.track) - 1, hits.bounds[0]
    to_track, to_entity, entity, hit = hits.track, hits.entity, store.entity, store.hit
    following = 0
    for i in range(len(at)):
        to_track[(number + i) & mask] = tracks[np.uint32(region[i])]
        to_entity[(number + i) & mask] = entity[(first + at[i]) & places]
        # Samples up to this one that have no first hit yet.
        while following <= at[i]:
            hit[(first + following) & places] = number + i
            following += 1
    hits.bounds[0] = number + len(at)
    for k in range(following, store.bounds[1] - first):
        hit[(first + k) & places] = hits.bounds[0]


@njit(cache=True, nogil=True)
def _add_all(store, hits, first, at, region, tracks_first, tracks, misses, everywhere):  # type: ignore[no-untyped-def]
    """As `add_hits`."""
    places, mask, number = len(store.t) - 1, len(hits.track) - 1, hits.bounds[0]
    to_track, to_entity, entity, hit = hits.track, hits.entity, store.entity, store.hit
    holds = np.full(len(tracks_first), -1, np.int64)
    i, pairs = 0, len(at)
    for k in range(store.bounds[1] - first):
        place = (first + k) & places
        e = entity[place]
        hit[place] = number
        while i < pairs and at[i] == k:
            r = region[i]
            i += 1
            holds[r] = k
            for j in range(tracks_first[r], tracks_first[r + 1]):
                to_track[number & mask] = tracks[j]
                to_entity[number & mask] = e
                number += 1
        for j in range(len(misses)):
            if holds[misses[j, 0]] != k:
                to_track[number & mask] = misses[j, 1]
                to_entity[number & mask] = e
                number += 1
        for p in everywhere:
            to_track[number & mask] = p
            to_entity[number & mask] = e
            number += 1
    hits.bounds[0] = number


@njit(cache=True, nogil=True)
def hit_of(store, hits, number):  # type: ignore[no-untyped-def]
    """The first hit of a sample or a later one."""
    return store.hit[number & (len(store.t) - 1)] if number < store.bounds[1] else hits.bounds[0]


@njit(cache=True, nogil=True)
def does_hit(store, hits, number, p):  # type: ignore[no-untyped-def]
    h, high, mask = hit_of(store, hits, number), hit_of(store, hits, number + 1), len(hits.track) - 1
    while h < high and hits.track[h & mask] != p:
        h += 1
    return h < high


def restore_hits(store: Store, hits: Hits, counts: Ints, tracks: Int32s) -> None:
    """Into an empty ring the hits of all stored samples, which are numbered from 0: each has `counts` of the `tracks`."""
    store.hit[: len(counts)] = np.cumsum(counts) - counts
    hits.track[: len(tracks)] = tracks
    hits.entity[: len(tracks)] = np.repeat(store.entity[: len(counts)], counts)
    hits.bounds[0] = len(tracks)


def live(store: Store, hits: Hits) -> tuple[Ints, Int32s]:
    """(how many hits each stored sample has, their tracks in order)."""
    numbers = np.arange(*store.bounds)
    starts = np.append(store.hit[numbers & (len(store.t) - 1)], hits.bounds[0])
    return np.diff(starts), hits.track[np.arange(starts[0], starts[-1]) & (len(hits.track) - 1)]
