"""Sends a recorded file to a feed again, in the order of the file, at the rate of the
recording or as fast as possible.

The receipts say how many rows were accepted, late and dead.

Each chunk is noted in a file before it is sent, under a separate key: a player that was killed
sends that chunk again under the same key and continues after it, so every row arrives once.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import TIME, TIME_END
from engine.model.feed import Feed
from engine.sources.file_rows import read_files
from engine.sources.files import Columns, find_files
from webapp.feeds.client import IngestClient

CHUNK_ROWS = 5_000
LOST_ROWS = 100
"""If a whole chunk of this many rows is lost, there is a systematic cause."""
CHUNK_S = 0.25
"""Rows that are due within this time are sent together."""


class ChunkRefused(RuntimeError):
    """No row of a whole chunk was accepted: continuing would lose the rest in the same
    way. The run can be resumed."""


@dataclass(frozen=True)
class Move:
    """How times are mapped: t to `to` + (t - `since`) / `rate`. The
    default leaves them unchanged."""

    since: int = 0
    to: int = 0
    rate: float = 1.0

    def moved(self, rows: pa.Table) -> pa.Table:
        """`rows` with their times moved."""
        if self == Move():
            return rows
        for name in (TIME, TIME_END):
            if name in rows.column_names:
                position = rows.column_names.index(name)
                rows = rows.set_column(position, rows.schema.field(name), self._times(rows.column(name)))
        return rows

    def _times(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        spans = pc.subtract(column, self.since)
        if self.rate != 1.0:
            spans = pc.cast(pc.floor(pc.divide(pc.cast(spans, pa.float64()), self.rate)), pa.int64())
        return pc.add(spans, self.to)


@dataclass
class Progress:
    """The progress of a run: rows before `begin` are stored; `[begin, end)` were being sent; `move`
    describes how times are shifted.

    Of the stored rows `late` came too late, `dead` are dead letters, for the `reasons` counted;
    all others were accepted.
    """

    run: str
    move: Move = Move()
    begin: int = 0
    end: int = 0
    late: int = 0
    dead: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    @classmethod
    def resumed(cls, path: Path) -> Progress:
        """The progress stored in `path`; a new run without it."""
        try:
            noted = json.loads(path.read_text())
            return cls(**{**noted, "move": Move(**noted["move"])})
        except FileNotFoundError:
            return cls(uuid.uuid4().hex[:16])

    def note(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(path)

    @property
    def accepted(self) -> int:
        return self.begin - self.late - self.dead

    def count(self, receipt: Mapping[str, Any]) -> None:
        """Adds the counts of a receipt."""
        self.late += receipt["late"]
        self.dead += receipt["dead"]
        for letter in receipt["dead_letters"]:
            self.reasons[letter["reason"]] = self.reasons.get(letter["reason"], 0) + 1

    @property
    def key(self) -> str:
        return f"play-{self.run}-{self.begin}-{self.end}"


@dataclass(frozen=True)
class Recording:
    """Files of events as a feed reads them."""

    path: Path
    feed: Feed
    renamed: Mapping[str, str]

    def rows(self, on_dead: Callable[[int], None] = lambda dead: None) -> Iterator[pa.Table]:
        """Readable rows in file order; `on_dead` is called with how many were not. Raises
        engine.sources.files.Unreadable."""
        for piece in read_files(find_files(self.path), Columns(self.feed, self.renamed)):
            if piece.dead_count:
                on_dead(piece.dead_count)
            if piece.rows.num_rows:
                yield piece.rows

    @property
    def identity(self) -> str:
        """Identifies the recording, the feed and the mapping, which must be the
        same when a run is resumed."""
        files = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in find_files(self.path)]
        return hashlib.sha256(json.dumps([self.feed.name, sorted(self.renamed.items()), files]).encode()).hexdigest()[:24]


@dataclass
class Player:
    """Sends a recording. `rate` is how many times faster than life; null: as
    fast as the server takes it.

    `check` gets the first rows in the form in which they will be sent, before any is sent: it
    raises for a run that cannot work.
    """

    client: IngestClient
    recording: Recording
    notes: Path
    rate: float | None = 1.0
    advanced: Callable[[int, int], None] = lambda rows, t: None
    unread: Callable[[int], None] = lambda rows: None
    check: Callable[[pa.Table], None] = lambda rows: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def play(self, *, now_ms: int | None = None, in_step: bool = False) -> Progress:
        """All of it, from where an interrupted run stopped. `now_ms`: the time that the first row's
        becomes (a new run only).

        `in_step`: the times between rows shrink with the rate, so that each row is
        sent when its own time comes. Raises ChunkRefused, and what reading and sending raise;
        the run can be resumed then.
        """
        progress = Progress.resumed(self.notes)
        position, began = 0, None
        restarts = in_step and now_ms is not None and progress.end > 0
        for rows in self.recording.rows(self.unread):
            first, position = position, position + rows.num_rows
            if position <= progress.begin:
                self.advanced(rows.num_rows, 0)
                continue
            if position == rows.num_rows and progress.end == 0:
                if now_ms is not None:
                    progress.move = Move(rows.column(TIME)[0].as_py(), now_ms, (self.rate or 1.0) if in_step else 1.0)
                self.check(progress.move.moved(rows))
            if progress.begin > first:
                self.advanced(progress.begin - first, 0)
            while progress.begin < position:
                rest = rows.slice(progress.begin - first)
                if restarts and progress.end <= progress.begin and now_ms is not None:
                    # The clock has advanced since the run was interrupted. Rows that were being
                    # sent then are repeated unchanged.
                    progress.move, restarts = replace(progress.move, since=rest.column(TIME)[0].as_py(), to=now_ms), False
                began = began or (self.clock(), pc.min(rest.column(TIME)).as_py())
                self._send(progress, rest, began)
        self.notes.unlink(missing_ok=True)
        return progress

    def _send(self, progress: Progress, rest: pa.Table, began: tuple[float, int]) -> None:
        """The next chunk: the one that was being sent, or what is due within CHUNK_S."""
        if progress.end <= progress.begin:
            progress.end = progress.begin + self._due(rest, began)
            progress.note(self.notes)
        chunk = rest.slice(0, progress.end - progress.begin)
        receipt = self.client.send(self.recording.feed.name, progress.move.moved(chunk), key=progress.key)
        progress.begin = progress.end
        progress.count(receipt)
        progress.note(self.notes)
        self.advanced(chunk.num_rows, pc.max(chunk.column(TIME)).as_py())
        if receipt["late"] + receipt["dead"] == chunk.num_rows >= LOST_ROWS:
            lost = f"{receipt['late']} late, {receipt['dead']} dead"
            raise ChunkRefused(f"None of rows {progress.begin - chunk.num_rows + 1} to {progress.begin} was accepted: {lost}.")

    def _due(self, rest: pa.Table, began: tuple[float, int]) -> int:
        """How many of the next rows to send now, at least one; waits until
        the first of them is due."""
        head = rest.slice(0, CHUNK_ROWS)
        if self.rate is None:
            return int(head.num_rows)
        at = (head.column(TIME).to_numpy() - began[1]) / 1000 / self.rate + began[0]
        # A row that came late in the recording is due when the rows before it were.
        at = np.maximum.accumulate(at)
        now = self.clock()
        if at[0] > now:
            self.sleep(at[0] - now)
            now = self.clock()
        return max(1, int(np.searchsorted(at, now + CHUNK_S, side="right")))
