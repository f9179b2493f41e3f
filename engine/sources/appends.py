"""Appends to a log before they are written: those that wait for their turn, the decisions about
them, and what a segment records of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import TIME
from engine.model.events import Stamper

ENTRIES = b"vedette.entries"
"""Key of a segment's metadata: the appends it was made of, as JSON."""
GROUP_ROWS = 250_000
"""Waiting appends are committed together up to this many rows."""


@dataclass(frozen=True)
class Appended:
    """Rows `first_seq` to `last_seq` (inclusive) of the log;
    `last_seq = first_seq - 1` when there were none.

    `repeated`: the log has an earlier append with the same key; nothing was written now. `note` is
    what is stored with the rows.
    """

    first_seq: int
    last_seq: int
    repeated: bool = False
    note: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class AppendPoint:
    """Where an append begins: the feed's clock there (null in an empty log), and for how many
    milliseconds nothing has been appended."""

    clock: int | None
    silent_ms: int


Admit = Callable[[pa.Table, AppendPoint], tuple[pa.Table, Mapping[str, Any]]]
"""(rows, their position) -> the rows to append, and the note to store with them."""


@dataclass(frozen=True)
class AppendEntry:
    """One append as recorded in its segment: its rows
    `[first_seq, first_seq + rows)`, and the caller's note."""

    first_seq: int
    rows: int
    key: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def appended(self) -> Appended:
        return Appended(self.first_seq, self.first_seq + self.rows - 1, note=self.note)


@dataclass
class PendingAppend:
    """An append that has not been committed yet."""

    rows: pa.Table
    key: str | None
    admit: Admit
    since: int
    result: Appended | None = None
    error: BaseException | None = None

    @property
    def settled(self) -> bool:
        return self.result is not None or self.error is not None


@dataclass(frozen=True)
class AdmittedAppends:
    """The rows to write for a group of appends, and the result of each."""

    entries: list[AppendEntry]
    rows: list[pa.Table]
    answers: list[Appended]

    def stamped(self, max_t: int | None) -> tuple[pa.Table, int]:
        """The rows as stored in the log after one whose clock is `max_t`,
        and the clock after them."""
        rows = self.rows[0] if len(self.rows) == 1 else pa.concat_tables(self.rows)
        first_seq = self.entries[0].first_seq
        stamper = Stamper(first_seq) if max_t is None else Stamper(first_seq, max_t)
        return stamper.stamp(rows).replace_schema_metadata({ENTRIES: notes_of(self.entries)}), later(max_t, rows)

    def answer(self, group: Sequence[PendingAppend]) -> None:
        for waiting, answer in zip(group, self.answers, strict=True):
            waiting.result = answer


def entries_of(metadata: Mapping[bytes, bytes]) -> Iterator[AppendEntry]:
    """The appends that a segment's metadata lists."""
    for first_seq, rows, key, note in json.loads(metadata.get(ENTRIES, b"[]")):
        yield AppendEntry(first_seq, rows, key, note)


def notes_of(entries: Sequence[AppendEntry]) -> bytes:
    """The same as metadata."""
    return json.dumps([[e.first_seq, e.rows, e.key, e.note] for e in entries], separators=(",", ":")).encode()


def group_size(queue: Sequence[PendingAppend]) -> int:
    """How many of the first waiting appends go into one segment: at least one, all of one
    schema."""
    rows = 0
    for position, waiting in enumerate(queue):
        rows += waiting.rows.num_rows
        if position and (rows > GROUP_ROWS or not waiting.rows.schema.equals(queue[0].rows.schema)):
            return position
    return len(queue)


def later(clock: int | None, rows: pa.Table) -> int:
    """The clock after `rows`, at least one."""
    newest: int = pc.max(rows.column(TIME)).as_py()
    return newest if clock is None else max(clock, newest)
