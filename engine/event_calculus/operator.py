"""The operator of the family: rows are routed by query to the partition that keeps its windows.

The keyed stage is in `routing.py`. In the relational one query times are the windows' own timers: a
window is evaluated when the clock has passed its end, with the rows that had arrived by then. How a
program is divided between the stages: `compiled_query.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from engine.event_calculus.answers import NEVER, Change
from engine.event_calculus.compiled_query import CalculusIndex, compile_query, distribution, with_shares
from engine.event_calculus.conditions import LimitExceeded
from engine.event_calculus.intervals import INF
from engine.event_calculus.routing import RoutingStage
from engine.event_calculus.state import WindowState
from engine.event_calculus.storage import dump_state, load_state
from engine.event_calculus.tables import Symbols
from engine.event_calculus.windows import WindowResult
from engine.model.batch import Batch
from engine.model.changes import CHANGES, concat
from engine.model.feed import Feed
from engine.model.messages import message_of
from engine.operator import ROUTE, Delivery, Operator, Output, QueryStopped, RegisteredQuery, Stage, states_by_query


class WindowStage(Stage[CalculusIndex, list[WindowState]]):
    """The windows of the queries routed to this partition; `state[i]`
    belongs to `index.queries[i]`."""

    ordered: ClassVar[bool] = False

    def initial(self, index: CalculusIndex) -> list[WindowState]:
        return [compiled.windows.initial() for compiled in index.queries]

    def step(self, index: CalculusIndex, state: list[WindowState], batch: Batch, watermark: int) -> Output[list[WindowState]]:
        found = []
        routes = np.asarray(batch.rows.column(ROUTE)) if len(batch) else np.empty(0, np.int64)
        for position, (compiled, own) in enumerate(zip(index.queries, state, strict=True)):
            mine = np.flatnonzero(routes == compiled.route if len(compiled.routes) == 1 else np.isin(routes, compiled.routes))
            try:
                decided: list[WindowResult] = []
                if len(mine):
                    own.share = compiled.routes.index(routes[mine[0]])
                    compiled.take(own, batch.rows if len(mine) == len(batch) else batch.rows.take(pa.array(mine)))
                    decided += compiled.windows.advance(own)
                if watermark > own.clock != NEVER:
                    # Heartbeats have advanced the feed's clock beyond its last row, or the input
                    # has ended: no earlier row will come.
                    decided += compiled.windows.pass_time(own, watermark - 1, ended=batch.ended)
            except LimitExceeded as error:
                raise QueryStopped(compiled.query.key, message_of(error)) from error
            if own.local_results is not None:
                own.local_results.ahead = []
            found += [changes_of(position, change, own.symbols) for decision in decided for change in decision.changes]
        return Output(state, changes=concat(found).combine_chunks())

    def migrate(self, index: CalculusIndex, parts: Sequence[tuple[CalculusIndex, list[WindowState]]]) -> list[WindowState]:
        known = states_by_query(([compiled.query for compiled in old.queries], state) for old, state in parts)
        return [known.get(compiled.query.key) or compiled.windows.initial() for compiled in index.queries]

    def dump(self, index: CalculusIndex, state: list[WindowState]) -> bytes:
        return dump_state(state)

    def load(self, index: CalculusIndex, data: bytes) -> list[WindowState]:
        states = load_state(data)
        if any(compiled.windows.shares and own.share < 0 for compiled, own in zip(index.queries, states, strict=True)):
            raise ValueError("all pairs were in one partition when the state was written")
        return states

    def check(self, index: CalculusIndex, state: list[WindowState]) -> None:
        assert len(state) == len(index.queries)
        for own in state:
            for table in own.answers.values():
                table.check()

    def counters(self, index: CalculusIndex, state: list[WindowState]) -> Mapping[str, int]:
        return {
            "windows": sum(own.windows for own in state),
            "pairs_examined": sum(own.pairs_examined for own in state),
            "groundings": sum(own.groundings for own in state),
            "events_kept": sum(own.rows_kept for own in state),
        }


def changes_of(position: int, change: Change, symbols: Symbols) -> pa.Table:
    """CHANGES rows of one output: the arguments are the entities, the last key
    of a fluent is its value."""
    n = len(change.s)
    names = pa.array(symbols.names, pa.string())
    keys = change.keys if change.e is None else change.keys[:-1]
    flat = np.ascontiguousarray(keys.T).reshape(-1)
    end = change.s if change.e is None else change.e
    columns = [
        pa.array(np.full(n, position), pa.int32()),
        pa.array([change.name] * n, pa.string()),
        pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * len(keys), pa.int32()), names.take(pa.array(flat))),
        pa.nulls(n, pa.string()) if change.e is None else names.take(pa.array(change.keys[-1])),
        pa.nulls(n, pa.float64()),
        pa.array(change.s, pa.int64()),
        pa.array(end, pa.int64(), mask=end == INF),
        pa.nulls(n, CHANGES.field("evidence").type),
        pa.array(change.weight, pa.int8()),
    ]
    return pa.Table.from_arrays(columns, schema=CHANGES)


class CalculusOperator(Operator[CalculusIndex]):
    """Family `calculus` ([dRTEC]; specification 5.6)."""

    families: ClassVar[tuple[str, ...]] = ("calculus",)
    delivery: ClassVar[Delivery] = Delivery.ARRIVAL
    keyed = RoutingStage()
    relational = WindowStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> CalculusIndex:
        return CalculusIndex.over([compile_query(query) for query in queries], feed)

    def spread(self, index: CalculusIndex, feed: Feed, partitions: int) -> CalculusIndex:
        """Divides distributed programs and shares out their pairs; other programs, and relations
        that cannot be distributed, stay in one partition."""
        return CalculusIndex.over([with_shares(compiled, partitions) for compiled in index.queries], feed)

    def is_broadcast(self, query: RegisteredQuery) -> bool:
        return not query.specification.distributed

    def parts(self, query: RegisteredQuery) -> Mapping[str, Any]:
        return distribution(query.specification) if query.specification.distributed else {}
