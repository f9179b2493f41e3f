"""How far rows may move a feed's clock, and which rows it makes late: facts of the
order in which rows arrive.

The clock of a feed is the greatest `t` that has arrived; its watermark is `lateness` before that.
One row with a wrong time far ahead would make all others late, so a feed may define how far `ahead`
of the clock a row may be: those further ahead are dead letters with the reason `future` and do not
move the clock.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import CLOCK, TIME

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def too_far_ahead(t: Ints, clock: int | None, ahead: int, *, silent: int = 0) -> Bools:
    """Which rows, in the order of their arrival, are more than `ahead` before the
    clock that each one meets.

    `clock` is the one before the first row, null for a feed without rows: then the first row
    sets it. `silent` is how long the feed had been without rows: its clock may advance by so
    much, or a pause could never end.
    """
    refused = np.zeros(len(t), np.bool_)
    if not len(t):
        return refused
    reached = int(t[0]) if clock is None else clock + silent
    if not _any_step_beyond(t, reached, ahead):
        return refused
    # A refused row does not move the clock for the next one. Only deliveries with
    # such a row are handled here.
    for position, moment in enumerate(t.tolist()):
        if moment - reached > ahead:
            refused[position] = True
        else:
            reached = max(reached, moment)
    return refused


def _any_step_beyond(t: Ints, reached: int, ahead: int) -> bool:
    clocks = np.maximum.accumulate(np.concatenate([[reached], t[:-1]]))
    return bool((t - clocks > ahead).any())


def watermark_at(clock: int, lateness: int) -> int:
    """The watermark of a feed whose clock is at `clock`: no row before it counts any more."""
    return clock - lateness


def late(t: Ints, clock: int | None, lateness: int) -> Bools:
    """Which rows, in the order of their arrival, are late by the clock that each one meets."""
    if not len(t):
        return np.zeros(0, np.bool_)
    clocks = np.maximum.accumulate(np.concatenate([[t[0] if clock is None else clock], t[:-1]]))
    is_late: Bools = t < clocks - lateness
    return is_late


def in_time(stamped: pa.Table | pa.RecordBatch, lateness: int) -> pa.Array | pa.ChunkedArray:
    """Of each stamped row whether it is not late: `t >= clock - lateness`, true where no row had
    arrived before it. No nulls."""
    return pc.fill_null(pc.greater_equal(stamped.column(TIME), pc.subtract(stamped.column(CLOCK), lateness)), True)
