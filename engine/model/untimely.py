"""Dead letters of rows whose `t` is late or too far ahead; the same for a
running job and for a backtest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.clock import Bools
from engine.model.columns import CLOCK, EVENT, SEQ, TIME
from engine.model.durations import duration_text
from engine.model.events import HEARTBEAT, DeadLetter, Reason, plain_row
from engine.model.feed import Feed, TimeUnit
from engine.model.messages import Message


def late_letters(rows: pa.Table, feed: Feed) -> list[DeadLetter]:
    """The dead letters of late rows, which are stamped: each met a clock that is more than the
    feed's lateness after its `t`. A late heartbeat is none: nobody sent it, and nothing is lost."""
    if EVENT in rows.column_names:
        rows = rows.filter(pc.fill_null(pc.not_equal(rows.column(EVENT), HEARTBEAT), True))
    clocks = rows.column(CLOCK).to_pylist()
    plain = rows.drop_columns([name for name in (SEQ, CLOCK) if name in rows.column_names]).to_pylist()
    return [DeadLetter(Reason.LATE, _late(clock - row[TIME], feed), plain_row(row)) for row, clock in zip(plain, clocks, strict=True)]


def future_letters(rows: pa.Table, refused: Bools, clock: int | None, feed: Feed) -> list[DeadLetter]:
    """The dead letters of the `refused` of `rows`, which lie too far ahead of the feed's clock;
    `clock` is the one before the first row."""
    if not refused.any():
        return []
    t = rows.column(TIME).to_numpy()
    first = t[0] if clock is None else clock
    # A refused row does not move the clock that the next one meets.
    reached = np.maximum.accumulate(np.concatenate([[first], np.where(refused, first, t)]))
    plain, met = rows.filter(pa.array(refused)).to_pylist(), reached[:-1][refused].tolist()
    return [DeadLetter(Reason.FUTURE, _ahead(clock, feed), plain_row(row)) for row, clock in zip(plain, met, strict=True)]


def ahead_of_wall_clock_letters(rows: pa.Table, refused: Bools, feed: Feed) -> list[DeadLetter]:
    """The dead letters of the `refused` of `rows`, which lie too far ahead of the wall clock."""
    detail = Message("t is too far ahead of the wall clock: {allowed}", allowed=_allowed(feed))
    return [DeadLetter(Reason.FUTURE, detail, plain_row(row)) for row in rows.filter(pa.array(refused)).to_pylist()]


def _late(late: int, feed: Feed) -> Message:
    return Message(
        "t is {late} behind the newest row: the feed allows {lateness} (its setting lateness)",
        late=_span(late, feed),
        lateness=_span(feed.lateness, feed),
    )


def _ahead(clock: int, feed: Feed) -> Message:
    return Message("t is too far ahead of the clock, {clock}: {allowed}", clock=clock, allowed=_allowed(feed))


def _allowed(feed: Feed) -> Message:
    return Message("the feed allows {ahead} (its setting ahead)", ahead=_span(feed.ahead or 0, feed))


def _span(span: int, feed: Feed) -> str | Message:
    return duration_text(span) if feed.time is TimeUnit.MS else Message("{count} ticks", count=span)
