"""Motion patterns over real recordings: every way of delivery gives the oracle's
answers, witness by witness."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.model.events import Stamper, check_rows
from engine.model.feed import Crs, Feed, TimeUnit
from engine.runtime.evaluator import Evaluator
from tests.engine.motion_patterns.worlds import add_answers
from tests.engine.runs import registered
from tests.oracles.motion_patterns import Answer, answers

pytestmark = pytest.mark.data
PATTERNS = 20
MINUTE = 60_000


@dataclass(frozen=True)
class Slice:
    """Part of a recording small enough for plain loops: `minutes` from `start` on of `entities` of
    those that report most often then.

    `unit`, ms: evaluations come so often, and windows are some units long; `radius`,
    metres: of a typical region.
    """

    file: str
    entity: str
    start: str
    minutes: int
    entities: int
    unit: int
    radius: float

    def rows(self, data: Path, *, whole: bool = False) -> pd.DataFrame:
        """entity, t, x, y in file order; the whole recording on request."""
        columns = {self.entity: "entity", "ts": "t", "lon": "x", "lat": "y"}
        frame = pq.read_table(data / self.file, columns=list(columns)).to_pandas().rename(columns=columns)
        frame = frame.astype({"entity": str})[["entity", "t", "x", "y"]]
        if whole:
            return frame.reset_index(drop=True)
        start = int(pd.Timestamp(self.start).value // 1_000_000)
        frame = frame[(frame["t"] >= start) & (frame["t"] < start + self.minutes * MINUTE)]
        most = sorted(Counter(frame["entity"]).items(), key=lambda one: (-one[1], one[0]))[: self.entities]
        return frame[frame["entity"].isin([name for name, _ in most])].reset_index(drop=True)


SLICES = {
    "beijing": Slice("vehicles_tdrive_beijing/positions.parquet", "id", "2008-02-04T03:00Z", 150, 6, 10 * MINUTE, 2_500),
    "san francisco": Slice("vehicles_cabspotting_sf/positions.parquet", "id", "2008-05-20T18:00Z", 120, 3, 6 * MINUTE, 1_500),
    "geolife": Slice("people_geolife/positions.parquet", "id", "2008-10-24T02:20Z", 12, 3, 30_000, 150),
    "aircraft": Slice("aircraft_adsb/switzerland_2018.parquet", "icao24", "2018-08-01T12:00Z", 14, 5, MINUTE, 12_000),
}


@pytest.mark.parametrize("name", SLICES)
def test_patterns_over_a_slice_of_a_recording_are_those_of_the_oracle(name: str, data_folder: Path) -> None:
    part = SLICES[name]
    frame = part.rows(data_folder)
    documents = patterns(part, frame, seed=5)
    distinct = frame.drop_duplicates()
    rows = [{"seq": seq, **row} for seq, row in zip(distinct.index.tolist(), distinct.to_dict("records"), strict=True)]
    expected = answers(rows, documents, geographic=True)
    assert len({query for query, *_ in expected}) >= PATTERNS // 2

    for batch, partitions in ((len(frame), 1), (37, 3), (7, 1)):
        assert evaluated(frame, documents, batch, partitions) == expected


def patterns(part: Slice, frame: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """PATTERNS documents of 3 to 5 predicates, generated along the tracks of the
    recording so that they match."""
    chance = np.random.default_rng(seed)
    return [_pattern(n, part, frame, chance) for n in range(PATTERNS)]


def _pattern(n: int, part: Slice, frame: pd.DataFrame, chance: np.random.Generator) -> dict[str, Any]:
    """Kinds in turn: windows; a tour that stays away from somewhere; in order; order combined with
    windows; distances with every Θ. Every other one of the first and the third kind uses only
    visited regions, so all other samples are skipped."""
    anchor = frame.iloc[int(chance.integers(len(frame) // 2, len(frame)))]
    track = frame[(frame["entity"] == anchor["entity"]) & (frame["t"] <= anchor["t"])]
    steps = 3 + n % 3
    windows = [[round((steps - j + 0.7) * part.unit), (steps - j - 1) * part.unit] for j in range(steps)]
    regions = [_region(part, _position(track, int(anchor["t"]) - sum(window) // 2), chance) for window in windows]
    inside = [{"inside": region, "window": window, "quantifier": "exists"} for region, window in zip(regions, windows, strict=True)]
    kind = n % 5
    document: dict[str, Any] = {"family": "motion", "version": 1, "every": part.unit, "horizon": (steps + 1) * part.unit}
    if kind == 0:
        predicates: list[dict[str, Any]] = [*inside[:-1], inside[-1] | ({} if n % 2 else {"quantifier": "forall"})]
    elif kind == 1:
        away = _region(part, frame[["x", "y"]].iloc[int(chance.integers(len(frame)))].tolist(), chance)
        predicates = [*inside[:-1], {"outside": away, "window": [steps * part.unit, 0], "quantifier": "forall"}]
    elif kind == 2:
        elsewhere = [] if n % 2 else [{"outside": regions[0], "window": [part.unit, 0], "quantifier": "exists"}]
        predicates = [{"inside": region} for region in regions[:3]] + elsewhere
    elif kind == 3:
        predicates = [{"inside": regions[0]}, inside[1], {"outside": regions[1]}, *inside[3:]]
    else:
        middles = [_position(track, int(anchor["t"]) - sum(window) // 2) for window in windows[1:]]
        targets = [middles[0], *({"center": place, "radius": part.radius / 3} for place in middles[1:])]
        ways = ["exists", "forall", "exists", "exists"]
        far = [{"distance": to, "window": at, "quantifier": way} for to, at, way in zip(targets, windows[1:], ways, strict=False)]
        predicates = [{"outside": regions[0], "window": windows[0], "quantifier": "exists"}, *far]
        thetas = ({"op": "top", "k": 2, "order": "min"}, {"op": "min"}, {"op": "<=", "value": 4 * part.radius}, {"op": "max"})
        document["theta"] = thetas[n // 5 % 4]
    return document | {"predicates": predicates}


def _position(track: pd.DataFrame, t: int) -> list[float]:
    """The track's last position at `t`, or its first."""
    row = track.iloc[max(0, int(np.searchsorted(track["t"].to_numpy(), t, side="right")) - 1)]
    return [float(row["x"]), float(row["y"])]


def _region(part: Slice, centre: list[float], chance: np.random.Generator) -> dict[str, Any]:
    """A circle or a quadrangle about `centre`."""
    size = part.radius * float(chance.uniform(0.5, 1.5))
    if chance.random() < 0.4:
        return {"center": centre, "radius": size}
    reach = size / 111_000
    x, y, lean = *centre, float(chance.uniform(0, reach / 2))
    ring = [[x - reach, y - reach + lean], [x + reach, y - reach], [x + reach, y + reach - lean], [x - reach, y + reach]]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


@cache
def _feed() -> Feed:
    return Feed("recording", Crs.GEOGRAPHIC, TimeUnit.MS, lateness=0, dedupe=True)


def evaluated(frame: pd.DataFrame, documents: list[dict[str, Any]], batch: int, partitions: int) -> Counter[Answer]:
    """Answers of the evaluator over all rows, `batch` at a time."""
    evaluator = Evaluator.start(_feed(), registered(documents, _feed()), partitions)
    stamper, found = Stamper(), Counter[Answer]()
    good, dead = check_rows(pa.Table.from_pandas(frame, preserve_index=False), _feed())
    assert not dead
    for first in range(0, len(frame), batch):
        add_answers(found, evaluator.process(stamper.stamp(good.slice(first, batch))).changes)
    add_answers(found, evaluator.finish().changes)
    evaluator.check()
    return found
