"""Assigns the partitions of a feed to executors, so that states stay where
they are between batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

Executor = str


def placed(before: Mapping[int, Executor], executors: Sequence[Executor], partitions: Collection[int]) -> dict[int, Executor]:
    """A place for each partition: where it was, unless that executor has ended or has more than its
    share. Empty without executors.

    A new executor gets partitions of the others, and no more move than necessary.

    >>> placed({0: "a", 1: "a", 2: "b", 3: "b"}, ["a", "b", "c"], range(4))
    {0: 'a', 1: 'a', 2: 'b', 3: 'c'}
    """
    if not executors:
        return {}
    least, larger = divmod(len(partitions), len(executors))
    load: Counter[Executor] = Counter(dict.fromkeys(executors, 0))
    kept: dict[int, Executor] = {}
    for partition in partitions:
        executor = before.get(partition, "")
        if executor in load and (load[executor] < least or (load[executor] == least and larger > 0)):
            larger -= load[executor] == least
            kept[partition] = executor
            load[executor] += 1
    for partition in partitions:
        if partition not in kept:
            kept[partition] = min(executors, key=lambda executor: load[executor])
            load[kept[partition]] += 1
    return dict(sorted(kept.items()))
