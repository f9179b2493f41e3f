"""Columns of distances, time-major: for each (distance predicate, bucket, entity) the extremum of
the bucket, for each window that of its buckets.

The columns hold squares as float32. They only show which entities may have one of the best scores
(the lower bounds of [CMP] 5.3, table LBT); the exact score of these few is computed from their
stored samples (the raw trajectories of table AST). Scores from columns are right within the slack.

A window slides by two stacks in place: a bucket up to `split` holds the extremum from there to
`split`, a later one its own; `back` is the extremum of the later ones. So each bucket is accessed
three times, for any length of the window. "Greatest" columns hold negative squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns.sample_store import first_after

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

NOTHING = np.float32(np.inf)
"""No sample."""
_GREATEST = np.float32(1e36)
FAR = 1e17
"""Distances from here on (less than the root of _GREATEST) are only known
to be at least this great."""
RELATIVE_SLACK = 1e-6
ABSOLUTE_SLACK = 1e-18
"""The absolute error of a sum of column values is far less: the rounding of float32 squares, and
squares that are 0 in float32."""
_NONE = np.iinfo(np.int64).min


class DistanceMeasures(NamedTuple):
    """The distance predicates with their windows: `start`, `end` in time; `sign` 1 least, -1
    greatest; place and radius (0: a point), or `column` of the store's `measured` (else -1)."""

    start: Ints
    end: Ints
    sign: Ints
    x: Floats
    y: Floats
    radius: Floats
    column: Ints


class Columns(NamedTuple):
    """`rows[m, bucket % slots]` by entity; `extremum[m]`: of the window; `newest[m]`: last bucket
    taken; `entered`, `left`: cursors in the store."""

    rows: Singles
    back: Singles
    extremum: Singles
    newest: Ints
    split: Ints
    entered: Ints
    left: Ints


def no_columns(measures: int, slots: int, entities: int) -> Columns:
    return Columns(
        np.empty((measures, slots, entities), np.float32), np.full((measures, entities), NOTHING), np.full((measures, entities), NOTHING),
        np.full(measures, _NONE), np.full(measures, _NONE), np.zeros(measures, np.int64), np.zeros(measures, np.int64),
    )  # fmt: skip


def with_entities(columns: Columns, entities: int) -> Columns:
    """The same columns with room for `entities`."""
    had = columns.back.shape[1]
    wide = no_columns(columns.rows.shape[0], columns.rows.shape[1], entities)
    for name in ("rows", "back", "extremum"):
        getattr(wide, name)[..., :had] = getattr(columns, name)
        getattr(wide, name)[..., had:] = NOTHING
    return columns._replace(rows=wide.rows, back=wide.back, extremum=wide.extremum)


@njit(cache=True, nogil=True)
def _take_bucket(store, measures, m, low, high, row):  # type: ignore[no-untyped-def]
    """Writes the extrema of the samples `low` to `high` to the column `row`."""
    size = len(store.t)
    while low < high:
        # The ring in pieces that do not wrap around.
        first = low & (size - 1)
        last = min(first + high - low, size)
        entity = store.entity[first:last]
        if measures.column[m] >= 0:
            _take_measured(store.measured[measures.column[m], first:last], entity, np.float32(measures.sign[m]), row)
        else:
            _take_places(store.x[first:last], store.y[first:last], entity, measures.x[m], measures.y[m], np.float32(measures.sign[m]), row)
        low += last - first


@njit(cache=True, nogil=True)
def _take_measured(distance, entity, sign, row):  # type: ignore[no-untyped-def]
    for i in range(len(distance)):
        key = sign * min(np.float32(distance[i] * distance[i]), _GREATEST)
        e = np.uint32(entity[i])
        if key < row[e]:
            row[e] = key


@njit(cache=True, nogil=True)
def _take_places(x, y, entity, px, py, sign, row):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        dx = x[i] - px
        dy = y[i] - py
        key = sign * min(np.float32(dx * dx + dy * dy), _GREATEST)
        e = np.uint32(entity[i])
        row[e] = min(row[e], key)


@njit(cache=True, nogil=True)
def _lower(row, other, entities):  # type: ignore[no-untyped-def]
    for e in range(entities):
        row[e] = min(row[e], other[e])


@njit(cache=True, nogil=True)
def slide(store, measures, columns, m, width, at, entities):  # type: ignore[no-untyped-def]
    """Moves window m to evaluation time `at`; the samples that enter begin at
    `columns.entered[m]`, which moves too."""
    slots = (measures.start[m] - measures.end[m]) // width
    rows, back = columns.rows[m], columns.back[m]
    low, high = (at - measures.start[m]) // width + 1, (at - measures.end[m]) // width
    if columns.newest[m] < low - 1:
        columns.newest[m] = low - 1
        columns.split[m] = low - 1
        back[:entities] = NOTHING
    number = columns.entered[m]
    for bucket in range(columns.newest[m] + 1, high + 1):
        stop = first_after(store, number, store.bounds[1], bucket * width)
        number = first_after(store, number, stop, (bucket - 1) * width)
        row = rows[bucket % slots]
        row[:entities] = NOTHING
        _take_bucket(store, measures, m, number, stop, row)
        _lower(back, row, entities)
        number = stop
    columns.entered[m] = number
    columns.newest[m] = high
    oldest = rows[low % slots]
    if columns.split[m] < low:
        for bucket in range(high - 1, low - 1, -1):
            _lower(rows[bucket % slots], rows[(bucket + 1) % slots], entities)
        columns.split[m] = high
        back[:entities] = NOTHING
    extremum = columns.extremum[m]
    for e in range(entities):
        extremum[e] = min(oldest[e], back[e])


@njit(cache=True, nogil=True)
def add_distances(measures, columns, m, entities, total):  # type: ignore[no-untyped-def]
    """Adds the distance in the window's column to `total[e]`; infinite without a sample."""
    extremum, radius = columns.extremum[m], np.float32(measures.radius[m])
    for e in range(entities):
        total[e] += max(np.sqrt(abs(extremum[e])) - radius, np.float32(0.0))
