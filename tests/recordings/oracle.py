"""Answers of border and transition queries over a whole recording, by shapely, pyproj and numpy,
without the engine's code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import shapely
from pyproj import Geod
from shapely.geometry import shape

WITHIN = 600_000
Fact = tuple[str, str, str, int, int]


def accepted(rows: dict[str, np.ndarray]) -> pd.DataFrame:
    """Accepted rows on a feed with lateness 0, without exact duplicates and late rows; ordered
    by entity, time, arrival."""
    frame = pd.DataFrame(rows)
    clock = frame["t"].cummax().shift(fill_value=frame["t"].iloc[0])
    frame = frame[frame["t"] >= clock].drop_duplicates()
    return frame.sort_values(["entity", "t"], kind="stable").reset_index(drop=True)


def inside(region: dict[str, Any], frame: pd.DataFrame) -> np.ndarray:
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    if "center" not in region:
        geometry = shape(region)
        shapely.prepare(geometry)
        west, south, east, north = geometry.bounds
        near = np.flatnonzero((x >= west) & (x <= east) & (y >= south) & (y <= north))
        found = np.zeros(len(frame), bool)
        found[near] = shapely.intersects_xy(geometry, x[near], y[near])
        return found
    cx, cy = region["center"]
    near = np.flatnonzero(np.abs(y - cy) <= region["radius"] / 110_000)
    distance = Geod(ellps="WGS84").inv(np.full(len(near), cx), np.full(len(near), cy), x[near], y[near])[2]
    found = np.zeros(len(frame), bool)
    found[near] = distance <= region["radius"]
    return found


def crossings(document: dict[str, Any], frame: pd.DataFrame) -> list[tuple[str, int, str]]:
    """(entity, t, kind) of each crossing, in order of entity and time."""
    held, entity = inside(document["region"], frame), frame["entity"].to_numpy()
    at = 1 + np.flatnonzero(held[1:] != held[:-1])
    at = at[entity[at] == entity[at - 1]]
    return list(zip(entity[at].tolist(), frame["t"].to_numpy()[at].tolist(), np.where(held[at], "in", "out").tolist(), strict=True))


def answers(name: str, document: dict[str, Any], frame: pd.DataFrame, last: int | None = None) -> list[Fact]:
    """Facts of one query over the frame; time advances to `last`, else to the frame's last
    event."""
    found = crossings(document, frame)
    if document["family"] == "border":
        return [(name, kind, entity, t, t) for entity, t, kind in found]
    last = int(frame["t"].max()) if last is None else last
    asserted: list[Fact] = []
    for (entity, t, kind), following in zip(found, [*found, None][1:], strict=True):
        done, silent = ("passed", "stayed_in") if kind == "in" else ("returned", "stayed_out")
        if following is not None and following[0] == entity and following[1] - t <= WITHIN:
            asserted.append((name, done, entity, t, following[1]))
        elif t + WITHIN <= last:
            asserted.append((name, silent, entity, t, t + WITHIN))
    return asserted
