"""Answers of the whole evaluator on accepted rows, for comparison with an oracle: in one batch, or cut, spread, dumped and loaded at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.model.changes import ANSWERS
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.strategies import stamped


def final_answers(
    feed: Feed, documents: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], chance: random.Random | None = None
) -> list[dict[str, Any]]:
    """The facts that are left at the end of the input, `query` as the position of its document; `rows` come in order of time."""
    queries = [RegisteredQuery(str(i), 1, check(document, feed)) for i, document in enumerate(documents)]
    evaluator = Evaluator.start(feed, queries, chance.randint(1, 3) if chance else 1)
    table, asserted, begin = stamped([dict(row) for row in rows], feed), [ANSWERS.empty_table()], 0
    while begin < table.num_rows:
        size = chance.randint(1, 7) if chance else table.num_rows
        asserted.append(evaluator.process(table.slice(begin, size)).changes)
        evaluator.check()
        begin += size
        if chance and chance.random() < 0.25:
            evaluator = Evaluator.load(feed, queries, evaluator.dump())
    asserted.append(evaluator.finish().changes)
    evaluator.check()
    return _left(pa.concat_tables(asserted))


def _left(changes: pa.Table) -> list[dict[str, Any]]:
    total: Counter[str] = Counter()
    facts = {}
    for row in changes.to_pylist():
        weight = row.pop("weight")
        total[repr(row)] += weight
        facts[repr(row)] = row
    assert set(total.values()) <= {0, 1}, "each fact is stated once, and withdrawn only if stated"
    return [facts[key] | {"query": int(facts[key]["query"])} for key, count in total.items() if count]
