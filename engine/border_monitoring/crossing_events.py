"""In and out events of one tuple class in one batch: from tuples to (row,
monitor, in or out, time)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.antimeridian import crosses_antimeridian, passes_over
from engine.border_monitoring.borders import Borders
from engine.border_monitoring.bounds import CrossingBuffers, MoveColumns, bound_crossings, rows_of
from engine.border_monitoring.moves import IN, PASS, UNSURE, MeetingBuffers, border_meetings
from engine.border_monitoring.passes import Moves, decide
from engine.border_monitoring.plan import TupleClass
from engine.border_monitoring.structures import Structure
from engine.border_monitoring.tuples import LastTuples, advance
from engine.border_monitoring.watched_pairs import WatchedEvents, WatchedPairs, WatchedTuples, advance_pairs
from engine.model.batch import Batch, X, Y

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]
Found = tuple[Ints, Ints, Bools, Bools, Int64s]
"""Columns of events: row among the class's tuples, monitor, inward, passing, time."""

_NOTHING = -1

_GREATEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class CrossingEvents:
    """Events in the order of the batch's rows, n of them, an in of a pass right before its out.

    `row`: the batch's row of the tuple that reveals the event; `inward` 1 in, 0 out; `passing`: the
    two samples are both outside. `before_*`: the tuple before (x, y, t, seq), for evidence.
    """

    row: Int64s
    monitor: Ints
    inward: npt.NDArray[np.int8]
    passing: npt.NDArray[np.bool_]
    t: Int64s
    before_x: Floats
    before_y: Floats
    before_t: Int64s
    before_seq: Int64s

    def __len__(self) -> int:
        return len(self.row)

    def take(self, positions: npt.NDArray[np.integer[Any]]) -> CrossingEvents:
        return CrossingEvents(*(column[positions] for column in vars(self).values()))


def concat_events(parts: Sequence[CrossingEvents]) -> CrossingEvents:
    """All events in the order of rows; events of one row keep the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    joined = CrossingEvents(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))
    return joined.take(np.argsort(joined.row, kind="stable"))


CELLS, CANDIDATES, TUPLES, EVENTS = range(4)
"""Places of a work counter array: cells walked, border items and bounds looked at,
tuples seen, events found."""


@dataclass
class ClassState:
    """State of one class: the last tuples, and the pairs of its monitors with options. `crossed`
    and `met` are working memory."""

    last: LastTuples
    pairs: WatchedPairs | None
    crossed: CrossingBuffers = field(default_factory=CrossingBuffers)
    met: MeetingBuffers = field(default_factory=MeetingBuffers)


def class_events(
    tuples: TupleClass, state: ClassState, batch: Batch, watermark: int, geographic: bool, work: Int64s
) -> tuple[CrossingEvents | None, WatchedEvents | None]:
    """Events of the class in this batch, of monitors without and with options; advances its
    state. Null if there are none."""
    crossings = _moves_of(tuples, state, batch, geographic, work) if len(batch) else None
    if tuples.watches is None or state.pairs is None:
        return (None if crossings is None else crossings[1]), None
    if crossings is None:
        state.pairs, events = advance_pairs(tuples.watches, state.pairs, None, _NO_ROWS, _NO_ROWS, watermark)
        return None, events
    seen, found, row = crossings
    monitor = _NO_ROWS if found is None else found.monitor
    state.pairs, events = advance_pairs(tuples.watches, state.pairs, seen, row, monitor, watermark)
    if found is not None:
        plain = (tuples.watches.index_of(found.monitor) < 0) | found.passing
        found = found if plain.all() else found.take(np.flatnonzero(plain))
    return found, events


_NO_ROWS = np.empty(0, np.int32)


def _moves_of(
    tuples: TupleClass, state: ClassState, batch: Batch, geographic: bool, work: Int64s
) -> tuple[WatchedTuples, CrossingEvents | None, Ints] | None:
    """The batch's tuples with those before, the raw events, and their rows among the tuples; null
    when the batch has no tuple."""
    rows, values = _tuples_of(tuples, batch)
    if len(values) == 0:
        return None
    work[TUPLES] += len(values)
    entity, t, seq = batch.entity, batch.t, batch.seq
    last = state.last
    last.reserve(len(batch.entities))
    if rows is not None:
        entity, t, seq = entity[rows], t[rows], seq[rows]
    before, before_t, before_seq, known = advance(entity, values, t, seq, last.values, last.t, last.seq)
    found: list[Found] = []
    values, before = _within_doubles(values), _within_doubles(before)
    moves = MoveColumns(before, values, known)
    for part in tuples.parts:
        if part.bounds is not None:
            ends, crossed = bound_crossings(part.bounds, moves, work, state.crossed)
            row = rows_of(ends)
            found.append((row, part.bounds_monitors[crossed ^ (crossed >> 31)], crossed >= 0, np.zeros(len(row), np.bool_), t[row]))
        if part.borders is not None:
            found.append(_border_meetings(part, part.borders, moves, before_t, t, geographic, work, state.met))
    row, monitor, inward, passing, at = found[0] if len(found) == 1 else _merge(found)
    x, y = (0, 1) if tuples.has_regions else (values.shape[1] - 2, values.shape[1] - 1)
    seen = WatchedTuples(batch, rows, entity, t, seq, values, before, before_t, before_seq, (x, y))
    if len(row) == 0:
        return seen, None, row
    work[EVENTS] += len(row)
    events = CrossingEvents(
        row=row.astype(np.int64) if rows is None else rows[row],
        monitor=monitor,
        inward=inward.astype(np.int8),
        passing=passing,
        t=at,
        before_x=before[row, x],
        before_y=before[row, y],
        before_t=before_t[row],
        before_seq=before_seq[row],
    )
    return seen, events, row


def _merge(found: Sequence[Found]) -> Found:
    """All events by row."""
    row, monitor, inward, passing, at = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    return row[order], monitor[order], inward[order], passing[order], at[order]


def _tuples_of(tuples: TupleClass, batch: Batch) -> tuple[Int64s | None, Floats]:
    """(rows of the batch that are tuples of the class, null for all; their values (m, w))."""
    columns = list(tuples.columns)
    if not tuples.has_regions:
        columns += [X, Y]
    values = np.column_stack([batch.numbers(name) for name in columns])
    missing = np.isnan(values[:, : len(tuples.columns)])
    mask = ~missing.any(axis=1) if missing.any() else None
    if tuples.where:
        held = tuples.where.mask(batch)
        mask = held if mask is None else mask & held
    if mask is None or mask.all():
        return None, values
    rows = np.flatnonzero(mask)
    return rows, values[rows]


def _within_doubles(values: Floats) -> Floats:
    """Infinite readings as the greatest doubles, which lie in every unbounded
    half-open range like them."""
    return np.clip(values, -_GREATEST, _GREATEST) if np.isinf(values).any() else values


def _border_meetings(
    part: Structure,
    index: Borders,
    columns: MoveColumns,
    before_t: Int64s,
    t: Int64s,
    geographic: bool,
    work: Int64s,
    met: MeetingBuffers,
) -> Found:
    """Meetings with borders as events, a pass as an in and an out."""
    before, after, known = columns
    row, region, code, span = border_meetings(index, columns, work, met)
    over = crosses_antimeridian(before, after) & known if geographic and index.passes_wanted.any() else None
    if over is not None and over.any():
        code[(code == PASS) & over[row]] = _NOTHING
    first, last = t[row], t[row]
    exact = np.flatnonzero((code == UNSURE) | (code == PASS))
    if len(exact):
        at = row[exact]
        wanted = index.passes_wanted[region[exact]] & (True if over is None else ~over[at])
        shapes = [part.shapes[r] for r in region[exact].tolist()]
        code[exact], first[exact], last[exact] = decide(
            Moves(before[at, :2], after[at, :2], before_t[at], t[at]), shapes, code[exact], span[exact], wanted
        )
    keep = code != _NOTHING
    row, region, code, first, last = row[keep], region[keep], code[keep], first[keep], last[keep]
    if over is not None and over.any():
        moves = np.flatnonzero(over)
        found = passes_over(Moves(before[moves, :2], after[moves, :2], before_t[moves], t[moves]), part.shapes, index.passes_wanted)
        more = np.array(found, np.int64).reshape(-1, 4)
        row = np.concatenate([row, moves[more[:, 0]].astype(np.int32)])
        region = np.concatenate([region, more[:, 1].astype(np.int32)])
        code = np.concatenate([code, np.full(len(more), PASS, np.int8)])
        first, last = np.concatenate([first, more[:, 2]]), np.concatenate([last, more[:, 3]])
    return _as_events(row, part.borders_monitors[region], code, first, last)


def _as_events(row: Ints, monitor: Ints, code: Codes, first: Int64s, last: Int64s) -> Found:
    """Each meeting as its event, a pass as its two."""
    passing = code == PASS
    if not passing.any():
        return row, monitor, code == IN, passing, first
    copies = np.repeat(np.arange(len(row)), np.where(passing, 2, 1))
    second = np.concatenate([[False], copies[1:] == copies[:-1]])
    passing = passing[copies]
    return row[copies], monitor[copies], np.where(passing, ~second, code[copies] == IN), passing, np.where(second, last[copies], first[copies])
