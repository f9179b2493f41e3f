"""The newest rows of a feed, from which its arrival rate is estimated. They are cached for a short
time: a form checks at each pause in the typing, and reading them takes a second where the log has
many small segments.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from webapp.feeds.models import Feed
from webapp.feeds.recent import POSITION_ROWS, log_of, newest_rows

KEPT_S = 60.0
KEPT_FEEDS = 2
"""The most feeds whose rows are cached: those of one take about 25 MB."""
OUTGROWN = 1.5
"""A log that has grown by this factor is read again: the first rows of a new
feed are not representative."""
Key = tuple[int, str]


@dataclass(frozen=True)
class _Read:
    """Rows as they were `at` a time (monotonic, seconds), when the next row
    had the number `next_seq`."""

    at: float
    next_seq: int
    rows: pa.Table


class NewestRows:
    """The newest rows of the feeds that were asked for last. Thread-safe; threads do not wait for
    each other's reads."""

    def __init__(self, read: Callable[[Feed], pa.Table], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, _Read] = OrderedDict()

    def rows(self, feed: Feed) -> pa.Table:
        """The feed's newest accepted rows, of at most KEPT_S ago."""
        # What is read depends on the log, the columns and the lateness.
        key = feed.pk, str(feed.engine_feed().to_json())
        next_seq, _ = log_of(feed).end
        with self._lock:
            known = self._kept.get(key)
        if known is not None and self._clock() - known.at <= KEPT_S and known.next_seq <= next_seq <= OUTGROWN * known.next_seq:
            return known.rows
        state = _Read(self._clock(), next_seq, self._read(feed))
        with self._lock:
            self._kept[key] = state
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT_FEEDS:
                self._kept.popitem(last=False)
        return state.rows


def read_rows(feed: Feed) -> pa.Table:
    """The feed's newest accepted rows from its log, as the engine takes them."""
    return newest_rows(feed, POSITION_ROWS, [*feed.engine_feed().types, "seq"])


NEWEST_ROWS = NewestRows(read_rows)


def has_places(feed: Feed) -> bool:
    """Whether the feed's newest rows have places, or may: there are none yet."""
    places = NEWEST_ROWS.rows(feed).column("x")
    return len(places) == 0 or places.null_count < len(places)


def usual_event(feed: Feed, expected: str) -> str:
    """The most frequent event of the feed's newest rows, or the `expected` one if there are such
    rows, or none."""
    counts = {one["values"]: one["counts"] for one in pc.value_counts(NEWEST_ROWS.rows(feed).column("event").drop_null()).to_pylist()}
    return expected if not counts or expected in counts else max(counts, key=counts.__getitem__)
