"""New queries read the history of a running feed until they have caught up with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator
from engine.runtime.steps import bounded
from engine.sources.eventlog import EventLog

LEAST_ROWS, MOST_ROWS = 2_048, 16_384
"""Of a piece: what is read between two transactions of queries that catch up."""
PIECE_S = 1.0
"""How long a piece should take: batches wait for it, and users see the progress after it."""


@dataclass(frozen=True)
class CatchUp:
    """`side` evaluates `fresh` on the log, alongside the running queries.

    They read from row `first`. `wanted` is asked before each piece whether to continue; `keep`
    stores what was found (a repetition after a crash reads the same rows); `report` gets their ids
    and how many rows they have read, of how many.
    """

    side: GraphEvaluator
    fresh: Sequence[RegisteredQuery]
    log: EventLog
    first: int
    wanted: Callable[[], bool]
    keep: Callable[[pa.Table], None]
    report: Callable[[Sequence[str], int, int], None]

    def read(self, last: int, rest: Callable[[float], object] | None = None) -> bool:
        """Reads up to row `last`; False when it was given up. With `rest` (a function that sleeps)
        it uses at most half a core, so that the batches of running queries are not slowed down.
        Raises QueryStopped, OperatorFailed.
        """
        self._report(last)
        pieces = Pieces(self.log.read(self.side.position + 1, last + 1))
        for rows in pieces:
            if not self.wanted():
                return False
            started = time.monotonic()
            outcome = bounded(self.side.process(rows), rows.num_rows)
            if outcome.changes.num_rows:
                self.keep(outcome.changes)
            self._report(last)
            took = time.monotonic() - started
            pieces.adapt(took)
            if rest is not None:
                rest(min(1.0, took))
        return True

    def _report(self, last: int) -> None:
        self.report([query.id for query in self.fresh], self.side.position + 1 - self.first, last + 1 - self.first)


class Pieces:
    """The rows of tables in pieces of at most `rows`, which adapts to how long a piece takes: a
    thousand rows of a sparse feed may be days, with thousands of evaluation times."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = tables
        self.rows = LEAST_ROWS

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            offset = 0
            while offset < table.num_rows:
                piece = table.slice(offset, self.rows)
                offset += piece.num_rows
                yield piece

    def adapt(self, seconds: float) -> None:
        """The last piece took this long."""
        if seconds < PIECE_S:
            self.rows = min(2 * self.rows, MOST_ROWS)
        elif seconds > 2 * PIECE_S:
            self.rows = max(self.rows // 2, LEAST_ROWS)
