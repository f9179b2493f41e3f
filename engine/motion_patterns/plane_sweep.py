"""The queries of one group with planes: stored samples, planes and columns (see
`plane_groups`, `sweep`).

Only samples (with the sequences that they hit) and matches are state. Planes, columns and cursors
are derived and made again after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.index.bits import how_many
from engine.motion_patterns import bit_planes, box_slabs, chains, compact_ids, distance_columns, sample_store, sliding
from engine.motion_patterns.batch_cache import BatchCache
from engine.motion_patterns.box_slabs import BoxSlabs
from engine.motion_patterns.compact_ids import CompactIds
from engine.motion_patterns.distances import distances_to
from engine.motion_patterns.evaluation import NEVER, EvaluationRequest, MatchEvents
from engine.motion_patterns.plan import MotionIndex
from engine.motion_patterns.plane_groups import PlaneGroup, SequenceKey
from engine.motion_patterns.structure import Arrays, Structure
from engine.motion_patterns.sweep import advance
from engine.motion_patterns.windows import GroupState, WindowMoves, move

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_WORD = 64
_FEW = 4096
"""The arrays of this many compact ids fit into the caches."""
_REST = 4
"""Renumbering is considered again after this many times as many new samples as are stored.
Renumbering takes a seventh of the time that these take."""
_VACANT = 4
"""Entities are renumbered if there are more than this many times as many compact ids
as entities with samples."""


class PlaneSweep(Structure):
    """One group's samples and answers. `holds[q, word]`: a bit for each entity that matches, by the
    group's numbers of its queries.

    All these arrays are indexed by `compact_ids`. If every sample is stored, `compact_ids` is
    null and they are indexed by the entities' numbers. Renumbering is considered when sample
    number `looks_at` has come.
    """

    def __init__(self, index: MotionIndex, group: PlaneGroup) -> None:
        super().__init__()
        self.index, self.group = index, group
        self.forced = NEVER
        self.compact_ids, self.looks_at = None if group.keeps_all else compact_ids.no_ids(), 0
        sequences, series = len(group.sequences), len(group.sweep.sequence)
        self.store = sample_store.no_samples(len(group.measured), 0)
        self.planes = bit_planes.no_planes(sequences, group.slots, series, 0)
        self.columns = distance_columns.no_columns(len(group.measures.start), group.column_slots, 0)
        self.chains = chains.no_chains(len(group.queries), 0)
        self.holds = np.zeros((len(group.queries), 0), np.uint64)

    def take(self, cache: BatchCache) -> None:
        self._make_room(cache.entities)
        tail = int(self.store.bounds[1])
        if self.group.slabs is not None:
            self._take_boxes(self.group.slabs, cache)
        else:
            self._take_regions(cache)
        self._number_samples(tail)
        if self.compact_ids is not None and self.store.bounds[1] >= self.looks_at:
            self._consider_renumbering(self.compact_ids)

    def _take_boxes(self, slabs: BoxSlabs, cache: BatchCache) -> None:
        """`take` if only samples in a few boxes are stored."""
        batch = cache.batch
        x, y = cache.places(self.group.where)
        rows = (x, y, batch.t, batch.seq, batch.entity)
        begin, hits = box_slabs.take(0, rows, slabs.arrays, self.store)
        self.work.index_points += hits
        while begin < len(x):
            self.store = sample_store.with_room(self.store, min(box_slabs.BLOCK, len(x) - begin))
            begin, hits = box_slabs.take(begin, rows, slabs.arrays, self.store)
            self.work.index_points += hits

    def _take_regions(self, cache: BatchCache) -> None:
        """`take` by the grid."""
        group, batch = self.group, cache.batch
        x, y = cache.places(group.where)
        word = np.full(len(x), group.bits.always, np.uint64)
        if group.grid is not None:
            _mark(word, *cache.inside(group.where, group.grid), group.bits.regions, group.bits.holds, group.bits.misses)
        rows = np.flatnonzero(~(np.isnan(x) | np.isnan(y)) if group.keeps_all else word).astype(np.int32)
        self.store = sample_store.with_room(self.store, len(rows))
        tail = int(self.store.bounds[1])
        sample_store.append(self.store, rows, batch.t, batch.seq, batch.x, batch.y, batch.entity, word[rows])
        self._measure(np.arange(tail, tail + len(rows)))
        self.work.index_points += int(_count(word, rows)) + len(rows) * len(group.measures.start)

    def _measure(self, numbers: Ints) -> None:
        """Writes the distances of stored samples from the targets that no kernel computes."""
        place = numbers & (len(self.store.t) - 1)
        for column, target in enumerate(self.group.measured):
            border = self.index.border(target)
            self.store.measured[column, place] = distances_to(target, self.store.x[place], self.store.y[place], border)

    def _make_room(self, entities: int) -> None:
        """Makes room for entities numbered below `entities`."""
        if self.compact_ids is not None:
            self.compact_ids = compact_ids.with_entities(self.compact_ids, entities)
        elif entities > self._room:
            self._widen(entities)

    @property
    def _room(self) -> int:
        """The number of entities that have room for a bit."""
        return self.holds.shape[1] * _WORD

    def _widen(self, entities: int) -> None:
        """Makes room for the bits of at least `entities` entities; the room grows by doubling."""
        words = max(2 * self.holds.shape[1], -(-entities // _WORD))
        if self.group.linked:
            self.store = sample_store.with_entities(self.store, words * _WORD)
            self.columns = distance_columns.with_entities(self.columns, words * _WORD)
        self.planes = bit_planes.with_words(self.planes, words)
        self.chains = chains.no_chains(len(self.holds), words if len(self.group.sweep.chain) else 0)
        self.holds = np.hstack([self.holds, np.zeros((len(self.holds), words - self.holds.shape[1]), np.uint64)])

    def _number_samples(self, first: int) -> None:
        """Replaces the entity numbers of the stored samples from number
        `first` on by compact ids."""
        self._assign(self.store.entity, first, int(self.store.bounds[1]), len(self.store.t) - 1)

    def _assign(self, entity: npt.NDArray[np.int32], first: int, stop: int, mask: int) -> None:
        """Replaces the entities at the indexes `number & mask` by their compact ids."""
        if self.compact_ids is not None:
            compact_ids.assign(self.compact_ids, entity, first, stop, mask)
            if self.compact_ids.taken[0] > self._room:
                self._widen(int(self.compact_ids.taken[0]))

    def _consider_renumbering(self, now: CompactIds) -> None:
        """Renumbers entities if too many compact ids have no samples."""
        left, tail = self.store.bounds.tolist()
        self.looks_at = tail + _REST * (tail - left)
        if now.taken[0] < _FEW:
            return
        in_use = compact_ids.with_samples(now, self.store)
        if len(in_use) > _VACANT * np.count_nonzero(in_use):
            self._renumber(now, in_use)

    def _renumber(self, now: CompactIds, in_use: npt.NDArray[np.bool_]) -> None:
        """Gives new ids to the entities marked in `in_use` only; arrays
        indexed by id are made again."""
        query, entity = self.held()
        self.compact_ids, moved = compact_ids.renumbered(now, in_use)
        compact_ids.change(self.store, moved)
        words = -(-int(self.compact_ids.taken[0]) // _WORD)
        self.planes = bit_planes.emptied(self.planes, words)
        bit_planes.fill_again(self.store, self.planes, self.group.sweep.sequence, words)
        self.chains = chains.no_chains(len(self.holds), words if len(self.group.sweep.chain) else 0)
        self.holds = np.zeros((len(self.holds), words), np.uint64)
        self.hold(query, entity)

    def advance(self, last: int, entities: int, rank: Ints) -> MatchEvents:
        group = self.group
        entities = min(entities, self._room) if self.compact_ids is None else int(self.compact_ids.taken[0])
        events: MatchEvents
        events, work = advance(
            self._group_state(),
            self.chains,
            self.holds,
            group.queries,
            EvaluationRequest(last, self.forced, entities, rank, self.index.widest),
        )
        if self.forced != NEVER and (self.forced // group.every + 1) * group.every <= last:
            self.forced = NEVER
        entered, left, evaluations, samples_read = work.tolist()
        self.work.positive_updates += entered
        self.work.negative_updates += left
        self.work.evaluations += evaluations
        self.work.samples_read += samples_read
        return events if self.compact_ids is None else events._replace(entity=self._entities_of(events.entity))

    def _group_state(self) -> GroupState:
        return GroupState(self.group.sweep, self.group.measures, self.store, self.planes, self.columns)

    def _ids_of(self, entity: Ints) -> npt.NDArray[np.int32]:
        compact_id = entity.astype(np.int32)
        self._assign(compact_id, 0, len(compact_id), -1)
        return compact_id

    def _entities_of(self, compact_id: npt.NDArray[Any]) -> Ints:
        return (compact_id if self.compact_ids is None else self.compact_ids.entity[compact_id]).astype(np.int64)

    def force(self, after: int) -> None:
        self.forced = after

    def held(self) -> tuple[Ints, Ints]:
        bits = np.unpackbits(self.holds.view(np.uint8), axis=1, bitorder="little")
        query, compact_id = np.nonzero(bits)
        return self.group.queries[query], self._entities_of(compact_id)

    def hold(self, query: Ints, entity: Ints) -> None:
        for q, number in enumerate(self.group.queries):
            ids = self._ids_of(entity[query == number])
            np.bitwise_or.at(self.holds[q], ids // _WORD, np.uint64(1) << (ids % _WORD).astype(np.uint64))

    def dump(self) -> Arrays:
        query, entity = self.held()
        return {
            "entities": np.array([self._numbered]),
            "forced": np.array([self.forced]),
            "held": np.vstack([query, entity]),
            **{f"sample_{name}": column for name, column in self._samples().items()},
        }

    @property
    def _numbered(self) -> int:
        """Upper bound (exclusive) of the entity numbers."""
        return self._room if self.compact_ids is None else len(self.compact_ids.of)

    def _samples(self) -> Arrays:
        """The stored samples, with entity numbers."""
        columns = sample_store.live(self.store)
        return columns | {"entity": self._entities_of(columns["entity"]).astype(np.int32)}

    @classmethod
    def load(cls, index: MotionIndex, group: PlaneGroup, arrays: Arrays, done: int | None) -> PlaneSweep:
        """The inverse of `dump`, for an equal index with every evaluation
        time up to `done` evaluated."""
        state = cls(index, group)
        state._make_room(int(arrays["entities"][0]))
        state._restore({name: arrays[f"sample_{name}"] for name in sample_store.COLUMNS}, done)
        state.hold(*arrays["held"])
        state.forced = int(arrays["forced"][0])
        return state

    @classmethod
    def merged(cls, index: MotionIndex, group: PlaneGroup, parts: Sequence[PlaneSweep], done: int | None) -> PlaneSweep:
        """The samples of all `parts` that the group needs; `parts` are of groups with an equal
        key. No query matches yet."""
        state = cls(index, group)
        state._make_room(max((part._numbered for part in parts), default=0))
        live_samples = [part._samples() for part in parts]
        words = [_translated(live["word"], part.group.sequences, group.sequences) for part, live in zip(parts, live_samples, strict=True)]
        columns = _united(live_samples, words)
        kept = np.full(len(columns["t"]), True) if group.keeps_all else columns["word"] != 0
        if done is not None:
            kept &= columns["t"] > done // group.every * group.every - group.reach
        state._restore({name: column[kept] for name, column in columns.items()}, done)
        return state

    def _restore(self, columns: Arrays, done: int | None) -> None:
        """Restores the samples, numbered from 0, and the windows as of the
        last evaluation up to `done`."""
        count = len(columns["t"])
        self.store = sample_store.with_room(self.store, count)
        sample_store.append(self.store, np.arange(count, dtype=np.int32), *(columns[name] for name in sample_store.COLUMNS))
        self._measure(np.arange(count))
        self._number_samples(0)
        if done is not None:
            group, entities = self.group, self._room
            series = len(group.sweep.sequence)
            moves = WindowMoves(np.empty(series, np.bool_), np.empty(len(group.measures.start), np.bool_), np.empty(series, np.int64))
            at = done // group.every * group.every
            move(self._group_state(), at, entities, True, moves, np.zeros(4, np.int64))

    def kept(self) -> int:
        return int(self.store.bounds[1] - self.store.bounds[0])

    def check(self, done: int | None) -> None:
        bit_planes.check(self.store, self.planes)
        sliding.check(self.planes, self.group.sweep.sequence)
        columns = sample_store.live(self.store)
        assert (np.diff(columns["t"]) >= 0).all()
        if self.compact_ids is not None:
            assert (self.compact_ids.of[self.compact_ids.entity[: self.compact_ids.taken[0]]] == np.arange(self.compact_ids.taken[0])).all()
            assert np.count_nonzero(self.compact_ids.of >= 0) == self.compact_ids.taken[0] <= self._room
        if done is not None and self.kept():
            # Memory is bounded by the longest window: a sample is removed at the first
            # evaluation after it has left.
            assert int(columns["t"][0]) + self.group.reach > done - self.group.every


def _translated(word: npt.NDArray[Any], sequences: Sequence[SequenceKey], wanted: Sequence[SequenceKey]) -> Words:
    """Words with the bits of `sequences`, translated to the bits of the `wanted` sequences."""
    place = {key: p for p, key in enumerate(wanted)}
    bits = np.zeros(len(word), np.uint64)
    for p, key in enumerate(sequences):
        if key in place:
            bits |= (word >> np.uint64(p) & np.uint64(1)) << np.uint64(place[key])
    return bits


def _united(live_samples: Sequence[Arrays], words: Sequence[Words]) -> Arrays:
    """Samples of several stores, each once with all bits of its `words`, in order of (t, seq)."""
    live_samples = [sample_store.live(sample_store.no_samples(0, 0)), *live_samples]
    every = {name: np.concatenate([live[name] for live in live_samples]) for name in sample_store.COLUMNS}
    _, first, inverse = np.unique(every["seq"], return_index=True, return_inverse=True)
    word = np.zeros(len(first), np.uint64)
    np.bitwise_or.at(word, inverse.reshape(-1), np.concatenate([np.empty(0, np.uint64), *words]))
    order = np.lexsort((every["seq"][first], every["t"][first]))
    return {name: column[first[order]] for name, column in every.items()} | {"word": word[order]}


@njit(cache=True, nogil=True)
def _mark(word, first, at, rows, regions, holds, misses):  # type: ignore[no-untyped-def]
    """Sets the bits `holds` and clears the bits `misses` in the words of rows in `regions`
    (by region as in `RegionSamples`)."""
    for i in range(len(regions)):
        for k in range(first[regions[i]], first[regions[i] + 1]):
            r = rows[at[k]]
            word[r] = (word[r] | holds[i]) & ~misses[i]


@njit(cache=True, nogil=True)
def _count(word, rows):  # type: ignore[no-untyped-def]
    """The number of bits in the rows' words."""
    bits = np.uint64(0)
    for r in rows:
        bits += how_many(word[r])
    return bits
