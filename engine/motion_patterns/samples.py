"""From a batch to index points: which samples belong to which series, with their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch
from engine.model.conditions import Conditions
from engine.model.region import Region
from engine.motion_patterns.distances import distances_to
from engine.motion_patterns.plan import MotionIndex

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """Samples of series: by series, then in the order of the batch. `value` is the distance of a distance series, else 0."""

    series: Ints
    row: Ints
    value: Floats


def hits(index: MotionIndex, batch: Batch) -> Hits:
    """The index points that the rows of `batch` make. A row without a position makes none."""
    located = ~(np.isnan(batch.x) | np.isnan(batch.y))
    samples: dict[Conditions, Ints] = {}
    tested: dict[object, npt.NDArray[np.bool_]] = {}
    measured: dict[object, Floats] = {}
    rows, values = [], []
    for key in index.series:
        if key.where not in samples:
            samples[key.where] = np.flatnonzero(located & key.where.mask(batch))
        own = samples[key.where]
        if key.test in ("inside", "outside"):
            assert isinstance(key.target, Region)
            test = (key.where, key.target)
            if test not in tested:
                tested[test] = key.target.contains(batch.x[own], batch.y[own])
            own = own[tested[test] == (key.test == "inside")]
        elif key.target is not None:
            measure = (key.where, key.target)
            if measure not in measured:
                measured[measure] = distances_to(key.target, batch.x[own], batch.y[own], index.border(key.target))
            values.append(measured[measure])
        rows.append(own)
        if key.test in ("any", "inside", "outside"):
            values.append(np.zeros(len(own)))
    if not rows:
        return Hits(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    series = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    return Hits(series, np.concatenate(rows), np.concatenate(values))

