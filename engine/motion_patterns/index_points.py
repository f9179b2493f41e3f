"""Index points of all series: each is kept from its arrival until it leaves its window, as
evaluation time advances.

    append            enter: t + end <= T          leave: t + start <= T
      |---- waiting -----|------- in the window --------|  (memory is free again)

The points of a series are in a ring in order of (t, arrival), so entering and leaving are cursors:
the positive and negative updates of [CMP] 4. Points are numbered from 0 in each series, and numbers
are never reused; a number is at ring index `number & mask`. Within a series the points of one
entity that are in the window are linked: `head[p, e]` is the latest (its low 31 bits; -1: none),
`back` the distance in numbers to the one before (0: none).

In a distance series only points that can still become the extremum stay linked, so values get worse
from the front on. `front[m, e]` is the extremum, `ahead` links it to the next point, and
`extremum[m, e]` repeats its value (NaN: none).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

LOW_BITS = 0x7FFFFFFF
_SMALLEST_RING = 8
_ALWAYS = np.iinfo(np.int64).max


class IndexPoints(NamedTuple):
    """Rings of all series in one pool. Series p has the ring `first[p]` to
    `first[p] + mask[p]`; numbers below `left[p]` have left, those below `entered[p]` are in the
    window, those below `tail[p]` waiting."""

    first: Ints
    mask: Ints
    tail: Ints
    entered: Ints
    left: Ints
    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    value: Floats
    entity: Int32s
    back: Int32s
    ahead: Int32s
    head: Int32s
    front: Int32s
    extremum: Floats


COLUMNS = ("t", "seq", "x", "y", "value", "entity")
"""The contents of a point; the other columns are links."""


def no_points(series: int, measures: int) -> IndexPoints:
    """Empty rings."""
    return _with_rings(np.zeros(series, np.int64), measures, 0)


def _with_rings(sizes: Ints, measures: int, entities: int) -> IndexPoints:
    """Empty rings with room for `sizes` points each."""
    rooms = np.maximum(_SMALLEST_RING, 2 ** np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64))
    total, series = int(rooms.sum()), len(sizes)
    return IndexPoints(
        first=np.cumsum(rooms) - rooms,
        mask=rooms - 1,
        tail=np.zeros(series, np.int64),
        entered=np.zeros(series, np.int64),
        left=np.zeros(series, np.int64),
        t=np.empty(total, np.int64),
        seq=np.empty(total, np.int64),
        x=np.empty(total),
        y=np.empty(total),
        value=np.empty(total),
        entity=np.empty(total, np.int32),
        back=np.zeros(total, np.int32),
        ahead=np.zeros(total, np.int32),
        head=np.full((series, entities), -1, np.int32),
        front=np.full((measures, entities), -1, np.int32),
        extremum=np.full((measures, entities), np.nan),
    )


def with_entities(points: IndexPoints, entities: int) -> IndexPoints:
    """The same points with space for entity codes below `entities`; grows by doubling."""
    room = points.head.shape[1]
    if entities <= room:
        return points
    extra = max(entities - room, room, 64)
    return points._replace(
        head=np.hstack([points.head, np.full((len(points.head), extra), -1, np.int32)]),
        front=np.hstack([points.front, np.full((len(points.front), extra), -1, np.int32)]),
        extremum=np.hstack([points.extremum, np.full((len(points.extremum), extra), np.nan)]),
    )


def with_room(points: IndexPoints, counts: Ints) -> IndexPoints:
    """The same points with room for `counts` more in each series. Rings that are more than half
    full grow too, so that points are rarely moved."""
    kept = points.tail - points.left
    rooms = points.mask + 1
    if (kept + counts <= rooms).all():
        return points
    needed = np.where(kept + counts > rooms // 2, np.maximum(2 * (kept + counts), rooms), rooms)
    grown = _with_rings(np.maximum(needed, 1), 0, 0)
    moved = grown._replace(tail=points.tail, entered=points.entered, left=points.left, head=points.head, front=points.front, extremum=points.extremum)
    _move(points, moved)
    return moved


@njit(cache=True, nogil=True)
def _move(points, to):  # type: ignore[no-untyped-def]
    for p in range(len(points.first)):
        for number in range(points.left[p], points.tail[p]):
            i = points.first[p] + (number & points.mask[p])
            j = to.first[p] + (number & to.mask[p])
            to.t[j] = points.t[i]
            to.seq[j] = points.seq[i]
            to.x[j] = points.x[i]
            to.y[j] = points.y[i]
            to.value[j] = points.value[i]
            to.entity[j] = points.entity[i]
            to.back[j] = points.back[i]
            to.ahead[j] = points.ahead[i]


@njit(cache=True, nogil=True)
def append(points, series, row, value, t, seq, x, y, entity):  # type: ignore[no-untyped-def]
    """Appends points: `row[i]` of the batch's columns to `series[i]`; the rows of a series are in
    order. There must be room."""
    for i in range(len(series)):
        p = series[i]
        r = row[i]
        j = points.first[p] + (points.tail[p] & points.mask[p])
        points.t[j] = t[r]
        points.seq[j] = seq[r]
        points.x[j] = x[r]
        points.y[j] = y[r]
        points.value[j] = value[i]
        points.entity[j] = entity[r]
        points.tail[p] += 1


@njit(cache=True, nogil=True)
def slot(points, p, number):  # type: ignore[no-untyped-def]
    """The index of a point in the pool."""
    return points.first[p] + (number & points.mask[p])


@njit(cache=True, nogil=True)
def whole(points, p, low):  # type: ignore[no-untyped-def]
    """The number of a live point from its low bits; -1 for -1."""
    if low < 0:
        return np.int64(-1)
    return points.left[p] + ((np.int64(low) - points.left[p]) & LOW_BITS)


@njit(cache=True, nogil=True)
def before(points, p, number):  # type: ignore[no-untyped-def]
    """The linked point before `number`, or -1."""
    distance = points.back[slot(points, p, number)]
    if distance == 0 or number - distance < points.left[p]:
        return np.int64(-1)
    return number - distance


@njit(cache=True, nogil=True)
def enter(points, p, at, limit, end, measure, sign, eager, series, entities, n):  # type: ignore[no-untyped-def]
    """Lets waiting points of series p with t + end <= at enter the window, up to number `limit`.

    If the result of the series for an entity changed (`eager`: for every point) its pair is written
    to `series[n]`, `entities[n]`, ... Returns the new n. Stops early if these arrays are full. One
    call moves many points, because each call counts references of all arrays.
    """
    first, mask, t, entity, value = points.first[p], points.mask[p], points.t, points.entity, points.value
    back, ahead, head, front, extremum = points.back, points.ahead, points.head, points.front, points.extremum
    left, number, limit = points.left[p], points.entered[p], min(limit, points.tail[p])
    while number < limit and n < len(series):
        i = first + (number & mask)
        if t[i] + end > at:
            break
        e = entity[i]
        low = head[p, e]
        last = np.int64(-1) if low < 0 else left + ((np.int64(low) - left) & LOW_BITS)
        changed = last < 0
        if measure >= 0:
            # Of equal values the later one is kept: it leaves later.
            while last >= 0 and sign * value[i] <= sign * value[first + (last & mask)]:
                distance = back[first + (last & mask)]
                last = last - distance if distance > 0 and last - distance >= left else np.int64(-1)
            changed = last < 0
            if changed:
                front[measure, e] = np.int32(number & LOW_BITS)
                extremum[measure, e] = value[i]
            else:
                ahead[first + (last & mask)] = number - last
        back[i] = 0 if last < 0 else number - last
        head[p, e] = np.int32(number & LOW_BITS)
        if changed or eager:
            series[n] = p
            entities[n] = e
            n += 1
        number += 1
    points.entered[p] = number
    return n


@njit(cache=True, nogil=True)
def leave(points, p, at, start, measure, eager, series, entities, n):  # type: ignore[no-untyped-def]
    """Lets points of series p in the window with t + start <= at leave it; otherwise like
    `enter`."""
    first, mask, t, entity, value = points.first[p], points.mask[p], points.t, points.entity, points.value
    ahead, head, front, extremum = points.ahead, points.head, points.front, points.extremum
    number, limit = points.left[p], points.entered[p]
    while number < limit and n < len(series):
        i = first + (number & mask)
        if t[i] + start > at:
            break
        e = entity[i]
        low = np.int32(number & LOW_BITS)
        changed = head[p, e] == low
        if changed:
            head[p, e] = -1
        if measure >= 0:
            if changed:
                front[measure, e] = -1
                extremum[measure, e] = np.nan
            elif front[measure, e] == low:
                changed = True
                following = number + ahead[i]
                front[measure, e] = np.int32(following & LOW_BITS)
                extremum[measure, e] = value[first + (following & mask)]
        if changed or eager:
            series[n] = p
            entities[n] = e
            n += 1
        number += 1
    points.left[p] = number
    return n


def live(points: IndexPoints) -> tuple[Ints, dict[str, npt.NDArray[np.generic]]]:
    """All points by series, then in order: (number of points of each series, their COLUMNS)."""
    counts = points.tail - points.left
    series = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts - points.left, counts)
    where = points.first[series] + (number & points.mask[series])
    return counts, {name: getattr(points, name)[where] for name in COLUMNS}


def rebuilt(counts: Ints, entered: Ints, columns: dict[str, npt.NDArray[np.generic]], measure: Ints, sign: Ints, entities: int) -> IndexPoints:
    """Rings of the points that `live` returned, numbered again; the first `entered` of each
    series are in their windows."""
    points = _with_rings(2 * counts, int(measure.max(initial=-1)) + 1, entities)
    t, seq, x, y, value, entity = (columns[name] for name in COLUMNS)
    _fill(points, counts, entered, t, seq, x, y, value, entity, measure, sign)
    return points


@njit(cache=True, nogil=True)
def _fill(points, counts, entered, t, seq, x, y, value, entity, measure, sign):  # type: ignore[no-untyped-def]
    r = 0
    for p in range(len(counts)):
        for number in range(counts[p]):
            j = points.first[p] + number
            points.t[j] = t[r]
            points.seq[j] = seq[r]
            points.x[j] = x[r]
            points.y[j] = y[r]
            points.value[j] = value[r]
            points.entity[j] = entity[r]
            r += 1
        points.tail[p] = counts[p]
        unused = np.empty(entered[p] + 1, np.int64)
        enter(points, p, _ALWAYS, entered[p], 0, measure[p], sign[p], False, unused, unused, 0)
