"""Results about a batch that all structures share, computed once: which rows satisfy the
conditions, and which regions contain them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch
from engine.model.conditions import Conditions
from engine.motion_patterns.region_grid import RegionGrid, RegionSamples

Floats = npt.NDArray[np.float64]


class BatchCache:
    """A batch and the cached results by conditions; conditions have at most one grid."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._places: dict[Conditions, tuple[Floats, Floats]] = {}
        self._inside: dict[Conditions, RegionSamples] = {}

    @property
    def entities(self) -> int:
        """The number of entities, including those of the batch."""
        return len(self.batch.entities) if len(self.batch.entity) else 0

    def places(self, where: Conditions) -> tuple[Floats, Floats]:
        """(x, y) of all rows; x is NaN for rows that do not satisfy the conditions."""
        if not where:
            return self.batch.x, self.batch.y
        if where not in self._places:
            self._places[where] = (np.where(where.mask(self.batch), self.batch.x, np.nan), self.batch.y)
        return self._places[where]

    def inside(self, where: Conditions, grid: RegionGrid) -> RegionSamples:
        """The rows that satisfy the conditions, by the region of their grid that contains them."""
        if where not in self._inside:
            self._inside[where] = grid.inside(*self.places(where))
        return self._inside[where]
