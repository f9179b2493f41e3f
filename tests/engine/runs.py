"""Runs of the whole evaluator, for comparison with an oracle: in one batch, or in random batches
with random restarts and registrations."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.strategies import stamped


def registered(documents: Sequence[Mapping[str, Any]], feed: Feed, first: int = 0) -> list[RegisteredQuery]:
    """Queries whose ids are numbers from `first` on."""
    return [RegisteredQuery(str(first + i), 1, check(document, feed)) for i, document in enumerate(documents)]


def changes_of(
    feed: Feed, queries: Sequence[RegisteredQuery], rows: pa.Table, chance: random.Random | None = None, partitions: int = 1
) -> Iterator[pa.Table]:
    """The changes of each batch of the stamped rows, and of the end of the input."""
    evaluator = Evaluator.start(feed, queries, partitions)
    begin = 0
    while begin < rows.num_rows:
        size = chance.randint(1, 7) if chance else rows.num_rows
        yield evaluator.process(rows.slice(begin, size)).changes
        evaluator.check()
        begin += size
        if chance and chance.random() < 0.3:
            evaluator = Evaluator.load(feed, queries, evaluator.dump())
            evaluator.check()
        if chance and chance.random() < 0.15:
            evaluator.register(queries)
            evaluator.check()
    yield evaluator.finish().changes
    evaluator.check()


def final_answers(
    feed: Feed,
    documents: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    chance: random.Random | None = None,
    *,
    partitions: int | None = None,
) -> list[dict[str, Any]]:
    """The facts that are left at the end of the input, `query` as the position of its document;
    `rows` come in order of time."""
    table = stamped([dict(row) for row in rows], feed)
    shared = partitions or (chance.randint(1, 3) if chance else 1)
    return _left(pa.concat_tables(changes_of(feed, registered(documents, feed), table, chance, shared)))


def _left(changes: pa.Table) -> list[dict[str, Any]]:
    total: Counter[str] = Counter()
    facts = {}
    for row in changes.to_pylist():
        weight = row.pop("weight")
        total[repr(row)] += weight
        facts[repr(row)] = row
    assert set(total.values()) <= {0, 1}, "each fact is asserted once, and retracted only if asserted"
    return [facts[key] | {"query": int(facts[key]["query"])} for key, count in total.items() if count]
