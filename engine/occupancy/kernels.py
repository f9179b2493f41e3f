"""Which entities count from when to when, and when a count satisfies the comparison:
the hot loops of occupancy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FOR_EVER = 2**62
NOT_YET = -(2**62)


class LastTuples(NamedTuple):
    """By entity code its last tuple; `inside`: it is counted now. `seq` is -1 without a tuple."""

    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    inside: npt.NDArray[np.bool_]


@njit(cache=True, nogil=True)
def counted(entity: Any, t: Ints, seq: Ints, x: Floats, y: Floats, inside: Any, last: LastTuples, stale: int, watermark: int) -> Any:
    """Changes of the count as (entity, t, +1 or -1, and t, seq, x, y of the tuple that made it),
    after tuples in (t, seq) and the passing of time.

    A tuple that is inside counts at the instants [t, t + stale) that come
    before the entity's next tuple.
    """
    room = 2 * len(t) + len(last.t)
    who, at, change = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int8)
    own, made, px, py = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room), np.empty(room)
    n = 0
    for r in range(len(t)):
        e = entity[r]
        if last.inside[e] and t[r] - last.t[e] > stale:
            who[n], at[n], change[n] = e, last.t[e] + stale, -1
            own[n], made[n], px[n], py[n] = last.t[e], last.seq[e], last.x[e], last.y[e]
            last.inside[e] = False
            n += 1
        if last.inside[e] != inside[r]:
            who[n], at[n], change[n] = e, t[r], 1 if inside[r] else -1
            own[n], made[n], px[n], py[n] = t[r], seq[r], x[r], y[r]
            n += 1
        last.t[e], last.seq[e], last.x[e], last.y[e], last.inside[e] = t[r], seq[r], x[r], y[r], inside[r]
    if stale < FOR_EVER:
        for e in range(len(last.t)):
            if last.inside[e] and last.t[e] + stale < watermark:
                who[n], at[n], change[n] = e, last.t[e] + stale, -1
                own[n], made[n], px[n], py[n] = last.t[e], last.seq[e], last.x[e], last.y[e]
                last.inside[e] = False
                n += 1
    return who[:n], at[:n], change[:n], own[:n], made[:n], px[:n], py[:n]


@njit(cache=True, nogil=True)
def compared(t: Ints, change: Any, now: int, at_least: bool, n: int, count: int, start: int, extreme: int) -> Any:
    """The count taken on through changes sorted by time, all at instants up to `now`.

    Gives intervals (start, end, extreme) that have ended, and (count, start, extreme) of the one
    under way; `start` is NOT_YET where none is.
    """
    starts, ends, extremes = np.empty(len(t), np.int64), np.empty(len(t), np.int64), np.empty(len(t), np.int64)
    ended = 0
    for i in range(len(t)):
        count += change[i]
        if i + 1 < len(t) and t[i + 1] == t[i]:
            # A count is that of an instant: changes at one instant are taken together.
            continue
        holds = count >= n if at_least else count <= n
        if start != NOT_YET and not holds:
            starts[ended], ends[ended], extremes[ended] = start, t[i], extreme
            ended += 1
            start = NOT_YET
        elif holds:
            if start == NOT_YET:
                start, extreme = t[i], count
            elif at_least:
                extreme = max(extreme, count)
            else:
                extreme = min(extreme, count)
    return starts[:ended], ends[:ended], extremes[:ended], count, start, extreme
