"""Encounters in real recordings: on slices small enough for plain loops, every way of delivery
gives the oracle's answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from engine.model.feed import ColumnType, Crs, Feed, TimeUnit
from tests.engine.runs import final_answers
from tests.oracles.encounter import Answer, answers

pytestmark = pytest.mark.data
MINUTE = 60_000


@dataclass(frozen=True)
class Slice:
    """`minutes` from `start` on of the `entities` nearest to the two that are closest on
    average; `distance` in metres."""

    file: str
    entity: str
    x: str
    y: str
    start: str
    minutes: float
    distance: float
    every: int
    gap: int
    crs: Crs = Crs.GEOGRAPHIC
    scene: str | None = None
    entities: int = 6

    def rows(self, data: Path) -> list[dict[str, Any]]:
        """entity, t, x, y and seq in order of time."""
        columns = {self.entity: "entity", "ts": "t", self.x: "x", self.y: "y"}
        filters = None if self.scene is None else [("scene", "=", self.scene)]
        frame = pq.read_table(data / self.file, columns=list(columns), filters=filters).to_pandas().rename(columns=columns)
        start = int(pd.Timestamp(self.start).value // 1_000_000)
        frame = frame[(frame["t"] >= start) & (frame["t"] < start + self.minutes * MINUTE)].astype({"entity": str})
        frame = frame[frame["entity"].isin(self._nearest(frame))].sort_values("t", kind="stable")[["entity", "t", "x", "y"]].drop_duplicates()
        return [{"seq": seq, **row} for seq, row in enumerate(frame.to_dict("records"))]

    def _nearest(self, frame: pd.DataFrame) -> list[str]:
        counts = frame["entity"].value_counts()
        means = frame[frame["entity"].isin(counts[counts >= 4].index)].groupby("entity")[["x", "y"]].mean()
        places = means.to_numpy()
        apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
        np.fill_diagonal(apart, np.inf)
        first = int(np.unravel_index(apart.argmin(), apart.shape)[0])
        return [str(means.index[i]) for i in [first, *np.argsort(apart[first])[: self.entities - 1]]]


SLICES = {
    "beijing": Slice("vehicles_tdrive_beijing/positions.parquet", "id", "lon", "lat", "2008-02-04T03:00Z", 40, 2_000, 4 * MINUTE, 12 * MINUTE),
    "north sea": Slice("ais_northsea_2022/positions.parquet", "mmsi", "lon", "lat", "2022-11-01T09:36Z", 36, 9_000, 4 * MINUTE, 9 * MINUTE),
    "us": Slice("ais_us_2022/positions.parquet", "mmsi", "lon", "lat", "2022-01-03T00:00Z", 40, 500, 4 * MINUTE, 10 * MINUTE),
    "pedestrians": Slice(
        "people_pedestrians/positions.parquet", "id", "x", "y", "2009-01-01T08:02Z", 1.5, 1.5, 800, 2_400, crs=Crs.PLANAR, scene="biwi_eth"
    ),
}


@pytest.mark.parametrize("name", SLICES)
def test_encounters_in_a_slice_of_a_recording_are_those_of_the_oracle(name: str, data_folder: Path) -> None:
    part = SLICES[name]
    rows = part.rows(data_folder)
    feed = Feed("slice", part.crs, TimeUnit.MS, columns=dict[str, ColumnType]())
    common = {"family": "encounter", "distance": part.distance, "every": part.every, "gap": part.gap}
    names = sorted({row["entity"] for row in rows})
    middle = {"center": [float(np.median([row[axis] for row in rows])) for axis in "xy"], "radius": 2 * part.distance}
    documents: list[dict[str, Any]] = [
        common,
        common | {"position": "interpolated"},
        common | {"lasting": 2 * part.every, "inside": middle},
        common | {"a": {"where": [["entity", "in", names[::2]]]}, "position": "interpolated", "distance": 2 * part.distance},
    ]
    expected = rounded(answers(rows, documents, geographic=part.crs is Crs.GEOGRAPHIC))
    assert len({query for query, *_ in expected}) == len(documents), "every query finds something"
    plain = [{key: value for key, value in row.items() if key != "seq"} for row in rows]
    for chance in (None, Random(1)):
        facts = final_answers(feed, documents, plain, chance)
        found = Counter((fact["query"], tuple(fact["entities"]), fact["start"], fact["end"], fact["score"]) for fact in facts)
        assert rounded(found) == expected


def rounded(found: Counter[Answer]) -> Counter[Answer]:
    """Distances to the millimetre, as the engine computes geodesics differently."""
    return Counter({(*answer[:-1], round(answer[-1], 3)): count for answer, count in found.items()})
