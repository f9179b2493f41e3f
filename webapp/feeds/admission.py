"""Which rows of a delivery are from the future, decided at their position in the
feed's log (decision 17).

A row that is further ahead than the feed allows becomes a dead letter and does not move the feed's
clock: one source with a wrong clock would make the rows of all others late.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.model.clock import Bools, Ints, late, too_far_ahead
from engine.model.columns import TIME
from engine.model.events import DeadLetter
from engine.model.untimely import ahead_of_wall_clock_letters, future_letters
from engine.sources.appends import AppendPoint
from webapp.feeds.models import Feed

DAY_MS = 86_400_000
LEAST_MS, MOST_MS = 1_000, 300_000


def default_ahead(*, time_unit: str, wall_clock: bool, lateness: int) -> int | None:
    """How far a row of a feed may be ahead by default.

    With a wall clock, half the lateness: a row that takes up to the other half to arrive is then
    never late because of a fast source. At least a second, because clocks differ by that much, and
    at most five minutes. Without a wall clock, a day; feeds of ticks have no time unit.
    """
    if time_unit != "ms":
        return None
    return min(MOST_MS, max(LEAST_MS, lateness // 2)) if wall_clock else DAY_MS


class Admission:
    """Checks the rows of one delivery; `refused` and `late_rows` contain the result."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.refused: list[DeadLetter] = []
        self.late_rows = 0

    def admit(self, rows: pa.Table, end: AppendPoint) -> pa.Table:
        """Those of `rows` that are not from the future."""
        t = rows.column(TIME).to_numpy()
        ahead = self._too_far(t, end)
        self.refused = self._letters(rows, ahead, end)
        kept = t[~ahead]
        self.late_rows = int(np.count_nonzero(late(kept, end.clock, self.feed.lateness)))
        return rows.filter(pa.array(~ahead)) if self.refused else rows

    def _too_far(self, t: Ints, end: AppendPoint) -> Bools:
        allowed = self.feed.ahead
        if allowed is None:
            return np.zeros(len(t), np.bool_)
        if self.feed.wall_clock:
            beyond: Bools = t > time.time_ns() // 1_000_000 + allowed
            return beyond
        return too_far_ahead(t, end.clock, allowed, silent=end.silent_ms if self.feed.time == "ms" else 0)

    def _letters(self, rows: pa.Table, ahead: Bools, end: AppendPoint) -> list[DeadLetter]:
        if not ahead.any():
            return []
        feed = replace(self.feed.engine_feed(), ahead=self.feed.ahead)
        return ahead_of_wall_clock_letters(rows, ahead, feed) if self.feed.wall_clock else future_letters(rows, ahead, end.clock, feed)
