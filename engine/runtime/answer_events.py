"""The events that one query derives from the answers of others: they wait until they are known,
then become rows. Column-wise throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.derive import ENTITIES, VALUE, Source, known_at, revises
from engine.families import family_of
from engine.model.batch import ENTITY, EVENT, TIME
from engine.model.changes import ANSWERS
from engine.model.feed import ColumnType, Feed
from engine.runtime.container import pack, table_bytes, table_from, unpack

_NULL_LAST = 2**62
_NAMES = ANSWERS.field("entities").type
_WAITING = pa.schema(
    [
        pa.field("known", pa.int64()),
        pa.field("t", pa.int64()),
        pa.field("query", pa.string()),  # the name of the query whose answer it is
        pa.field("entities", _NAMES),
        pa.field("kind", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),  # _NULL_LAST for an answer that still holds
        pa.field("event", pa.string()),
        pa.field("value", pa.float64()),
    ]
)
"""The columns before `value` are the order of events, but for `known`."""
_OPEN = pa.schema([pa.field("entities", _NAMES), pa.field("start", pa.int64())])
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class AnswerEvents:
    """What `sources` take, as rows of `feed` (that of `with_answers`). `specifications`:
    of the queries they name.

    `per_entity`: an event without an entity has no place there.
    """

    def __init__(self, feed: Feed, sources: Sequence[Source], specifications: Mapping[str, Any], *, per_entity: bool) -> None:
        self.feed = feed
        self.sources = [_SourceAnswers(source, specifications[source.query], per_entity) for source in sources]
        self._waiting = _WAITING.empty_table()

    def take_answers(self, changes: pa.Table) -> None:
        """Takes the answers of other queries."""
        if changes.num_rows:
            self._waiting = pa.concat_tables([self._waiting, *(source.events(changes) for source in self.sources)])

    def take(self, before: int, *, all_known: bool = False) -> tuple[pa.RecordBatch, Ints]:
        """The events that are known before that time, as rows in their order, and when each is
        known; `all_known`: those that happen before it."""
        ready = pc.less(self._waiting.column("t" if all_known else "known"), before)
        taken = _in_order(self._waiting.filter(ready), _WAITING.names[:-1])
        self._waiting = self._waiting.filter(pc.invert(ready))
        return self._rows(taken), taken.column("known").to_numpy()

    def take_all(self) -> pa.RecordBatch:
        """All of them as rows, in the order in which they happen."""
        taken, self._waiting = _in_order(self._waiting, _WAITING.names[1:-1]), _WAITING.empty_table()
        return self._rows(taken)

    def __len__(self) -> int:
        return int(self._waiting.num_rows)

    def _rows(self, events: pa.Table) -> pa.RecordBatch:
        """The columns of events alone: all others are null."""
        columns = {EVENT: events.column("event"), TIME: events.column("t")}
        if self.feed.columns[VALUE] is ColumnType.FLOAT:
            columns[VALUE] = events.column("value")
        for name, column in zip((ENTITY, *ENTITIES), _elements(events.column("entities")), strict=False):
            if name == ENTITY or self.feed.columns[name] is ColumnType.STRING:
                columns[name] = column
        return pa.RecordBatch.from_arrays([_one_array(column) for column in columns.values()], names=list(columns))

    def dump(self) -> bytes:
        parts = {source.source.event: table_bytes(source.open) for source in self.sources}
        return pack({}, {"waiting": table_bytes(self._waiting), **{f"open {event}": data for event, data in parts.items()}})

    def restore(self, data: bytes) -> None:
        """Continues from a dumped state."""
        _, parts = unpack(data)
        self._waiting = table_from(parts["waiting"])
        for source in self.sources:
            source.open = table_from(parts[f"open {source.source.event}"])


class _SourceAnswers:
    """The answers of one source. For a query that asserts an interval again when it ends, the
    starts of open intervals are kept."""

    def __init__(self, source: Source, specification: Any, needs_entity: bool) -> None:
        self.source, self.needs_entity = source, needs_entity
        self._known = known_at(specification, source.at)
        self._begins_once = source.at == "start" and revises(specification)
        self._has_value = not (source.at == "start" and family_of(specification).is_revised)
        self.open = _OPEN.empty_table()

    def events(self, changes: pa.Table) -> pa.Table:
        source = self.source
        mine = pc.and_(pc.equal(changes.column("query"), source.query), pc.equal(changes.column("kind"), source.kind))
        mine = pc.and_(mine, pc.greater(changes.column("weight"), 0))
        if source.at == "end":
            mine = pc.and_(mine, pc.is_valid(changes.column("end")))
        rows = changes.filter(mine)
        if self.needs_entity:
            rows = rows.filter(_has_entity(rows))
        if self._begins_once:
            rows = rows.filter(pa.array(self._fresh(rows)))
        count = rows.num_rows
        columns = {
            "known": self._known(rows),
            "t": rows.column(source.at),
            "query": _repeated(source.name, count),
            "entities": rows.column("entities"),
            "kind": _repeated(source.kind, count),
            "start": rows.column("start"),
            "end": pc.fill_null(rows.column("end"), _NULL_LAST),
            "event": _repeated(source.event, count),
            "value": rows.column("score") if self._has_value else pa.nulls(count, pa.float64()),
        }
        return pa.table(columns, schema=_WAITING)

    def _fresh(self, rows: pa.Table) -> Bools:
        """Which of these intervals begin now: an interval begins once, and is not
        asserted again after its end."""
        before = self.open.num_rows
        both = pa.concat_tables([self.open, pa.table([rows.column(name) for name in _OPEN.names], schema=_OPEN)])
        is_open = np.concatenate([np.ones(before, np.bool_), pc.is_null(rows.column("end")).to_numpy()])
        interval = _groups([pc.list_value_length(both.column("entities")), *_elements(both.column("entities")), both.column("start")])
        order = np.argsort(interval, kind="stable")
        again = np.concatenate([[False], np.diff(interval[order]) == 0])[: len(order)]
        fresh = np.ones(len(order), np.bool_)
        fresh[order[1:]] = ~(again[1:] & is_open[order[:-1]])
        is_last = np.concatenate([~again[1:], [True]])[: len(order)]
        self.open = both.take(pa.array(order[is_last & is_open[order]]))
        return fresh[before:]


def _has_entity(rows: pa.Table) -> pa.Array:
    first, *_ = *_elements(rows.column("entities")), pa.nulls(rows.num_rows)
    return pc.is_valid(first)


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _elements(lists: pa.ChunkedArray) -> list[pa.Array]:
    """The first ones, the second ones, ... as far as any list has them; null where a
    list has no such element."""
    whole = lists.combine_chunks()
    lengths = pc.list_value_length(whole).to_numpy(zero_copy_only=False)
    first, values = np.cumsum(lengths) - lengths, whole.flatten()
    return [values.take(pa.array(first + i, mask=lengths <= i)) for i in range(int(lengths.max(initial=0)))]


def _groups(columns: Sequence[Any]) -> Ints:
    """A number for each row, equal where all columns are."""
    groups = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = pc.fill_null(_one_array(column).dictionary_encode().indices, -1)
        both = groups * (len(groups) + 1) + codes.to_numpy(zero_copy_only=False)
        _, groups = np.unique(both, return_inverse=True)
    return groups


def _in_order(events: pa.Table, by: Sequence[str]) -> pa.Table:
    """Sorted by these columns; lists by their elements, the shorter of two that begin alike before
    the longer, a null like an empty name."""
    if events.num_rows < 2:
        return events
    keys: dict[str, Any] = {}
    for name in by:
        if name != "entities":
            keys[name] = events.column(name)
            continue
        lengths = pc.list_value_length(events.column(name))
        for i, column in enumerate(_elements(events.column(name))):
            keys[f"{name} {i}"] = pc.if_else(pc.greater(lengths, i), pc.fill_null(column, ""), pa.scalar(None, pa.string()))
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending", "at_start") for name in keys])
    return events.take(order)
