"""The count over time, step by step, for the chart on a page."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from engine.model.batch import TIME, Batch
from engine.model.feed import Feed
from engine.occupancy.operator import OccupancyOperator
from engine.occupancy.specification import OccupancySpecification
from engine.operator import RegisteredQuery


def course(specification: OccupancySpecification, feed: Feed, batch: Batch, until: int) -> list[tuple[int, int]]:
    """Steps (t, count), each count from its t on, of rows sorted by (t, seq) and the passing of
    time up to `until`; the first at the first row."""
    operator = OccupancyOperator()
    index = operator.compile([RegisteredQuery("0", 1, specification)], feed)
    emitted = operator.keyed.step(index, operator.keyed.initial(index), batch, until + 1).emitted
    if emitted is None:
        return []
    emitted = emitted.take(pc.sort_indices(emitted, sort_keys=[(TIME, "ascending")]))
    t = emitted.column(TIME).to_numpy()
    count = np.cumsum(emitted.column("change").to_numpy().astype(np.int64))
    # Changes at one instant are one step, and one that changes nothing is none.
    last = np.append(t[1:] != t[:-1], True)
    t, count = t[last], count[last]
    kept = np.append(True, count[1:] != count[:-1])
    return list(zip(t[kept].tolist(), count[kept].tolist(), strict=True))
