"""The queries of one group by planes: stored samples, hits, planes and columns (see `plane_groups`, `sweep`).

Only samples, hits and who matches are state; planes, columns and cursors follow from them and are made anew after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch
from engine.motion_patterns import bit_planes, box_slabs, distance_columns, sample_store
from engine.motion_patterns import hits as hit_ring
from engine.motion_patterns.box_slabs import BoxSlabs
from engine.motion_patterns.distances import distances_to
from engine.motion_patterns.evaluation import NEVER, Events
from engine.motion_patterns.plan import MotionIndex
from engine.motion_patterns.plane_groups import PlaneGroup, TrackKey
from engine.motion_patterns.region_grid import Pairs
from engine.motion_patterns.structure import Arrays, Structure
from engine.motion_patterns.sweep import advance
from engine.motion_patterns.windows import move

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_WORD = 64
_NOWHERE = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32))


class PlaneSweep(Structure):
    """One group's samples and answers. `holds[q, word]`: who matches, by the group's numbers of its queries."""

    def __init__(self, index: MotionIndex, group: PlaneGroup) -> None:
        super().__init__()
        self.index, self.group = index, group
        self.forced = NEVER
        tracks, series = len(group.tracks), len(group.sweep.track)
        self.store = sample_store.no_samples(len(group.measured), 0)
        self.hits = hit_ring.no_hits(0)
        self.planes = bit_planes.no_planes(tracks, group.slots, series, 0)
        self.columns = distance_columns.no_columns(len(group.measures.start), group.column_slots, 0)
        self.holds = np.zeros((len(group.queries), 0), np.uint64)

    def take(self, batch: Batch) -> None:
        group, entity = self.group, batch.entity
        self._make_room(len(batch.entities))
        x, y = batch.x, batch.y
        if group.where:
            # A sample that does not count is nowhere.
            x = np.where(group.where.mask(batch), x, np.nan)
        if group.slabs is not None:
            self._take_boxes(group.slabs, batch, x, y, entity)
            return
        region, at, rows = group.grid.pairs(x, y) if group.grid else _NOWHERE
        if group.keeps_all:
            near = rows
            rows = np.flatnonzero(~(np.isnan(x) | np.isnan(y))).astype(np.int32)
            at = np.searchsorted(rows, near).astype(np.int32)[at]
        self._append(batch, entity, rows)
        self._hit(region, at, len(rows))

    def _take_boxes(self, slabs: BoxSlabs, batch: Batch, x: Floats, y: Floats, entity: npt.NDArray[np.int32]) -> None:
        """As `take` where only samples in some of few boxes are kept."""
        before = int(self.hits.bounds[0])
        tracks = np.zeros(box_slabs.MOST_BOXES + 1, np.int32)
        tracks[: len(slabs.boxes)] = self.group.region_tracks[1]
        begin, samples, hits = 0, 0, 0
        while True:
            self.store = sample_store.with_room(self.store, samples)
            self.hits = hit_ring.with_room(self.hits, self.store, hits)
            begin, samples, hits = box_slabs.take(begin, x, y, batch.t, batch.seq, entity, *slabs.arrays, tracks, self.store, self.hits)
            if begin == len(x):
                break
        self.work.index_points += int(self.hits.bounds[0]) - before

    def _append(self, batch: Batch, entity: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]) -> None:
        """Store the batch's `rows`."""
        self.store = sample_store.with_room(self.store, len(rows))
        tail = int(self.store.bounds[1])
        sample_store.append(self.store, rows, batch.t, batch.seq, batch.x, batch.y, entity)
        self._measure(np.arange(tail, tail + len(rows)))
        self.work.index_points += len(rows) * len(self.group.measures.start)

    def _measure(self, numbers: Ints) -> None:
        """Distances of stored samples from the targets that no kernel measures."""
        place = numbers & (len(self.store.t) - 1)
        for column, target in enumerate(self.group.measured):
            border = self.index.border(target)
            self.store.measured[column, place] = distances_to(target, self.store.x[place], self.store.y[place], border)

    def _hit(self, region: npt.NDArray[np.int32], at: npt.NDArray[np.int32], count: int) -> None:
        """Hits of the last `count` samples, of which number `at[i]` lies in `region[i]`."""
        group, before = self.group, int(self.hits.bounds[0])
        most = len(region) * max(map(len, group.inside), default=0) + count * (sum(map(len, group.outside)) + len(group.every_sample))
        first = int(self.store.bounds[1]) - count
        self.hits = hit_ring.with_room(self.hits, self.store, most)
        hit_ring.add_hits(self.store, self.hits, first, at, region, *group.region_tracks, group.region_misses, group.sample_tracks)
        self.work.index_points += int(self.hits.bounds[0]) - before

    def _make_room(self, entities: int) -> None:
        """Doubles when there are more entities than bits."""
        words = self.holds.shape[1]
        if entities <= words * _WORD:
            return
        words = max(2 * words, -(-entities // _WORD))
        self.store = self.store._replace(head=np.concatenate([self.store.head, np.full(words * _WORD - len(self.store.head), -1, np.int64)]))
        self.planes = bit_planes.with_words(self.planes, words)
        self.columns = distance_columns.with_entities(self.columns, words * _WORD)
        self.holds = np.hstack([self.holds, np.zeros((len(self.holds), words - self.holds.shape[1]), np.uint64)])

    def advance(self, last: int, entities: int, rank: Ints) -> Events:
        group = self.group
        entities = min(entities, self.holds.shape[1] * _WORD)
        events, n, work = advance(
            group.sweep, group.measures, self.store, self.hits, self.planes, self.columns, self.holds, group.queries,
            last, self.forced, entities, rank, self.index.widest,
        )  # fmt: skip
        if self.forced != NEVER and (self.forced // group.every + 1) * group.every <= last:
            self.forced = NEVER
        self.work.positive_updates += int(work[0])
        self.work.negative_updates += int(work[1])
        self.work.evaluations += int(work[2])
        self.work.samples_read += int(work[3])
        return Events._make(column[:n] for column in events)

    def force(self, after: int) -> None:
        self.forced = after

    def held(self) -> tuple[Ints, Ints]:
        bits = np.unpackbits(self.holds.view(np.uint8), axis=1, bitorder="little")
        query, entity = np.nonzero(bits)
        return self.group.queries[query], entity.astype(np.int64)

    def hold(self, query: Ints, entity: Ints) -> None:
        for q, number in enumerate(self.group.queries):
            own = entity[query == number]
            np.bitwise_or.at(self.holds[q], own // _WORD, np.uint64(1) << (own % _WORD).astype(np.uint64))

    def dump(self) -> Arrays:
        counts, tracks = hit_ring.live(self.store, self.hits)
        query, entity = self.held()
        return {
            "counts": counts,
            "tracks": tracks,
            "entities": np.array([self.holds.shape[1] * _WORD]),
            "forced": np.array([self.forced]),
            "held": np.vstack([query, entity]),
            **{f"sample_{name}": column for name, column in sample_store.live(self.store).items()},
        }

    @classmethod
    def load(cls, index: MotionIndex, group: PlaneGroup, arrays: Arrays, done: int | None) -> PlaneSweep:
        """What was dumped under an equal index when every evaluation time up to `done` was evaluated."""
        found = cls(index, group)
        found._make_room(int(arrays["entities"][0]))
        found._restore({name: arrays[f"sample_{name}"] for name in sample_store.COLUMNS}, arrays["counts"], arrays["tracks"], done)
        found.hold(*arrays["held"])
        found.forced = int(arrays["forced"][0])
        return found

    @classmethod
    def merged(cls, index: MotionIndex, group: PlaneGroup, parts: Sequence[PlaneSweep], done: int | None) -> PlaneSweep:
        """The samples and hits of all `parts`, which are of groups with an equal key; nothing is held."""
        found = cls(index, group)
        found._make_room(max((part.holds.shape[1] * _WORD for part in parts), default=0))
        columns, numbers = _united([sample_store.live(part.store) for part in parts])
        pairs = [part._hits_among(group.tracks) for part in parts]
        hits = np.unique(np.concatenate([np.empty((0, 2), np.int64), *(_renumbered(own, n) for own, n in zip(pairs, numbers, strict=True))]), axis=0)
        found._restore(columns, np.bincount(hits[:, 0], minlength=len(columns["t"])), hits[:, 1].astype(np.int32), done)
        return found

    def _hits_among(self, tracks: Sequence[TrackKey]) -> Ints:
        """Rows (sample counted from the oldest, position in `tracks`) of the hits of those tracks."""
        counts, own = hit_ring.live(self.store, self.hits)
        place = {key: p for p, key in enumerate(tracks)}
        there = np.array([place.get(key, -1) for key in self.group.tracks], np.int64)[own]
        return np.column_stack([np.repeat(np.arange(len(counts)), counts), there])[there >= 0]

    def _restore(self, columns: Arrays, counts: Ints, tracks: npt.NDArray[np.int32], done: int | None) -> None:
        """Samples numbered from 0, each with `counts` of the `tracks`; windows stand where the last evaluation up to `done` left them."""
        count = len(columns["t"])
        self.store = sample_store.with_room(self.store, count)
        sample_store.append(self.store, np.arange(count, dtype=np.int32), *(columns[name] for name in sample_store.COLUMNS))
        self._measure(np.arange(count))
        self.hits = hit_ring.with_room(self.hits, self.store, len(tracks))
        hit_ring.restore_hits(self.store, self.hits, counts, tracks)
        if done is not None:
            group, entities = self.group, self.holds.shape[1] * _WORD
            moved = np.empty(len(group.sweep.track), np.bool_), np.empty(len(group.measures.start), np.bool_)
            at = done // group.every * group.every
            move(group.sweep, group.measures, self.store, self.hits, self.planes, self.columns, at, entities, True, *moved, np.zeros(4, np.int64))

    def kept(self) -> int:
        return int(self.store.bounds[1] - self.store.bounds[0])

    def check(self, done: int | None) -> None:
        bit_planes.check(self.store, self.hits, self.planes)
        columns = sample_store.live(self.store)
        assert (np.diff(columns["t"]) >= 0).all()
        reach = max(int(self.group.sweep.start.max(initial=0)), int(self.group.measures.start.max(initial=0)))
        if done is not None and self.kept():
            # Memory is bounded by the longest window: a sample goes at the first evaluation after it left.
            assert int(columns["t"][0]) + reach > done - self.group.every


def _united(lives: Sequence[Arrays]) -> tuple[Arrays, list[Ints]]:
    """Samples of several stores, each once, in order of (t, seq), and what the samples of each store are numbered there."""
    every = (
        {name: np.concatenate([live[name] for live in lives]) for name in sample_store.COLUMNS}
        if lives
        else sample_store.live(sample_store.no_samples(0, 0))
    )
    _, first, inverse = np.unique(every["seq"], return_index=True, return_inverse=True)
    order = np.lexsort((every["seq"][first], every["t"][first]))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    ends = np.cumsum([0, *(len(live["t"]) for live in lives)])
    inverse = inverse.reshape(-1)
    numbers = [number[inverse[low:high]] for low, high in pairwise(ends)]
    return {name: column[first[order]] for name, column in every.items()}, numbers


def _renumbered(pairs: Ints, numbers: Ints) -> Ints:
    """The rows (sample, track) with the sample's new number."""
    return np.column_stack([numbers[pairs[:, 0]], pairs[:, 1]])
