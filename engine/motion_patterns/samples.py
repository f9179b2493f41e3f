"""From a batch to index points: which samples belong to which series, with their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch
from engine.motion_patterns.distances import distances_to
from engine.motion_patterns.plan import MotionIndex, SampleClass

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """Samples of series: by series, then in the order of the batch. `value` is the distance of
    a distance series, else 0."""

    series: Ints
    row: Ints
    value: Floats


def hits(index: MotionIndex, classes: Sequence[SampleClass], batch: Batch) -> Hits:
    """The index points of the rows of `batch` in the series of `classes`. A row
    without a position has none."""
    located = ~(np.isnan(batch.x) | np.isnan(batch.y))
    rows: list[Ints] = [np.empty(0, np.int64)] * len(index.series)
    values: dict[int, Floats] = {}
    for one in classes:
        located_rows = np.flatnonzero(located & one.where.mask(batch) if one.where else located)
        x, y = batch.x[located_rows], batch.y[located_rows]
        for p in one.every_sample:
            rows[p] = located_rows
        for numbers, target in one.measured:
            measured = distances_to(target, x, y, index.border(target))
            for p in numbers:
                rows[p], values[p] = located_rows, measured
        _tested(one, located_rows, x, y, rows)
    lengths = [len(one) for one in rows]
    value = np.zeros(sum(lengths))
    first = np.cumsum([0, *lengths])
    for p, measured in values.items():
        value[first[p] : first[p + 1]] = measured
    return Hits(np.repeat(np.arange(len(rows)), lengths), np.concatenate([np.empty(0, np.int64), *rows]), value)


def _tested(one: SampleClass, located_rows: Ints, x: Floats, y: Floats, rows: list[Ints]) -> None:
    """Sets the `rows` of the series that test regions; `located_rows` are the class's samples."""
    if one.grid is None:
        return
    first, at, near = one.grid.inside(x, y)
    inside = near[at]
    for r, (holding, missing) in enumerate(one.tested):
        samples = inside[first[r] : first[r + 1]]
        for p in holding:
            rows[p] = located_rows[samples]
        if missing:
            outside = np.ones(len(located_rows), np.bool_)
            outside[samples] = False
            for p in missing:
                rows[p] = located_rows[outside]
