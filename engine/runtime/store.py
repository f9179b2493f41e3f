"""The stored results of a feed's processing: its answers, and the head that records which rows are
in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from engine.model.changes import ANSWERS
from engine.model.messages import Message
from engine.operator import RegisteredQuery

QueryKey = tuple[str, int]
"""A query's id and version."""
NOTHING: pa.Table = ANSWERS.empty_table()


class StoreTooSlow(RuntimeError):
    """What a commit holds is too much to be stored in the time that a transaction has;
    nothing of it was stored."""


@dataclass(frozen=True)
class Head:
    """How far the feed has been processed, as stored with the answers. `queries`
    are those that have joined."""

    epoch: int
    checkpoint: int = 0
    last_batch: int = -1
    last_seq: int = -1
    query_version: int = 0
    queries: tuple[QueryKey, ...] = ()
    snapshot: str = ""
    snapshot_seq: int = -1


@dataclass(frozen=True)
class StoppedQuery:
    """A query that is stopped, and the reason for its owner. This version never runs again."""

    key: QueryKey
    reason: str


@dataclass(frozen=True)
class Commit:
    """One transaction: what a batch found (`batch` is its number) or a part of it, or what happened
    between two batches (`batch` null).

    `changes` are as the store has prepared them.
    """

    head: Head
    batch: int | None
    changes: Sequence[Any] = ()
    late: pa.Table | None = None
    backfill: bool = False
    measures: Mapping[str, Any] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    stopped: tuple[StoppedQuery, ...] = ()


class Store(Protocol):
    """The store of answers and heads. Raises errors that make continuing impossible (a newer epoch,
    a database that stays unavailable)."""

    def open(self) -> Head:
        """The feed's head, taken over for this epoch."""

    def owns(self) -> bool:
        """Whether the head is still that of this epoch."""

    def version(self) -> int:
        """The feed's query version now."""

    def queries(self, version: int) -> Sequence[RegisteredQuery]:
        """The enabled queries of that version, checked; those that were stopped are left out."""

    def recall(self, keys: Sequence[QueryKey]) -> Sequence[RegisteredQuery]:
        """Queries that have joined, in the order of `keys`; one that exists no more is left out."""

    def prepare(self, changes: pa.Table) -> Sequence[Any]:
        """`changes` (ANSWERS schema) as `commit` takes them: what can be done during another
        commit."""

    def commit(self, commit: Commit) -> bool:
        """Stores it with the new head, or nothing; False when the batch had been stored
        before. Raises StoreTooSlow."""

    def catching_up(self, queries: Sequence[str], read: int, rows: int) -> None:
        """New queries have read so many rows of the history, of `rows`."""

    def caught_up(self) -> None:
        """No query is reading the history any more."""

    def report_event(self, kind: str, text: Message) -> None:
        """Something that users should know."""
