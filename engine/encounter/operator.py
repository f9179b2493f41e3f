"""Encounters: the keyed stage decides places, the relational stage finds each query's pairs by
cells and time. Both keep each query's state separately, by its position in the index. All places of
a query are in one partition, because a pair moves through space during a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.encounter.meetings import MOST_PAIRS, meetings
from engine.encounter.places import (
    FIRST_ROLE,
    OUTSIDE,
    SECOND_ROLE,
    WAITING,
    InputTuples,
    LastTuples,
    PlaceParameters,
    Places,
    decided_places,
    no_tuples,
)
from engine.encounter.runs import Runs, extended, no_runs, runs_of
from engine.encounter.specification import EncounterSpecification
from engine.model.arrays import pack_arrays, unpack_arrays
from engine.model.batch import ENTITY, SEQ, TIME, Batch, EntityDictionary, X, Y
from engine.model.changes import Evidence, changes, concat
from engine.model.feed import Crs, Feed
from engine.model.messages import Message
from engine.operator import ROUTE, Operator, Output, QueryStopped, RegisteredQuery, Stage, states_by_query

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
NEVER = 2**62


@dataclass(frozen=True)
class EncounterIndex:
    """The queries and their routes."""

    queries: tuple[RegisteredQuery, ...]
    routes: Ints
    feed: Feed

    @property
    def geographic(self) -> bool:
        return self.feed.crs is Crs.GEOGRAPHIC

    @property
    def specifications(self) -> Iterator[EncounterSpecification]:
        return (query.specification for query in self.queries)


@dataclass
class PlaceState:
    """By query, the last tuples of a partition's entities; and work counters."""

    queries: list[LastTuples]
    tuples: int = 0
    places: int = 0


class PlaceStage(Stage[EncounterIndex, PlaceState]):
    """The keyed stage: its input is an entity's tuples, its output the entity's places at
    the multiples of `every`."""

    def initial(self, index: EncounterIndex) -> PlaceState:
        return PlaceState([no_tuples(0) for _ in index.queries])

    def step(self, index: EncounterIndex, state: PlaceState, batch: Batch, watermark: int) -> Output[PlaceState]:
        emitted = []
        for q, specification in enumerate(index.specifications):
            rows = np.flatnonzero(specification.where.mask(batch) & ~np.isnan(batch.x))
            state.queries[q] = last = _reserved(state.queries[q], int(batch.entity.max(initial=-1)) + 1)
            bits = _roles(specification, batch)[rows]
            tuples = InputTuples(batch.entity[rows], batch.t[rows], batch.seq[rows], batch.x[rows], batch.y[rows], bits)
            parameters = PlaceParameters(specification.every, specification.gap, specification.interpolated, index.geographic)
            places = Places(*decided_places(tuples, last, parameters, watermark))
            state.tuples += len(rows)
            state.places += len(places.at)
            if len(places.at):
                emitted.append(_rows(q, index.routes[q], batch.entities, _with_region(specification, places)))
        return Output(state, emitted=pa.concat_batches(emitted) if emitted else None)

    def migrate(self, index: EncounterIndex, parts: Sequence[tuple[EncounterIndex, PlaceState]]) -> PlaceState:
        known = states_by_query((old.queries, state.queries) for old, state in parts)
        queries = [known.get(query.key, no_tuples(0)) for query in index.queries]
        return PlaceState(queries, sum(state.tuples for _, state in parts), sum(state.places for _, state in parts))

    def dump(self, index: EncounterIndex, state: PlaceState) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {"work": np.array([state.tuples, state.places])}
        for q, last in enumerate(state.queries):
            arrays |= {f"{q} {name}": column for name, column in last._asdict().items()}
        return pack_arrays(arrays)

    def load(self, index: EncounterIndex, data: bytes) -> PlaceState:
        arrays = unpack_arrays(data)
        lasts = [LastTuples._make(arrays[f"{q} {name}"] for name in LastTuples._fields) for q in range(len(index.queries))]
        return PlaceState(lasts, *arrays["work"].tolist())

    def check(self, index: EncounterIndex, state: PlaceState) -> None:
        assert len(state.queries) == len(index.queries)
        for specification, last in zip(index.specifications, state.queries, strict=True):
            known = last.seq >= 0
            assert (last.next_t[known] >= last.t[known]).all()
            assert (last.next_t[known] % specification.every == 0).all()

    def counters(self, index: EncounterIndex, state: PlaceState) -> Mapping[str, int]:
        kept = sum(int((last.seq >= 0).sum()) for last in state.queries)
        return {"tuples_taken": state.tuples, "places_decided": state.places, "events_kept": kept}


def _reserved(last: LastTuples, entities: int) -> LastTuples:
    """The same tuples with room for this many entities."""
    if entities <= len(last.t):
        return last
    wider = no_tuples(max(entities, 2 * len(last.t)))
    for name in LastTuples._fields:
        getattr(wider, name)[: len(last.t)] = getattr(last, name)
    return wider


def _roles(specification: EncounterSpecification, batch: Batch) -> npt.NDArray[np.int8]:
    first = specification.a.mask(batch)
    second = first if specification.symmetric else specification.b.mask(batch)
    bits: npt.NDArray[np.int8] = (first * FIRST_ROLE + second * SECOND_ROLE).astype(np.int8)
    return bits


def _with_region(specification: EncounterSpecification, places: Places) -> Places:
    """Sets the bit OUTSIDE of places outside the region."""
    if specification.inside is None:
        return places
    outside = ~specification.inside.contains(places.px, places.py) & (places.bits & WAITING == 0)
    return places._replace(bits=(places.bits | outside * OUTSIDE).astype(np.int8))


def _rows(query: int, route: int, dictionary: EntityDictionary, places: Places) -> pa.RecordBatch:
    """Places as rows for the relational stage."""
    n = len(places.at)
    columns = {
        TIME: pa.array(places.decided),
        SEQ: pa.array(places.seq),
        ROUTE: pa.array(np.full(n, route), pa.int64()),
        "query": pa.array(np.full(n, query), pa.int32()),
        "at": pa.array(places.at),
        ENTITY: dictionary.decode(places.entity),
        "bits": pa.array(places.bits),
        "px": pa.array(places.px),
        "py": pa.array(places.py),
        "own": pa.array(places.t),
        X: pa.array(places.x),
        Y: pa.array(places.y),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


class KeptPlaces(NamedTuple):
    """Decided places that undecided ones may still meet."""

    at: Ints
    entity: npt.NDArray[np.int32]
    bits: npt.NDArray[np.int8]
    px: npt.NDArray[np.float64]
    py: npt.NDArray[np.float64]
    own: Ints
    seq: Ints
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]

    def take(self, rows: Any) -> KeptPlaces:
        return KeptPlaces._make(column[rows] for column in self)


_KINDS = (np.int64, np.int32, np.int8, np.float64, np.float64, np.int64, np.int64, np.float64, np.float64)


@dataclass
class UndecidedEntities:
    """By entity code, the T from which on its places are undecided (NEVER: none is), and the
    roles that they will have."""

    since: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    bits: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))

    def reserve(self, entities: int) -> None:
        if entities > len(self.since):
            more = max(entities, 2 * len(self.since)) - len(self.since)
            self.since = np.concatenate([self.since, np.full(more, NEVER)])
            self.bits = np.concatenate([self.bits, np.zeros(more, np.int8)])


@dataclass
class PairState:
    """State of one query: places at each T that is not decided for all entities, the waiting
    entities, and the open runs, one for each pair."""

    kept: KeptPlaces = field(default_factory=lambda: KeptPlaces._make(np.empty(0, kind) for kind in _KINDS))
    waiting: UndecidedEntities = field(default_factory=UndecidedEntities)
    open: Runs = field(default_factory=no_runs)


@dataclass
class MeetingState:
    """By query its pairs; and work counters."""

    queries: list[PairState]
    places: int = 0
    meetings: int = 0


class MeetingStage(Stage[EncounterIndex, MeetingState]):
    """The relational stage: its input is places, its output runs of meetings."""

    def initial(self, index: EncounterIndex) -> MeetingState:
        return MeetingState([PairState() for _ in index.queries])

    def step(self, index: EncounterIndex, state: MeetingState, batch: Batch, watermark: int) -> Output[MeetingState]:
        asserted = []
        for q, (specification, rows) in enumerate(zip(index.specifications, _by_query(batch, len(index.queries)), strict=True)):
            pairs = state.queries[q]
            if not len(rows) and not len(pairs.open.pair):
                continue
            met = _met(index, q, pairs, batch, rows)
            state.places += len(rows)
            state.meetings += len(met.pair)
            asserted.append(_advanced(q, specification, pairs, met, watermark, batch.entities))
        return Output(state, concat(asserted))

    def migrate(self, index: EncounterIndex, parts: Sequence[tuple[EncounterIndex, MeetingState]]) -> MeetingState:
        known = states_by_query((old.queries, state.queries) for old, state in parts)
        queries = [known.get(query.key) or PairState() for query in index.queries]
        return MeetingState(queries, sum(state.places for _, state in parts), sum(state.meetings for _, state in parts))

    def dump(self, index: EncounterIndex, state: MeetingState) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {"work": np.array([state.places, state.meetings])}
        for q, pairs in enumerate(state.queries):
            arrays |= {f"{q} kept {name}": column for name, column in pairs.kept._asdict().items()}
            arrays |= {f"{q} open {name}": column for name, column in pairs.open._asdict().items()}
            arrays |= {f"{q} since": pairs.waiting.since, f"{q} bits": pairs.waiting.bits}
        return pack_arrays(arrays)

    def load(self, index: EncounterIndex, data: bytes) -> MeetingState:
        arrays = unpack_arrays(data)
        queries = []
        for q in range(len(index.queries)):
            kept = KeptPlaces._make(arrays[f"{q} kept {name}"] for name in KeptPlaces._fields)
            runs = Runs._make(arrays[f"{q} open {name}"] for name in Runs._fields)
            queries.append(PairState(kept, UndecidedEntities(arrays[f"{q} since"], arrays[f"{q} bits"]), runs))
        return MeetingState(queries, *arrays["work"].tolist())

    def check(self, index: EncounterIndex, state: MeetingState) -> None:
        assert len(state.queries) == len(index.queries)
        for pairs in state.queries:
            assert (np.diff(pairs.open.pair) > 0).all()
            assert (pairs.open.first <= pairs.open.last).all()
            assert (pairs.kept.bits & WAITING == 0).all()

    def counters(self, index: EncounterIndex, state: MeetingState) -> Mapping[str, int]:
        kept = sum(len(pairs.kept.at) for pairs in state.queries)
        return {
            "places_received": state.places,
            "meetings": state.meetings,
            "places_kept": kept,
            "pairs_open": sum(len(p.open.pair) for p in state.queries),
        }


def _by_query(batch: Batch, queries: int) -> list[Ints]:
    """The rows of each query."""
    if not len(batch):
        return [np.empty(0, np.int64)] * queries
    query = batch.rows.column("query").to_numpy(zero_copy_only=False)
    order = np.argsort(query, kind="stable")
    return np.split(order, np.searchsorted(query[order], np.arange(1, queries)))


def _met(index: EncounterIndex, q: int, pairs: PairState, batch: Batch, rows: Ints) -> Runs:
    """The meetings of a query's new places. Adds the places and the waiting entities to `pairs`."""
    specification: EncounterSpecification = index.queries[q].specification
    if not len(rows):
        return no_runs()
    names = ("at", ENTITY, "bits", "px", "py", "own", SEQ, X, Y)
    new_places = KeptPlaces._make(
        (batch.entity if name == ENTITY else batch.rows.column(name).to_numpy(zero_copy_only=False))[rows] for name in names
    )
    _wait(pairs.waiting, new_places)
    new_places = new_places.take(new_places.bits & WAITING == 0)
    before = len(pairs.kept.at)
    pairs.kept = kept = KeptPlaces._make(np.concatenate([old, new]) for old, new in zip(pairs.kept, new_places, strict=True))
    met = meetings(kept.at, kept.entity, kept.bits, kept.px, kept.py, before, specification.distance, specification.symmetric, index.geographic)
    if met is None:
        reason = Message(
            "more than {most:,} pairs are near each other at t = {time}: take a shorter distance, or roles that fewer satisfy",
            most=MOST_PAIRS,
            time=index.feed.moment(int(kept.at[-1])),
        )
        raise QueryStopped(index.queries[q].key, reason)
    sides = np.column_stack([met.one, met.other])
    pair = kept.entity[met.one].astype(np.int64) << 32 | kept.entity[met.other]
    return runs_of(pair, kept.at[met.one], met.distance, kept.own[sides], kept.seq[sides], kept.x[sides], kept.y[sides])


def _wait(waiting: UndecidedEntities, new_places: KeptPlaces) -> None:
    """Updates which entities wait, by each entity's last row."""
    waiting.reserve(int(new_places.entity.max()) + 1)
    since = np.where(new_places.bits & WAITING, new_places.at, NEVER)
    # Rows are in the order in which they were decided, so the last assignment of an entity wins.
    waiting.since[new_places.entity], waiting.bits[new_places.entity] = since, new_places.bits & ~WAITING


def _advanced(
    q: int, specification: EncounterSpecification, pairs: PairState, met: Runs, watermark: int, dictionary: EntityDictionary
) -> pa.RecordBatch:
    """The query's changes after new meetings, with all T before `watermark` decided."""
    runs, newest = extended(pairs.open, met, specification.every)
    following = runs.last + specification.every
    ended = ~newest | ((following < watermark) & _decided(pairs, runs.pair, following, specification.symmetric))
    waits = pairs.waiting.since
    least = int(waits.min(initial=NEVER))
    pairs.kept = pairs.kept.take(pairs.kept.at >= least)
    end = np.where(ended, following, runs.last)
    fits = end - runs.first >= specification.lasting
    sent = ~np.isnan(runs.sent)
    news = fits & (ended | ~sent | (runs.least != runs.sent) | (runs.seq != runs.sent_seq).any(axis=1))
    retracted = sent & news
    pairs.open = runs.as_sent(news).take(~ended)
    return _changes(q, specification, runs, retracted, news, ended, dictionary)


def _decided(pairs: PairState, pair: Ints, at: Ints, symmetric: bool) -> Bools:
    """Whether pairs without a known meeting at `at` are decided there: both places are
    decided, or one entity has none."""
    decided = np.ones(len(pair), np.bool_)
    if not (pairs.waiting.since < NEVER).any():
        return decided
    roles = (FIRST_ROLE, FIRST_ROLE if symmetric else SECOND_ROLE)
    waits, there = [], []
    for entity, role in zip((pair >> 32, pair & 0xFFFFFFFF), roles, strict=True):
        waiting = pairs.waiting.since[entity] <= at
        fits = (pairs.waiting.bits[entity] & role) != 0
        waits.append(waiting & fits)
        there.append(np.where(waiting, fits, _has_place(pairs.kept, at, entity, role)))
    blocked: Bools = (waits[0] | waits[1]) & there[0] & there[1]
    return ~blocked


_AT_ENTITY = np.dtype([("at", np.int64), ("entity", np.int64)])


def _key(at: Ints, entity: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(at, entity) as sortable values."""
    key = np.empty(len(at), _AT_ENTITY)
    key["at"], key["entity"] = at, entity
    return key


def _has_place(kept: KeptPlaces, at: Ints, entity: Ints, role: int) -> Bools:
    """Whether the kept places have one of the entity in the role at `at`."""
    has_role = kept.bits & role != 0
    order = np.lexsort((kept.entity[has_role], kept.at[has_role]))
    places = _key(kept.at[has_role][order], kept.entity[has_role][order])
    keys = _key(at, entity)
    found = np.searchsorted(places, keys)
    has_place = np.zeros(len(at), np.bool_)
    near = found < len(places)
    has_place[near] = places[found[near]] == keys[near]
    return has_place


def _changes(
    q: int, specification: EncounterSpecification, runs: Runs, retracted: Bools, asserted: Bools, ended: Bools, dictionary: EntityDictionary
) -> pa.RecordBatch:
    """The changes: first retractions of earlier assertions, then the new assertions."""
    gone, now = runs.take(retracted), runs.take(asserted)
    if not len(now.pair):
        return concat([])
    pair = np.concatenate([gone.pair, now.pair])
    t, seq = np.concatenate([gone.sent_t, now.t]), np.concatenate([gone.sent_seq, now.seq])
    x, y = np.concatenate([gone.sent_x, now.x]), np.concatenate([gone.sent_y, now.y])
    sides = np.column_stack([pair >> 32, pair & 0xFFFFFFFF])
    if specification.symmetric:
        swapped = pc.greater(dictionary.decode(sides[:, 0]), dictionary.decode(sides[:, 1])).to_numpy(zero_copy_only=False)
        sides, t, seq, x, y = (np.where(swapped[:, None], column[:, ::-1], column) for column in (sides, t, seq, x, y))
    n = len(pair)
    variable = pa.array(["a", "b"] * n, pa.string())
    evidence = Evidence(np.arange(n + 1) * 2, sides.reshape(-1), t.reshape(-1), x.reshape(-1), y.reshape(-1), seq.reshape(-1), variable)
    closed = np.concatenate([np.zeros(len(gone.pair), np.bool_), ended[asserted]])
    return changes(
        dictionary,
        query=np.full(n, q, np.int32),
        kind=pa.array(["met"] * n, pa.string()),
        entities=sides.reshape(-1),
        entity_offsets=np.arange(n + 1) * 2,
        start=np.concatenate([gone.first, now.first]),
        end=pa.array(np.concatenate([gone.last, now.last]) + specification.every, pa.int64(), mask=~closed),
        score=np.concatenate([gone.sent, now.least]),
        evidence=evidence,
        weight=np.concatenate([np.full(len(gone.pair), -1, np.int8), np.ones(len(now.pair), np.int8)]),
    )


class EncounterOperator(Operator[EncounterIndex]):
    """Family `encounter`."""

    families: ClassVar[tuple[str, ...]] = ("encounter",)
    keyed = PlaceStage()
    relational = MeetingStage()

    def compile(self, queries: Sequence[RegisteredQuery], feed: Feed) -> EncounterIndex:
        routes = np.array([query.route for query in queries], np.int64)
        return EncounterIndex(tuple(queries), routes, feed)
