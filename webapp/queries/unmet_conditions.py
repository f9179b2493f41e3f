"""Conditions on texts that no row of a previewed period meets: often a misspelt value."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.model.conditions import Condition, conditions_within
from engine.model.feed import ColumnType, Feed

CORE_TEXTS = ("entity", "event")


class UnmetConditions:
    """The conditions of a checked specification that no row seen so far meets. A query that
    derives from others has none: answers have values that rows have not."""

    def __init__(self, specification: dict[str, Any], feed: Feed) -> None:
        texts = {*CORE_TEXTS, *(name for name, kind in feed.columns.items() if kind is ColumnType.STRING)}
        found = () if "derive" in specification else chain.from_iterable(conditions_within(specification))
        self.left = list(dict.fromkeys(one for one in found if one.column in texts))

    def see(self, rows: pa.Table | pa.RecordBatch) -> None:
        self.left = [one for one in self.left if not _is_met(one, pc.unique(rows.column(one.column)).to_pylist())]

    def texts(self) -> list[str]:
        """As a reader writes them: `reader = "dock-9"`."""
        return list(map(str, self.left))


def _is_met(condition: Condition, values: list[Any]) -> bool:
    if isinstance(condition.constant, tuple):
        # Lists may be very long.
        return not set(condition.constant).isdisjoint(values)
    return any(map(condition.holds, values))
