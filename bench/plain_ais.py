"""Recordings of plain AIS as positions for the maritime program, and the
vessels' types as facts of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
COLUMNS = {"sog": "float", "cog": "float", "heading": "float"}
CODES = {30: "fishing", 31: "tug", 32: "tug", 36: "sailingvessel", 37: "pleasurecraft", 50: "pilotvessel", 51: "sar", 52: "tug"}
TENS = {4: "highspeedcraft", 6: "passenger", 7: "cargo", 8: "tanker"}
SPAN_S = 3_600
"""A few rows of the American file lie hours after the others: every window until then
would be decided for nothing."""


def positions(folder: Path) -> tuple[pa.Table, str]:
    """Reports of the first hour in order of time, t in seconds; and facts."""
    table = pq.read_table(folder / "positions.parquet")
    kinds = dict(zip(table["mmsi"].to_pylist(), map(ship_type, table["ship_type"].to_pylist()), strict=True))
    t = np.asarray(table["ts"]) // 1000
    course = table["cog"] if "cog" in table.column_names else table["heading"]
    sog = table["sog"].cast(pa.float64())
    rows = pa.table(
        {
            "entity": table["mmsi"].cast(pa.string()), "t": t, "x": table["lon"], "y": table["lat"], "cog": course.cast(pa.float64()),
            "sog": pc.if_else(pc.less(sog, 102), sog, pa.scalar(None, pa.float64())), "heading": table["heading"].cast(pa.float64()),
        }
    )  # fmt: skip
    rows = rows.take(pa.array(np.argsort(t, kind="stable"))).filter(pa.array(np.sort(t) < t.min() + SPAN_S)).combine_chunks()
    return rows, "\n".join(f"vesselType({mmsi}, '{kind}')." for mmsi, kind in sorted(kinds.items()) if kind is not None)


def ship_type(given: Any) -> str | None:
    """The program's name of a type: a word, or the code of an AIS message."""
    if isinstance(given, str):
        return given.lower().replace(" ", "")
    return None if given is None else CODES.get(int(given), TENS.get(int(given) // 10))


def document(facts: str, window: int, step: int) -> dict[str, Any]:
    """The program over plain positions, windows in seconds."""
    given: dict[str, Any] = json.loads((ROOT / "fixtures" / "programs" / "maritime" / "query-plain_positions.json").read_text())
    synopsis = {"speed": "sog", "course": "cog", "heading": "heading", "gap": 600}
    changed = {"program": f"{given['program']}\n{facts}", "synopsis": synopsis, "window": window, "step": step, "origin": 0, "edge": "exact"}
    return given | changed
