"""A recorded file sent to a feed again, in the order in which it is written, at the pace of its own times or as fast as it goes.

Each chunk is noted in a file before it is sent, under a key of its own: a player that was killed sends that chunk again under the same
key and goes on behind it, so every row arrives once.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import TIME, TIME_END
from engine.model.feed import Feed
from engine.sources.files import Columns, find_files, read_files
from webapp.feeds.client import IngestClient

CHUNK_ROWS = 5_000
CHUNK_S = 0.25
"""Rows that are due within so long are sent together."""


@dataclass
class Progress:
    """How far a run has come: rows before `begin` are stored; `[begin, end)` were being sent; `shift` is added to all times."""

    run: str
    shift: int = 0
    begin: int = 0
    end: int = 0

    @classmethod
    def resumed(cls, path: Path) -> Progress:
        """The progress noted in `path`, a new run without it."""
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return cls(uuid.uuid4().hex[:16])

    def note(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(path)

    @property
    def key(self) -> str:
        return f"play-{self.run}-{self.begin}-{self.end}"


@dataclass(frozen=True)
class Recording:
    """Files of events as a feed reads them."""

    path: Path
    feed: Feed
    renamed: Mapping[str, str]

    def rows(self, told: Callable[[int], None] = lambda dead: None) -> Iterator[pa.Table]:
        """Readable rows in file order; `told` hears how many were not. Raises engine.sources.files.Unreadable."""
        for piece in read_files(find_files(self.path), Columns(self.feed, self.renamed)):
            if piece.dead_count:
                told(piece.dead_count)
            if piece.rows.num_rows:
                yield piece.rows

    @property
    def identity(self) -> str:
        """Names the recording, the feed and the reading of it: what a run that is resumed must have in common."""
        files = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in find_files(self.path)]
        return hashlib.sha256(json.dumps([self.feed.name, sorted(self.renamed.items()), files]).encode()).hexdigest()[:24]


@dataclass
class Player:
    """Sends a recording. `rate` is how many times faster than life; null: as fast as the server takes it."""

    client: IngestClient
    recording: Recording
    notes: Path
    rate: float | None = 1.0
    advanced: Callable[[int, int], None] = lambda rows, t: None
    unread: Callable[[int], None] = lambda rows: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def play(self, *, now_ms: int | None = None) -> Progress:
        """All of it, from where an interrupted run stopped. `now_ms`: the time that the first row's becomes (a new run only).

        Raises what reading and sending raise; the run can be resumed then.
        """
        progress = Progress.resumed(self.notes)
        position, began = 0, None
        for rows in self.recording.rows(self.unread):
            first, position = position, position + rows.num_rows
            if position <= progress.begin:
                self.advanced(rows.num_rows, 0)
                continue
            if now_ms is not None and position == rows.num_rows and progress.end == 0:
                progress.shift = now_ms - rows.column(TIME)[0].as_py()
            if progress.begin > first:
                self.advanced(progress.begin - first, 0)
            while progress.begin < position:
                rest = rows.slice(progress.begin - first)
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
        self.client.send(self.recording.feed.name, shifted(chunk, progress.shift), key=progress.key)
        progress.begin = progress.end
        progress.note(self.notes)
        self.advanced(chunk.num_rows, pc.max(chunk.column(TIME)).as_py())

    def _due(self, rest: pa.Table, began: tuple[float, int]) -> int:
        """How many of the next rows to send now, at least one; waits until the first of them is due."""
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


def shifted(rows: pa.Table, by: int) -> pa.Table:
    """`rows` with `by` added to their times."""
    for name in (TIME, TIME_END) if by else ():
        position = rows.column_names.index(name)
        rows = rows.set_column(position, rows.schema.field(name), pc.add(rows.column(name), by))
    return rows
