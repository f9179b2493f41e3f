"""BMQ-Processor and RTMQ: all border and transition queries of a feed over one shared index."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.border_monitoring.crossing_events import CANDIDATES, CELLS, EVENTS, TUPLES, ClassState, CrossingEvents, class_events, concat_events
from engine.border_monitoring.plan import BorderIndex, TupleClass, compile_index, recompile_index
from engine.border_monitoring.transitions import NAMES, BorderEvents, Groups, Transition, WaitingEvents
from engine.border_monitoring.tuples import LastTuples
from engine.border_monitoring.watched_pairs import WatchedEvents, WatchedPairs, Watches, merge_by_time
from engine.model.batch import Batch, EntityDictionary
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Crs, Feed
from engine.operator import Operator, Output, RegisteredQuery, Stage

N = TypeVar("N", np.int64, np.float64)

_FORMAT = 2
_BORDER_KINDS = pa.array(["out", "in"])
_TRANSITION_KINDS = pa.array(NAMES)


@dataclass
class BorderState:
    """State of one partition.

    `classes[c]` belongs to `index.classes[c]`; `since[i]`: `index.queries[i]` knows the events
    after this position of the log; `position`: the greatest seq seen.
    """

    classes: list[ClassState]
    waiting: WaitingEvents
    since: npt.NDArray[np.int64]
    position: int = -1
    work: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, np.int64))


class BorderStage(Stage[BorderIndex, BorderState]):
    """The keyed stage: an entity's tuples in, its border and transition events out."""

    def initial(self, index: BorderIndex) -> BorderState:
        return BorderState(
            classes=[_empty_class_state(tuples) for tuples in index.classes],
            waiting=WaitingEvents.empty(len(index.ring_within)),
            since=np.full(len(index.queries), -1, np.int64),
        )

    def step(self, index: BorderIndex, state: BorderState, batch: Batch, watermark: int) -> Output[BorderState]:
        geographic = index.feed.crs is Crs.GEOGRAPHIC
        every = zip(index.classes, state.classes, strict=True)
        found = [class_events(tuples, own, batch, watermark, geographic, state.work) for tuples, own in every]
        parts = [part for part, _ in found if part is not None]
        events = concat_events(parts) if parts else None
        optional = [part for _, part in found if part is not None and len(part)]
        watched = merge_by_time(optional) if optional else None
        if len(batch):
            state.position = max(state.position, int(batch.seq.max()))
        asserted = []
        if events is not None:
            asserted.append(_border_changes(index, events, batch))
        if watched is not None:
            asserted.append(_watched_changes(index, state, watched, batch.entities))
        if len(index.group_within):
            asserted.append(_transition_changes(index, state, events, watched, batch, watermark))
        return Output(state, concat(asserted))

    def migrate(self, index: BorderIndex, parts: Sequence[tuple[BorderIndex, BorderState]]) -> BorderState:
        state = self.initial(index)
        state.position = max((part.position for _, part in parts), default=-1)
        state.since = _start_positions(index, state.position, parts)
        of_class = {tuples.key: own for tuples, own in zip(index.classes, state.classes, strict=True)}
        for old, part in parts:
            for tuples, own in zip(old.classes, part.classes, strict=True):
                mine = of_class.get(tuples.key)
                if mine is not None and len(mine.last.seq):
                    mine.last.take_later(own.last)
                elif mine is not None:
                    # The tuples of a million entities stay where they are.
                    mine.last = own.last
            state.work += part.work
        _take_pairs(index, state, parts)
        state.waiting = _waiting_of(index, parts)
        return state

    def dump(self, index: BorderIndex, state: BorderState) -> bytes:
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "since": state.since,
            "position": np.array([state.position]),
            "work": state.work,
            "format": np.array([_FORMAT]),
        }
        for c, (tuples, own) in enumerate(zip(index.classes, state.classes, strict=True)):
            arrays |= {f"last{c}_{name}": array for name, array in vars(own.last).items()}
            if tuples.watches is not None and own.pairs is not None:
                order = _watch_order(index, tuples.watches)
                pairs = _renumber(own.pairs, _ranks(order), own.pairs.begun[order])
                arrays |= {f"pairs{c}_{name}": array for name, array in vars(pairs).items()}
        arrays |= {f"waiting_{name}": array for name, array in _pending_columns(state.waiting, _ranks(index.group_order())).items()}
        with io.BytesIO() as file:
            np.savez(file, allow_pickle=False, **arrays)
            return file.getvalue()

    def load(self, index: BorderIndex, data: bytes) -> BorderState:
        """Numbers of groups and monitors in the bytes are those of an index compiled again. Raises
        ValueError for bytes of an older program."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            if "format" not in arrays or int(arrays["format"][0]) != _FORMAT:
                raise ValueError("the state of border queries was written by another version of this program")
            classes = [_load(arrays, c, index, tuples) for c, tuples in enumerate(index.classes)]
            columns = {name: arrays[f"waiting_{name}"] for name in _UNMET}
            columns["key"] = _with_numbers(columns["key"], index.group_order())
            waiting = _refill(index, columns)
            return BorderState(classes, waiting, arrays["since"], int(arrays["position"][0]), arrays["work"])

    def check(self, index: BorderIndex, state: BorderState) -> None:
        assert len(state.classes) == len(index.classes)
        assert len(state.since) == len(index.queries)
        state.waiting.check(index.group_ring)
        for tuples, own in zip(index.classes, state.classes, strict=True):
            assert len(own.last.values) == len(own.last.t) == len(own.last.seq)
            assert int(own.last.seq.max(initial=-1)) <= state.position
            assert (own.pairs is None) == (tuples.watches is None)
            if own.pairs is not None:
                own.pairs.check()

    def counters(self, index: BorderIndex, state: BorderState) -> Mapping[str, int]:
        return {
            "tuples": int(state.work[TUPLES]),
            "cells_walked": int(state.work[CELLS]),
            "candidate_bounds": int(state.work[CANDIDATES]),
            "crossings": int(state.work[EVENTS]),
            "waiting": state.waiting.live,
            "index_bytes": index.nbytes,
            "pairs_with_options": sum(len(own.pairs.key) for own in state.classes if own.pairs is not None),
            "events_kept": sum(own.last.count for own in state.classes) + state.waiting.live,
        }


class BorderOperator(Operator[BorderIndex]):
    """Families `border` ([BMQ] 3 to 5) and `transition` ([BMQ] 6)."""

    families: ClassVar[tuple[str, ...]] = ("border", "transition")
    keyed = BorderStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> BorderIndex:
        return compile_index(queries, feed)

    def recompile(self, old: BorderIndex, queries: Sequence[RegisteredQuery], feed: Feed) -> BorderIndex:
        return recompile_index(old, queries)


def _empty_class_state(tuples: TupleClass) -> ClassState:
    """State of a class before any tuple."""
    last = LastTuples.empty(len(tuples.columns) + (0 if tuples.has_regions else 2))
    return ClassState(last, None if tuples.watches is None else WatchedPairs(np.full(len(tuples.watches.each), -1, np.int64)))


def _load(arrays: Mapping[str, Any], c: int, index: BorderIndex, tuples: TupleClass) -> ClassState:
    last = LastTuples(**{name: arrays[f"last{c}_{name}"] for name in LastTuples.__dataclass_fields__})
    if tuples.watches is None:
        return ClassState(last, None)
    pairs = WatchedPairs(**{name: arrays[f"pairs{c}_{name}"] for name in WatchedPairs.__dataclass_fields__})
    order = _watch_order(index, tuples.watches)
    return ClassState(last, _renumber(pairs, order, pairs.begun[_ranks(order)]))


def _watch_order(index: BorderIndex, watches: Watches) -> npt.NDArray[np.int64]:
    """The indexes of the watches in the order in which the queries name them first."""
    order = watches.index_of(index.monitor_order().astype(np.int32))
    return order[order >= 0]


def _renumber(pairs: WatchedPairs, numbers: npt.NDArray[np.int64], begun: npt.NDArray[np.int64]) -> WatchedPairs:
    """The pairs with `numbers[w]` for watch w."""
    key = _with_numbers(pairs.key, numbers)
    ordered = pairs.take(np.argsort(key))
    ordered.key, ordered.begun = np.sort(key), begun
    return ordered


def _with_numbers(key: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Keys (number << 32 | entity) with other numbers."""
    changed: npt.NDArray[np.int64] = numbers[key >> 32] << 32 | key & 0xFFFFFFFF
    return changed


def _border_changes(index: BorderIndex, events: CrossingEvents, batch: Batch) -> pa.Table:
    """Answer rows of border queries, with the tuples on both sides as evidence."""
    e, entry = index.crossing_queries.spread(events.monitor)
    query = index.crossing_queries.entries[entry]
    row = events.row[e]
    entity = batch.entity[row]
    evidence = Evidence(
        offsets=np.arange(len(e) + 1) * 2,
        entity=np.repeat(entity, 2),
        t=_interleave(events.before_t[e], batch.t[row]),
        x=_interleave(events.before_x[e], batch.x[row]),
        y=_interleave(events.before_y[e], batch.y[row]),
        seq=_interleave(events.before_seq[e], batch.seq[row]),
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


def _watched_changes(index: BorderIndex, state: BorderState, events: WatchedEvents, dictionary: EntityDictionary) -> pa.Table:
    """Answer rows of border queries with options; an in at the first tuple has that
    one as its only evidence."""
    owner, entry = index.crossing_queries.spread(events.monitor)
    query = index.crossing_queries.entries[entry]
    # A query registered after its monitor ignores what was revealed before.
    own = events.seq[owner, 1] > state.since[query]
    e, query = owner[own], query[own]
    shown = np.column_stack([events.seq[e, 0] >= 0, np.ones(len(e), np.bool_)])
    items = shown.sum(axis=1)
    evidence = Evidence(
        offsets=np.concatenate([[0], np.cumsum(items)]),
        entity=np.repeat(events.entity[e], items),
        t=events.t[e][shown],
        x=events.x[e][shown],
        y=events.y[e][shown],
        seq=events.seq[e][shown],
    )
    kind = _BORDER_KINDS.take(pa.array(events.inward[e]))
    at = events.at[e]
    return changes(dictionary, query=query, kind=kind, entities=events.entity[e], start=at, end=at, evidence=evidence)


def _interleave(first: npt.NDArray[N], second: npt.NDArray[N]) -> npt.NDArray[N]:
    """first[0], second[0], first[1], ..."""
    return np.column_stack([first, second]).reshape(-1)


def _transition_changes(
    index: BorderIndex, state: BorderState, events: CrossingEvents | None, watched: WatchedEvents | None, batch: Batch, watermark: int
) -> pa.Table:
    """Answer rows of transition queries decided by these events and by the watermark."""
    columns = _grouped_events(index, events, batch)
    if watched is not None:
        columns = _merge_by_time(columns, _grouped_watched(index, watched))
    waiting = state.waiting
    waiting.reserve(len(columns[0]))
    groups = Groups(index.group_within, index.group_ring, index.group_wanted, index.ring_within)
    key, kind, first, second = waiting.decide(BorderEvents(*columns), watermark, groups)
    fact, entry = index.group_queries.spread(key >> 32)
    query = index.group_queries.entries[entry]
    began = waiting.events(first)
    asked = (index.group_masks[entry] >> kind[fact] & 1).astype(np.bool_) & (began["seq"][fact] > state.since[query])
    fact, query = fact[asked], query[asked]
    group, entity, kind, second = key[fact] >> 32, key[fact] & 0xFFFFFFFF, kind[fact], second[fact]
    began = {name: column[fact] for name, column in began.items()}
    # A stay has no second event: the row taken for it is left out again. Its types stay those of
    # the columns: a double does not hold every time.
    met = second >= 0
    _, _, _, event_t, event_seq, event_x, event_y = columns if len(columns[0]) else [np.zeros(1, column.dtype) for column in columns]
    shown = np.column_stack([np.ones(len(fact), np.bool_), met]).reshape(-1)
    evidence = Evidence(
        offsets=np.concatenate([[0], np.cumsum(1 + met)]),
        entity=np.repeat(entity, 1 + met),
        t=_evidence_times(index, group, kind, np.column_stack([began["t"], event_t[second]])).reshape(-1)[shown],
        x=np.column_stack([began["x"], event_x[second]]).reshape(-1)[shown],
        y=np.column_stack([began["y"], event_y[second]]).reshape(-1)[shown],
        seq=np.column_stack([began["seq"], event_seq[second]]).reshape(-1)[shown],
    )
    return changes(
        batch.entities,
        query=query,
        kind=_TRANSITION_KINDS.take(pa.array(kind)),
        entities=entity,
        start=began["t"],
        end=np.where(met, event_t[second], began["t"] + index.group_within[group]),
        evidence=evidence,
    )


def _grouped_events(index: BorderIndex, events: CrossingEvents | None, batch: Batch) -> tuple[npt.NDArray[np.generic], ...]:
    """Columns of the events of monitors that have groups, once for each group: group,
    entity, inward, t, seq, x, y."""
    if events is None:
        none = np.empty(0, np.int64)
        return none.astype(np.int32), none.astype(np.int32), none.astype(np.int8), none, none, none.astype(np.float64), none.astype(np.float64)
    own = np.flatnonzero(~events.passing)
    owner, entry = index.monitor_groups.spread(events.monitor[own])
    e = own[owner]
    row = events.row[e]
    group = index.monitor_groups.entries[entry]
    return group, batch.entity[row], events.inward[e], events.t[e], batch.seq[row], batch.x[row], batch.y[row]


def _grouped_watched(index: BorderIndex, events: WatchedEvents) -> tuple[npt.NDArray[np.generic], ...]:
    """The same columns for events of monitors with options; an in after a dwell has its own time,
    with the tuple that revealed it."""
    e, entry = index.monitor_groups.spread(events.monitor)
    group = index.monitor_groups.entries[entry]
    return group, events.entity[e], events.inward[e], events.at[e], events.seq[e, 1], events.x[e, 1], events.y[e, 1]


def _merge_by_time(one: tuple[npt.NDArray[np.generic], ...], other: tuple[npt.NDArray[np.generic], ...]) -> tuple[npt.NDArray[np.generic], ...]:
    """Both columns in the order of time (the fourth column)."""
    columns = [np.concatenate(pair) for pair in zip(one, other, strict=True)]
    order = np.argsort(columns[3], kind="stable")
    return tuple(column[order] for column in columns)


def _evidence_times(index: BorderIndex, group: npt.NDArray[Any], kind: npt.NDArray[Any], times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Times of the evidence (n, 2): an in counts its dwell after the tuple that revealed it."""
    dwell = index.group_dwell[group]
    first_in = np.isin(kind, (Transition.PASSED, Transition.STAYED_IN))
    later = np.column_stack([np.where(first_in, dwell, 0), np.where(kind == Transition.RETURNED, dwell, 0)])
    revealed: npt.NDArray[np.int64] = times - later
    return revealed


def _take_pairs(index: BorderIndex, state: BorderState, parts: Sequence[tuple[BorderIndex, BorderState]]) -> None:
    """Fills each class's pairs: a monitor takes its pairs from the part that has known it longest;
    one that no part knows begins here."""
    for tuples, own in zip(index.classes, state.classes, strict=True):
        if tuples.watches is None:
            continue
        begun = np.full(len(tuples.watches.monitors), np.iinfo(np.int64).max)
        source = np.full(len(begun), -1)
        known: list[tuple[WatchedPairs, npt.NDArray[np.int64]]] = []
        for old_index, part in parts:
            for old_class, old in zip(old_index.classes, part.classes, strict=True):
                if old_class.key == tuples.key and old_class.watches is not None and old.pairs is not None:
                    watch_index = tuples.watches.index_of(_monitor_numbers(index, old_index, old_class.watches.monitors))
                    mine = np.flatnonzero(watch_index >= 0)
                    earlier = mine[old.pairs.begun[mine] < begun[watch_index[mine]]]
                    begun[watch_index[earlier]], source[watch_index[earlier]] = old.pairs.begun[earlier], len(known)
                    known.append((old.pairs, watch_index))
        taken: list[WatchedPairs] = []
        for n, (pairs, watch_index) in enumerate(known):
            to = watch_index[pairs.key >> 32]
            chosen = np.flatnonzero((to >= 0) & (source[to] == n))
            moved = pairs.take(chosen)
            moved.key = to[chosen] << 32 | moved.key & 0xFFFFFFFF
            taken.append(moved)
        own.pairs = WatchedPairs(np.where(source >= 0, begun, state.position))
        if taken:
            columns = {name: np.concatenate([getattr(part, name) for part in taken]) for name in vars(taken[0]) if name != "begun"}
            own.pairs = WatchedPairs(own.pairs.begun, **columns).take(np.argsort(columns["key"]))


def _monitor_numbers(index: BorderIndex, old: BorderIndex, monitors: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The numbers in `index` of monitors of `old`; -1 for those that it does not have."""
    if index.before() is old or index is old:
        return monitors
    numbers = [index.registry.monitors.get(old.registry.keys[monitor], -1) for monitor in monitors.tolist()]
    return np.array(numbers, np.int32)


def _start_positions(index: BorderIndex, position: int, parts: Sequence[tuple[BorderIndex, BorderState]]) -> npt.NDArray[np.int64]:
    """From where on each query knows the stream: as in the first part that has it, else from
    here."""
    since = np.full(len(index.queries), position, np.int64)
    by_slot: npt.NDArray[np.int64] | None = None
    for old, part in reversed(parts):
        if index.before() is old or index is old:
            own = _query_positions(index)[old.slots]
        else:
            by_slot = _query_positions(index) if by_slot is None else by_slot
            slots = index.registry.slots
            found = np.fromiter((slots.get(query.key, -1) for query in old.queries), np.int64, len(old.queries))
            own = np.where(found >= 0, by_slot[found], -1)
        since[own[own >= 0]] = part.since[own >= 0]
    return since


def _query_positions(index: BorderIndex) -> npt.NDArray[np.int64]:
    """By slot, the position among the queries; -1 for freed slots, and one more -1."""
    by_slot = np.full(len(index.registry.monitor) + 1, -1, np.int64)
    by_slot[index.slots] = np.arange(len(index.slots))
    return by_slot


_UNMET = ("key", "inward", "t", "seq", "x", "y")


def _ranks(order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """By number its position in `order`, -1 for those that are not in it."""
    ranks = np.full(int(order.max(initial=-1)) + 1, -1, np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _pending_columns(waiting: WaitingEvents, numbers: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Columns of the waiting events by (t, seq), with the groups' new `numbers`; those of groups
    without one are left out."""
    slots = waiting.pending()
    events = waiting.events(slots)
    group = events["key"] >> 32
    group = np.where(group < len(numbers), numbers[np.minimum(group, len(numbers) - 1)], -1) if len(numbers) else np.full(len(slots), -1)
    events, group = {name: column[group >= 0] for name, column in events.items()}, group[group >= 0]
    return {name: events[name] for name in _UNMET} | {"key": group << 32 | events["key"] & 0xFFFFFFFF}


def _refill(index: BorderIndex, columns: Mapping[str, npt.NDArray[Any]]) -> WaitingEvents:
    """The waiting events, from columns by (t, seq)."""
    w = WaitingEvents.empty(len(index.ring_within))
    w.reserve(len(columns["key"]))
    w.refill(index.group_ring, tuple(columns[name] for name in _UNMET))
    return w


def _waiting_of(index: BorderIndex, parts: Sequence[tuple[BorderIndex, BorderState]]) -> WaitingEvents:
    """The waiting events of the parts' remaining groups, each once."""
    given = [_pending_columns(part.waiting, _group_numbers(index, old)) for old, part in parts]
    if not given:
        return WaitingEvents.empty(len(index.ring_within))
    columns = {name: np.concatenate([part[name] for part in given]) for name in _UNMET}
    if len(given) > 1:
        order = np.lexsort((columns["seq"], columns["key"]))
        keys = columns["key"][order]
        latest = order[np.append(keys[1:] != keys[:-1], True)] if len(order) else order
        latest = latest[np.lexsort((columns["seq"][latest], columns["t"][latest]))]
        columns = {name: column[latest] for name, column in columns.items()}
    return _refill(index, columns)


def _group_numbers(index: BorderIndex, old: BorderIndex) -> npt.NDArray[np.int64]:
    """By number of a group of `old`, the number of the same group in `index`, -1 for none."""
    if index.before() is old or index is old:
        kept = index.group_wanted[: len(old.group_wanted)] > 0
        return np.where(kept & (old.group_wanted > 0), np.arange(len(kept)), -1)
    numbers = np.full(len(old.group_wanted), -1, np.int64)
    registry, before = index.registry, old.registry
    for (monitor, within), group in before.groups.items():
        same = registry.monitors.get(before.keys[monitor])
        numbers[group] = -1 if same is None else registry.groups.get((same, within), -1)
    return numbers
