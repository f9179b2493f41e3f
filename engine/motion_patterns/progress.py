"""The progress of each entity with a motion pattern at one evaluation time: which of its steps are
done, with a witness of each.

A step is done if it, together with all steps before it in the order, is satisfied at T within the
windows of the whole pattern. So an entity that satisfies every predicate has done every step, and
an incomplete pattern shows which steps are done.

References: [CMP] 3 and 5.4 (order). Partial satisfaction is ours; the paper has only matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import Batch
from engine.motion_patterns.evaluation import NEVER, best
from engine.motion_patterns.plan import MotionIndex
from engine.motion_patterns.samples import hits
from engine.motion_patterns.theta import LOCAL_AT_LEAST, LOCAL_AT_MOST, LOCAL_NONE
from engine.motion_patterns.totals import FOR_EVER, Totals

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PatternProgress:
    """Shapes (entities, predicates) by entity code and predicate, or (entities,).

    `done`: the step holds; `row`: its witness's row in the batch (-1: not done), the latest
    possible one as in the pattern's evidence; `distance` of numerical steps (else NaN).
    `score`: the sum of the distances if all steps are done (else NaN). `matches`: every step is
    done and Θ selects the entity.
    """

    done: Bools
    row: Ints
    distance: Floats
    score: Floats
    matches: Bools


def reach(index: MotionIndex, query: int) -> int:
    """How far the query's windows extend back from T, in the unit of t: rows with t <=
    T - reach have no effect."""
    totals = [index.totals[number] for number in _totals(index, query)]
    # A position that is held without a limit may be of any age; one more window is read for it.
    held = [key.start + (key.start if key.gap == FOR_EVER else key.gap) for key in totals]
    return int(max([*index.plan.start[list(_series(index, query))].tolist(), *held]))


def progress(index: MotionIndex, query: int, batch: Batch, at: int) -> PatternProgress:
    """The progress of all entities of `batch` at evaluation time `at`.

    `batch`: at least the accepted rows with at - reach < t <= at, sorted by (t, seq).
    `query`: position in the index.
    """
    windows = _windows(index, query, batch, at)
    predicates = _span(index.plan.witness_first, query)
    shape = (len(batch.entities), predicates.stop - predicates.start)
    result = PatternProgress(
        np.zeros(shape, np.bool_), np.full(shape, -1), np.full(shape, np.nan), np.full(shape[0], np.nan), np.zeros(shape[0], np.bool_)
    )
    _single_steps(index, query, batch, at, windows, result)
    _ordered_steps(index, query, batch, windows, result)
    _decide(index, query, batch, result)
    return result


@dataclass(frozen=True)
class _Window:
    """Rows of one series in its window at T, sorted by (t, seq), with their values."""

    row: Ints
    value: Floats


def _span(first: Ints, i: int) -> range:
    return range(int(first[i]), int(first[i + 1]))


def _series(index: MotionIndex, query: int) -> set[int]:
    plan = index.plan
    lists = ((plan.required_first, plan.required), (plan.excluded_first, plan.excluded), (plan.sums_first, plan.sums))
    return {int(series[i]) for first, series in lists for i in _span(first, query)} | {int(plan.witness[i]) for i in _span(plan.witness_first, query)}


def _totals(index: MotionIndex, query: int) -> list[int]:
    return [int(index.plan.totals[i]) for i in _span(index.plan.totals_first, query)]


def _windows(index: MotionIndex, query: int, batch: Batch, at: int) -> Mapping[int, _Window]:
    hit = hits(index, index.classes, batch)
    bounds = np.searchsorted(hit.series, np.arange(len(index.series) + 1))
    windows = {}
    for p in _series(index, query):
        row, value = hit.row[bounds[p] : bounds[p + 1]], hit.value[bounds[p] : bounds[p + 1]]
        t = batch.t[row]
        inside = (at - index.series[p].start < t) & (t <= at - index.series[p].end)
        windows[p] = _Window(row[inside], value[inside])
    return windows


def _reached(index: MotionIndex, query: int, batch: Batch, at: int) -> Iterator[Bools]:
    """For each total in order: the entities for which its bound is reached (`at_most`: not
    reached), as the query requires."""
    plan, entities = index.plan, len(batch.entities)
    for i in _span(plan.totals_first, query):
        totals = Totals([index.totals[plan.totals[i]]])
        totals.take(batch, entities)
        totals.advance(at)
        is_reached: Bools = totals.on(entities)[0] == plan.reached[i]
        yield is_reached


def _single_steps(index: MotionIndex, query: int, batch: Batch, at: int, windows: Mapping[int, _Window], progress: PatternProgress) -> None:
    """The steps outside the order: an *exists* or *forall* with a window, a distance."""
    plan, entity = index.plan, batch.entity
    totals = _reached(index, query, batch, at)
    excluded = iter([int(plan.excluded[i]) for i in _span(plan.excluded_first, query)])
    for j, w in enumerate(_span(plan.witness_first, query)):
        window = windows[int(plan.witness[w])]
        if plan.witness_node[w] >= 0:
            continue
        if index.queries[query].specification.predicates[j].total is not None:
            progress.row[entity[window.row], j] = window.row
            progress.done[:, j] = next(totals) & (~_needs_sample(index, query, j) | (progress.row[:, j] >= 0))
            continue
        if plan.measure[plan.witness[w]] >= 0:
            extremum = _extrema(entity[window.row], window.value, len(progress.done), int(plan.sign[plan.witness[w]]))
            progress.distance[:, j] = extremum
            window = _Window(window.row[window.value == extremum[entity[window.row]]], window.value)
        # The last assignment of an entity's rows wins: the latest.
        progress.row[entity[window.row], j] = window.row
        if index.series[plan.witness[w]].test == "any":
            progress.row[entity[windows[next(excluded)].row], j] = -1
        progress.done[:, j] = progress.row[:, j] >= 0


def _needs_sample(index: MotionIndex, query: int, j: int) -> Bools:
    return np.array(index.queries[query].specification.predicates[j].total.at_most)


def _extrema(entity: npt.NDArray[np.int32], value: Floats, entities: int, sign: int) -> Floats:
    """The least (sign +1) or greatest (-1) value of each entity, NaN for none."""
    extremum = np.full(entities, np.nan)
    order = np.argsort(-sign * value, kind="stable")
    extremum[entity[order]] = value[order]
    return extremum


def _ordered_steps(index: MotionIndex, query: int, batch: Batch, windows: Mapping[int, _Window], progress: PatternProgress) -> None:
    """The steps in order: forwards at the earliest times to find which are done, then backwards at
    the latest times for their witnesses."""
    plan, entity, t = index.plan, batch.entity, batch.t
    nodes = _span(plan.chain_first, query)
    predicate = {int(plan.witness_node[w]): j for j, w in enumerate(_span(plan.witness_first, query))}
    followers = [[int(after) - nodes.start for after in plan.chain_after[n] if after >= 0] for n in nodes]
    after = np.full((len(nodes), len(progress.done)), -NEVER)
    for i, n in enumerate(nodes):
        row = windows[int(plan.chain[n])].row
        row = row[t[row] > after[i, entity[row]]][::-1]
        earliest = np.full(len(progress.done), NEVER)
        earliest[entity[row]] = t[row]
        progress.done[:, predicate[i]] = earliest < NEVER
        for follower in followers[i]:
            np.maximum(after[follower], earliest, out=after[follower])
    before = np.full((len(nodes), len(progress.done)), NEVER)
    for i, n in reversed(list(enumerate(nodes))):
        for follower in followers[i]:
            picked = progress.row[:, predicate[follower]]
            inside = picked >= 0
            before[i, inside] = np.minimum(before[i, inside], t[picked[inside]])
        row = windows[int(plan.chain[n])].row
        row = row[(t[row] < before[i, entity[row]]) & progress.done[entity[row], predicate[i]]]
        progress.row[entity[row], predicate[i]] = row


def _decide(index: MotionIndex, query: int, batch: Batch, progress: PatternProgress) -> None:
    plan = index.plan
    complete = progress.done.all(axis=1)
    sums = [j for j, w in enumerate(_span(plan.witness_first, query)) if plan.measure[plan.witness[w]] >= 0]
    for j in sums:
        progress.score[complete] = np.nan_to_num(progress.score[complete]) + progress.distance[complete, j]
    decides, bound = plan.decides[query], plan.bound[query]
    if decides == LOCAL_NONE:
        progress.matches[:] = complete
    elif decides in (LOCAL_AT_MOST, LOCAL_AT_LEAST):
        progress.matches[:] = progress.score <= bound if decides == LOCAL_AT_MOST else progress.score >= bound
    else:
        best(progress.score, plan.ranks[query], plan.k[query], _by_id(batch.entities.names), progress.matches)


def _by_id(names: Sequence[str]) -> Ints:
    """The rank of each entity code in the order of ids."""
    rank = np.empty(len(names), np.int64)
    rank[pc.sort_indices(pa.array(names, pa.string())).to_numpy()] = np.arange(len(names))
    return rank
