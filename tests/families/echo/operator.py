"""The echo operator: rows through both stages, routed by entity and by time, so that every
path of the runtime is used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from engine.model.batch import ENTITY, Batch
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Feed
from engine.operator import ROUTE, Operator, Output, RegisteredQuery, Stage

Latest = dict[str, dict[str, list[int]]]
"""Query key to entity to [t, seq] of its newest event."""


@dataclass(frozen=True)
class EchoIndex:
    queries: tuple[RegisteredQuery, ...]


def name_of(query: RegisteredQuery) -> str:
    return f"{query.id} {query.version}"


class KeyedEcho(Stage[EchoIndex, Latest]):
    """Asserts newest events and retracts the previous one; passes all rows on."""

    def initial(self, index: EchoIndex) -> Latest:
        return {name_of(query): {} for query in index.queries}

    def step(self, index: EchoIndex, state: Latest, batch: Batch, watermark: int) -> Output[Latest]:
        quiet = all(query.specification.mode == "silent" for query in index.queries)
        if quiet or not len(batch):
            return Output(state)
        latest = [(n, query) for n, query in enumerate(index.queries) if query.specification.mode == "latest"]
        asserted = [self._newest(position, query, state, batch) for position, query in latest]
        route = pa.array(batch.t % 7, pa.int64())
        return Output(state, concat(asserted), batch.rows.append_column(ROUTE, route))

    def _newest(self, position: int, query: RegisteredQuery, state: Latest, batch: Batch) -> pa.Table:
        mine, kept = state[name_of(query)], query.specification.where.mask(batch)
        rows: list[tuple[int, int, int]] = []
        names: list[str] = []
        for i in np.flatnonzero(kept).tolist():
            entity = batch.rows.column(ENTITY)[i].as_py()
            before, now = mine.get(entity), [int(batch.t[i]), int(batch.seq[i])]
            rows += [(*before, -1)] if before is not None else []
            rows.append((now[0], now[1], 1))
            names += [entity] * (len(rows) - len(names))
            mine[entity] = now
        table = np.array(rows, np.int64).reshape(-1, 3)
        codes = batch.entities.encode(pa.array(names, pa.string()))
        return changes_of(batch, position, "newest", codes, table[:, 0], table[:, 1], table[:, 2])

    def migrate(self, index: EchoIndex, parts: Sequence[tuple[EchoIndex, Latest]]) -> Latest:
        state = self.initial(index)
        for _, part in reversed(parts):
            state |= {name: known for name, known in part.items() if name in state}
        return state

    def dump(self, index: EchoIndex, state: Latest) -> bytes:
        return json.dumps(state).encode()

    def load(self, index: EchoIndex, data: bytes) -> Latest:
        found: Latest = json.loads(data)
        return found

    def check(self, index: EchoIndex, state: Latest) -> None:
        assert set(state) == {name_of(query) for query in index.queries}

    def counters(self, index: EchoIndex, state: Latest) -> dict[str, int]:
        return {"events_kept": sum(map(len, state.values()))}


class RelationalEcho(Stage[EchoIndex, int]):
    """Asserts each row that a `rows` query selects. The state is the watermark, which never goes
    back."""

    def initial(self, index: EchoIndex) -> int:
        return -(2**62)

    def step(self, index: EchoIndex, state: int, batch: Batch, watermark: int) -> Output[int]:
        assert watermark >= state
        if not len(batch):
            return Output(watermark)
        assert (np.diff(batch.t) >= 0).all()
        assert int(batch.t.min()) >= state and int(batch.t.max()) <= watermark
        asserted = []
        for position, query in enumerate(index.queries):
            if query.specification.mode == "rows":
                kept = np.flatnonzero(query.specification.where.mask(batch))
                asserted.append(changes_of(batch, position, "row", batch.entity[kept], batch.t[kept], batch.seq[kept], np.ones(len(kept))))
        return Output(watermark, concat(asserted))

    def migrate(self, index: EchoIndex, parts: Sequence[tuple[EchoIndex, int]]) -> int:
        return max(state for _, state in parts)

    def dump(self, index: EchoIndex, state: int) -> bytes:
        return str(state).encode()

    def load(self, index: EchoIndex, data: bytes) -> int:
        return int(data)


class EchoOperator(Operator[EchoIndex]):
    """The family of tests."""

    families: ClassVar[tuple[str, ...]] = ("echo",)
    keyed = KeyedEcho()
    relational = RelationalEcho()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> EchoIndex:
        return EchoIndex(tuple(queries))


def changes_of(batch: Batch, query: int, kind: str, entity: Any, t: Any, seq: Any, weight: Any) -> pa.Table:
    """One change for each row, with the row as evidence."""
    n = len(t)
    nowhere = np.full(n, np.nan)
    evidence = Evidence(np.arange(n + 1), entity, t, nowhere, nowhere, seq)
    return changes(
        batch.entities, query=np.full(n, query), kind=pa.array([kind] * n, pa.string()), entities=entity, start=t, end=t, evidence=evidence,
        weight=weight.astype(np.int8),
    )  # fmt: skip
