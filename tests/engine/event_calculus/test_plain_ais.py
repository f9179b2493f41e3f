"""The maritime program on real AIS positions: as rows come, with restarts, in several partitions, and all at once give the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine.model.events import Stamper, check_rows
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.engine.event_calculus.recordings import DATA, PROGRAMS, add, answers

pytestmark = pytest.mark.data

LATENESS_S = 60
COLUMNS = {"sog": "float", "cog": "float", "heading": "float"}
FEED = Feed.from_json({"name": "ais", "crs": "geographic", "time": "ticks", "tick": 1, "lateness": LATENESS_S, "columns": COLUMNS})
CODES = {30: "fishing", 31: "tug", 32: "tug", 36: "sailingvessel", 37: "pleasurecraft", 50: "pilotvessel", 51: "sar", 52: "tug"}
TENS = {4: "highspeedcraft", 6: "passenger", 7: "cargo", 8: "tanker"}


def ship_type(given: Any) -> str | None:
    """The program's name of a type: a word, or the code of an AIS message."""
    if isinstance(given, str):
        return given.lower().replace(" ", "")
    return None if given is None else CODES.get(int(given), TENS.get(int(given) // 10))


def recording(folder: str) -> tuple[pa.Table, str]:
    """Positions in order of arrival, up to a minute out of order, t in seconds; and the vessels' types as facts."""
    table = pq.read_table(DATA / folder / "positions.parquet")
    facts = dict(zip(table["mmsi"].to_pylist(), map(ship_type, table["ship_type"].to_pylist()), strict=True))
    t = np.asarray(table["ts"]) // 1000
    course = table["cog"] if "cog" in table.column_names else table["heading"]
    sog = table["sog"].cast(pa.float64())
    found = pa.table(
        {
            "entity": table["mmsi"].cast(pa.string()), "t": t, "x": table["lon"], "y": table["lat"], "cog": course.cast(pa.float64()),
            "sog": pc.if_else(pc.less(sog, 102), sog, pa.scalar(None, pa.float64())),
            "heading": table["heading"].cast(pa.float64()),
        }
    )  # fmt: skip
    # A few rows of the American file lie hours after the others: every window until then would be decided for nothing.
    found = found.filter(pa.array(t < t.min() + 3_600))
    t = np.asarray(found["t"])
    delays = np.random.default_rng(5).integers(0, LATENESS_S + 1, len(t))
    good, _ = check_rows(found.take(pa.array(np.argsort(t + delays, kind="stable"))), FEED)
    lines = [f"vesselType({mmsi}, '{kind}')." for mmsi, kind in sorted(facts.items()) if kind is not None]
    return Stamper().stamp(good), "\n".join(lines)


def query(facts: str) -> RegisteredQuery:
    document = json.loads((PROGRAMS / "maritime" / "query-plain_positions.json").read_text())
    program = document["program"] + "\n" + facts
    synopsis = {"speed": "sog", "course": "cog", "heading": "heading", "gap": 600}
    return RegisteredQuery("q", 1, check({**document, "program": program, "synopsis": synopsis, "window": 7_200, "step": 600, "origin": 0}, FEED))


@pytest.mark.parametrize(("folder", "least"), [("ais_northsea_2022", 300), ("ais_us_2022", 3_000)])
def test_as_rows_come_and_all_at_once(folder: str, least: int) -> None:
    stamped, facts = recording(folder)
    asked = query(facts)
    whole = answers(asked, FEED, stamped, partitions=2)
    evaluator = Evaluator.start(FEED, [asked])
    live: Counter[tuple[Any, ...]] = Counter()
    for start in range(0, len(stamped), 4_001):
        add(live, evaluator.process(stamped.slice(start, 4_001)).changes)
        evaluator = Evaluator.load(FEED, [asked], evaluator.dump())
    add(live, evaluator.finish().changes)
    assert live == whole
    assert sum(whole.values()) > least
    print(folder, len(stamped), sum(whole.values()), Counter(kind for kind, *_ in whole.elements()))  # shown by pytest -s
