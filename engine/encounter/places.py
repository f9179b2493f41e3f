"""Where each entity is at the multiples of `every`: decided at its next tuple, or by timer.

A place at T is the position of the entity's last tuple at or before T. An interpolated place needs
the next tuple: until that is known, or can no longer come, the entity is *waiting*, and the emitted
row has the T from which on it waits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FIRST_ROLE, SECOND_ROLE, OUTSIDE, WAITING = 1, 2, 4, 8
"""Bits of a place: the roles that its tuple satisfies; it is outside the
region; it is not decided yet."""
NOW = -(2**62)
"""Used instead of a time: each place is decided at its own T."""


class LastTuples(NamedTuple):
    """By entity code its last tuple, and `next_t`, the first multiple of `every` whose place is not
    emitted. `seq` is -1 if there is no tuple."""

    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    bits: npt.NDArray[np.int8]
    next_t: Ints
    waiting: npt.NDArray[np.bool_]


def no_tuples(room: int) -> LastTuples:
    bits, waiting = np.zeros(room, np.int8), np.zeros(room, np.bool_)
    return LastTuples(np.zeros(room, np.int64), np.full(room, -1, np.int64), np.zeros(room), np.zeros(room), bits, np.zeros(room, np.int64), waiting)


class InputTuples(NamedTuple):
    """The input tuples, in (t, seq); `bits` as in `Places`."""

    entity: npt.NDArray[np.int32]
    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    bits: npt.NDArray[np.int8]


class PlaceParameters(NamedTuple):
    """Places are at the multiples of `every`, from tuples less than `gap` old; `interpolated`: on
    the straight line to the next tuple."""

    every: int
    gap: int
    interpolated: bool
    geographic: bool


class Places(NamedTuple):
    """Places in the order in which they were decided (`decided`: the time): of `entity`, at time
    `at`, from the tuple (`t`, `seq`, `x`, `y`)."""

    decided: Ints
    at: Ints
    entity: npt.NDArray[np.int32]
    bits: npt.NDArray[np.int8]
    px: Floats
    py: Floats
    t: Ints
    seq: Ints
    x: Floats
    y: Floats


@njit(cache=True, nogil=True)
def _room(n: int) -> Any:
    return Places(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int8), np.empty(n), np.empty(n),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _wider(places: Places) -> Any:
    wider, n = _room(2 * len(places.at)), len(places.at)
    wider.decided[:n], wider.at[:n], wider.entity[:n], wider.bits[:n], wider.px[:n] = places.decided, places.at, places.entity, places.bits, places.px
    wider.py[:n], wider.t[:n], wider.seq[:n], wider.x[:n], wider.y[:n] = places.py, places.t, places.seq, places.x, places.y
    return wider


@njit(cache=True, nogil=True)
def _between(x0: float, y0: float, x1: float, y1: float, share: float, geographic: bool) -> Any:
    """The point at `share` of the straight line; it takes the short way across the antimeridian."""
    across = x1 - x0
    if geographic and abs(across) > 180.0:
        across += -360.0 if across > 0 else 360.0
    x = x0 + share * across
    if geographic and abs(x) > 180.0:
        x += -360.0 if x > 0 else 360.0
    return x, y0 + share * (y1 - y0)


@njit(cache=True, nogil=True)
def _emit(
    found: Places, n: int, last: LastTuples, e: int, parameters: PlaceParameters, until: int, straight: bool, nt: int, nx: float, ny: float
) -> Any:
    """Emits the entity's places from `next_t` to before `until`. `straight`: places after the tuple
    are on the line to the next one, at (`nx`, `ny`) and time `nt`; otherwise `nt` is the time at
    which places after the tuple are decided."""
    at = last.next_t[e]
    while at < until and at - last.t[e] < parameters.gap:
        if n == len(found.at):
            found = _wider(found)
        px, py, decided = last.x[e], last.y[e], at
        if at > last.t[e] and nt != NOW:
            decided = nt
            if straight:
                px, py = _between(px, py, nx, ny, (at - last.t[e]) / (nt - last.t[e]), parameters.geographic)
        found.decided[n], found.at[n], found.entity[n], found.bits[n], found.px[n], found.py[n] = decided, at, e, last.bits[e], px, py
        found.t[n], found.seq[n], found.x[n], found.y[n] = last.t[e], last.seq[e], last.x[e], last.y[e]
        n += 1
        at += parameters.every
    last.next_t[e] = at
    return found, n


@njit(cache=True, nogil=True)
def decided_places(tuples: InputTuples, last: LastTuples, parameters: PlaceParameters, watermark: int) -> Any:
    """The places decided by `tuples` and by the watermark: columns of Places; the first undecided
    place of an entity has the bit WAITING.

    An entity whose tuple has no role has no place.
    """
    entity, t, seq, x, y, bits = tuples
    every, gap, interpolated = parameters.every, parameters.gap, parameters.interpolated
    found, n = _room(max(64, 2 * len(last.t))), 0
    for r in range(len(t)):
        e = entity[r]
        if last.seq[e] >= 0 and t[r] > last.t[e]:
            if last.bits[e] != 0:
                known = NOW
                straight = False
                if interpolated:
                    straight = t[r] - last.t[e] <= gap
                    known = t[r] if straight else last.t[e] + gap
                found, n = _emit(found, n, last, e, parameters, t[r], straight, known, x[r], y[r])
            last.next_t[e] = -(-t[r] // every) * every
        elif last.seq[e] < 0:
            last.next_t[e] = -(-t[r] // every) * every
        last.t[e], last.seq[e], last.x[e], last.y[e], last.bits[e], last.waiting[e] = t[r], seq[r], x[r], y[r], bits[r], False
    for e in range(len(last.t)):
        if last.seq[e] < 0 or last.bits[e] == 0 or last.next_t[e] >= watermark or last.next_t[e] - last.t[e] >= gap:
            continue
        if not interpolated:
            found, n = _emit(found, n, last, e, parameters, watermark, False, NOW, 0.0, 0.0)
        elif last.t[e] + gap < watermark:
            found, n = _emit(found, n, last, e, parameters, watermark, False, last.t[e] + gap, 0.0, 0.0)
        else:
            if last.next_t[e] == last.t[e]:
                found, n = _emit(found, n, last, e, parameters, last.t[e] + 1, False, NOW, 0.0, 0.0)
            if not last.waiting[e] and last.next_t[e] < watermark and last.next_t[e] - last.t[e] < gap:
                if n == len(found.at):
                    found = _wider(found)
                found.decided[n], found.at[n], found.entity[n], found.bits[n] = last.next_t[e], last.next_t[e], e, last.bits[e] | WAITING
                found.px[n], found.py[n], found.t[n], found.seq[n], found.x[n], found.y[n] = np.nan, np.nan, last.t[e], last.seq[e], np.nan, np.nan
                last.waiting[e] = True
                n += 1
    return (
        found.decided[:n], found.at[:n], found.entity[:n], found.bits[:n], found.px[:n], found.py[:n],
        found.t[:n], found.seq[:n], found.x[:n], found.y[:n],
    )  # fmt: skip
