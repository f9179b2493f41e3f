"""The samples of all entities that some predicate still needs, each stored once: a ring in order of
(t, arrival), linked by entity.

Samples are numbered from 0, and numbers are never reused; number n is at ring index
`n & (size - 1)`. `head[e]` is the latest sample of entity e, `back` the distance in numbers to the
entity's sample before (0: none). `word` has a bit for each sequence that the sample **hits**: a
sequence is a predicate without its window. Samples with numbers below `left` are removed, and
links to them are void. A store without heads is not **linked**: planes write its `back`, and its
entities may be compact ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.prefetch import prefetch_to_write
from engine.index.streaming_stores import write_past_caches

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

COLUMNS = ("t", "seq", "x", "y", "entity", "word")
"""The contents of a sample; links and `measured` are derived."""
_LEAST_RING = 1024
IN_A_LINE = 8
"""The number of samples whose times (or other columns of 8 bytes) are in one cache line."""


class SampleStore(NamedTuple):
    """`bounds`: [left, tail]. `measured[c, index]`: distance of the sample from target c, for
    targets whose distances no kernel computes."""

    bounds: Ints
    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    entity: Int32s
    back: Int32s
    word: Words
    measured: Floats
    head: Ints


def no_samples(measured: int, entities: int, size: int = 0) -> SampleStore:
    """An empty store with room for `size` samples and `measured` distances each.

    The arrays are filled so that their memory is allocated at once: allocated page by page when
    samples come, it doubles the time of `append`.
    """
    room = _LEAST_RING
    while room < size:
        room *= 2
    return SampleStore(
        np.zeros(2, np.int64), np.full(room, 0), np.full(room, 0), np.full(room, 0.0), np.full(room, 0.0),
        np.full(room, 0, np.int32), np.full(room, 0, np.int32), np.full(room, 0, np.uint64),
        np.full((measured, room), 0.0), np.full(entities, -1, np.int64),
    )  # fmt: skip


def with_room(store: SampleStore, count: int) -> SampleStore:
    """The same samples with room for `count` more."""
    left, tail = store.bounds
    size = len(store.t)
    if tail - left + count <= size:
        return store
    grown = no_samples(len(store.measured), 0, int(tail - left + count))
    numbers = np.arange(left, tail)
    old, new = numbers & (size - 1), numbers & (len(grown.t) - 1)
    for name in (*COLUMNS, "back"):
        getattr(grown, name)[new] = getattr(store, name)[old]
    grown.measured[:, new] = store.measured[:, old]
    return grown._replace(bounds=store.bounds, head=store.head)


def with_entities(store: SampleStore, entities: int) -> SampleStore:
    """The same samples, linked, with room for more `entities`."""
    return store._replace(head=np.concatenate([store.head, np.full(entities - len(store.head), -1, np.int64)]))


@njit(cache=True, nogil=True)
def append(store, rows, t, seq, x, y, entity, word):  # type: ignore[no-untyped-def]
    """Appends the batch's `rows`, in order, with a `word` for each; there must be room. They get
    consecutive numbers from the old tail on.

    Rows of the batch are in order of (t, seq). If all have one t, and the range of seq equals the
    number of rows, seq has no gaps and is not read.
    """
    size = len(store.t)
    mask = size - 1
    left, number, linked = store.bounds[0], store.bounds[1], len(store.head) > 0
    to_t, to_seq, to_x, to_y, to_entity, to_word = store.t, store.seq, store.x, store.y, store.entity, store.word
    back, head = store.back, store.head
    plain = len(t) > 0 and t[0] == t[-1] and seq[-1] - seq[0] == len(t) - 1
    for k in range(len(rows)):
        r = np.uint32(rows[k])
        i = number & mask
        e = entity[r]
        _put(to_t, i, t[0] if plain else t[r], linked)
        _put(to_seq, i, np.int64(seq[0] + r) if plain else seq[r], linked)
        _put(to_x, i, x[r], linked)
        _put(to_y, i, y[r], linked)
        to_entity[i] = e
        to_word[i] = word[k]
        if linked:
            last = head[e]
            back[i] = number - last if last >= left else 0
            head[e] = number
        number += 1
    store.bounds[1] = number


@njit(cache=True, nogil=True)
def _put(column, i, value, linked):  # type: ignore[no-untyped-def]
    """Writes past the caches unless the store is linked: without scores the column is read only for
    witnesses, of few samples and much later."""
    if linked:
        column[i] = value
    else:
        write_past_caches(column, i, value)


@njit(cache=True, nogil=True)
def expect(store, ahead):  # type: ignore[no-untyped-def]
    """Prefetches the cache lines of the sample `ahead` positions after the next one; for a
    store that is not linked."""
    slot = (store.bounds[1] + ahead) & (len(store.t) - 1)
    prefetch_to_write(store.entity, slot)
    prefetch_to_write(store.back, slot)
    prefetch_to_write(store.word, slot)


@njit(cache=True, nogil=True)
def first_after(store, low, high, t):  # type: ignore[no-untyped-def]
    """The first number in [low, high) whose sample is later than t, or `high`;
    fast if it is near `low`."""
    mask = len(store.t) - 1
    times = store.t
    step = 1
    while low + step <= high and times[(low + step - 1) & mask] <= t:
        low += step
        step *= 2
    high = min(high, low + step - 1)
    while low < high:
        middle = (low + high) // 2
        if times[middle & mask] <= t:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def trail_of(store, e, since, trail):  # type: ignore[no-untyped-def]
    """Writes the numbers of entity e's samples later than `since`, latest first, to `trail`.
    Returns (trail, their number); trail may be a longer array."""
    mask = len(store.t) - 1
    left = store.bounds[0]
    n = 0
    number = store.head[e]
    while number >= left and store.t[number & mask] > since:
        if n == len(trail):
            trail = np.append(trail, np.empty_like(trail))
        trail[n] = number
        n += 1
        back = store.back[number & mask]
        if back == 0:
            break
        number -= back
    return trail, n


def live(store: SampleStore) -> dict[str, npt.NDArray[np.generic]]:
    """The stored samples' COLUMNS, in order."""
    slot = np.arange(*store.bounds) & (len(store.t) - 1)
    return {name: getattr(store, name)[slot] for name in COLUMNS}
