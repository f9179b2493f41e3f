"""The extent of a file's rows: the map of a new feed opens there."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.model.columns import X, Y
from engine.model.feed import Crs

MAP_PX = (900.0, 450.0)
"""The least size of a live map on a desktop screen."""
MARGIN = 0.01
"""Of each piece's rows, on both sides: receivers without a fix report 0, 0."""
WORLD_PX = 256.0
WORLD_DEGREES = 360.0
NEAREST = {Crs.GEOGRAPHIC: 16.0, Crs.PLANAR: 4.0}


class Extent:
    """A box around nearly all places. Grows with the pieces of a file."""

    def __init__(self) -> None:
        self._low: list[float] = [math.inf, math.inf]
        self._high: list[float] = [-math.inf, -math.inf]

    def add(self, rows: pa.Table) -> None:
        """The positions of `rows`; rows without one are ignored."""
        for axis, name in enumerate((X, Y)):
            low, high = pc.tdigest(rows.column(name), [MARGIN, 1 - MARGIN]).to_pylist()
            if low is not None:
                self._low[axis], self._high[axis] = min(self._low[axis], low), max(self._high[axis], high)

    def view(self, crs: Crs) -> dict[str, Any] | None:
        """Centre and zoom of a map that shows the box; null without places."""
        if not all(map(math.isfinite, self._low)):
            return None
        a_unit = WORLD_PX / WORLD_DEGREES if crs is Crs.GEOGRAPHIC else 1.0
        spans = [max(high - low, 1e-9) * a_unit for low, high in zip(self._low, self._high, strict=True)]
        if crs is Crs.GEOGRAPHIC:
            # A degree of latitude is longer than one of longitude on Mercator's map.
            spans[1] /= max(0.05, math.cos(math.radians(max(map(abs, (self._low[1], self._high[1]))))))
        zoom = min(math.log2(room / span) for room, span in zip(MAP_PX, spans, strict=True))
        center = [(low + high) / 2 for low, high in zip(self._low, self._high, strict=True)]
        return {"center": center, "zoom": round(min(NEAREST[crs], math.floor(zoom * 2) / 2), 1)}
