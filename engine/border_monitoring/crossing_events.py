"""In and out events of one tuple class in one batch: from tuples to (row, monitor, in or out, time)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.borders import Borders
from engine.border_monitoring.bounds import Bounds, crossings
from engine.border_monitoring.moves import IN, PASS, UNSURE, meetings
from engine.border_monitoring.passes import Moves, decide_unsure, pass_times
from engine.border_monitoring.plan import TupleClass
from engine.border_monitoring.shapes import Circle
from engine.border_monitoring.tuples import LastTuples, advance
from engine.model.batch import X, Y, Batch

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

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

    def take(self, positions: npt.NDArray[np.integer]) -> CrossingEvents:
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
    found: list[tuple[Ints, Ints, npt.NDArray[np.int8], npt.NDArray[np.bool_], Int64s]] = []
    if tuples.bounds is not None:
        row, box, code = _bound_crossings(tuples.bounds, before, values, known, work)
        found.append((row, tuples.bounds_monitors[box], code, np.zeros(len(row), np.bool_), t[row]))
    if tuples.borders is not None:
        found.append(_border_meetings(tuples, tuples.borders, before, values, before_t, t, known, geographic, work))
    row, monitor, inward, passing, at = found[0] if len(found) == 1 else (np.concatenate(column) for column in zip(*found, strict=True))
    if len(row) == 0:
        return None
    if len(found) > 1:
        order = np.argsort(row, kind="stable")
        row, monitor, inward, passing, at = row[order], monitor[order], inward[order], passing[order], at[order]
    work.events += len(row)
    x, y = (0, 1) if tuples.of_regions else (values.shape[1] - 2, values.shape[1] - 1)
    return CrossingEvents(
        row=row.astype(np.int64) if rows is None else rows[row],
        monitor=monitor,
        inward=inward,
        passing=passing,
        t=at,
        before_x=before[row, x],
        before_y=before[row, y],
        before_t=before_t[row],
        before_seq=before_seq[row],
    )


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


def _bound_crossings(index: Bounds, before: Floats, after: Floats, known: npt.NDArray[np.bool_], work: Work) -> tuple[Ints, Ints, npt.NDArray[np.int8]]:
    # An infinite reading lies in every unbounded range; the greatest double stands for it in half-open comparisons.
    if np.isinf(after).any() or np.isinf(before).any():
        before, after = np.clip(before, -_GREATEST, _GREATEST), np.clip(after, -_GREATEST, _GREATEST)
    row, box, code, read = crossings(
        before, after, known, index.low, index.high, index.first, index.bound, index.partner, index.owner,
        index.directory, index.origin, index.scale,
    )  # fmt: skip
    work.candidates += read
    return row, box, code


def _met(index: Borders, before: Floats, after: Floats, known: npt.NDArray[np.bool_], work: Work):  # type: ignore[no-untyped-def]
    row, region, code, span, cells, items = meetings(
        before, after, known, index.kinds, index.coordinates, index.regions, index.region_items, index.circles, index.passes_wanted,
        index.grid_boxes, index.grid_sizes, index.cell_first, index.cell_last, index.cell_items, index.cell_grid, index.pad,
    )  # fmt: skip
    work.cells += cells
    work.candidates += items
    return row, region, code, span


def _border_meetings(tuples, index, before, after, before_t, t, known, geographic, work):  # type: ignore[no-untyped-def]
    """(row, monitor, inward, passing, time) of the meetings with borders, a pass as an in and an out."""
    row, region, code, span = _met(index, before, after, known, work)
    first, last = t[row], t[row]
    unsure = np.flatnonzero(code == UNSURE)
    if len(unsure):
        at = row[unsure]
        circles = [tuples.shapes[r] for r in region[unsure].tolist()]
        decided = decide_unsure(
            Moves(before[at, :2], after[at, :2], before_t[at], t[at]), circles, index.passes_wanted[region[unsure]]
        )
        code[unsure] = decided.code
        first[unsure] = np.where(decided.code == PASS, decided.first, first[unsure])
        last[unsure] = np.where(decided.code == PASS, decided.last, last[unsure])
    passed = np.flatnonzero(code == PASS)
    passed = passed[~np.isin(passed, unsure)] if len(unsure) else passed
    if len(passed):
        at = row[passed]
        shapes = [tuples.shapes[r] for r in region[passed].tolist()]
        first[passed], last[passed] = pass_times(Moves(before[at, :2], after[at, :2], before_t[at], t[at]), shapes, span[passed])
    keep = code >= 0
    row, region, code, first, last = row[keep], region[keep], code[keep], first[keep], last[keep]
    passing = code == PASS
    monitor = tuples.borders_monitors[region]
    if not passing.any():
        return row, monitor, (code == IN).astype(np.int8), passing, first
    copies = np.repeat(np.arange(len(row)), np.where(passing, 2, 1))
    second = np.zeros(len(copies), np.bool_)
    second[1:] = copies[1:] == copies[:-1]
    passing = passing[copies]
    inward = np.where(passing, ~second, code[copies] == IN).astype(np.int8)
    return row[copies], monitor[copies], inward, passing, np.where(second, last[copies], first[copies])
