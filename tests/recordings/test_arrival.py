"""Arrivals in a real recording: on a slice small enough for plain loops, answers and
statistics are the oracle's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.model.feed import Crs, Feed, TimeUnit
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.runs import final_answers
from tests.oracles.arrival import answers, record
from tests.strategies import stamped

pytestmark = pytest.mark.data
FEED = Feed("sea", Crs.GEOGRAPHIC, TimeUnit.TICKS, dedupe=False)
VESSELS = 6


def rows_of(data: Path) -> list[dict[str, Any]]:
    """Forty minutes of the North Sea in seconds, with the vessels that move furthest."""
    columns = {"mmsi": "entity", "ts": "t", "lon": "x", "lat": "y"}
    frame = pq.read_table(data / "ais_northsea_2022/positions.parquet", columns=list(columns)).to_pandas().rename(columns=columns)
    ways = frame.groupby("entity")[["x", "y"]].agg(lambda values: values.max() - values.min()).sum(axis=1)
    frame = frame[frame["entity"].isin(ways.nlargest(VESSELS).index)].astype({"entity": str})
    frame["t"] = (frame["t"] - frame["t"].min()) // 1000
    frame = frame.sort_values("t", kind="stable")
    return [{"seq": seq, **row} for seq, row in enumerate(frame.to_dict("records"))]


def square_before(rows: list[dict[str, Any]], entity: str) -> dict[str, Any]:
    """Around the vessel's last position, about three kilometres wide."""
    last = [row for row in rows if row["entity"] == entity][-1]
    west, south = round(last["x"], 2) - 0.03, round(last["y"], 2) - 0.015
    ring = [[west, south], [west + 0.05, south], [west + 0.06, south + 0.03], [west, south + 0.03], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def shown(evidence: list[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple((item["variable"], item["t"], item["seq"]) for item in evidence)


def test_arrivals_of_vessels_are_those_of_the_oracle(data_folder: Path) -> None:
    rows = rows_of(data_folder)
    names = sorted({row["entity"] for row in rows})[:4]
    common = {"family": "arrival", "within": 600, "gap": 180}
    asked = [common | {"region": square_before(rows, name), "over": over} for name, over in zip(names, (60, 120, 180, 300), strict=True)]
    wanted = answers(rows, asked, geographic=True)
    assert sum(wanted.values()) >= 4
    plain = [{name: row[name] for name in ("entity", "t", "x", "y")} for row in rows]
    found = Counter(
        (fact["query"], fact["entities"][0], fact["start"], fact["end"], fact["score"], shown(fact["evidence"]))
        for fact in final_answers(FEED, asked, plain)
    )
    assert found == wanted
    evaluator = Evaluator.start(FEED, [RegisteredQuery("q", 1, check(asked[0], FEED))])
    evaluator.process(stamped(plain, FEED))
    evaluator.finish()
    work = evaluator.counters()["arrival"]
    counted = record(rows, asked[0], geographic=True)
    assert {name: work[f"{name}@q"] for name in counted} == counted
