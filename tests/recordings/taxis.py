"""Very many regions over Beijing's taxis: 20,000 squares and 5,000 polygons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.recordings.sources import RECORDINGS

BEIJING = RECORDINGS["beijing"]
SQUARES, POLYGONS = 20_000, 5_000


def documents(data: Path) -> Iterator[dict[str, Any]]:
    """Squares of 40 to 400 m and stars of 12 to 60 vertices about places where taxis were;
    borders and transitions in turn."""
    rng = np.random.default_rng(20)
    rows = BEIJING.rows(data)
    inside = np.flatnonzero((rows["x"] > 115) & (rows["x"] < 118) & (rows["y"] > 39) & (rows["y"] < 41.5))
    for n, pick in enumerate(rng.choice(inside, SQUARES + POLYGONS)):
        x, y = (float(rows[name][pick] + rng.normal(0, 0.005)) for name in ("x", "y"))
        size = float(0.0002 * 10 ** rng.uniform(0, 1))
        if n < SQUARES:
            ring = [[x - size, y - size], [x + size, y - size], [x + size, y + size], [x - size, y + size]]
        else:
            vertices = int(rng.integers(12, 61))
            turns = (np.arange(vertices) + rng.uniform(0, 0.9, vertices)) / vertices * 2 * np.pi
            reach = size * rng.uniform(0.5, 1.0, len(turns))
            ring = np.column_stack([x + reach * np.cos(turns), y + reach * np.sin(turns)]).tolist()
        region = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        family = {"family": "transition", "within": "PT10M"} if n % 2 else {"family": "border"}
        yield {"version": 1, "name": f"q{n:05d}", **family, "region": region}
