"""New queries reading the history of a feed that goes on running, until they are where the feed is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from engine.operator import RegisteredQuery
from engine.runtime.derived import GraphEvaluator
from engine.runtime.steps import bounded
from engine.sources.eventlog import EventLog

HISTORY_ROWS = 16_384
"""Rows of history between two transactions of a query that catches up: a batch that waits for its turn waits for little."""


@dataclass(frozen=True)
class CatchUp:
    """`side` evaluates `fresh` on the log, beside the running queries.

    `wanted` says before each piece whether there is still a point in going on; `keep` stores what was found (a repetition after a crash
    meets the same rows); `report` gets how far the reading is.
    """

    side: GraphEvaluator
    fresh: Sequence[RegisteredQuery]
    log: EventLog
    wanted: Callable[[], bool]
    keep: Callable[[pa.Table], None]
    report: Callable[[Mapping[str, Any]], None]

    def read(self, last: int, rest: Callable[[float], object] | None = None) -> bool:
        """Up to row `last`; False when it was given up. With `rest` (it sleeps so many seconds) half of one core at most is used,
        so that the batches of the running queries go on at their pace. Raises QueryStopped, OperatorFailed.
        """
        for rows in _pieces(self.log.read(self.side.position + 1, last + 1)):
            if not self.wanted():
                return False
            started = time.monotonic()
            outcome = bounded(self.side.process(rows), rows.num_rows)
            if outcome.changes.num_rows:
                self.keep(outcome.changes)
            self.report({"queries": [query.id for query in self.fresh], "done": self.side.position, "to": last})
            if rest is not None:
                rest(min(1.0, time.monotonic() - started))
        return True


def _pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        for offset in range(0, table.num_rows, HISTORY_ROWS):
            yield table.slice(offset, HISTORY_ROWS)
