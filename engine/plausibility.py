"""Checks whether rows fit the queries: places, times in the right unit, events of
the names in the queries.

Nothing here changes an answer. An empty answer has a reason, and most often it is one of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.families import family_of
from engine.model.columns import EVENT, TIME, X
from engine.model.conditions import Conditions
from engine.model.faults import unknown_name
from engine.model.feed import Feed, TimeUnit
from engine.model.messages import Message
from engine.model.region import Region
from engine.operator import RegisteredQuery

LEAST_SECONDS, MOST_SECONDS = 10**8, 10**11
"""Whole numbers between these are seconds since 1970 from 1973 on; as milliseconds they would
all lie before March 1973."""
NAMES_KEPT = 10_000


class Plausibility:
    """Examines rows as they come and reports at the end what is implausible."""

    def __init__(self, feed: Feed, queries: Sequence[RegisteredQuery], documents: Mapping[str, Mapping[str, Any]]) -> None:
        self._feed, self._queries, self._documents = feed, queries, documents
        self._rows = self._places = 0
        self._times: list[int] = []
        self._names: set[str] = set()

    def take(self, rows: pa.Table) -> None:
        """Checked rows."""
        if rows.num_rows:
            self._rows += rows.num_rows
            self._places += rows.num_rows - rows.column(X).null_count
            least, most = pc.min_max(rows.column(TIME)).as_py().values()
            self._times = [min([least, *self._times]), max([most, *self._times])]
            if len(self._names) < NAMES_KEPT:
                self._names.update(pc.unique(rows.column(EVENT)).to_pylist())

    def warnings(self) -> list[str]:
        """Sentences that name the remedy; none if there were no rows."""
        return [*self._of_places(), *self._of_times(), *self._of_events()] if self._rows else []

    def _of_places(self) -> Iterator[str]:
        asking = [query.id for query in self._queries if not self._places and family_of(query.specification).uses_places(query.specification)]
        if asking:
            yield f"no row has a place (x, y), so {_named(asking)} can find nothing; name the columns with --map x=...,y=..."

    def _of_times(self) -> Iterator[str]:
        least, most = self._times
        if self._feed.time is TimeUnit.MS and least >= LEAST_SECONDS and most < MOST_SECONDS:
            yield f"the times look like seconds since 1970 ({least} to {most}); t of a feed whose time is ms is in milliseconds: multiply by 1000"

    def _of_events(self) -> Iterator[str]:
        if len(self._names) >= NAMES_KEPT:
            return
        for query in self._queries:
            for name in sorted(events_of(query.specification) - self._names - set(self._documents[query.id].get("derive", {}))):
                yield f"{query.id}: no row is an event {name!r}: {unknown_name(name, self._names, what=Message('event'))}"


def events_of(specification: Any) -> set[str]:
    """Names of events that a checked specification asks for."""
    names = family_of(specification).event_names(specification)
    return {name for part in _conditions(specification) for name in part.values_of(EVENT)} if names is None else names


def _conditions(value: Any) -> Iterator[Conditions]:
    """All conditions within a specification."""
    if isinstance(value, Conditions):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type | Region):
        for field in dataclasses.fields(value):
            yield from _conditions(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _conditions(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _conditions(item)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
