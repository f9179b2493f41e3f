"""The windows of a group's queries over its planes and columns, and their moves from one evaluation
to the next ([CMP] 4, figure 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from engine.motion_patterns import bit_planes, sample_store, sliding
from engine.motion_patterns.bit_planes import Planes
from engine.motion_patterns.distance_columns import Columns, DistanceMeasures, slide
from engine.motion_patterns.evaluation import NEVER, multiple
from engine.motion_patterns.sample_store import SampleStore

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Sweep(NamedTuple):
    """A group's queries as arrays; `x_first[i]` to `x_first[i + 1]` are the entries of i.

    `clock`: [every, bucket width]. Series s is `sequence[s]` in the window `start[s]`, `end[s]`.
    Queries by their number in the group: `required` and `excluded` (series that must, and must not,
    have a bit), `sums` (measures), `decides` ... `k` as in MotionPlan; for each predicate the
    `witness`: a series, or if `witness_measured` a measure, and its member of the chain,
    `witness_node` (or -1); `since`: the query's longest start; `radii`: sum of its measures' radii.
    Member n of a chain has series `chain[n]` and the followers `chain_after[n]` (or -1);
    `chain_opens[n]`: whether its samples may complete a chain (`chains`).
    """

    clock: Ints
    sequence: Ints
    start: Ints
    end: Ints
    required_first: Ints
    required: Ints
    excluded_first: Ints
    excluded: Ints
    sums_first: Ints
    sums: Ints
    decides: Ints
    bound: Floats
    ranks: Ints
    k: Ints
    witness_first: Ints
    witness: Ints
    witness_measured: npt.NDArray[np.bool_]
    witness_node: Ints
    chain_first: Ints
    chain: Ints
    chain_after: Ints
    chain_opens: npt.NDArray[np.bool_]
    since: Ints
    radii: Floats


class GroupState(NamedTuple):
    """A group's queries, and the samples, planes and columns that they are evaluated on."""

    sweep: Sweep
    measures: DistanceMeasures
    store: SampleStore
    planes: Planes
    columns: Columns


class WindowMoves(NamedTuple):
    """Whether the contents of the window of each series and of each measure changed, and the first
    bucket that entered the window of each series."""

    series: npt.NDArray[np.bool_]
    measures: npt.NDArray[np.bool_]
    entered: Ints


@njit(cache=True, nogil=True)
def next_evaluation(state):  # type: ignore[no-untyped-def]
    """Number of the next evaluation at which a sample enters or leaves a window; it may be an
    earlier one while samples are in no bucket."""
    sweep, measures, store, planes, columns = state.sweep, state.measures, state.store, state.planes, state.columns
    due = NEVER
    every, width, slots, mask = sweep.clock[0], sweep.clock[1], len(planes.bucket), len(store.t) - 1
    waiting = NEVER
    if len(sweep.sequence) and planes.bounds[1] < store.bounds[1]:
        waiting = multiple(store.t[planes.bounds[1] & mask], width) * width
    for s in range(len(sweep.sequence)):
        p = sweep.sequence[s]
        entering = bit_planes.first_with(planes, p, planes.entered[s], planes.bounds[0])
        if entering < planes.bounds[0]:
            due = min(due, multiple(planes.bucket[entering % slots] * width + sweep.end[s], every))
        elif waiting != NEVER:
            due = min(due, multiple(waiting + sweep.end[s], every))
        leaving = bit_planes.first_with(planes, p, planes.left[s], planes.entered[s])
        if leaving < planes.entered[s]:
            due = min(due, multiple(planes.bucket[leaving % slots] * width + sweep.start[s], every))
    for m in range(len(measures.start)):
        if columns.entered[m] < store.bounds[1]:
            due = min(due, multiple(store.t[columns.entered[m] & mask] + measures.end[m], every))
        if columns.left[m] < columns.entered[m]:
            due = min(due, multiple(store.t[columns.left[m] & mask] + measures.start[m], every))
    return due


@njit(cache=True, nogil=True)
def move(state, at, entities, everything, moves, work):  # type: ignore[no-untyped-def]
    """Moves all windows to `at` and writes to `moves` (`everything`: all windows count as changed).
    `work` counts [entered, left]."""
    sweep, measures, store, planes, columns = state.sweep, state.measures, state.store, state.planes, state.columns
    moved, entered = moves.series, moves.entered
    width, words = sweep.clock[1], (entities + 63) >> 6
    if len(sweep.sequence):
        # Buckets that no window contains are reused.
        afresh = np.full(len(sweep.sequence), everything)
        for s in range(len(sweep.sequence)):
            left = planes.left[s]
            entered[s] = planes.entered[s]
            moved[s] = bit_planes.pass_buckets(planes, s, sweep.sequence[s], sweep.start[s], sweep.end[s], width, at, work)
            afresh[s] |= not sliding.is_cheaper(planes, s, left)
            if moved[s] and not afresh[s]:
                sliding.take_out(planes, s, sweep.sequence[s], left, words)
        bit_planes.fill(store, planes, width, at, words)
    for s in range(len(sweep.sequence)):
        left = planes.left[s]
        moved[s] |= bit_planes.pass_buckets(planes, s, sweep.sequence[s], sweep.start[s], sweep.end[s], width, at, work)
        moved[s] |= everything
        if moved[s] and (afresh[s] or planes.left[s] > left):
            bit_planes.gather(planes, s, sweep.sequence[s], words)
        elif moved[s]:
            sliding.put_in(planes, s, sweep.sequence[s], entered[s], words)
    for m in range(len(measures.start)):
        before, left = columns.entered[m], columns.left[m]
        stop = sample_store.first_after(store, before, store.bounds[1], at - measures.end[m])
        columns.left[m] = sample_store.first_after(store, left, stop, at - measures.start[m])
        work[0] += stop - before
        work[1] += columns.left[m] - left
        moves.measures[m] = everything or stop > before or columns.left[m] > left
        if moves.measures[m]:
            slide(store, measures, columns, m, width, at, entities)


@njit(cache=True, nogil=True)
def forget(state):  # type: ignore[no-untyped-def]
    """Frees buckets that no later window contains."""
    sweep, store, planes, columns = state.sweep, state.store, state.planes, state.columns
    needed = store.bounds[1]
    if len(sweep.sequence):
        needed = planes.bounds[1]
    for s in range(len(sweep.sequence)):
        oldest = bit_planes.first_with(planes, sweep.sequence[s], planes.left[s], planes.bounds[0])
        if oldest < planes.bounds[0]:
            needed = min(needed, planes.first[oldest % len(planes.bucket)])
    for m in range(len(columns.left)):
        needed = min(needed, columns.left[m])
    store.bounds[0] = max(store.bounds[0], needed)
