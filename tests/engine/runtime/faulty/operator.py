"""The operator. Its state counts each entity's rows and is invalid after a step that fails, like
real ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from engine.model.batch import SEQ, TIME, Batch
from engine.model.changes import CHANGES
from engine.model.feed import Feed
from engine.operator import Operator, Output, QueryStopped, RegisteredQuery, Stage

Index = Sequence[RegisteredQuery]
State = list[Counter[str]]


class FaultyStage(Stage[Index, State]):
    """Each query answers with every row, and with the number of rows that the entity
    has had by then as the end."""

    def initial(self, index: Index) -> State:
        return [Counter() for _ in index]

    def step(self, index: Index, state: State, batch: Batch, watermark: int) -> Output[State]:
        found = []
        names = batch.entities.decode(batch.entity).to_pylist() if len(batch) else []
        for row, entity in zip(batch.rows.select([TIME, SEQ]).to_pylist(), names, strict=True):
            for position, query in enumerate(index):
                state[position][entity] += 1
                _fault(index, query, row[TIME])
                found.append(_change(position, row, entity, state[position][entity]))
        return Output(state, pa.Table.from_pylist(found, schema=CHANGES))

    def migrate(self, index: Index, parts: Sequence[tuple[Index, State]]) -> State:
        known = {query.key: count for old, counts in reversed(parts) for query, count in zip(old, counts, strict=True)}
        return [known.get(query.key, Counter()) for query in index]

    def dump(self, index: Index, state: State) -> bytes:
        return json.dumps(state).encode()

    def load(self, index: Index, data: bytes) -> State:
        return [Counter(counts) for counts in json.loads(data)]


def _fault(index: Index, query: RegisteredQuery, t: int) -> None:
    specification = query.specification
    if t < specification.at:
        return
    if specification.does == "stops":
        raise QueryStopped(query.key, f"row of time {t}")
    pairs = sum(other.specification.does == "pairs" for other in index)
    if specification.does == "breaks" or (specification.does == "pairs" and pairs > 1):
        raise ZeroDivisionError(f"row of time {t}")


def _change(position: int, row: dict[str, Any], entity: str, count: int) -> dict[str, Any]:
    evidence = [{"seq": row[SEQ], "t": row[TIME]}]
    own = {"query": position, "kind": "row", "entities": [entity], "start": row[TIME], "end": count, "evidence": evidence, "weight": 1}
    return dict.fromkeys(CHANGES.names) | own


class FaultyOperator(Operator[Index]):
    """The family."""

    families: ClassVar[tuple[str, ...]] = ("faulty",)
    keyed = FaultyStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> Index:
        if any(query.specification.does == "never" for query in queries):
            raise LookupError("no index")
        return tuple(queries)
