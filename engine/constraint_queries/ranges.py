"""The query index's hot part: which events the variables of all queries may take, asked a column at a time over blocks of events.

Conditions on columns of numbers are ranges of doubles; everything else (texts, lists, regions, what must be there) comes as ready masks.

Reference: [CCQ] 3.3, Query Index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.constraint_queries.pairs import Floats, Ints
from engine.model.conditions import Condition
from engine.model.feed import ColumnType, Feed

if TYPE_CHECKING:
    from engine.constraint_queries.plan import Filter

_BLOCK = 1_024
"""Events whose masks stay in the nearest cache."""


class Ranges(NamedTuple):
    """Query q asks the filters `filters[q]` to `filters[q + 1]`: an event that passes filter f may be taken by the variables `bits[f]`. It passes
    when for r from `ranges[f]` to `ranges[f + 1]` the value in column `column[r]` is from `low[r]` to `high[r]`, and all `masks[f]` to `masks[f +
    1]` of `mask` hold.

    `names`: the columns. `ready`: what each mask asks, ("condition" | "comparison" | "region" | "present" | "located", which of them).
    """

    names: tuple[str, ...]
    ready: tuple[tuple[str, Any], ...]
    filters: Ints
    bits: Ints
    ranges: Ints
    column: Ints
    low: Floats
    high: Floats
    masks: Ints
    mask: Ints


def ranges_of(filters: Sequence[Sequence[Filter]], conditions: Sequence[Condition], feed: Feed) -> Ranges:
    """`filters`: of each query's variables."""
    names: dict[str, int] = {}
    ready: dict[tuple[str, Any], int] = {}
    bits: list[int] = []
    ends: dict[str, list[int]] = {"filters": [0], "ranges": [0], "masks": [0]}
    rows: list[tuple[int, float, float]] = []
    mask: list[int] = []
    for own in filters:
        for one in dict.fromkeys(own):
            bits.append(sum(1 << i for i, other in enumerate(own) if other == one))
            spans: dict[str, tuple[float, float]] = {}
            asked: list[tuple[str, Any]] = [("located", None)] if one.located or one.regions else []
            for number in one.conditions:
                span = _span(conditions[number], feed)
                if span is None:
                    asked.append(("condition", number))
                else:
                    name = conditions[number].column
                    low, high = spans.get(name, (-math.inf, math.inf))
                    spans[name] = max(low, span[0]), min(high, span[1])
            asked += [("comparison", number) for number in one.comparisons]
            asked += [("present", column) for column in one.columns if column not in spans]
            asked += [("region", number) for number in one.regions]
            rows += [(names.setdefault(name, len(names)), *span) for name, span in spans.items()]
            mask += [ready.setdefault(question, len(ready)) for question in asked]
            ends["ranges"].append(len(rows))
            ends["masks"].append(len(mask))
        ends["filters"].append(len(bits))
    column, least, most = (np.array([row[k] for row in rows]) for k in range(3))
    whole = {name: np.array(values, np.int64) for name, values in ends.items()}
    return Ranges(
        tuple(names), tuple(ready), whole["filters"], np.array(bits, np.int64), whole["ranges"], column.astype(np.int64), least.astype(np.float64),
        most.astype(np.float64), whole["masks"],
        np.array(mask, np.int64),
    )  # fmt: skip


def _span(condition: Condition, feed: Feed) -> tuple[float, float] | None:
    """The closed range of doubles that satisfies a condition on a column of doubles; null for other conditions."""
    constant = condition.constant
    if feed.types[condition.column] is not ColumnType.FLOAT or isinstance(constant, tuple | str):
        return None
    try:
        exact = float(constant)
    except OverflowError:
        return None
    if exact != constant:
        return None
    spans = {
        "=": (exact, exact),
        "<=": (-math.inf, exact),
        ">=": (exact, math.inf),
        "<": (-math.inf, math.nextafter(exact, -math.inf)),
        ">": (math.nextafter(exact, math.inf), math.inf),
    }
    # Nothing is below the least value of all; one above the greatest would be that value itself.
    return None if math.isinf(exact) else spans.get(condition.op)


@njit(cache=True, nogil=True)
def passing(
    filters: Ints, bits: Ints, ranges: Ints, column: Ints, low: Floats, high: Floats, masks: Ints, mask: Ints, values: Floats, ready: Any, n: int
) -> Any:  # fmt: skip
    """(row, query, bits) of the events that some variable may take, by blocks of rows, then by query, then by row.

    `values` (columns, n rows): NaN where there is none; `ready` (masks, n). The other arguments are the fields of `Ranges`.
    """
    room = 4 * _BLOCK
    rows, queries, found = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64)
    taken, passed = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.bool_)
    count = 0
    for begin in range(0, n, _BLOCK):
        size = min(_BLOCK, n - begin)
        for q in range(len(filters) - 1):
            taken[:size] = 0
            for f in range(filters[q], filters[q + 1]):
                _asked(ranges[f], ranges[f + 1], column, low, high, masks[f], masks[f + 1], mask, values, ready, begin, passed[:size])
                own = np.int32(bits[f])
                for k in range(size):
                    taken[k] |= own if passed[k] else np.int32(0)
            if count + _BLOCK > len(rows):
                rows, queries, found = _twice(rows), _twice(queries), _twice(found)
            for k in range(size):
                # Written always, counted when it is one: no branch to guess.
                rows[count], queries[count], found[count] = begin + k, q, np.int64(taken[k]) & 0xFFFFFFFF
                count += taken[k] != 0
    return rows[:count], queries[:count], found[:count]


@njit(cache=True, nogil=True)
def _asked(
    first: int, last: int, column: Ints, low: Floats, high: Floats, first_mask: int, last_mask: int, mask: Ints, values: Floats, ready: Any,
    begin: int, passed: Any,
) -> None:  # fmt: skip
    """Which of the rows from `begin` on pass one filter."""
    if first == last:
        passed[:] = True
    for r in range(first, last):
        least, most = low[r], high[r]
        own = values[column[r], begin : begin + len(passed)]
        if r == first:
            for k in range(len(passed)):
                passed[k] = (own[k] >= least) & (own[k] <= most)
        else:
            for k in range(len(passed)):
                passed[k] &= (own[k] >= least) & (own[k] <= most)
    for r in range(first_mask, last_mask):
        own_mask = ready[mask[r], begin : begin + len(passed)]
        for k in range(len(passed)):
            passed[k] &= own_mask[k]


@njit(cache=True, nogil=True)
def _twice(column: Any) -> Any:
    larger = np.empty(2 * len(column), column.dtype)
    larger[: len(column)] = column
    return larger


@njit(cache=True, nogil=True)
def grouped(keys: npt.NDArray[np.int32], groups: int) -> Any:
    """Positions in order of their keys, equal ones in theirs, and where each of `groups` keys begins (groups + 1)."""
    starts = np.zeros(groups + 1, np.int64)
    for k in range(len(keys)):
        starts[keys[k] + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    order = np.empty(len(keys), np.int64)
    at = starts[:-1].copy()
    for k in range(len(keys)):
        order[at[keys[k]]] = k
        at[keys[k]] += 1
    return order, starts


@njit(cache=True, nogil=True)
def wanted(bits: Ints, starts: Ints, variables: Ints) -> Any:
    """How many of the rows each variable may take: rows `starts[q]` to `starts[q + 1]` are those of query q."""
    counts = np.zeros(variables[-1], np.int64)
    for q in range(len(starts) - 1):
        for k in range(starts[q], starts[q + 1]):
            for i in range(variables[q + 1] - variables[q]):
                counts[variables[q] + i] += (bits[k] >> i) & 1
    return counts
