"""BMQ-Processor and RTMQ: all border and transition queries of a feed over one shared index."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.border_monitoring.crossing_events import CANDIDATES, CELLS, EVENTS, TUPLES, CrossingEvents, class_events, concatenated
from engine.border_monitoring.plan import BorderIndex, compile_index
from engine.border_monitoring.transitions import NAMES, Waiting, decide, refill
from engine.border_monitoring.tuples import LastTuples
from engine.model.batch import Batch
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Crs, Feed
from engine.operator import Operator, Output, RegisteredQuery, Stage

N = TypeVar("N", np.int64, np.float64)

_BORDER_KINDS = pa.array(["out", "in"])
_TRANSITION_KINDS = pa.array(NAMES)


@dataclass
class BorderState:
    """State of one partition.

    `last[c]` belongs to `index.classes[c]`; `since[i]`: `index.queries[i]` knows the events after this position of the log;
    `position`: the greatest seq seen.
    """

    last: list[LastTuples]
    waiting: Waiting
    since: npt.NDArray[np.int64]
    position: int = -1
    work: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, np.int64))


class BorderStage(Stage[BorderIndex, BorderState]):
    """The keyed stage: an entity's tuples in, its border and transition events out."""

    def initial(self, index: BorderIndex) -> BorderState:
        return BorderState(
            last=[_no_tuples(index, c) for c in range(len(index.classes))],
            waiting=Waiting.empty(len(index.ring_within)),
            since=np.full(len(index.queries), -1, np.int64),
        )

    def step(self, index: BorderIndex, state: BorderState, batch: Batch, watermark: int) -> Output[BorderState]:
        events = None
        if len(batch):
            geographic = index.feed.crs is Crs.GEOGRAPHIC
            found = [class_events(tuples, last, batch, geographic, state.work) for tuples, last in zip(index.classes, state.last, strict=True)]
            parts = [part for part in found if part is not None]
            events = concatenated(parts) if parts else None
            state.position = max(state.position, int(batch.seq.max()))
        stated = []
        if events is not None:
            stated.append(_border_changes(index, events, batch))
        if len(index.group_within):
            stated.append(_transition_changes(index, state, events, batch, watermark))
        return Output(state, concat(stated))

    def migrate(self, index: BorderIndex, parts: Sequence[tuple[BorderIndex, BorderState]]) -> BorderState:
        state = self.initial(index)
        state.position = max((part.position for _, part in parts), default=-1)
        known = {q.key: int(part.since[i]) for old, part in reversed(parts) for i, q in enumerate(old.queries)}
        state.since = np.array([known.get(query.key, state.position) for query in index.queries], np.int64)
        of_class = {tuples.key: last for tuples, last in zip(index.classes, state.last, strict=True)}
        for old, part in parts:
            for tuples, last in zip(old.classes, part.last, strict=True):
                if tuples.key in of_class:
                    of_class[tuples.key].take_later(last)
            state.work += part.work
        _take_waiting(index, state, parts)
        return state

    def dump(self, index: BorderIndex, state: BorderState) -> bytes:
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "since": state.since,
            "position": np.array([state.position]),
            "work": state.work,
        }
        for c, last in enumerate(state.last):
            arrays |= {f"last{c}_{name}": array for name, array in vars(last).items()}
        arrays |= {f"waiting_{name}": array for name, array in vars(state.waiting).items()}
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, **arrays)
            return file.getvalue()

    def load(self, index: BorderIndex, data: bytes) -> BorderState:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            last = [LastTuples(arrays[f"last{c}_values"], arrays[f"last{c}_t"], arrays[f"last{c}_seq"]) for c in range(len(index.classes))]
            waiting = Waiting(**{name: arrays[f"waiting_{name}"] for name in Waiting.__dataclass_fields__})
            return BorderState(last, waiting, arrays["since"], int(arrays["position"][0]), arrays["work"])

    def check(self, index: BorderIndex, state: BorderState) -> None:
        assert len(state.last) == len(index.classes)
        assert len(state.since) == len(index.queries)
        state.waiting.check(index.group_ring)
        for last in state.last:
            assert len(last.values) == len(last.t) == len(last.seq)
            assert int(last.seq.max(initial=-1)) <= state.position

    def counters(self, index: BorderIndex, state: BorderState) -> Mapping[str, int]:
        return {
            "tuples": int(state.work[TUPLES]),
            "cells_walked": int(state.work[CELLS]),
            "candidate_bounds": int(state.work[CANDIDATES]),
            "crossings": int(state.work[EVENTS]),
            "waiting": state.waiting.live,
            "index_bytes": index.nbytes,
            "events_kept": sum(last.kept for last in state.last) + state.waiting.live,
        }


class BorderOperator(Operator[BorderIndex]):
    """Families `border` ([BMQ] 3 to 5) and `transition` ([BMQ] 6)."""

    families: ClassVar[tuple[str, ...]] = ("border", "transition")
    keyed = BorderStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> BorderIndex:
        return compile_index(queries, feed)


def _no_tuples(index: BorderIndex, c: int) -> LastTuples:
    tuples = index.classes[c]
    return LastTuples.empty(len(tuples.columns) + (0 if tuples.of_regions else 2))


def _border_changes(index: BorderIndex, events: CrossingEvents, batch: Batch) -> pa.RecordBatch:
    """Answer rows of border queries, with the tuples on both sides as evidence."""
    through, all_ = np.flatnonzero(events.passing), np.flatnonzero(~events.passing)
    owner_all, entry_all = index.crossing_queries.spread(events.monitor[all_])
    owner_through, entry_through = index.passing_queries.spread(events.monitor[through])
    query = np.concatenate([index.crossing_queries.entries[entry_all], index.passing_queries.entries[entry_through]])
    e = np.concatenate([all_[owner_all], through[owner_through]])
    row = events.row[e]
    entity = batch.entity[row]
    evidence = Evidence(
        offsets=np.arange(len(e) + 1) * 2,
        entity=np.repeat(entity, 2),
        t=_interleaved(events.before_t[e], batch.t[row]),
        x=_interleaved(events.before_x[e], batch.x[row]),
        y=_interleaved(events.before_y[e], batch.y[row]),
        seq=_interleaved(events.before_seq[e], batch.seq[row]),
    )
    at = events.t[e]
    return changes(
        batch.entities,
        query=query,
        kind=_BORDER_KINDS.take(pa.array(events.inward[e])),
        entities=entity,
        start=at,
        end=at,
        evidence=evidence,
    )


def _interleaved(first: npt.NDArray[N], second: npt.NDArray[N]) -> npt.NDArray[N]:
    """first[0], second[0], first[1], ..."""
    return np.column_stack([first, second]).reshape(-1)


def _transition_changes(index: BorderIndex, state: BorderState, events: CrossingEvents | None, batch: Batch, watermark: int) -> pa.RecordBatch:
    """Answer rows of transition queries decided by these events and by the watermark."""
    columns = _grouped_events(index, events, batch)
    waiting = state.waiting
    waiting.reserve(len(columns[0]))
    group, kind, entity, times, seqs, places = decide(  # type: ignore[call-arg]
        *columns, watermark, index.group_within, index.group_ring, index.ring_within, index.group_wanted,
        waiting.key, waiting.inward, waiting.t, waiting.seq, waiting.x, waiting.y, waiting.next,
        waiting.table_key, waiting.table_slot, waiting.ring_head, waiting.ring_tail, waiting.meta,
    )  # fmt: skip
    fact, entry = index.group_queries.spread(group)
    query = index.group_queries.entries[entry]
    asked = (index.group_masks[entry] >> kind[fact] & 1).astype(np.bool_) & (seqs[fact, 0] > state.since[query])
    fact, query = fact[asked], query[asked]
    items = np.where(seqs[fact, 1] >= 0, 2, 1)
    shown = np.column_stack([np.ones(len(fact), np.bool_), items == 2]).reshape(-1)
    evidence = Evidence(
        offsets=np.concatenate([[0], np.cumsum(items)]),
        entity=np.repeat(entity[fact], items),
        t=times[fact, 2:].reshape(-1)[shown],
        x=places[fact, 0::2].reshape(-1)[shown],
        y=places[fact, 1::2].reshape(-1)[shown],
        seq=seqs[fact].reshape(-1)[shown],
    )
    return changes(
        batch.entities,
        query=query,
        kind=_TRANSITION_KINDS.take(pa.array(kind[fact])),
        entities=entity[fact],
        start=times[fact, 0],
        end=times[fact, 1],
        evidence=evidence,
    )


def _grouped_events(index: BorderIndex, events: CrossingEvents | None, batch: Batch) -> tuple[npt.NDArray[np.generic], ...]:
    """Columns of the events of monitors that have groups, once for each group: group, entity, inward, t, seq, x, y."""
    if events is None:
        none = np.empty(0, np.int64)
        return none.astype(np.int32), none.astype(np.int32), none.astype(np.int8), none, none, none.astype(np.float64), none.astype(np.float64)
    own = np.flatnonzero(~events.passing)
    owner, entry = index.monitor_groups.spread(events.monitor[own])
    e = own[owner]
    row = events.row[e]
    group = index.monitor_groups.entries[entry]
    return group, batch.entity[row], events.inward[e], events.t[e], batch.seq[row], batch.x[row], batch.y[row]


def _take_waiting(index: BorderIndex, state: BorderState, parts: Sequence[tuple[BorderIndex, BorderState]]) -> None:
    """Fill `state.waiting` with what the parts' groups that live on are waiting for, each event once."""
    numbers = {key: group for group, key in enumerate(index.group_keys)}
    names = ("key", "inward", "t", "seq", "x", "y")
    taken: dict[str, list[npt.NDArray[np.generic]]] = {name: [] for name in names}
    for old, part in parts:
        slots = part.waiting.unmet()
        renumbered = np.array([numbers.get(key, -1) for key in old.group_keys], np.int64)
        group = renumbered[part.waiting.key[slots] >> 32] if len(slots) else np.empty(0, np.int64)
        slots, group = slots[group >= 0], group[group >= 0]
        for name in names[1:]:
            taken[name].append(getattr(part.waiting, name)[slots])
        taken["key"].append(group << 32 | part.waiting.key[slots] & 0xFFFFFFFF)
    if not parts:
        return
    columns = {name: np.concatenate(arrays) for name, arrays in taken.items()}
    order = np.lexsort((columns["seq"], columns["key"]))
    keys = columns["key"][order]
    latest = order[np.append(keys[1:] != keys[:-1], True)] if len(order) else order
    latest = latest[np.lexsort((columns["seq"][latest], columns["t"][latest]))]
    state.waiting = w = Waiting.empty(len(index.ring_within), len(latest))
    refill(  # type: ignore[call-arg]
        *(columns[name][latest] for name in names), index.group_ring,
        w.key, w.inward, w.t, w.seq, w.x, w.y, w.next, w.table_key, w.table_slot, w.ring_head, w.ring_tail, w.meta,
    )  # fmt: skip
