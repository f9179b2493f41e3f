"""Each window's own answer, as RTEC prints it: for `backtest --windows` and for
comparison with RTEC's files.

The hook for the command: one WindowReplay for each calculus query; `take` the accepted rows of each
batch, `finish` at the end, write the tables one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.event_calculus.answers import reported_keys
from engine.event_calculus.compiled_query import CalculusIndex
from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.intervals import Ints
from engine.event_calculus.operator import CalculusOperator
from engine.event_calculus.shapes import base_name
from engine.event_calculus.state import WindowState
from engine.event_calculus.tables import stack
from engine.event_calculus.windows import WindowResult
from engine.model.batch import Batch, EntityDictionary
from engine.model.feed import Feed
from engine.model.messages import Message
from engine.operator import RegisteredQuery

WINDOW_ANSWERS = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),
        pa.field("query_time", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("entities", pa.list_(pa.string()), nullable=False),
        pa.field("value", pa.string()),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
    ]
)
"""An interval is clipped to [Q - W + 1, Q + 1) of its query time Q and window W;
an event has start = end."""

MOST_SKIPPED = 1_000_000
"""Windows in which nothing changes are written one after the other up to this many: a single wrong
time far ahead would make a file without end."""


class WindowReplay:
    """Evaluates one calculus query separately and yields every window's answer.

    Rows come with the columns of the feed, `seq` and `clock`, in order of seq, late
    rows and duplicates left out.
    """

    def __init__(self, query: RegisteredQuery, feed: Feed) -> None:
        operator = CalculusOperator()
        self._operator = operator
        self._index: CalculusIndex = operator.compile([query], feed)
        self._keyed = operator.keyed.initial(self._index)
        self._state: WindowState = operator.relational.initial(self._index)[0]
        self._dictionary = EntityDictionary()
        self._decided: WindowResult | None = None

    def take(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
        """The answers of the windows that end with these rows."""
        if not rows.num_rows:
            return
        emitted = self._operator.keyed.step(self._index, self._keyed, Batch(rows, self._dictionary), 0).emitted
        assert emitted is not None
        compiled = self._index.queries[0]
        compiled.take(self._state, emitted)
        for decision in compiled.windows.advance(self._state):
            yield from self._up_to(decision)

    def finish(self) -> Iterator[pa.Table]:
        """The answers of the remaining windows at the end of the input, up to the first query
        time >= the last row's t."""
        for decision in self._index.queries[0].windows.conclude(self._state, self._state.clock):
            yield from self._up_to(decision)

    def _up_to(self, decision: WindowResult) -> Iterator[pa.Table]:
        """The windows that were skipped before this one, where nothing changes, and this one."""
        before, self._decided = self._decided, decision
        if before is not None:
            for query_time in self._skipped(before, decision.query_time):
                yield self._table(replace(before, query_time=query_time))
        yield self._table(decision)

    def _skipped(self, before: WindowResult, until: int) -> range:
        """The query times between them in whose windows something of `before` still holds.
        Raises LimitExceeded."""
        settings = self._index.queries[0].windows.settings
        furthest = max((int(table.lists.e.max(initial=before.query_time)) for table in before.answers.values()), default=before.query_time)
        skipped = range(before.query_time + settings.step, min(until, furthest + settings.window - 1), settings.step)
        if len(skipped) > MOST_SKIPPED:
            raise LimitExceeded(
                Message("{count:,} windows without a row follow one another; at most {most:,} can be written", count=len(skipped), most=MOST_SKIPPED)
            )
        return skipped

    def _table(self, decision: WindowResult) -> pa.Table:
        settings = self._index.queries[0].windows.settings
        low, high = decision.query_time - settings.window + 1, decision.query_time + 1
        parts = [WINDOW_ANSWERS.empty_table()]
        for name, table in decision.answers.items():
            s, e = np.maximum(table.lists.s, low), np.minimum(table.lists.e, high)
            kept = s < e
            owner = table.lists.owners()[kept]
            keys = table.keys[:, owner]
            parts.append(self._rows(decision, name, keys[:-1], keys[-1], s[kept], e[kept]))
        for name, instants in decision.instants.items():
            assert instants.t is not None
            kept = (instants.t >= low) & (instants.t < high)
            parts.append(self._rows(decision, name, stack(instants.columns, instants.n)[:, kept], None, instants.t[kept], instants.t[kept]))
        return pa.concat_tables(parts)

    def _rows(self, decision: WindowResult, name: str, keys: Ints, value: Ints | None, start: Ints, end: Ints) -> pa.Table:
        n = len(start)
        relation = name.rpartition("/")[0]
        keys = reported_keys(relation, keys, self._state.symbols)
        names = pa.array(self._state.symbols.names, pa.string())
        flat = np.ascontiguousarray(keys.T).reshape(-1)
        columns = [
            pa.array([self._index.queries[0].query.id] * n, pa.string()),
            pa.array(np.full(n, decision.query_time)),
            pa.array([base_name(relation)] * n, pa.string()),
            pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * len(keys), pa.int32()), names.take(pa.array(flat))),
            pa.nulls(n, pa.string()) if value is None else names.take(pa.array(value)),
            pa.array(start),
            pa.array(end),
        ]
        return pa.Table.from_arrays(columns, schema=WINDOW_ANSWERS)
