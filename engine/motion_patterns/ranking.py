"""The relational stage: Θ over the entities of all partitions (min, max, top k).

Each partition sends its own best entities, a superset of its part of the
answer; the route is the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from engine.model.arrays import pack_arrays, unpack_arrays
from engine.model.batch import Batch, EntityDictionary
from engine.motion_patterns.evaluation import CANDIDATE, END, START, MatchEvents, best
from engine.motion_patterns.intervals import OpenMatches, joined, keys_of, none_of, state_changes, taken, widened
from engine.motion_patterns.plan import MotionIndex
from engine.operator import ROUTE, Output, Stage

Ints = npt.NDArray[np.int64]


@dataclass
class RankingState:
    """`candidates`: the present best entities of the partitions, as last sent, sorted by (query,
    entity); `open`: the matches among them."""

    candidates: MatchEvents
    open: OpenMatches
    received: int = 0


class RankingStage(Stage[MotionIndex, RankingState]):
    """The relational stage: its input is the partitions' candidates, its output the matches."""

    def initial(self, index: MotionIndex) -> RankingState:
        return RankingState(none_of(index.widest), OpenMatches(none_of(index.widest)))

    def step(self, index: MotionIndex, state: RankingState, batch: Batch, watermark: int) -> Output[RankingState]:
        if len(batch) == 0:
            return Output(state)
        state.received += len(batch)
        sent = _received(batch, index.widest)
        known = joined([state.candidates, sent])
        keys, pair = np.unique(keys_of(known), return_inverse=True)
        pair = pair.reshape(-1)
        latest = np.full(len(keys), -1, np.int64)
        latest[pair[: len(state.candidates.query)]] = np.arange(len(state.candidates.query))
        holds = np.isin(keys, state.open.keys)
        refs, at, what = _decide(
            pair[len(state.candidates.query) :],
            len(state.candidates.query),
            known.at,
            known.what,
            known.score,
            keys >> 32,
            latest,
            holds,
            rank_of_names(batch.entities, (keys & 0xFFFFFFFF).astype(np.int64)),
            index.plan.ranks,
            index.plan.k,
        )
        decided = taken(known, refs)._replace(at=at, what=what)
        state.open, asserted = state_changes(state.open, decided, batch.entities)
        state.candidates = taken(known, latest[latest >= 0])
        return Output(state, asserted)

    def migrate(self, index: MotionIndex, parts: Sequence[tuple[MotionIndex, RankingState]]) -> RankingState:
        state = self.initial(index)
        state.candidates = renumbered([(old, part.candidates) for old, part in parts], index)
        state.open = OpenMatches(renumbered([(old, part.open.began) for old, part in parts], index))
        state.received = sum(part.received for _, part in parts)
        return state

    def dump(self, index: MotionIndex, state: RankingState) -> bytes:
        arrays = {f"candidates_{name}": column for name, column in state.candidates._asdict().items()}
        arrays |= {f"open_{name}": column for name, column in state.open.began._asdict().items()}
        return pack_arrays({**arrays, "received": np.array([state.received])})

    def load(self, index: MotionIndex, data: bytes) -> RankingState:
        arrays = unpack_arrays(data)
        candidates = MatchEvents._make(arrays[f"candidates_{name}"] for name in MatchEvents._fields)
        began = MatchEvents._make(arrays[f"open_{name}"] for name in MatchEvents._fields)
        return RankingState(candidates, OpenMatches(began), int(arrays["received"][0]))

    def check(self, index: MotionIndex, state: RankingState) -> None:
        state.open.check()
        assert (np.diff(keys_of(state.candidates)) > 0).all()
        assert np.isin(state.open.keys, keys_of(state.candidates)).all()
        assert np.isin(state.candidates.query, index.rankings).all()

    def counters(self, index: MotionIndex, state: RankingState) -> Mapping[str, int]:
        return {"candidates_received": state.received, "candidates_kept": len(state.candidates.query)}


def emitted_rows(events: MatchEvents, routes: Ints, dictionary: EntityDictionary) -> pa.RecordBatch | None:
    """CANDIDATE and RETRACTED events as rows for this stage; `routes[q]` is
    stable over registrations."""
    if len(events.query) == 0:
        return None
    columns = {
        "t": pa.array(events.at),
        "seq": pa.array(np.zeros(len(events.query), np.int64)),
        ROUTE: pa.array(routes[events.query]),
        "query": pa.array(events.query),
        "entity": dictionary.decode(events.entity),
        "what": pa.array(events.what),
        "score": pa.array(events.score),
    }
    for name in ("t", "seq", "x", "y"):
        column = getattr(events, name)
        columns[f"witness_{name}"] = pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def unsent(sent: MatchEvents, events: MatchEvents) -> tuple[MatchEvents, MatchEvents]:
    """(the event last sent for each candidate, after `events`; those of
    `events` that change something).

    `events`: CANDIDATE and RETRACTED, those of a pair in order of time. `sent`: CANDIDATE,
    sorted by (query, entity).
    """
    if len(events.query) == 0:
        return sent, events
    every = joined([sent, events])
    order = np.argsort(keys_of(every), kind="stable")
    every = taken(every, order)
    key = keys_of(every)
    same_pair = key[1:] == key[:-1]
    is_candidate = every.what == CANDIDATE
    same = same_pair & is_candidate[1:] & is_candidate[:-1] & (every.score[1:] == every.score[:-1]) & (every.seq[1:] == every.seq[:-1]).all(axis=1)
    news = np.concatenate([[True], ~same])
    news[order < len(sent.query)] = False
    fresh = np.sort(order[news])
    latest = np.concatenate([~same_pair, [True]])
    return taken(every, latest & is_candidate), taken(joined([sent, events]), fresh)


def _received(batch: Batch, width: int) -> MatchEvents:
    def column(name: str) -> npt.NDArray[Any]:
        return np.asarray(batch.column(name).to_numpy(zero_copy_only=False))

    def witnesses(name: str) -> npt.NDArray[Any]:
        lists = batch.column(f"witness_{name}")
        return np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(len(batch), width)

    return MatchEvents(
        column("query"),
        batch.entity.astype(np.int64),
        batch.t,
        column("what"),
        column("score"),
        witnesses("t"),
        witnesses("seq"),
        witnesses("x"),
        witnesses("y"),
    )


def rank_of_names(dictionary: EntityDictionary, codes: Ints) -> Ints:
    """The rank of each code by name among all `codes` (equal codes: equal names)."""
    distinct, inverse = np.unique(codes, return_inverse=True)
    rank = np.empty(len(distinct), np.int64)
    rank[pc.sort_indices(dictionary.decode(distinct)).to_numpy()] = np.arange(len(distinct))
    return rank[inverse.reshape(-1)]


def renumbered(parts: list[tuple[MotionIndex, MatchEvents]], index: MotionIndex) -> MatchEvents:
    """Events by pair of the parts' queries that are in `index`, sorted by (query, entity); those of
    a query come from the first part that has it."""
    owner: dict[tuple[str, int], int] = {}
    for number, (old, _) in enumerate(parts):
        for query in old.queries:
            owner.setdefault(query.key, number)
    kept = [none_of(index.widest)]
    for number, (old, events) in enumerate(parts):
        position = {query.key: i for i, query in enumerate(index.queries)}
        to = np.array([position.get(query.key, -1) if owner[query.key] == number else -1 for query in old.queries], np.int64)
        owned = taken(events, to[events.query] >= 0) if len(to) else taken(events, np.zeros(len(events.query), np.bool_))
        kept.append(widened(owned._replace(query=to[owned.query]) if len(to) else owned, index.widest))
    every = joined(kept)
    return taken(every, np.argsort(keys_of(every), kind="stable"))


@njit(cache=True, nogil=True)
def _decide(pair, offset, at, what, score, query, latest, holds, rank, ranks, k):  # type: ignore[no-untyped-def]
    """Processes the sent rows (from `offset` on, in order of time). Returns (row, time, START or
    END) of every pair that begins or ceases to match; an END has any row of its pair.

    Pairs are numbered in order of (query, entity), so those of one query are contiguous;
    `latest[pair]` is its present row or -1.
    """
    n = len(latest)
    refs, times, kinds = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    n_events = 0
    now_score = np.full(n, np.nan)
    for i in range(n):
        if latest[i] >= 0:
            now_score[i] = score[latest[i]]
    chosen = np.empty(n, np.bool_)
    moved = np.zeros(n, np.bool_)
    recent = latest.copy()
    i = 0
    while i < len(pair):
        t = at[offset + i]
        first = i
        while i < len(pair) and at[offset + i] == t:
            is_candidate = what[offset + i] == CANDIDATE
            latest[pair[i]] = offset + i if is_candidate else -1
            recent[pair[i]] = offset + i
            now_score[pair[i]] = score[offset + i] if is_candidate else np.nan
            moved[pair[i]] = True
            i += 1
        for j in range(first, i):
            if not moved[pair[j]]:
                continue
            q = query[pair[j]]
            low, high = np.searchsorted(query, q), np.searchsorted(query, q, side="right")
            best(now_score[low:high], ranks[q], k[q], rank[low:high], chosen[low:high])
            moved[low:high] = False
            for c in range(low, high):
                if chosen[c] == holds[c]:
                    continue
                holds[c] = chosen[c]
                if n_events == len(refs):
                    refs, times, kinds = np.append(refs, refs), np.append(times, times), np.append(kinds, kinds)
                refs[n_events] = recent[c]
                times[n_events] = t
                kinds[n_events] = START if chosen[c] else END
                n_events += 1
    return refs[:n_events], times[:n_events], kinds[:n_events]
