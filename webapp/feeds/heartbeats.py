"""Advances the clock of wall-clock feeds when all their sources are silent."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from engine.model.columns import ENTITY, EVENT, TIME
from engine.model.events import HEARTBEAT, row_schema
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed

SILENT_MS = 1_000
"""A feed without rows for this long gets a heartbeat."""
UNDER_WAY_MS = 2_000
"""A heartbeat carries the time of this long ago: rows that take up to this to arrive are not made
late by a pause before them."""
LONGEST_PAUSE_MS = 5_000
"""Heartbeats of a silent feed become rarer, up to this interval: an idle log should hardly grow."""


@dataclass
class _Silence:
    """A feed's state: the log's end, when it last moved, and the number of heartbeats since."""

    next_seq: int
    since_ms: int
    sent: int = 0


class Heartbeats:
    """Advances the clocks of wall-clock feeds."""

    def __init__(self) -> None:
        self._silences: dict[int, _Silence] = {}

    def beat(self, feed: Feed, now_ms: int) -> bool:
        """Appends a heartbeat if one is due at `now_ms`; never to an empty log, never back in
        time. Returns whether it did."""
        log = event_log(feed.name)
        next_seq, max_t = log.end
        silence = self._silences.setdefault(feed.pk, _Silence(next_seq, now_ms))
        if next_seq != silence.next_seq:
            silence.next_seq, silence.since_ms, silence.sent = next_seq, now_ms, 0
        pause = min(LONGEST_PAUSE_MS, SILENT_MS + 100 * silence.sent)
        t = now_ms - UNDER_WAY_MS
        if max_t is None or now_ms - silence.since_ms < pause or t <= max_t:
            return False
        row = pa.Table.from_pylist([{EVENT: HEARTBEAT, ENTITY: HEARTBEAT, TIME: t}], schema=row_schema(feed.engine_feed()))
        appended = log.append(row, note={"source": "heartbeat"})
        # Rows may have arrived between the check and the append: then no heartbeat is needed.
        if appended.first_seq == next_seq:
            silence.next_seq, silence.since_ms, silence.sent = appended.last_seq + 1, now_ms, silence.sent + 1
        return True
