"""Occupancy answers, straight from specification 5.7: every entity is asked
at every integer instant.

Rows are dictionaries in arrival order (`seq` is the position); specifications are the written JSON.
An answer is (query, start, end, value).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.oracles.border_monitoring import inside, is_tuple

Row = Mapping[str, Any]
Answer = tuple[int, int, int | None, int]


def answers(rows: Sequence[Row], documents: Sequence[Mapping[str, Any]], *, geographic: bool = False) -> Counter[Answer]:
    """All answers on accepted rows."""
    ordered = sorted(rows, key=lambda row: (row["t"], row["seq"]))
    if not ordered:
        return Counter()
    instants = range(ordered[0]["t"], ordered[-1]["t"] + 1)
    found: Counter[Answer] = Counter()
    for number, document in enumerate(documents):
        counts = [sum(is_in(entity, t, ordered, document, geographic) for entity in {row["entity"] for row in ordered}) for t in instants]
        found.update((number, *interval) for interval in intervals(instants, counts, document))
    return found


def is_in(entity: str, t: int, ordered: Sequence[Row], document: Mapping[str, Any], geographic: bool) -> bool:
    """Whether the entity is in the region at the instant t."""
    tuples = [row for row in ordered if row["entity"] == entity and row["t"] <= t and is_tuple(row, document)]
    if not tuples or not inside(tuples[-1], document, geographic):
        return False
    return document.get("stale") is None or t < tuples[-1]["t"] + document["stale"]


def intervals(instants: Sequence[int], counts: Sequence[int], document: Mapping[str, Any]) -> Iterable[tuple[int, int | None, int]]:
    """(start, end, value) of the maximal intervals that are long enough."""
    op, n = document["count"]
    holds = [count >= n if op == ">=" else count <= n for count in counts]
    for i, t in enumerate(instants):
        if holds[i] and (i == 0 or not holds[i - 1]):
            j = i
            while j < len(holds) and holds[j]:
                j += 1
            end = instants[j] if j < len(holds) else None
            length = (end if end is not None else instants[-1]) - t
            if length >= (document.get("lasting") or 0):
                yield t, end, max(counts[i:j]) if op == ">=" else min(counts[i:j])
