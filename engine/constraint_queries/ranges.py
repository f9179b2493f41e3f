"""The hot part of the query index: which events the variables of all queries may take, evaluated
column by column over blocks of events.

Conditions on numeric columns are ranges of doubles. All others (texts, lists, regions, columns that
must have a value) are computed masks.

Reference: [CCQ] 3.3, Query Index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.constraint_queries.pairs import Floats, Ints
from engine.index.bits import lowest_bit
from engine.index.compiled import kernel
from engine.model.conditions import Condition
from engine.model.feed import ColumnType, Feed

_BLOCK, _WORD = 1_024, 64
"""The number of events of a block, whose values fit into the first-level cache; and of those that
are the bits of one integer."""


@dataclass(frozen=True)
class Filter:
    """The conditions of a variable, as positions in the index's lists. `columns` must have a
    value; `located`: x and y too."""

    conditions: tuple[int, ...]
    comparisons: tuple[int, ...]
    regions: tuple[int, ...]
    columns: tuple[str, ...]
    located: bool


class Ranges(NamedTuple):
    """Query q has the filters `filters[q]` to `filters[q + 1]`: an event that passes filter f may
    be taken by the variables `bits[f]`. It passes if for each r from `ranges[f]` to `ranges[f + 1]`
    the value in column `column[r]` is from `low[r]` to `high[r]`, and all of the masks
    `mask[masks[f]]` to `mask[masks[f + 1]]` are true.

    `names`: the columns. `ready`: the condition of each mask, ("condition" | "comparison" |
    "region" | "present" | "located", which of them).
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
    """The ranges and masks of `filters`, which lists for each query the
    filters of its variables."""
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
            own_masks: list[tuple[str, Any]] = [("located", None)] if one.located or one.regions else []
            for number in one.conditions:
                span = _span(conditions[number], feed)
                if span is None:
                    own_masks.append(("condition", number))
                else:
                    name = conditions[number].column
                    low, high = spans.get(name, (-math.inf, math.inf))
                    spans[name] = max(low, span[0]), min(high, span[1])
            own_masks += [("comparison", number) for number in one.comparisons]
            own_masks += [("present", column) for column in one.columns if column not in spans]
            own_masks += [("region", number) for number in one.regions]
            rows += [(names.setdefault(name, len(names)), *span) for name, span in spans.items()]
            mask += [ready.setdefault(key, len(ready)) for key in own_masks]
            ends["ranges"].append(len(rows))
            ends["masks"].append(len(mask))
        ends["filters"].append(len(bits))
    column, least, most = (np.array([row[k] for row in rows]) for k in range(3))
    ints = {name: np.array(values, np.int64) for name, values in ends.items()}
    return Ranges(
        tuple(names), tuple(ready), ints["filters"], np.array(bits, np.int64), ints["ranges"], column.astype(np.int64), least.astype(np.float64),
        most.astype(np.float64), ints["masks"],
        np.array(mask, np.int64),
    )  # fmt: skip


def _span(condition: Condition, feed: Feed) -> tuple[float, float] | None:
    """The closed range of doubles that satisfies a condition on a column of doubles;
    null for other conditions."""
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
    # There is no double below the least one or above the greatest one.
    return None if math.isinf(exact) else spans.get(condition.op)


@njit(cache=True, nogil=True)
def passing_events(
    filters: Ints, bits: Ints, ranges: Ints, column: Ints, low: Floats, high: Floats, masks: Ints, mask: Ints, values: Floats, ready: Any, n: int
) -> Any:  # fmt: skip
    """(row, query, bits) of the events that some variable may take, by blocks of rows,
    then by query, then by row.

    `values` (columns, n rows): NaN for a missing value; `ready` (masks, n). The other arguments
    are the fields of `Ranges`.
    """
    capacity = max(n, _BLOCK)
    rows, queries, found = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.int64)
    passed = np.empty(max(1, np.diff(filters).max()) if len(filters) > 1 else 1, np.int64)
    mask_words = _as_words(ready, n)
    count = np.uint64(0)
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        for q in range(len(filters) - 1):
            if count + np.uint64(_BLOCK) > np.uint64(len(rows)):
                rows, queries, found = _doubled(rows), _doubled(queries), _doubled(found)
            first = filters[q]
            own_bits = bits[first : filters[q + 1]]
            for word in range(begin, end, _WORD):
                some, size = np.int64(0), min(_WORD, end - word)
                for f in range(len(own_bits)):
                    passed[f] = _passes(ranges, column, low, high, masks, mask, values, mask_words, first + f, word, size)
                    some |= passed[f]
                while some != 0:
                    k = lowest_bit(some)
                    some &= some - 1
                    rows[count], queries[count], found[count] = word + k, q, _accepting_variables(own_bits, passed, k)
                    count += np.uint64(1)
    return rows[:count], queries[:count], found[:count]


@njit(cache=True, nogil=True)
def _as_words(ready: Any, n: int) -> Any:
    """The masks as bits, 64 events in each integer."""
    mask_words = np.empty((len(ready), (n + _WORD - 1) // _WORD), np.int64)
    for which in range(len(ready)):
        for word in range(mask_words.shape[1]):
            mask_words[which, word] = _mask_word(ready, which, word * _WORD, min(_WORD, n - word * _WORD))
    return mask_words


@kernel(inline=True)
def _passes(
    ranges: Ints, column: Ints, low: Floats, high: Floats, masks: Ints, mask: Ints, values: Floats, mask_words: Any, f: int, word: int, size: int
) -> Any:  # fmt: skip
    """The events that pass filter f, as bits, of the `size` events from number `word` on."""
    passed = np.int64(-1) if size == _WORD else (np.int64(1) << size) - 1
    for r in range(ranges[f], ranges[f + 1]):
        passed &= _in_range(values, column[r], word, size, low[r], high[r])
    for r in range(masks[f], masks[f + 1]):
        passed &= mask_words[mask[r], word // _WORD]
    return passed


@kernel(inline=True)
def _accepting_variables(bits: Ints, passed: Ints, k: int) -> Any:
    """The variables that may take event k: those of the filters that it
    has `passed` (bit k is set)."""
    found = np.int64(0)
    for f in range(np.uint64(len(bits))):
        found |= bits[f] * ((passed[f] >> k) & 1)
    return found


@kernel(inline=True)
def _in_range(values: Floats, column: int, begin: int, size: int, low: float, high: float) -> Any:
    """The values from `low` to `high`, as bits, of the `size` (up to 64) values from `begin` on."""
    word = np.int64(0)
    for k in range(np.uint64(size)):
        value = values[column, np.uint64(begin) + k]
        word |= np.int64((value >= low) & (value <= high)) << np.int64(k)
    return word


@kernel(inline=True)
def _mask_word(ready: Any, which: int, begin: int, size: int) -> Any:
    """The true entries of a mask, as bits, like `_in_range`."""
    word = np.int64(0)
    for k in range(np.uint64(size)):
        word |= np.int64(ready[which, np.uint64(begin) + k]) << np.int64(k)
    return word


@njit(cache=True, nogil=True)
def _doubled(column: Any) -> Any:
    larger = np.empty(2 * len(column), column.dtype)
    larger[: len(column)] = column
    return larger


@njit(cache=True, nogil=True)
def group_positions(keys: npt.NDArray[np.int32], groups: int) -> Any:
    """Positions sorted by key (stable), and the offset at which each of `groups`
    keys begins (groups + 1)."""
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
def count_rows(bits: Ints, starts: Ints, variables: Ints) -> Any:
    """How many of the rows each variable may take: rows `starts[q]` to
    `starts[q + 1]` are those of query q."""
    counts = np.zeros(variables[-1], np.int64)
    for q in range(len(starts) - 1):
        for k in range(starts[q], starts[q + 1]):
            for i in range(variables[q + 1] - variables[q]):
                counts[variables[q] + i] += (bits[k] >> i) & 1
    return counts
