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

HISTORY_ROWS = 16_384
"""Rows of history between two transactions of a query that catches up; few, so that
batches wait only briefly."""


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
        for rows in _pieces(self.log.read(self.side.position + 1, last + 1)):
            if not self.wanted():
                return False
            started = time.monotonic()
            outcome = bounded(self.side.process(rows), rows.num_rows)
            if outcome.changes.num_rows:
                self.keep(outcome.changes)
            self._report(last)
            if rest is not None:
                rest(min(1.0, time.monotonic() - started))
        return True

    def _report(self, last: int) -> None:
        self.report([query.id for query in self.fresh], self.side.position + 1 - self.first, last + 1 - self.first)


def _pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        for offset in range(0, table.num_rows, HISTORY_ROWS):
            yield table.slice(offset, HISTORY_ROWS)
