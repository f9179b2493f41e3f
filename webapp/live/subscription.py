"""One reader's subscription to one feed: which numbers it has been sent, and how much it
has not acknowledged yet.

Pure state: no socket, no database. Invariant: every number up to `last_sent` has been
covered by a frame (or by the snapshot), none twice; after `stalled` nothing is sent until
the reader subscribes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from webapp.live.chunks import Chunk
from webapp.live.frames import Box

UNACKED_BYTES = 8_000_000
"""A reader with this much unread has to resynchronise: its queue stays bounded."""
UNACKED_FRAMES = 400
POSITION_BYTES = 1_500_000
"""Beyond this much unread, positions are sent rarely: they are samples, and the
next one replaces the last."""
SELDOM_SECONDS = 2.0


@dataclass
class Subscription:
    """`allowed`: queries that the reader may see; `denied`: those known to be none of them;
    `chosen`: those it asked for (null: all)."""

    feed_id: int
    feed: str
    chosen: frozenset[int] | None
    allowed: set[int]
    bbox: Box | None = None
    last_sent: int = 0
    announced: int = 0
    """The outbox's newest number at the last status."""
    denied: set[int] = field(default_factory=set)
    stalled: bool = False
    unread_bytes: int = 0
    unread_frames: int = 0
    unread_positions: int = 0
    positions_at: float = 0.0

    def fresh(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks that the reader has not been sent yet."""
        return [chunk for chunk in chunks if chunk["seq"] > self.last_sent]

    def follows(self, chunks: Sequence[Chunk]) -> bool:
        """Whether `chunks` continue without a gap after the reader's last number."""
        numbers = [chunk["seq"] for chunk in chunks]
        return numbers == list(range(self.last_sent + 1, self.last_sent + 1 + len(numbers)))

    def lacks(self, newest: int) -> bool:
        """Whether changes counted by the previous status have not arrived although they should
        have. `newest`: the number of this one."""
        before, self.announced = self.announced, newest
        return self.last_sent < before

    def unknown_ids(self, chunks: Sequence[Chunk]) -> set[int]:
        """Queries in `chunks` that the reader may or may not see: it is not known yet, because they
        were registered a moment ago for instance."""
        named = {query for chunk in chunks for kind in ("detections", "alerts") for query, _ in chunk[kind]}
        named |= {query for chunk in chunks for query in chunk["queries"]}
        return named - self.allowed - self.denied

    def learn(self, allowed: set[int], asked: set[int] | None = None) -> None:
        """Takes over which queries may be seen; of those asked for, the others are denied."""
        self.allowed = allowed
        self.denied = set() if asked is None else (self.denied | asked) - allowed

    def take(self, chunks: Sequence[Chunk]) -> dict[str, Any]:
        """Covers `chunks` (at least one, without a gap): first and last number, and the texts of
        the rows that are for the reader."""
        first, self.last_sent = self.last_sent + 1, chunks[-1]["seq"]
        return {
            "first": first,
            "seq": self.last_sent,
            "detections": self._texts(chunks, "detections"),
            "alerts": self._texts(chunks, "alerts"),
            "queries": [query for chunk in chunks for query in chunk["queries"] if self.sees(query)],
        }

    def _texts(self, chunks: Sequence[Chunk], kind: str) -> list[str]:
        return [text for chunk in chunks for query, text in chunk[kind] if self.sees(query)]

    def sees(self, query: int) -> bool:
        """Whether answers of the query are for this reader."""
        return query in self.allowed and (self.chosen is None or query in self.chosen)

    def visible(self) -> list[int]:
        """The queries that a snapshot is made of."""
        return sorted(self.allowed if self.chosen is None else self.allowed & self.chosen)

    def sent(self, size: int) -> None:
        """A frame of `size` bytes with answers is on its way."""
        self.unread_bytes += size
        self.unread_frames += 1

    def sent_positions(self, size: int, now: float) -> None:
        """A sample of `size` bytes is on its way."""
        self.unread_positions += size
        self.positions_at = now

    def acked(self, seq: int) -> None:
        """The reader has received everything up to `seq`. Ignores a number that it was never
        sent."""
        if seq <= self.last_sent:
            self.unread_bytes = self.unread_frames = self.unread_positions = 0

    @property
    def behind(self) -> bool:
        """Whether the reader has too many unacknowledged answers."""
        return self.unread_bytes > UNACKED_BYTES or self.unread_frames > UNACKED_FRAMES

    def wants_positions(self, now: float) -> bool:
        """Whether a sample is to be sent at `now` (seconds of a steady clock)."""
        if self.stalled or self.behind:
            return False
        return self.unread_positions <= POSITION_BYTES or now - self.positions_at >= SELDOM_SECONDS
