"""The feed's settings derived from a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.events import plain_row
from engine.sources.formats import InvalidLine
from engine.sources.guessing.values import odd_text
from engine.sources.reading import Reading, read_rows

SHOWN_ROWS, SHOWN_PLACES = 20, 1_500
SHOWN_FAULTS = 50
EXACT_IN_JSON = 2**53
"""A page keeps the digits of greater numbers only as text."""
TICKS_OF_TIME = (86_400_000, 3_600_000, 60_000, 1_000, 100, 10, 1)
INTERVALS_S = (0.1, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400)
"""Bounds of the histogram of intervals between an entity's rows."""


def described(raw: pa.Table, lines: npt.NDArray[np.int64], broken: Sequence[InvalidLine], reading: Reading) -> dict[str, Any]:
    """The sample for a page: its columns and rows, its faults by row, and the
    derived settings of the feed."""
    feed = reading.feed("sample")
    read = read_rows(raw, reading, feed)
    good = read.checked.good()
    letters = read.checked.dead(lines)
    faults = [{"line": one.line, "problem": one.problem, "row": one.text} for one in broken[:SHOWN_FAULTS]]
    faults += [{"line": one.line, "problem": one.detail, "row": one.row} for one in letters[: SHOWN_FAULTS - len(faults)]]
    return {
        "columns": [_column(name, raw.column(name).combine_chunks(), reading.decimal) for name in raw.column_names],
        "rows": [{name: _shown(value) for name, value in plain_row(row).items()} for row in raw.slice(0, SHOWN_ROWS).to_pylist()],
        "lines": lines[:SHOWN_ROWS].tolist(),
        "read": [plain_row(row) for row in good.slice(0, SHOWN_ROWS).to_pylist()],
        "count": raw.num_rows + len(broken),
        "good": good.num_rows,
        "faults": sorted(faults, key=lambda one: one["line"]),
        "fault_count": len(broken) + len(letters),
        **_about(good, reading),
    }


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _shown(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > EXACT_IN_JSON:
        return str(value)
    return value[:100] if isinstance(value, str) else value


def _column(name: str, column: pa.Array, decimal: str) -> dict[str, Any]:
    examples = [_text(value.as_py())[:60] for value in column.slice(0, 200).unique() if value.is_valid][:3]
    return {"name": name, "examples": examples, "empty": column.null_count, "odd": odd_text(column, decimal)[:60]}


def _about(good: pa.Table, reading: Reading) -> dict[str, Any]:
    """What the valid rows of the sample show: places, span, intervals, lateness, tick."""
    t = good.column("t").to_numpy()
    if not len(t):
        return {"places": [], "entities": 0, "from": None, "to": None, "intervals": [], "lateness": 0, "tick": 1, "ordered": True, "bounds": None}
    entities = good.column("entity").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    x, y = (good.column(name).to_numpy() for name in ("x", "y"))
    placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    chosen = placed[np.linspace(0, len(placed) - 1, min(len(placed), SHOWN_PLACES)).astype(int)] if len(placed) else placed
    lag = int(np.max(np.maximum.accumulate(t) - t))
    span = int(t.max() - t.min())
    # Files that list one thing after the other begin again with each: that is no lateness.
    grouped = lag > max(span // 4, 1)
    return {
        "places": np.column_stack([x[chosen], y[chosen]]).round(6).tolist(),
        "bounds": [float(x[placed].min()), float(y[placed].min()), float(x[placed].max()), float(y[placed].max())] if len(placed) else None,
        "entities": len(np.unique(entities)),
        "from": int(t.min()),
        "to": int(t.max()),
        "intervals": _intervals(t, entities, 1000.0 if reading.time_format != "ticks" else 1.0),
        "lateness": 0 if grouped else _rounded(lag, reading.time_format != "ticks"),
        "tick": _tick(t, reading),
        "ordered": lag == 0,
    }


def _intervals(t: npt.NDArray[np.int64], entities: npt.NDArray[Any], unit: float) -> list[dict[str, Any]]:
    """How many intervals between neighbouring rows of an entity lie up to each
    bound; the last has none."""
    order = np.lexsort((t, entities))
    same = entities[order][1:] == entities[order][:-1]
    spans = np.diff(t[order])[same] / unit
    counts = np.histogram(spans, [-1.0, *(bound + 1e-9 for bound in INTERVALS_S), np.inf])[0].tolist()
    return [{"up_to": bound, "count": count} for bound, count in zip([*INTERVALS_S, None], counts, strict=True)]


def _rounded(lag: int, is_time: bool) -> int:
    """A lateness, in round numbers, with which no row of the sample would be late."""
    if lag == 0 or not is_time:
        return lag
    return next(
        (bound for bound in (1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000) if bound >= 2 * lag), 2 * lag
    )


def _tick(t: npt.NDArray[np.int64], reading: Reading) -> int:
    if reading.time_format == "ticks":
        return 1
    return next(tick for tick in TICKS_OF_TIME if not np.any(t % tick))
