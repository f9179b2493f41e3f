"""Real recordings as feeds: where they are, how their columns map, and random regions
over the places they visit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Recording:
    """A recording of the data folder: `columns` maps the specification's names to those of the
    file, `attributes` declares types."""

    folder: str
    file: str
    columns: dict[str, str]
    attributes: dict[str, str] = field(default_factory=dict)
    largest: float = 0.1
    """The radius of the greatest region, in degrees: smaller if everything happens in one city."""

    def path(self, data: Path) -> Path:
        return data / self.folder / self.file

    @property
    def name(self) -> str:
        return self.folder.replace("_", "-")

    @property
    def map_option(self) -> str:
        return ",".join(f"{ours}={theirs}" for ours, theirs in self.columns.items())

    def feed(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "crs": "geographic",
            "time": "ms",
            "lateness": 0,
            "dedupe": True,
            "columns": self.attributes,
        }

    def rows(self, data: Path) -> dict[str, np.ndarray]:
        """entity (as strings), t, x, y and the attributes, in file order."""
        wanted = [*self.columns.values(), *self.attributes]
        table = pq.read_table(self.path(data), columns=wanted)
        named = {ours: table.column(theirs).to_numpy() for ours, theirs in self.columns.items()}
        named["entity"] = named["entity"].astype(str)
        return named | {name: table.column(name).to_pandas().to_numpy() for name in self.attributes}


AIS = {"entity": "mmsi", "t": "ts", "x": "lon", "y": "lat"}
BY_ID = {"entity": "id", "t": "ts", "x": "lon", "y": "lat"}
RECORDINGS = {
    "northsea": Recording("ais_northsea_2022", "positions.parquet", AIS, {"sog": "float", "ship_type": "string"}),
    "us": Recording("ais_us_2022", "positions.parquet", AIS, {"sog": "float", "cog": "float"}),
    "kitimat": Recording("ais_kitimat_2018", "positions.parquet", BY_ID, {"sog": "float", "ship_type": "string"}),
    "beijing": Recording("vehicles_tdrive_beijing", "positions.parquet", BY_ID, largest=0.01),
}


def regions(recording: Recording, data: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """`count` regions around positions of the recording: boxes, stars with a hole, circles; sizes
    over two decades of degrees."""
    rng = np.random.default_rng(seed)
    rows = recording.rows(data)
    picks = rng.integers(0, len(rows["x"]), count)
    made = []
    for n, pick in enumerate(picks):
        x, y = float(rows["x"][pick]), float(rows["y"][pick])
        size = float(recording.largest * 10 ** rng.uniform(-2, 0))
        made.append(_region(n % 4, np.clip(x, -179, 179), np.clip(y, -80, 80), size, rng))
    return made


def _region(kind: int, x: float, y: float, size: float, rng: np.random.Generator) -> dict[str, Any]:
    if kind == 0:
        return {"center": [x, y], "radius": size * 100_000}
    if kind == 1:
        return {"type": "Polygon", "coordinates": [_ring(x, y, [size] * 4, 0.0), _ring(x, y, [size / 3] * 4, 0.0)[::-1]]}
    radii = (size * rng.uniform(0.4, 1.0, 24)).tolist()
    if kind == 2:
        return {"type": "Polygon", "coordinates": [_ring(x, y, radii, 0.1)]}
    return {
        "type": "MultiPolygon",
        "coordinates": [[_ring(x, y, [size / 2] * 4, 0.2)], [_ring(x + 2 * size, y, [size / 2] * 5, 0.3)]],
    }


def _ring(x: float, y: float, radii: list[float], turn: float) -> list[list[float]]:
    """A closed, counter-clockwise ring of len(radii) vertices around (x, y)."""
    angles = turn + 2 * np.pi * np.arange(len(radii)) / len(radii)
    ring = [[x + r * float(np.cos(a)), y + r * float(np.sin(a))] for r, a in zip(radii, angles, strict=True)]
    return [*ring, ring[0]]


def write_queries(folder: Path, found: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], Path]]:
    """One specification file per region, border and transition in turn; some with
    segments, some with `where`."""
    written = []
    for n, region in enumerate(found):
        document: dict[str, Any] = {"family": "border", "version": 1, "name": f"q{n:04d}", "region": region}
        if n % 2:
            document |= {"family": "transition", "within": "PT10M"}
        path = folder / f"q{n:04d}.json"
        path.write_text(json.dumps(document))
        written.append((document["name"], document, path))
    return written
