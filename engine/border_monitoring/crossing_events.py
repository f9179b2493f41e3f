"""In and out events of one tuple class in one batch: from tuples to (row, monitor, in or out, time)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.antimeridian import goes_over, passes_over
from engine.border_monitoring.borders import Borders
from engine.border_monitoring.bounds import Bounds, crossings
from engine.border_monitoring.moves import IN, PASS, UNSURE, meetings
from engine.border_monitoring.passes import Moves, decide
from engine.border_monitoring.plan import TupleClass
from engine.border_monitoring.tuples import LastTuples, advance
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

    `row`: the batch's row of the tuple that reveals the event; `inward` 1 in, 0 out; `passing`: the two samples are both outside.
    `before_*`: the tuple before (x, y, t, seq), for evidence.
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


def concatenated(parts: Sequence[CrossingEvents]) -> CrossingEvents:
    """All events in the order of rows; events of one row keep the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    joined = CrossingEvents(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))
    return joined.take(np.argsort(joined.row, kind="stable"))


@dataclass
class Work:
    """Counters: tuples seen, cells walked, border items and bounds looked at, events found."""

    tuples: int = 0
    cells: int = 0
    candidates: int = 0
    events: int = 0


def class_events(tuples: TupleClass, last: LastTuples, batch: Batch, geographic: bool, work: Work) -> CrossingEvents | None:
    """Events of the class in this batch; its last tuples move on. Null when there are none."""
    rows, values = _tuples_of(tuples, batch)
    if len(values) == 0:
        return None
    work.tuples += len(values)
    entity, t, seq = batch.entity, batch.t, batch.seq
    last.reserve(len(batch.entities))
    if rows is not None:
        entity, t, seq = entity[rows], t[rows], seq[rows]
    before, before_t, before_seq, known = advance(entity, values, t, seq, last.values, last.t, last.seq)
    found: list[Found] = []
    if tuples.bounds is not None:
        row, box, code = _bound_crossings(tuples.bounds, before, values, known, work)
        found.append((row, tuples.bounds_monitors[box], code == IN, np.zeros(len(row), np.bool_), t[row]))
    if tuples.borders is not None:
        found.append(_border_meetings(tuples, tuples.borders, before, values, before_t, t, known, geographic, work))
    row, monitor, inward, passing, at = found[0] if len(found) == 1 else _merged(found)
    if len(row) == 0:
        return None
    work.events += len(row)
    x, y = (0, 1) if tuples.of_regions else (values.shape[1] - 2, values.shape[1] - 1)
    return CrossingEvents(
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


def _merged(found: Sequence[Found]) -> Found:
    """All events by row."""
    row, monitor, inward, passing, at = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    return row[order], monitor[order], inward[order], passing[order], at[order]


def _tuples_of(tuples: TupleClass, batch: Batch) -> tuple[Int64s | None, Floats]:
    """(rows of the batch that are tuples of the class, null for all; their values (m, w))."""
    columns = list(tuples.columns)
    if not tuples.of_regions:
        columns += [X, Y]
    values = np.column_stack([batch.numbers(name) for name in columns])
    mask = ~np.isnan(values[:, : len(tuples.columns)]).any(axis=1)
    if tuples.where:
        mask &= tuples.where.mask(batch)
    if mask.all():
        return None, values
    rows = np.flatnonzero(mask)
    return rows, values[rows]


def _bound_crossings(index: Bounds, before: Floats, after: Floats, known: Bools, work: Work) -> tuple[Ints, Ints, Codes]:
    # An infinite reading lies in every unbounded range; the greatest double stands for it in half-open comparisons.
    if np.isinf(after).any() or np.isinf(before).any():
        before, after = np.clip(before, -_GREATEST, _GREATEST), np.clip(after, -_GREATEST, _GREATEST)
    row, box, code, read = crossings(
        before, after, known, index.low, index.high, index.first, index.bound, index.partner, index.owner,
        index.directory, index.origin, index.scale,
    )  # fmt: skip
    work.candidates += read
    return row, box, code


def _met(index: Borders, before: Floats, after: Floats, known: Bools, work: Work) -> tuple[Ints, Ints, Codes, Floats]:
    row, region, code, span, cells, items = meetings(
        before, after, known, index.kinds, index.coordinates, index.regions, index.region_items, index.circles, index.passes_wanted,
        index.grid_boxes, index.grid_sizes, index.cell_first, index.cell_last, index.cell_items, index.cell_grid, index.pad,
    )  # fmt: skip
    work.cells += cells
    work.candidates += items
    return row, region, code, span


def _border_meetings(
    tuples: TupleClass, index: Borders, before: Floats, after: Floats, before_t: Int64s, t: Int64s, known: Bools, geographic: bool, work: Work
) -> Found:
    """Meetings with borders as events, a pass as an in and an out."""
    row, region, code, span = _met(index, before, after, known, work)
    over = goes_over(before, after) & known if geographic and index.passes_wanted.any() else None
    if over is not None and over.any():
        code[(code == PASS) & over[row]] = _NOTHING
    first, last = t[row], t[row]
    exact = np.flatnonzero((code == UNSURE) | (code == PASS))
    if len(exact):
        at = row[exact]
        wanted = index.passes_wanted[region[exact]] & (True if over is None else ~over[at])
        shapes = [tuples.shapes[r] for r in region[exact].tolist()]
        code[exact], first[exact], last[exact] = decide(
            Moves(before[at, :2], after[at, :2], before_t[at], t[at]), shapes, code[exact], span[exact], wanted
        )
    keep = code != _NOTHING
    row, region, code, first, last = row[keep], region[keep], code[keep], first[keep], last[keep]
    if over is not None and over.any():
        moves = np.flatnonzero(over)
        found = passes_over(Moves(before[moves, :2], after[moves, :2], before_t[moves], t[moves]), tuples.shapes, index.passes_wanted)
        more = np.array(found, np.int64).reshape(-1, 4)
        row = np.concatenate([row, moves[more[:, 0]].astype(np.int32)])
        region = np.concatenate([region, more[:, 1].astype(np.int32)])
        code = np.concatenate([code, np.full(len(more), PASS, np.int8)])
        first, last = np.concatenate([first, more[:, 2]]), np.concatenate([last, more[:, 3]])
    return _as_events(row, tuples.borders_monitors[region], code, first, last)


def _as_events(row: Ints, monitor: Ints, code: Codes, first: Int64s, last: Int64s) -> Found:
    """Each meeting as its event, a pass as its two."""
    passing = code == PASS
    if not passing.any():
        return row, monitor, code == IN, passing, first
    copies = np.repeat(np.arange(len(row)), np.where(passing, 2, 1))
    second = np.concatenate([[False], copies[1:] == copies[:-1]])
    passing = passing[copies]
    return row[copies], monitor[copies], np.where(passing, ~second, code[copies] == IN), passing, np.where(second, last[copies], first[copies])
