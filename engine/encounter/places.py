"""Where each entity is at the multiples of `every`: decided at its next tuple, or by timer.

A place at T is that of the entity's last tuple at or before T. An interpolated one waits for the next tuple: until that is known, or can no longer
come, the entity is *waiting*, and the emitted row says from which T on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FIRST_ROLE, SECOND_ROLE, OUTSIDE, WAITING = 1, 2, 4, 8
"""Bits of a place: the roles that its tuple satisfies; it lies outside of the region; it is none yet."""
NOW = -(2**62)
"""Instead of a time: each place is decided at its own T."""


class Last(NamedTuple):
    """By entity code its last tuple, and `next_t`, the first multiple of `every` whose place is not emitted. `seq` is -1 where there is none."""

    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    bits: npt.NDArray[np.int8]
    next_t: Ints
    waiting: npt.NDArray[np.bool_]


def no_tuples(room: int) -> Last:
    bits, waiting = np.zeros(room, np.int8), np.zeros(room, np.bool_)
    return Last(np.zeros(room, np.int64), np.full(room, -1, np.int64), np.zeros(room), np.zeros(room), bits, np.zeros(room, np.int64), waiting)


class Tuples(NamedTuple):
    """What comes in, by (t, seq); `bits` as in `Places`."""

    entity: npt.NDArray[np.int32]
    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    bits: npt.NDArray[np.int8]


class Asked(NamedTuple):
    """Places at the multiples of `every`, of tuples not older than `gap`; `interpolated`: on the straight move to the next tuple."""

    every: int
    gap: int
    interpolated: bool
    geographic: bool


class Places(NamedTuple):
    """Places in the order in which they were decided (`decided`: at which time): of `entity`, at `at`, of the tuple (`t`, `seq`, `x`, `y`)."""

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
def _wider(found: Places) -> Any:
    wider, n = _room(2 * len(found.at)), len(found.at)
    wider.decided[:n], wider.at[:n], wider.entity[:n], wider.bits[:n], wider.px[:n] = found.decided, found.at, found.entity, found.bits, found.px
    wider.py[:n], wider.t[:n], wider.seq[:n], wider.x[:n], wider.y[:n] = found.py, found.t, found.seq, found.x, found.y
    return wider


@njit(cache=True, nogil=True)
def _between(x0: float, y0: float, x1: float, y1: float, share: float, geographic: bool) -> Any:
    """The point of the straight move; the short way over the antimeridian."""
    across = x1 - x0
    if geographic and abs(across) > 180.0:
        across += -360.0 if across > 0 else 360.0
    x = x0 + share * across
    if geographic and abs(x) > 180.0:
        x += -360.0 if x > 0 else 360.0
    return x, y0 + share * (y1 - y0)


@njit(cache=True, nogil=True)
def _emit(found: Places, n: int, last: Last, e: int, asked: Asked, until: int, straight: bool, nt: int, nx: float, ny: float) -> Any:
    """The entity's places from `next_t` to before `until`. `straight`: T after the tuple lie on the move to the next one, known at `nt`; otherwise
    `nt` is when a place after the tuple is decided."""
    at = last.next_t[e]
    while at < until and at - last.t[e] < asked.gap:
        if n == len(found.at):
            found = _wider(found)
        px, py, decided = last.x[e], last.y[e], at
        if at > last.t[e] and nt != NOW:
            decided = nt
            if straight:
                px, py = _between(px, py, nx, ny, (at - last.t[e]) / (nt - last.t[e]), asked.geographic)
        found.decided[n], found.at[n], found.entity[n], found.bits[n], found.px[n], found.py[n] = decided, at, e, last.bits[e], px, py
        found.t[n], found.seq[n], found.x[n], found.y[n] = last.t[e], last.seq[e], last.x[e], last.y[e]
        n += 1
        at += asked.every
    last.next_t[e] = at
    return found, n


@njit(cache=True, nogil=True)
def decided_places(tuples: Tuples, last: Last, asked: Asked, watermark: int) -> Any:
    """What is decided by `tuples` and by the watermark: columns of Places, those that wait with the bit WAITING.

    An entity whose tuple fits no role has no place: nothing is emitted of it.
    """
    entity, t, seq, x, y, bits = tuples
    every, gap, interpolated = asked.every, asked.gap, asked.interpolated
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
                found, n = _emit(found, n, last, e, asked, t[r], straight, known, x[r], y[r])
            last.next_t[e] = -(-t[r] // every) * every
        elif last.seq[e] < 0:
            last.next_t[e] = -(-t[r] // every) * every
        last.t[e], last.seq[e], last.x[e], last.y[e], last.bits[e], last.waiting[e] = t[r], seq[r], x[r], y[r], bits[r], False
    for e in range(len(last.t)):
        if last.seq[e] < 0 or last.bits[e] == 0 or last.next_t[e] >= watermark or last.next_t[e] - last.t[e] >= gap:
            continue
        if not interpolated:
            found, n = _emit(found, n, last, e, asked, watermark, False, NOW, 0.0, 0.0)
        elif last.t[e] + gap < watermark:
            found, n = _emit(found, n, last, e, asked, watermark, False, last.t[e] + gap, 0.0, 0.0)
        else:
            if last.next_t[e] == last.t[e]:
                found, n = _emit(found, n, last, e, asked, last.t[e] + 1, False, NOW, 0.0, 0.0)
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
