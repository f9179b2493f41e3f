"""When entities were in regions, from their reports: the shared reading of the pages of
an entity and of a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.region import Region

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Visits:
    """`[start, end)` of each visit in order of entity and start: from the first report inside to
    the first one outside after it.

    `entity` are positions in `names`; `ended` is false where the entity's last report is inside:
    then `end` is that report's time.
    """

    names: Sequence[str]
    entity: Longs
    start: Longs
    end: Longs
    ended: npt.NDArray[np.bool_]


def visits(rows: pa.Table, region: Region) -> Visits:
    """The visits to `region`; `rows` has `entity`, `t`, `x`, `y` (none null) in any order. Of
    reports with the same time the last row counts."""
    if not rows.num_rows:
        none = np.empty(0, np.int64)
        return Visits([], none, none, none, np.empty(0, np.bool_))
    encoded = pc.dictionary_encode(rows.column("entity").combine_chunks())
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    entity, t = encoded.indices.to_numpy().astype(np.int64), rows.column("t").to_numpy()
    order = np.lexsort((t, entity))
    last_of_instant = np.ones(len(order), np.bool_)
    entity, t = entity[order], t[order]
    last_of_instant[:-1] = (entity[1:] != entity[:-1]) | (t[1:] != t[:-1])
    order, entity, t = order[last_of_instant], entity[last_of_instant], t[last_of_instant]
    inside = _inside(region, rows.column("x").to_numpy()[order], rows.column("y").to_numpy()[order])
    return Visits(encoded.dictionary.to_pylist(), *_runs(entity, t, inside))


def _inside(region: Region, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """`region.contains`, evaluated only for the points in its box."""
    west, south, east, north = region.bounds
    near = np.flatnonzero((x >= west) & (x <= east) & (y >= south) & (y <= north))
    inside = np.zeros(len(x), np.bool_)
    inside[near] = region.contains(x[near], y[near])
    return inside


def _runs(entity: Longs, t: Longs, inside: npt.NDArray[np.bool_]) -> tuple[Longs, Longs, Longs, npt.NDArray[np.bool_]]:
    new = np.ones(len(entity), np.bool_)
    new[1:] = entity[1:] != entity[:-1]
    begins = np.flatnonzero(inside & (new | ~np.roll(inside, 1)))
    final = np.append(new[1:], True)
    lasts = np.flatnonzero(inside & (final | ~np.append(inside[1:], False)))
    ended = ~final[lasts]
    return entity[begins], t[begins], t[np.where(ended, np.minimum(lasts + 1, len(t) - 1), lasts)], ended
